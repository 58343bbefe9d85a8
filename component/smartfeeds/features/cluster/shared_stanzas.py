"""What this process learns from stanzas that the server has sent to another process of the domain (docs/scaling.md,
"Links"). `relay` passes them on.
"""

from collections.abc import Callable

from smartfeeds.core.jid import Jid
from smartfeeds.features.bot.stanzas import ChatService, MessageError, read_room_presence
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.service.requests import Request
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.calls import AddressReader
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.stanza_errors import error_condition

_PRESENCE = ns.tag(COMPONENT_NS, "presence")


class SharedStanzas:
    """Notes stanzas that another process has handled. `start` starts a request.

    Without `chat` rooms and chat messages mean nothing, and without `presences` presence of users.
    """

    def __init__(
        self,
        addresses: AddressReader,
        chat: ChatService | None,
        presences: Presences | None,
        start: Callable[[Request], object],
    ) -> None:
        self._addresses = addresses
        self._chat = chat
        self._presences = presences
        self._start = start

    def concerns(self, message: Element) -> bool:
        """Returns whether other processes must know of a message.

        An error may be about a delivery of the bot in another process. A chat message shows that a person can be
        reached, to whom a delivery of another process may have failed.
        """
        if self._chat is None:
            return False
        kind = message.get("type")
        return kind == "chat" or (kind == "error" and self._chat.follows_message(message.get("id") or ""))

    def note(self, element: Element) -> None:
        """Notes presence, or a message for which `concerns` returns True."""
        sender, address = self._addresses.sender(element), self._addresses.own(element)
        if sender is None or address is None:
            return
        if element.tag != _PRESENCE:
            self._note_message(element, sender.jid, address.bare)
            return
        room = read_room_presence(element, sender.jid, address.bare) if self._chat is not None else None
        if room is not None:
            self._start(room)
            return
        if self._chat is not None and "type" not in element.attrib:
            self._chat.note_available(sender.jid)
        if self._presences is not None:
            self._presences.note_shared(element, sender.jid, address.bare)

    def _note_message(self, message: Element, sender: Jid, address: str) -> None:
        if message.get("type") == "error":
            self._start(MessageError(sender, address, message.get("id") or "", error_condition(message)))
        elif self._chat is not None:
            self._chat.note_available(sender)

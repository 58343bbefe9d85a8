"""Reads the stanzas that the server has sent to another process of the domain (docs/scaling.md, "Links"). `relay`
passes them on."""

from collections.abc import Callable

from smartfeeds.core.jid import Jid
from smartfeeds.service.requests import Request
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.calls import AddressReader
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.stanza_side import StanzaReader, StanzaSide

_MESSAGE = ns.tag(COMPONENT_NS, "message")
_PRESENCE = ns.tag(COMPONENT_NS, "presence")


class SharedStanzas:
    """Notes stanzas that another process has handled, for the running parts of this one. `start` starts a request."""

    def __init__(self, addresses: AddressReader, stanzas: StanzaSide, start: Callable[[Request], object]) -> None:
        self._addresses = addresses
        self._stanzas = stanzas
        self._start = start

    def concerns(self, message: Element) -> bool:
        """Returns whether other processes must know of a message."""
        return any(shared.concerns(message) for shared in self._stanzas.shared_messages)

    def note(self, element: Element) -> bool:
        """Notes presence, or a message for which `concerns` returns True. Returns False for any other stanza."""
        if element.tag != _PRESENCE and not (element.tag == _MESSAGE and self.concerns(element)):
            return False
        sender, address = self._addresses.sender(element), self._addresses.own(element)
        if sender is not None and address is not None:
            self._note(element, sender.jid, address.bare)
        return True

    def _note(self, element: Element, sender: Jid, address: str) -> None:

        def start(read: StanzaReader) -> bool:
            request = read(element, sender, address)
            if request is not None:
                self._start(request)
            return request is not None

        if element.tag != _PRESENCE:
            for shared in self._stanzas.shared_messages:
                start(shared.note)
        elif not any(map(start, self._stanzas.room_presence)):
            for reader in self._stanzas.presence:
                start(reader.note)

"""The chat bot, from the settings."""

from collections.abc import Callable

from smartfeeds import system
from smartfeeds.app.config import Settings
from smartfeeds.core.jid import Jid
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.letters import Letters
from smartfeeds.features.accounts.sign_ins import SignIns
from smartfeeds.features.bot.bot import Bot, BotOptions
from smartfeeds.features.bot.delivery import is_message_id
from smartfeeds.features.bot.stanzas import (
    FEATURES,
    MESSAGES,
    ChatMessage,
    MessageError,
    RoomInvitation,
    RoomPresence,
    read_room_presence,
)
from smartfeeds.features.polling.finding import FeedFinder
from smartfeeds.features.presence.states import Availability
from smartfeeds.service.answers import Handle
from smartfeeds.service.feeds import FeedService
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.stanza_errors import error_condition
from smartfeeds.xmpp.stanza_side import PresenceReader, SharedMessages, StanzaSide
from smartfeeds.xmpp.stream import ComponentStream


def stanza_side(bot: Bot) -> StanzaSide:
    """Returns what the bot does with messages and presence."""

    def read_error(element: Element, sender: Jid, address: str) -> MessageError | None:
        message_id = element.get("id") or ""
        if not is_message_id(message_id):
            return None
        return MessageError(sender, address, message_id, error_condition(element))

    def note_available(element: Element, sender: Jid, _address: str) -> None:
        if "type" not in element.attrib:
            bot.note_available(sender)

    # A message shows that a person can be reached, to whom a delivery of another process may have failed.
    def concerns(message: Element) -> bool:
        kind = message.get("type")
        return kind == "chat" or (kind == "error" and is_message_id(message.get("id") or ""))

    def note_message(element: Element, sender: Jid, address: str) -> MessageError | None:
        if element.get("type") == "error":
            return read_error(element, sender, address)
        bot.note_available(sender)
        return None

    requests = (ChatMessage, RoomInvitation, RoomPresence, MessageError)
    return StanzaSide(
        messages=MESSAGES,
        errors=(read_error,),
        room_presence=(read_room_presence,),
        presence=(PresenceReader(note_available, note_available),),
        shared_messages=(SharedMessages(concerns, note_message),),
        handlers=dict.fromkeys(requests, bot.handle),
        operations=dict.fromkeys(requests, "chat"),
        rooms=bot.rooms,
        features=FEATURES,
        identities=(("client", "bot"),),
    )


def make_bot(
    settings: Settings,
    service: FeedService,
    handle: Handle,
    dispatcher: Dispatcher,
    stream: ComponentStream,
    sign_ins: SignIns,
    finder: FeedFinder,
    availability: Availability,
    clock: Callable[[], int],
    letters: Letters,
) -> Bot | None:
    """Returns the bot, or None if it is switched off."""
    if not settings.bot.enabled:
        return None
    options = BotOptions(
        settings.component.jid,
        settings.bot.name,
        settings.http.base_url if settings.http.listen else "",
        settings.bot.rooms,
        settings.bot.rooms_max,
        settings.bot.messages_per_minute,
    )
    return Bot(
        options,
        service,
        handle,
        dispatcher,
        stream.outbox,
        stream.call,
        sign_ins,
        finder,
        is_available=availability.is_available,
        clock=clock,
        monotonic=system.monotonic,
        letters=letters,
    )

"""The chat bot in the running service, and what it does with stanzas."""

from smartfeeds.app.feature import Host, Running
from smartfeeds.core.jid import Jid
from smartfeeds.features.bot.bot import Bot
from smartfeeds.features.bot.delivery import is_message_id
from smartfeeds.features.bot.news import AnswerNews
from smartfeeds.features.bot.notices import notices_of
from smartfeeds.features.bot.render import Links
from smartfeeds.features.bot.settings import BotSettings
from smartfeeds.features.bot.stanzas import (
    FEATURES,
    MESSAGES,
    ChatMessage,
    MessageError,
    RoomInvitation,
    RoomPresence,
    read_room_presence,
)
from smartfeeds.push.side import PushSide
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.stanza_errors import error_condition
from smartfeeds.xmpp.stanza_side import BOT, PresenceReader, SharedMessages, StanzaSide


def stanza_side(bot: Bot, settings: BotSettings) -> StanzaSide:
    """Returns what the bot does with messages and presence, and its name and picture."""

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
        identities=(BOT,),
        nick=settings.name,
        picture=settings.read_picture(),
    )


def run_bot(host: Host) -> Running:
    """Returns the bot, unless it is switched off."""
    settings, http = host.settings.section(BotSettings), host.settings.http
    if not settings.enabled:
        return Running()
    links = Links(host.settings.component.jid, http.base_url if http.listen else "")
    bot = Bot(settings, links, host)
    host.changes.listen_to_replies(AnswerNews(host, links).tell)
    return Running(
        parts=(bot, notices_of(host, links.domain)),
        start=bot.start,
        online=bot.rooms.reset,
        resume=bot.resume,
        stanzas=stanza_side(bot, settings),
        push=PushSide(explain=bot.explain),
    )

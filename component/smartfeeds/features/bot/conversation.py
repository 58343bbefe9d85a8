"""The context of a chat command: the author, the language, the service, and the ways to answer.

A command gets everything from the service by `Conversation.ask`, with the rights of the `actor`. In a room that is the
room itself; `by_author` puts the person in its place whose address is proved.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from smartfeeds.app.feature import Host
from smartfeeds.chat.commands import NAME_CHARACTERS, ChatCommand, ChatReply, Offer, OtherHandler, RefusalError
from smartfeeds.chat.grammar import command_text, quote
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid
from smartfeeds.core.text import cut
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot import rows
from smartfeeds.features.bot.chat import ChatRow, ChatSettings
from smartfeeds.features.bot.render import Links
from smartfeeds.features.bot.rooms import Rooms
from smartfeeds.features.bot.schedule import format_local
from smartfeeds.features.bot.stanzas import ChatMessage
from smartfeeds.service.answers import ask
from smartfeeds.service.chat_follows import consumer_of, list_follows
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.requests import Request
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import ENGLISH, N_, Texts

T = TypeVar("T")

# The service explains its errors in English. Other languages have a text for each condition.
_ERRORS: Mapping[Condition, str] = {
    Condition.FORBIDDEN: N_("You may not do that."),
    Condition.CLOSED_NODE: N_(
        "This feed is closed to you. Only its members may read it; to become one, ask its owner."
    ),
    Condition.NOT_SUBSCRIBED_READER: N_(
        "Only approved subscribers may read this feed. To ask its owner: subscribe FEED"
    ),
    Condition.PENDING_SUBSCRIPTION: N_("The owner of the feed has not approved your subscription yet."),
    Condition.ITEM_NOT_FOUND: N_("There is no such feed or item, or it is closed to you."),
    Condition.NOT_SUBSCRIBED: N_("You do not follow this feed here."),
    Condition.TOO_MANY_SUBSCRIPTIONS: N_("You follow too many feeds. End one with: unsubscribe FEED"),
    Condition.PAYLOAD_TOO_BIG: N_("The text is too long for this feed."),
    Condition.PRECONDITION_NOT_MET: N_("The item has changed meanwhile. Try again."),
    Condition.BUSY: N_("The service is busy. Try again later."),
}
_NO_AUTHOR = N_("This room does not prove to me who you are. To publish in your name, write to me directly: {address}")
_PEOPLE = 3  # that an answer names: enough to ask one of them, and one line
_OTHER_ERROR = N_("That did not work.")


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts of the service that commands use.

    `introduce` asks a person to take the bot into their contacts. `commands` has all commands by each of their words,
    in the order of the help. `others` answer what is no command.
    """

    host: Host
    links: Links
    rooms: Rooms
    introduce: Callable[[str], object]
    commands: Mapping[str, ChatCommand]
    others: Sequence[OtherHandler] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """One message and its author (`chat.commands.Chat`).

    `may_change` is false for occupants of a room who are not its owners or admins. `addressed`: the message begins with
    the bot's nick.
    """

    actor: Jid
    message: ChatMessage
    texts: Texts
    settings: ChatSettings
    tools: Tools
    author: Jid | None
    in_room: bool = False
    may_change: bool = True
    addressed: bool = True

    @property
    def jid(self) -> str:
        """The bare JID."""
        return self.actor.bare_text

    @property
    def service(self) -> str:
        """The address of the service."""
        return self.tools.links.domain

    @property
    def is_admin(self) -> bool:
        """Whether the author is an admin of the service, in a conversation of two."""
        return not self.in_room and is_admin(self.tools.host.service.policy, self.actor)

    def by_author(self) -> "Conversation":
        """Returns the conversation with the rights of the person who wrote. Raises RefusalError."""
        if self.author is None:
            raise RefusalError(self.say(_NO_AUTHOR, address=self.service))
        return replace(self, actor=self.author)

    def say(self, text: str, **values: object) -> str:
        """Returns a text in the user's language."""
        return self.texts.say(text, **values)

    def command(self, usage: str, *words: str) -> str:
        """Returns a command as the user types it, in the user's language. `usage` is a text of `usages`."""
        return command_text(self.texts, usage, *words)

    def offer(self, usage: str, *words: str) -> Offer:
        """Returns a button for a command."""
        return Offer(self.command(usage, *words))

    def error(self, error: FeedError) -> str:
        """Returns what an error means, in the user's language. In English, an error without a text has its details."""
        text = _ERRORS.get(error.condition)
        if text is None or error.condition is Condition.FORBIDDEN:
            return self.say(text or _OTHER_ERROR) + self.details(error)
        return self.say(text)

    def details(self, error: FeedError) -> str:
        """Returns the reason of an error in parentheses, "" without one and in other languages."""
        return f" ({error.text})" if error.text and self.texts.language == ENGLISH else ""

    def names_of(self, people: Sequence[str]) -> str:
        """Returns the first few of the owners of a feed, as an answer names them. The service is nobody whom users can
        ask, so the people who run it stand for it."""
        names = [cut(jid, NAME_CHARACTERS) for jid in people if jid != self.service]
        if len(names) < len(people):
            names.append(self.say("the people who run this service"))
        return ", ".join(names[:_PEOPLE])

    def local_time(self, time_us: int) -> str:
        """Returns a time by the clock on the wall of the user."""
        return format_local(time_us, self.settings.zone)

    def part(self, kind: type[T]) -> T:
        """Returns what a feature runs, by its type."""
        return self.tools.host.parts.get(kind)

    async def read(self, work: Callable[[ReadTx, Context], T]) -> T:
        """Returns the result of a read. Raises StoreError."""
        return await self.tools.host.service.read(work, turn=self.jid)

    async def subscribe(self, feed: str) -> ChatReply:
        """Delivers the new items of a feed to the actor. Raises FeedError, StoreError."""
        return await self.tools.commands["subscribe"].run(self, quote(feed))

    async def unsubscribe(self, feed: str) -> ChatReply:
        """Ends the delivery of a feed. Raises FeedError, StoreError."""
        return await self.tools.commands["unsubscribe"].run(self, quote(feed))

    async def ask(self, request: Request, kind: type[T]) -> T:
        """Returns the response of the service. Raises FeedError, StoreError."""
        return await ask(self.tools.host.handle, request, kind)

    async def save(self, change: Callable[[ChatSettings], ChatSettings]) -> None:
        """Changes the stored settings, and makes deliveries that wait for their time follow them. Raises StoreError.

        `change` runs in the transaction: in a room, other managers may change other settings at the same time.
        """
        consumers = await self.tools.host.service.write(partial(_save, jid=self.jid, change=change), turn=self.jid)
        self.hurry(consumers)

    async def remember_language(self) -> None:
        """Stores the language of the conversation, so that deliveries use it. Raises StoreError."""
        # Twice: most messages need no write, and another message may have stored a language since this one was read.
        if not self.settings.language:
            await self.save(lambda one: replace(one, language=one.language or self.texts.language))

    def hurry(self, consumers: list[Consumer]) -> None:
        """Serves consumers now, whatever was planned."""
        for consumer in consumers:
            self.tools.host.dispatcher.hurry(consumer)


def _save(tx: WriteTx, _context: Context, jid: str, change: Callable[[ChatSettings], ChatSettings]) -> list[Consumer]:
    row = rows.chat(tx, jid) or ChatRow(jid)
    rows.put(tx, replace(row, settings=change(row.settings)))
    return [consumer_of(node.node_no, jid) for node, _ in list_follows(tx, jid)]

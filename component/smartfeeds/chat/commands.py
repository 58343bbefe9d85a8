"""Chat commands as values: name, aliases in other languages, usage, summary, handler; and what a handler works with.

A feature that has commands for people in chats returns a `ChatTable`. The feature that answers chat joins the tables,
so neither imports the other.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from smartfeeds.core.jid import Jid
from smartfeeds.service.context import Context
from smartfeeds.service.requests import Request
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_, Texts

T = TypeVar("T")

# Texts of strangers in answers are cut.
TITLE_CHARACTERS = 200
NAME_CHARACTERS = 100
LINK_CHARACTERS = 2_000
SUBSCRIBE = N_("subscribe FEED [FILTER=VALUE]")


class Offer(NamedTuple):
    """A command to offer as a button (XEP-0439). Without a label the button shows the command."""

    command: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """An answer: its text, and its buttons. `done` is false if the message had no effect because of an error."""

    text: str
    offers: tuple[Offer, ...] = ()
    done: bool = True


class UsageError(Exception):
    """The arguments are wrong. The text, if any, is already in the user's language; the usage is shown below it."""


class RefusalError(Exception):
    """The command cannot be followed. The text is already in the user's language."""


class Chat(Protocol):
    """One message and its author, for handlers of commands.

    `actor` is the bare JID of a person, or of a room: in a room all can see the answers, so the rights of the room
    count and not those of the occupant. `author` is the bare JID of the person who wrote, None if the room does not
    prove it.
    """

    @property
    def actor(self) -> Jid:
        """The user or room whose rights the command has."""

    @property
    def author(self) -> Jid | None:
        """The sender of the message, None in a room that does not prove it."""

    @property
    def texts(self) -> Texts:
        """The language."""

    @property
    def in_room(self) -> bool:
        """Whether occupants of a room read the answer."""

    @property
    def jid(self) -> str:
        """The bare JID of the actor."""

    @property
    def service(self) -> str:
        """The address of the service."""

    @property
    def is_admin(self) -> bool:
        """Whether the author is an admin of the service, in a conversation of two."""

    def by_author(self) -> "Chat":
        """Returns the conversation with the rights of the person who wrote. Raises RefusalError."""

    def say(self, text: str, **values: object) -> str:
        """Returns a text in the user's language."""

    def command(self, usage: str, *words: str) -> str:
        """Returns a command as the user types it, in the user's language. `usage` is that of the command."""

    def offer(self, usage: str, *words: str) -> Offer:
        """Returns a button for a command."""

    def local_time(self, time_us: int) -> str:
        """Returns a time by the clock on the wall of the user."""

    def part(self, kind: type[T]) -> T:
        """Returns what a feature runs, by its type."""

    async def ask(self, request: Request, kind: type[T]) -> T:
        """Returns the response of the service. Raises FeedError, StoreError."""

    async def read(self, work: Callable[[ReadTx, Context], T]) -> T:
        """Returns the result of a read. Raises StoreError."""

    async def subscribe(self, feed: str) -> ChatReply:
        """Delivers the new items of a feed to the actor. Raises FeedError, StoreError."""

    async def unsubscribe(self, feed: str) -> ChatReply:
        """Ends the delivery of a feed. Raises FeedError, StoreError."""


class CommandRights(Enum):
    """The occupants of a room who may use a command, and the rights that the command has."""

    READ = "everybody, with the rights of the room"
    ROOM = "owners and admins of the room, with the rights of the room"
    AUTHOR = "everybody whom the room proves, with their own rights"


# Parameters: the conversation (a `Chat`), and the text behind the name of the command.
Handler = Callable[[Any, str], Awaitable[ChatReply]]
# Answers a message that is no command. Parameters: the conversation, and the text. Returns None for any other text.
OtherHandler = Callable[[Any, str], Awaitable[ChatReply | None]]


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A row of the table.

    `aliases` are other names by language; they work in every language. `usage` is shown after an error and in the help.
    `rights` are those that it has in a room. `hidden`: the overview does not list it.
    """

    name: str
    usage: str
    summary: str
    run: Handler
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rights: CommandRights = CommandRights.READ
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ChatTable:
    """The commands of a feature. The help shows them before the command `before`, so that it reads as one list.
    `answer_other` gets what is no command."""

    commands: tuple[ChatCommand, ...]
    before: str
    answer_other: OtherHandler | None = None


def joined_commands(own: Iterable[ChatCommand], tables: Iterable[ChatTable]) -> tuple[ChatCommand, ...]:
    """Returns the commands of the feature that answers chat, with those of others in their places."""
    before: dict[str, list[ChatCommand]] = {}
    for table in tables:
        before.setdefault(table.before, []).extend(table.commands)
    return tuple(row for command in own for row in (*before.get(command.name, ()), command))

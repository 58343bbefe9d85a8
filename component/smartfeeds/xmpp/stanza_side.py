"""The handlers of messages and presence of a running part of the service, as a value (xep-map 14, 241).

The kernel has one, and so has each running feature. `StanzaRouter`, `Disco` and the letters between processes work on
all of them joined.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from smartfeeds.core.jid import Jid
from smartfeeds.service.requests import Request
from smartfeeds.xmpp.elements import Element

BOT = ("client", "bot")  # the identity of a service that answers chat
ANY_TYPE = ""  # in the tables of messages: a message of any type but `error`
NO_OTHER = ""  # in the tables of messages, as the tag of a child: a message without a child that has a reader

# Parameters: the stanza, its sender, our address that it was sent to. Returns the request to start, or None if the
# stanza requires none.
StanzaReader = Callable[[Element, Jid, str], Request | None]
StanzaReaders = Mapping[tuple[str, str], StanzaReader]


class PresenceReader(NamedTuple):
    """A reader of presence. `note` reads presence that another process of the domain has answered."""

    read: StanzaReader
    note: StanzaReader


class SharedMessages(NamedTuple):
    """Messages that other processes of the domain must know of: those for which `concerns` returns True. `note` reads
    such a message there."""

    concerns: Callable[[Element], bool]
    note: StanzaReader


class RoomMemberships(Protocol):
    """The rooms that the service is in (XEP-0045). `known` has their bare JIDs, and those of rooms that it enters."""

    @property
    def known(self) -> Set[str]:
        """Read for each request, so it is no method."""

    def is_in(self, room: str) -> bool:
        """Returns whether the service is in this room."""


@dataclass(frozen=True, slots=True)
class StanzaSide:
    """The tables of a running part.

    `messages` read messages by their type and the tag of a child; the first child with a reader decides, and that
    of `NO_OTHER` reads what is left of its type. Those of `personal_messages` count only from a person: a room does
    not prove who wrote. `errors` are asked in order about a message of type `error` that is in no table.
    `room_presence` are asked in order for presence of rooms, and if none of them starts a request, all of
    `presence` are asked. `handlers` answer requests that the service does not answer itself, and `operations` name
    them in metrics. Notifications of a bare JID for which one of `follows` returns True go to the listeners of the
    link. `features` and `identities` are those of disco#info of the service. `nick` is the name of the service for
    people who chat with it, and `picture` a PNG file; both may be empty.
    """

    messages: StanzaReaders = field(default_factory=dict)
    personal_messages: StanzaReaders = field(default_factory=dict)
    errors: tuple[StanzaReader, ...] = ()
    room_presence: tuple[StanzaReader, ...] = ()
    presence: tuple[PresenceReader, ...] = ()
    shared_messages: tuple[SharedMessages, ...] = ()
    handlers: Mapping[type[Request], Callable[[Any], Awaitable[object]]] = field(default_factory=dict)
    operations: Mapping[type[Request], str] = field(default_factory=dict)
    rooms: RoomMemberships | None = None
    follows: tuple[Callable[[str], bool], ...] = ()
    features: tuple[str, ...] = ()
    identities: tuple[tuple[str, str], ...] = ()
    nick: str = ""
    picture: bytes = b""


def joined_stanzas(sides: Iterable[StanzaSide]) -> StanzaSide:
    """Returns the tables of several parts as one. At most one part is in rooms."""
    parts = tuple(sides)
    return StanzaSide(
        {key: read for part in parts for key, read in part.messages.items()},
        {key: read for part in parts for key, read in part.personal_messages.items()},
        tuple(read for part in parts for read in part.errors),
        tuple(read for part in parts for read in part.room_presence),
        tuple(reader for part in parts for reader in part.presence),
        tuple(shared for part in parts for shared in part.shared_messages),
        {kind: handle for part in parts for kind, handle in part.handlers.items()},
        {kind: name for part in parts for kind, name in part.operations.items()},
        next((part.rooms for part in parts if part.rooms is not None), None),
        tuple(follows for part in parts for follows in part.follows),
        tuple(feature for part in parts for feature in part.features),
        tuple(identity for part in parts for identity in part.identities),
        next((part.nick for part in parts if part.nick), ""),
        next((part.picture for part in parts if part.picture), b""),
    )

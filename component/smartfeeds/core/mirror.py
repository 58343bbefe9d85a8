"""A mirror: a node of ours that is kept in step with a feed elsewhere; its settings, and how far it has come.

Both are kept as JSON, because the settings of the command line and the state of either half have nothing that the
store would look for.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Final

from smartfeeds.core.feed_address import FeedAddress, parse_address
from smartfeeds.core.view import names_view
from smartfeeds.errors import ConfigError

# What a mirror asks the other side for: every change, tombstones and sync data with it.
MIRROR_VIEW: Final = "order=modified&sync=true"
CONSUMER_KIND: Final = "mirror"
MAX_REASONS: Final = 20
REASON_CHARACTERS: Final = 300
LEAST_EVERY_S: Final = 5.0
EVERY_S: Final = 300.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_WEB = re.compile(r"https?://[^/?#\s\"<>]+[^\s\"<>#]*")
_DIGITS = 8


class Direction(Enum):
    """Which way changes go, seen from here."""

    IN = "in"
    OUT = "out"
    BOTH = "both"

    @property
    def halves(self) -> tuple["Direction", ...]:
        """IN, OUT or both of them."""
        return (Direction.IN, Direction.OUT) if self is Direction.BOTH else (self,)


@dataclass(frozen=True, slots=True)
class Mirror:
    """The settings of a mirror.

    `name` is what commands and metrics call it, `node` the node here, `address` the feed there (`xmpp:`, `http:`,
    `https:`). `owner` owns a node that has to be made; empty for the component. `every_s` is how often a web feed is
    read, and after how long a silence an XMPP feed is asked whether there is anything. `own_edits` believes histories
    that name edits made here which this database does not have. `allow_private` asks web addresses of private networks.
    """

    name: str
    node: str
    address: str
    direction: Direction = Direction.IN
    owner: str = ""
    every_s: float = EVERY_S
    own_edits: bool = False
    allow_private: bool = False

    @property
    def feed(self) -> FeedAddress | None:
        """The feed over XMPP, named as a mirror reads it; None for a web address."""
        if is_web(self.address):
            return None
        bare = parse_address(self.address, smart=False)
        return FeedAddress(bare.service, f"{bare.node}{'&' if '?' in bare.node else '?'}{MIRROR_VIEW}")

    @property
    def consumer_name(self) -> str:
        """The name of the consumer that sends the node to the other side. It holds the address and not the name of the
        mirror, which the operator may change."""
        return f"{CONSUMER_KIND}:{self.address}"

    @property
    def remote_node(self) -> str:
        """The node there, to publish to; empty for a web address."""
        return "" if is_web(self.address) else parse_address(self.address, smart=False).node


def is_web(address: str) -> bool:
    """Whether an address is to be fetched over HTTP."""
    return address.lower().startswith(("http://", "https://"))


def check_address(text: str) -> str:
    """The address of a feed as a mirror keeps it. Raises ConfigError with what to write."""
    text = text.strip()
    if is_web(text):
        if _WEB.fullmatch(text) is None:
            raise ConfigError(f"{text!r} is no web address: write it as https://feeds.example/feeds/plans/")
        return text
    found = parse_address(text, smart=False)
    if names_view(found.node):
        raise ConfigError(f"{found.node!r} is a view: a mirror needs the node itself, without parameters")
    return str(found)


def name_of(node: str, address: str) -> str:
    """What a mirror is called where nobody gave it a name: always the same for these two."""
    return hashlib.sha256(f"{node}\0{address}".encode()).hexdigest()[:_DIGITS]


def make_mirror(
    *,
    node: str,
    address: str,
    name: str = "",
    direction: str | Direction = Direction.IN,
    owner: str = "",
    every_s: float = EVERY_S,
    own_edits: bool = False,
    allow_private: bool = False,
) -> Mirror:
    """A mirror of checked settings. Raises ConfigError."""
    address = check_address(address)
    name = name or name_of(node, address)
    way = Direction(direction)
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{name!r} cannot be a mirror's name: use up to 40 of a-z, 0-9, _ and -")
    if not node or names_view(node):
        raise ConfigError(f"{node!r} is not a node of its own: a mirror fills a node, not a view of one")
    if is_web(address) and way is not Direction.IN:
        raise ConfigError(
            f"{address} is read over HTTP, which goes one way: use direction in, or the xmpp: address of the feed"
        )
    if every_s < LEAST_EVERY_S:
        raise ConfigError(f"every_s is {every_s:g}: it must be at least {LEAST_EVERY_S:g} seconds")
    return Mirror(name, node, address, way, owner, every_s, own_edits, allow_private)


def check_elsewhere(mirror: Mirror, domain: str) -> None:
    """Raises ConfigError for a mirror of our own service, where every edit is one made here already."""
    if mirror.feed is not None and mirror.feed.service == domain:
        raise ConfigError(f"{mirror.address} is at this service: a mirror is of a feed elsewhere")


@dataclass(frozen=True, slots=True)
class ItemRefusal:
    """An item that was refused: its id, why, and when in microseconds."""

    item_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True)
class MirrorState:
    """How far one direction of a mirror has come.

    `position` is where to go on, in words of its direction; empty for the outgoing one, whose mark and failure the
    delivery mechanism stores. `in_step_us` is when it last had everything, `failed_us` and `failure` tell what went
    wrong since, empty where nothing did. `items` counts what was taken over or sent,
    `conflicts` how often taking over made one, `refused` the items that were not taken; `reasons` has the last of
    them. `note` is for people. `epoch` counts how often it was made to begin anew. `filling` is set while a node that
    the mirror itself has made is filled for the first time.
    """

    position: str = ""
    in_step_us: int | None = None
    failed_us: int | None = None
    failure: str = ""
    items: int = 0
    conflicts: int = 0
    refused: int = 0
    reasons: tuple[ItemRefusal, ...] = ()
    note: str = ""
    epoch: int = 0
    filling: bool = False

    def failing(self, reason: str, at_us: int) -> "MirrorState":
        """After something went wrong; `failed_us` stays where it already was."""
        at_us = at_us if self.failed_us is None else self.failed_us
        return replace(self, failure=reason[:REASON_CHARACTERS], failed_us=at_us)

    def well(self) -> "MirrorState":
        """After something worked."""
        return replace(self, failure="", failed_us=None) if self.failure or self.failed_us else self

    def refuse(self, refused: tuple[ItemRefusal, ...], *, once: bool = False) -> "MirrorState":
        """With more items that were refused. `once` does not count what is told already, of a document that is read
        again."""
        if once:
            told = {one.item_id for one in self.reasons}
            refused = tuple(one for one in refused if one.item_id not in told)
        if not refused:
            return self
        return replace(self, refused=self.refused + len(refused), reasons=(*self.reasons, *refused)[-MAX_REASONS:])


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """A mirror as the store keeps it. `configured` tells that it comes from the configuration file."""

    mirror: Mirror
    configured: bool = False
    halves: Mapping[Direction, MirrorState] = field(default_factory=dict)

    def half(self, direction: Direction) -> MirrorState:
        """How far a direction has come."""
        return self.halves.get(direction, MirrorState())

    def with_half(self, direction: Direction, half: MirrorState) -> "MirrorRow":
        """With another state of one direction."""
        return replace(self, halves={**self.halves, direction: half})


def refusal(item_id: str, reason: str, at_us: int) -> ItemRefusal:
    """A refusal whose texts are not too long to be kept."""
    return ItemRefusal(item_id[:REASON_CHARACTERS], reason[:REASON_CHARACTERS], at_us)


def dump_settings(mirror: Mirror) -> str:
    """The settings as JSON, without the name."""
    fields = asdict(mirror) | {"direction": mirror.direction.value}
    del fields["name"]
    return json.dumps(fields, ensure_ascii=False, sort_keys=True)


def load_settings(name: str, text: str) -> Mirror:
    """What `dump_settings` wrote."""
    fields = json.loads(text)
    return Mirror(name, **(fields | {"direction": Direction(fields["direction"])}))


def dump_halves(halves: Mapping[Direction, MirrorState]) -> str:
    """The state as JSON."""
    return json.dumps({way.value: asdict(half) for way, half in halves.items()}, ensure_ascii=False, sort_keys=True)


def load_halves(text: str) -> dict[Direction, MirrorState]:
    """What `dump_halves` wrote."""
    found = {}
    for way, fields in json.loads(text).items():
        reasons = tuple(ItemRefusal(**one) for one in fields["reasons"])
        found[Direction(way)] = MirrorState(**(fields | {"reasons": reasons}))
    return found

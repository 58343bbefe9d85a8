"""A mirror synchronises a node of this service with a feed of another service: its settings, and the state of each
direction.

The store keeps both as JSON, because no query selects by one of their fields.
"""

import hashlib
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from smartfeeds.core.consumers import Failure
from smartfeeds.core.feed_address import FeedAddress, parse_address
from smartfeeds.core.view import names_view
from smartfeeds.core.web_address import is_web, read_address
from smartfeeds.errors import ConfigError
from smartfeeds.json_form import JsonForm

# The view that a mirror reads: every change, with tombstones and sync data.
MIRROR_VIEW: Final = "order=modified&sync=true"
CONSUMER_KIND: Final = "mirror"
# The state is one text, which each batch writes anew.
MAX_REASONS: Final = 20
REASON_CHARACTERS: Final = 300
LEAST_EVERY_S: Final = 5.0  # a shorter interval would load the other service more than a mirror is worth
EVERY_S: Final = 300.0
# How the incoming direction of a mirror over HTTP learns of changes; "" for other directions, and before it is known.
HELD_PULL: Final = "held pull"
HUB: Final = "hub"
POLLED: Final = "polled"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_WEB = re.compile(r"https?://[^/?#\s\"<>]+[^\s\"<>#]*")
_DIGITS = 8  # of a default name; `add_mirror` refuses a second mirror of the same name


class Direction(Enum):
    """The direction of changes, as seen from this service."""

    IN = "in"
    OUT = "out"
    BOTH = "both"

    @property
    def ways(self) -> tuple["Direction", ...]:
        """The single directions: IN, OUT, or both."""
        return (Direction.IN, Direction.OUT) if self is Direction.BOTH else (self,)


@dataclass(frozen=True, slots=True)
class Mirror:
    """The settings of a mirror.

    `name` identifies the mirror in commands and metrics. `node` is the local node, `address` the remote feed (`xmpp:`,
    `http:`, `https:`). `owner` becomes the owner of a node that the mirror creates; empty for the component. `every_s`
    is the interval between two reads of a web feed, and the silence after which an XMPP feed is asked for changes.
    `own_edits` accepts histories with local edits that this database does not have. `allow_private` permits web
    addresses in private networks.
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
        """The remote feed in the view that the mirror reads, or None for a web address."""
        if is_web(self.address):
            return None
        bare = parse_address(self.address, smart=False)
        return FeedAddress(bare.service, f"{bare.node}{'&' if '?' in bare.node else '?'}{MIRROR_VIEW}")

    @property
    def consumer_name(self) -> str:
        """The name of the consumer that sends the node to the remote feed.

        It contains the address, because the operator may change the name of the mirror.
        """
        return f"{CONSUMER_KIND}:{self.address}"

    @property
    def remote_node(self) -> str:
        """The name of the remote node; empty for a web address."""
        return "" if is_web(self.address) else parse_address(self.address, smart=False).node


def check_address(text: str) -> str:
    """Returns the address of a feed in the form that a mirror stores. Raises ConfigError with advice."""
    text = text.strip()
    # Without a scheme a text is more likely an XMPP address whose scheme is missing.
    if ":" in text and not text.lower().startswith("xmpp:"):
        text = read_address(text) or text
    if is_web(text):
        if _WEB.fullmatch(text) is None:
            raise ConfigError(f"{text!r} is not a web address; write it like https://feeds.example/feeds/plans/")
        return text
    if not text.lower().startswith("xmpp:"):
        raise ConfigError(
            f"{text!r} is not the address of a feed; write it as 'xmpp:feeds.example.org?;node=NODE', in quotes on the "
            "command line, or as https://feeds.example.org/feeds/NODE/"
        )
    address = parse_address(text, smart=False)
    if names_view(address.node):
        raise ConfigError(f"{address.node!r} is a view; name the node without parameters")
    return str(address)


def name_of(node: str, address: str) -> str:
    """Returns the default name of a mirror. It is always the same for the same node and address."""
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
    """Returns a mirror after checking its settings. Raises ConfigError."""
    address = check_address(address)
    name = name or name_of(node, address)
    way = Direction(direction)
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{name!r} cannot be the name of a mirror; use up to 40 of a-z, 0-9, _ and -")
    if not node or names_view(node):
        raise ConfigError(f"{node!r} is not a node; a mirror needs the name of a node, not of a view")
    if is_web(address) and way is not Direction.IN:
        raise ConfigError(
            f"{address} is read over HTTP, in one direction only; use direction in, or the xmpp: address of the feed"
        )
    if every_s < LEAST_EVERY_S:
        raise ConfigError(f"every_s is {every_s:g}; set it to at least {LEAST_EVERY_S:g} seconds")
    return Mirror(name, node, address, way, owner, every_s, own_edits, allow_private)


def check_elsewhere(mirror: Mirror, domain: str) -> None:
    """Raises ConfigError if the feed is at this service: each of its edits would count as a local edit."""
    if mirror.feed is not None and mirror.feed.service == domain:
        raise ConfigError(f"{mirror.address} is at this service; name a feed of another service")


@dataclass(frozen=True, slots=True)
class ItemRefusal:
    """An item that was refused: its id, the reason, and the time in microseconds."""

    item_id: str
    reason: str
    at_us: int


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The progress of one direction of a mirror.

    `position` is where the next read continues, in the format of the reader. It is empty for the outgoing direction,
    whose mark and failure the delivery mechanism stores. `in_step_us` is the time when the direction was last complete.
    `failure` is None unless the last attempt failed. `items` counts the items that were merged or sent, `conflicts` the
    conflicts that merges created, `refused` the items that were not accepted; `reasons` has the last of these. `note`
    is for people. `epoch` counts the restarts from the beginning. `node_no` is the number of the local node that
    `position` belongs to, 0 if it is not known yet. `filling` is true while a node that was missing or new is filled
    for the first time. `means` is how a mirror over HTTP learns of changes: HELD_PULL, HUB or POLLED.
    """

    position: str = ""
    in_step_us: int | None = None
    failure: Failure | None = None
    items: int = 0
    conflicts: int = 0
    refused: int = 0
    reasons: tuple[ItemRefusal, ...] = ()
    note: str = ""
    epoch: int = 0
    node_no: int = 0
    filling: bool = False
    means: str = ""

    @property
    def error(self) -> str:
        """The message of the last failure; empty if there is none."""
        return "" if self.failure is None else self.failure.error

    def refuse(self, refused: tuple[ItemRefusal, ...], *, once: bool = False) -> "MirrorState":
        """Returns the state with more refused items.

        With `once`, items in `reasons` are not counted again, because the reader has read the same document again.
        """
        if once:
            known_ids = {refusal.item_id for refusal in self.reasons}
            refused = tuple(refusal for refusal in refused if refusal.item_id not in known_ids)
        if not refused:
            return self
        return replace(self, refused=self.refused + len(refused), reasons=(*self.reasons, *refused)[-MAX_REASONS:])


MIRROR_SETTINGS: Final = JsonForm(Mirror, columns={"name"})
MIRROR_STATES: Final = JsonForm(dict[Direction, MirrorState])


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """A mirror in the store. `configured`: it comes from the configuration file."""

    mirror: Mirror
    configured: bool = False
    states: dict[Direction, MirrorState] = field(default_factory=dict)

    def state(self, direction: Direction) -> MirrorState:
        """Returns the state of a direction."""
        return self.states.get(direction, MirrorState())

    def with_state(self, direction: Direction, state: MirrorState) -> "MirrorRow":
        """Returns the row with another state of one direction."""
        return replace(self, states={**self.states, direction: state})


def refusal(item_id: str, reason: str, at_us: int) -> ItemRefusal:
    """Returns a refusal with its texts cut to the length that the store keeps."""
    return ItemRefusal(item_id[:REASON_CHARACTERS], reason[:REASON_CHARACTERS], at_us)

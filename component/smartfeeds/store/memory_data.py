"""What the memory store holds: dictionaries of values, the order of items, and parts of lists."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from smartfeeds.core.mirror import MirrorRow
from smartfeeds.core.model import Affiliation, Item, Mark, Node, NodeEvent, Part, Subscription
from smartfeeds.core.tokens import Token
from smartfeeds.core.view import Order, Standing, Traits, View, matches

N = TypeVar("N", int, str)
V = TypeVar("V")

Place = tuple[int, int]
NOWHERE: Place = (-(2**63), 0)


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the filter index knows of an item: the version that it had when its modified key was `modified_us`, and all
    versions before."""

    modified_us: int
    version: Traits
    past: tuple[Traits, ...] = ()

    def standing(self, view: View, item: Item, *, publishers: bool) -> Standing:
        """How the item stands to a filtered view."""
        if matches(view, self.version, publishers=publishers):
            return Standing.PRESENT
        if view.hides_tombstones or not any(matches(view, one, publishers=publishers) for one in self.past):
            return Standing.ABSENT
        return Standing.PRESENT if item.deleted else Standing.LEFT


@dataclass(slots=True)
class Feed:
    """The items of a node, and their places in either order."""

    items: dict[int, Item] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    places: dict[Order, list[Place]] = field(default_factory=lambda: {order: [] for order in Order})


@dataclass(slots=True)
class Data:
    """Everything that the store holds, and the greatest numbers given out."""

    nodes: dict[int, Node] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    feeds: dict[int, Feed] = field(default_factory=dict)
    affiliations: dict[tuple[int, str], Affiliation] = field(default_factory=dict)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    events: dict[int, NodeEvent] = field(default_factory=dict)
    marks: dict[tuple[int, Order], Mark] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    mirrors: dict[str, MirrorRow] = field(default_factory=dict)
    index: dict[int, Indexed] = field(default_factory=dict)
    indexed_to: dict[int, Place] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)


def part_of(found: list[V], part: Part[N], key: Callable[[V], N]) -> list[V]:
    """These entries of a list, which is in the order of its key."""
    after, before = part.after, part.before
    found = [one for one in found if (after is None or key(one) > after) and (before is None or key(one) < before)]
    if part.newest:
        return found[max(len(found) - part.offset - part.limit, 0) : max(len(found) - part.offset, 0)]
    return found[part.offset : part.offset + part.limit]


def place(item: Item, order: Order) -> Place:
    """Where an item stands in an order."""
    return (item.modified_us if order is Order.MODIFIED else item.created_us, item.item_no)


def domain_of(bare: str) -> str:
    """The domain of a bare JID."""
    return bare.partition("@")[2] if "@" in bare else bare

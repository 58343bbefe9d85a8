"""What is to be pushed next from a feed: read in one snapshot, in the order of the changes.

The feed is its own outbox (design section 4): whatever lies above the mark of an order is still to be sent. The
modified order carries items and node events for every view of that order; the created order new items for its views.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from smartfeeds.core.cursor import MAX_GROUP
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Item, Mark, Node, NodeEvent, NodeKind, NodeState, Slice
from smartfeeds.core.view import Order, View, change_of, from_canonical, matches
from smartfeeds.formats.atom import facets_and_words
from smartfeeds.service.context import Context, IndexBehindError
from smartfeeds.service.pulls import WHOLE, cursor_of, key_of, newest_mark
from smartfeeds.store.base import ReadTx

ITEMS = 64  # a batch: enough to fill a write, little enough to stay fair


@dataclass(frozen=True, slots=True)
class Change:
    """An item at its place in an order, its cursor, and the canonical views that it is in."""

    key_us: int
    item: Item
    cursor: str
    views: frozenset[str]


@dataclass(frozen=True, slots=True)
class OrderBatch:
    """The next changes of one order. `end` is where it stands once all is passed, `more` says that others follow."""

    order: Order
    changes: tuple[Change, ...]
    end: Mark
    more: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """The next changes of a node.

    `views` are those subscribed to, `totals` the counts that are needed, `previous` the cursors of their newest items
    at the marks (only for views that the caller did not know yet).
    """

    node: Node
    orders: tuple[OrderBatch, ...]
    events: tuple[NodeEvent, ...]
    views: Mapping[str, View]
    totals: Mapping[str, int] = field(default_factory=dict)
    previous: Mapping[str, str] = field(default_factory=dict)

    @property
    def behind(self) -> bool:
        """Whether there are more changes of the modified order, which come before the events behind this batch."""
        return any(order.more for order in self.orders if order.order is Order.MODIFIED)

    @property
    def empty(self) -> bool:
        """Whether nothing is left to send or to clean up."""
        moved = any(order.changes or order.more for order in self.orders)
        return not moved and not self.events and self.node.state is NodeState.LIVE


def read_batch(
    tx: ReadTx, _context: Context, node_no: int, marks: Mapping[Order, Mark], known: frozenset[str]
) -> Batch | None:
    """The next batch of a node, or None where there is no such node any more.

    `marks` are the caller's own marks where it has some, `known` the views whose last cursor it remembers. Raises
    IndexBehindError where a filtered view needs the index first.
    """
    node = tx.node_by_no(node_no)
    if node is None:
        return None
    views = {text: from_canonical(text) for text in tx.subscribed_views(node_no)}
    if any(view.filtered for view in views.values()) and not tx.index_current(node_no):
        raise IndexBehindError(node_no)
    events = tuple(tx.events(node_no, ITEMS))
    # Behind the last event read there may be more, which come before the items behind them.
    until_us = events[-1].at_us if len(events) == ITEMS else None
    orders = []
    previous: dict[str, str] = {}
    for order in Order:
        mark = marks.get(order) or tx.mark(node_no, order)
        if mark is None:
            continue
        mine = {text: view for text, view in views.items() if view.order is order}
        orders.append(_read_order(tx, node, order, mark, mine, until_us))
        previous |= {text: _newest_cursor(tx, node, view, mark) for text, view in mine.items() if text not in known}
    totals = {text: tx.count(node_no, views[text]) for text in _counted(node, orders, views)}
    return Batch(node, tuple(orders), events, views, totals, previous)


def _counted(node: Node, orders: Iterable[OrderBatch], views: Mapping[str, View]) -> Iterable[str]:
    """The views that are told a total which no item carries: all of a generic node; of a feed the filtered ones that
    a change is in, for there may be many that it is not in, and a count costs as much as what it counts."""
    if node.kind is NodeKind.GENERIC:
        return views
    changed = {text for order in orders for change in order.changes for text in change.views}
    return [text for text in changed if views[text].filtered]


def _read_order(
    tx: ReadTx, node: Node, order: Order, mark: Mark, views: Mapping[str, View], until_us: int | None
) -> OrderBatch:
    """The changes of an order behind a mark, those up to `until_us` where it is set."""
    last_us = node.last_modified_us if order is Order.MODIFIED else node.last_created_us
    if last_us <= mark.key_us:
        return OrderBatch(order, (), mark)
    if not views:
        return OrderBatch(order, (), newest_mark(tx, node, order))
    before = None if until_us is None else Edge(until_us, MAX_ITEM_NO)
    items = tx.slice(node.node_no, Slice(WHOLE[order], ITEMS, Edge(mark.key_us, MAX_ITEM_NO), before))
    if not items:
        return OrderBatch(order, (), mark if before else Mark(last_us, mark.cursor))
    more = len(items) == ITEMS
    if more:
        # A mark is a key, so a batch ends with the last item of one.
        key_us = key_of(order, items[-1])
        rest = Slice(WHOLE[order], MAX_GROUP, Edge(key_us, items[-1].item_no), Edge(key_us, MAX_ITEM_NO))
        items += tx.slice(node.node_no, rest)
    changes = tuple(_change(tx, node, order, item, views) for item in items)
    return OrderBatch(order, changes, Mark(changes[-1].key_us, changes[-1].cursor), more)


def _change(tx: ReadTx, node: Node, order: Order, item: Item, views: Mapping[str, View]) -> Change:
    change = change_of(deleted=item.deleted, revision=item.revision)
    filtered = any(view.filtered for view in views.values())
    facets, found = facets_and_words(item.payload, item.publisher) if filtered else (frozenset(), frozenset())
    inside = frozenset(
        text
        for text, view in views.items()
        # The bare node tells a deletion by a retraction, so its subscribers see every change.
        if not view.smart or matches(view, change, facets, found)
    )
    return Change(key_of(order, item), item, cursor_of(tx, node.node_no, order, item), inside)


def _newest_cursor(tx: ReadTx, node: Node, view: View, mark: Mark) -> str:
    """The cursor of the newest item of a view at a mark: what PreviousCursor is for its next push (SF-044)."""
    if view.smart and not view.filtered:
        return mark.cursor
    newest = tx.slice(node.node_no, Slice(view, 1, before=Edge(mark.key_us, MAX_ITEM_NO), newest=True))
    return cursor_of(tx, node.node_no, view.order, newest[0]) if newest else ""

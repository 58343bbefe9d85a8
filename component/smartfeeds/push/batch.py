"""The next changes to push from a feed: read in one snapshot, in the order of the changes.

The feed is its own outbox: all items above the mark of an order are still to be sent. The modified order carries items
and node events for every view of that order; the created order new items for its views.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import (
    MAX_ITEM_NO,
    TRANSIENT_ITEM,
    Edge,
    IndexState,
    Item,
    Mark,
    Node,
    NodeEvent,
    NodeState,
    Slice,
    Subscription,
)
from smartfeeds.core.view import BARE, Order, View, ViewStanding, canonical, from_canonical
from smartfeeds.delivery.slices import cursors_of, items_after, mark_at, newest_cursor
from smartfeeds.push.audience import is_recipient
from smartfeeds.push.frames import PushFrame, PushHeaders, RecipientGroup, item_frame, retract_frame
from smartfeeds.service.context import Context, check_expired
from smartfeeds.service.pulls import WHOLE, key_of, newest_mark
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx

ITEMS = 64  # of one batch: enough to fill a write, few enough that other feeds get their turn
VIEWS = 8  # views whose items one transaction counts; each count costs up to `sql_counts.COUNT_STEPS`


@dataclass(frozen=True, slots=True)
class PushedChange:
    """An item at its place in an order, its cursor, and the canonical views that contain it, each with the item as it
    is shown there (`service.syncing.item_in_view`)."""

    key_us: int
    item: Item
    cursor: str
    views: Mapping[str, Item]


@dataclass(frozen=True, slots=True)
class OrderBatch:
    """The next changes of one order. `end` is the mark behind them, `more` says that others follow."""

    order: Order
    changes: tuple[PushedChange, ...]
    end: Mark
    more: bool = False


@dataclass(frozen=True, slots=True)
class NodeBatch:
    """The next changes of a node. Views are named by their canonical texts."""

    node: Node
    orders: tuple[OrderBatch, ...]
    events: tuple[NodeEvent, ...]
    views: Mapping[str, View]  # those that have subscribers
    starts: Mapping[Order, Mark] = field(default_factory=dict)  # the marks at which the batch begins
    due: tuple[str, ...] = ()  # the views whose totals and previous cursors `read_views` must still read
    first: Mark | None = None  # the mark of a node that had none, because it never had a subscriber
    # The counts of filtered views; None for a view with too many items to be counted.
    totals: Mapping[str, int | None] = field(default_factory=dict)
    # The cursors of the newest items at the marks, for views that the caller does not know.
    previous: Mapping[str, str] = field(default_factory=dict)
    blocks_version: int = 0  # of the block lists
    is_requested: bool = False  # resources request the node by `NODE+notify`

    @property
    def behind(self) -> bool:
        """Whether there are more changes of the modified order, which come before the events behind this batch."""
        return any(order.more for order in self.orders if order.order is Order.MODIFIED)

    @property
    def more(self) -> bool:
        """Whether there are changes that are not in this batch, or may be events: this page of them is full."""
        return any(order.more for order in self.orders) or len(self.events) == ITEMS

    def notifies(self, view: str, change: PushedChange) -> bool:
        """Whether subscribers of a view receive a change. On a bare view, only some retractions are notified."""
        return self.views[view].smart or not change.item.deleted or change.item.notify

    def total_of(self, view: str, item: Item) -> int | None:
        """TotalItems right after a change. Filtered views have no stored total, so theirs was counted."""
        if self.views[view].filtered:
            return self.totals[view]
        return item.total if self.views[view].smart else item.live

    def frame(self, change: PushedChange, group: RecipientGroup, chain: PushHeaders) -> PushFrame:
        """The frame of a change for a group of recipients."""
        item = change.item
        if item.deleted and not self.views[group.view].smart:
            return retract_frame(self.node, group, item.id, chain, item.modified_us)
        return item_frame(self.node, group, change.views[group.view], chain)


def read_batch(
    tx: ReadTx,
    context: Context,
    node_no: int,
    marks: Mapping[Order, Mark],
    known: frozenset[str],
    interested_since: Callable[[str], int | None],
) -> NodeBatch | IndexFirst | None:
    """The next batch of a node, or None if the node does not exist any more.

    `marks` replace the stored marks. `known` are the views whose last cursor the caller remembers. `interested_since`
    returns since when resources request a node by `NODE+notify`, None if none does. Returns IndexFirst if a filtered
    view needs the index first. Views beyond the first `VIEWS` are left in `due`.
    """
    start = tx.push_start(node_no, ITEMS)
    node = tx.node_by_no(node_no)
    if node is None:
        return None
    check_expired(tx, context, node)
    views = {text: from_canonical(text) for text in start.views}
    since_us = interested_since(node.name)
    if since_us is not None:
        views[canonical(BARE)] = BARE
    if any(view.filtered for view in views.values()) and tx.index_state(node_no) is not IndexState.CURRENT:
        return IndexFirst(node_no)
    events = tuple(start.events)
    # A full page of events may have successors, and items behind those must wait for them.
    until_us = events[-1].at_us if len(events) == ITEMS else None
    orders, starts, first = [], {}, None
    for order in Order:
        mark = marks.get(order) or start.marks.get(order)
        if mark is None and since_us is not None and order is Order.MODIFIED:
            mark = first = mark_before(tx, node_no, order, since_us)
        if mark is None:
            continue
        starts[order] = mark
        ordered_views = {text: view for text, view in views.items() if view.order is order}
        orders.append(_read_order(tx, context, node, order, mark, ordered_views, until_us))
    due = tuple(text for text in _notified_views(orders, events) if text in views)
    version, is_requested = start.blocks_version, since_us is not None
    batch = NodeBatch(
        node, tuple(orders), events, views, starts, due, first, blocks_version=version, is_requested=is_requested
    )
    return read_views(tx, context, batch, known)


def read_held_batch(
    tx: ReadTx, context: Context, consumer: Consumer, marks: Mapping[Order, Mark]
) -> "tuple[Subscription, NodeBatch] | IndexFirst | None":
    """The next changes that are held for one subscription. None if the subscription does not wait for them any more."""
    sub, node = tx.subscription_by_no(int(consumer.target)), tx.node_by_no(consumer.node_no)
    if sub is None or node is None or node.state is not NodeState.LIVE:
        return None
    check_expired(tx, context, node)
    view = from_canonical(sub.view)
    stored_mark = tx.mark(node.node_no, view.order, consumer.name)
    if stored_mark is None or not is_recipient(tx, context, node, sub):
        return None
    if view.filtered and tx.index_state(node.node_no) is not IndexState.CURRENT:
        return IndexFirst(node.node_no)
    mark = marks.get(view.order, stored_mark)
    orders = (_read_order(tx, context, node, view.order, mark, {sub.view: view}, None),)
    batch = NodeBatch(node, orders, (), {sub.view: view}, {view.order: mark}, (sub.view,))
    read = read_views(tx, context, batch, frozenset())
    return read if isinstance(read, IndexFirst) else (sub, read)


def mark_before(tx: ReadTx, node_no: int, order: Order, key_us: int) -> Mark:
    """The mark behind everything up to a key."""
    newest = tx.slice(node_no, Slice(WHOLE[order], 1, before=Edge(key_us, MAX_ITEM_NO), newest=True))
    return mark_at(tx, node_no, order, newest[0]) if newest else Mark(key_us, "")


def read_views(tx: ReadTx, _context: Context, batch: NodeBatch, known: frozenset[str]) -> NodeBatch | IndexFirst:
    """The batch with the totals and previous cursors of the next `VIEWS` views that are due.

    Each call reads its own snapshot, so that other reads run between the calls. Returns IndexFirst if the filter
    index does not contain what was published since the last call.
    """
    node, now = batch.node, {text: batch.views[text] for text in batch.due[:VIEWS]}
    for view in now.values():
        if (behind := index_first(tx, node, view)) is not None:
            return behind
    # An item has the totals of the unfiltered views; all other totals are counted.
    counted = {text: view for text, view in now.items() if view.filtered}
    new = {text: view for text, view in now.items() if text not in known and view.order in batch.starts}
    previous = {text: newest_cursor(tx, node, view, batch.starts[view.order]) for text, view in new.items()}
    return replace(
        batch,
        due=batch.due[VIEWS:],
        totals={**batch.totals, **{text: tx.bounded_count(node.node_no, view) for text, view in counted.items()}},
        previous={**batch.previous, **previous},
    )


def _notified_views(orders: Iterable[OrderBatch], events: Iterable[NodeEvent]) -> set[str]:
    """The views that contain a change. Items that are not stored are in the bare node only."""
    texts = {text for order in orders for change in order.changes for text in change.views}
    return texts | {canonical(BARE) for event in events if event.kind == TRANSIENT_ITEM}


def _read_order(
    tx: ReadTx,
    context: Context,
    node: Node,
    order: Order,
    mark: Mark,
    views: Mapping[str, View],
    until_us: int | None,
) -> OrderBatch:
    """The changes of an order behind a mark, those up to `until_us` where it is set."""
    last_us = node.last_modified_us if order is Order.MODIFIED else node.last_created_us
    if last_us <= mark.key_us:
        return OrderBatch(order, (), mark)
    if not views:
        # Nobody receives them, so they are not read. Somebody who subscribes later begins behind them.
        return OrderBatch(order, (), newest_mark(tx, node, order))
    before = None if until_us is None else Edge(until_us, MAX_ITEM_NO)
    whole = replace(WHOLE[order], sync=any(view.sync for view in views.values()))
    items, more = items_after(tx, node.node_no, whole, mark.key_us, ITEMS, before)
    if not items:
        return OrderBatch(order, (), mark if before else Mark(last_us, mark.cursor))
    cursors = cursors_of(order, items)
    changes = tuple(
        _change(tx, context, node, order, item, cursor, views) for item, cursor in zip(items, cursors, strict=True)
    )
    return OrderBatch(order, changes, Mark(changes[-1].key_us, changes[-1].cursor), more)


def _change(
    tx: ReadTx, context: Context, node: Node, order: Order, item: Item, cursor: str, views: Mapping[str, View]
) -> PushedChange:
    # Subscribers of the bare node get a deletion as a retraction, so every change is in its view. An item is shown in
    # few forms, and each is made once.
    smart = {text: view for text, view in views.items() if view.smart}
    standings = dict(zip(smart, tx.standings(node.node_no, item, list(smart.values())), strict=True))
    forms: dict[tuple[bool, bool], Item] = {}
    inside: dict[str, Item] = {}
    for text, view in views.items():
        standing = standings.get(text, ViewStanding.PRESENT)
        if standing is ViewStanding.ABSENT:
            continue
        form = (view.sync, standing is ViewStanding.LEFT)
        if form not in forms:
            forms[form] = item_in_view(context, node, view, item._replace(left=standing is ViewStanding.LEFT))
        inside[text] = forms[form]
    return PushedChange(key_of(order, item), item, cursor, inside)

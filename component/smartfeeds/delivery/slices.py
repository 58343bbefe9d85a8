"""Reads of what a consumer has to receive: the items above its mark, in order."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Item, Mark, Node, NodeState, Slice
from smartfeeds.core.position import MAX_GROUP, format_cursor
from smartfeeds.core.view import Order, View
from smartfeeds.delivery.deliverer import ConsumerPosition
from smartfeeds.service.context import Context, check_expired
from smartfeeds.service.pulls import cursor_of, key_of
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The next changes of a feed in one order. `end` is the position behind them, `more` says that others follow."""

    node: Node
    items: tuple[Item, ...]
    end: ConsumerPosition
    more: bool


def items_after(
    tx: ReadTx, node_no: int, view: View, key_us: int, limit: int, before: Edge | None = None
) -> tuple[list[Item], bool]:
    """Returns at least `limit` items of a view above a key, and whether there may be others.

    A mark is a key, so items that share a key come together: a mark between them would lose those behind it.
    """
    items = tx.slice(node_no, Slice(view, limit, Edge(key_us, MAX_ITEM_NO), before))
    more = len(items) == limit
    if more:
        last_us = key_of(view.order, items[-1])
        items += tx.slice(node_no, Slice(view, MAX_GROUP, Edge(last_us, items[-1].item_no), Edge(last_us, MAX_ITEM_NO)))
    return items, more


def read_changes(
    tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition, view: View, limit: int
) -> ChangeBatch | None:
    """The next items for a consumer that reads the order of `view`.

    None if the feed does not exist any more, or if the consumer was removed.
    """
    node = tx.node_by_no(consumer.node_no)
    stored = tx.mark(consumer.node_no, view.order, consumer.name)
    if node is None or node.state is not NodeState.LIVE or stored is None:
        return None
    check_expired(tx, context, node)
    mark = position.marks.get(view.order, stored)
    items, more = items_after(tx, node.node_no, view, mark.key_us, limit)
    end = replace(position, marks={view.order: mark_at(tx, node.node_no, view.order, items[-1])}) if items else position
    return ChangeBatch(node, tuple(items), end, more)


def cursors_of(order: Order, items: Iterable[Item]) -> list[str]:
    """The bare cursors (SF-026) of items as `items_after` returns them from a whole feed: with every item that shares a
    key with one of them. So the store is not asked for the items of each key (`pulls.cursor_of`).
    """
    cursors: list[str] = []
    ids: list[str] = []
    last_us: int | None = None
    for item in items:
        key_us = key_of(order, item)
        ids = [*ids, item.id][:MAX_GROUP] if key_us == last_us else [item.id]
        last_us = key_us
        cursors.append(format_cursor(order, key_us, ids))
    return cursors


def mark_at(tx: ReadTx, node_no: int, order: Order, item: Item) -> Mark:
    """The mark behind an item."""
    return Mark(key_of(order, item), cursor_of(tx, node_no, order, item))


def newest_cursor(tx: ReadTx, node: Node, view: View, mark: Mark) -> str:
    """The cursor of the newest item of a view at a mark: what PreviousCursor is for its next push (SF-044)."""
    if view.smart and not view.filtered:
        return mark.cursor
    newest = tx.slice(node.node_no, Slice(view, 1, before=Edge(mark.key_us, MAX_ITEM_NO), newest=True))
    return cursor_of(tx, node.node_no, view.order, newest[0]) if newest else ""

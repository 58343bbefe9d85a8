"""Reads the items that a consumer has not received, which are those above its mark, in order.

Items that share a key are never split: a mark is a key, so a mark between them would lose those after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Item, Mark, Node, NodeState, Slice
from smartfeeds.core.position import MAX_GROUP, format_cursor
from smartfeeds.core.view import Order, View
from smartfeeds.delivery.deliverer import ConsumerPosition
from smartfeeds.service.context import Context, check_expired
from smartfeeds.service.damage import note_damaged
from smartfeeds.service.pulls import WHOLE, cursor_of, fitting, in_view, key_of
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The next changes of a feed in one order. `end` is the position after them. `more`: others may follow."""

    node: Node
    items: tuple[Item, ...]
    end: ConsumerPosition
    more: bool


@dataclass(frozen=True, slots=True)
class ViewChanges:
    """The next changes of a feed as a view shows them.

    `items` are those that the view contains, or has contained. `end` is the mark behind all changes that were read, and
    `more` says that others may follow.
    """

    items: tuple[Item, ...]
    end: Mark
    more: bool


def items_after(
    tx: ReadTx, node_no: int, view: View, key_us: int, limit: int, before: Edge | None = None
) -> tuple[list[Item], bool]:
    """Returns the next items of a view above a key, up to the edge `before`, and whether there may be more of them.

    The items are `limit` at most, and all others that share the key of the last one.
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
    """Returns the next items of a view for a consumer, None if the feed or the consumer was removed.

    The consumer has a mark in the order of the view.
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


def read_view_changes(
    tx: ReadTx, context: Context, node: Node, view: View, mark: Mark, limit: int, limit_bytes: int
) -> ViewChanges | IndexFirst:
    """Returns the next changes above a mark: `limit` of them, within `limit_bytes` of payload, but at least one.

    Damaged items are left out.
    """
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    whole = replace(WHOLE[view.order], sync=view.sync)
    changes, more = items_after(tx, node.node_no, whole, mark.key_us, limit)
    if not changes:
        return ViewChanges((), mark, more=False)
    batch = _within_bytes(changes, view.order, limit_bytes)
    end = mark_at(tx, node.node_no, view.order, batch[-1])
    more = more or len(batch) < len(changes)
    visible = [item for item in batch if not (item.deleted and view.hides_tombstones)]
    inside = [item for item in (in_view(tx, node, view, item) for item in visible) if item is not None]
    note_damaged(context, node, inside)
    items = tuple(item_in_view(context, node, view, item) for item in inside if not item.damaged)
    return ViewChanges(items, end, more)


def _within_bytes(changes: list[Item], order: Order, limit_bytes: int) -> list[Item]:
    """The changes that fit into one document, at least one. Items that share a key stay together."""
    count = fitting((len(item.payload) for item in changes), limit_bytes)
    if count == len(changes):
        return changes
    next_us = key_of(order, changes[count])
    whole_groups = [item for item in changes[:count] if key_of(order, item) < next_us]
    return whole_groups or list(takewhile(lambda item: key_of(order, item) == next_us, changes))


def cursors_of(order: Order, items: Iterable[Item]) -> list[str]:
    """Returns the bare cursors (SF-026) of items that `items_after` has read from an unfiltered view.

    A cursor counts all earlier items of its key, and none of them is missing here. So, unlike `pulls.cursor_of`, this
    function reads nothing from the store.
    """
    cursors: list[str] = []
    ids: list[str] = []  # of the items so far that have the key `last_us`
    last_us: int | None = None
    for item in items:
        key_us = key_of(order, item)
        ids = [*ids, item.id][:MAX_GROUP] if key_us == last_us else [item.id]
        last_us = key_us
        cursors.append(format_cursor(order, key_us, ids))
    return cursors


def mark_at(tx: ReadTx, node_no: int, order: Order, item: Item) -> Mark:
    """Returns the mark of a consumer that has received everything up to an item."""
    return Mark(key_of(order, item), cursor_of(tx, node_no, order, item))


def newest_cursor(tx: ReadTx, node: Node, view: View, mark: Mark) -> str:
    """Returns the cursor of the newest item of a view up to a mark, "" if there is none.

    The next notification of the view has it as PreviousCursor (SF-044).
    """
    if view.smart and not view.filtered:
        return mark.cursor
    newest = tx.slice(node.node_no, Slice(view, 1, before=Edge(mark.key_us, MAX_ITEM_NO), newest=True))
    return cursor_of(tx, node.node_no, view.order, newest[0]) if newest else ""

"""Retrieves items: pages of a view, single items, and the positions at which pages start.

Implements XEP-0060 6.5 with XEP-0059 and XEP-0413 (xep-map 184 to 229) and the Smart Feeds pull interface. A page, its
count and its index come from one snapshot.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from smartfeeds.core.model import MAX_ITEM_NO, Edge, Item, Mark, Node, NodeKind, Slice
from smartfeeds.core.page import PagePlan
from smartfeeds.core.position import MAX_GROUP, SPAN, AtCursor, AtItem, Cursor, format_cursor, matches, parse_position
from smartfeeds.core.text import escaped_characters, wire_bytes
from smartfeeds.core.view import CREATED, SMART, Order, View, ViewStanding
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, check_persistent, locate_for
from smartfeeds.service.damage import check_whole
from smartfeeds.service.requests import GetItem, ItemShown, OrderBy, Page, Pull, ResultSet
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx

# The index of a page is counted in views of up to this many items. In larger views the response has it only if it
# costs nothing.
COUNTED_INDEX = 1_000
STEP_ITEMS = 100  # items that one statement reads
NEAR_ITEMS = 8  # with the key of a cursor, up to its own: so few are read with the page behind it
LONGEST_WRITTEN = 6  # bytes of one character in an attribute: &quot;
ENTRY_BYTES = 60  # about what surrounds the texts of an entry
# The unfiltered Smart view of each order, over which cursors and marks are computed.
WHOLE = {Order.MODIFIED: SMART, Order.CREATED: CREATED}
_KEYS = {Order.MODIFIED: attrgetter("modified_us"), Order.CREATED: attrgetter("created_us")}
_NOTHING_US = -(2**63)  # before all items
_BY = {"creation": Order.CREATED, "modification": Order.MODIFIED}


def pull(tx: ReadTx, context: Context, request: Pull) -> Page | IndexFirst:
    """Returns one page of a node or view, or the items that were requested by id."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    check_persistent(located.node)
    if (behind := index_first(tx, located.node, located.view)) is not None:
        return behind
    publishers = located.node.options.shows_publisher
    name = request.node or ""
    if request.item_ids:
        return Page(name, items_by_id(tx, context, located, request.item_ids), None, publishers)
    view, descending = ordered_view(located.view, request.order_by)
    page_plan = context.policy.plan(request.page, request.max_items, descending=descending)
    items, result_set, _ = read_page(tx, context, located.node, view, page_plan, brief=True)
    truncated = result_set.is_longer_than(len(items))
    return Page(name, items, result_set if page_plan.always_result_set or truncated else None, publishers)


def get_item(tx: ReadTx, context: Context, request: GetItem) -> ItemShown | IndexFirst:
    """Returns one item, also if it is deleted. Raises FeedError(ITEM_NOT_FOUND) if no item ever had this id."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    if (behind := index_first(tx, located.node, located.view)) is not None:
        return behind
    if request.sync:
        if located.node.kind is not NodeKind.FEED:
            raise FeedError(Condition.ITEM_NOT_FOUND, "items of generic nodes have no sync data")
        located = replace(located, view=replace(located.view, smart=True, sync=True))
        located.check_view()
    view = located.view
    item = in_view(tx, located.node, view, tx.item(located.node.node_no, request.item_id))
    if item is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such item")
    check_whole(context, located.node, item)
    older, newer = _neighbours(tx, located, item) if request.neighbours else (None, None)
    local_files = context.hooks.local_files_of(tx, context, located.node, (item,)) if request.neighbours else ()
    item = item_in_view(context, located.node, view, item)
    return ItemShown(item, located.node, located.node.options.shows_publisher, older, newer, local_files)


def _neighbours(tx: ReadTx, located: LocatedNode, item: Item) -> tuple[Item | None, Item | None]:
    """The items of the view that were created right before and right after an item and are not deleted."""
    view = replace(located.view, order=Order.CREATED, smart=False, sync=False)
    after, before = (beside(item.created_us, item.item_no, newer_side=side) for side in (True, False))
    older = tx.slice(located.node.node_no, Slice(view, 1, before=before, newest=True))
    newer = tx.slice(located.node.node_no, Slice(view, 1, after=after))
    return next(iter(older), None), next(iter(newer), None)


class PageRead(NamedTuple):
    """The items of a plan in the order they are shown, and the result set that describes them. `more`: the range of the
    plan has more items behind the last one; None if nobody has asked, or if the page was read from the newer end."""

    items: tuple[Item, ...]
    result_set: ResultSet
    more: bool | None = None


class _Rows(NamedTuple):
    """The first rows of a page, from behind the edge `after`."""

    after: Edge
    items: list[Item]


def read_page(
    tx: ReadTx,
    context: Context,
    node: Node,
    view: View,
    page_plan: PagePlan,
    *,
    look: bool = False,
    brief: bool = False,
) -> PageRead:
    """Reads the page of a plan, `brief` as in `Slice`. With `look` it reads whether items follow, and no index that
    costs a statement. The caller has checked `index_first`."""
    if (cursor := _cursor_before(node, view, page_plan)) is not None:
        rows = _rows_behind(tx, context, node, Slice(view, page_plan.limit + look, brief=brief), cursor)
        return page_between(tx, context, node, view, page_plan, rows.after, None, rows.items, look=look, brief=brief)
    after, before = edges_of(tx, context, node, view, page_plan)
    return page_between(tx, context, node, view, page_plan, after, before, look=look, brief=brief)


def _shows_all(node: Node, view: View) -> bool:
    """Whether a view has all items of a node, so that a page of it shows which items have one key."""
    return not view.filtered and (node.live == node.total or not view.hides_tombstones)


def _cursor_before(node: Node, view: View, page_plan: PagePlan) -> Cursor | None:
    """The cursor right before a page, if one statement can read the items of its key and those of the page: the view
    shows all items, and few have the key. Most pages follow a cursor. Other pages need a statement for each position
    (`edges_of`); tests/property/test_pages.py has pages of both kinds."""
    if page_plan.after is None or page_plan.before is not None or page_plan.newest or page_plan.offset:
        return None
    if not _shows_all(node, view) or not 0 < page_plan.limit <= STEP_ITEMS:
        return None
    position = parse_position(page_plan.after, view)
    cursor = position.later if isinstance(position, AtCursor) else None
    return cursor if cursor is not None and cursor.checksum and cursor.offset < NEAR_ITEMS else None


def _rows_behind(tx: ReadTx, context: Context, node: Node, window: Slice, cursor: Cursor) -> _Rows:
    """The items behind that of a cursor if its checksum matches, else those from its time on (SF-108)."""
    start = time_edge(cursor.key_us, newer_side=True)
    order, limit, with_key = window.view.order, window.limit, cursor.offset + 1
    items = tx.slice(node.node_no, Slice(window.view, limit + with_key, start, brief=window.brief))
    if matches(cursor, [item.id for item in items[:with_key] if key_of(order, item) == cursor.key_us]):
        return _Rows(beside(cursor.key_us, items[cursor.offset].item_no, newer_side=True), items[with_key:])
    context.degraded.add(cursor)
    return _Rows(start, items[:limit])


def edges_of(
    tx: ReadTx, context: Context, node: Node, view: View, page_plan: PagePlan
) -> tuple[Edge | None, Edge | None]:
    """The edges at the two positions of a plan."""
    after = edge_of(tx, context, node, view, page_plan.after, newer_side=True)
    return after, edge_of(tx, context, node, view, page_plan.before, newer_side=False)


def page_between(
    tx: ReadTx,
    context: Context,
    node: Node,
    view: View,
    page_plan: PagePlan,
    after: Edge | None,
    before: Edge | None,
    rows: list[Item] | None = None,
    *,
    look: bool = False,
    brief: bool = False,
) -> PageRead:
    """The page of `read_page` between two edges, with `rows` as its first items if they were read already. The count is
    that of the whole view."""
    if not page_plan.limit:
        return PageRead((), ResultSet(_count(tx, node, view)))
    window = Slice(view, page_plan.limit, after, before, page_plan.newest, page_plan.offset, brief)
    # With the item before a page of the newest items, the page says how many items have the key of its first one.
    shows_all = _shows_all(node, view)
    items, ended, older_us = _read_items(tx, context, node, window, rows, look=shows_all if window.newest else look)
    whole = ended and after is before is None and not page_plan.offset
    count = len(items) if whole else _count(tx, node, view)
    if not items:
        return PageRead((), ResultSet(count))
    index = None if look or not (page_plan.index or view.smart) else _index(tx, node, window, items, count)
    find = partial(_cursor_in, tx, node.node_no, view.order, items, older_us, shows_all=shows_all)
    spans = context.policy.span_cursors and page_plan.spans and not view.smart
    first, last = _uids(find, len(items) - 1, spans=spans)
    if page_plan.descending:
        items.reverse()
        first, last = last, first
        index = None if index is None or count is None else count - index - len(items)
    more = not ended if look and not page_plan.newest else None
    return PageRead(tuple(items), ResultSet(count, first, last, index), more)


def _count(tx: ReadTx, node: Node, view: View) -> int | None:
    """Returns the number of items of the view, None if counting them takes too long. A node knows the number of its
    items."""
    if view.filtered:
        return tx.bounded_count(node.node_no, view)
    return node.live if view.hides_tombstones else node.total


class _ItemsRead(NamedTuple):
    """The items of a page. `ended`: the store has no more of them. `older_us`: no item right before the page has a
    greater key; None if this read does not show it."""

    items: list[Item]
    ended: bool
    older_us: int | None


def _read_items(
    tx: ReadTx, context: Context, node: Node, window: Slice, rows: list[Item] | None = None, *, look: bool = False
) -> _ItemsRead:
    """The items of a page, as many as one stanza may carry.

    Steps of STEP_ITEMS avoid reading many items that do not fit into the stanza. `rows` are those of the first step if
    they were read already. With `look` the last step reads one more, so that it is known what follows.
    """
    view, newest, limit_bytes = window.view, window.newest, context.policy.page_bytes
    after, before, offset = window.after, window.before, window.offset
    first_us = _NOTHING_US if after is None else after.key_us
    key = _KEYS[view.order]
    items: list[Item] = []
    while True:
        step = min(STEP_ITEMS, window.limit - len(items))
        looks = look and len(items) + step == window.limit
        if rows is None:
            rows = tx.slice(node.node_no, Slice(view, step + looks, after, before, newest, offset, window.brief))
        ended = len(rows) < step + looks
        more = rows.pop(0 if newest else -1) if looks and not ended else None
        # A list, because a generator is a call for each item.
        if view.sync or view.filtered or True in [item.damaged for item in rows]:
            rows = [item_in_view(context, node, view, item) for item in rows]
        items = rows + items if newest else items + rows
        fitting_items = _within_bytes(items, limit_bytes, newest=newest)
        cut = len(items) - len(fitting_items)
        if not newest:
            older_us = None if window.offset else first_us
        elif cut:
            older_us = key(items[cut - 1])
        else:
            older_us = first_us if ended else None if more is None else key(more)
        if cut or ended or len(items) >= window.limit:
            return _ItemsRead(fitting_items, ended and not cut, older_us)
        end = items[0] if newest else items[-1]
        edge = Edge(key(end), end.item_no - newest)
        after, before = (after, edge) if newest else (edge, before)
        offset, rows = 0, None


def cursor_of(tx: ReadTx, node_no: int, order: Order, item: Item) -> str:
    """The bare cursor of an item in an order (SF-026)."""
    key_us = key_of(order, item)
    group = tx.group(node_no, order, key_us, 2)
    if len(group) > 1:
        group = tx.group(node_no, order, key_us, MAX_GROUP)
    ids = [item_id for item_no, item_id in group if item_no <= item.item_no]
    return format_cursor(order, key_us, ids)


def newest_mark(tx: ReadTx, node: Node, order: Order) -> Mark:
    """The mark behind everything that a feed holds now in an order."""
    newest = tx.slice(node.node_no, Slice(WHOLE[order], 1, newest=True))
    last_us = node.last_modified_us if order is Order.MODIFIED else node.last_created_us
    return Mark(last_us, cursor_of(tx, node.node_no, order, newest[0]) if newest else "")


def key_of(order: Order, item: Item) -> int:
    """The ordering key of an item."""
    return item.modified_us if order is Order.MODIFIED else item.created_us


def items_by_id(tx: ReadTx, context: Context, located: LocatedNode, item_ids: Iterable[str]) -> tuple[Item, ...]:
    """The existing items with these ids in the view.

    A client takes a missing item for deleted, so a response that does not fit into one stanza is refused and never cut.
    """
    too_many = FeedError(Condition.NOT_ACCEPTABLE, "too many items for one answer: ask for fewer")
    requested_ids = dict.fromkeys(item_ids)
    if len(requested_ids) > context.policy.page_max:
        raise too_many
    hidden = located.view.hides_tombstones
    result = []
    size_bytes = 0
    remaining_ids = list(requested_ids)
    while ids := remaining_ids[:STEP_ITEMS]:
        del remaining_ids[:STEP_ITEMS]
        items = {item.id: item for item in tx.items(located.node.node_no, ids)}
        for item_id in ids:
            item = in_view(tx, located.node, located.view, items.get(item_id))
            if item is not None and not (item.deleted and hidden):
                check_whole(context, located.node, item)
                item = item_in_view(context, located.node, located.view, item)
                result.append(item)
                size_bytes += _written_size_bytes(item)
        if size_bytes > context.policy.page_bytes and len(result) > 1:
            raise too_many
    return tuple(result)


def in_view(tx: ReadTx, node: Node, view: View, item: Item | None) -> Item | None:
    """The item if the view contains it, marked `left` if it has left the view; None otherwise. Views without filters
    contain every item."""
    if item is None or not view.filtered:
        return item
    (standing,) = tx.standings(node.node_no, item, (view,))
    return None if standing is ViewStanding.ABSENT else item._replace(left=standing is ViewStanding.LEFT)


def ordered_view(view: View, order_by: tuple[OrderBy, ...]) -> tuple[View, bool]:
    """The view in the order that XEP-0413 requests, and whether the page is shown newest first."""
    if not order_by:
        return view, False
    orders = [_BY.get(entry.by) for entry in order_by]
    first = orders[0]
    if first is None or None in orders:
        raise FeedError(Condition.BAD_REQUEST, "order by creation or modification")
    if view.smart and first is not view.order:
        raise FeedError(Condition.BAD_REQUEST, "the node name asks for the other order")
    return replace(view, order=first), order_by[0].descending


def edge_of(tx: ReadTx, context: Context, node: Node, view: View, text: str | None, *, newer_side: bool) -> Edge | None:
    """The edge at a position: right behind it if `newer_side`, for items that follow it, else right before it."""
    if text is None:
        return None
    position = parse_position(text, view)
    if isinstance(position, AtCursor):
        cursor = position.later if newer_side else position.earlier
        return _cursor_edge(tx, context, node, cursor, newer_side=newer_side)
    if isinstance(position, AtItem):
        item = tx.item(node.node_no, position.item_id)
        if item is None:
            raise FeedError(Condition.ITEM_NOT_FOUND, "no item of this id was ever here")
        return beside(key_of(view.order, item), item.item_no, newer_side=newer_side)
    return time_edge(position.key_us, newer_side=newer_side)


def _cursor_edge(tx: ReadTx, context: Context, node: Node, cursor: Cursor, *, newer_side: bool) -> Edge:
    """The edge at the item of a cursor if its checksum matches, else the edge at its time (SF-108)."""
    limit = min(cursor.offset + 1, MAX_GROUP)
    group = tx.group(node.node_no, cursor.order, cursor.key_us, limit)
    if matches(cursor, [item_id for _, item_id in group]):
        return beside(cursor.key_us, group[cursor.offset][0], newer_side=newer_side)
    context.degraded.add(cursor)
    return time_edge(cursor.key_us, newer_side=newer_side)


def beside(key_us: int, item_no: int, *, newer_side: bool) -> Edge:
    """The edge right behind an item if `newer_side`, else right before it."""
    return Edge(key_us, item_no if newer_side else item_no - 1)


def time_edge(key_us: int, *, newer_side: bool) -> Edge:
    """The edge at a time, which is inclusive on both sides (SF-032)."""
    return Edge(key_us, -1 if newer_side else MAX_ITEM_NO)


def _within_bytes(items: list[Item], limit_bytes: int, *, newest: bool) -> list[Item]:
    """Returns as many items as fit into one stanza, at least one, without those at the far end."""
    if _surely_within(items, limit_bytes):
        return items
    sizes = [_written_size_bytes(item) for item in items]
    count_fitting = fitting(reversed(sizes) if newest else sizes, limit_bytes)
    return items[-count_fitting:] if newest else items[:count_fitting]


def _surely_within(items: list[Item], limit_bytes: int) -> bool:
    """Whether the items fit even if every character is escaped. True for nearly every page, and cheap."""
    payloads = [item.payload for item in items]
    if sum(map(len, payloads)) > limit_bytes:
        return False
    characters = sum([len(item.id) + len(item.publisher) for item in items])
    return surely_fits(characters, len(items), limit_bytes - wire_bytes(b"".join(payloads)))


def surely_fits(characters: int, entries: int, limit_bytes: int) -> bool:
    """Whether entries with texts of this length together stay within a limit, however their texts are escaped."""
    return LONGEST_WRITTEN * characters + ENTRY_BYTES * entries <= limit_bytes


def _written_size_bytes(item: Item) -> int:
    return wire_bytes(item.payload) + written_bytes(item.id) + written_bytes(item.publisher) + ENTRY_BYTES


def fitting(sizes_bytes: Iterable[int], limit_bytes: int) -> int:
    """Returns how many of these sizes, from the first on, fit into the limit together; at least one."""
    total = 0
    count_fitting = 0
    for size_bytes in sizes_bytes:
        total += size_bytes
        if total > limit_bytes and count_fitting:
            break
        count_fitting += 1
    return count_fitting


def written_bytes(text: str) -> int:
    """The greatest size of a text in an attribute, after a server has written it again as in `wire_bytes`."""
    return len(text.encode()) + (LONGEST_WRITTEN - 1) * escaped_characters(text)


def _index(tx: ReadTx, node: Node, window: Slice, items: list[Item], count: int | None) -> int | None:
    """The position of the page's oldest item in the view, if it costs no more than the page (SF-096)."""
    if not window.newest and window.after is None:
        return window.offset
    if count is None:
        return None
    if window.newest and window.before is None:
        return count - window.offset - len(items)
    if count > COUNTED_INDEX:
        return None
    first = items[0]
    before = Edge(key_of(window.view.order, first), first.item_no - 1)
    return tx.bounded_count(node.node_no, window.view, before=before)


def _uids(cursor_at: Callable[[int], str], last_place: int, *, spans: bool) -> tuple[str, str]:
    """The positions of the first and the last item of a page."""
    first = cursor_at(0)
    if not last_place:
        return f"cursor:{first}", f"cursor:{first}"
    last = cursor_at(last_place)
    if spans:
        return f"cursor:{first}{SPAN}{last}", f"cursor:{last}{SPAN}{first}"
    return f"cursor:{first}", f"cursor:{last}"


def _cursor_in(
    tx: ReadTx, node_no: int, order: Order, items: list[Item], older_us: int | None, place: int, *, shows_all: bool
) -> str:
    """The cursor of an item of a page. If the page has all items with its key up to it, the store is not asked.
    `older_us` is that of `_ItemsRead`."""
    key, item = _KEYS[order], items[place]
    key_us = key(item)
    start = place
    while start and key(items[start - 1]) == key_us:
        start -= 1
    # Right before the page is an item with another key, or nothing.
    begins = start or (older_us is not None and older_us < key_us)
    # The id of a damaged item may be damaged, too.
    if not (begins and shows_all) or item.damaged:
        return cursor_of(tx, node_no, order, item)
    if start == place:
        return format_cursor(order, key_us, [item.id])
    group = items[start : place + 1]
    if any(each.damaged for each in group):
        return cursor_of(tx, node_no, order, item)
    return format_cursor(order, key_us, [each.id for each in group])

"""Queries of the archive of a node: the items of a view in pages, with filters (XEP-0313, XEP-0442, XEP-0431).

The archive of a node is the node itself. Its ids are the cursors of pulls, and the fields of a query are those of
XEP-0313 and the filters of views. A query of the bare node contains no deleted items.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from smartfeeds.core.filters import FILTERS
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Edge, Item, Node, Slice
from smartfeeds.core.options import FormFields
from smartfeeds.core.page import PagePlan, ResultSetRequest
from smartfeeds.core.position import MAX_GROUP, AtCursor, AtItem, matches, parse_position
from smartfeeds.core.times import parse_datetime
from smartfeeds.core.view import View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, locate_for
from smartfeeds.service.pulls import (
    beside,
    cursor_of,
    edges_of,
    items_by_id,
    key_of,
    ordered_view,
    page_between,
    time_edge,
)
from smartfeeds.service.requests import Answer, NodeRequest, OrderBy, ResultSet
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx

START, END, AFTER_ID, BEFORE_ID, IDS, WITH = "start", "end", "after-id", "before-id", "ids", "with"
FULL_TEXT = "{urn:xmpp:fulltext:0}fulltext"
# Fields of a query that are filters of views, by the name of the filter. `with` is the publisher of an item.
FILTER_FIELDS: Mapping[str, str] = {WITH: "author", FULL_TEXT: "q", **{name: name for name in FILTERS}}
_FIELDS = frozenset({START, END, AFTER_ID, BEFORE_ID, IDS, *FILTER_FIELDS})


@dataclass(frozen=True, slots=True)
class QueryArchive(NodeRequest):
    """Queries the archive of a node (XEP-0313 4, XEP-0442). `fields` are the filters, `flip` sends the page in reverse
    order.

    `query_id` is repeated in each result, None if absent.
    """

    fields: FormFields
    page: ResultSetRequest | None = None
    order_by: tuple[OrderBy, ...] = ()
    query_id: str | None = None
    flip: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """An item with its archive id, which is its cursor, and the time of its ordering key in microseconds."""

    uid: str
    time_us: int
    item: Item


@dataclass(frozen=True, slots=True)
class ArchivePage(Answer):
    """Results in the order in which they are sent. `complete`: the query matches nothing beyond this page."""

    node: str
    results: tuple[ArchiveResult, ...]
    result_set: ResultSet
    complete: bool
    show_publisher: bool
    message_type: str
    query_id: str | None


@dataclass(frozen=True, slots=True)
class GetArchiveEnds(NodeRequest):
    """Asks for the archive metadata of a node or view (XEP-0313 5)."""


@dataclass(frozen=True, slots=True)
class ArchiveEnds(Answer):
    """The oldest and the newest item, or nothing if the archive is empty."""

    ends: tuple[ArchiveResult, ...]


def query_archive(tx: ReadTx, context: Context, request: QueryArchive) -> ArchivePage | IndexFirst:
    """The results of a query, in pages (XEP-0313 4)."""
    # A client may submit the whole form; a field without a value is no filter.
    fields = {name: values for name, values in request.fields.items() if any(values)}
    if unknown := fields.keys() - _FIELDS:
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, f"the archive has no field {min(unknown)[:100]!r}")
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    view, descending = ordered_view(_filtered(located, fields), request.order_by)
    node = located.node
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    if IDS in fields:
        items, result_set, complete = _selected(tx, context, replace(located, view=view), fields[IDS])
    else:
        # A query without a result set gets the first page, because the next one begins behind its last result.
        page_plan = context.policy.plan(request.page or ResultSetRequest(), descending=descending)
        page_plan = replace(page_plan, spans=False)
        items, result_set, complete = _page(tx, context, node, view, page_plan, fields)
    results = [_result(tx, node, view, item) for item in items]
    return ArchivePage(
        request.node or "",
        tuple(reversed(results) if request.flip else results),
        result_set,
        complete,
        node.options.shows_publisher,
        node.options.notification_type,
        request.query_id,
    )


def archive_ends(tx: ReadTx, context: Context, request: GetArchiveEnds) -> ArchiveEnds | IndexFirst:
    """The oldest and the newest item of a node or view (XEP-0313 5)."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    node, view = located.node, located.view
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    ends = [item for newest in (False, True) for item in tx.slice(node.node_no, Slice(view, 1, newest=newest))]
    return ArchiveEnds(tuple(_result(tx, node, view, item) for item in ends))


def _result(tx: ReadTx, node: Node, view: View, item: Item) -> ArchiveResult:
    uid = f"cursor:{cursor_of(tx, node.node_no, view.order, item)}"
    return ArchiveResult(uid, key_of(view.order, item), item)


def _filtered(located: LocatedNode, fields: FormFields) -> View:
    """The view with the filters of a query. Raises FeedError: BAD_REQUEST, FEATURE_NOT_IMPLEMENTED."""
    filters = dict(located.view.filters)
    for name, values in fields.items():
        row = FILTERS.get(FILTER_FIELDS.get(name, ""))
        if row is None:
            continue
        if row.name in filters:
            raise FeedError(Condition.BAD_REQUEST, f"the field {name!r} repeats a filter; send each filter once")
        texts = tuple(map(_address, values)) if name == WITH else values
        selected = row.read(texts)
        if selected is None:
            raise FeedError(Condition.BAD_REQUEST, f"the value of the field {name!r} is not a value of this filter")
        if selected:
            filters[row.name] = selected
    return replace(located.view, filters=tuple((name, filters[name]) for name in FILTERS if name in filters))


def _address(text: str) -> str:
    jid = parse_jid(text)
    if jid is None:
        raise FeedError(Condition.JID_MALFORMED, f"{text[:100]!r} is not an address; send a JID in the field 'with'")
    return str(jid)


def _page(
    tx: ReadTx, context: Context, node: Node, view: View, page_plan: PagePlan, fields: FormFields
) -> tuple[tuple[Item, ...], ResultSet, bool]:
    """The items of a page in the range of the query, their result set, and whether the range ends with the page."""
    start, end = _range(tx, node, view, fields)
    after, before = edges_of(tx, context, node, view, page_plan)
    after = max((edge for edge in (start, after) if edge is not None), default=None)
    before = min((edge for edge in (end, before) if edge is not None), default=None)
    items, result_set, _ = page_between(tx, context, node, view, page_plan, after, before)
    if start is not None or end is not None:
        # Count and index are those of the whole view. The index in the range is not known.
        result_set = replace(result_set, count=_count(tx, node, view, start, end), index=None)
    if not items:
        # A page of 0 items asks for the count alone, and says nothing of the rest.
        return items, result_set, bool(page_plan.limit) or result_set.count == 0
    oldest, newest = (items[-1], items[0]) if page_plan.descending else (items[0], items[-1])
    if page_plan.newest:
        before = Edge(key_of(view.order, oldest), oldest.item_no - 1)
    else:
        after = Edge(key_of(view.order, newest), newest.item_no)
    return items, result_set, not tx.slice(node.node_no, Slice(view, 1, after, before))


def _range(tx: ReadTx, node: Node, view: View, fields: FormFields) -> tuple[Edge | None, Edge | None]:
    """The edges of the query: the latest of its starts and the earliest of its ends."""
    edges = {
        name: _edge(tx, node, view, name, fields[name]) for name in (START, AFTER_ID, END, BEFORE_ID) if name in fields
    }
    start = max((edges[name] for name in (START, AFTER_ID) if name in edges), default=None)
    return start, min((edges[name] for name in (END, BEFORE_ID) if name in edges), default=None)


def _edge(tx: ReadTx, node: Node, view: View, name: str, values: tuple[str, ...]) -> Edge:
    newer_side = name in (START, AFTER_ID)
    if len(values) != 1:
        raise FeedError(Condition.BAD_REQUEST, f"the field {name!r} has several values; send one")
    if name in (AFTER_ID, BEFORE_ID):
        item = _item(tx, node, view, values[0])
        return beside(key_of(view.order, item), item.item_no, newer_side=newer_side)
    time_us = parse_datetime(values[0])
    if time_us is None:
        raise FeedError(Condition.BAD_REQUEST, f"the field {name!r} must be a date-time with a zone (XEP-0082)")
    return time_edge(time_us, newer_side=newer_side)


def _count(tx: ReadTx, node: Node, view: View, start: Edge | None, end: Edge | None) -> int | None:
    """The number of items between two edges, None if counting would cost far more than a page."""
    upto_end = tx.bounded_count(node.node_no, view, before=end)
    upto_start = 0 if start is None else tx.bounded_count(node.node_no, view, before=start)
    return None if upto_end is None or upto_start is None else max(upto_end - upto_start, 0)


def _selected(
    tx: ReadTx, context: Context, located: LocatedNode, uids: tuple[str, ...]
) -> tuple[tuple[Item, ...], ResultSet, bool]:
    """The items with these archive ids, in the order of the view. Raises FeedError(ITEM_NOT_FOUND) if one is missing.

    The ids of items that have changed since are missing, because a change moves an item in the archive.
    """
    node, view = located.node, located.view
    if len(uids) > context.policy.page_max:
        raise FeedError(Condition.NOT_ACCEPTABLE, "too many ids for one answer: ask for fewer")
    item_ids = {_item(tx, node, view, uid).id for uid in uids}
    items = sorted(
        items_by_id(tx, context, located, item_ids), key=lambda item: (key_of(view.order, item), item.item_no)
    )
    if len(items) < len(item_ids):
        raise FeedError(Condition.ITEM_NOT_FOUND, "the archive has no item with one of these ids")
    first, last = (f"cursor:{cursor_of(tx, node.node_no, view.order, item)}" for item in (items[0], items[-1]))
    return tuple(items), ResultSet(len(items), first, last), True


def _item(tx: ReadTx, node: Node, view: View, uid: str) -> Item:
    """The item with an archive id, which never stands for a time (XEP-0313 4.1.3). Raises FeedError(ITEM_NOT_FOUND)."""
    position = parse_position(uid, view)
    item_id = position.item_id if isinstance(position, AtItem) else ""
    if isinstance(position, AtCursor):
        cursor = position.later
        group = tx.group(node.node_no, cursor.order, cursor.key_us, min(cursor.offset + 1, MAX_GROUP))
        if matches(cursor, [item_id for _, item_id in group]):
            item_id = group[cursor.offset][1]
    item = tx.item(node.node_no, item_id) if item_id else None
    if item is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"the archive has no item with the id {uid[:100]!r}")
    return item


USE_CASES = UseCases(
    reads={QueryArchive: ("query_archive", query_archive), GetArchiveEnds: ("get_archive_ends", archive_ends)},
    pulls=frozenset({QueryArchive}),
)

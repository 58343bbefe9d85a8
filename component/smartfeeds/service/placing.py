"""The outline that the items of a feed make, and moves in it (SSE 3.2, SSE-028).

The requests are beside their use cases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.model import Edge, Item, Node, NodeKind, Slice
from smartfeeds.core.view import SHARED
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.formats.opml import OPML_NS
from smartfeeds.service.context import Context, LocatedNode, locate_for, lock_located
from smartfeeds.service.item_writes import check_expected, item_tag, write_state
from smartfeeds.service.requests import Answer, ItemPrecondition, NodeRequest, Published
from smartfeeds.service.syncing import EDITED_SYNC_BYTES, editor, read_shared, state_of
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.moves import FeedOutline, MoveStep, OutlineRow
from smartfeeds.sync.places import Place, place_of, with_place
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.trees import ROOT

# A move, and a list that drives sources, reads the whole outline.
MAX_OUTLINE: Final = 10_000
_CHUNK = 256
_MARK = OPML_NS.encode()


@dataclass(frozen=True, slots=True)
class GetOutline(NodeRequest):
    """The outline of a feed, with the first `most` items of it."""

    most: int = 0


@dataclass(frozen=True, slots=True)
class OutlineShown(Answer):
    """The ids of the live items of a feed in the order of its outline, each with its level, counted from 0, and the
    first items."""

    node: Node
    lines: tuple[tuple[int, str], ...]
    items: Mapping[str, Item]


@dataclass(frozen=True, slots=True)
class MoveItem(NodeRequest):
    """Moves an item by a step, or into `parent` and behind `after`.

    `parent` is an item id, "" for the root, None for the present parent. `after` is an item id, "" for the first place,
    None for the last.
    """

    item_id: str
    step: MoveStep | None = None
    parent: str | None = None
    after: str | None = None
    expected: ItemPrecondition | None = None


def get_outline(tx: ReadTx, context: Context, request: GetOutline) -> OutlineShown:
    """Returns the outline of a feed."""
    located = _located(tx, context, request)
    located.access.check_read()
    ids, outline = _outline(tx, context, located.node)
    lines = tuple((level, ids[sync_id]) for level, sync_id in outline.walk_live())
    items = tx.items(located.node.node_no, [item_id for _level, item_id in lines[: request.most]])
    return OutlineShown(located.node, lines, {item.id: item for item in items})


def move_item(tx: WriteTx, context: Context, request: MoveItem) -> Published:
    """Moves an item of a feed. The move is an update of the item, which keeps its content and its publisher."""
    located = _located(tx, context, request)
    access = located.access
    access.check_publish()
    # The answer says which ids exist.
    access.check_read()
    node = lock_located(tx, located)
    item = _live(tx, node, request.item_id, "item")
    if not access.may_overwrite(own=item.publisher == request.actor.bare_text):
        raise FeedError(Condition.FORBIDDEN, "this item is somebody else's")
    check_expected(item, request.expected)
    ids, outline = _outline(tx, context, node)
    sync_id = item.sync_id or item.id
    parent, after = _destination(tx, node, outline, sync_id, request)
    by = request.actor.bare_text
    for key, place in outline.move(sync_id, parent, after).items():
        [other] = tx.items(node.node_no, [ids[key]])
        stored = update_place(tx, context, node, other, place, by, settles=key == sync_id)
        node = node._replace(last_modified_us=stored.modified_us)
        item = stored if key == sync_id else item
    return Published(request.node or "", item.id, item_tag(item))


def update_place(
    tx: WriteTx, context: Context, node: Node, item: Item, place: Place, by: str, *, settles: bool = False
) -> Item:
    """Moves an item, which may be deleted: an update by this bare JID, which keeps the content and the publisher.

    With `settles` the update removes the conflicts of an SSE item, as each update by a user does (SSE 4.2).
    """
    shared = read_shared(context, node, item)
    # Any other update of SSE restores a deleted item (SSE-035).
    version = shared.dialect.update(shared.version, editor(context, node, by), deleted=True if item.deleted else None)
    if shared.dialect is SSE and not settles:
        version = version._replace(conflict=shared.version.conflict, conflicts=shared.version.conflicts)
    state = state_of(shared, with_place(version, place), EDITED_SYNC_BYTES)
    return write_state(tx, context, node, item, item.id, state, item.publisher)


def is_shown(tx: ReadTx, context: Context, node: Node, item: Item) -> bool:
    """Whether an item has a place, and all that it is in is still there: outlines leave out what is in a deleted
    item."""
    seen: set[str] = set()
    inside: Item | None = item
    while inside is not None and not inside.deleted:
        place = place_of(read_shared(context, node, inside).version)
        if place is None:
            return inside is not item
        if place.parent == ROOT or place.parent in seen:
            return True
        seen.add(place.parent)
        inside = tx.item_of_sync(node.node_no, place.parent) or tx.item(node.node_no, place.parent)
    return inside is None


def put_place(tx: WriteTx, context: Context, node: Node, item: Item, place: Place) -> None:
    """Stores the place of an item with its present version: no reader sees a change."""
    shared = read_shared(context, node, item)
    state = state_of(shared, with_place(shared.version, place))
    tx.put_item(node.node_no, item._replace(sync=state.sync))


def _located(tx: ReadTx, context: Context, request: NodeRequest) -> LocatedNode:
    located = locate_for(tx, context, request.node, request.actor)
    if located.view.smart:
        raise unsupported("publish", "a view has no outline; name the feed itself")
    if located.node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ALLOWED, "the items of this node have no places: it is no feed")
    return located


def _live(tx: ReadTx, node: Node, item_id: str, what: str) -> Item:
    item = tx.item(node.node_no, item_id)
    if item is None or item.deleted:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such {what}")
    return item


def _outline(tx: ReadTx, context: Context, node: Node) -> tuple[dict[str, str], FeedOutline]:
    """The outline of a feed, and the item ids by sync id. Raises FeedError(NOT_ALLOWED) for too many items."""
    if node.total > MAX_OUTLINE:
        raise FeedError(Condition.NOT_ALLOWED, f"the feed has more than {MAX_OUTLINE} items, too many for an outline")
    ids: dict[str, str] = {}
    rows = []
    after = None
    while chunk := tx.slice(node.node_no, Slice(SHARED, _CHUNK, after)):
        for item in chunk:
            place = place_of(read_shared(context, node, item).version) if _MARK in (item.sync or b"") else None
            row = OutlineRow(item.sync_id or item.id, item.created_us, item.modified_us, place, item.deleted)
            ids[row.sync_id] = item.id
            rows.append(row)
        after = Edge(chunk[-1].modified_us, chunk[-1].item_no)
    return ids, FeedOutline.of(rows)


def _destination(tx: ReadTx, node: Node, outline: FeedOutline, sync_id: str, request: MoveItem) -> tuple[str, str]:
    """The sync ids of the parent and the sibling before the item. Raises FeedError."""
    if request.step is not None:
        return outline.step(sync_id, request.step)

    def named(item_id: str, what: str) -> str:
        item = _live(tx, node, item_id, what) if item_id else None
        return ROOT if item is None else item.sync_id or item.id

    after = None if request.after is None else named(request.after, "item to move behind")
    if request.parent is not None:
        parent = named(request.parent, "parent")
    else:
        parent = next(holder for holder, ids in outline.tree.items() if (after or sync_id) in ids)
    if after is None:
        siblings = [sibling for sibling in outline.live(parent) if sibling != sync_id]
        after = siblings[-1] if siblings else ROOT
    return parent, after

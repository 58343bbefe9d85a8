"""The transactions that write a moved node (`moving`).

An unfinished node has a name that nobody can reach. A node that has readers gets its items quietly.
"""

from collections.abc import Callable
from typing import Final

from smartfeeds.core.model import QUIET, Item, Node, NodeEvent, NodeKind, Slice
from smartfeeds.core.options import AccessModel, NodeOptions
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.moved_items import KeyedItem
from smartfeeds.service.context import Context
from smartfeeds.service.importing import ImportCounts
from smartfeeds.service.item_writes import next_key, remove_item
from smartfeeds.service.publishing import PURGE_CHUNK, bury, store_item
from smartfeeds.service.syncing import created, first_state, is_unique_sync_id
from smartfeeds.store.base import ReadTx, WriteTx

_STAGING: Final = "urn:smartfeeds:moving:"
# No request has this creator, so nobody else can create a node that is taken for an unfinished one.
_STAGING_CREATOR: Final = ""


def _staging_name(name: str) -> str:
    return f"{_STAGING}{name}"


def unfinished_node(tx: ReadTx, name: str) -> Node | None:
    """Returns the unfinished node of a name. Raises FeedError if the node belongs to somebody."""
    node = tx.node(_staging_name(name))
    if node is not None and node.creator != _STAGING_CREATOR:
        raise FeedError(Condition.CONFLICT, f"delete the node {node.name}; its name is needed for the import")
    return node


def begin_node(tx: WriteTx, context: Context, node: Node, items: list[KeyedItem]) -> int:
    """Creates the unfinished node with the first items, in place of one that an interrupted import has left."""
    former = unfinished_node(tx, node.name)
    if former is not None:
        tx.retire_node(former.node_no)
    # Nobody has an affiliation with it, so nobody but admins can see it.
    options = NodeOptions(node.kind, {**node.options.stored, "access_model": (AccessModel.WHITELIST.value,)})
    tx.add_node(Node(0, _staging_name(node.name), node.kind, _STAGING_CREATOR, context.now_us, options))
    return add_batch(tx, context, node.name, items)


def add_batch(tx: WriteTx, context: Context, name: str, items: list[KeyedItem]) -> int:
    """Adds items to an unfinished node. Returns the number of new items: the source may have an id twice."""
    node = unfinished_node(tx, name)
    if node is None:
        raise FeedError(Condition.CONFLICT, f"another import of {name} has begun; run one at a time")
    known = {item.id for item in tx.items(node.node_no, [item.id for item in items])} if node.total else set[str]()
    fresh = {item.id: item for item in items if item.id not in known}
    rows = [_row(tx, context, node, item) for item in fresh.values()]
    if any(row.sync_id for row in rows):
        for item in fresh.values():
            # Each sync id must be compared with those before it.
            tx.put_item(node.node_no, _row(tx, context, node, item))
    elif rows:
        tx.add_items(node.node_no, rows)
    if rows:
        last_us = max(row.modified_us for row in rows), max(row.created_us for row in rows)
        keys = max(last_us[0], node.last_modified_us), max(last_us[1], node.last_created_us)
        tx.set_keys(node.node_no, *keys)
    return len(rows)


def _row(tx: ReadTx, context: Context, node: Node, item: KeyedItem) -> Item:
    """Returns an item as the unfinished node stores it. An item that was edited on the other service has revision 2."""
    if is_unique_sync_id(item.id):
        state = first_state(context, node, item.id, item.payload, item.publisher)
    else:
        state = created(tx, context, node, item.id, item.payload, item.publisher)
    return Item(
        0,
        item.id,
        item.created_key_us,
        item.modified_key_us,
        state.payload,
        item.publisher,
        revision=1 + (item.modified_us > item.created_us),
        total=item.rank,
        live=item.rank,
        sync_id="" if state.sync_id == item.id else state.sync_id,
        sync=state.sync,
    )


def locked_node(tx: WriteTx, name: str) -> Node:
    node = tx.lock(name)
    if node is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"the node {name} was deleted during the import")
    return node


def _existing(tx: ReadTx, node: Node, items: list[KeyedItem]) -> dict[str, Item]:
    return {item.id: item for item in tx.items(node.node_no, [item.id for item in items])}


def _is_stored(existing: Item | None, item: KeyedItem) -> bool:
    return existing is not None and not existing.deleted and existing.payload == item.payload


def compare_items(tx: ReadTx, _context: Context, name: str, items: list[KeyedItem]) -> ImportCounts:
    """Returns what storing the items would change."""
    node = tx.node(name)
    existing = {} if node is None else _existing(tx, node, items)
    same = sum(_is_stored(existing.get(item.id), item) for item in items)
    changed = sum(item.id in existing for item in items) - same
    return ImportCounts(added=len(items) - same - changed, changed=changed, unchanged=same)


def write_changes(tx: WriteTx, context: Context, name: str, items: list[KeyedItem]) -> ImportCounts:
    """Stores the items that differ, without notifications."""
    node = locked_node(tx, name)
    counts = compare_items(tx, context, name, items)
    existing = _existing(tx, node, items)
    with_changes = [item for item in items if not _is_stored(existing.get(item.id), item)]

    def store() -> None:
        for item in with_changes:
            stored = existing.get(item.id)
            current = locked_node(tx, name)
            made_us = None if stored is not None else item.created_us
            store_item(tx, context, current, stored, item.id, item.payload, item.publisher, created_us=made_us)
        _trim(tx, context, name)

    if with_changes:
        _quietly(tx, context, node, store)
    return counts


def _trim(tx: WriteTx, context: Context, name: str) -> None:
    """Removes the oldest items of a full generic node."""
    node = locked_node(tx, name)
    if node.kind is NodeKind.GENERIC and node.options.max_items is not None and node.live > node.options.max_items:
        for item in tx.slice(node.node_no, Slice(BARE, min(node.live - node.options.max_items, PURGE_CHUNK))):
            node = remove_item(tx, context, node, item, notify=False)


def retract_items(tx: WriteTx, context: Context, name: str, ids: list[str], by: str) -> None:
    node = locked_node(tx, name)

    def store() -> None:
        for item in tx.items(node.node_no, ids):
            if not item.deleted:
                bury(tx, context, locked_node(tx, name), item, by, notify=False)

    _quietly(tx, context, node, store)


def _quietly(tx: WriteTx, context: Context, node: Node, store: Callable[[], None]) -> None:
    """Stores items of a node without notifications: the event stands before them, and names the last of them."""
    at_us = next_key(node.last_modified_us, context.now_us)
    tx.set_keys(node.node_no, at_us, node.last_created_us)
    store()
    tx.add_event(NodeEvent(0, node.node_no, at_us, QUIET, str(locked_node(tx, node.name).last_modified_us)))
    context.changed.add(node.node_no)

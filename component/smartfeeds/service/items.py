"""Writing items: a new state gets new ordering keys, and the item stores the counts of the feed after the change.

Keys are unique and strictly growing per feed and order, so commit order equals cursor order (A-31, A-38).
"""

from dataclasses import dataclass

from smartfeeds.core.model import Item, Node
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx


@dataclass(frozen=True, slots=True)
class ItemState:
    """The new state of an item. The payload of a deleted item is its tombstone with the mark.

    `notify` says whether subscribers of the bare node are notified of a deletion.
    """

    payload: bytes
    deleted: bool = False
    notify: bool = False
    sync_id: str = ""
    conflicts: int = 0
    sync: bytes = b""


def next_key(last_us: int, wanted_us: int) -> int:
    """The next ordering key: unique and strictly growing, also when the clock steps back (A-31, A-38)."""
    return max(wanted_us, last_us + 1)


def write_state(
    tx: WriteTx,
    context: Context,
    node: Node,
    existing: Item | None,
    item_id: str,
    state: ItemState,
    publisher: str,
    *,
    created_us: int | None = None,
) -> Item:
    """Stores a state of an item, a new one where `existing` is None.

    `created_us` is the created key to give to a new item, if it is free and not in the future.
    """
    modified_us = next_key(node.last_modified_us, context.now_us)
    context.changed.add(node.node_no)
    sync_id = "" if state.sync_id == item_id else state.sync_id
    if existing is None:
        latest_key_us = modified_us if created_us is None else min(created_us, modified_us)
        created_us = next_key(node.last_created_us, latest_key_us)
        tx.set_keys(node.node_no, modified_us, created_us)
        item = Item(
            0,
            item_id,
            created_us,
            modified_us,
            state.payload,
            publisher,
            state.deleted,
            notify=state.notify,
            total=node.total + 1,
            live=node.live + (not state.deleted),
            sync_id=sync_id,
            conflicts=state.conflicts,
            sync=state.sync,
        )
        return tx.put_item(node.node_no, item)
    tx.set_keys(node.node_no, modified_us, node.last_created_us)
    item = existing._replace(
        modified_us=modified_us,
        payload=state.payload,
        publisher=publisher,
        deleted=state.deleted,
        revision=existing.revision + 1,
        notify=state.notify,
        total=node.total,
        live=node.live + existing.deleted - state.deleted,
        sync_id=sync_id,
        conflicts=state.conflicts,
        sync=state.sync,
    )
    return tx.put_item(node.node_no, item)

"""Writes items: a new state gets new ordering keys, and the item stores the counts of the feed after the change.

Keys are unique and strictly growing per feed and order, so commit order equals cursor order (A-31, A-38). Every change
that a reader of a running service can see passes `write_state`.
"""

from functools import partial
from typing import NamedTuple

from smartfeeds.core.attachment_names import AttachmentTarget, attachment_names, summary_name
from smartfeeds.core.model import Item, Node, NodeEvent, NodeState
from smartfeeds.core.options import SSE
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import tombstone
from smartfeeds.service.context import Context, governor_of
from smartfeeds.service.requests import EmptyResult, ItemPrecondition
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import WriteTx

CHUNK = 100  # attachment nodes that one transaction deletes
REAPED = 500  # rows of a deleted node that one transaction removes


class ItemState(NamedTuple):
    """The new state of an item. The payload of a deleted item is its tombstone with the mark.

    `notify` says whether subscribers of the bare node are notified of a deletion.
    """

    payload: bytes
    deleted: bool = False
    notify: bool = False
    sync_id: str = ""
    conflicts: int = 0
    sync: bytes = b""


def item_tag(item: Item) -> str:
    """Returns a tag that changes with every change of an item, and with nothing else. No other item of the node has it.

    A tombstone has one too, and a node that is made anew gives out others.
    """
    return f"{item.revision}.{item.modified_us}"


def check_expected(item: Item | None, expected: ItemPrecondition | None) -> None:
    """Raises FeedError(PRECONDITION_NOT_MET) where the item is not as expected. What may be known is checked before."""
    if expected is None:
        return
    if expected.tags is not None:
        met = item is not None and item_tag(item) in expected.tags
    else:
        met = expected.absent == (item is None or item.deleted)
    if not met:
        raise FeedError(Condition.PRECONDITION_NOT_MET, "the item has changed meanwhile")


def next_key(last_us: int, wanted_us: int) -> int:
    """The next ordering key: unique and strictly growing, also when the clock steps back (A-31, A-38)."""
    return wanted_us if wanted_us > last_us else last_us + 1


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

    `created_us` is the created key to give to a new item, if it is free and not in the future. The attachments of an
    item go with it, whatever deletes it.
    """
    modified_us = next_key(node.last_modified_us, context.now_us)
    if node.options.sync_dialect == SSE:
        # The bounds of SSE have whole seconds and grow with each change (SSE-008, A-86), so the keys do, too.
        modified_us = -(-modified_us // US_PER_S) * US_PER_S
    context.changed.add(node.node_no)
    sync_id = "" if state.sync_id == item_id else state.sync_id
    if existing is None:
        latest_key_us = modified_us if created_us is None else min(created_us, modified_us)
        created_us = next_key(node.last_created_us, latest_key_us)
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
        return tx.put_item(node.node_no, item, (modified_us, created_us))
    if state.deleted and not existing.deleted:
        _remove_attachments(tx, context, AttachmentTarget(context.policy.domain, node.name, item_id))
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
    return tx.put_item(node.node_no, item, (modified_us, node.last_created_us))


def remove_item(tx: WriteTx, context: Context, node: Node, item: Item, *, notify: bool) -> Node:
    """Replaces an item of a generic node by a tombstone. Returns the node after the change.

    With `notify` the subscribers of the bare node are notified; followers of views receive every tombstone.
    """
    payload = tombstone(item.id, next_key(node.last_modified_us, context.now_us), item.payload)
    state = ItemState(payload, deleted=True, notify=notify)
    gone = write_state(tx, context, node, item, item.id, state, item.publisher)
    return node._replace(last_modified_us=gone.modified_us, live=gone.live)


def _remove_attachments(tx: WriteTx, context: Context, target: AttachmentTarget) -> None:
    node = tx.lock(target.name)
    if node is not None:
        retire(tx, context, node)
        remove_summary(tx, context, target)


def remove_summary(tx: WriteTx, context: Context, target: AttachmentTarget) -> None:
    """Removes the summary of the attachments of an item (XEP-0470 4.5)."""
    node = tx.lock(summary_name(target.node))
    item = None if node is None else tx.item(node.node_no, target.item_id)
    if node is not None and item is not None and not item.deleted:
        remove_item(tx, context, node, item, notify=True)


def retire(tx: WriteTx, context: Context, node: Node, redirect: str = "") -> None:
    """Frees the name of a node, and notifies its subscribers as its options say. Its rows are removed later."""
    if node.options.notify_delete and node.state is not NodeState.DELETED:
        tx.add_event(NodeEvent(0, node.node_no, node.last_modified_us, "delete", redirect))
    tx.retire_node(node.node_no)
    for note_removal in context.hooks.node_removed:
        note_removal(tx, context, node)
    context.changed.add(node.node_no)


def reap(tx: WriteTx, context: Context, node: Node, after: str = "") -> EmptyResult | MoreSteps[EmptyResult]:
    """Removes the rows of a deleted node, and first the attachments to its items, a chunk in each step.

    The row of the node goes last, so a process that starts after a crash continues here. A new node of the same name
    may have attachments already: these stay.
    """
    first, end = attachment_names(context.policy.domain, node.name)
    chunk = tx.nodes(after or first, CHUNK, before=end)
    summary = None if after else tx.node(summary_name(node.name))
    for each in chunk if summary is None else [summary, *chunk]:
        if governor_of(tx, context, each) is None:
            retire(tx, context, each)
    if not chunk and tx.reap(node.node_no, REAPED):
        return EmptyResult()
    return MoreSteps(partial(reap, node=node, after=chunk[-1].name if chunk else after or first))

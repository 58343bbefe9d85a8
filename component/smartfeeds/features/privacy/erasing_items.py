"""Erases a person from items: their own become tombstones that win everywhere, others lose the name in their history.

`sync.erasure` defines the marks. The keys of changed items grow, so that every follower receives the change.

Ids of items of the person name it also where the address is joined to other text, as in `post_bob@example.org`. In ids
of others this may be another address, so it stays (`Person.may_be_in`).
"""

from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.person import Person
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import digest_id, id_and_updated, remains, tombstone
from smartfeeds.service.context import Context
from smartfeeds.service.item_writes import ItemState, next_key, write_state
from smartfeeds.service.syncing import endpoint, read_shared, state_of
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.erasure import erased_version, is_erased, without_author
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect, in_order
from smartfeeds.sync.record import Edit, Version

NOBODY = ""  # the publisher of an erased item


def belongs_to(context: Context, node: Node, item: Item, person: Person) -> bool:
    """Returns whether the present version of an item is the person's: published here, or merged from elsewhere."""
    if item.publisher == person.jid:
        return True
    return (
        node.kind is NodeKind.FEED and person.is_in(item.sync or b"") and person.is_endpoint(_top(context, node, item))
    )


def _top(context: Context, node: Node, item: Item) -> str:
    return read_shared(context, node, item).version.top.by


def erase_item(tx: WriteTx, context: Context, node: Node, item: Item, person: Person) -> Item:
    """Replaces an item of a person by a tombstone without content, publisher, conflicts and names (OPS-021)."""
    if node.kind is not NodeKind.FEED:
        return _erase_generic(tx, context, node, item, person)
    service = endpoint(context.policy.domain, "")
    shared = read_shared(context, node, item)
    version = without_author(shared.version, person.is_endpoint, service)
    atom_id, _ = id_and_updated(item.payload)
    former = b"" if person.may_be_in(atom_id or item.id) else item.payload
    item_id = erased_id(node, item) if person.may_be_in(item.id) else item.id
    payload = remains(item_id, next_key(node.last_modified_us, context.now_us), former)
    erased = erased_version(version, Edit(context.now_us, service), payload)
    state = state_of(shared, erased, notify=node.options.notify_retract)
    return _store(tx, context, node, item, state, NOBODY)


def _erase_generic(tx: WriteTx, context: Context, node: Node, item: Item, person: Person) -> Item:
    item_id = erased_id(node, item) if person.may_be_in(item.id) else item.id
    payload = tombstone(item_id, next_key(node.last_modified_us, context.now_us), b"")
    notify = node.options.notify_retract
    stored = _store(tx, context, node, item, ItemState(payload, deleted=True, notify=notify), NOBODY)
    # Features keep data of the items of generic nodes, such as attachments.
    for note in context.hooks.item_erased:
        note(tx, context, node, item)
    return stored


def strip_item(tx: WriteTx, context: Context, node: Node, item: Item, person: Person, *, indexed: bool) -> Item | None:
    """Removes a person from the history and the conflicts of an item of somebody else (OPS-023). Returns the new state,
    or None if nothing changes. `indexed`: the filter index knows a former version as the person's.
    """
    if node.kind is not NodeKind.FEED:
        if not indexed:
            return None
        return _store(tx, context, node, item, ItemState(item.payload, item.deleted, item.notify), item.publisher)
    shared = read_shared(context, node, item)
    version = _stripped(context, shared.dialect, shared.version, person)
    if version == shared.version and not indexed:
        return None
    state = state_of(shared, version, notify=item.notify)
    return _store(tx, context, node, item, state, item.publisher)


def _stripped(context: Context, dialect: Dialect, version: Version, person: Person) -> Version:
    service = endpoint(context.policy.domain, "")
    nameless = without_author(version, person.is_endpoint, service)
    own = [
        after
        for before, after in zip(version.conflicts, nameless.conflicts, strict=True)
        if person.is_endpoint(before.top.by)
    ]
    if own and dialect is FEEDSYNC:
        try:
            # A resolution: other services drop the conflict, too.
            return dialect.resolve(
                nameless, Edit(context.now_us, service, shared=True), own, deleted=version.deleted.on
            )
        except FeedError:  # the item was changed too often for another change
            pass
    return nameless._replace(conflicts=in_order(conflict for conflict in nameless.conflicts if conflict not in own))


def rename_erased(tx: WriteTx, context: Context, node: Node, item: Item, person: Person) -> bool:
    """Replaces the ids of a tombstone that name a person (OPS-022). Returns False if they name nobody."""
    ids = f"{item.id} {item.sync_id}"
    if not item.deleted or not person.may_be_in(ids):
        return False
    names = person.may_be_in if _erased_here(context, node, item) else person.is_in
    if not names(ids):
        return False
    item_id = erased_id(node, item) if names(item.id) else item.id
    if node.kind is not NodeKind.FEED:
        tx.rename_item(node.node_no, item.item_no, item_id, "")
        return True
    shared = read_shared(context, node, item)
    sync_id = item_id if names(shared.version.sync_id) else shared.version.sync_id
    state = state_of(shared, shared.version._replace(sync_id=sync_id))
    tx.rename_item(node.node_no, item.item_no, item_id, "" if sync_id == item_id else sync_id)
    tx.replace_content(item.item_no, state.payload, state.sync)
    return True


def _erased_here(context: Context, node: Node, item: Item) -> bool:
    """Returns whether an erasure of this service has made a tombstone: nobody knows any more whose item it was."""
    if item.publisher != NOBODY or node.kind is not NodeKind.FEED:
        return item.publisher == NOBODY
    version = read_shared(context, node, item).version
    return is_erased(version) and version.top.by == endpoint(context.policy.domain, "")


def erased_id(node: Node, item: Item) -> str:
    """Returns the id that an item gets in place of one that names a person."""
    return digest_id("erased", str(node.node_no), str(item.item_no))


def _store(tx: WriteTx, context: Context, node: Node, item: Item, state: ItemState, publisher: str) -> Item:
    stored = write_state(tx, context, node, item, item.id, state, publisher)
    tx.forget_versions(node.node_no, stored)
    return stored

"""Merges versions of other services with the local items (FeedSync 3.3; A-43, A-50, A-59).

A merge is a modification if and only if the stored item changes. The item then gets a new ordering key and is pushed
once. The item id of another service may differ from the local one; both services share the sync id (A-154).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.model import MAX_ID_BYTES, MAX_WRITTEN_BYTES, Item, Node
from smartfeeds.core.text import wire_bytes
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import ID, UPDATED, derived_id, digest_id, named_by, stripped, with_child
from smartfeeds.formats.payload import Payload, carried, complete_entry, means_the_same, payload_of
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.drafts import LEFT_FAULT
from smartfeeds.service.item_writes import ItemState, write_state
from smartfeeds.service.syncing import is_own_endpoint, read_shared, state_of
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.arriving import passed_through
from smartfeeds.sync.copies import copied_counter, is_unbound_copy, settle_copy
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.erasure import AUTHOR, erased_mark, share_marks, without_erased
from smartfeeds.sync.feedsync import FEEDSYNC, known_sequences
from smartfeeds.sync.markup import SyncItem, without_sync
from smartfeeds.sync.merging import MergedVersion, Outcome, difference, merge
from smartfeeds.sync.record import MAX_HISTORY, MAX_NUMBER, Version

# A version of another service must leave room for local changes: counters and history records have maxima.
MAX_COUNTER = MAX_NUMBER - 1_000_000
MAX_ENDPOINTS = MAX_HISTORY // 2


@dataclass(frozen=True, slots=True)
class IncomingItem:
    """A version of another service. A new item gets the id `item_id`, or its sync id if `item_id` is no valid id.

    `form` is the form in which the version came; here its payload is an entry in any case. `names` are other ids of the
    item in documents: a plain copy of it that has one of them becomes this item. With None no copy is searched.
    """

    item_id: str
    sync_item: SyncItem
    form: FeedFormat = FeedFormat.ATOM
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MergedItem:
    """The item after a merge and the outcome. `notes` are for people."""

    item: Item
    outcome: Outcome
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result for one of several items. `outcome` is None if the item was refused; `reason` says why."""

    sync_id: str
    item_id: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()


def merge_items(
    tx: WriteTx, context: Context, name: str, publisher: str, items: Sequence[IncomingItem], *, own: bool = False
) -> tuple[MergeResult, ...]:
    """Merges versions into a feed, one after the other. A refused version changes nothing and stops no other (A-52).

    This function checks no rights: the caller must have done so. `publisher` becomes the publisher of each item whose
    content is replaced. Raises FeedError if the feed does not exist.
    """
    results = []
    for incoming in items:
        node = feed_locked(tx, name)
        sync_id = incoming.sync_item.version.sync_id
        try:
            merged = merge_item(tx, context, node, incoming, publisher, own=own)
        except FeedError as error:
            results.append(MergeResult(sync_id, reason=error.text or error.condition.value))
        else:
            results.append(MergeResult(sync_id, merged.item.id, merged.outcome, notes=merged.notes))
    return tuple(results)


def merge_item(
    tx: WriteTx, context: Context, node: Node, incoming: IncomingItem, publisher: str, *, own: bool = False
) -> MergedItem:
    """Merges one version into a feed.

    With `own` its history may contain local changes that this database does not have (after a restore from a backup);
    otherwise such a version is refused as forged. Raises FeedError for a refused version, which changes nothing.
    """
    version = incoming.sync_item.version.each(_normal_version)
    sync_item = incoming.sync_item._replace(version=version)
    _check_bounds(node, version)
    existing = tx.item_of_sync(node.node_no, version.sync_id)
    # The version of another service ends the damage of the one here.
    here = read_shared(context, node, existing) if existing and not existing.damaged else None
    local = None if here is None else here.version
    settled = _settle(tx, context, node, existing, local, sync_item, incoming, publisher)
    if settled is not None:
        return settled
    if here is not None and here.dialect is not sync_item.dialect:
        raise FeedError(
            Condition.INVALID_PAYLOAD,
            f"the item has {here.dialect.name} data here, the version has {sync_item.dialect.name} data",
        )
    if local is not None and local.noconflicts.on is not version.noconflicts.on:
        raise FeedError(Condition.POLICY_VIOLATION, "it differs in noconflicts from the item here: that never changes")
    if local is not None and existing is not None:
        # Before the check, because an edit that was made without the erasure has records that this service erased.
        rest = without_erased(local, share_marks(local, version)[1])
        if rest is None:
            return MergedItem(existing, Outcome.UNCHANGED, sync_item.notes)
        version = rest
        sync_item = sync_item._replace(version=version)
    if not own:
        _check_own(context, local, sync_item)
    if local is not None:
        version = _as_written(context, version, local, incoming.form)
        if not own:
            _check_content(context, local, version)
    merged = merge(sync_item.dialect, local, version)
    notes = sync_item.notes + merged.notes
    if existing is not None and merged.outcome is Outcome.UNCHANGED:
        return MergedItem(existing, merged.outcome, notes)
    return MergedItem(
        _store(tx, context, node, existing, here or sync_item, merged, incoming, publisher), merged.outcome, notes
    )


def _settle(
    tx: WriteTx,
    context: Context,
    node: Node,
    existing: Item | None,
    local: Version | None,
    sync_item: SyncItem,
    incoming: IncomingItem,
    publisher: str,
) -> MergedItem | None:
    """Stores a version of which the node has a plain copy. Returns None if an ordinary merge must decide."""
    if existing is None:
        existing = _plain_copy(tx, context, node, incoming)
        local = None if existing is None else read_shared(context, node, existing).version
    if existing is None or local is None:
        return None
    version = settle_copy(sync_item.dialect, local, sync_item.version, partial(is_own_endpoint, context.policy.domain))
    if version is None:
        return None
    outcome = difference(local, version)
    if outcome is not Outcome.UNCHANGED:
        # The item takes over the dialect of the version.
        form, merged = sync_item._replace(version=local), MergedVersion(version, outcome)
        existing = _store(tx, context, node, existing, form, merged, incoming, publisher)
    return MergedItem(existing, outcome, sync_item.notes)


def _plain_copy(tx: WriteTx, context: Context, node: Node, incoming: IncomingItem) -> Item | None:
    """Returns the item that came here without sync data, by an import or from a source, and is the one of a version."""
    if incoming.names is None:
        return None
    atom_id = (payload_of(incoming.sync_item.version.payload).root.findtext(ID) or "").strip()
    ids = dict.fromkeys(name for name in (incoming.item_id, *incoming.names, atom_id, named_by(atom_id)) if name)
    addresses = [origin.first_address for origin in context.hooks.origins_of(tx, node.name) if origin.first_address]
    ids |= dict.fromkeys(digest_id(address, item_id) for address in addresses for item_id in ids)
    is_own = partial(is_own_endpoint, context.policy.domain)
    items = {item.id: item for item in tx.items(node.node_no, list(ids))}
    copies = (items[item_id] for item_id in ids if item_id in items and not items[item_id].damaged)
    return next((copy for copy in copies if is_unbound_copy(read_shared(context, node, copy).version, is_own)), None)


def _store(
    tx: WriteTx,
    context: Context,
    node: Node,
    existing: Item | None,
    form: SyncItem,
    merged: MergedVersion,
    incoming: IncomingItem,
    publisher: str,
) -> Item:
    """Stores a merged item. `form` is the former item or the new one; it has the dialect and the namespace."""
    version = merged.version
    state = state_of(form, version, notify=node.options.notify_retract)
    _check_merged(version, state)
    if existing is not None:
        if existing.deleted == state.deleted and form.version.payload == version.payload:
            publisher = existing.publisher
            state = state._replace(notify=existing.notify)
        return write_state(tx, context, node, existing, existing.id, state, publisher)
    item_id = incoming.item_id if 0 < len(incoming.item_id.encode()) <= MAX_ID_BYTES else version.sync_id
    if tx.item(node.node_no, item_id) is not None:
        item_id = context.new_id()
    # The oldest record of the history has the date of creation.
    times_us = [record.when_us for record in version.history if record.when_us is not None]
    created_us = min(times_us, default=context.now_us)
    return write_state(tx, context, node, None, item_id, state, publisher, created_us=created_us)


def _normal_version(version: Version) -> Version:
    """Returns a version in the form that all services store, so that they end with the same bytes (A-50).

    Entries are complete; deleted entries have no content. The result depends on the version alone.
    """
    payload = payload_of(version.payload)
    try:
        shape = payload.shape
    except FeedError:
        raise FeedError(Condition.INVALID_PAYLOAD, "a version of the item is no XML element of its own") from None
    if not shape.entry:
        raise FeedError(Condition.INVALID_PAYLOAD, "items of a feed are Atom entries")
    if shape.left:
        raise FeedError(Condition.INVALID_PAYLOAD, LEFT_FAULT)
    payload = carried(without_sync(payload))
    payload.check_limits()
    when_us = version.top.when_us or 0
    if not version.deleted.on:
        return version._replace(payload=complete_entry(payload, version.sync_id, when_us))
    atom_id = (payload.root.findtext(ID) or "").strip() or derived_id(version.sync_id)
    updated = (payload.root.findtext(UPDATED) or "").strip()
    if parse_datetime(updated) is None:
        updated = format_datetime(when_us)
    return version._replace(payload=stripped(atom_id, updated))


def _as_written(context: Context, version: Version, here: Version, form: FeedFormat) -> Version:
    """Returns the version with the local bytes if it is the local version in another spelling: with prefixes that a
    server has rewritten (A-59), or as `form` represents it.

    Otherwise an item that comes back to its first service would change there. RSS and OPML cannot represent every
    entry, and programs write them anew, so under a change that was made here only the content here counts.
    """

    def as_written(one: Version) -> Version:
        for local in here.versions:
            if local.key != one.key:
                continue
            if means_the_same(local.payload, one.payload):
                return one._replace(payload=local.payload)
            if form is FeedFormat.ATOM or local.deleted.on is not one.deleted.on:
                continue
            returned = _normal_version(local._replace(payload=passed_through(local, form), conflicts=()))
            if is_own_endpoint(context.policy.domain, one.top.by) or means_the_same(returned.payload, one.payload):
                return one._replace(payload=local.payload, extra=local.extra)
        return one

    return version.each(as_written)


def _check_bounds(node: Node, version: Version) -> None:
    """Raises FeedError if a version leaves no room for local changes or is larger than the feed allows (A-55)."""
    limit_bytes = node.options.max_payload_size
    versions = version.versions
    if any(len(part.payload) > limit_bytes or wire_bytes(part.payload) > MAX_WRITTEN_BYTES for part in versions):
        raise FeedError(
            Condition.PAYLOAD_TOO_BIG, f"a version of the item is over the limit of this feed, {limit_bytes}"
        )
    numbers = [part.counter for part in versions] + [record.sequence for record in version.records]
    if max(numbers) > MAX_COUNTER:
        raise FeedError(
            Condition.POLICY_VIOLATION, f"it counts changes above {MAX_COUNTER}, so that few more could be made"
        )


def _check_merged(version: Version, state: ItemState) -> None:
    """Raises FeedError if the merged item has too many endpoints to be resolved, or is too large to be shown."""
    endpoints = {record.by for record in version.records}
    nameless = sum(not record.by for record in version.records)
    if len(endpoints) + nameless > MAX_ENDPOINTS:
        raise FeedError(Condition.POLICY_VIOLATION, f"the item would have more than {MAX_ENDPOINTS} endpoints")
    Payload(with_child(state.payload, state.sync)).check_limits()


def _check_content(context: Context, here: Version, incoming: Version) -> None:
    """Raises FeedError(POLICY_VIOLATION) if a version has the record of a local change but other content (A-61).

    It would appear as the text of the local author. For changes of other services the rank decides (A-43).
    """
    domain = context.policy.domain
    ours = {part.top: part for part in here.versions if is_own_endpoint(domain, part.top.by)}
    for part in incoming.versions:
        local = ours.get(part.top)
        if local is not None and (local.payload, local.deleted.on) != (part.payload, part.deleted.on):
            raise FeedError(
                Condition.POLICY_VIOLATION,
                f"it has other content under change {part.top.sequence} by {part.top.by}, made here",
            )


def _check_own(context: Context, here: Version | None, item: SyncItem) -> None:
    """Raises FeedError(POLICY_VIOLATION) if a history contains a local change that was never made (A-61).

    SSE and `noconflicts` drop the history of losers, so there the check is not possible.
    """
    version = item.version
    if item.dialect is not FEEDSYNC or version.noconflicts.on or (here is not None and here.noconflicts.on):
        return
    domain = context.policy.domain
    sequences = {} if here is None else known_sequences(here.records)
    nameless = set() if here is None else {record.sequence for record in here.records if erased_mark(record) == AUTHOR}
    # A copy that was made here is known by its mark, also after it has become the item that was copied. The newest
    # record of a version says whose content it has, so there the mark proves nothing.
    tops = {part.top for part in version.versions}
    for record in version.records:
        if copied_counter(record) is not None and record not in tops:
            continue
        if record.by and record.sequence > sequences.get(record.by, 0) and is_own_endpoint(domain, record.by):
            raise FeedError(
                Condition.POLICY_VIOLATION,
                f"its history has change {record.sequence} by {record.by}, of this service, which did not make it",
            )
        if record.sequence not in nameless and erased_mark(record) == AUTHOR and is_own_endpoint(domain, record.by):
            raise FeedError(
                Condition.POLICY_VIOLATION,
                f"its history has no author for change {record.sequence}, of this service, which has the author",
            )

"""Versions from elsewhere, merged with the items that are here (FeedSync 3.3; A-43, A-50, A-59).

A merge is a modification if and only if the stored item changed: then it gets a new ordering key and is pushed once.
What another service calls its item may differ from its id here; the sync id is what they share (A-154).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smartfeeds.core.model import MAX_ID_BYTES, MAX_WRITTEN_BYTES, Item, Node
from smartfeeds.core.text import wire_bytes
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import ID, UPDATED, derived_id, stripped, with_child
from smartfeeds.formats.payload import Payload, carried, complete_entry, means_the_same, payload_of
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.drafts import LEFT_FAULT
from smartfeeds.service.items import ItemState, write_state
from smartfeeds.service.syncing import is_own_endpoint, read_shared, state_of
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import SyncItem, without_sync
from smartfeeds.sync.merging import MergedVersion, Outcome, merge
from smartfeeds.sync.record import MAX_HISTORY, MAX_NUMBER, Version

# What comes from elsewhere leaves this much room for changes made here.
MAX_COUNTER = MAX_NUMBER - 1_000_000
MAX_ENDPOINTS = MAX_HISTORY // 2


@dataclass(frozen=True, slots=True)
class IncomingItem:
    """A version from elsewhere. `item_id` is what a new item is called here; as its sync id where it cannot be one."""

    item_id: str
    found: SyncItem


@dataclass(frozen=True, slots=True)
class MergedItem:
    """What became of an item. `notes` are for people."""

    item: Item
    outcome: Outcome
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What became of one of many; `outcome` is None where it was refused, for the `reason`."""

    sync_id: str
    item_id: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()


def merge_items(
    tx: WriteTx, context: Context, name: str, publisher: str, items: Sequence[IncomingItem], *, own: bool = False
) -> tuple[MergeResult, ...]:
    """Merges versions into a feed, one after the other; one that is refused changes nothing, the rest goes on (A-52).

    Whoever may call this is trusted with the feed. `publisher` becomes that of the items whose content is replaced.
    Raises FeedError where there is no such feed.
    """
    done = []
    for incoming in items:
        node = feed_locked(tx, name)
        sync_id = incoming.found.version.sync_id
        try:
            merged = merge_item(tx, context, node, incoming, publisher, own=own)
        except FeedError as error:
            done.append(MergeResult(sync_id, reason=error.text or error.condition.value))
        else:
            done.append(MergeResult(sync_id, merged.item.id, merged.outcome, notes=merged.notes))
    return tuple(done)


def merge_item(
    tx: WriteTx, context: Context, node: Node, incoming: IncomingItem, publisher: str, *, own: bool = False
) -> MergedItem:
    """Merges one version into a feed.

    With `own` it may tell of changes made here that are not known here (after a restore from a backup); without, that
    is a lie. Raises FeedError for a version that is refused: nothing is changed then.
    """
    found = _normal(incoming.found)
    version = found.version
    _check_bounds(node, version)
    existing = tx.item_of_sync(node.node_no, version.sync_id)
    here = read_shared(context, node, existing) if existing else None
    if here is not None and here.dialect is not found.dialect:
        raise FeedError(
            Condition.INVALID_PAYLOAD, f"the item is kept as {here.dialect.name} here, this is {found.dialect.name}"
        )
    if here is not None and here.version.noconflicts.on is not version.noconflicts.on:
        raise FeedError(Condition.POLICY_VIOLATION, "it differs in noconflicts from the item here: that never changes")
    if not own:
        _check_own(context, None if here is None else here.version, found)
    if here is not None:
        version = _as_written(version, here.version)
        if not own:
            _check_content(context, here.version, version)
    merged = merge(found.dialect, None if here is None else here.version, version)
    notes = found.notes + merged.notes
    if existing is not None and merged.outcome is Outcome.UNCHANGED:
        return MergedItem(existing, merged.outcome, notes)
    return MergedItem(
        _store(tx, context, node, existing, here or found, merged, incoming, publisher), merged.outcome, notes
    )


def _store(
    tx: WriteTx,
    context: Context,
    node: Node,
    existing: Item | None,
    as_found: SyncItem,
    merged: MergedVersion,
    incoming: IncomingItem,
    publisher: str,
) -> Item:
    version = merged.version
    told = node.options.notify_retract
    state = state_of(as_found, version, told=told)
    _check_merged(version, state)
    if existing is not None:
        if existing.deleted == state.deleted and as_found.version.payload == version.payload:
            publisher = existing.publisher
            state = replace(state, told=existing.notify)
        return write_state(tx, context, node, existing, existing.id, state, publisher)
    item_id = incoming.item_id if 0 < len(incoming.item_id.encode()) <= MAX_ID_BYTES else version.sync_id
    if tx.item(node.node_no, item_id) is not None:
        item_id = context.new_id()
    # Its first record says when it was made, as far as it is known.
    known = [stamp.when_us for stamp in version.history if stamp.when_us is not None]
    created_us = min(known, default=context.now_us)
    return write_state(tx, context, node, None, item_id, state, publisher, created_us=created_us)


def _normal(found: SyncItem) -> SyncItem:
    """Versions as all services keep them, so that they end with the same bytes: entries that are complete, and of
    deleted ones no more than that they are (A-50). It depends on the version alone."""
    version = found.version
    conflicts = tuple(_normal_version(one) for one in version.conflicts)
    return replace(found, version=replace(_normal_version(version), conflicts=conflicts))


def _normal_version(version: Version) -> Version:
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
        return replace(version, payload=complete_entry(payload, version.sync_id, when_us))
    atom_id = (payload.root.findtext(ID) or "").strip() or derived_id(version.sync_id)
    updated = (payload.root.findtext(UPDATED) or "").strip()
    if parse_datetime(updated) is None:
        updated = format_datetime(when_us)
    return replace(version, payload=stripped(atom_id, updated))


def _as_written(version: Version, here: Version) -> Version:
    """The version with the bytes of what is here, where servers on the way wrote other prefixes (A-59).

    Else a feed that comes back to where it was published would change it there.
    """
    known = here, *here.conflicts
    conflicts = tuple(_as_one_of(known, one) for one in version.conflicts)
    return replace(_as_one_of(known, version), conflicts=conflicts)


def _as_one_of(known: Sequence[Version], version: Version) -> Version:
    for one in known:
        if one.key == version.key and means_the_same(one.payload, version.payload):
            return replace(version, payload=one.payload)
    return version


def _check_bounds(node: Node, version: Version) -> None:
    """Raises FeedError for what would leave no room for changes made here, or is larger than the feed allows (A-55)."""
    limit_bytes = node.options.max_payload_size
    versions = (version, *version.conflicts)
    if any(len(one.payload) > limit_bytes or wire_bytes(one.payload) > MAX_WRITTEN_BYTES for one in versions):
        raise FeedError(
            Condition.PAYLOAD_TOO_BIG, f"a version of the item is over the limit of this feed, {limit_bytes}"
        )
    numbers = [one.counter for one in versions] + [stamp.sequence for one in versions for stamp in one.history]
    if max(numbers) > MAX_COUNTER:
        raise FeedError(
            Condition.POLICY_VIOLATION, f"it counts changes above {MAX_COUNTER}, so that few more could be made"
        )


def _check_merged(version: Version, state: ItemState) -> None:
    """Raises FeedError where the merged item could be neither settled nor shown any more."""
    endpoints = {stamp.by for one in (version, *version.conflicts) for stamp in one.history}
    nameless = sum(not stamp.by for one in (version, *version.conflicts) for stamp in one.history)
    if len(endpoints) + nameless > MAX_ENDPOINTS:
        raise FeedError(Condition.POLICY_VIOLATION, f"the item would have more than {MAX_ENDPOINTS} endpoints")
    Payload(with_child(state.payload, state.sync)).check_limits()


def _check_content(context: Context, here: Version, incoming: Version) -> None:
    """Raises FeedError(POLICY_VIOLATION) for other content under the very change that was made here (A-61): it would
    pass for its author's. Of twins that were made elsewhere the rank decides (A-43)."""
    domain = context.policy.domain
    ours = {one.top: one for one in (here, *here.conflicts) if is_own_endpoint(domain, one.top.by)}
    for one in (incoming, *incoming.conflicts):
        known = ours.get(one.top)
        if known is not None and (known.payload, known.deleted.on) != (one.payload, one.deleted.on):
            raise FeedError(
                Condition.POLICY_VIOLATION,
                f"it has other content under change {one.top.sequence} by {one.top.by}, made here",
            )


def _check_own(context: Context, here: Version | None, found: SyncItem) -> None:
    """Raises FeedError(POLICY_VIOLATION) where a history tells of a change made here that never was (A-61).

    Where losers leave no trace, as in SSE and with `noconflicts`, that cannot be told.
    """
    version = found.version
    if found.dialect is not FEEDSYNC or version.noconflicts.on or (here is not None and here.noconflicts.on):
        return
    domain = context.policy.domain
    known: dict[str, int] = {}
    for one in (here, *here.conflicts) if here is not None else ():
        for stamp in one.history:
            known[stamp.by] = max(stamp.sequence, known.get(stamp.by, 0))
    for one in (version, *version.conflicts):
        for stamp in one.history:
            if stamp.by and stamp.sequence > known.get(stamp.by, 0) and is_own_endpoint(domain, stamp.by):
                raise FeedError(
                    Condition.POLICY_VIOLATION,
                    f"it tells of change {stamp.sequence} by {stamp.by}, who is of this service and did not make it",
                )

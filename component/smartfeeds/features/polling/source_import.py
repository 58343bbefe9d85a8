"""Stores what a poll of a source or a push has brought (SRC-005, SRC-037, SRC-056, SRC-057, SRC-066 to SRC-080, WS-128
to WS-130)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.model import QUIET, Item, Node, NodeEvent
from smartfeeds.core.options import FormFields
from smartfeeds.features.polling import polls as polling
from smartfeeds.features.polling import push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.extensions import ImportSteps
from smartfeeds.features.polling.source import HostPause, Source, SourceState, publisher_of
from smartfeeds.features.polling.source_entries import (
    EntryKey,
    EntryPresence,
    SourceEntry,
    assign_items,
    is_version,
)
from smartfeeds.features.polling.source_items import SourceItem, entry_words, fitted
from smartfeeds.features.polling.source_push import PolledOffer, drop_pushes, follow_poll, settle_push
from smartfeeds.features.polling.subscription_lists import follow_list
from smartfeeds.formats.atom import derived_id, digest_id, id_and_updated
from smartfeeds.formats.distinct import EntryWords
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem
from smartfeeds.formats.paging import HISTORY_NS
from smartfeeds.formats.payload import Payload
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.importing import ImportCounts, describe_node, import_items, texts_of
from smartfeeds.service.item_writes import next_key
from smartfeeds.service.syncing import read_shared
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.copies import knows, origin_of
from smartfeeds.sync.markup import without_sync

# The entries of a source that are remembered. An entry takes about 300 bytes.
MAX_ENTRIES: Final = 10_000
_NO_PAYLOAD: Final = Payload(b"<entry/>")


@dataclass(frozen=True, slots=True)
class SourceContent:
    """The content of a poll or a push: items, oldest first, and the feed without items.

    `feed` is None for a push, which may leave out most of the feed and most items (WS-128). `listed` are the addresses
    in a subscription list.
    """

    feed: FeedDocument | None
    items: tuple[SourceItem, ...]
    listed: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether an item that is missing has been retracted (RFC 5005 section 2)."""
        return self.feed is not None and self.feed.paging.complete


@dataclass(frozen=True, slots=True)
class StoredPoll:
    """The result of a poll: the source before and after it, and what it changed in the node. `sharing` counts the
    other sources of the address that the source has moved to."""

    before: Source
    after: Source
    counts: ImportCounts
    sharing: int = 0


def store_poll(
    tx: WriteTx,
    context: Context,
    source_no: int,
    answer: polling.PollAnswer,
    chance: float,
    content: SourceContent | None = None,
    pause: HostPause | None = None,
    offer: PolledOffer | None = None,
) -> StoredPoll | None:
    """Stores the items of a poll and the progress of its source in one transaction (SRC-005, SRC-076).

    `content` is set if there was a new one, `pause` if the host is busy, `offer` if the service follows hubs. Returns
    None if the source was removed or paused meanwhile. Raises FeedError if the node cannot have the items.
    """
    source = source_rows.source(tx, source_no)
    if source is None or source.state is SourceState.PAUSED:
        return None
    news, quiet_us = list[ImportedItem](), source.progress.quiet_us
    counts = ImportCounts()
    for steps in context.hooks.of(ImportSteps):
        counts += steps.begin(tx, context, source)
    if content is not None and source.settings.is_list:
        answer = replace(answer, reason=follow_list(tx, context, source, content.listed))
    elif content is not None:
        # Before the import, which makes these items known.
        news = _news(tx, source, content.items) if offer is not None else news
        imported = _import(tx, context, source, content)
        counts, quiet_us = counts + imported.counts, imported.quiet_us or quiet_us
        answer = replace(answer, described=imported.described)
    after = polling.after_answer(source, answer, context.now_us, chance)
    after = replace(after, progress=replace(after.progress, quiet_us=quiet_us))
    follows = offer is not None and answer.kind in polling.GOOD and not source.settings.is_list
    if offer is not None and follows and after.settings.push:
        has_news = bool(counts.added or counts.changed or counts.deleted)
        times_us = [item.time_us for item in news]
        after = follow_poll(tx, context, after, offer, times_us, has_news=has_news, chance=chance)
    # Before `drop_pushes`, which reads and changes the stored source.
    source_rows.put(tx, after)
    if follows and not after.settings.push:
        drop_pushes(tx, context, after)
    if pause is not None:
        source_rows.put_host_pause(tx, pause)
    elif answer.kind in polling.GOOD and source_rows.host_pause(tx, source.host) is not None:
        source_rows.remove_host_pause(tx, source.host)
    sharing = len(source_rows.sources_at(tx, after.url)) - 1 if after.url != source.url else 0
    return StoredPoll(source, after, counts, sharing)


def store_push(
    tx: WriteTx,
    context: Context,
    push_no: int,
    items: Sequence[SourceItem],
    received_us: int | None,
    cursor: str,
) -> ImportCounts | None:
    """Stores the items of a push in the node of its source, and that it was stored, in one transaction.

    What the node says of the feed stays: a push may leave out most of it (WS-128). A version that is older than the
    stored one is left out, because hubs repeat deliveries late (WS-130). `received_us` is the time of the push, None
    for a pull that fills a gap before it. Returns None if the source was removed, paused or stopped meanwhile. Raises
    FeedError if the node cannot have the items.
    """
    push = push_rows.push(tx, push_no)
    source = None if push is None else source_rows.source(tx, push.source_no)
    settle_push(tx, context, push_no, received_us, cursor)
    if source is None or source.state in (SourceState.PAUSED, SourceState.STOPPED):
        return None
    return _import(tx, context, source, SourceContent(None, tuple(items))).counts


def _news(tx: ReadTx, source: Source, items: Sequence[SourceItem]) -> list[ImportedItem]:
    """The items that the source did not have yet, or that the node has in an older version."""
    node = tx.node(source.node)
    if node is None or source.good_us is None or not push_rows.pushes_of(tx, source.source_no):
        return []
    known = source_rows.entries_of(tx, source.source_no, [entry.key for entry in items])
    item_ids = {entry.key.identity: entry.item_id for entry in known}
    stored = {item.id: item for item in tx.items(node.node_no, list(item_ids.values()))}
    news = []
    for source_item in items:
        item_id = item_ids.get(source_item.item.id)
        existing = None if item_id is None else stored.get(item_id)
        if item_id is None or (existing is not None and _is_newer(source_item.item, existing)):
            news.append(source_item.item)
    return news


def _is_newer(item: ImportedItem, existing: Item) -> bool:
    known_us = _updated_us(existing)
    return known_us is not None and item.time_us is not None and item.time_us > known_us


def _is_older(item: ImportedItem, existing: Item | None) -> bool:
    """Whether an item is an older version of a stored one, by their times of change."""
    if existing is None or existing.deleted or item.updated_us is None:
        return False
    known_us = _updated_us(existing)
    return known_us is not None and item.updated_us < known_us


def _updated_us(item: Item) -> int | None:
    return id_and_updated(item.payload)[1]


@dataclass(frozen=True, slots=True)
class _Imported:
    """The result of an import: counts of changes, digests of the node's configuration, and the keys of items that are
    not announced."""

    counts: ImportCounts
    described: Mapping[str, str]
    quiet_us: tuple[int, int] | None


def _import(tx: WriteTx, context: Context, source: Source, content: SourceContent) -> _Imported:
    actor = publisher_of(source, context.policy.domain)
    texts: FormFields = {}
    if content.feed is not None:
        texts, _notes = texts_of(replace(content.feed, channel=_without_own(content.feed.channel)))
    _different, described = describe_node(tx, context, source.node, actor, texts, source.progress.described)
    node = feed_locked(tx, source.node)
    plan = _plan(tx, context, source, node, content)
    items = plan.items
    for steps in context.hooks.of(ImportSteps):
        items = steps.take(tx, context, source, node, items)
    silent = max(0, len(items) - source.settings.first_told) if source.good_us is None else 0
    quiet_us = None
    if silent:
        # The subscribers are told of the newest items alone; the next PreviousCursor shows them that there are more.
        at_us = next_key(node.last_modified_us, context.now_us)
        tx.set_keys(node.node_no, at_us, node.last_created_us)
        counts = import_items(tx, context, source.node, actor, items[:silent])
        quiet_us = at_us, feed_locked(tx, source.node).last_modified_us
        tx.add_event(NodeEvent(0, node.node_no, at_us, QUIET, str(quiet_us[1])))
        context.changed.add(node.node_no)
    else:
        counts = ImportCounts()
    counts += import_items(tx, context, source.node, actor, items[silent:])
    _remember(tx, source, plan.entries, {item_id for item_id, _ in counts.skipped})
    return _Imported(counts + ImportCounts(unchanged=plan.unchanged), described, quiet_us)


@dataclass(slots=True)
class _Plan:
    """The items to import, oldest first; the entries to store; and how many entries change nothing."""

    items: list[ImportedItem]
    entries: list[SourceEntry]
    unchanged: int = 0


def _plan(tx: WriteTx, context: Context, source: Source, node: Node, content: SourceContent) -> _Plan:
    """Compares a document with what is remembered of the source and with the node."""
    live = [entry for entry in content.items if not entry.item.deleted]
    known = source_rows.entries_of(tx, source.source_no, [entry.key for entry in content.items])
    held: dict[str, bytes] = {}
    for steps in context.hooks.of(ImportSteps):
        held.update(steps.held(tx, source.source_no))

    def words_of(entries: Sequence[SourceEntry]) -> list[EntryWords | None]:
        payloads = dict(held)
        items = tx.items(node.node_no, [entry.item_id for entry in entries])
        payloads |= {item.id: item.payload for item in items if not item.deleted}
        rows = [payloads.get(entry.item_id) for entry in entries]
        return [None if payload is None else entry_words(payload) for payload in rows]

    assigned = assign_items([source_item.entry for source_item in live], known, words_of, digest_id)
    existing = {item.id: item for item in tx.items(node.node_no, [entry.item_id for entry in assigned])}
    plan = _Plan([], [])
    undated: list[ImportedItem] = []
    for source_item, entry in zip(live, assigned, strict=True):
        stored = existing.get(entry.item_id)
        if _is_of_another(entry, source_item, stored):
            # The memory of the source was lost, and the link had another entry before.
            entry = replace(entry, item_id=digest_id(entry.item_id, *source_item.words[:2]))
            stored = tx.item(node.node_no, entry.item_id)
        after = replace(entry, digest=source_item.digest, presence=EntryPresence.PRESENT)
        # The node has the item with its sync data. A source does not change it: documents of strangers could name any.
        origin = origin_of(source_item.item.payload)
        shared = tx.item_of_sync(node.node_no, origin.sync_id) if origin.sync_id else None
        if shared is not None and shared.id != entry.item_id:
            plan.unchanged += 1
            continue
        is_back = entry.presence is EntryPresence.RETRACTED
        # An item that was retracted in the node (SRC-074), or that its limit has pushed out (SRC-075), stays away.
        is_gone = entry.entry_no > 0 and entry.item_id not in held if stored is None else stored.deleted
        is_away = not is_back and is_gone
        # Hubs repeat deliveries late: an older version is left out (WS-130).
        if content.feed is None and _is_older(source_item.item, stored):
            plan.unchanged += 1
            continue
        # A mirror of the same feed was faster.
        is_met = shared is not None and knows(read_shared(context, node, shared).version, origin)
        if is_away or is_met or (entry.digest == source_item.digest and not is_back):
            plan.unchanged += 1
        else:
            is_known = stored is not None and not stored.deleted
            atom_id = id_and_updated(stored.payload)[0] if stored is not None and is_known else ""
            if not is_known and entry.item_id != source_item.item.id:
                # Another entry has the id of the document, and readers would show one of the two.
                atom_id = derived_id(entry.item_id)
            created_us = stored.created_us if stored is not None and is_known else None
            plain = replace(source_item.item, id=entry.item_id, payload=without_sync(source_item.item.payload))
            item = fitted(plain, context.now_us, created_us, atom_id)
            # Their date is that of first sight, which is behind all others.
            (plan.items if item.made_us is not None else undated).append(item)
        if after not in known:
            plan.entries.append(after)
    plan.items += undated
    _plan_retractions(tx, source, content, assigned, known, plan)
    return plan


def _is_of_another(entry: SourceEntry, one: SourceItem, stored: Item | None) -> bool:
    """Whether a new entry without an id would overwrite the item of another entry."""
    if entry.entry_no or not one.item.by_link or stored is None or stored.deleted:
        return False
    return not is_version(one.words, entry_words(stored.payload))


def _plan_retractions(
    tx: ReadTx,
    source: Source,
    content: SourceContent,
    assigned: Sequence[SourceEntry],
    known: Sequence[SourceEntry],
    plan: _Plan,
) -> None:
    """Entries that the feed has retracted: by an at:deleted-entry (SRC-067), or by leaving them out of two complete
    documents in a row (SRC-066)."""
    present = {entry.entry_no for entry in assigned}
    deletions = {entry.item.id: entry.item for entry in content.items if entry.item.deleted}
    gone = [entry for entry in known if entry.key.identity in deletions and entry.entry_no not in present]
    # An item that a filter leaves out is not absent.
    if content.is_complete and assigned and not source.settings.only:
        absent = [entry for entry in source_rows.entries(tx, source.source_no) if entry.entry_no not in present]
        gone += [entry for entry in absent if entry.presence is EntryPresence.MISSED and entry not in gone]
        missed = [entry for entry in absent if entry.presence is EntryPresence.PRESENT and entry not in gone]
        plan.entries += [replace(entry, presence=EntryPresence.MISSED) for entry in missed]
    for entry in gone:
        if entry.presence is not EntryPresence.RETRACTED:
            plan.items.append(ImportedItem(entry.item_id, None, None, _NO_PAYLOAD, deleted=True))
            plan.entries.append(replace(entry, presence=EntryPresence.RETRACTED))


def _remember(tx: WriteTx, source: Source, entries: Sequence[SourceEntry], skipped: Collection[str]) -> None:
    """Stores entries, except those whose items the node could not have."""
    for entry in entries:
        if entry.item_id not in skipped:
            source_rows.put_entry(tx, source.source_no, entry)
    if any(not entry.entry_no for entry in entries):
        source_rows.trim_entries(tx, source.source_no, MAX_ENTRIES)


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The entries of a document that the source has stored. `is_first`: the source has none at all."""

    is_first: bool
    identities: frozenset[str]
    links: frozenset[str]

    def has(self, key: EntryKey) -> bool:
        """Whether an entry is known, perhaps under another id."""
        return key.identity in self.identities or (key.link != "" and key.link in self.links)


def known_keys(tx: ReadTx, _context: Context, source_no: int, keys: Sequence[EntryKey]) -> KnownKeys:
    """The parts of these keys that the source knows."""
    entries = source_rows.entries_of(tx, source_no, keys)
    identities = frozenset(entry.key.identity for entry in entries)
    return KnownKeys(
        not source_rows.has_entries(tx, source_no), identities, frozenset(entry.key.link for entry in entries)
    )


def _without_own(channel: Channel | None) -> Channel | None:
    """The data of a feed without what is true of its own server or document alone (SRC-080)."""
    if channel is None:
        return None
    extensions = tuple(data for data in channel.extensions if HISTORY_NS.encode() not in data)
    return replace(channel, hub="", cloud=None, ttl_min=None, skip_hours=(), skip_days=(), extensions=extensions)

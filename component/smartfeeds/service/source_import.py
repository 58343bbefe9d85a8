"""Stores what a poll of a source or a push has brought (SRC-005, SRC-037, SRC-057, SRC-074 to SRC-080, WS-128 to
WS-130)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smartfeeds.core import polling
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import QUIET, Item, NodeEvent
from smartfeeds.core.options import FormFields
from smartfeeds.core.sources import HostPause, Source, SourceState
from smartfeeds.formats.atom import id_and_updated
from smartfeeds.formats.items import FeedDocument, ImportedItem
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.importing import ImportCounts, describe_node, import_items, texts_of
from smartfeeds.service.items import next_key
from smartfeeds.service.source_push import PolledOffer, drop_pushes, follow_poll, settle_push
from smartfeeds.store.base import WriteTx


@dataclass(frozen=True, slots=True)
class PolledDocument:
    """What a poll has read: the feed without items, and its items, oldest first, as they are to be stored."""

    feed: FeedDocument
    items: tuple[ImportedItem, ...]


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
    answer: polling.Answer,
    chance: float,
    document: PolledDocument | None = None,
    pause: HostPause | None = None,
    offer: PolledOffer | None = None,
) -> StoredPoll | None:
    """Stores the items of a poll and the progress of its source in one transaction (SRC-005, SRC-076).

    `document` is set if there was a new one, `pause` if the host is busy, `offer` if the service follows hubs. Returns
    None if the source was removed or paused meanwhile. Raises FeedError if the node cannot have the items.
    """
    source = tx.source(source_no)
    if source is None or source.state is SourceState.PAUSED:
        return None
    counts, news = ImportCounts(), list[ImportedItem]()
    if document is not None:
        news = _news(tx, source, document.items) if offer is not None else news
        texts, _notes = texts_of(replace(document.feed, channel=_without_own(document.feed.channel)))
        counts, described = _import(tx, context, source, document.items, texts)
        answer = replace(answer, described=described)
    after = polling.after_answer(source, answer, context.now_us, chance)
    follows = offer is not None and answer.kind in polling.GOOD
    if offer is not None and follows and after.settings.push:
        has_news = bool(counts.added or counts.changed or counts.deleted)
        times_us = [item.time_us for item in news]
        after = follow_poll(tx, context, after, offer, times_us, has_news=has_news, chance=chance)
    tx.put_source(after)
    if follows and not after.settings.push:
        drop_pushes(tx, context, after)
    if pause is not None:
        tx.put_host_pause(pause)
    elif answer.kind in polling.GOOD and tx.host_pause(source.host) is not None:
        tx.remove_host_pause(source.host)
    sharing = len(tx.sources_at(after.url)) - 1 if after.url != source.url else 0
    return StoredPoll(source, after, counts, sharing)


def store_push(
    tx: WriteTx,
    context: Context,
    push_no: int,
    items: Sequence[ImportedItem],
    received_us: int | None,
    cursor: str,
) -> ImportCounts | None:
    """Stores the items of a push in the node of its source, and that it was stored, in one transaction.

    What the node says of the feed stays: a push may leave out most of it (WS-128). A version that is older than the
    stored one is left out, because hubs repeat deliveries late (WS-130). `received_us` is the time of the push, None
    for a pull that fills a gap before it. Returns None if the source was removed, paused or stopped meanwhile. Raises
    FeedError if the node cannot have the items.
    """
    push = tx.source_push(push_no)
    source = None if push is None else tx.source(push.source_no)
    settle_push(tx, context, push_no, received_us, cursor)
    if source is None or source.state in (SourceState.PAUSED, SourceState.STOPPED):
        return None
    node = tx.node(source.node)
    current = [item for item in items if node is None or not _is_older(item, tx.item(node.node_no, item.id))]
    return _import(tx, context, source, current, {})[0]


def _news(tx: WriteTx, source: Source, items: Sequence[ImportedItem]) -> list[ImportedItem]:
    """The items that the node does not have, or has in an older version."""
    node = tx.node(source.node)
    if node is None or source.good_us is None or not tx.source_pushes_of(source.source_no):
        return []
    known = ((item, tx.item(node.node_no, item.id)) for item in items)
    return [item for item, existing in known if existing is None or _is_newer(item, existing)]


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


def _import(
    tx: WriteTx, context: Context, source: Source, document_items: Sequence[ImportedItem], texts: FormFields
) -> tuple[ImportCounts, Mapping[str, str]]:
    actor = publisher_of(source, context.policy.domain)
    _different, described = describe_node(tx, context, source.node, actor, texts, source.progress.described)
    node = feed_locked(tx, source.node)
    # An item that was retracted in the node stays away (SRC-074).
    items = [item for item in document_items if not ((known := tx.item(node.node_no, item.id)) and known.deleted)]
    silent = max(0, len(items) - source.settings.first_told) if source.good_us is None else 0
    if not silent:
        return import_items(tx, context, source.node, actor, items), described
    # The subscribers are told of the newest items alone; the next PreviousCursor shows them that there are more.
    at_us = next_key(node.last_modified_us, context.now_us)
    tx.set_keys(node.node_no, at_us, node.last_created_us)
    counts = import_items(tx, context, source.node, actor, items[:silent])
    tx.add_event(NodeEvent(0, node.node_no, at_us, QUIET, str(feed_locked(tx, source.node).last_modified_us)))
    context.changed.add(node.node_no)
    return counts + import_items(tx, context, source.node, actor, items[silent:]), described


def publisher_of(source: Source, domain: str) -> Jid:
    """The address that publishes the items of a source (SRC-077)."""
    return parse_jid(source.settings.publisher or domain) or Jid("", domain)


def _without_own(channel: Channel | None) -> Channel | None:
    """The data of a feed without what is true of its own server alone (SRC-080)."""
    if channel is None:
        return None
    return replace(channel, hub="", cloud=None, ttl_min=None, skip_hours=(), skip_days=())

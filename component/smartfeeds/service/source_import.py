"""Stores what the poll of a source has brought (SRC-005, SRC-037, SRC-057, SRC-074 to SRC-080)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from smartfeeds.core import polling
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import QUIET, NodeEvent
from smartfeeds.core.sources import HostPause, Source, SourceState
from smartfeeds.formats.items import FeedDocument, ImportedItem
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.importing import ImportCounts, describe_node, import_items, texts_of
from smartfeeds.service.items import next_key
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
) -> StoredPoll | None:
    """Stores the items of a poll and the progress of its source in one transaction (SRC-005, SRC-076).

    `document` is set if there was a new one, `pause` if the host is busy. Returns None if the source was removed or
    paused meanwhile. Raises FeedError if the node cannot have the items.
    """
    source = tx.source(source_no)
    if source is None or source.state is SourceState.PAUSED:
        return None
    counts = ImportCounts()
    if document is not None:
        counts, described = _import(tx, context, source, document)
        answer = replace(answer, described=described)
    after = polling.after_answer(source, answer, context.now_us, chance)
    tx.put_source(after)
    if pause is not None:
        tx.put_host_pause(pause)
    elif answer.kind in polling.GOOD and tx.host_pause(source.host) is not None:
        tx.remove_host_pause(source.host)
    sharing = len(tx.sources_at(after.url)) - 1 if after.url != source.url else 0
    return StoredPoll(source, after, counts, sharing)


def _import(
    tx: WriteTx, context: Context, source: Source, document: PolledDocument
) -> tuple[ImportCounts, Mapping[str, str]]:
    actor = publisher_of(source, context.policy.domain)
    texts, _notes = texts_of(replace(document.feed, channel=_without_own(document.feed.channel)))
    _different, described = describe_node(tx, context, source.node, actor, texts, source.progress.described)
    node = feed_locked(tx, source.node)
    # An item that was retracted in the node stays away (SRC-074).
    items = [item for item in document.items if not ((known := tx.item(node.node_no, item.id)) and known.deleted)]
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

"""The documents that the hub delivers: the next items of a topic as a feed with cursors (SF-078 to SF-082, A-23).

A document is written once for all subscriptions that stand at the same mark (WS-070).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from smartfeeds.app.formats import FORMATS
from smartfeeds.core.model import Item, Mark, Node
from smartfeeds.core.urls import entry_path, hub_path
from smartfeeds.core.view import View
from smartfeeds.delivery.slices import newest_cursor, read_view_changes
from smartfeeds.features.callbacks.topics import Topic
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_details import head_of_node
from smartfeeds.formats.representation import ATOM_TYPE
from smartfeeds.formats.rss_channel import OwnCloud
from smartfeeds.service.context import Context
from smartfeeds.service.feed_pages import version_of
from smartfeeds.service.pulls import cursor_of
from smartfeeds.service.steps import IndexFirst
from smartfeeds.store.base import ReadTx

# Of one document (WS-058).
ITEMS = 100
DOCUMENT_BYTES = 1_000_000
# Subscriptions of one feed stand at few different marks, so a few documents serve nearly all of them.
DOCUMENTS = 16


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """The next changes of a topic, shown as a pull of it shows them.

    `items` are empty if none of the changes is in the view. `end` is the mark behind the changes, `more` says that
    others follow. `total` and the cursors are for the document.
    """

    node: Node
    topic: Topic
    items: tuple[Item, ...]
    end: Mark
    more: bool
    total: int | None = None
    previous_cursor: str = ""
    last_cursor: str = ""


@dataclass(frozen=True, slots=True)
class TopicDocument:
    """A document to deliver; `body` is empty if there is nothing to say. `end` and `more` are those of the batch."""

    end: Mark
    more: bool
    body: bytes = b""
    media_type: str = ATOM_TYPE
    links: str = ""


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Everything that a document depends on. `version` changes with every change of the feed."""

    node_no: int
    version: str
    topic: Topic
    mark: Mark


def key_of_document(node: Node, topic: Topic, mark: Mark) -> DocumentKey:
    """Returns the key of the next document behind a mark."""
    return DocumentKey(node.node_no, version_of(node), topic, mark)


def read_topic_batch(tx: ReadTx, context: Context, key: DocumentKey) -> TopicBatch | IndexFirst | None:
    """The next changes behind a mark, None if the feed was deleted meanwhile."""
    node = tx.node_by_no(key.node_no)
    if node is None:
        return None
    topic, mark, view = key.topic, key.mark, key.topic.view
    changes = read_view_changes(tx, context, node, view, mark, ITEMS, DOCUMENT_BYTES)
    if isinstance(changes, IndexFirst):
        return changes
    if not changes.items:
        return TopicBatch(node, topic, (), changes.end, changes.more)
    last = changes.items[-1]
    return TopicBatch(
        node,
        topic,
        changes.items,
        changes.end,
        changes.more,
        _total(tx, node, view, last),
        newest_cursor(tx, node, view, mark),
        cursor_of(tx, node.node_no, view.order, last),
    )


def _total(tx: ReadTx, node: Node, view: View, last: Item) -> int | None:
    """The number of items in a view. Each item stores the numbers of the views without filters."""
    if view.filtered:
        return tx.bounded_count(node.node_no, view)
    return last.total if view.smart else last.live


def write_topic(batch: TopicBatch, site_url: str, cloud: OwnCloud | None, now_us: int) -> TopicDocument:
    """The document of a batch. The feed's own elements are those of a pull of the topic (WS-057)."""
    if not batch.items:
        return TopicDocument(batch.end, batch.more)
    node, topic = batch.node, batch.topic
    base_url, topic_url, hub_url = (
        replace(topic, suffix="").url(site_url),
        topic.url(site_url),
        f"{site_url}{hub_path(node.name)}",
    )
    head = replace(
        head_of_node(node, base_url, f"{site_url}{entry_path(node.name)}", hub_url, cloud),
        updated_us=max(item.modified_us for item in batch.items),
        self_link=topic_url,
        total=batch.total,
        prev_cursor=batch.previous_cursor,
        last_cursor=batch.last_cursor,
    )
    links = f'<{hub_url}>; rel="hub", <{topic_url}>; rel="self"'
    if not topic.suffix or topic.view.sync:
        pieces = write_feed(head, batch.items, keys=False, whole=not topic.view.sync)
        return TopicDocument(batch.end, batch.more, b"".join(pieces), ATOM_TYPE, links)
    return _reader_document(batch, head, base_url, links, now_us)


def _reader_document(batch: TopicBatch, head: FeedHead, base_url: str, links: str, now_us: int) -> TopicDocument:
    """A document for feed readers, as they poll it."""
    writer = FORMATS[batch.topic.suffix]
    assert writer.representation is not None  # a topic has a suffix of `topics.TOPIC_SUFFIXES`
    job = FeedExport(replace(head, link=base_url, for_readers=True), batch.items, now_us)
    return TopicDocument(batch.end, batch.more, b"".join(writer.write(job)), writer.representation.media_type, links)


class DocumentDesk:
    """Writes each document once. `read` reads a batch; it is called for documents that are not known yet. `own_cloud`
    returns the cloud that they name."""

    def __init__(
        self,
        read: Callable[[DocumentKey], Awaitable[TopicBatch | None]],
        site_url: str,
        own_cloud: Callable[[], OwnCloud | None],
        clock: Callable[[], int],
    ) -> None:
        self._read = read
        self._site_url = site_url
        self._own_cloud = own_cloud
        self._clock = clock
        self._tasks: dict[DocumentKey, asyncio.Task[TopicDocument | None]] = {}
        self.written = 0

    async def document(self, key: DocumentKey) -> TopicDocument | None:
        """The document behind a mark, None if the feed was deleted. Raises StoreError."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._write(key), name="hub document")
            for old in list(self._tasks)[:-DOCUMENTS]:
                del self._tasks[old]
        try:
            # Other subscriptions at this mark wait for the same document.
            return await asyncio.shield(task)
        except BaseException:
            # A failure is not kept. A caller that was cancelled costs the others one document.
            self._tasks.pop(key, None)
            raise

    async def _write(self, key: DocumentKey) -> TopicDocument | None:
        batch = await self._read(key)
        if batch is None:
            return None
        self.written += 1
        # A document of a hundred items takes up to 100 ms, and the event loop must not wait.
        return await asyncio.to_thread(write_topic, batch, self._site_url, self._own_cloud(), self._clock())

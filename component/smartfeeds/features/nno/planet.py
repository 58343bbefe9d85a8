"""A planet: a node that the service fills with the newest entries of many feeds (ESS-011 to ESS-022).

Each round requests the ESS files, selects the N newest entries of all of them, and downloads only the feeds of entries
that it does not have. The README of this feature describes the steps and the reasons.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.consumers import Failure, next_failure
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument
from smartfeeds.errors import FeedError, SmartfeedsError
from smartfeeds.features.documents.ess import NnoEntry, read_nno, write_nno
from smartfeeds.features.nno.entries import Aggregator
from smartfeeds.features.nno.ess_files import Documents, EssSource, Puller, SourceFailure, source_failure
from smartfeeds.features.nno.results import FullEntry
from smartfeeds.features.nno.settings import NnoSettings
from smartfeeds.features.polling.source_items import with_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem
from smartfeeds.net.fetch import FetchError, HttpClient, display_url
from smartfeeds.service.context import Context
from smartfeeds.service.feed_pages import outline_reader
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.importing import ImportCounts, import_document
from smartfeeds.store.base import ReadTx, WriteTx

LONGEST_PAUSE_S: Final = 86_400.0  # after failures in a row, of a round or of one address
AHEAD_S: Final = 86_400  # a feed whose clock is further ahead would have the newest entries for ever

_log = structlog.get_logger()


def ess_reader(node: str) -> str:
    """The reader of the ESS files of an `[[nno]]` section."""
    return f"ess of {node}"


def feeds_reader(node: str) -> str:
    """The reader of the feeds that an `[[nno]]` section finds in ESS files."""
    return f"feeds of {node}"


@dataclass(frozen=True, slots=True)
class PlanetRound:
    """The result of a round. `downloads` counts requested feeds. `failed` has the addresses that could not be read."""

    published: ImportCounts = field(default_factory=ImportCounts)
    downloads: int = 0
    failed: dict[str, SourceFailure] = field(default_factory=dict)


class Planet:
    """Fills one node with the newest entries of other feeds."""

    def __init__(self, settings: NnoSettings, service: FeedService, fetch: HttpClient, tools: SourceTools) -> None:
        self._settings = settings
        domain = service.policy.domain
        self._owner = parse_jid(settings.owner or domain) or Jid("", domain)
        self._service = service
        self._fetch = fetch
        self._tools = tools
        self._backoff = Backoff(settings.every_s, max(settings.every_s, LONGEST_PAUSE_S))
        # A little less than a round, so that the first pause has ended when the next round begins.
        self._url_backoff = replace(self._backoff, first_s=settings.every_s * 0.9)
        self._failures: dict[str, Failure] = {}  # by the address that is not requested before its next attempt
        self._pending: dict[str, FullEntry] = {}
        self._is_node_made = False  # by the first import of this process
        self._stored: dict[tuple[str, str], KnownDocument] = {}  # by reader and address: the documents in the store
        # The ESS files and the feeds by their addresses, and the outline under "".
        self._files: Documents = {}
        self._feeds: Documents = {}
        self._outline: Documents = {}
        self._sources: dict[str, EssSource] = {}
        self._puller: Puller | None = None

    async def run(self) -> None:
        """Runs rounds for ever. A round that fails is logged, and the next one follows after a longer pause."""
        failures = 0
        while True:
            try:
                result = await self.round()
            except SmartfeedsError as error:
                failures += 1
                _log.error("nno_round_failed", node=self._settings.node, reason=str(error))
            except Exception:  # noqa: BLE001 - an unexpected document of a feed must not end all further rounds
                failures += 1
                _log.exception("nno_round_failed", node=self._settings.node)
            else:
                failures = 0
                self._log_round(result)
            # The pause after one failure is at most a round. With one more, already the first failure makes it longer.
            pause_s = self._backoff.pause_s(failures + 1, self._tools.spread()) if failures else 0.0
            await self._tools.sleep(max(self._settings.every_s, pause_s))

    def _log_round(self, result: PlanetRound) -> None:
        for url, failure in result.failed.items():
            _log.warning("nno_source_failed", node=self._settings.node, url=display_url(url), reason=failure.reason)
        published = result.published
        _log.info(
            "nno_round_done",
            node=self._settings.node,
            added=published.added,
            changed=published.changed,
            downloads=result.downloads,
            failed=len(result.failed),
        )

    async def round(self) -> PlanetRound:
        """Runs one round. Raises FeedError if the node cannot be filled, StoreError if the store fails."""
        puller = self._puller or await self._load_documents()
        failed: dict[str, SourceFailure] = {}
        now_us = self._tools.now_us()
        paused = {url for url, failure in self._failures.items() if failure.pause_s(now_us)}
        await asyncio.gather(*(self._refresh(url, failed) for url in self._sources if url not in paused))
        aggregator = Aggregator(self._settings.entries)
        for source in self._sources.values():
            for file in source.files:
                aggregator.add(file)
        entries = aggregator.result()
        self._set_outline(entries, now_us)
        pulled = await puller.pull(entries, skip=paused)
        feeds = {entry.feed_url for entry in entries}
        for url in feeds - paused:
            self._record(url, pulled.failed.get(url))
        self._failures = {
            url: failure for url, failure in self._failures.items() if url in feeds or url in self._sources
        }
        current = {item_id(full) for _entry, full in pulled.results if full is not None}
        self._pending |= {item_id(full): full for full in pulled.fresh}
        # Entries that leave the outline before they are stored are dropped, so `_pending` is never longer than the
        # outline. The document of their feed goes with them, so that a return of the entry downloads the feed again.
        for name in self._pending.keys() - current:
            self._feeds.pop(self._pending.pop(name).feed_url, None)
        published = await self._publish()
        # Last, because a feed whose validators are stored is not read again: its entries must be in the node.
        await self._store_documents()
        return PlanetRound(published, pulled.downloads, failed | dict(pulled.failed))

    async def _load_documents(self) -> Puller:
        """Loads the documents that a former process has stored, unless the node is gone and must be filled again."""
        node = self._settings.node

        def read(tx: ReadTx, _context: Context) -> tuple[bool, list[Documents]]:
            readers = (ess_reader, feeds_reader, outline_reader)
            return tx.node(node) is not None, [tx.documents(reader(node)) for reader in readers]

        exists, documents = await self._service.read(read)
        self._stored = self._by_reader(*documents)
        if exists:
            self._files, self._feeds, self._outline = documents
        self._sources = {url: EssSource(url, self._files, self._tools.aside) for url in self._settings.urls}
        self._puller = Puller(self._fetch, documents=self._feeds, aside=self._tools.aside)
        return self._puller

    async def _store_documents(self) -> None:
        """Stores the documents that have changed, for the next process."""
        targets = {source.target for source in self._sources.values()}
        for url in self._files.keys() - targets:
            del self._files[url]
        stored, current = self._stored, self._by_reader(self._files, self._feeds, self._outline)
        if stored == current:
            return

        def write(tx: WriteTx, _context: Context) -> None:
            for reader, url in stored.keys() - current.keys():
                tx.remove_document(reader, url)
            for (reader, url), document in current.items():
                if stored.get((reader, url)) != document:
                    tx.put_document(reader, url, document)
            outline, node = (outline_reader(self._settings.node), ""), tx.node(self._settings.node)
            if node is not None and stored.get(outline) != current.get(outline):
                tx.mark_pages_changed(node.node_no)

        await self._service.write(write)
        self._stored = current

    def _set_outline(self, entries: Sequence[NnoEntry], now_us: int) -> None:
        """Writes an NNO file of the entries (ESS-017), unless the former file has the same entries.

        Its addresses contain no secrets, because every reader of the node can read it.
        """
        public = [entry._replace(feed_url=without_secrets(entry.feed_url)) for entry in entries]
        data = write_nno(public, now_us).data
        former = self._outline.get("")
        if former is None or read_nno(former.content).entries != read_nno(data).entries:
            self._outline[""] = KnownDocument(NO_VALIDATORS, data)

    def _by_reader(
        self, files: Documents, feeds: Documents, outline: Documents
    ) -> dict[tuple[str, str], KnownDocument]:
        """Returns all documents by reader and address, as the store has them."""
        node = self._settings.node
        readers = {ess_reader(node): files, feeds_reader(node): feeds, outline_reader(node): outline}
        return {(name, url): document for name, documents in readers.items() for url, document in documents.items()}

    async def _refresh(self, url: str, failed: dict[str, SourceFailure]) -> None:
        try:
            latest_s = self._tools.now_us() // US_PER_S + AHEAD_S
            await self._sources[url].refresh(self._fetch, self._settings.entries, latest_s)
        except (FetchError, FeedError) as error:
            failed[url] = source_failure(error)
        self._record(url, failed.get(url))

    def _record(self, url: str, failure: SourceFailure | None) -> None:
        """Sets the pause of an address after a failure, or ends it after a success (None)."""
        former = self._failures.pop(url, None)
        if failure is not None:
            now_us, jitter = self._tools.now_us(), self._tools.spread()
            self._failures[url] = next_failure(
                former, failure.reason, now_us, self._url_backoff, jitter, failure.pause_s
            )

    async def _publish(self) -> ImportCounts:
        """Publishes the new entries. If the store fails, the next round publishes them.

        The first import creates the node, also without entries. An entry that the node does not accept is logged and
        left out until its feed has another version of it.
        """
        if not self._pending and self._is_node_made:
            return ImportCounts()
        retracted = await self._service.read(self._retracted)
        items = tuple(_item(name, full) for name, full in self._pending.items() if name not in retracted)
        result = await import_document(
            self._service, self._settings.node, FeedDocument("NNO", items=items), self._owner
        )
        self._is_node_made = True
        for name, reason in result.skipped:
            full = self._pending[name]
            _log.warning(
                "nno_entry_skipped",
                node=self._settings.node,
                feed=display_url(full.feed_url),
                entry=full.item.id,
                reason=reason,
            )
        self._pending.clear()
        return result

    def _retracted(self, tx: ReadTx, _context: Context) -> set[str]:
        """Returns the ids of pending entries that the owner has retracted. They stay retracted."""
        node = tx.node(self._settings.node)
        if node is None:
            return set()
        stored = ((name, tx.item(node.node_no, name)) for name in self._pending)
        return {name for name, item in stored if item is not None and item.deleted}


def item_id(full: FullEntry) -> str:
    """Returns the id of an entry in the node. It contains the address of the feed, so no feed can replace the entry of
    another."""
    return digest_id(full.feed_url, full.item.id)


def _item(name: str, full: FullEntry) -> ImportedItem:
    payload = with_source(full.item.payload, full.feed_id, full.feed_title, full.feed_url)
    return replace(full.item, id=name, payload=payload)

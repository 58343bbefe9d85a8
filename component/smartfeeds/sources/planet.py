"""A node that fills itself: the newest entries of many feeds, found by their ESS files (ESS-011 to ESS-022).

Each round asks for the ESS files that have changed, keeps the N newest entries of all of them, downloads only the
feeds of entries that were not there before, and publishes those. An entry is stored under an id made of its feed's
address and its own id, so that no feed can replace the entry of another; it names its feed in atom:source. What the
owner has retracted stays so. A source or feed that fails is asked again after growing pauses.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError, SmartfeedsError
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.items import Document, ImportedItem
from smartfeeds.formats.nno import Aggregator, with_source
from smartfeeds.net.fetch import FetchError, HttpClient, shown
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.importing import Imported, import_document
from smartfeeds.sources.nno import EssSource, Found, Puller
from smartfeeds.store.base import ReadTx

LONGEST_PAUSE_S: Final = 86_400.0
AHEAD_S: Final = 86_400  # a feed whose clock is further ahead would have the newest entries for ever

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Plan:
    """What fills a node: `urls` of ESS files, of NNO files, or of web pages that link to one."""

    node: str
    urls: tuple[str, ...]
    entries: int
    every_s: float
    owner: Jid


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did; `failed` are the addresses that gave nothing, with the reason."""

    published: Imported = field(default_factory=Imported)
    downloads: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class _Pauses:
    """The addresses that failed and are not asked again before their pause ends. Each failure doubles the pause."""

    def __init__(self, clock: Callable[[], float], back_off: Backoff, spread: Callable[[], float]) -> None:
        self._clock = clock
        self._back_off = back_off
        self._spread = spread
        self._failures: dict[str, tuple[int, float]] = {}  # address -> failures in a row, end of its pause

    def current(self) -> set[str]:
        """The addresses whose pause has not ended."""
        now_s = self._clock()
        return {url for url, (_failures, until_s) in self._failures.items() if until_s > now_s}

    def record(self, url: str, *, failed: bool) -> None:
        """Starts a longer pause after a failure; a success ends all pauses of the address."""
        failures = self._failures.pop(url, (0, 0.0))[0] + 1
        if failed:
            self._failures[url] = failures, self._clock() + self._back_off.pause_s(failures, self._spread())

    def retain(self, urls: set[str]) -> None:
        """Forgets all other addresses."""
        self._failures = {url: state for url, state in self._failures.items() if url in urls}


class Planet:
    """One node and what fills it.

    `now_us` gives microseconds since the Unix epoch, `clock` seconds that never go back; `sleep` waits for seconds.
    `spread` gives random numbers in 0..1.
    """

    def __init__(
        self,
        plan: Plan,
        service: FeedService,
        fetch: HttpClient,
        *,
        now_us: Callable[[], int],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        spread: Callable[[], float],
    ) -> None:
        self.plan = plan
        self._service = service
        self._fetch = fetch
        self._now_us = now_us
        self._sleep = sleep
        self._sources = {url: EssSource(url) for url in plan.urls}
        self._puller = Puller(fetch)
        self._spread = spread
        self._back_off = Backoff(plan.every_s, max(plan.every_s, LONGEST_PAUSE_S))
        # A little less than a round, so that the first pause has ended when the next round begins.
        self._pauses = _Pauses(clock, replace(self._back_off, first_s=plan.every_s * 0.9), spread)
        self._pending: dict[str, Found] = {}
        self._begun = False

    async def run(self) -> None:
        """Fills the node for ever; a failure is logged, and makes the pause longer."""
        failures = 0
        while True:
            try:
                done = await self.round()
            except SmartfeedsError as error:
                failures += 1
                _log.error("nno_round_failed", node=self.plan.node, reason=str(error))
            except Exception:  # noqa: BLE001 - the service goes on, whatever a feed of others makes of this
                failures += 1
                _log.exception("nno_round_failed", node=self.plan.node)
            else:
                failures = 0
                self._tell(done)
            # The first pause is a normal round; only repeated failures make it longer.
            pause_s = self._back_off.pause_s(failures + 1, self._spread()) if failures else 0.0
            await self._sleep(max(self.plan.every_s, pause_s))

    def _tell(self, done: Round) -> None:
        for url, reason in done.failed.items():
            _log.warning("nno_source_failed", node=self.plan.node, url=shown(url), reason=reason)
        published = done.published
        _log.info(
            "nno_round_done",
            node=self.plan.node,
            added=published.added,
            changed=published.changed,
            downloads=done.downloads,
            failed=len(done.failed),
        )

    async def round(self) -> Round:
        """One round. Raises FeedError where the node cannot be filled, StoreError where the store fails."""
        failed: dict[str, str] = {}
        paused = self._pauses.current()
        await asyncio.gather(*(self._refresh(url, failed) for url in self._sources if url not in paused))
        aggregator = Aggregator(self.plan.entries)
        for source in self._sources.values():
            for file in source.files:
                aggregator.add(file)
        entries = aggregator.result()
        pulled = await self._puller.pull(entries, skip=paused)
        feeds = {entry.feed_url for entry in entries}
        for url in feeds - paused:
            self._pauses.record(url, failed=url in pulled.failed)
        self._pauses.retain(feeds | self._sources.keys())
        current = {item_id(found) for _entry, found in pulled.results if found is not None}
        self._pending |= {item_id(found): found for found in pulled.fresh}
        # What has left the outline before it could be stored is not missed; and so this never grows beyond it.
        self._pending = {name: found for name, found in self._pending.items() if name in current}
        return Round(await self._publish(), pulled.downloads, failed | dict(pulled.failed))

    async def _refresh(self, url: str, failed: dict[str, str]) -> None:
        try:
            latest_s = self._now_us() // US_PER_S + AHEAD_S
            await self._sources[url].refresh(self._fetch, self.plan.entries, latest_s)
        except FetchError as error:
            failed[url] = error.reason
        except FeedError as error:
            failed[url] = error.text or error.condition.value
        self._pauses.record(url, failed=url in failed)

    async def _publish(self) -> Imported:
        """Brings what is new into the node; what could not be stored is tried again in the next round."""
        if not self._pending and self._begun:
            return Imported()
        buried = await self._service.read(self._buried)
        items = tuple(_item(name, found) for name, found in self._pending.items() if name not in buried)
        done = await import_document(self._service, self.plan.node, Document("NNO", items=items), self.plan.owner)
        self._begun = True
        self._pending.clear()
        return done

    def _buried(self, tx: ReadTx, _context: Context) -> set[str]:
        """Which of the new entries the owner has retracted before."""
        node = tx.node(self.plan.node)
        if node is None:
            return set()
        stored = ((name, tx.item(node.node_no, name)) for name in self._pending)
        return {name for name, item in stored if item is not None and item.deleted}


def item_id(found: Found) -> str:
    """The id of an entry in the node: the same whenever it is found in this feed, and in no other feed."""
    return digest_id(found.feed_url, found.item.id)


def _item(name: str, found: Found) -> ImportedItem:
    payload = with_source(found.item.payload, found.feed_id, found.feed_title, found.feed_url)
    return replace(found.item, id=name, payload=payload)

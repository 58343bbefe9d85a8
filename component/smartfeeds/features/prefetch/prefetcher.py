"""Loads enclosures in advance, in the windows of the operator (RSS-033 to RSS-036; PRE-001 to PRE-009, PRE-027,
PRE-028).

The queue is in the store, the partial files are in the folder, so a restart continues where the last process stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Protocol

import structlog

from smartfeeds.core.times import US_PER_S
from smartfeeds.delivery.changes import failures_logged
from smartfeeds.errors import StoreError
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch import rows
from smartfeeds.features.prefetch.enclosure_load import AT_ONCE, EnclosureLoad, LoadClients, Pace, PartFile
from smartfeeds.features.prefetch.metrics import PREFETCH_LOADS, EnclosureReading
from smartfeeds.features.prefetch.queue import (
    DueEnclosure,
    LoadEnd,
    LoadResult,
    choose_next,
    end_load,
    has_due,
    stale_uses,
    tidy_old,
    tidy_source,
    tidy_space,
)
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.features.prefetch.windows import Span
from smartfeeds.net.fetch import display_url
from smartfeeds.service.feeds import FeedService

LOOK_S: Final = 5.0  # the store is read this often, because commands change it, too
TIDY_S: Final = 3_600.0  # between two removals; a window that opens does one, too
GRACE_S: Final = 1_800  # a load that runs at the end of its window goes on for so long (PRE-005)
# Loads begin at a time of these first seconds of a window: many services have the same window (PRE-004).
SPREAD_S: Final = 600
_COUNT_S: Final = 60.0  # between two counts of all rows, for metrics
_STEP: Final = 500  # sources that one transaction reads
_TURN: Final = "prefetch"
NO_SPACE: Final = "the disk has too little free space"

_log = structlog.get_logger()


class LoadPart(PartFile, AbstractAsyncContextManager["LoadPart"], Protocol):
    """A partial file that becomes a complete one."""

    async def complete(self) -> None:
        """Makes the file complete."""


class CompleteFiles(Protocol):
    """The complete files; `lock` is held until the row of a new one is stored."""

    @property
    def lock(self) -> AbstractAsyncContextManager[None]:
        """See `store.file_folder.FileFolder`."""


Known = Callable[[Collection[str]], Awaitable[set[str]]]


class LoadFolder(Protocol):
    """The folder of the files; see `enclosure_files.EnclosureFolder`."""

    @property
    def complete(self) -> CompleteFiles:
        """The complete files."""

    def part(self, digest: str) -> LoadPart:
        """A partial file to continue."""

    def part_bytes(self, digest: str) -> int:
        """The size of a partial file."""

    async def free_share(self) -> float:
        """The share of the disk that is free. Raises StoreError."""

    async def remove_unknown(self, complete: Known, partial: Known) -> None:
        """Removes files without rows. Raises StoreError."""


class Prefetcher:
    """Loads what is due. `folder` has the files."""

    def __init__(
        self,
        service: FeedService,
        clients: LoadClients,
        folder: LoadFolder,
        settings: PrefetchSettings,
        tools: SourceTools,
    ) -> None:
        self._service = service
        self._clients = clients
        self._folder = folder
        self._settings = settings
        self._tools = tools
        self._pace = Pace(settings.bytes_per_s, tools)
        self._running: dict[str, tuple[str, asyncio.Task[None]]] = {}  # by host: the digest and the load
        self._served: set[str] = set()  # hosts that had their turn
        self._free = asyncio.Event()  # a load has ended
        self._span: Span | None = None
        self._start_us = 0
        self._is_stopped = False  # until the next window: the disk is full
        self._tidied_us: int | None = None
        self._counted_us: int | None = None
        self._readings: tuple[EnclosureReading, ...] = ()

    async def run(self) -> None:
        """Loads for ever. Failures are logged."""
        try:
            while True:
                with failures_logged():
                    await self.look()
                self._free.clear()
                await self._tools.wait(self._free, LOOK_S)
        finally:
            # Another process counts from now on. A dashboard adds the numbers of all processes.
            self._readings, self._counted_us = (), None
            tasks = [task for _digest, task in self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> bool:
        """Waits for the loads in progress. Returns whether there were any."""
        tasks = [task for _digest, task in self._running.values()]
        await asyncio.gather(*tasks)
        return bool(tasks)

    async def look(self) -> None:
        """Starts loads that are due. Raises StoreError."""
        now_us = self._tools.now_us()
        span = self._settings.span_at(now_us)
        if span != self._span:
            self._enter(span, now_us)
        if self._tidied_us is None or not 0 <= now_us - self._tidied_us < TIDY_S * US_PER_S:
            self._tidied_us = now_us
            await self.tidy()
        if self._counted_us is None or not 0 <= now_us - self._counted_us < _COUNT_S * US_PER_S:
            self._counted_us = now_us
            totals = await self._service.read(lambda tx, _context: rows.totals(tx), turn=_TURN)
            self._readings = tuple(EnclosureReading(*total) for total in totals)
        may_begin = span is not None and now_us >= self._start_us and not self._is_stopped
        while len(self._running) < AT_ONCE:
            due = await self._next(span if may_begin else None)
            if due is None:
                return
            self._start(due, span)

    def _enter(self, span: Span | None, now_us: int) -> None:
        """A window has opened or closed. Loads begin at a random time of its first minutes, but at once in a window
        that follows another one."""
        follows = self._span is not None and span is not None and span.open_us == self._span.close_us
        self._span, self._is_stopped = span, False
        if span is not None:
            spread_us = min(SPREAD_S * US_PER_S, (span.close_us - span.open_us) // 2)
            self._start_us = now_us if follows else span.open_us + int(self._tools.spread() * spread_us)
            self._tidied_us = None

    async def _next(self, span: Span | None) -> DueEnclosure | None:
        if not await self._service.read(partial(has_due, span=span, busy_hosts=set(self._running)), turn=_TURN):
            return None
        if await self._folder.free_share() < self._settings.least_free:
            self._stop(NO_SPACE)
            return None
        return await self._service.write(
            partial(choose_next, span=span, busy_hosts=set(self._running), served_hosts=frozenset(self._served)),
            turn=_TURN,
        )

    def _start(self, due: DueEnclosure, span: Span | None) -> None:
        host, digest = due.enclosure.host, due.enclosure.digest
        self._served = {host} if host in self._served else {*self._served, host}
        task = asyncio.get_running_loop().create_task(self._load(due, span), name=f"prefetch {host}")
        self._running[host] = (digest, task)
        task.add_done_callback(lambda _task: self._ended(host))

    def _ended(self, host: str) -> None:
        del self._running[host]
        self._free.set()

    async def _load(self, due: DueEnclosure, span: Span | None) -> None:
        """Loads an enclosure and stores the result. Failures are logged."""
        with failures_logged():
            result = await self._result(due, span)
            PREFETCH_LOADS.labels(result.end.value).inc()
            _log.info(
                "enclosure_loaded" if result.end is LoadEnd.ARRIVED else "enclosure_not_loaded",
                url=display_url(due.enclosure.url),
                result=result.end.value,
                reason=result.reason,
                bytes=result.loaded_bytes,
                seconds=round(result.seconds, 1),
            )
            if result.end is LoadEnd.ARRIVED:
                for source in due.sources:
                    await self._service.write(partial(tidy_source, source_no=source.source_no), turn=_TURN)
                await self._free_space()

    async def _result(self, due: DueEnclosure, span: Span | None) -> LoadResult:
        digest = due.enclosure.digest
        store = partial(end_load, due=due, span=span)
        try:
            async with self._folder.part(digest) as part:
                load = EnclosureLoad(
                    self._service, due, part, self._pace, self._tools.now_us, partial(self._must_end, due, span)
                )
                result = await load.run(self._clients)
                if result.end is LoadEnd.ARRIVED:
                    # Held until the row says that the file is there: files without a row are removed.
                    async with self._folder.complete.lock:
                        await part.complete()
                        await self._service.write(partial(store, result=result), turn=_TURN)
                    return result
        except StoreError as error:
            self._stop(str(error))
            result = LoadResult(LoadEnd.CUT, str(error), size_bytes=self._folder.part_bytes(digest))
        await self._service.write(partial(store, result=result), turn=_TURN)
        return result

    async def _must_end(self, due: DueEnclosure, span: Span | None, *, has_written: bool) -> str:
        """Returns the reason why a load must end now, "" if it may continue. The free space is read only after a
        write."""
        if has_written and await self._folder.free_share() < self._settings.least_free:
            self._stop(NO_SPACE)
            return NO_SPACE
        now_us = self._tools.now_us()
        if due.is_asked or span is None or now_us < span.close_us + GRACE_S * US_PER_S:
            return ""
        is_open = self._settings.span_at(now_us) is not None
        return "" if is_open else "the window has ended"

    def _stop(self, reason: str) -> None:
        """Begins no load before the next window (PRE-028)."""
        if not self._is_stopped:
            self._is_stopped = True
            _log.error("prefetch_stopped", reason=reason)

    async def tidy(self) -> None:
        """Removes what the keeping rules do not keep, and files without rows. Raises StoreError."""
        after_no = 0
        while numbers := await self._service.read(
            lambda tx, _context: rows.sources(tx, after_no, _STEP),  # noqa: B023
            turn=_TURN,
        ):
            for source_no in numbers:
                if await self._service.read(partial(stale_uses, source_no=source_no), turn=_TURN):
                    await self._service.write(partial(tidy_source, source_no=source_no), turn=_TURN)
            after_no = numbers[-1]
        while await self._service.write(tidy_old, turn=_TURN):
            pass
        await self._free_space()

    async def _free_space(self) -> None:
        # Rows before bytes: a row never names a file that is gone, and a file without a row is found by the next run.
        while await self._service.write(tidy_space, turn=_TURN):
            pass
        await self._folder.remove_unknown(partial(self._known, complete=True), partial(self._known, complete=False))

    async def _known(self, digests: Collection[str], *, complete: bool) -> set[str]:
        # A load that runs needs its file, even if the row has gone since.
        loads = set() if complete else {digest for digest, _task in self._running.values()}
        return loads | await self._service.read(
            lambda tx, _context: rows.known(tx, digests, complete=complete), turn=_TURN
        )

    def readings(self) -> tuple[EnclosureReading, ...]:
        """The numbers of enclosures, for metrics."""
        return self._readings

"""The common part of the stores of both engines: the queues of works, and the reading, writing and indexing of a
work."""

import asyncio
from collections.abc import Callable
from typing import Never, TypeVar, cast

from smartfeeds.core.touches import Touch
from smartfeeds.core.view import View
from smartfeeds.errors import StoreClosedError, StoreError
from smartfeeds.store.base import Again, OpenMode, ReadTx, Work, WriteTx
from smartfeeds.store.indexer import ReadAhead, TraitsReader
from smartfeeds.store.scan import Scan
from smartfeeds.store.sql_counts import Counts
from smartfeeds.store.work_queue import BatchRunner, WorkQueue

T = TypeVar("T")

# Writes in one commit. A sync of the disk takes as long as about 250 publishes, so larger groups gain little.
WRITE_BATCH = 256
READ_BATCH = 64  # reads in one snapshot: a snapshot that stays open keeps the log of SQLite from being reset
SLOW_WRITE_S = 0.005  # as long as a commit; what takes longer does not share a commit with works that wait behind it
INDEX_TURN = "index"  # the turn of the background work on the filter index


class SqlStore:
    """The part of a `base.Store` that does not depend on the database. A subclass opens and closes its connections."""

    def __init__(self, reader: TraitsReader, mode: OpenMode) -> None:
        self._mode = mode
        self._indexer = ReadAhead(reader)
        self._counts = Counts()
        self._reads: WorkQueue | None = None
        self._long_reads: WorkQueue | None = None
        self._writes: WorkQueue | None = None
        # Each request runs a work, so these are the functions of the queues themselves while the store is open.
        self.submit_read: Callable[[Work], None] = self._refuse
        self.submit_write: Callable[[Work], None] = self._refuse

    def _start(
        self,
        writers: list[BatchRunner],
        readers: list[BatchRunner],
        long_readers: list[BatchRunner],
        slow_read_s: float,
    ) -> None:
        """Starts to run works on these connections. Reads beyond the budget of `readers` run on `long_readers`."""
        self._writes = WorkQueue(writers, WRITE_BATCH, SLOW_WRITE_S) if writers else None
        self._long_reads = WorkQueue(long_readers, 1, slow_read_s)
        self._reads = WorkQueue(readers, READ_BATCH, slow_read_s, overflow=self._long_reads)
        self.submit_read = self._reads.submit
        if self._writes is not None:
            self.submit_write = self._writes.submit

    def prepare_close(self) -> None:
        """Does nothing here: SQLite answers, or fails."""

    async def _finish(self) -> None:
        """Rejects further works and waits for the writes that are queued. Reads that wait are dropped: nobody loses
        anything, and a thousand filtered pages would delay the stop by minutes.
        """
        every = ((self._reads, True), (self._long_reads, True), (self._writes, False))
        # Before the wait, so that no work arrives meanwhile.
        self._reads = self._long_reads = self._writes = None
        self.submit_read = self.submit_write = self._refuse
        for queue, drops in every:
            if queue is not None:
                await queue.close(drops=drops)

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "", touch: Touch | None = None) -> T:
        return cast(T, await self._reading.call(work, turn, touch=touch))

    async def write(
        self,
        work: Callable[[WriteTx], T | Again],
        *,
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> T:
        return cast(T, await self._writing.call(work, turn, on_commit, touch))

    @property
    def _reading(self) -> WorkQueue:
        return self._reads if self._reads is not None else self._refuse()

    @property
    def _writing(self) -> WorkQueue:
        return self._writes if self._writes is not None else self._refuse()

    def _refuse(self, _work: Work | None = None) -> Never:
        if self._reads is not None:
            raise StoreError("the store is open for reading only")
        raise StoreClosedError("the store is closed")

    def new_scan(self, node_no: int, view: View) -> Scan:
        return Scan(node_no, view, self._indexer.reader)

    async def index_some(self, limit: int) -> int:
        payloads = await self.read(lambda tx: tx.unindexed(limit), turn=INDEX_TURN)
        # In a separate thread, so that the reading connections serve requests meanwhile.
        await asyncio.to_thread(self._indexer.prepare, payloads)
        done = await self.write(lambda tx: tx.index_some(limit), turn=INDEX_TURN)
        if not done and payloads:
            # Other processes had locked all nodes with new items. A node that they always lock must be indexed, too.
            done = await self.write(lambda tx: tx.index_some(limit, skip_locked=False), turn=INDEX_TURN)
        return done

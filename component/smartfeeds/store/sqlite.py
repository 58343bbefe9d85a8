"""The SQLite store: one writing connection and a few reading ones, each with aiosqlite's own thread.

Writes are committed in groups in WAL mode with `synchronous=FULL`: an acknowledged write survives a power loss
(design section 4). A group costs one hop to the thread and one sync of the disk. aiosqlite offers no hop of several
statements, so `lanes.hop` uses its `Connection._execute`, and this module its `_conn`; what they rely on is pinned by
tests/store/test_aiosqlite.py.

A work must leave nothing behind when it raises. Most works that raise have changed nothing yet, and cost nothing.
When one has, its whole group is rolled back and its works run again, each in a transaction of its own: works are
functions of the transaction, so running them twice is safe.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import aiosqlite

from smartfeeds.errors import StoreError
from smartfeeds.store import migrate
from smartfeeds.store.backup import copy_database
from smartfeeds.store.base import Indexer, OpenMode, ReadAhead, ReadTx, WriteTx
from smartfeeds.store.lanes import Job, Lane, Lanes, ended, hop
from smartfeeds.store.sql import SqlReadTx, SqlWriteTx
from smartfeeds.store.sql_counts import Counts
from smartfeeds.store.sqlite_engine import (
    READ_ONLY,
    OverBudgetError,
    SqliteEngine,
    make_private,
    missing,
    store_error,
)

T = TypeVar("T")
Runner = Callable[[list[Job]], int]

READERS = 2
# SQLite instructions that a read may use on the short lanes. A longer read is run again in the long lane. A full batch
# of pushes uses 10,000 and a page of 500 items 13,000, so both fit. A count of some thousand items does not: it would
# delay the reads behind it by more than such a page.
LIGHT_STEPS = 20_000
BUSY_S = 5.0
WRITE_BATCH = 256
READ_BATCH = 64
# A batch of reads ends after this time, and the rest of it goes to the connection that is free first. So a read waits
# for the batch before it 2 ms and one short read at most. A budget of 5 ms made store reads no cheaper: 175 to 197 us
# of CPU each, against 177 to 203 us with 2 ms.
READ_BUDGET_S = 0.002
# A group of writes ends after this time, so that a write waits for the group before it 20 ms and one write at most. A
# full group of 256 publishes takes 5 ms, and 8 ms in a feed of a million items. So only groups with costly writes end
# early, and those gain little from a shared commit, which takes about 5 ms.
WRITE_BUDGET_S = 0.02
SLOW_WRITE_S = 0.005  # as long as a commit; what takes longer does not share a commit with works that wait behind it
SLOW_READ_S = 0.001  # a page of 50 takes 0.12 ms, one of 500 items 1.5 ms
WRITER_CACHE_KIB = 16384
READER_CACHE_KIB = 4096
# Readers search the log by segments of some 4,000 pages: one segment is enough for them, and syncs are fewer.
CHECKPOINT_PAGES = 4000
# A checkpoint copies the log into the database and syncs it. The writing connection would take 45 ms for 4,000 pages,
# and every write would wait. So another connection copies the log beside the writes, after this many writes and not
# more often than this. The pages of the last moment are left for the writing connection.
CHECKPOINT_WRITES = 128
CHECKPOINT_INTERVAL_S = 0.25
JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024


INDEX_TURN = "index"


class SqliteStore:
    """A `base.Store` in one SQLite file.

    `path` is where it is; `busy_s` how long a write waits for another process that holds the file locked. With
    `OpenMode.READ` there is no writing connection.
    """

    def __init__(
        self, path: Path, indexer: Indexer, *, mode: OpenMode = OpenMode.SERVE, busy_s: float = BUSY_S
    ) -> None:
        self.path = path
        self._mode = mode
        self._indexer = ReadAhead(indexer)
        self._busy_s = busy_s
        self._counts = Counts()
        self._connections: list[aiosqlite.Connection] = []
        self._reads: Lanes | None = None
        self._long_reads: Lanes | None = None
        self._writes: Lanes | None = None
        self._log_copier: aiosqlite.Connection | None = None
        self._log_writes = 0  # since the log was copied
        self._log_copied_s = 0.0  # on the clock of the event loop
        self._log_copy: asyncio.Task[None] | None = None

    async def open(self) -> None:
        if self._connections:
            raise StoreError("the store is already open")
        _check_writable(self.path)
        if self._mode.creates:
            make_private(self.path)
        elif not self.path.exists():
            raise missing(self.path)
        try:
            writers = [] if self._mode is OpenMode.READ else [await self._lane(self._writer)]
            readers = [await self._lane(partial(self._reader, steps=LIGHT_STEPS)) for _ in range(READERS)]
            long_reader = await self._lane(self._reader)
            self._log_copier = (await self._lane(self._reader)).connection
        except BaseException:
            await self._disconnect()
            raise
        self._writes = Lanes(writers, WRITE_BATCH, SLOW_WRITE_S) if writers else None
        self._reads = Lanes(readers, READ_BATCH, SLOW_READ_S)
        self._long_reads = Lanes([long_reader], 1, SLOW_READ_S)

    async def close(self) -> None:
        every = (self._reads, self._long_reads, self._writes)
        self._reads = self._long_reads = self._writes = None
        for lanes in every:
            if lanes is not None:
                await lanes.close()
        if self._log_copy is not None:
            await self._log_copy
        await self._disconnect()

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "") -> T:
        reads, long_reads = self._reads, self._long_reads
        if reads is None or long_reads is None:
            raise StoreError("the store is closed")
        # A sender whose read is in the long lane does not begin another one in the short lanes. Reads without a turn
        # come from many parts of the service, and its health probe must not wait behind the search of another part.
        if not turn or not long_reads.works_for(turn):
            with contextlib.suppress(OverBudgetError):
                return cast(T, await reads.call(work, turn))
        return cast(T, await long_reads.call(work, turn))

    async def write(self, work: Callable[[WriteTx], T], *, turn: str = "") -> T:
        if self._writes is None:
            raise StoreError("the store is open for reading only" if self._reads else "the store is closed")
        result = cast(T, await self._writes.call(work, turn))
        self._log_writes += 1
        if self._log_writes >= CHECKPOINT_WRITES and self._log_copy is None:
            loop = asyncio.get_running_loop()
            if loop.time() >= self._log_copied_s + CHECKPOINT_INTERVAL_S:
                self._log_copy = loop.create_task(self._copy_log(), name="copy the log")
        return result

    async def _copy_log(self) -> None:
        assert self._log_copier is not None
        self._log_writes = 0
        await hop(self._log_copier, _checkpoint, self._log_copier._conn)
        self._log_copied_s = asyncio.get_running_loop().time()
        self._log_copy = None

    async def index_some(self, limit: int) -> int:
        payloads = await self.read(lambda tx: tx.unindexed(limit), turn=INDEX_TURN)
        # In a thread of its own: the readers answer requests meanwhile.
        await asyncio.to_thread(self._indexer.prepare, payloads)
        return await self.write(lambda tx: tx.index_some(limit), turn=INDEX_TURN)

    async def backup(self, target: Path) -> None:
        """Copies everything, as of one moment, to a new file. Raises StoreError, also where the file exists."""
        await asyncio.to_thread(copy_database, self.path, target)

    async def _lane(self, prepare: Callable[[sqlite3.Connection], Runner]) -> Lane:
        """A new connection, and what `prepare` makes of it in its thread."""
        # mode=rw: the file is made by `make_private` alone, so a file that goes away meanwhile is not made again.
        connection = aiosqlite.connect(
            f"{self.path.absolute().as_uri()}?mode=rw",
            isolation_level=None,
            timeout=self._busy_s,
            cached_statements=256,
            uri=True,
        )
        try:
            await connection
        except sqlite3.Error as error:
            await ended(connection)
            raise store_error(error, str(self.path)) from error
        self._connections.append(connection)
        try:
            return Lane(connection, await hop(connection, prepare, connection._conn))
        except sqlite3.Error as error:
            raise store_error(error, str(self.path)) from error

    async def _disconnect(self) -> None:
        # Readers first: the last one to close takes the write-ahead log into the database.
        while self._connections:
            connection = self._connections.pop()
            await connection.close()
            await ended(connection)

    def _writer(self, raw: sqlite3.Connection) -> Runner:
        migrate.prepare(raw, self.path, self._mode)
        self._use_log(raw)
        self._tune(raw, WRITER_CACHE_KIB)
        return _Group(SqliteEngine(raw, str(self.path)), self._indexer).run

    def _reader(self, raw: sqlite3.Connection, steps: int | None = None) -> Runner:
        migrate.prepare(raw, self.path, self._mode)
        self._tune(raw, READER_CACHE_KIB)
        # Not mode=ro: such a connection leaves the log files of the database behind when it is the last to close.
        raw.execute("PRAGMA query_only = ON").fetchall()
        engine = SqliteEngine(raw, str(self.path))
        return _Snapshot(engine, SqlReadTx(engine, self._counts), steps).run

    def _tune(self, raw: sqlite3.Connection, cache_kib: int) -> None:
        for pragma in (
            "synchronous = FULL",
            "foreign_keys = ON",
            "trusted_schema = OFF",
            f"cache_size = -{cache_kib}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            f"journal_size_limit = {JOURNAL_LIMIT_BYTES}",
        ):
            raw.execute(f"PRAGMA {pragma}").fetchall()

    def _use_log(self, raw: sqlite3.Connection) -> None:
        # SQLite does not wait for the lock that the first change to a write-ahead log takes.
        until = time.monotonic() + self._busy_s
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL").fetchall()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.01)


def _checkpoint(raw: sqlite3.Connection) -> None:
    # PASSIVE waits for nobody, and nobody waits for it. A disk that fails here fails the next commit too, and that one
    # is reported.
    with contextlib.suppress(sqlite3.Error):
        raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _check_writable(path: Path) -> None:
    # SQLite would open it for reading, and leave read-only log files behind that outlast the mistake.
    if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise StoreError(f"the database {path}: {READ_ONLY}")


class _Snapshot:
    """Runs batches of reads, each in one snapshot. Lives in a reading connection's thread.

    `steps` is what one read may do (`SqliteEngine.allow`); a read that needs more ends with OverBudgetError.
    """

    def __init__(self, engine: SqliteEngine, tx: SqlReadTx, steps: int | None) -> None:
        self._engine = engine
        self._steps = steps
        self._tx = tx

    def run(self, jobs: list[Job]) -> int:
        until = time.monotonic() + READ_BUDGET_S
        done = 0
        try:
            self._engine.begin_read()
            for job in jobs:
                self._engine.allow(self._steps)
                job.run(self._tx)
                done += 1
                # A slow read must not hold up those that wait behind it: the rest goes to the next free connection.
                if time.monotonic() > until:
                    break
        except StoreError as error:
            return _fail(jobs, error)
        finally:
            self._engine.allow(None)
            self._engine.rollback()
        return done


class _Group:
    """Runs groups of writes, each in one transaction. Lives in the writing connection's thread."""

    def __init__(self, engine: SqliteEngine, indexer: ReadAhead) -> None:
        self._engine = engine
        self._tx = SqlWriteTx(engine, indexer)

    def run(self, jobs: list[Job]) -> int:
        try:
            self._engine.begin()
        except StoreError as error:
            return _fail(jobs, error)
        done = self._commit(jobs)
        if done:
            return done
        until = time.monotonic() + WRITE_BUDGET_S
        for position, job in enumerate(jobs):
            if position and time.monotonic() > until:
                return position
            try:
                self._engine.begin()
            except StoreError as error:
                _fail(jobs[position:], error)
                break
            self._commit([job], last=True)
        return len(jobs)

    def _commit(self, jobs: list[Job], *, last: bool = False) -> int:
        """Runs jobs in the transaction that has begun, as many as its time allows; 0 where it was rolled back and they
        must run again."""
        until = time.monotonic() + WRITE_BUDGET_S
        done = 0
        try:
            for job in jobs:
                # Slow writes must not hold up those that wait behind them.
                if done and time.monotonic() > until:
                    break
                before = self._tx.changes
                job.run(self._tx)
                done += 1
                # After an error of its own SQLite may have ended the transaction, whatever the work was doing.
                if job.error is not None and (self._tx.changes != before or isinstance(job.error, StoreError)):
                    return int(last)
            self._tx.settle()
            self._engine.commit()
        except StoreError as error:
            if last:
                _fail(jobs, error)
            return int(last)
        finally:
            self._tx.forget()
            self._engine.rollback()
        return done


def _fail(jobs: list[Job], error: StoreError) -> int:
    for job in jobs:
        job.result, job.error = None, error
    return len(jobs)

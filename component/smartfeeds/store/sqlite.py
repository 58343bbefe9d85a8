"""The SQLite store: one writing connection and some reading connections, each with a thread of its own.

Writes are committed in groups in WAL mode with `synchronous=FULL`, so that an acknowledged write survives a power loss.
A group costs one switch to the thread and one sync of the disk.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from smartfeeds.errors import StoreClosedError, StoreError, StoreLostError
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode, ReadTx, Work, settle
from smartfeeds.store.batches import ReadBatches, WriteBatches
from smartfeeds.store.file_watch import FileWatch
from smartfeeds.store.indexer import TraitsReader
from smartfeeds.store.sql_store import SqlStore
from smartfeeds.store.sqlite_engine import (
    DATABASE_ERRORS,
    SqliteEngine,
    check_writable,
    make_private,
    missing,
    restoring_path,
    store_error,
)
from smartfeeds.store.work_queue import BatchRunner

T = TypeVar("T")
Runner = Callable[[list[Work]], int]

READERS = 2  # connections for short reads: one takes the next batch while a slow read occupies the other
# SQLite instructions that a read may use on the shared connections. A longer read runs again on the connection for long
# reads. A full batch of pushes uses 10,000 and a page of 500 items 13,000, so both fit. A count of some thousand items
# does not fit: it would delay the reads after it longer than such a page.
LIGHT_STEPS = 20_000
BUSY_S = 5.0  # wait for another process that has locked the file
SLOW_READ_S = 0.001  # a page of 50 takes 0.12 ms, one of 500 items 1.5 ms
# The writer changes pages of every index of an item, and a page that leaves its cache before the commit may be written
# to the log twice. Readers use few pages at once, which the cache of the operating system has anyway.
WRITER_CACHE_KIB = 8192
READER_CACHE_KIB = 2048
# Readers search the log in segments of about 4,000 pages. With this limit they search one segment, and syncs are rare.
CHECKPOINT_PAGES = 4000
# A checkpoint copies the log into the database and syncs it. On the writing connection it would take 45 ms for 4,000
# pages, and every write would wait. So another connection copies the log at the same time as writes continue, after
# this number of writes and with this interval. The writing connection copies the last pages only.
CHECKPOINT_WRITES = 128
CHECKPOINT_INTERVAL_S = 0.25
WATCH_S = 1.0  # between two looks at the files
# The log file is cut to this size after a checkpoint. A long read keeps the log growing, and SQLite never shrinks it
# without a limit. A file below it is written again in place, which is faster than growing a new one.
JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024

# The future of a function, the function and its arguments; None ends the thread.
_Call = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class SqliteThread:
    """Runs functions in the thread of a connection, one after the other. `raw` is the connection while it is open.

    sqlite3 allows a connection only in the thread that has opened it. A `ThreadPoolExecutor` of one thread does the
    same with 60 more Python calls and twice the processor time for each function, which every batch would pay.
    Libraries such as aiosqlite pass single statements to the thread, but a batch is a function over many statements.
    """

    raw: sqlite3.Connection

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._is_closed = False
        # A daemon: if the program fails before it closes the store, the exit does not wait for this thread. A
        # transaction that runs then is undone as after a kill.
        self._thread = Thread(target=self._serve, name="sqlite", daemon=True)
        self._thread.start()

    def run(self, function: Callable[..., Any], *args: object) -> "asyncio.Future[Any]":
        """Calls a function in the thread, after those that wait. It runs to its end even if the caller is cancelled,
        because its transaction must not stay open. Raises StoreClosedError after `close`."""
        if self._is_closed:  # nothing would settle the future
            raise StoreClosedError("the connection to the database is closed")
        future = self._loop.create_future()
        self._calls.put((future, function, args))
        return future

    async def open(self, path: str, **options: Any) -> None:
        """Opens the connection. `options` are those of sqlite3.connect. Raises sqlite3.Error."""
        await self.run(self._open, path, options)

    def _open(self, path: str, options: dict[str, Any]) -> None:
        # Set in the thread, so that `close` closes the connection even if the caller was cancelled meanwhile.
        self.raw = sqlite3.connect(path, **options)

    async def close(self) -> None:
        """Runs what waits, closes the connection if it was opened, and ends the thread."""
        closing = self.run(self._close)
        self._is_closed = True
        self._calls.put(None)
        await closing
        # The thread has only to return. It must not outlive the loop that it calls.
        self._thread.join()

    def _close(self) -> None:
        if hasattr(self, "raw"):
            self.raw.close()

    def _serve(self) -> None:
        while call := self._calls.get():
            future, function, args = call
            result, error = None, None
            try:
                result = function(*args)
            except BaseException as failure:  # noqa: BLE001 - it belongs to the caller
                error = failure
            try:
                self._loop.call_soon_threadsafe(settle, future, result, error)
            except RuntimeError:
                return  # the loop was closed before the store, so nobody waits any more
            # Or this thread would keep the works of a batch, and their results, until the next batch.
            del call, future, function, args, result, error


class SqliteStore(SqlStore):
    """A `base.Store` in one SQLite file.

    `path` is the file. `busy_s` is how long a write waits for another process that has locked the file. With
    `OpenMode.READ` there is no writing connection.
    """

    def __init__(
        self, path: Path, reader: TraitsReader, *, mode: OpenMode = OpenMode.SERVE, busy_s: float = BUSY_S
    ) -> None:
        super().__init__(reader, mode)
        self.path = path
        self._busy_s = busy_s
        self._connections: list[SqliteThread] = []
        self._log_copier: SqliteThread | None = None
        self._log_writes = 0  # writes since the log was copied
        self._log_copied_s = 0.0  # time of the last copy, on the clock of the event loop
        self._log_copy: asyncio.Task[None] | None = None
        self._files: FileWatch | None = None
        self._loss: StoreLostError | None = None  # the reason why nothing may be acknowledged any more

    async def open(self) -> None:
        if self._connections:
            raise StoreError("the store is already open")
        check_writable(self.path)
        # An empty database must not take the place of one whose restore was interrupted.
        if not self.path.exists() and (not self._mode.creates or restoring_path(self.path).exists()):
            raise missing(self.path)
        if self._mode.creates:
            make_private(self.path)
        with contextlib.suppress(OSError):  # SQLite reports the reason
            self._files = FileWatch(self.path)
        try:
            writers: list[BatchRunner] = []
            if self._mode is not OpenMode.READ:
                writers.append(partial(self._write_batch, await self._connect(self._writer)))
            readers = [await self._connect(partial(self._reader, steps=LIGHT_STEPS)) for _ in range(READERS)]
            long_reader = await self._connect(self._reader)
            await self._connect(self._reader)
            self._log_copier = self._connections[-1]
        except BaseException:
            await self._disconnect()
            raise
        if self._files is not None:
            self._files.opened()
        self._start(writers, readers, [long_reader], SLOW_READ_S)

    async def watch(self) -> None:
        """Never returns. Raises StoreLostError when the files were removed, replaced or moved; later writes fail.

        Nobody has to do anything before the process ends: SQLite does not touch the files of a path that has changed.
        """
        while self._loss is None:
            await asyncio.sleep(WATCH_S)
            # In a thread, because a disk of the network may not answer.
            fault = "" if self._files is None else await asyncio.to_thread(self._files.fault)
            if fault:
                self._loss = StoreLostError(
                    f"the database {self.path}: {fault} while the service used it; what was acknowledged since then is "
                    "only in the former file; stop the service before you move or replace its database"
                )
        raise self._loss

    async def close(self) -> None:
        await self._finish()
        if self._log_copy is not None:
            await self._log_copy
        await self._disconnect()

    async def _write_batch(self, run: BatchRunner, works: list[Work]) -> int:
        """Runs a batch on the writing connection. Raises StoreLostError if it may not be acknowledged."""
        done = await run(works)
        if self._loss is not None:
            raise self._loss
        self._log_writes += done
        if self._log_writes >= CHECKPOINT_WRITES and self._log_copy is None:
            loop = asyncio.get_running_loop()
            if loop.time() >= self._log_copied_s + CHECKPOINT_INTERVAL_S:
                self._log_copy = loop.create_task(self._copy_log(), name="copy the log")
        return done

    async def _copy_log(self) -> None:
        assert self._log_copier is not None
        self._log_writes = 0
        await self._log_copier.run(_checkpoint, self._log_copier.raw)
        self._log_copied_s = asyncio.get_running_loop().time()
        self._log_copy = None

    async def _connect(self, prepare: Callable[[sqlite3.Connection], Runner]) -> BatchRunner:
        """Opens a connection. `prepare` sets it up in its thread and returns what runs batches there."""
        connection = SqliteThread()
        self._connections.append(connection)
        try:
            # mode=rw: only `make_private` creates the file. SQLite must not create a file that was removed meanwhile.
            await connection.open(
                f"{self.path.absolute().as_uri()}?mode=rw",
                isolation_level=None,
                timeout=self._busy_s,
                cached_statements=256,
                uri=True,
            )
            return partial(connection.run, await connection.run(prepare, connection.raw))
        except DATABASE_ERRORS as error:
            raise store_error(error, str(self.path)) from error

    async def _disconnect(self) -> None:
        # Readers first: the last connection to close copies the write-ahead log into the database.
        while self._connections:
            await self._connections.pop().close()

    def _writer(self, raw: sqlite3.Connection) -> Runner:
        migrate.prepare(raw, self.path, self._mode)
        self._use_log(raw)
        self._tune(raw, WRITER_CACHE_KIB)
        return WriteBatches(SqliteEngine(raw, str(self.path)), self._indexer).run

    def _reader(self, raw: sqlite3.Connection, steps: int | None = None) -> Runner:
        migrate.prepare(raw, self.path, self._mode)
        self._tune(raw, READER_CACHE_KIB)
        # Not mode=ro: if such a connection is the last to close, it leaves the log files behind.
        raw.execute("PRAGMA query_only = ON").fetchall()
        engine = SqliteEngine(raw, str(self.path), is_reader=True)
        return ReadBatches(engine, ReadTx(engine, self._counts), steps).run

    def _tune(self, raw: sqlite3.Connection, cache_kib: int) -> None:
        for pragma in (
            "synchronous = FULL",  # NORMAL would lose acknowledged writes after a power loss in WAL mode
            "foreign_keys = ON",  # off by default, for each connection
            "trusted_schema = OFF",  # the file may come from elsewhere: its schema may not call functions
            f"cache_size = -{cache_kib}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            f"journal_size_limit = {JOURNAL_LIMIT_BYTES}",
        ):
            raw.execute(f"PRAGMA {pragma}").fetchall()

    def _use_log(self, raw: sqlite3.Connection) -> None:
        # SQLite's busy timeout does not apply to the lock for the change to a write-ahead log, so this code waits
        # itself.
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
    # PASSIVE does not wait for other connections and does not block them. A disk that fails here fails the next commit
    # too, which reports it.
    with contextlib.suppress(sqlite3.Error):
        raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

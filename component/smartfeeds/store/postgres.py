"""The PostgreSQL store: one writing connection and some reading connections, each with a thread of its own.

psycopg's synchronous interface is the fastest for single round trips, which is what works in a thread need. A
reading connection is opened when it is first used, and every connection again after it was lost. A connection on which
the server does not answer is ended.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar, TypeVarTuple, Unpack

import psycopg
import structlog

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.store.base import OpenMode, ReadTx, Work
from smartfeeds.store.batches import ReadBatches, WriteBatches
from smartfeeds.store.indexer import TraitsReader
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_answers import AnswerLimit
from smartfeeds.store.postgres_commits import LastCommit
from smartfeeds.store.postgres_engine import PostgresEngine
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.sql_store import SqlStore
from smartfeeds.store.work_queue import BatchRunner
from smartfeeds.telemetry import STORE_CONNECTIONS

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Each read waits for several round trips. With 1.4 ms for a round trip, 8 connections answered four times as many pages
# as 2.
READERS = 8
LONG_READERS = 2  # a sender has one slow read at a time (`work_queue`), so no sender can occupy both
# A read on the shared connections may take this long, and cost this many steps (`PostgresEngine.allow`). A longer read
# runs again on a connection for long reads.
LIGHT_MS = 250
LIGHT_STEPS = 100_000
# Any other statement ends before `postgres_answers.ANSWER_S`: the server would go on with a statement whose connection
# is ended, and keep the locks of its transaction.
STATEMENT_MS = 50_000
SLOW_READ_S = 0.01  # a page of 50 takes 1 ms beside the server, and 7 ms with a round trip of 1.4 ms

_STATES: Final = {"used": True, "idle": False}  # of a connection


_log = structlog.get_logger()


class PostgresStore(SqlStore):
    """A `base.Store` in one PostgreSQL database. With `OpenMode.READ` there is no writing connection.

    A statement without an answer for the time of `limit` fails, and its connection is ended.
    """

    def __init__(
        self,
        address: StoreAddress,
        reader: TraitsReader,
        *,
        mode: OpenMode = OpenMode.SERVE,
        limit: AnswerLimit | None = None,
    ) -> None:
        super().__init__(reader, mode)
        self.address = address
        self._limit = limit or AnswerLimit()
        self._lanes: list[_Lane] = []
        self._last_commit: LastCommit | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        if self._lanes:
            raise StoreError("the store is already open")
        first = _Lane(PostgresSession(self.address, statement_timeout_ms=STATEMENT_MS, kind="write", limit=self._limit))
        self._lanes.append(first)
        self._watching = asyncio.create_task(self._watch(), name="answers of the database")
        try:
            await first.call(self._prepare, first.session)
        except BaseException:
            await self._disconnect()
            raise
        writers: list[BatchRunner] = []
        if self._mode is not OpenMode.READ:
            engine = PostgresEngine(first.session, self._last_commit)
            writers.append(first.runner(WriteBatches(engine, self._indexer).run))
        readers = [self._reader(LIGHT_MS, LIGHT_STEPS) for _ in range(READERS)]
        long_readers = [self._reader(STATEMENT_MS, None) for _ in range(LONG_READERS)]
        self._start(writers, readers, long_readers, SLOW_READ_S)
        for state, is_busy in _STATES.items():
            STORE_CONNECTIONS.labels(state).set_function(partial(self._count, is_busy=is_busy))

    def prepare_close(self) -> None:
        self._limit.shorten()

    async def close(self) -> None:
        self.prepare_close()
        await self._finish()
        if self._last_commit is not None:
            with contextlib.suppress(psycopg.Error, StoreError):  # a row that stays is removed later
                await self._lanes[0].call(self._last_commit.remove, self._lanes[0].session)
            self._last_commit = None
        for state in _STATES:
            STORE_CONNECTIONS.labels(state).set_function(lambda: 0)
        await self._disconnect()

    async def _watch(self) -> None:
        """Ends connections on which the server does not answer."""
        while True:
            await asyncio.sleep(self._limit.pause_s)
            silence_s = self._limit.enforce([lane.session.answers for lane in self._lanes])
            if silence_s:
                _log.error("database_silent", silence_s=round(silence_s, 1))

    def _prepare(self, session: PostgresSession) -> None:
        session.open_at_once()
        prepare_postgres(session, self._mode)
        if self._mode is OpenMode.SERVE:
            self._last_commit = LastCommit()
            try:
                self._last_commit.create(session)
            except psycopg.Error as error:
                raise postgres_error(error, session.name, lost=not session.is_open) from error

    def _reader(self, timeout_ms: int, steps: int | None) -> BatchRunner:
        lane = _Lane(PostgresSession(self.address, statement_timeout_ms=timeout_ms, limit=self._limit))
        self._lanes.append(lane)
        engine = PostgresEngine(lane.session)
        return lane.runner(ReadBatches(engine, ReadTx(engine, self._counts), steps).run)

    def _count(self, *, is_busy: bool) -> int:
        """Returns the number of open connections that work now, or of the others."""
        return sum(lane.session.is_open and lane.is_busy is is_busy for lane in self._lanes)

    async def _disconnect(self) -> None:
        # Closed before it is removed: its thread may still wait for an answer.
        while self._lanes:
            await self._lanes[-1].close()
            self._lanes.pop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
            self._watching = None


class _Lane:
    """A connection and the thread that uses it."""

    def __init__(self, session: PostgresSession) -> None:
        self.session = session
        self.is_busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="postgres")

    def runner(self, run: Callable[[list[Work]], int]) -> BatchRunner:
        """Returns what runs batches in the thread."""
        return lambda works: self.call(run, works)

    async def call(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Runs a function in the thread."""
        self.is_busy = True
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)
        finally:
            self.is_busy = False

    async def close(self) -> None:
        """Closes the connection and ends the thread."""
        await self.call(self.session.close)
        self._thread.shutdown()

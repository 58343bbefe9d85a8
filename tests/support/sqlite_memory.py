"""A SQLite store in memory: the SQL of `SqliteStore` without its threads, queues and files."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TypeVar

from smartfeeds.core.touches import Touch
from smartfeeds.core.view import View
from smartfeeds.errors import StoreError
from smartfeeds.formats.atom import read_traits
from smartfeeds.store import migrate
from smartfeeds.store.base import Again, ReadTx, Work, WriteTx
from smartfeeds.store.batches import WriteBatches
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.store.scan import Scan
from smartfeeds.store.sql_counts import Counts
from smartfeeds.store.sqlite_engine import SqliteEngine

T = TypeVar("T")


@cache
def _blank() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate.prepare(connection, Path(":memory:"))
        return connection.serialize()


class SqliteMemoryStore:
    """A `base.Store`. Its data remains when it is closed and opened again.

    A work runs as soon as it is called, on the event loop, in a transaction of its own. Its result comes in the next
    iteration of the event loop. `works` is their number.
    """

    def __init__(self) -> None:
        self.works = 0
        self._data = _blank()
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        if self._connection is not None:
            raise StoreError("the store is already open")
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)
        self._connection.deserialize(self._data)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._engine = SqliteEngine(self._connection, ":memory:")
        self._reader = ReadTx(self._engine, Counts())
        self._writer = WriteTx(self._engine, ReadAhead(read_traits))

    def prepare_close(self) -> None:
        """Does nothing: memory answers at once."""

    async def close(self) -> None:
        if self._connection is not None:
            self._data = self._connection.serialize()
            self._connection.close()
            self._connection = None

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "", touch: Touch | None = None) -> T:
        self._begin_work()
        self._engine.begin_read()
        try:
            return work(self._reader)
        finally:
            self._reader.forget()
            self._engine.end_read()

    def submit_read(self, work: Work) -> None:
        self._begin_work()
        self._engine.begin_read()
        try:
            work.run(self._reader)
        finally:
            self._reader.forget()
            self._engine.end_read()
        asyncio.get_running_loop().call_soon(work.ended)

    async def write(
        self,
        work: Callable[[WriteTx], T | Again],
        *,
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> T:
        while True:
            result: T | Again
            try:
                result = self.commit(work)
            except Again as again:
                work = again.work
                continue
            if on_commit is not None:
                on_commit()
            if not isinstance(result, Again):
                return result
            work = result.work

    def submit_write(self, work: Work) -> None:
        self._begin_work()
        while True:
            self._engine.begin()
            try:
                work.run(self._writer)
                if work.error is None:
                    self._writer.settle()
                    self._engine.commit()
            finally:
                self._writer.forget()
                self._engine.rollback()
            if work.error is None:
                work.committed()
            if work.again is None:
                break
            work.rest = work.again.work
        asyncio.get_running_loop().call_soon(work.ended)

    def new_scan(self, node_no: int, view: View) -> Scan:
        return Scan(node_no, view, read_traits)

    async def index_some(self, limit: int) -> int:
        return await self.write(lambda tx: tx.index_some(limit))

    def commit(self, work: Callable[[WriteTx], T]) -> T:
        """Runs a work in a transaction of its own, at once."""
        self._begin_work()
        self._engine.begin()
        try:
            result = work(self._writer)
            self._writer.settle()
            self._engine.commit()
            return result
        finally:
            self._writer.forget()
            self._engine.rollback()

    def _begin_work(self) -> None:
        self.works += 1
        if self._connection is None:
            raise StoreError("the store is closed")


class GroupStore(SqliteMemoryStore):
    """Runs the writes that were submitted together: in one transaction, with what it looks up ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._group: list[Work] = []

    def submit_write(self, work: Work) -> None:
        self._group.append(work)

    def run_group(self) -> None:
        batches = WriteBatches(self._engine, ReadAhead(read_traits))
        while self._group:
            done = batches.run(self._group)
            ended, self._group = self._group[:done], self._group[done:]
            for work in ended:
                if work.again is None:
                    work.ended()
                else:
                    work.rest = work.again.work
                    self._group.insert(0, work)

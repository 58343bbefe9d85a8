"""A SQLite store in memory for property tests: the SQL of the real store without threads, files and group commits."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import TypeVar

from smartfeeds.core.touches import Touch
from smartfeeds.formats.atom import read_traits
from smartfeeds.store import migrate
from smartfeeds.store.base import Again, ReadTx, WriteTx
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.store.sqlite_engine import SqliteEngine
from support.steps import run_steps

T = TypeVar("T")


@cache
def _blank() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate.create(connection)
        return connection.serialize()


class SqliteMemoryStore:
    """A `base.Store`. Transactions run one after the other on the event loop."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_blank())
        self._engine = SqliteEngine(self.connection, ":memory:")
        self._tx = WriteTx(self._engine, ReadAhead(read_traits))

    async def open(self) -> None:
        """Does nothing: the database exists."""

    def prepare_close(self) -> None:
        """Does nothing: memory answers at once."""

    async def close(self) -> None:
        """Frees the memory."""
        self.connection.close()

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "", touch: Touch | None = None) -> T:
        """Runs a work that only reads."""
        return self._run(work)

    async def write(
        self,
        work: Callable[[WriteTx], T | Again],
        *,
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> T:
        """Runs a work and its next steps, each in a transaction."""
        return run_steps(work, self._run, on_commit)

    async def index_some(self, limit: int) -> int:
        """Indexes items."""
        return self._run(lambda tx: tx.index_some(limit))

    def _run(self, work: Callable[[WriteTx], T]) -> T:
        self._engine.begin()
        try:
            result = work(self._tx)
            self._tx.settle()
            self._engine.commit()
            return result
        finally:
            self._tx.forget()
            self._engine.rollback()

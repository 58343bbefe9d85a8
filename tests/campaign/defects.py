"""Defects that negative controls put into the service, so that the checker must fail [CAM-036].

Each function changes the code of the process that calls it, which is a fork made for one run.
"""

from collections.abc import Callable, Iterable

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Node, Slice
from smartfeeds.core.position import Cursor
from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.cluster.lock_session import LockSession
from smartfeeds.features.cluster.shards import Members
from smartfeeds.features.mirrors import mirror, mirror_state
from smartfeeds.features.polling import source_import
from smartfeeds.service import importing, item_writes, publishing, pulls
from smartfeeds.service.context import Context
from smartfeeds.store import sqlite
from smartfeeds.store.base import ReadTx, Work
from smartfeeds.store.batches import WriteBatches
from smartfeeds.store.engine import Engine
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.store.sqlite_engine import SqliteEngine


def without_sync() -> None:
    """SQLite never syncs [CAM-036 a]."""
    begin = SqliteEngine.begin

    def begin_without_sync(engine: SqliteEngine) -> None:
        engine.run("PRAGMA synchronous = OFF")
        begin(engine)

    SqliteEngine.begin = begin_without_sync  # type: ignore[assignment, method-assign]


def keys_from_clock() -> None:
    """Keys are the time of the clock, also when it has stepped back [CAM-036 d]."""

    def next_key(_last_us: int, requested_us: int) -> int:
        return requested_us

    for module in (item_writes, publishing, importing, source_import):
        module.next_key = next_key  # type: ignore[attr-defined]


def acknowledges_before_commit() -> None:
    """Writes are acknowledged, and committed before the first write after the next 20 [CAM-036 e]."""

    class LateBatches(WriteBatches):
        def __init__(self, engine: Engine, reader: ReadAhead) -> None:
            super().__init__(engine, reader)
            self._late: list[Work] = []

        def run(self, works: list[Work]) -> int:
            # Works run for their results, are rolled back, and run again together later. The newest works are in no
            # commit when they are acknowledged, so that each kill loses some.
            self._engine.begin()
            for earlier in self._late:
                earlier.run(self._tx)
            if len(self._late) > LATE_WRITES:
                self._tx.settle()
                self._tx.forget()
                self._engine.commit()
                self._late.clear()
                self._engine.begin()
            for work in works:
                work.run(self._tx)
            self._tx.settle()
            self._tx.forget()
            self._engine.rollback()
            self._late += works
            return len(works)

    vars(sqlite)["WriteBatches"] = LateBatches


def without_ownership() -> None:
    """Each process owns all shards, without a lock [CAM-036 c]."""

    async def lock(_locks: LockSession, shards: Iterable[int]) -> frozenset[int]:
        return frozenset(shards)

    def share(_members: Members, *, is_linked: bool) -> int:
        return SHARDS

    LockSession.lock = lock  # type: ignore[method-assign]
    Members.share = share  # type: ignore[method-assign]


def empty_page_after_deleted_cursor() -> None:
    """The page behind a cursor whose item was deleted is empty, and a reader takes it for the end [CAM-036 f]."""
    cursor_edge, rows_behind = pulls._cursor_edge, pulls._rows_behind

    def edge(tx: ReadTx, context: Context, node: Node, cursor: Cursor, *, newer_side: bool) -> Edge:
        found = cursor_edge(tx, context, node, cursor, newer_side=newer_side)
        return Edge(MAX_ITEM_NO, MAX_ITEM_NO) if newer_side and cursor in context.degraded else found

    def rows(tx: ReadTx, context: Context, node: Node, window: Slice, cursor: Cursor) -> pulls._Rows:
        found = rows_behind(tx, context, node, window, cursor)
        return found._replace(items=[]) if cursor in context.degraded else found

    pulls._cursor_edge, pulls._rows_behind = edge, rows


def short_pauses() -> None:
    """No defect: mirrors look often and try again soon."""
    mirror.LEAST_EVERY_S = 0.1  # type: ignore[misc]
    vars(mirror_state)["BACKOFF"] = Backoff(first_s=0.1, longest_s=1.0)


LATE_WRITES = 20
DEFECTS: dict[str, Callable[[], None]] = {
    "without_sync": without_sync,
    "keys_from_clock": keys_from_clock,
    "without_ownership": without_ownership,
    "empty_page_after_deleted_cursor": empty_page_after_deleted_cursor,
    "short_pauses": short_pauses,
    "acknowledges_before_commit": acknowledges_before_commit,
}

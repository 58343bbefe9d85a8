"""The filter index keeps up with 3,000 publishes a second, on a clock that the work itself moves.

The queues of the store, its SQL and the pauses of the indexer are the real ones. Each statement, row, commit and
payload has a price in time, so the result is the same on every machine.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from smartfeeds.core.view import Traits
from smartfeeds.delivery import indexing
from smartfeeds.delivery.indexing import Indexer
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode, ReadTx, Work, WriteTx
from smartfeeds.store.batches import ReadBatches, WriteBatches
from smartfeeds.store.sql_counts import Counts
from smartfeeds.store.sql_store import SqlStore
from smartfeeds.store.sqlite_engine import SqliteEngine
from smartfeeds.store.work_queue import BatchRunner
from store.values import item, node, read_payload
from support.faketime import FakeTime, settle

PER_TICK, TICK_S = 30, 0.01  # 3,000 publishes a second
SECONDS = 6  # several rests of the indexer
MOST_S = 10.0  # that the index may be behind
CURRENT_S = 0.1  # behind: nothing but the last publishes
# Twice what they take on the machine of docs/benchmarks.md.
STATEMENT_S, ROW_S, PAYLOAD_S, COMMIT_S = 20e-6, 5e-6, 100e-6, 5e-3
US = 1_000_000


class PricedEngine:
    """An engine whose work takes time of a clock."""

    def __init__(self, engine: SqliteEngine, clock: FakeTime) -> None:
        self._engine = engine
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        if name in ("rows", "row", "run", "add", "documents"):
            self._clock.now_s += STATEMENT_S
        return getattr(self._engine, name)

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        rows = list(params)
        self._clock.now_s += STATEMENT_S + len(rows) * ROW_S
        self._engine.run_many(sql, rows)

    def put_documents(self, documents: dict[tuple[int, int], frozenset[str]]) -> None:
        self._clock.now_s += STATEMENT_S + len(documents) * ROW_S
        self._engine.put_documents(documents)

    def commit(self) -> None:
        self._clock.now_s += COMMIT_S
        self._engine.commit()


class PricedStore(SqlStore):
    """A store in memory. `steps` has how many items each step has indexed."""

    def __init__(self, clock: FakeTime, arrive: Callable[[], None]) -> None:
        super().__init__(self._read, OpenMode.SERVE)
        self.clock = clock
        self.steps: list[int] = []
        self.indexing = False
        self._arrive = arrive
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)

    def _read(self, payload: bytes, *, words: bool = True) -> Traits:
        self.clock.now_s += PAYLOAD_S
        return read_payload(payload, words=words)

    async def open(self) -> None:
        migrate.prepare(self._connection, Path(":memory:"))
        engine: Any = PricedEngine(SqliteEngine(self._connection, ":memory:"), self.clock)
        reader = self._runner(ReadBatches(engine, ReadTx(engine, Counts()), None).run)
        self._start([self._runner(WriteBatches(engine, self._indexer).run)], [reader], [reader], 3_600.0)

    async def close(self) -> None:
        await self._finish()
        self._connection.close()

    def _runner(self, run: Callable[[list[Work]], int]) -> BatchRunner:
        async def runner(works: list[Work]) -> int:
            done = run(works)
            self._arrive()
            for _ in range(5):
                await asyncio.sleep(0)  # the event loop goes on while a thread works
            return done

        return runner

    async def index_some(self, limit: int) -> int:
        self.indexing = True
        done = await super().index_some(limit)
        self.indexing = False
        self.steps.append(done)
        return done

    async def in_thread(self, function: Callable[..., object], *args: object) -> None:
        """Runs a function while other works run."""
        began_s = self.clock.now_s
        function(*args)
        took_s, self.clock.now_s = self.clock.now_s - began_s, began_s
        await self.clock.sleep(took_s)

    @property
    def busy(self) -> bool:
        """Whether a work waits or runs."""
        assert self._writes is not None and self._reads is not None
        serving = bool(self._writes._serving or self._reads._serving)
        return serving or (self.indexing and not self.clock.sleeping)

    def lag_s(self) -> float:
        """How long ago the oldest item arrived that the index lacks."""
        oldest = (
            "SELECT min((SELECT modified_us FROM item i WHERE i.node_no = n.node_no AND (i.modified_us, i.item_no) >"
            " (n.indexed_us, n.indexed_no) ORDER BY i.modified_us LIMIT 1)) FROM node n WHERE stale = 1"
        )
        (oldest_us,) = self._connection.execute(oldest).fetchone()
        return 0.0 if oldest_us is None else self.clock.now_s - oldest_us / US


class Publish(Work):
    """Stores an item, and wakes the indexer."""

    def __init__(self, sender: str, node_no: int, key_us: int, wake: Callable[[], None]) -> None:
        super().__init__(sender)
        self._node_no = node_no
        self._key_us = key_us
        self._wake = wake

    def step(self, tx: WriteTx) -> None:
        tx.put_item(self._node_no, item(str(self._key_us), self._key_us, "by=ann in=x | the fox"))

    def committed(self) -> None:
        self._wake()

    def ended(self) -> None:
        assert self.error is None, self.error


class Service:
    """A store that is published to, and its indexer."""

    def __init__(self, feeds: int, senders: int) -> None:
        self.clock = FakeTime()
        self.store = PricedStore(self.clock, self.arrive)
        self.indexer = Indexer(self.store)  # type: ignore[arg-type]
        self._feeds, self._senders = feeds, senders
        self.next_s = self.clock.now_s
        self.number = 0

    async def open(self) -> None:
        def work(tx: WriteTx) -> None:
            for number in range(self._feeds):
                tx.begin_index(tx.add_node(node(f"n{number}")).node_no)

        self.next_s = float("inf")
        await self.store.open()
        await self.store.write(work)
        self.next_s = self.clock.now_s

    def arrive(self) -> None:
        """Submits the publishes that have come by now."""
        while self.next_s <= self.clock.now_s:
            for _ in range(PER_TICK):
                self.number += 1
                key_us = int(self.next_s * US) + self.number % PER_TICK
                sender, feed = f"u{self.number % self._senders}", self.number % self._feeds + 1
                self.store.submit_write(Publish(sender, feed, key_us, lambda feed=feed: self.indexer.wake([feed])))  # type: ignore[misc]
            self.next_s += TICK_S

    async def run(self) -> list[float]:
        """Runs for so many seconds. Returns the lags of the index."""
        task, lags = asyncio.create_task(self.indexer.run()), []
        end_s = self.clock.now_s + SECONDS
        while self.clock.now_s < end_s:
            self.arrive()
            await settle()
            while self.store.busy and self.clock.now_s < end_s:
                await self.clock.advance(0.0)  # wakes whose time came during the work
            lags.append(self.store.lag_s())
            await self.clock.advance(max(0.0, self.next_s - self.clock.now_s))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return lags


@pytest.mark.parametrize(("feeds", "senders"), [(1, 1), (30, 300)])
async def test_index_is_never_more_than_ten_seconds_behind(
    monkeypatch: pytest.MonkeyPatch, feeds: int, senders: int
) -> None:
    service = Service(feeds, senders)
    now = SimpleNamespace(monotonic=service.clock.clock)
    monkeypatch.setattr("smartfeeds.store.base.perf_counter", service.clock.clock)
    monkeypatch.setattr("smartfeeds.store.batches.time", now)
    monkeypatch.setattr(indexing, "time", now)
    monkeypatch.setattr(indexing, "asyncio", SimpleNamespace(Event=asyncio.Event, sleep=service.clock.sleep))

    monkeypatch.setattr(asyncio, "to_thread", service.store.in_thread)
    await service.open()
    try:
        lags = await service.run()
    finally:
        await service.store.close()
    assert max(lags) <= MOST_S
    # It catches up again and again, so it would not fall behind in an hour either.
    assert min(lags[len(lags) // 2 :]) <= CURRENT_S
    # Steps are whole while there is enough to index, so that few commits are needed.
    indexed, steps = sum(service.store.steps), len(service.store.steps)
    assert indexed >= service.number - max(lags) * PER_TICK / TICK_S - PER_TICK
    assert indexed / steps >= indexing.INDEX_STEP / 2

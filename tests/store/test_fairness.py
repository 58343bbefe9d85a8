"""One sender's works do not hold up those of others: turns by the time that works took, reads with bounded steps."""

import asyncio
import contextlib
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import MAX_ITEM_NO, Edge, IndexState, Item, Slice
from smartfeeds.core.view import BARE, SMART, Traits
from smartfeeds.errors import Condition, FeedError, StoreClosedError
from smartfeeds.store import work_queue
from smartfeeds.store.base import ReadTx, Work, WriteTx
from smartfeeds.store.engine import OverBudgetError
from smartfeeds.store.sql_counts import Counts
from smartfeeds.store.sql_item_writes import REPLACED_BYTES
from smartfeeds.store.sql_store import SLOW_WRITE_S
from smartfeeds.store.sqlite import READERS, SqliteStore, SqliteThread
from smartfeeds.store.sqlite_engine import SqliteEngine
from smartfeeds.store.work_queue import SenderQueue, WorkQueue
from store.values import NamedWork, add_feed, item, read_payload, view
from support.effort import runs
from support.waiting import wait_for

ITEMS = 600
WORD = view("q=word")
CATEGORY = view("category=x")


def jobs_of(turn: str, count: int) -> list[Work]:
    return [NamedWork(turn) for _ in range(count)]


def take(turns: SenderQueue) -> Work:
    (work,) = turns.take(1)
    return work


def serve(turns: SenderQueue, cost_s: dict[str, float], seconds: float) -> Counter[str]:
    """Takes jobs until they took so long together; how often it was each one's turn."""
    taken: Counter[str] = Counter()
    used_s = 0.0
    while turns and used_s < seconds:
        job = take(turns)
        job.spent_s = cost_s[job.turn]
        turns.charge([job])
        used_s += job.spent_s
        taken[job.turn] += 1
    return taken


@given(slow_s=st.floats(0.002, 0.1), quick_s=st.floats(0.0005, 0.002))
@settings(max_examples=runs(40), deadline=None)
def test_turns_share_time_and_not_works(slow_s: float, quick_s: float) -> None:
    """Two senders that always have works waiting get the same time, whatever one work of each takes."""
    turns = SenderQueue(SLOW_WRITE_S)
    for job in (*jobs_of("slow", 1_000), *jobs_of("quick", 4_000)):
        turns.add(job)
    taken = serve(turns, {"slow": slow_s, "quick": quick_s}, 1.0)

    assert abs(taken["slow"] * slow_s - taken["quick"] * quick_s) <= 2 * slow_s


def test_turn_that_was_idle_is_next_and_has_saved_up_no_time() -> None:
    turns = SenderQueue(SLOW_WRITE_S)
    for job in jobs_of("busy", 1_000):
        turns.add(job)
    serve(turns, {"busy": 0.01}, 5.0)
    for job in jobs_of("late", 1_000):
        turns.add(job)
    taken = serve(turns, {"busy": 0.01, "late": 0.01}, 0.2)
    first = serve(turns, {"busy": 0.01, "late": 0.01}, 0.01)

    assert abs(taken["late"] - taken["busy"]) <= 1
    assert sum(first.values()) == 1


def test_turns_of_idle_senders_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many senders come and go, few are remembered, and none that waits is lost."""
    monkeypatch.setattr("smartfeeds.store.work_queue.REMEMBERED", 8)
    turns = SenderQueue(SLOW_WRITE_S)
    for job in jobs_of("waits", 3):
        turns.add(job)
    for number in range(100):
        turns.add(*jobs_of(f"s{number}", 1))
        turns.charge([take(turns)])
        assert len(turns._accounts) <= 8

    assert turns


async def test_slow_job_runs_in_a_batch_of_its_own() -> None:
    """A turn whose last job was slow holds up neither the jobs before its next one nor those behind it."""
    cost_s = {"slow": 0.010, "q0": 0.004, "q1": 0.004, "q2": 0.004}
    batches: list[list[str]] = []

    def run(jobs: list[Work]) -> int:
        batches.append([job.turn for job in jobs])
        for job in jobs:
            job.run(None)
            job.spent_s = cost_s[job.turn]
        return len(jobs)

    async def call(*turns: str) -> list[list[str]]:
        """Calls for these turns at one moment; their batches."""
        batches.clear()
        await asyncio.gather(*(queue.call(lambda _tx: None, turn) for turn in turns))
        return list(batches)

    thread = SqliteThread()
    queue = WorkQueue([partial(thread.run, run)], 64, SLOW_WRITE_S)
    quick = ["q0", "q1", "q2"]
    await call("slow", *quick * 3)
    assert await call("slow", *quick) == [["slow"], quick], "10 ms used so far, the others 12 ms"
    assert await call("slow", *quick) == [quick, ["slow"]], "20 ms used so far, the others 16 ms"
    await queue.close()
    await thread.close()


async def test_works_that_wait_may_be_dropped_at_the_end() -> None:
    """A thousand pages that nobody will read must not delay a stop; what runs is waited for."""
    ran: list[str] = []
    begins, ends = asyncio.Event(), asyncio.Event()

    async def run(works: list[Work]) -> int:
        begins.set()
        await ends.wait()
        for work in works:
            work.run(None)
        return len(works)

    queue = WorkQueue([run], 1, SLOW_WRITE_S)
    calls = [asyncio.ensure_future(queue.call(lambda _tx, name=name: ran.append(name), name)) for name in "abcd"]
    await begins.wait()
    closing = asyncio.ensure_future(queue.close(drops=True))
    _done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    ends.set()
    await closing
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert ran == ["a"]
    assert [type(outcome) for outcome in outcomes] == [type(None), *[StoreClosedError] * 3]
    assert len(waiting) == 1, "the others learnt it at once"


def test_slow_turn_has_one_job_in_work_at_a_time() -> None:
    """Else it would occupy every connection, and the others would wait for one of its jobs."""
    turns = SenderQueue(SLOW_WRITE_S)
    for job in (*jobs_of("slow", 4), *jobs_of("quick", 2)):
        turns.add(job)
    first = take(turns)
    first.spent_s = 2 * SLOW_WRITE_S
    turns.charge([first])
    assert first.turn == "slow"

    assert [take(turns).turn for _ in range(3)] == ["quick", "quick", "slow"]
    assert not turns, "the slow turn has a job in work"
    turns.add(*jobs_of("slow", 1))
    assert not turns
    turns.charge([first])
    assert take(turns).turn == "slow"


def test_slow_sender_with_a_running_work_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its account says that a work runs: without it, a second one would run beside the first."""
    monkeypatch.setattr(work_queue, "REMEMBERED", 2)
    turns = SenderQueue(SLOW_WRITE_S)
    (slow,) = jobs_of("slow", 1)
    for _ in range(2):  # the second work of a sender whose first one was slow
        turns.add(slow)
        assert take(turns) is slow
        if _ == 0:
            slow.spent_s = 2 * SLOW_WRITE_S
            turns.charge([slow])
    for name in ("a", "b", "c", "d"):
        turns.add(*jobs_of(name, 1))
        turns.charge([take(turns)])
    turns.add(*jobs_of("slow", 1))

    assert not turns


# Steps


async def filled(sqlite: SqliteStore) -> int:
    """A feed whose items all hold the word; its number."""
    made = await sqlite.write(add_feed(*(item(str(n), n + 1, "in=x | word") for n in range(ITEMS))))
    await sqlite.write(lambda tx: tx.set_keys(made.node_no, ITEMS, ITEMS))
    await sqlite.write(lambda tx: tx.index_node(made.node_no))
    return made.node_no


async def filled_beyond_short_reads(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> int:
    """As `filled`, in a store whose short reads are too short to count the items of the feed."""
    monkeypatch.setattr("smartfeeds.store.sqlite.LIGHT_STEPS", 2_000)
    await sqlite.close()
    await sqlite.open()
    return await filled(sqlite)


def test_engine_ends_a_work_at_its_bound_always_at_the_same_place() -> None:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    engine = SqliteEngine(raw, "x.db")
    try:
        raw.execute("CREATE TABLE t (n INTEGER)")
        raw.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(10_000)])
        engine.allow(100_000)
        assert engine.row("SELECT count(*) FROM t WHERE n % 2") == (5_000,)
        for _ in range(3):
            engine.allow(20_000)
            with pytest.raises(OverBudgetError):
                engine.rows("SELECT count(*) FROM t WHERE n % 2")
        engine.allow(1_000)
        for _ in range(20):  # fifty steps each
            engine.row("SELECT 1")
        with pytest.raises(OverBudgetError):
            engine.row("SELECT 1")
        engine.allow(None)
        assert engine.row("SELECT count(*) FROM t WHERE n % 2") == (5_000,)
    finally:
        raw.close()


def held_count(node_no: int) -> tuple[Callable[[ReadTx], int], threading.Event, threading.Event]:
    """A long read that counts the items of a feed and then waits; whether it has counted, and what lets it go on."""
    entered, leave = threading.Event(), threading.Event()

    def count(tx: ReadTx) -> int:
        items = tx.count(node_no, WORD)
        entered.set()
        leave.wait()
        return items

    return count, entered, leave


async def test_long_reads_leave_the_connections_for_short_ones_free(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long reads wait for a connection of their own, and short reads are answered meanwhile."""
    node_no = await filled_beyond_short_reads(sqlite, monkeypatch)
    long, entered, leave = held_count(node_no)
    reads = [asyncio.create_task(sqlite.read(long, turn=f"u{n}")) for n in range(READERS + 2)]
    await asyncio.to_thread(entered.wait)
    short = await wait_for(sqlite.read(lambda tx: tx.node_count()), "the short read")
    leave.set()

    assert short == 1
    assert await asyncio.gather(*reads) == [ITEMS] * (READERS + 2)


async def test_long_read_is_run_again_as_a_whole_and_its_error_is_passed_on(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_no = await filled_beyond_short_reads(sqlite, monkeypatch)
    runs: list[str] = []

    def page(tx: ReadTx) -> list[Item]:
        runs.append("page")
        return tx.slice(node_no, Slice(SMART, ITEMS))

    def refused(tx: ReadTx) -> None:
        runs.append("refused")
        tx.count(node_no, WORD)
        raise FeedError(Condition.FORBIDDEN)

    assert len(await sqlite.read(page)) == ITEMS
    with pytest.raises(FeedError):
        await sqlite.read(refused)
    assert runs == ["page", "page", "refused", "refused"]


async def test_reads_behind_a_long_one_of_the_same_turn_keep_their_order(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not begun in vain on the connections for short reads."""
    node_no = await filled_beyond_short_reads(sqlite, monkeypatch)
    entered, leave = threading.Event(), threading.Event()
    runs: list[int] = []

    def long(number: int, tx: ReadTx) -> None:
        tx.count(node_no, WORD)
        runs.append(number)
        entered.set()
        leave.wait()

    first = asyncio.create_task(sqlite.read(lambda tx: long(0, tx), turn="eve"))
    await asyncio.to_thread(entered.wait)
    rest = [asyncio.create_task(sqlite.read(lambda tx, n=n: long(n, tx), turn="eve")) for n in (1, 2, 3)]  # type: ignore[misc]
    await asyncio.sleep(0)
    assert await wait_for(sqlite.read(lambda tx: tx.node_count(), turn="alice"), "Alice's read") == 1
    leave.set()
    await asyncio.gather(first, *rest)
    assert runs == [0, 1, 2, 3]


async def test_short_read_without_a_turn_does_not_wait_for_a_long_one(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The health probe and the dispatcher read without a turn, as other parts do: they are answered meanwhile."""
    node_no = await filled_beyond_short_reads(sqlite, monkeypatch)
    long, entered, leave = held_count(node_no)
    blocked = asyncio.create_task(sqlite.read(long))
    await asyncio.to_thread(entered.wait)
    try:
        assert await wait_for(sqlite.read(lambda tx: tx.node_count()), "the short read") == 1
    finally:
        leave.set()
    assert await blocked == ITEMS


# Counts


async def test_count_beyond_its_bound_is_not_known(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartfeeds.store.sqlite.LIGHT_STEPS", 500)
    await sqlite.close()
    await sqlite.open()
    node_no = await filled(sqlite)
    monkeypatch.setattr("smartfeeds.store.sql_counts.COUNT_STEPS", 1_000)

    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, WORD)) is None
    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, SMART)) == ITEMS
    assert await sqlite.read(lambda tx: tx.count(node_no, WORD)) == ITEMS


async def test_count_up_to_an_edge_has_the_same_bound(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without filters: the index of a page in a large feed must not occupy the connection of long reads."""
    monkeypatch.setattr("smartfeeds.store.sqlite.LIGHT_STEPS", 500)
    await sqlite.close()
    await sqlite.open()
    node_no = await filled(sqlite)
    half = Edge(ITEMS // 2, MAX_ITEM_NO)
    for counted in (WORD, CATEGORY, BARE):
        assert await sqlite.read(lambda tx, counted=counted: tx.bounded_count(node_no, counted, before=half)) == 300
    monkeypatch.setattr("smartfeeds.store.sql_counts.COUNT_STEPS", 1_000)
    for counted in (WORD, CATEGORY, BARE):
        assert await sqlite.read(lambda tx, counted=counted: tx.bounded_count(node_no, counted, before=half)) is None


async def test_count_costs_what_has_come_since_the_last_one(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New items are added to the count that is known; an edit may bring an item into the view, so all is counted."""
    monkeypatch.setattr("smartfeeds.store.sqlite.LIGHT_STEPS", 500)
    await sqlite.close()
    await sqlite.open()
    node_no = await filled(sqlite)
    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, CATEGORY)) == ITEMS
    monkeypatch.setattr("smartfeeds.store.sql_counts.COUNT_STEPS", 1_000)

    def publish(item_id: str, key_us: int, payload: str) -> None:
        def work(tx: WriteTx) -> None:
            old = tx.item(node_no, item_id)
            created_us = old.created_us if old else key_us
            stored = item(item_id, key_us, payload, created_us=created_us)
            tx.put_item(node_no, stored._replace(item_no=old.item_no if old else 0))
            tx.set_keys(node_no, key_us, max(created_us, ITEMS))
            tx.index_node(node_no)

        works.append(work)

    works: list = []
    publish("new", ITEMS + 1, "in=x")
    publish("other", ITEMS + 2, "| nothing")
    for work in works:
        await sqlite.write(work)
    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, CATEGORY)) == ITEMS + 1
    assert (
        await sqlite.read(lambda tx: tx.bounded_count(node_no, view("category=x&order=created&sync=true"))) == ITEMS + 1
    )

    works.clear()
    publish("other", ITEMS + 3, "in=x | now")
    await sqlite.write(works[0])
    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, CATEGORY)) is None
    monkeypatch.setattr("smartfeeds.store.sql_counts.COUNT_STEPS", 10**9)
    assert await sqlite.read(lambda tx: tx.bounded_count(node_no, CATEGORY)) == ITEMS + 2


async def test_older_snapshot_counts_its_own_items_and_replaces_no_newer_count(tmp_path: Path) -> None:
    """Another connection may have counted the view after a later edit: that count is not the one of this snapshot."""
    store = SqliteStore(tmp_path / "s.db", read_payload)
    await store.open()
    connections = [sqlite3.connect(tmp_path / "s.db", isolation_level=None) for _ in range(2)]
    try:
        made = await store.write(add_feed(item("a", 1, "in=x"), item("b", 2)))
        await store.write(lambda tx: tx.index_node(made.node_no))
        counts = Counts()
        older, newer = (ReadTx(SqliteEngine(raw, "s.db"), counts) for raw in connections)
        connections[0].execute("BEGIN")
        assert older.node_count() == 1  # takes the snapshot

        edited = item("b", 3, "in=x", created_us=2)._replace(item_no=2)
        await store.write(lambda tx: tx.put_item(made.node_no, edited))
        await store.write(lambda tx: tx.index_node(made.node_no))
        assert newer.bounded_count(made.node_no, CATEGORY) == 2
        remembered = counts.get(made.node_no, CATEGORY)

        assert older.bounded_count(made.node_no, CATEGORY) == 1
        assert counts.get(made.node_no, CATEGORY) == remembered
    finally:
        for raw in connections:
            raw.close()
        await store.close()


VIEWS = [view(query) for query in ("q=one", "category=x", "kind=edited", "author=a&q=two", "kind=new&category=x")]
CHANGES = st.one_of(
    st.tuples(
        st.just("publish"), st.sampled_from("abcdef"), st.sampled_from(["in=x | one", "by=a | two", "| one two"])
    ),
    st.tuples(st.just("delete"), st.sampled_from("abcdef"), st.just("")),
    st.tuples(st.just("options"), st.sampled_from(["publisher", "none"]), st.just("")),
    st.tuples(st.just("count"), st.just(""), st.just("")),
)


@given(changes=st.lists(CHANGES, max_size=25))
@settings(max_examples=runs(30), deadline=None)
def test_remembered_counts_are_those_that_would_be_counted(
    changes: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever happened since a count was made, in one change or in many."""

    async def run() -> None:
        store = SqliteStore(tmp_path_factory.mktemp("counts") / "s.db", read_payload)
        await store.open()
        try:
            made = await store.write(add_feed())
            for number, (kind, what, payload) in enumerate((*changes, ("count", "", "")), 1):
                await change(store, made.node_no, number, kind, what, payload)
        finally:
            await store.close()

    async def change(store: SqliteStore, node_no: int, key_us: int, kind: str, what: str, payload: str) -> None:
        def work(tx: WriteTx) -> None:
            if kind == "options":
                tx.set_options(node_no, {"itemreply": (what,)})
                return
            old = tx.item(node_no, what)
            node = tx.node_by_no(node_no)
            assert node is not None
            tx.put_item(
                node_no,
                Item(
                    old.item_no if old else 0,
                    what,
                    old.created_us if old else key_us,
                    key_us,
                    payload.encode(),
                    "a",
                    deleted=kind == "delete",
                    revision=old.revision + 1 if old else 1,
                ),
            )
            tx.set_keys(node_no, key_us, node.last_created_us if old else key_us)
            tx.index_node(node_no)

        def both(tx: ReadTx) -> tuple[list[int | None], list[int]]:
            return [tx.bounded_count(node_no, one) for one in VIEWS], [tx.count(node_no, one) for one in VIEWS]

        if kind != "count":
            await store.write(work)
        else:
            remembered, counted = await store.read(both)
            assert remembered == counted

    asyncio.run(run())


# The index


async def test_index_step_is_bounded_by_bytes_as_well_as_by_items(sqlite: SqliteStore) -> None:
    """Large items count as several, and nothing is left out in the end."""
    large = "| " + "word " * 2_000
    made = await sqlite.write(add_feed(*(item(str(n), n + 1, large) for n in range(20))))

    steps = []
    while done := await sqlite.write(lambda tx: tx.index_node(made.node_no, 10)):
        assert done >= 10 or await sqlite.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
        steps.append(done)

    assert len(steps) == 10, "two items of 10 KB a step, where ten of 1 KiB may be"
    assert await sqlite.read(lambda tx: tx.count(made.node_no, WORD)) == 20


async def test_index_reads_payloads_outside_of_the_writing_connection(tmp_path: Path) -> None:
    """Reading 60 KB of HTML takes 20 ms, and all writes would wait."""
    threads: list[int] = []

    def read(payload: bytes) -> Traits:
        threads.append(threading.get_ident())
        return read_payload(payload)

    store = SqliteStore(tmp_path / "s.db", read)
    await store.open()
    try:
        made = await store.write(add_feed(*(item(str(n), n + 1, "| word") for n in range(5))))
        writer = await store.write(lambda _tx: threading.get_ident())
        while await store.index_some(2):
            pass

        assert len(threads) == 5
        assert writer not in threads
        assert await store.read(lambda tx: tx.count(made.node_no, WORD)) == 5
    finally:
        await store.close()


@pytest.mark.parametrize(("size_bytes", "other"), [(REPLACED_BYTES, 0), (REPLACED_BYTES + 1, 1)])
async def test_long_version_that_is_replaced_unread_counts_as_anything(
    sqlite: SqliteStore, size_bytes: int, other: int
) -> None:
    """[A-20] The write that replaces it does not read it. Views of other words show a needless tombstone then, and no
    view lacks one."""
    payload = "| word ".ljust(size_bytes, "x")
    made = await sqlite.write(add_feed(item("a", 1, payload)))
    first = await sqlite.read(lambda tx: tx.item(made.node_no, "a"))
    assert first is not None
    await sqlite.write(lambda tx: tx.put_item(made.node_no, first._replace(payload=b"| new", modified_us=2)))
    await sqlite.write(lambda tx: tx.index_node(made.node_no))

    for query, count in (("q=word", 1), ("q=new", 1), ("q=never", other)):
        assert await sqlite.read(lambda tx, query=query: tx.count(made.node_no, view(query))) == count  # type: ignore[misc]


async def test_log_is_copied_into_the_database_beside_the_writes(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writing connection would copy 4,000 pages at once, and every write would wait for 45 ms."""
    monkeypatch.setattr("smartfeeds.store.sqlite.CHECKPOINT_WRITES", 3)
    monkeypatch.setattr("smartfeeds.store.sqlite.CHECKPOINT_INTERVAL_S", 0.0)

    def names() -> list[str]:
        copy = tmp_path / "copy.db"
        shutil.copy(sqlite.path, copy)
        with contextlib.closing(sqlite3.connect(f"{copy.as_uri()}?immutable=1", uri=True)) as raw:
            return [row[0] for row in raw.execute("SELECT name FROM node ORDER BY name")]

    for name in ("one", "two"):
        await sqlite.write(add_feed(name=name))
    assert sqlite._log_copy is None
    await sqlite.write(add_feed(name="three"))
    assert sqlite._log_copy is not None
    await sqlite._log_copy

    assert names() == ["one", "three", "two"]
    await sqlite.write(add_feed(name="four"))
    assert names() == ["one", "three", "two"]

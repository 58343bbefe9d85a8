"""The SQLite store when things go wrong, and what it promises beyond the contract: durability, plans, tidiness."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.core.model import MAX_ITEM_NO, Affiliation, Edge, Item, KeyRange, Mark, Node, NodeEvent, Slice
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.view import BARE, CREATED, SMART, Order, View, ViewStanding
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.store import sqlite_engine
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.store.rows import STATES
from smartfeeds.store.sql_nodes import FALL_BEHIND
from smartfeeds.store.sql_store import SLOW_WRITE_S
from smartfeeds.store.sqlite import READER_CACHE_KIB, READERS, WRITER_CACHE_KIB, SqliteStore
from smartfeeds.store.sqlite_engine import SqliteEngine
from smartfeeds.store.work_queue import SenderQueue
from store.values import NamedWork, add_feed, ids, item, node, read_payload, subscription, view
from support.query_plans import plan
from support.unprivileged import unprivileged_folder
from support.waiting import wait_for

BIG = "x" * 4000


async def fill(store: SqliteStore, node_no: int, count: int, first: int = 0) -> None:
    await asyncio.gather(
        *(store.write(lambda tx, n=n: tx.put_item(node_no, item(str(n), n, BIG))) for n in range(first, first + count))
    )


# Groups


async def test_group_rolled_back_runs_again_one_by_one(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A work that raises after a write costs its group a second run, and only itself its result."""
    # A slow machine must not end the group early: the works would run in two groups.
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", float("inf"))
    made = await sqlite.write(add_feed())
    entered, leave = threading.Event(), threading.Event()
    runs: list[str] = []

    def slow(tx: WriteTx) -> None:
        entered.set()
        leave.wait()

    def good(name: str, key_us: int) -> asyncio.Task[Item]:
        def work(tx: WriteTx) -> Item:
            runs.append(name)
            return tx.put_item(made.node_no, item(name, key_us))

        return asyncio.create_task(sqlite.write(work))

    def bad(tx: WriteTx) -> None:
        runs.append("bad")
        tx.put_item(made.node_no, item("bad", 2))
        raise FeedError(Condition.CONFLICT)

    # Of another sender: the next works of one whose work took long run alone.
    blocked = asyncio.create_task(sqlite.write(slow, turn="slow"))
    await asyncio.to_thread(entered.wait)
    tasks = [good("a", 1), asyncio.create_task(sqlite.write(bad)), good("c", 3)]
    await asyncio.sleep(0)
    leave.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await blocked
    assert runs == ["a", "bad", "a", "bad", "c"]
    assert isinstance(results[1], FeedError)
    assert ids(await sqlite.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 9)))) == "a c"
    loaded = await sqlite.read(lambda tx: tx.node("feed"))
    assert loaded is not None
    assert (loaded.total, loaded.live) == (2, 2)


async def test_group_with_an_error_before_any_write_runs_once(sqlite: SqliteStore) -> None:
    made = await sqlite.write(add_feed())
    runs: list[int] = []

    def work(number: int) -> asyncio.Task[None]:
        def run(tx: WriteTx) -> None:
            runs.append(number)
            if number % 2:
                assert tx.lock("feed") is not None
                raise FeedError(Condition.FORBIDDEN)
            tx.put_item(made.node_no, item(str(number), number))

        return asyncio.create_task(sqlite.write(run))

    results = await asyncio.gather(*(work(number) for number in range(20)), return_exceptions=True)
    assert runs == list(range(20))
    assert [isinstance(result, FeedError) for result in results] == [bool(number % 2) for number in range(20)]


async def test_work_that_raises_stop_iteration_is_answered(sqlite: SqliteStore) -> None:
    def work(tx: WriteTx) -> object:
        return next(iter(tx.nodes("", 1)))

    with pytest.raises(RuntimeError):
        await wait_for(sqlite.write(work), "the failure of the write")


async def test_writes_of_one_moment_share_one_commit(sqlite: SqliteStore, tmp_path: Path) -> None:
    made = await sqlite.write(add_feed())
    other = sqlite3.connect(tmp_path / "s.db")
    try:
        # data_version counts the commits of other connections that this one has seen.
        first = other.execute("PRAGMA data_version").fetchone()[0]
        await fill(sqlite, made.node_no, 100)
        assert other.execute("PRAGMA data_version").fetchone()[0] > first
        assert other.execute("SELECT count(*), max(node.total) FROM item, node").fetchone() == (100, 100)
    finally:
        other.close()


async def test_works_of_many_are_taken_in_turn_those_of_one_in_their_order(sqlite: SqliteStore) -> None:
    """Whoever asks for a thousand things at once does not keep the others waiting for all of them [xep-map 249]."""
    entered, leave = threading.Event(), threading.Event()
    runs: list[str] = []

    def slow(tx: WriteTx) -> None:
        entered.set()
        leave.wait()

    def write(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(sqlite.write(lambda tx: runs.append(name), turn=name[0]))

    blocked = asyncio.create_task(sqlite.write(slow))
    await asyncio.to_thread(entered.wait)
    waiting = [write(name) for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1")]
    await asyncio.sleep(0)
    leave.set()
    await asyncio.gather(blocked, *waiting)

    assert runs == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_slow_writes_end_their_group(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits behind slow writes waits for those that are running, and no write is lost or done twice."""
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", 0.0)
    made = await sqlite.write(add_feed())
    seen: list[int] = []
    other = sqlite3.connect(tmp_path / "s.db")

    async def put(number: int) -> None:
        await sqlite.write(lambda tx: tx.put_item(made.node_no, item(str(number), number)))
        seen.append(other.execute("SELECT count(*) FROM item").fetchone()[0])

    try:
        await asyncio.gather(*map(put, range(10)))
    finally:
        other.close()

    assert seen[0] < 10, "the first is done before the last has begun"
    assert await sqlite.read(lambda tx: tx.count(made.node_no, SMART)) == 10


@pytest.mark.parametrize("done", range(5))
def test_turns_what_is_put_back_comes_next_in_its_order(done: int) -> None:
    turns = SenderQueue(SLOW_WRITE_S)
    for name in ("a1", "a2", "b1", "a3", "c1"):
        turns.add(NamedWork(name[0], name))
    taken = turns.take(4)
    turns.put_back(taken[done:])
    rest = turns.take(9)

    names = [str(work.step(None)) for work in (*taken[:done], *rest)]
    assert sorted(names) == ["a1", "a2", "a3", "b1", "c1"]
    assert [name for name in names if name[0] == "a"] == ["a1", "a2", "a3"]
    assert names[: min(done + 1, 4)] == ["a1", "b1", "c1", "a2"][: min(done + 1, 4)]


async def test_slow_read_does_not_hold_up_the_others(sqlite: SqliteStore) -> None:
    """A read that blocks keeps one connection; those that were waiting behind it go on."""
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: ReadTx) -> int:
        entered.set()
        leave.wait()
        return tx.node_count()

    blocked = asyncio.create_task(sqlite.read(slow))
    await asyncio.to_thread(entered.wait)
    assert await wait_for(sqlite.read(lambda tx: tx.node_count()), "the other read") == 0
    await wait_for(sqlite.write(add_feed()), "the write")
    leave.set()
    # Its snapshot was taken at its first look, which came after the write.
    assert await blocked == 1


async def test_read_snapshot_does_not_see_a_later_commit(sqlite: SqliteStore) -> None:
    """[xep-map 205] What a work has begun to read stays as it was until it ends."""
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: ReadTx) -> tuple[int, int]:
        before = tx.node_count()
        entered.set()
        leave.wait()
        return before, tx.node_count()

    blocked = asyncio.create_task(sqlite.read(slow))
    await asyncio.to_thread(entered.wait)
    await sqlite.write(add_feed())
    leave.set()
    assert await blocked == (0, 0)
    assert await sqlite.read(lambda tx: tx.node_count()) == 1


async def test_cancelled_before_its_turn_is_not_run(sqlite: SqliteStore) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: WriteTx) -> None:
        entered.set()
        leave.wait()

    blocked = asyncio.create_task(sqlite.write(slow))
    await asyncio.to_thread(entered.wait)
    waiting = asyncio.create_task(sqlite.write(add_feed(name="cancelled")))
    staying = asyncio.create_task(sqlite.write(add_feed(name="staying")))
    await asyncio.sleep(0)
    waiting.cancel()
    blocked.cancel()
    leave.set()
    await staying
    assert await sqlite.read(lambda tx: [one.name for one in tx.nodes("", 9)]) == ["staying"]
    assert waiting.cancelled()


async def test_close_finishes_what_was_taken(sqlite: SqliteStore) -> None:
    tasks = [asyncio.create_task(sqlite.write(add_feed(name=str(number)))) for number in range(20)]
    await asyncio.sleep(0)
    await sqlite.close()
    assert len(await asyncio.gather(*tasks)) == 20
    await sqlite.open()
    assert await sqlite.read(lambda tx: tx.node_count()) == 20


# Durability

WRITER = """
import asyncio, sys
from pathlib import Path
from smartfeeds.store.base import WriteTx
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, item, read_payload

async def main():
    store = SqliteStore(Path(sys.argv[1]), read_payload)
    await store.open()
    made = await store.write(add_feed())
    async def publish(start):
        for n in range(start, 10**9, 8):
            await store.write(lambda tx: tx.put_item(made.node_no, item(str(n), n, "x" * 500)))
            print(n, flush=True)
    await asyncio.gather(*(publish(start) for start in range(8)))

asyncio.run(main())
"""


def _publish_and_kill(path: Path, root: Path) -> set[str]:
    """Runs WRITER, kills it in full flight, and returns what it had acknowledged."""
    environment = {**os.environ, "PYTHONPATH": f"{root / 'component'}:{root / 'tests'}"}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(300)]
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    return {line.strip() for line in lines if line.endswith("\n")}


async def test_killed_process_keeps_every_acknowledged_write(tmp_path: Path, root: Path) -> None:
    """[SF-028] SIGKILL in the middle of a stream of publishes: all that was acknowledged is there."""
    path = tmp_path / "k.db"
    acknowledged = _publish_and_kill(path, root)
    assert len(acknowledged) >= 300
    store = SqliteStore(path, read_payload)
    await store.open()
    try:

        def check(tx: ReadTx) -> None:
            found = tx.slice(1, Slice(SMART, 10**6))
            assert acknowledged <= {one.id for one in found}
            loaded = tx.node("feed")
            assert loaded is not None
            assert loaded.total == loaded.live == len(found)

        await store.read(check)
    finally:
        await store.close()
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    raw.close()


async def test_connections_are_set_for_durability(sqlite: SqliteStore) -> None:
    def pragmas(tx: ReadTx) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [tx.db.row(f"PRAGMA {name}")[0] for name in names]  # type: ignore[attr-defined]

    assert await sqlite.read(pragmas) == ["wal", 2, 1]
    assert await sqlite.write(pragmas) == ["wal", 2, 1]


async def test_page_caches_of_all_connections_have_their_bounds(sqlite: SqliteStore) -> None:
    """[CAM-012] SQLite never exceeds `cache_size`, and maps no file into memory."""

    def bounds(raw: sqlite3.Connection) -> list[int]:
        return [raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("cache_size", "mmap_size")]

    connections = [await connection.run(bounds, connection.raw) for connection in sqlite._connections]

    # The last connection copies the log, and its cache remains empty.
    assert connections == [[-WRITER_CACHE_KIB, 0], *[[-READER_CACHE_KIB, 0]] * (READERS + 2)]


async def test_thousand_items_of_one_key_page_the_same_after_restart(tmp_path: Path) -> None:
    """[SF-107] 1,000 items of one time, paged by 7, twice, also after a restart: one sequence, no loss, no repeat."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, read_payload)
    await store.open()
    made = await store.write(add_feed(*(item(f"{n * 7919 % 1000}", 5) for n in range(1000))))

    async def walk(wanted: View) -> list[str]:
        found: list[str] = []
        edge: Edge | None = None
        while items := await store.read(lambda tx, at=edge: tx.slice(made.node_no, Slice(wanted, 7, after=at))):
            found += [one.id for one in items]
            edge = Edge(5, items[-1].item_no)
        return found

    for wanted in (BARE, SMART, CREATED):
        first = await walk(wanted)
        assert first == [f"{n * 7919 % 1000}" for n in range(1000)]
        assert await walk(wanted) == first
        await store.close()
        await store.open()
        assert await walk(wanted) == first
    await store.close()


# What goes wrong outside


async def test_locked_database_says_so_and_recovers(sqlite: SqliteStore, tmp_path: Path) -> None:
    made = await sqlite.write(add_feed())
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(
            *(sqlite.write(lambda tx, n=n: tx.put_item(made.node_no, item(str(n), n))) for n in range(5)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [StoreError] * 5
        assert "locked" in str(results[0]) and str(tmp_path / "s.db") in str(results[0])
        assert await sqlite.read(lambda tx: tx.count(made.node_no, SMART)) == 0
        other.execute("ROLLBACK")
    finally:
        other.close()
    await sqlite.write(lambda tx: tx.put_item(made.node_no, item("a", 1)))
    assert await sqlite.read(lambda tx: tx.count(made.node_no, SMART)) == 1


async def test_locked_database_at_open_says_so(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        store = SqliteStore(tmp_path / "s.db", read_payload, busy_s=0.0)
        with pytest.raises(StoreError, match="locked"):
            await store.open()
        other.execute("ROLLBACK")
        await store.open()
        await store.close()
    finally:
        other.close()


async def test_full_disk_says_so_and_writes_work_again_when_freed(sqlite: SqliteStore) -> None:
    made = await sqlite.write(add_feed())

    def limit(pages: int) -> object:
        return lambda tx: tx.db.row(f"PRAGMA max_page_count = {pages}")

    await fill(sqlite, made.node_no, 20)
    size = (await sqlite.write(lambda tx: tx.db.row("PRAGMA page_count")))[0]  # type: ignore[attr-defined]
    await sqlite.write(limit(size + 20))  # type: ignore[arg-type]
    results = await asyncio.gather(
        *(sqlite.write(lambda tx, n=n: tx.put_item(made.node_no, item(str(n), n, BIG))) for n in range(20, 120)),
        return_exceptions=True,
    )
    kept = [result for result in results if isinstance(result, Item)]
    refused = [result for result in results if not isinstance(result, Item)]
    assert kept and refused
    assert {type(result) for result in refused} == {StoreError}
    assert "full" in str(refused[0])

    def check(tx: ReadTx) -> int:
        found = tx.slice(made.node_no, Slice(SMART, 999))
        loaded = tx.node("feed")
        assert loaded is not None
        assert loaded.total == len(found)
        return len(found)

    assert await sqlite.read(check) == 20 + len(kept)
    await sqlite.write(limit(2**30))  # type: ignore[arg-type]
    await fill(sqlite, made.node_no, 50, 1000)
    assert await sqlite.read(check) == 70 + len(kept)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    with unprivileged_folder() as folder:
        yield folder


async def test_read_only_file_says_so(unprivileged: Path) -> None:
    path = unprivileged / "s.db"
    store = SqliteStore(path, read_payload)
    await store.open()
    made = await store.write(add_feed())
    await store.close()
    _set_mode(path, 0o400)
    with pytest.raises(StoreError, match="read-only"):
        await store.open()
    assert _names(unprivileged) == ["s.db"]
    _set_mode(path, 0o600)
    await store.open()
    await store.write(lambda tx: tx.put_item(made.node_no, item("a", 1)))
    await store.close()


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def _set_mode(path: Path, mode: int) -> None:
    path.chmod(mode)


async def test_directory_missing_or_read_only_says_so(unprivileged: Path) -> None:
    missing = SqliteStore(unprivileged / "none" / "s.db", read_payload)
    with pytest.raises(StoreError, match="directory"):
        await missing.open()
    _set_mode(unprivileged, 0o500)
    locked = SqliteStore(unprivileged / "s.db", read_payload)
    with pytest.raises(StoreError, match="directory"):
        await locked.open()


@pytest.mark.parametrize("damage", ["text", "header", "pages"])
async def test_corrupt_file_says_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path, read_payload)
    await store.open()
    made = await store.write(add_feed())
    await fill(store, made.node_no, 200)
    await store.close()
    content = bytearray(path.read_bytes())
    if damage == "text":
        content = bytearray(b"this is no database\n" * 1000)
    elif damage == "header":
        content[:16] = b"\0" * 16
    else:
        content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    if damage == "pages":
        with pytest.raises(StoreError, match="corrupt"):
            await store.open()
    else:
        with pytest.raises(StoreError, match="not a SQLite database"):
            await store.open()
    assert path.read_bytes() == bytes(content)


async def test_corrupt_page_of_a_running_store_harms_only_who_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path, read_payload)
    await store.open()
    made = await store.write(add_feed())
    await fill(store, made.node_no, 200)
    await store.close()
    raw = sqlite3.connect(path)
    page = raw.execute(
        "SELECT pageno FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' LIMIT 1 OFFSET 5"
    ).fetchone()
    raw.close()
    with path.open("r+b") as file:
        file.seek((page[0] - 1) * 4096)
        file.write(b"\xa5" * 4096)
    await store.open()
    results = await asyncio.gather(
        store.read(lambda tx: tx.node("feed")),
        store.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 999))),
        store.read(lambda tx: tx.count(made.node_no, SMART)),
        return_exceptions=True,
    )
    assert isinstance(results[0], Node)
    assert isinstance(results[1], StoreError) and "corrupt" in str(results[1])
    assert results[2] == 200
    await store.close()


async def test_open_and_close_leak_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", read_payload)
    broken = SqliteStore(tmp_path / "none" / "s.db", read_payload)

    async def once() -> None:
        await store.open()
        await store.write(lambda tx: tx.node_count())
        await store.read(lambda tx: tx.node_count())
        await store.close()
        with pytest.raises(StoreError):
            await broken.open()

    def held() -> tuple[set[threading.Thread], int]:
        ours = {thread for thread in threading.enumerate() if thread is not threading.current_thread()}
        return ours, len(list(Path("/proc/self/fd").iterdir()))

    await once()
    threads, files = held()
    for _ in range(30):
        await once()
    assert held()[0] <= threads
    assert held()[1] <= files


async def test_big_number_is_refused(sqlite: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await sqlite.write(add_feed(item("a", 2**63)))
    assert await sqlite.read(lambda tx: tx.node_count()) == 0


# Plans: a page must be an index range scan, whatever SQLite's planner thinks of the next release.


@pytest.mark.parametrize(
    ("few", "expected"),
    [
        pytest.param(9, "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)", id="few matches are looked up"),
        pytest.param(0, "SEARCH item USING INDEX item_modified (node_no=?)", id="the items are walked"),
    ],
)
async def test_search_looks_up_a_few_matches_and_walks_the_items_for_many(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch, few: int, expected: str
) -> None:
    """The time to find a rare word does not grow with the feed, and a page of a common word ends early."""
    texts = [f"kind=new | {words}" for words in ("fox", "hen", "fox hen", "fox")]
    made = await sqlite.write(add_feed(*(item(str(key), key, text) for key, text in enumerate(texts, 1))))
    while await sqlite.index_some(9):
        pass
    monkeypatch.setattr(sqlite_engine, "FEW_DOCUMENTS", few)
    search = Slice(view("q=fox"), 2, newest=True)

    assert ids(await sqlite.read(lambda tx: tx.slice(made.node_no, search))) == "3 4"
    assert await sqlite.read(lambda tx: tx.count(made.node_no, search.view)) == 3
    steps = await plan(sqlite, lambda tx: tx.slice(made.node_no, search))
    assert expected in steps, steps
    assert ("USE TEMP B-TREE FOR ORDER BY" in steps) is bool(few)


async def test_consumers_of_a_node_are_read_by_the_index(sqlite: SqliteStore) -> None:
    steps = await plan(sqlite, lambda tx: tx.consumers_of(1, ("created", "push"), 9))

    assert "SEARCH m USING PRIMARY KEY (node_no=? AND (ord,consumer)>(?,?))" in steps
    assert "SCAN" not in steps and "B-TREE" not in steps


async def test_subscriptions_of_one_address_are_found_without_reading_those_of_others(sqlite: SqliteStore) -> None:
    """What a subscription costs does not grow with the node."""
    await sqlite.write(add_feed())
    steps = await plan(sqlite, lambda tx: tx.subscriptions_on(1, "a@x", now_us=None))
    assert "INDEX subscription_jid (node_no=? AND jid=?)" in steps
    assert "INDEX subscription_jid (node_no=? AND jid>? AND jid<?)" in steps
    assert "subscription_no" not in steps


async def test_expiring_nodes_are_found_by_their_index(sqlite: SqliteStore) -> None:
    """The sweep must not read every node of the service once a minute."""
    steps = await plan(sqlite, lambda tx: tx.expiring(5, 9))

    assert "node_expiring" in steps and "TEMP B-TREE" not in steps


async def test_counts_to_add_up_are_found_by_their_index(sqlite: SqliteStore) -> None:
    """[PG-042] The sweep must not read the counts of every JID."""
    steps = await plan(sqlite, lambda tx: tx.has_scattered_tallies())

    assert steps == "SCAN tally USING INDEX tally_scattered"  # without conditions: its rows are those to add up


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("before", [None, "z"])
async def test_listed_nodes_are_index_range_scans(sqlite: SqliteStore, newest: bool, before: str | None) -> None:
    """Hidden nodes are not looked at, and nothing is sorted."""
    await sqlite.write(add_feed())
    steps = await plan(sqlite, lambda tx: tx.listed_nodes("a@x", "a", 9, before=before, newest=newest))
    bounds = ">? AND {}<?" if before else ">?"
    assert f"n USING INDEX node_listed (listed=? AND name{bounds.format('name')})" in steps
    assert f"a USING COVERING INDEX affiliation_hidden (jid=? AND hidden{bounds.format('hidden')})" in steps
    assert "SCAN" not in steps and "TEMP B-TREE" not in steps
    steps = await plan(sqlite, lambda tx: tx.listed_count("a@x"))
    assert "affiliation USING COVERING INDEX affiliation_hidden (jid=? AND hidden>?)" in steps
    assert "a USING COVERING INDEX affiliation_jid (jid=? AND affiliation=?)" in steps


@pytest.mark.parametrize("after", [None, NodePlace(5, "n")])
async def test_nodes_by_last_change_are_index_range_scans(sqlite: SqliteStore, after: NodePlace | None) -> None:
    """Only the hidden nodes of the reader are sorted."""
    await sqlite.write(add_feed())
    steps = await plan(sqlite, lambda tx: tx.changed_nodes("a@x", 9, after))
    listed, hidden = steps.partition("affiliation_hidden")[::2]
    bound = " AND (last_modified_us,name)<(?,?)" if after else ""
    assert f"n USING INDEX node_changed (listed=?{bound})" in listed and "TEMP B-TREE" not in listed
    assert "SCAN" not in steps and hidden
    steps = await plan(sqlite, lambda tx: tx.changed_nodes(None, 9, after))
    assert steps.count(f"n USING INDEX node_changed (listed=?{bound})") == 2
    assert "SCAN" not in steps and "TEMP B-TREE" not in steps


@pytest.mark.parametrize("order", ["modified", "created"])
@pytest.mark.parametrize("newest", [False, True])
async def test_slice_is_an_index_range_scan(sqlite: SqliteStore, order: str, newest: bool) -> None:
    made = await sqlite.write(add_feed(item("a", 1, "in=x")))
    await sqlite.write(lambda tx: tx.index_node(made.node_no))
    wide, after, before = (None, None), Edge(1, 1), Edge(9, MAX_ITEM_NO)
    for query in (f"order={order}", f"order={order}&category=x"):
        for one, two in (wide, (after, None), (None, before), (after, before)):
            wanted = Slice(view(query), 5, after=one, before=two, newest=newest)
            steps = await plan(sqlite, lambda tx, wanted=wanted: tx.slice(made.node_no, wanted))
            assert "TEMP B-TREE" not in steps
            assert "SCAN" not in steps
            if "category" not in query:
                assert f"USING INDEX item_{order} (node_no=?" in steps
    bare = Slice(BARE, 5, after=after, before=before, newest=newest)
    steps = await plan(sqlite, lambda tx: tx.slice(made.node_no, bare))
    assert steps.count("USING INDEX item_live (node_no=?") == 3
    assert "SCAN" not in steps and "TEMP B-TREE" not in steps


async def test_look_ups_use_their_indexes(sqlite: SqliteStore) -> None:
    made = await sqlite.write(add_feed(item("a", 1)))
    await sqlite.write(lambda tx: tx.put_subscription(subscription(made.node_no, "bob@x")))
    await sqlite.write(lambda tx: tx.set_affiliation(made.node_no, "bob@x", Affiliation.OWNER))
    works = [
        lambda tx: tx.node("feed"),
        lambda tx: tx.nodes("a", 5, before="z", newest=True),
        lambda tx: tx.node_count(),
        lambda tx: tx.created_by("bob@x"),
        lambda tx: tx.affiliation(made.node_no, "bob@x"),
        lambda tx: tx.affiliations(made.node_no),
        lambda tx: tx.subscription(made.node_no, "bob@x", "", now_us=None),
        lambda tx: tx.subscriptions(made.node_no, 0, 5),
        lambda tx: tx.affiliations(made.node_no, KeyRange(5, "a", "z", newest=True)),
        lambda tx: tx.affiliations(made.node_no, KeyRange(5, "a"), kind=Affiliation.OWNER),
        lambda tx: tx.affiliation_count(made.node_no),
        lambda tx: tx.affiliations_of("bob@x", KeyRange(5, 1, 9, newest=True)),
        lambda tx: tx.affiliated("bob@x"),
        lambda tx: tx.subscribers(made.node_no, KeyRange(5, "a", "z", newest=True), now_us=None),
        lambda tx: tx.subscriptions_of("bob@x", now_us=None),
        lambda tx: tx.subscriptions_of("bob@x", KeyRange(5, 1, 9, newest=True), now_us=None),
        lambda tx: tx.subscribed_views(made.node_no),
        lambda tx: tx.push_start(made.node_no, 5),
        lambda tx: tx.subscriber_use(made.node_no, "bob@x", now_us=None),
        lambda tx: tx.subscription_count(made.node_no),
        lambda tx: tx.item(made.node_no, "a"),
        lambda tx: tx.events(made.node_no, 5),
        lambda tx: tx.count(made.node_no, BARE),
    ]
    for work in works:
        steps = await plan(sqlite, work)
        # The rows of the recursive statement are the views themselves.
        assert "SCAN" not in steps.replace("SCAN step", "")
        assert "TEMP B-TREE" not in steps


async def test_counts_are_kept_not_counted(sqlite: SqliteStore) -> None:
    made = await sqlite.write(add_feed(*(item(str(n), n) for n in range(50)), name="feed"))
    for wanted in (BARE, SMART, CREATED):
        steps = await plan(sqlite, lambda tx, wanted=wanted: tx.count(made.node_no, wanted))
        assert "item" not in steps
    assert "subscription" not in await plan(sqlite, lambda tx: tx.subscription_count(made.node_no))
    assert "node USING" not in await plan(sqlite, lambda tx: tx.node_count())


async def test_schema_has_no_log_of_changes(sqlite: SqliteStore) -> None:
    """[SF-007] Synchronising needs no change log: publishing leaves its one row, and nothing that grows beside it.

    The filter index has one row for each property that any version had, however many versions there were.
    """
    made = await sqlite.write(add_feed(item("a", 1)))

    def sizes(tx: ReadTx) -> dict[str, int]:
        db = tx.db  # type: ignore[attr-defined]
        names = [row[0] for row in db.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: db.row(f"SELECT count(*) FROM {name}")[0] for name in names if not name.startswith("word")}

    async def edit(first: int, last: int) -> dict[str, int]:
        for number in range(first, last):
            edited = Item(1, "a", 1, number, b"x", "bob@x", revision=number)
            await sqlite.write(lambda tx, edited=edited: tx.put_item(made.node_no, edited))
        await sqlite.write(lambda tx: tx.index_node(made.node_no))
        return await sqlite.read(sizes)

    before = await edit(2, 4)
    assert await edit(4, 80) == before
    assert {"item", "node", "mark"} <= set(before)


async def _edited(sqlite: SqliteStore, payloads: list[str]) -> list[Item]:
    """A feed whose one item was edited to each of these, as the view `category=first` shows it."""
    made = await sqlite.write(add_feed(item("a", 1, "in=first | first")))
    for number, payload in enumerate(payloads, 2):
        edited = Item(1, "a", 1, number, payload.encode(), "bob@x", revision=number)
        await sqlite.write(lambda tx, edited=edited: tx.put_item(made.node_no, edited))
    await sqlite.write(lambda tx: tx.index_node(made.node_no))
    return await sqlite.read(lambda tx: tx.slice(made.node_no, Slice(view("category=first"), 9)))


async def test_edits_between_two_contents_are_remembered_as_two_versions(sqlite: SqliteStore) -> None:
    """[A-20] A view that matches neither content shows no tombstone, however often the item is edited."""
    await _edited(sqlite, ["in=x | one", "in=y | two"] * 20)

    def lefts(tx: ReadTx, query: str) -> list[bool]:
        return [found.left for found in tx.slice(1, Slice(view(query), 9))]

    queries = ("category=x&q=one", "category=y&q=two", "category=x&q=two", "category=first")
    assert [await sqlite.read(lambda tx, query=query: lefts(tx, query)) for query in queries] == [
        [True],
        [False],
        [],
        [True],
    ]


@pytest.mark.parametrize("bound", ["PAST_TEXT", "PAST_FACETS"])
async def test_item_whose_past_versions_hold_too_much_is_in_every_view(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """[A-20] What is remembered of an item is bounded: then a view may show a needless tombstone, and lacks none."""
    monkeypatch.setattr(f"smartfeeds.store.versions.{bound}", 10)
    (found,) = await _edited(sqlite, [f"in=c{number} | w{number}" for number in range(40)])
    assert found.left

    def sizes(tx: ReadTx) -> tuple[int, int]:
        db = tx.db  # type: ignore[attr-defined]
        return db.row("SELECT count(*) FROM facet")[0], db.row("SELECT count(*) FROM word")[0]

    def check(tx: ReadTx) -> None:
        for query, left in (
            ("category=c39&q=w39", False),
            ("category=c38&q=w38&author=bob%40x", True),
            ("category=never", True),
            ("q=never+ever&kind=new", True),
        ):
            (found,) = tx.slice(1, Slice(view(query), 9))
            assert found.left is left
            assert tx.count(1, view(query)) == 1
            assert tx.standings(1, found, [view(query)]) == [ViewStanding.LEFT if left else ViewStanding.PRESENT]

    await sqlite.read(check)
    before = await sqlite.read(sizes)
    for number in range(50, 60):
        edited = Item(1, "a", 1, number, f"in=c{number} | w{number}".encode(), "bob@x", revision=number)
        await sqlite.write(lambda tx, edited=edited: tx.put_item(1, edited))
    await sqlite.write(lambda tx: tx.index_node(1))
    assert await sqlite.read(sizes) == before


async def test_past_versions_beyond_their_number_become_one(sqlite: SqliteStore) -> None:
    """[A-20] Filters that only two of them match together find a needless tombstone, and nothing is lacking."""
    (found,) = await _edited(sqlite, [f"in=c{number} | w{number}" for number in range(STATES)])
    assert found.left
    shown = [("category=c1&q=w1", 1), ("category=c1&q=w2", 1), ("category=c1&q=never", 0), ("category=c31&q=w1", 0)]
    for query, count in shown:
        assert await sqlite.read(lambda tx, query=query: tx.count(1, view(query))) == count  # type: ignore[misc]


async def test_edit_leaves_the_documents_of_past_versions_as_they_are(sqlite: SqliteStore) -> None:
    """An edit costs one document: the present version has the last number, and the others keep theirs."""
    await _edited(sqlite, ["in=second | second"])

    def documents(tx: ReadTx) -> dict[int, str]:
        return tx.db.documents([1])[1]  # type: ignore[attr-defined, no-any-return]

    before = await sqlite.read(documents)
    edited = Item(1, "a", 1, 9, b"in=third | third", "bob@x", revision=3)
    await sqlite.write(lambda tx: tx.put_item(1, edited))
    await sqlite.write(lambda tx: tx.index_node(1))
    after = await sqlite.read(documents)
    assert sorted(before) == [0, 1]
    assert sorted(after) == [0, 1, 2]
    assert before.items() <= after.items()
    assert "wthird " in after[2]


async def test_count_of_several_values_merges_their_rows_without_sorting(sqlite: SqliteStore) -> None:
    made = await sqlite.write(add_feed(item("a", 1, "in=x"), item("b", 2, "in=y"), item("c", 3, "in=z")))
    await sqlite.write(lambda tx: tx.index_node(made.node_no))
    for query, count in (("kind=new&kind=edited", 3), ("category=x&category=y&order=created", 2)):
        steps = await plan(sqlite, lambda tx, query=query: tx.count(made.node_no, view(query)))
        assert "MERGE (UNION)" in steps
        assert "TEMP B-TREE" not in steps
        assert await sqlite.read(lambda tx, query=query: tx.count(made.node_no, view(query))) == count  # type: ignore[misc]


async def test_text_that_is_not_unicode_is_refused(sqlite: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await sqlite.read(lambda tx: tx.node("\ud800"))
    with pytest.raises(StoreError):
        await sqlite.write(lambda tx: tx.add_node(node("\ud800")))


async def test_write_whose_statement_ended_the_transaction_leaves_the_others_of_its_group_done_once(
    sqlite: SqliteStore,
) -> None:
    """A full disk makes SQLite roll back by itself; what follows in the group must not be committed bit by bit."""
    made = await sqlite.write(add_feed())

    def add(kind: str) -> Callable[[WriteTx], object]:
        return lambda tx: tx.add_event(NodeEvent(0, made.node_no, 1, kind))

    def fail(tx: WriteTx) -> None:
        assert isinstance(tx, WriteTx)
        tx.db.run("ROLLBACK")
        raise StoreError("the disk is full")

    works = (add("purge"), fail, add("configuration"))
    _, refused, _ = await asyncio.gather(*map(sqlite.write, works), return_exceptions=True)

    assert isinstance(refused, StoreError)
    events = await sqlite.read(lambda tx: tx.events(made.node_no, 9))
    assert [event.kind for event in events] == ["purge", "configuration"]


async def test_look_for_consumers_that_are_behind_reads_no_other_marks(sqlite: SqliteStore) -> None:
    """The service looks every few seconds, and nearly all of its marks are up to date then."""

    def fill(tx: WriteTx) -> None:
        for number in range(3_000):
            node_no = add_feed(item("a", 5), name=f"n{number}")(tx).node_no
            tx.set_mark(node_no, Order.MODIFIED, PUSH, Mark(4 if number == 7 else 5, ""))

    await sqlite.write(fill)
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as raw:
        engine = SqliteEngine(raw, "s.db")
        behind = engine.within(2_000, ReadTx(engine).behind)  # 3,000 marks would take 40,000 steps
    assert behind == [Consumer(8, PUSH)]


async def test_publish_reads_only_marks_that_are_not_behind_yet(sqlite: SqliteStore) -> None:
    """A feed may have thousands of consumers that are all behind."""
    with closing(sqlite3.connect(sqlite.path)) as raw:
        plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {FALL_BEHIND}", (1,))]
    assert plan[0] == "SEARCH mark USING COVERING INDEX mark_behind (behind=? AND node_no=?)"


async def test_new_version_of_an_item_reads_the_stored_one_once(sqlite: SqliteStore) -> None:
    """The look-up of the caller is enough, also if the filter index has not read the stored version yet."""
    made = await sqlite.write(add_feed(item("a", 1)))
    statements: list[str] = []
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as raw:
        tx = WriteTx(SqliteEngine(raw, "s.db"), ReadAhead(read_payload))
        raw.set_trace_callback(statements.append)
        stored = tx.item(made.node_no, "a")
        assert stored is not None
        tx.put_item(made.node_no, stored._replace(modified_us=2, deleted=True))
        assert [text for text in statements if "FROM item" in text] == [statements[0]]
        statements.clear()
        tx.put_item(made.node_no, stored._replace(modified_us=3))
        node = tx.node_by_no(made.node_no)
    assert len([text for text in statements if "FROM item" in text]) == 1
    assert node is not None
    assert (node.total, node.live) == (1, 1)

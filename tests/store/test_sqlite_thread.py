"""The thread of a connection to SQLite: order, cancellation, errors, and its end."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds import telemetry
from smartfeeds.errors import StoreClosedError
from smartfeeds.store.sqlite import SqliteStore, SqliteThread
from store.values import add_feed, item, read_payload
from support.waiting import HANG_S


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[SqliteThread]:
    thread = SqliteThread()
    await thread.open(str(tmp_path / "x.db"), isolation_level=None)
    yield thread
    await thread.close()


async def test_functions_run_in_one_thread_in_order(thread: SqliteThread) -> None:
    ran: list[tuple[int, int]] = []

    def work(number: int) -> int:
        thread.raw.execute("SELECT 1").fetchall()
        ran.append((number, threading.get_ident()))
        return number

    assert await asyncio.gather(*(thread.run(work, number) for number in range(20))) == list(range(20))
    assert [number for number, _ in ran] == list(range(20))
    assert len({ident for _, ident in ran}) == 1
    assert ran[0][1] != threading.get_ident()


async def test_function_of_a_cancelled_caller_still_runs_to_its_end(thread: SqliteThread) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        leave.wait()
        left.set()

    async def call() -> None:
        await thread.run(work)

    task = asyncio.create_task(call())
    await asyncio.to_thread(entered.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    leave.set()
    await thread.run(int)
    assert left.is_set()


async def test_caller_gets_what_the_function_raises(thread: SqliteThread) -> None:
    with pytest.raises(ZeroDivisionError):
        await thread.run(divmod, 1, 0)
    # A future cannot carry it, and the caller would wait for ever.
    with pytest.raises(RuntimeError, match="StopIteration"):
        await thread.run(next, iter([]))
    assert await thread.run(int) == 0


async def test_what_waits_at_the_close_runs_and_what_comes_later_is_refused(tmp_path: Path) -> None:
    thread = SqliteThread()
    await thread.open(str(tmp_path / "x.db"), isolation_level=None)
    waiting = [thread.run(lambda: thread.raw.execute("SELECT 1").fetchall()) for _ in range(5)]
    closing = asyncio.create_task(thread.close())
    assert await asyncio.gather(*waiting) == [[(1,)]] * 5
    await closing
    with pytest.raises(StoreClosedError):
        thread.run(int)


@pytest.mark.parametrize("name", ["x.db", "none/x.db"])
async def test_closed_connection_has_no_thread(tmp_path: Path, name: str) -> None:
    before = set(threading.enumerate())
    thread = SqliteThread()
    try:
        await thread.open(str(tmp_path / name))
    except sqlite3.Error:
        assert name == "none/x.db"
    await thread.close()
    assert set(threading.enumerate()) <= before


async def test_connection_is_closed_although_the_caller_of_open_was_cancelled(tmp_path: Path) -> None:
    thread = SqliteThread()
    entered, leave = threading.Event(), threading.Event()
    first = thread.run(lambda: (entered.set(), leave.wait()))
    task = asyncio.create_task(thread.open(str(tmp_path / "x.db"), isolation_level=None))
    await asyncio.to_thread(entered.wait)
    task.cancel()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await first
    await thread.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        thread.raw.total_changes  # noqa: B018 - raises


class _Rows(list[int]):
    """Something that can be referred to weakly."""


async def test_thread_that_waits_keeps_neither_arguments_nor_results(thread: SqliteThread) -> None:
    """A batch may have many rows, and the next one may come hours later."""
    released = [threading.Event(), threading.Event()]
    argument = _Rows()
    result = await thread.run(_Rows, argument)
    for rows, event in zip((argument, result), released, strict=True):
        weakref.finalize(rows, event.set)
    del rows, argument, result
    assert [await asyncio.to_thread(event.wait, HANG_S) for event in released] == [True, True]


UNCLOSED = """
import asyncio, sys
from smartfeeds.store.sqlite import SqliteThread

async def main():
    thread = SqliteThread()
    await thread.open(sys.argv[1], isolation_level=None)
    await thread.run(lambda: thread.raw.execute("CREATE TABLE IF NOT EXISTS t (x)"))
    await thread.run(lambda: thread.raw.execute("INSERT INTO t VALUES (1)"))
    await thread.run(lambda: thread.raw.execute("BEGIN IMMEDIATE"))
    await thread.run(lambda: thread.raw.execute("INSERT INTO t VALUES (2)"))
    sys.stdout.write("at the end")
    if sys.argv[2] == "busy":
        endless = "WITH RECURSIVE n AS (SELECT 1 x UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        thread.run(lambda: thread.raw.execute(endless).fetchall())

asyncio.run(main())
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_program_that_does_not_close_the_connection_ends_all_the_same(tmp_path: Path, root: Path, state: str) -> None:
    """Its last transaction is undone, as after a kill."""
    path = tmp_path / "x.db"
    environment = {**os.environ, "PYTHONPATH": str(root / "component")}
    done = subprocess.run(
        [sys.executable, "-c", UNCLOSED, str(path), state],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "at the end", "")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    connection.close()


async def test_values_of_the_store_are_never_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """[WS-076] Among them are passwords of sources, tokens, and secrets of callbacks."""
    level = telemetry.log_level()
    telemetry.set_log_level("debug")
    try:
        with caplog.at_level(logging.DEBUG):
            store = SqliteStore(tmp_path / "s.db", read_payload)
            await store.open()
            node = await store.write(add_feed(item("a", 1, "a password")))
            assert await store.read(lambda tx: tx.item(node.node_no, "a")) is not None
            await store.close()
    finally:
        telemetry.set_log_level(level)
    assert [record for record in caplog.records if record.name != "asyncio"] == []

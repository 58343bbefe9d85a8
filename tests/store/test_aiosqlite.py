"""What the SQLite store relies on inside aiosqlite: one hop for a function, in the one thread of its connection."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import aiosqlite
import pytest

from smartfeeds.store.sqlite import ended, hop


async def test_hop_runs_functions_in_one_thread_in_order(tmp_path: Path) -> None:
    connection = await aiosqlite.connect(tmp_path / "x.db", isolation_level=None)
    try:
        ran: list[tuple[int, int]] = []

        def work(number: int) -> int:
            connection._conn.execute("SELECT 1").fetchall()
            ran.append((number, threading.get_ident()))
            return number

        assert await asyncio.gather(*(hop(connection, work, number) for number in range(20))) == list(range(20))
        assert [number for number, _ in ran] == list(range(20))
        assert len({thread for _, thread in ran}) == 1
        assert ran[0][1] != threading.get_ident()
    finally:
        await connection.close()


async def test_hop_of_a_cancelled_caller_still_runs_to_its_end(tmp_path: Path) -> None:
    connection = await aiosqlite.connect(tmp_path / "x.db", isolation_level=None)
    try:
        entered, leave, left = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            entered.set()
            leave.wait()
            left.set()

        task = asyncio.create_task(hop(connection, work))
        await asyncio.to_thread(entered.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        leave.set()
        await hop(connection, int)
        assert left.is_set()
    finally:
        await connection.close()


async def test_hop_raises_what_the_function_raises(tmp_path: Path) -> None:
    connection = await aiosqlite.connect(tmp_path / "x.db", isolation_level=None)
    try:
        with pytest.raises(ZeroDivisionError):
            await hop(connection, divmod, 1, 0)
        assert connection._conn.isolation_level is None
    finally:
        await connection.close()
    with pytest.raises(ValueError, match="closed"):
        await hop(connection, int)


@pytest.mark.parametrize("name", ["x.db", "none/x.db"])
async def test_ended_connection_has_no_thread(tmp_path: Path, name: str) -> None:
    before = set(threading.enumerate())
    connection = aiosqlite.connect(tmp_path / name)
    try:
        await connection
        await connection.close()
    except sqlite3.Error:
        assert name == "none/x.db"
    await ended(connection)
    assert set(threading.enumerate()) <= before

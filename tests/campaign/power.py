"""Power cuts: the file system of the database is replaced by what its device holds at a random moment [CAM-051].

The database is SQLite, and with the variant `postgres` a PostgreSQL (`campaign.power_postgres`).
"""

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from campaign.clients import WRITES_TO_LOSE, load_on, new_session, walk, writes_again
from campaign.disk_image import DiskImage
from campaign.history import History
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.power_postgres import postgres_power_piece
from campaign.service import Preload, Service

PIECE_CUTS = 25
LIFE_S = 0.6


async def power(task: Task) -> AsyncIterator[Piece]:
    """Cuts the power `count` times. The database is on a file system of its own."""
    with Preload() as preload:
        piece = postgres_power_piece if task.variant == "postgres" else power_piece
        for seed, cuts, folder in task.pieces(PIECE_CUTS):
            yield await piece(preload, folder, seed, cuts, task.defect)


async def power_piece(preload: Preload, folder: Path, seed: int, cuts: int, defect: str = "") -> Piece:
    """One piece on a new database. After each cut the database must be sound and have everything acknowledged."""
    chance = random.Random(seed)
    problems: list[str] = []
    with Task(seed, cuts, folder).history(folder) as history, DiskImage(folder) as disk:
        database = disk.mount / "feeds.db"
        service = Service(preload, folder, store_url=f"sqlite:///{database}", defect=defect)
        await service.prepare()
        await service.start()
        async with new_session() as session:
            try:
                async with load_on(service, history, session, seed) as followers:
                    for _ in range(cuts):
                        if defect:
                            await writes_again(history, WRITES_TO_LOSE)
                        await asyncio.sleep(chance.uniform(0, LIFE_S))
                        await asyncio.to_thread(_cut, service, history, disk, chance)
                        problems += _check(database)
                        service.fork()
                        await service.wait()
                        await walk(service, history, session)
                        service.up.set()
                    await asyncio.sleep(LIFE_S)
                for follower in followers:
                    await follower.catch_up()
                await walk(service, history, session)
            except* (RuntimeError, aiohttp.ClientResponseError) as group:
                problems += map(
                    str, group.exceptions
                )  # a service that does not start again, or cannot read its database
            finally:
                if service.pid:
                    service.end()
    return judged(seed, cuts, history, (*problems, *log_problems(service.said())))


def _cut(service: Service, history: History, disk: DiskImage, chance: random.Random) -> None:
    """Cuts the power. The process is stopped before the copy, so that the copy is of one moment."""
    os.kill(service.pid, signal.SIGSTOP)
    history.fault("power cut")
    database = disk.mount / "feeds.db"
    disk.write_some(chance, database, database.with_name("feeds.db-wal"))
    disk.copy()
    service.end()
    disk.replace()


def _check(database: Path) -> list[str]:
    """What SQLite finds wrong with the database."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            rows = connection.execute("PRAGMA quick_check").fetchall()
    except sqlite3.DatabaseError as error:
        return [f"quick_check: {error}"]
    return [] if rows == [("ok",)] else [f"quick_check: {rows[:3]}"]

"""Power cuts of a PostgreSQL whose data is on a file system of its own [CAM-051].

The service runs on and reconnects. Requests in progress get no answer or wait, so only followers read between the cuts.
The defect `without_sync` is `fsync = off`.
"""

import asyncio
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from campaign.clients import WRITES_TO_LOSE, load_on, new_session, walk, writes_again
from campaign.disk_image import DiskImage
from campaign.history import History
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.service import Preload, Service
from smartfeeds.local.process import free_port
from support.postgres import PostgresServer, new_folder, postgres_program, run_as_postgres

LIFE_S = 0.6
IMAGE_BYTES = 160 * 2**20
SOME_FILES = 8  # of which pages reach the device before a cut
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "min_wal_size": "2MB",
    "max_wal_size": "16MB",
    "log_min_messages": "warning",
}


@contextmanager
def _server_on(disk: DiskImage, *, syncs: bool) -> Iterator[PostgresServer]:
    folder = disk.mount / "postgres"
    folder.mkdir()
    shutil.chown(folder, disk.mount.parent.owner(), disk.mount.parent.group())
    server = PostgresServer(folder, free_port(), {**_OPTIONS, "fsync": "on" if syncs else "off"})
    run_as_postgres(
        postgres_program("initdb"),
        *("-D", str(server.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N", "-k"),
        "--wal-segsize=1",
    )
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            server.kill()


async def postgres_power_piece(preload: Preload, folder: Path, seed: int, cuts: int, defect: str = "") -> Piece:
    """One piece on a new server. After each cut it must start and have everything acknowledged."""
    chance = random.Random(seed)
    problems: list[str] = []
    place = new_folder()
    try:
        with (
            Task(seed, cuts, folder).history(folder) as history,
            DiskImage(place, IMAGE_BYTES) as disk,
            _server_on(disk, syncs=not defect) as server,
        ):
            service = Service(preload, folder, store_url=server.create_database())
            await service.prepare()
            await asyncio.to_thread(subprocess.run, ["sync", "-f", str(disk.mount)], check=True)
            await service.start()
            keeper = asyncio.create_task(service.keep_running(), name="keeper")
            try:
                async with new_session() as session:
                    async with load_on(service, history, session, seed) as followers:
                        for _ in range(cuts):
                            if defect:
                                await writes_again(history, WRITES_TO_LOSE)
                            await asyncio.sleep(chance.uniform(0.1, LIFE_S))
                            await asyncio.to_thread(_cut, server, history, disk, chance)
                            await writes_again(history)
                    for follower in followers:
                        await follower.catch_up()
                    await walk(service, history, session)
                keeper.cancel()
                await asyncio.to_thread(server.stop)
                problems += await asyncio.to_thread(_check, server)
            except* psycopg.Error as group:
                problems += [f"PostgreSQL does not start: {error}" for error in group.exceptions]
            finally:
                keeper.cancel()
                await asyncio.gather(keeper, return_exceptions=True)
                if service.pid:
                    service.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return judged(seed, cuts, history, (*problems, *log_problems(service.said())))


def _cut(server: PostgresServer, history: History, disk: DiskImage, chance: random.Random) -> None:
    """Cuts the power. The processes are stopped before the copy, so that the copy is of one moment."""
    server.freeze()
    history.fault("power cut of the database")
    files = [*server.data.glob("base/*/[0-9]*"), *server.data.glob("pg_wal/0*"), *server.data.glob("pg_xact/*")]
    recent = sorted(files, key=lambda path: path.stat().st_mtime)[-3 * SOME_FILES :]
    disk.write_some(chance, *chance.sample(recent, SOME_FILES))
    disk.copy()
    server.kill()
    disk.replace()
    (server.data / "postmaster.pid").unlink(missing_ok=True)
    server.start()


def _check(server: PostgresServer) -> list[str]:
    """The pages whose checksums are wrong."""
    command = [postgres_program("pg_checksums"), "--check", "-D", str(server.data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, user="postgres", cwd="/")
    return [] if done.returncode == 0 else [f"pg_checksums: {done.stderr.strip()[-300:]}"]

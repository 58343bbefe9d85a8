"""SIGKILL of the service at random points, on SQLite, with a real Prosody [CAM-050]."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

from campaign.clients import WRITES_TO_LOSE, load_on, new_session, walk, writes_again
from campaign.history import History
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.pushes import SUBSCRIBER, notified
from campaign.service import Preload, Service
from support.servers import TestServer, run_server

PIECE_KILLS = 50  # on one database
LIFE_S = 0.8  # at most, of most lives
START_S = 0.3  # kills within this time hit the start


async def kill(task: Task) -> AsyncIterator[Piece]:
    """Kills the service `count` times, some of them while it starts."""
    servers = run_server("prosody", task.folder / "prosody")
    server = await asyncio.to_thread(next, servers)
    try:
        with Preload() as preload:
            for seed, kills, folder in task.pieces(PIECE_KILLS):
                yield await kill_piece(preload, server, folder, seed, kills, task.defect)
    finally:
        servers.close()  # type: ignore[attr-defined]


async def kill_piece(
    preload: Preload, server: TestServer, folder: Path, seed: int, kills: int, defect: str = "", writers: int = 4
) -> Piece:
    """One piece on a new database."""
    chance = random.Random(seed)
    with Task(seed, kills, folder).history(folder) as history:
        async with notified(server, history) as wire, new_session() as session:
            address = {"jid": server.take_name(), "port": wire.relay.port}
            service = Service(preload, folder, defect=defect, component=address)
            await service.prepare(subscriber=f"{SUBSCRIBER}@localhost")
            await service.start()
            async with load_on(service, history, session, seed, writers=writers) as followers:
                await _kill(service, history, chance, kills, WRITES_TO_LOSE if defect else 0)
                await asyncio.sleep(LIFE_S)
            for follower in followers:
                await follower.catch_up()
            items = await walk(service, history, session)
            await wire.until(items[-1].key_us if items else 0)
            service.end()
    return judged(seed, kills, history, log_problems(service.said()))


async def _kill(service: Service, history: History, chance: random.Random, kills: int, writes: int) -> None:
    """Kills the service. Each life that has started has so many acknowledged writes, and goes on for a while."""
    starting = False
    for _ in range(kills):
        if writes and not starting:
            await writes_again(history, writes)
        await asyncio.sleep(chance.uniform(0, START_S if starting else LIFE_S))
        history.fault("kill while it starts" if starting else "kill")
        service.end()
        starting = chance.random() < 0.1
        service.fork()
        if not starting:
            await service.wait()
            service.up.set()
    if starting:
        await service.wait()
        service.up.set()

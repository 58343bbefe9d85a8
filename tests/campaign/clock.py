"""The clock of the service jumps and creeps while it is written to and followed [CAM-057]."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

from campaign.clients import load_on, new_session, walk, writes_again
from campaign.moved_clock import VARIABLE, MovedClock
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.pushes import SUBSCRIBER, notified
from campaign.service import Preload, Service
from support.servers import TestServer, run_server

HOUR_S, YEAR_S = 3_600.0, 366 * 86_400.0
JUMPS_S = (-HOUR_S, HOUR_S, 10 * YEAR_S, -10 * YEAR_S)
SMALL_S = 0.05  # the largest small step; most steps are small
PIECE_STEPS = 100
PAUSE_S = 0.2


async def clock(task: Task) -> AsyncIterator[Piece]:
    """Moves the clock `count` times: each tenth step is a jump, and the service is restarted after some of them."""
    servers = run_server("prosody", task.folder / "prosody")
    server = await asyncio.to_thread(next, servers)
    try:
        with Preload() as preload:
            for seed, steps, folder in task.pieces(PIECE_STEPS):
                yield await clock_piece(preload, server, folder, seed, steps, task.defect)
    finally:
        servers.close()  # type: ignore[attr-defined]


async def clock_piece(
    preload: Preload, server: TestServer, folder: Path, seed: int, steps: int, defect: str = ""
) -> Piece:
    """One piece on a new database."""
    chance = random.Random(seed)
    with Task(seed, steps, folder).history(folder) as history:
        async with notified(server, history) as wire, new_session() as session:
            moved = MovedClock(folder / "clock")
            address = {"jid": server.take_name(), "port": wire.relay.port}
            environment = {VARIABLE: str(moved.path)}
            service = Service(preload, folder, defect=defect, environment=environment, component=address)
            await service.prepare(subscriber=f"{SUBSCRIBER}@localhost")
            await service.start()
            async with load_on(service, history, session, seed) as followers:
                for number in range(steps):
                    await asyncio.sleep(chance.uniform(0, PAUSE_S))
                    jump = number % 10 == 9
                    seconds = chance.choice(JUMPS_S) if jump else chance.uniform(-SMALL_S, SMALL_S)
                    history.fault("clock jump" if jump else "clock step")
                    moved.move(seconds)
                    if jump and chance.random() < 0.3:
                        service.end()
                        await service.start()
                    if jump:
                        await writes_again(history)  # each jump has writes before and after it
                await writes_again(history)
            for follower in followers:
                await follower.catch_up()
            items = await walk(service, history, session)
            await wire.until(items[-1].key_us if items else 0)
            service.end()
    return judged(seed, steps, history, log_problems(service.said()))

"""PostgreSQL is killed, restarted, and replaced by its standby [CAM-054] [CAM-055] [CAM-020] [CAM-021].

Without a variant the server is killed and started again. `synchronous` fails over to a standby that has every commit.
`standby-cut` separates such a standby from its primary for some seconds, in which no write is acknowledged.
The defect `asynchronous` fails over to a standby that was cut off for some writes: acknowledged writes are lost, which
is the property of that setting, and the checker must show it.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

from campaign.clients import WRITES_TO_LOSE, load_on, new_session, walk, writes_again
from campaign.history import History
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.replicas import Replicas
from campaign.service import Preload, Service

PIECE_FAULTS = 20
LIFE_S = 1.0
LONGEST_CUT_S = 8.0  # longer than the timeout of the replication
DATABASE = "smartfeeds"


async def failover(task: Task) -> AsyncIterator[Piece]:
    """Kills, or fails over, `count` times."""
    with Preload() as preload:
        for seed, faults, folder in task.pieces(PIECE_FAULTS):
            yield await failover_piece(preload, folder, seed, faults, task.variant, task.defect)


async def failover_piece(
    preload: Preload, folder: Path, seed: int, faults: int, variant: str = "", defect: str = ""
) -> Piece:
    """One piece on a new server."""
    chance = random.Random(seed)
    with_standby = bool(variant or defect)
    with Task(seed, faults, folder).history(folder) as history:
        async with (
            Replicas(is_synchronous=variant in ("synchronous", "standby-cut")) as replicas,
            new_session() as session,
        ):
            url = replicas.primary.create_database()
            service = Service(preload, folder, store_url=replicas.url(url.rpartition("/")[2]))
            await service.prepare()
            if with_standby:
                await replicas.restart_primary()
                await replicas.add_standby()
            await service.start()
            keeper = asyncio.create_task(service.keep_running(), name="keeper")
            async with load_on(service, history, session, seed) as followers:
                for _ in range(faults):
                    await asyncio.sleep(chance.uniform(0.1, LIFE_S))
                    if variant == "standby-cut":
                        await _cut_standby(replicas, history, chance)
                    elif with_standby:
                        await _fail_over(replicas, history, cut_off=defect == "asynchronous")
                    else:
                        await _restart(replicas, history, chance)
                    await writes_again(history)
            for follower in followers:
                await follower.catch_up()
            await walk(service, history, session)
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
            service.end()
    return judged(seed, faults, history, log_problems(service.said()))


async def _restart(replicas: Replicas, history: History, chance: random.Random) -> None:
    if chance.random() < 0.7:
        history.fault("database killed")
        await asyncio.to_thread(replicas.primary.kill)
    else:
        history.fault("database stopped")
        await asyncio.to_thread(replicas.primary.stop)
    await asyncio.to_thread(replicas.primary.start)


async def _cut_standby(replicas: Replicas, history: History, chance: random.Random) -> None:
    history.fault("standby cut off")
    replicas.replication.hold()
    await asyncio.sleep(chance.uniform(0.5, LONGEST_CUT_S))
    await replicas.replication.heal()


async def _fail_over(replicas: Replicas, history: History, *, cut_off: bool) -> None:
    if cut_off:
        replicas.replication.hold()
        await writes_again(history, WRITES_TO_LOSE)
    history.fault("failover, standby cut off" if cut_off else "failover")
    await replicas.fail_over()
    await replicas.add_standby()

"""Write errors and a full disk: each of the first writes and syncs fails once [CAM-056].

The cases are exhaustive, not random. A case starts the service, lets the n-th call of a thread fail while a client
publishes, and then lets all calls work again. The service must go on, and the next start must have everything
acknowledged. With `syncs` only the syncs fail. The variant `full` fills a small file system instead. With `slow` each
sync waits, and the service is killed while requests wait for it.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from campaign.clients import Follower, Writer, load_on, new_session, walk, writes_again
from campaign.disk_image import DiskImage
from campaign.history import History, Status
from campaign.inject import Injection
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.service import Preload, Service

# Calls, the error that they give, and whether all later calls fail, too. SQLite writes with pwrite64 and syncs with
# fdatasync. The store repeats a group of writes that has failed, so a client sees only errors that stay.
CASES = (
    ("pwrite64", "ENOSPC", "+"),
    ("pwrite64", "EIO", "+"),
    ("pwrite64", "EIO", ""),
    ("fdatasync", "EIO", "+"),
    ("fdatasync", "EIO", ""),
)
SYNCS = [case for case in CASES if case[0] == "fdatasync"]
PIECE_CASES = 25
MAX_PUBLISHES = 400  # until the call has failed
SLOWEST_US = 300_000  # of a sync, as on a disk that is overloaded
IMAGE_BYTES, BALLAST_BYTES = 24 * 2**20, 14 * 2**20


async def disk(task: Task) -> AsyncIterator[Piece]:
    """Runs `count` cases of each kind from the first call on. `seed` is the number of the first call."""
    with Preload() as preload:
        if task.variant not in ("", "syncs"):
            variants = {"full": full_disk_piece, "slow": slow_disk_piece}
            yield await variants[task.variant](preload, task.folder, task.seed, task.count)
            return
        for calls, error, rest in SYNCS if task.variant == "syncs" else CASES:
            for first in range(task.seed, task.seed + task.count, PIECE_CASES):
                last = min(first + PIECE_CASES, task.seed + task.count)
                cases = [(calls, error, f"{number}{rest}") for number in range(first, last)]
                yield await disk_piece(preload, task.folder / f"{calls}-{error}-{first}{rest}", first, cases)


async def disk_piece(preload: Preload, folder: Path, seed: int, cases: list[tuple[str, str, str]]) -> Piece:
    """One piece on a new database."""
    problems: list[str] = []
    notes: Counter[str] = Counter()
    with Task(seed, len(cases), folder).history(folder) as history:
        service = Service(preload, folder)
        await service.prepare()
        async with new_session() as session:
            writer = Writer(service, history, session, "w0", seed)
            for calls, error, when in cases:
                await service.start()
                await walk(service, history, session)
                problems += await _case(service, history, writer, f"{calls} {error}", when, notes)
                service.end()
            await service.start()
            await writer.step()
            await Follower(service, history, session, "f0").catch_up()
            await walk(service, history, session)
            service.end()
    return judged(seed, notes["injected"], history, (*problems, *log_problems(service.said())), notes)


async def _case(
    service: Service, history: History, writer: Writer, fault: str, when: str, notes: Counter[str]
) -> list[str]:
    calls, _, error = fault.partition(" ")
    injection = Injection(service.pid, service.folder / "strace.log", calls, f"error={error}", when)
    await asyncio.to_thread(injection.__enter__)
    try:
        for _ in range(MAX_PUBLISHES):
            status = await writer.step()
            if status is Status.UNKNOWN:
                notes["error_answers"] += 1
            if status is Status.UNKNOWN or (injection.happened and not when.endswith("+")):
                break
        else:
            return [f"{fault} of call {when}: no write fails"]
    finally:
        await asyncio.to_thread(injection.__exit__, None, None, None)
    notes["injected"] += 1
    history.fault(fault)
    if await writer.step() is Status.UNKNOWN:
        return [f"after {fault} of call {when} the service does not go on"]
    return []


async def full_disk_piece(preload: Preload, folder: Path, seed: int, count: int) -> Piece:
    """Fills a small file system until the service refuses writes, makes room again, and repeats that."""
    problems: list[str] = []
    with Task(seed, count, folder).history(folder) as history, DiskImage(folder, IMAGE_BYTES) as image:
        database, ballast = image.mount / "feeds.db", image.mount / "ballast"
        service = Service(preload, folder, store_url=f"sqlite:///{database}")
        await service.prepare()
        await service.start()
        async with new_session() as session:
            writer = Writer(service, history, session, "w0", seed)
            writer.padding = "x" * 20_000
            for _ in range(count):
                await asyncio.to_thread(_fill, ballast)
                problems += await _until_full(writer)
                history.fault("full disk")
                ballast.unlink()
                if await writer.step() is Status.UNKNOWN:
                    problems.append("the service does not go on when there is room again")
            service.end()
            await service.start()
            await _read(service, history, session)
            service.end()
    return judged(seed, count, history, (*problems, *log_problems(service.said())))


async def slow_disk_piece(preload: Preload, folder: Path, seed: int, count: int) -> Piece:
    """Kills the service `count` times while each sync takes up to `SLOWEST_US` [CAM-006]."""
    chance = random.Random(seed)
    with Task(seed, count, folder).history(folder) as history:
        service = Service(preload, folder)
        await service.prepare()
        await service.start()
        async with new_session() as session:
            async with load_on(service, history, session, seed) as followers:
                for number in range(count):
                    effect = f"delay_enter={chance.randrange(SLOWEST_US)}"
                    injection = Injection(service.pid, folder / f"strace-{number}.log", "fdatasync", effect, "1+")
                    await asyncio.to_thread(injection.__enter__)
                    try:
                        await asyncio.sleep(chance.uniform(0.2, 1.0))
                        history.fault("kill while syncs are slow")
                        service.end()
                    finally:
                        await asyncio.to_thread(injection.__exit__, None, None, None)
                    await service.start()
                await writes_again(history)
            for follower in followers:
                await follower.catch_up()
            await walk(service, history, session)
            service.end()
    return judged(seed, count, history, log_problems(service.said()))


def _fill(ballast: Path) -> None:
    """Writes a file that takes nearly all the room."""
    with ballast.open("wb") as file:
        try:
            while file.tell() < BALLAST_BYTES * 4:
                file.write(bytes(2**16))
                file.flush()
        except OSError:
            return


async def _until_full(writer: Writer) -> list[str]:
    for number in range(MAX_PUBLISHES):
        if await writer.publish(f"big-{number}") is Status.UNKNOWN:
            return []
    return ["the disk is never full"]


async def _read(service: Service, history: History, session: aiohttp.ClientSession) -> None:
    await Follower(service, history, session, "f0").catch_up()
    await walk(service, history, session)

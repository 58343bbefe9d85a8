"""Several processes on one PostgreSQL and a real XMPP server, under faults [CAM-052] [CAM-053] [CAM-055].

Two processes have a link each to ejabberd. `three` starts three. `prosody` has an active process and a standby on
Prosody. With `clocks` the clock of the second process is an hour ahead. The campaign `partition` has the same
processes, and lets no bytes pass between them and what they need: for up to 8 seconds, with `long` for up to two
minutes.
"""

import asyncio
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from campaign.checker import RECOVERY_S
from campaign.clients import load_on, new_session, walk
from campaign.group import NODES, Group, Member, prepared_group
from campaign.observer import SAMPLE_S, Observer
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.report import NO_LINK
from campaign.service import Preload
from campaign.shared_faults import FAULTS, LONGEST_HOLD_S, NEEDS_ANOTHER, PARTITIONS, Breaker, Fault
from campaign.takeovers import SPAN_S
from smartfeeds.delivery.shards import SHARDS
from support.postgres import PostgresServer, running_postgres
from support.servers import TestServer, run_server

PIECE_FAULTS = 20
PAUSE_S = 2.0
QUIET_S = SPAN_S + 2.0  # no takeover explains a repetition in the last two seconds
WRITERS = 6


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Processes and their links (docs/scaling.md)."""

    server: str = "ejabberd"
    processes: int = 2
    link: str = "always"
    clock_step_s: float = 0.0
    longest_hold_s: float = LONGEST_HOLD_S


ARRANGEMENTS = {
    "": Arrangement(),
    "three": Arrangement(processes=3),
    "prosody": Arrangement("prosody", link="lease"),
    "clocks": Arrangement(clock_step_s=3_600.0),
    "long": Arrangement(longest_hold_s=120.0),
}


async def shared(task: Task) -> AsyncIterator[Piece]:
    """Injects `count` faults of all kinds but partitions."""
    async for piece in _pieces(task, FAULTS):
        yield piece


async def partition(task: Task) -> AsyncIterator[Piece]:
    """Separates processes from the database and from the XMPP server `count` times."""
    async for piece in _pieces(task, PARTITIONS):
        yield piece


async def _pieces(task: Task, faults: dict[str, Fault]) -> AsyncIterator[Piece]:
    arrangement = ARRANGEMENTS[task.variant]
    servers = run_server(arrangement.server, task.folder / arrangement.server)
    server = await asyncio.to_thread(next, servers)
    try:
        with Preload() as preload, running_postgres(durable=True) as database:
            domain = server.take_name()
            for seed, count, folder in task.pieces(PIECE_FAULTS):
                # No process takes over from another one that has everything already.
                kinds = ["cut-link"] if task.defect else list(faults)
                names = _choose(random.Random(seed), kinds, count)
                yield await shared_piece(
                    preload, database, server, domain, folder, seed, names, arrangement, task.defect
                )
    finally:
        servers.close()  # type: ignore[attr-defined]


def _choose(chance: random.Random, names: Sequence[str], count: int) -> list[str]:
    """Faults in a random order, each as often as the others."""
    rounds = [chance.sample(names, len(names)) for _ in range(count // len(names) + 1)]
    return [name for part in rounds for name in part][:count]


async def shared_piece(
    preload: Preload,
    database: PostgresServer,
    server: TestServer,
    domain: str,
    folder: Path,
    seed: int,
    faults: Sequence[str],
    arrangement: Arrangement = ARRANGEMENTS[""],
    defect: str = "",
    *,
    pause_s: float = PAUSE_S,
    write_pause_s: float = 0.0,
) -> Piece:
    """One piece on a new database, with these faults in this order. Faults of different processes overlap."""
    notes: Counter[str] = Counter()
    problems: list[str] = []
    with Task(seed, len(faults), folder).history(folder) as history:
        async with (
            prepared_group(
                *(preload, folder, database, server, domain, history, seed),
                count=arrangement.processes,
                link=arrangement.link,
                clock_step_s=arrangement.clock_step_s,
                defect=defect,
            ) as (group, url),
            Observer(url, history, group.member_of) as observer,
            new_session() as session,
        ):
            breaker = Breaker(group, observer, database, random.Random(seed), arrangement.longest_hold_s)
            await asyncio.gather(*map(group.start, group.members))
            if not defect:
                problems += await _settled(group, observer, arrangement)
            links = LinkWatch(group)
            load = load_on(
                group, history, session, seed, writers=WRITERS, followers=4, nodes=NODES, pause_s=write_pause_s
            )
            supervisor = asyncio.create_task(group.supervise(), name="supervisor")
            async with load as followers:
                await _break(breaker, faults, pause_s)
                await breaker.writes_again()
                if not defect:
                    problems += await _settled(group, observer, arrangement)
                await asyncio.sleep(QUIET_S)
            for follower in followers:
                await follower.catch_up()
            for node in NODES:
                items = await walk(group, history, session, node)
                await group.progress.until(items[-1].key_us if items else 0, node)
            notes["mark_writes"], mark_problems = await observer.mark_problems()
            problems += mark_problems
            notes["exits"] = group.exits
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
            await links.end()
            group.end()
        problems += breaker.problems
        for member in group.members:
            problems += log_problems(member.service.said())
    await asyncio.to_thread(database.drop_database, url)
    piece = judged(seed, len(faults), history, problems, notes)
    for fault, times in breaker.takeovers.items():
        piece.verdict.recoveries[f"takeover after {fault}"] = times
    if links.gaps_s:
        piece.verdict.recoveries[NO_LINK] = links.gaps_s
    return piece


class LinkWatch:
    """Measures for how long no process has a link to the XMPP server [CAM-053]. `gaps_s` are the times in seconds."""

    def __init__(self, group: Group) -> None:
        self.gaps_s: list[float] = []
        self._group = group
        self._task = asyncio.create_task(self._watch(), name="link watch")

    async def end(self) -> None:
        """Ends the measurement."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        since_s: float | None = None
        while True:
            if not any(member.is_linked for member in self._group.members):
                since_s = since_s or loop.time()
            elif since_s is not None:
                self.gaps_s.append(loop.time() - since_s)
                since_s = None
            await asyncio.sleep(SAMPLE_S)


async def _break(breaker: Breaker, faults: Sequence[str], pause_s: float) -> None:
    """Starts the faults one after the other; each has a random process."""
    members = breaker.group.members
    at_once = asyncio.Semaphore(len(members))
    alone = asyncio.Semaphore(len(members) - 1)

    async def run(name: str, member: Member) -> None:
        fault = (FAULTS | PARTITIONS)[name]
        try:
            async with AsyncExitStack() as stack:
                if name in NEEDS_ANOTHER:
                    await stack.enter_async_context(alone)
                await stack.enter_async_context(member.free)
                if name in NEEDS_ANOTHER:
                    await breaker.observer.until_another(member.name)
                await fault(breaker, member)
        finally:
            at_once.release()

    async with asyncio.TaskGroup() as tasks:
        for name in faults:
            await breaker.pause(0, pause_s)
            await at_once.acquire()
            tasks.create_task(run(name, breaker.chance.choice(members)), name=name)


async def _settled(group: Group, observer: Observer, arrangement: Arrangement) -> list[str]:
    """The problems of the processes when nothing has broken them for a while: links, and equal shares [CAM-037]."""
    is_shared = arrangement.link == "always"
    names = [member.name for member in group.members]
    if not await observer.shared(names, math.ceil(SHARDS / len(names)) if is_shared else SHARDS):
        return ["the processes do not own equal parts of the shards"]
    links = len(names) if is_shared else 1
    with suppress(TimeoutError):
        async with asyncio.timeout(RECOVERY_S):
            while sum(member.is_linked for member in group.members) != links:  # noqa: ASYNC110
                await asyncio.sleep(SAMPLE_S)
            return []
    return [f"not {links} processes have a link"]

"""A long life of the service at a low speed, with a cut of the link each minute: nothing may grow [CAM-059] [CAM-012].

Memory, threads, open files and the log of the database are read every few seconds, and so are the latency of writes
and the processor time. The samples are in `samples.jsonl` beside the history. `count` is the number of minutes. The
caches are full before the first sample, so what grows afterwards is no cache.
"""

import asyncio
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

from campaign.clients import PAGE_ITEMS, Follower, Writer, new_session, read_page, walk, writes_again
from campaign.history import Event, History, Kind, Status
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.pushes import SUBSCRIBER, PushWire, notified
from campaign.service import NODE, Preload, Service
from support.servers import TestServer, run_server

WARM_NODE = f"{NODE}-filler-0"  # without subscribers, and not in the history
WARM_ITEMS = 12_000  # of 1 KB: more than the cache of JSON and the page caches of SQLite have room for
WARM_CONTENT = "x" * 1_000
WARM_WRITERS = 16
SAMPLE_S = 5.0
EVERY_S = 60.0  # between two faults
WRITERS = 4
WRITE_PAUSE_S = 0.1  # a tenth of the writes that the other campaigns make
LEAST_SAMPLES = 24  # for a statement about growth: the first quarter is not judged
GROWTH = 0.10
SLACK_KIB = 8 * 1024
WAL_KIB = 64 * 1024
SPARE_FILES = 16  # connections that happen to be open in one sample and not in another
# Between the second and the last quarter the feed grows by a factor of 2.3, and so would work that grows with the feed.
# Other work on the same processors changed the cost of equal writes by up to a fifth.
COST_GROWTH = 0.50


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process uses at a moment, and the size of the log of the database.

    `cpu_s` is the processor time since its start. `delay_s` is the time that its threads were ready to run and had no
    processor: on a busy machine it is most of the latency.
    """

    at_s: float
    rss_kib: int
    threads: int
    files: int
    wal_kib: int
    cpu_s: float = 0.0
    delay_s: float = 0.0


def take_sample(service: Service) -> Sample:
    """Reads the process by its files in /proc."""
    process = Path(f"/proc/{service.pid}")
    fields = dict(line.split(":", 1) for line in (process / "status").read_text("ascii").splitlines())
    wal = service.database.with_name(service.database.name + "-wal")
    return Sample(
        at_s=time.monotonic(),
        rss_kib=int(fields["VmRSS"].split()[0]),
        threads=int(fields["Threads"]),
        files=len(list((process / "fd").iterdir())),
        wal_kib=wal.stat().st_size // 1024 if wal.exists() else 0,
        cpu_s=_cpu_s(process),
        delay_s=_delay_s(process),
    )


def _cpu_s(process: Path) -> float:
    fields = (process / "stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _delay_s(process: Path) -> float:
    """The second field of schedstat, in nanoseconds, of all threads."""
    texts = [(task / "schedstat").read_text("ascii") for task in (process / "task").iterdir()]
    return sum(int(text.split()[1]) for text in texts) / 1_000_000_000


def growth(samples: Sequence[Sample]) -> list[str]:
    """What has grown from the second quarter of the samples to the last one. Fewer samples prove nothing."""
    if len(samples) < LEAST_SAMPLES:
        return []
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    problems = []
    for name, slack in (("rss_kib", SLACK_KIB), ("threads", 2), ("files", SPARE_FILES)):
        before, after = (statistics.median(getattr(sample, name) for sample in part) for part in (early, late))
        if after > before * (1 + GROWTH) + slack:
            problems.append(f"{name} has grown from {before:,.0f} to {after:,.0f}")
    if (largest := max(sample.wal_kib for sample in late)) > WAL_KIB:
        problems.append(f"the log of the database has {largest:,} KiB")
    return problems


@dataclass(frozen=True, slots=True)
class WriteCost:
    """The processor time of the service for each acknowledged write of a quarter, and the time that its threads waited
    for a processor meanwhile.
    """

    cpu_s: float = 0.0
    delay_s: float = 0.0


def write_costs(samples: Sequence[Sample], events: Sequence[Event]) -> tuple[WriteCost, WriteCost]:
    """The costs in the second quarter of the samples and in the last one."""
    if len(samples) < LEAST_SAMPLES:
        return WriteCost(), WriteCost()
    quarter = len(samples) // 4
    return (
        _cost(samples[quarter], samples[2 * quarter], events),
        _cost(samples[-quarter - 2], samples[-2], events),  # the last sample is taken after the final walk
    )


def _cost(first: Sample, last: Sample, events: Sequence[Event]) -> WriteCost:
    writes = sum(
        event.kind in (Kind.PUBLISH, Kind.RETRACT)
        and event.status is Status.OK
        and first.at_s < event.at_s <= last.at_s
        for event in events
    )
    if not writes:
        return WriteCost()
    return WriteCost((last.cpu_s - first.cpu_s) / writes, (last.delay_s - first.delay_s) / writes)


def cost_growth(early: WriteCost, late: WriteCost) -> list[str]:
    """Whether the processor time of a write has grown. Latency proves nothing: it depends on the other work of the
    machine.
    """
    if late.cpu_s <= early.cpu_s * (1 + COST_GROWTH):
        return []
    return [f"the processor time of a write has grown from {early.cpu_s * 1000:.1f} to {late.cpu_s * 1000:.1f} ms"]


def latencies_s(events: Sequence[Event]) -> tuple[float, float]:
    """The medians of the latency of writes in the second quarter and in the last quarter of a history."""
    invoked_s = {event.op: event.at_s for event in events if event.status is Status.INVOKE}
    times = [
        event.at_s - invoked_s[event.op] for event in events if event.kind is Kind.PUBLISH and event.status is Status.OK
    ]
    quarter = len(times) // 4
    if not quarter:
        return 0.0, 0.0
    return statistics.median(times[quarter : 2 * quarter]), statistics.median(times[-quarter:])


async def soak(task: Task) -> AsyncIterator[Piece]:
    """Runs for `count` minutes, or until `until_s`, in one piece: a restart would hide what grows."""
    servers = run_server("prosody", task.folder / "prosody")
    server = await asyncio.to_thread(next, servers)
    try:
        with Preload() as preload:
            folder = task.folder / str(task.seed)
            yield await soak_piece(preload, server, folder, task.seed, task.count, until_s=task.until_s)
    finally:
        servers.close()  # type: ignore[attr-defined]


async def soak_piece(
    preload: Preload,
    server: TestServer,
    folder: Path,
    seed: int,
    count: int,
    *,
    until_s: float,
    every_s: float = EVERY_S,
    sample_s: float = SAMPLE_S,
) -> Piece:
    """One life. The notes have the first and the last sample."""
    samples: list[Sample] = []
    cuts = 0
    with Task(seed, count, folder).history(folder) as history:
        async with notified(server, history) as wire, new_session() as session:
            service = Service(preload, folder, component={"jid": server.take_name(), "port": wire.relay.port})
            await service.prepare(subscriber=f"{SUBSCRIBER}@localhost", fillers=1)
            await service.start()
            await wire.relay.ready()
            await warm_up(service, session)
            follower = Follower(service, history, session, "f0")
            writers = [Writer(service, history, session, f"w{number}", seed) for number in range(WRITERS)]
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(follower.run(stop))
                for writer in writers:
                    group.create_task(writer.run(stop, WRITE_PAUSE_S))
                group.create_task(_sample(service, samples, stop, sample_s, folder / "samples.jsonl"))
                while cuts < count and time.monotonic() < until_s:
                    await asyncio.sleep(every_s)
                    await _cut(wire, history)
                    cuts += 1
                await writes_again(history)
                stop.set()
            await follower.catch_up()
            items = await walk(service, history, session)
            await wire.until(items[-1].key_us if items else 0)
            samples.append(take_sample(service))
            service.end()
    costs = write_costs(samples, history.events)
    problems = [*growth(samples), *cost_growth(*costs), *log_problems(service.said())]
    return judged(seed, cuts, history, problems, _notes(samples, history, *costs))


async def warm_up(service: Service, session: aiohttp.ClientSession) -> None:
    """Fills the caches of the service by writing and reading a feed of its own."""
    headers = {"Authorization": f"Bearer {service.token}", "Accept": "application/json"}
    items = iter([f"i{number}" for number in range(WARM_ITEMS)])

    async def publish() -> None:
        for item in items:
            url, body = f"{service.url}/entries/{WARM_NODE}/{item}", {"title": item, "content": WARM_CONTENT}
            async with session.put(url, json=body, headers=headers) as answer:
                answer.raise_for_status()

    async with asyncio.TaskGroup() as group:
        for _ in range(WARM_WRITERS):
            group.create_task(publish())
    query = {"since": "time:0", "timeout": "0", "max": str(PAGE_ITEMS)}
    while "next" in (page := await read_page(session, service, WARM_NODE, query)):
        query["since"] = f"cursor:{page['last_cursor']}"


async def _cut(wire: PushWire, history: History) -> None:
    history.fault("link cut")
    wire.relay.cut()


async def _sample(service: Service, samples: list[Sample], stop: asyncio.Event, sample_s: float, path: Path) -> None:
    with path.open("w", encoding="ascii", buffering=1) as lines:
        while not stop.is_set():
            samples.append(take_sample(service))
            lines.write(json.dumps(asdict(samples[-1])) + "\n")
            await asyncio.sleep(sample_s)


def _notes(samples: Sequence[Sample], history: History, early_cost: WriteCost, late_cost: WriteCost) -> Counter[str]:
    """Numbers for the record: the use after a quarter of the time and at the end, and the latencies."""
    early, late = samples[len(samples) // 4], samples[-1]
    early_s, late_s = latencies_s(history.events)
    return Counter(
        {
            "rss_kib_early": early.rss_kib,
            "rss_kib_late": late.rss_kib,
            "files_early": early.files,
            "files_late": late.files,
            "threads_early": early.threads,
            "threads_late": late.threads,
            "wal_kib_largest": max(sample.wal_kib for sample in samples),
            "latency_us_early": int(early_s * 1_000_000),
            "latency_us_late": int(late_s * 1_000_000),
            "write_cpu_us_early": int(early_cost.cpu_s * 1_000_000),
            "write_cpu_us_late": int(late_cost.cpu_s * 1_000_000),
            "write_delay_us_early": int(early_cost.delay_s * 1_000_000),
            "write_delay_us_late": int(late_cost.delay_s * 1_000_000),
            "soak_s": int(late.at_s - samples[0].at_s),
        }
    )

"""Several processes of the service on one ejabberd and one PostgreSQL database: what another process adds."""

import itertools
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import stanzas, targets
from bench.parts import Meter, Part, Usage, tree_cpu_s
from bench.rows import PART_NAMES
from bench.runs import Collector, fresh
from bench.targets import FEEDS, SECRET, RoutingEjabberd
from bench.web_targets import free_port, get
from bench.wire import EVENT, BenchError, Wire, connect, cpu_s
from bench.work import EVENTS_AHEAD, IN_FLIGHT, Number, Numbers, Scale
from smartfeeds.delivery.shards import SHARDS
from support.postgres import PostgresServer, running_postgres

START_S = 60.0
POLL_S = 0.05
FEED_COUNT = 48  # feeds that are published to in turn
NOTIFIED_FEEDS = 16  # feeds with subscribers; each belongs to another shard
_STEP = 10_000_000  # between the numbers of the items of two feeds
_METRIC = r"^{} (\S+)$"


@dataclass(slots=True)
class Cluster:
    """Processes of the service, and the parts of the system around them. `wire` is the link of the load generator."""

    wire: Wire
    parts: tuple[Part, ...]


def measure(collect: Collector, folder: Path) -> None:
    """One, two and three processes in turn, each time on an empty database."""
    with running_postgres(durable=True) as postgres:
        measure_on(postgres, collect, folder)


def measure_on(postgres: PostgresServer, collect: Collector, folder: Path) -> None:
    """The same on a server that runs already."""
    scale = collect.scale
    server = RoutingEjabberd(fresh(folder) / "server", {stanzas.DOMAIN: SECRET, FEEDS: SECRET})
    server.start()
    try:
        for run, count in itertools.product(range(scale.runs), scale.processes):
            with running(postgres, server, folder / f"{run}-{count}", count) as cluster:
                for piece in (publish, notify):
                    collect.take("ours", piece(cluster, scale, count))
    finally:
        server.stop()


@contextmanager
def running(postgres: PostgresServer, server: RoutingEjabberd, folder: Path, count: int) -> Iterator[Cluster]:
    """Starts processes. Returns when each has a link and an equal share of the feeds."""
    with ExitStack() as stack:
        url = postgres.create_database()
        stack.callback(postgres.drop_database, url)
        ports = [free_port() for _ in range(count)]
        processes = []
        for number, port in enumerate(ports):
            place, http = folder / str(number), {"listen": f"127.0.0.1:{port}"}
            process = targets.run_ours(place, server.component_port, url, http)
            stack.callback(targets.end, process)
            processes.append(process)
        pids = [process.pid for process in processes]
        wait(lambda: _are_ready(ports), f"{count} processes with a link")
        wire = connect(server.component_port, stanzas.DOMAIN, SECRET)
        stack.callback(wire.close)
        assert server.process is not None
        server_pid = server.process.pid
        service, database, router, driver = PART_NAMES
        parts = (
            Part(service, lambda: sum(map(cpu_s, pids)), count),  # the interpreter runs one thread at a time
            Part(database, lambda: tree_cpu_s(postgres.process.pid)),
            Part(router, lambda: tree_cpu_s(server_pid)),
            Part(driver, time.process_time, 1),
        )
        yield Cluster(wire, parts)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition holds. Raises BenchError."""
    until_s = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > until_s:
            raise BenchError(f"not reached in {START_S:.0f} s: {what}")
        time.sleep(POLL_S)


def _are_ready(ports: list[int]) -> bool:
    try:
        texts = [get(port, "/metrics").body.decode() for port in ports]
    except OSError:
        return False
    shards = [_metric(text, "smartfeeds_shards_owned") for text in texts]
    is_online = all(_metric(text, "smartfeeds_link_online") for text in texts)
    return is_online and sum(shards) == SHARDS and max(shards) <= math.ceil(SHARDS / len(ports))


def _metric(text: str, name: str) -> float:
    match = re.search(_METRIC.format(name), text, re.M)
    return float(match[1]) if match else 0.0


def publish(cluster: Cluster, scale: Scale, count: int) -> Numbers:
    """Publishes with 64 in flight over many feeds, which have no subscribers."""
    nodes = _create(cluster, f"many-{count}", FEED_COUNT)
    source = in_turn(nodes)
    cluster.wire.rate(source, in_flight=IN_FLIGHT, seconds=scale.slice_s / 3)  # statements are prepared, caches filled
    meter = Meter(cluster.parts)
    pace = cluster.wire.rate(source, in_flight=IN_FLIGHT, seconds=scale.slice_s)
    yield from numbers("processes_publish", count, pace.done, pace.per_s, meter.read())


def notify(cluster: Cluster, scale: Scale, count: int) -> Numbers:
    """Notifications of items in several feeds, each of which has as many subscribers."""
    nodes = _create(cluster, f"notified-{count}", NOTIFIED_FEEDS)
    each = max(1, scale.subscribers // 10)
    cluster.wire.rate(
        (stanzas.subscribe(FEEDS, node, number) for node in nodes for number in range(each)),
        in_flight=IN_FLIGHT,
        seconds=START_S,
    )
    cluster.wire.settle()
    source = in_turn(nodes)
    meter = Meter(cluster.parts)
    pace = cluster.wire.rate(source, in_flight=EVENTS_AHEAD, seconds=scale.slice_s, marker=EVENT, each=each)
    usage = meter.read()
    cluster.wire.settle()
    yield from numbers("processes_notify", count, pace.done, pace.per_s, usage)


def numbers(row: str, count: int, done: int, per_s: float, usage: Usage) -> Numbers:
    """The rate with the limit as its note, and the CPU time of each part for an operation."""
    yield Number(f"{row}_{count}", per_s, usage.limit)
    for name, used_us in usage.cpu_us(done).items():
        yield Number(f"{row}_{PART_NAMES[name]}_{count}", used_us)


def in_turn(nodes: list[str]) -> Iterator[bytes]:
    """New items without end, to one feed after the other."""
    sources = [stanzas.publishes(FEEDS, node, first * _STEP + 1) for first, node in enumerate(nodes)]
    return itertools.chain.from_iterable(zip(*sources, strict=True))


def _create(cluster: Cluster, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}-{number}" for number in range(count)]
    cluster.wire.rate((stanzas.create(FEEDS, name, "u0", {}) for name in names), in_flight=16, seconds=START_S)
    return names

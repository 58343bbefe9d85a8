"""A database on another machine: requests and their round trips when each answer takes 1.5 ms longer.

The requests are those of `bench.bench_engines`: the service without wires, and without its work in the background.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from bench import fill, targets
from bench.bench_engines import ask_all, open_service, prepare, works
from bench.grids import REMOTE_WORKS
from bench.runs import Collector
from bench.work import Number, Scale, percentile
from support.postgres import PostgresServer, running_postgres

DELAY_S = 0.000_75  # in each direction
PROBES = 200
STOP_S = 10.0


@dataclass(slots=True)
class Network:
    """A relay to the database. `url` is the address of the database behind it."""

    url: str
    process: subprocess.Popen[str]

    def trips(self) -> int:
        """The number of round trips so far."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@contextmanager
def delayed(url: str, delay_s: float) -> Iterator[Network]:
    """Starts a relay to the server of a database."""
    port = urlsplit(url).port
    with subprocess.Popen(
        [sys.executable, "-m", "bench.relay", str(port), str(delay_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=targets.environment(),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        relay_port = process.stdout.readline().strip()
        try:
            yield Network(url.replace(f":{port}/", f":{relay_port}/"), process)
        finally:
            process.stdin.close()
            process.wait(STOP_S)


def measure(collect: Collector, _folder: Path) -> None:
    """The same work with the database beside the service and behind the network."""
    with running_postgres(durable=True) as postgres:
        measure_on(postgres, collect)


def measure_on(postgres: PostgresServer, collect: Collector, names: Collection[str] = REMOTE_WORKS) -> None:
    """The same on a server that runs already, with works of these names."""
    scale = collect.scale
    for _ in range(scale.runs):
        for place in ("local", "remote"):
            direct = postgres.create_database()
            asyncio.run(fill.fill(direct, scale.web_items, 0))
            with delayed(direct, DELAY_S) as network:
                url = direct if place == "local" else network.url
                collect.take("ours", [Number(f"remote_trip_{place}", round_trip_ms(url))])
                collect.take(
                    "ours", asyncio.run(_measure(url, place, scale, names, None if url == direct else network))
                )
            postgres.drop_database(direct)


def round_trip_ms(url: str) -> float:
    """The median time of a statement that does nothing."""
    taken_s = []
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(PROBES):
            began_s = time.perf_counter()
            connection.execute("SELECT 1")
            taken_s.append(time.perf_counter() - began_s)
    return statistics.median(taken_s) * 1000


async def _measure(url: str, place: str, scale: Scale, names: Collection[str], network: Network | None) -> list[Number]:
    """Publishes, pages and subscriptions, each one after the other and many at a time."""
    measured = []
    async with open_service(url) as service:
        for work in works(scale):
            if work.name not in names:
                continue
            await prepare(service, work, scale)
            trips = network.trips() if network else 0
            pace = await ask_all(service, work, scale.slice_s)
            row = f"remote_{work.name}_{work.in_flight}"
            note = f"p99 {percentile(pace.taken_s, 0.99) * 1000:.1f} ms"
            measured.append(Number(f"{row}_ms_{place}", statistics.median(pace.taken_s) * 1000, note))
            measured.append(Number(f"{row}_{place}", pace.per_s))
            if network:
                measured.append(Number(f"{row}_trips_{place}", (network.trips() - trips) / len(pace.taken_s)))
    return measured

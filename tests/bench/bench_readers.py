"""Processes without a link that serve pages over HTTP from one PostgreSQL database: what another process adds."""

import asyncio
import resource
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product, repeat
from pathlib import Path

from bench import fill, targets
from bench.bench_processes import numbers, wait
from bench.parts import Meter, Part, tree_cpu_s
from bench.rows import PART_NAMES, READER_FORMS
from bench.runs import Collector, fresh
from bench.web import PAGES, SCATTER, load
from bench.web_targets import MANY, WebTarget, free_port, get
from bench.wire import BenchError, cpu_s
from bench.work import Numbers, Scale
from support.postgres import PostgresServer, running_postgres

PAGE = 50
NO_PORT = 1  # of the XMPP server: a process without a link does not connect


def measure(collect: Collector, folder: Path) -> None:
    """One, two and three processes in turn, on the same database."""
    with running_postgres(durable=True) as postgres:
        measure_on(postgres, collect, folder)


def measure_on(
    postgres: PostgresServer, collect: Collector, folder: Path, forms: Mapping[str, tuple[str, str]] = READER_FORMS
) -> None:
    """The same on a server that runs already, with some of the forms."""
    scale = collect.scale
    url = postgres.create_database()
    asyncio.run(fill.fill(url, scale.web_items, 0))
    for run, count in product(range(scale.runs), scale.processes):
        with running(url, fresh(folder / f"{run}-{count}"), count) as readers:
            collect.take("ours", pages(postgres, readers, scale, forms))
    postgres.drop_database(url)


@contextmanager
def running(url: str, folder: Path, count: int) -> Iterator[list[WebTarget]]:
    """Starts processes without a link. Returns when they are ready."""
    with ExitStack() as stack:
        readers = []
        for number in range(count):
            place, port = folder / str(number), free_port()
            http = {"listen": f"127.0.0.1:{port}", "connections_per_address": MANY}
            process = targets.run_ours(place, NO_PORT, url, http, {"link": "off"})
            stack.callback(targets.end, process)
            readers.append(WebTarget(place, port, process.pid, process.terminate))
        wait(lambda: all(_is_ready(reader.port) for reader in readers), f"{count} processes that are ready")
        yield readers


def _is_ready(port: int) -> bool:
    try:
        return get(port, "/readyz").status == 200
    except (OSError, BenchError):
        return False


def pages(
    postgres: PostgresServer, readers: list[WebTarget], scale: Scale, forms: Mapping[str, tuple[str, str]]
) -> Numbers:
    """Pages of 50 items, requested by one wrk for each process."""
    count, size = len(readers), scale.web_items
    service, database, _, driver = PART_NAMES
    parts = (
        Part(service, lambda: sum(cpu_s(reader.pid) for reader in readers), count),
        Part(database, lambda: tree_cpu_s(postgres.process.pid)),
        Part(driver, _wrk_cpu_s, count),
    )
    feed = f"/feeds/{fill.node_name(size)}/?max={PAGE}&since="
    places = [number * SCATTER % max(1, size - PAGE - 1) for number in range(min(PAGES, size))]
    paths = {"same": [feed + fill.cursor(size // 2)], "other": [feed + fill.cursor(place) for place in places]}
    with ThreadPoolExecutor(count) as threads:
        for row, (accept, kind) in forms.items():
            meter = Meter(parts)
            loads = list(threads.map(load, readers, repeat(scale), repeat(paths[kind]), repeat(accept)))
            usage = meter.read()
            done = sum(found.requests for found in loads)
            yield from numbers(f"readers_{row}", count, done, sum(found.per_s for found in loads), usage)


def _wrk_cpu_s() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime

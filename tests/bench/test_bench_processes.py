"""The benchmarks of several processes and of PostgreSQL run, with tiny counts; nothing is timed here."""

import io
import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench import bench_engines, bench_processes, bench_readers, bench_remote, report, runs, work
from bench.grids import grids
from bench.parts import Part, Usage, tree_cpu_s
from bench.rows import READER_FORMS
from support.postgres import PostgresServer

ENGINES = ("sqlite", "postgres")
BUSY = "import time, sys\nwhile time.process_time() < 0.1: pass\nprint(flush=True); sys.stdin.read()"


# Shorter than for other benchmarks: each of the sixteen kinds of requests is sent at least once anyway.
BRIEF = replace(work.SMOKE, slice_s=0.02)


@pytest.fixture
def collect() -> runs.Collector:
    return runs.Collector(BRIEF, io.StringIO(), print)


def table(number: int) -> set[str]:
    """The names of the numbers in a table."""
    grid = grids(BRIEF)[number]
    return {f"{row.name}_{column}" for row in grid.rows for column in grid.columns}


def test_bench_of_processes_fills_its_table(collect: runs.Collector, tmp_path: Path, postgres: PostgresServer) -> None:
    """The output names the limit."""
    bench_processes.measure_on(postgres, collect, tmp_path)

    measured = collect.results["ours"]
    assert set(measured) == table(0)
    assert measured["processes_notify_1"][0].value > 0
    assert measured["processes_publish_1"][0].note.startswith("limit: ")
    assert "| several processes on ejabberd | 1 process |" in report.text(collect.results, BRIEF, {})


def test_bench_of_readers_fills_its_table(collect: runs.Collector, tmp_path: Path, postgres: PostgresServer) -> None:
    """With one of the forms, because wrk works for a second at least."""
    bench_readers.measure_on(postgres, collect, tmp_path, {"Atom_other": READER_FORMS["Atom_other"]})

    measured = collect.results["ours"]
    assert set(measured) == {name for name in table(1) if "Atom_other" in name}
    assert measured["readers_Atom_other_service_1"][0].value > 0


def test_bench_of_a_remote_database_fills_its_table(collect: runs.Collector, postgres: PostgresServer) -> None:
    """The delay is there: a round trip takes 1.5 ms longer, and a publish waits for at least one."""
    bench_remote.measure_on(postgres, collect, ("publish",))

    measured = {row: numbers[0].value for row, numbers in collect.results["ours"].items()}
    rows = {name for name in table(2) if name.startswith(("remote_trip", "remote_publish"))}
    assert set(measured) == {name for name in rows if not name.endswith("_trips_local")}
    assert len(measured) == 12
    assert measured["remote_trip_remote"] >= 1.5
    assert measured["remote_publish_1_trips_remote"] >= 1
    assert measured["remote_publish_1_ms_remote"] >= 1.5


def test_bench_of_engines_fills_its_table(collect: runs.Collector, tmp_path: Path, postgres: PostgresServer) -> None:
    bench_engines.measure_on(postgres, collect, tmp_path)

    measured = collect.results["ours"]
    rates = {f"{row.name}_{engine}" for row in grids(BRIEF)[3].rows if row.unit == "/s" for engine in ENGINES}
    assert set(measured) == table(3)
    assert len(rates) == 16
    assert all(measured[name][0].value > 0 for name in rates)


def usage(service_s: float, load_s: float, idle_s: float) -> Usage:
    """Ten seconds on two cores."""
    parts = Part("service", lambda: 0.0, 1), Part("PostgreSQL", lambda: 0.0), Part("load generator", lambda: 0.0, 1)
    cpu_s = {"service": service_s, "PostgreSQL": 2.0, "load generator": load_s}
    return Usage(parts, cpu_s, 10.0, 2, idle_s)


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (usage(9.8, 1.0, 5.0), "limit: service, which is busy all the time (service 49%, PostgreSQL 10%"),
        (usage(1.0, 9.8, 5.0), "limit: load generator, which is busy all the time"),
        (usage(9.8, 4.0, 0.5), "limit: the 2 cores, of which service uses most"),
        (usage(1.0, 1.0, 0.5), "limit: other programs on the 2 cores; of these parts PostgreSQL uses most"),
        (usage(2.0, 1.0, 9.0), "limit: waiting for the disk and for answers"),
        (usage(2.0, 1.0, 9.0), "other programs 30%, idle 45%)"),
    ],
)
def test_limit_is_named(measured: Usage, text: str) -> None:
    assert text in measured.limit


def test_processor_time_includes_children() -> None:
    before_s = tree_cpu_s(os.getpid())
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        while_it_runs_s = tree_cpu_s(os.getpid()) - before_s
        child.stdin.close()
        child.wait()
    after_its_end_s = tree_cpu_s(os.getpid()) - before_s

    # Less than the 0.1 s that it uses at least, because the kernel rounds each of several numbers to 10 ms.
    assert while_it_runs_s > 0.05
    assert after_its_end_s > 0.05


def test_relay_passes_everything_on_and_counts_round_trips() -> None:
    data = os.urandom(200_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        echo = threading.Thread(target=send_back, args=(listener,))
        echo.start()
        url = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/any"
        with bench_remote.delayed(url, 0.0005) as network:
            with socket.create_connection(("127.0.0.1", urlsplit(network.url).port or 0), timeout=60) as client:
                for count in (1, 2):
                    client.sendall(b"ping")
                    assert client.recv(4) == b"ping"
                    assert network.trips() == count
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                with client.makefile("rb") as answers:
                    assert answers.read() == data
            echo.join(60)


def send_back(listener: socket.socket) -> None:
    """Serves one client until it closes its side."""
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(65_536):
            connection.sendall(data)

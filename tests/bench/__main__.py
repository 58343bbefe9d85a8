"""`python -m bench [--quick] [NAME ...]`: runs the benchmark, prints the table, keeps the numbers."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import (
    bench_engines,
    bench_merge,
    bench_processes,
    bench_readers,
    bench_remote,
    bench_sources,
    fairness,
    hub,
    report,
    runs,
    web,
    work,
)
from bench.targets import ROOT, ROUTERS
from smartfeeds import __version__

Job = Callable[[runs.Collector, Path], None]
# What is measured, in this order, each in a folder of its own.
JOBS: dict[str, Job] = {
    "echo": runs.measure_echo,
    "rounds": partial(runs.measure_services, ()),
    "large": runs.measure_large,
    "http": web.measure,
    "hub": hub.measure,
    "merge": bench_merge.measure,
    "sources": bench_sources.measure,
    "fairness": fairness.measure,
    "engines": bench_engines.measure,
    "processes": bench_processes.measure,
    "readers": bench_readers.measure,
    "remote": bench_remote.measure,
    **{f"through-{name}": partial(runs.measure_routed, name) for name in ROUTERS},
}


def main() -> None:
    """Everything, or what was asked for."""
    # What was started is ended, also when the benchmark is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        prog="bench", description="Ours beside the pubsub of Prosody and ejabberd, and beside HTTP servers."
    )
    parser.add_argument("--quick", action="store_true", help="one short run, some minutes")
    parser.add_argument("names", nargs="*", type=_job, metavar="NAME", help=f"these only: {', '.join(JOBS)}")
    parser.add_argument(
        "--beside", action="append", default=[], metavar="COMMIT", help="another version to run in the rounds"
    )
    parser.add_argument("--table", nargs="+", type=Path, metavar="FILE", help="only print the table of these results")
    wanted = parser.parse_args()
    if wanted.table:
        print(report.read(wanted.table))
        return
    scale = work.QUICK if wanted.quick else work.FULL
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    described = {"smartfeeds": __version__, **report.machine(folder)}
    name = time.strftime("%Y%m%d-%H%M%S")
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
        lines.write(json.dumps({"machine": described, "scale": asdict(scale)}) + "\n")
        collect = runs.Collector(scale, lines, lambda text: print(text, file=sys.stderr, flush=True))
        jobs: dict[str, Job] = {**JOBS, "rounds": partial(runs.measure_services, wanted.beside)}
        for job in wanted.names or jobs:
            collect.say(f"{job} ({time.monotonic() - start:.0f} s)")
            jobs[job](collect, folder / job)
    text = report.text(collect.results, scale, described)
    (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    print(f"\nThe numbers: {folder / name}.jsonl, this text: {folder / name}.md", file=sys.stderr)


def _job(name: str) -> str:
    if name not in JOBS:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(JOBS)}")
    return name


if __name__ == "__main__":
    main()

"""The benchmark from end to end: targets come and go, their numbers are collected and written down as they come."""

import compileall
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TextIO

from bench import fill, stanzas, targets, versions, work
from bench.report import Results
from bench.targets import Target
from bench.wire import EVENT, BenchError
from bench.work import Number, Numbers, Scale

FILL_S = 900


class Collector:
    """Keeps the numbers, writes each as a line of JSON, and tells how far it is."""

    def __init__(self, scale: Scale, lines: TextIO, say: Callable[[str], None]) -> None:
        self.scale = scale
        self.say = say
        self._lines = lines
        self._found: dict[str, dict[str, list[Number]]] = {}

    @property
    def results(self) -> Results:
        """Target -> row -> one number a run."""
        return self._found

    def take(self, target: str, numbers: Iterable[Number]) -> None:
        """Takes what a piece of work finds out. One that a target cannot do ends that piece only."""
        try:
            for number in numbers:
                self._found.setdefault(target, {}).setdefault(number.row, []).append(number)
                line = {"target": target, "row": number.row, "value": number.value, "note": number.note}
                self._lines.write(json.dumps(line) + "\n")
                self._lines.flush()
                self.say(f"  {target:16} {number.row:24} {number.value:12,.2f}  {number.note}")
        except (BenchError, TimeoutError) as error:
            self._lines.write(json.dumps({"target": target, "failed": str(error)}) + "\n")
            self.say(f"  {target:16} gave up: {str(error)[:300]}")
            if target == "ours":
                raise


def measure_echo(collect: Collector, folder: Path) -> None:
    """What the harness itself can do."""
    scale = collect.scale
    fresh(folder)
    for _ in range(scale.runs):
        for events, piece in ((0, _echo_answers), (scale.subscribers, _echo_events)):
            target = targets.echo(folder, events)
            try:
                collect.take("echo", piece(target, scale))
            finally:
                target.stop()


def _echo_answers(target: Target, scale: Scale) -> Numbers:
    yield from work.publish(target, scale)
    row = f"page_{fill.sizes(scale.items)[0]}_start"
    yield from work.pages(target, scale, row, lambda _: stanzas.page(target.address, "f"))


def _echo_events(target: Target, scale: Scale) -> Numbers:
    pace = target.wire.rate(
        stanzas.publishes(target.address, "f"),
        in_flight=work.EVENTS_AHEAD,
        seconds=scale.slice_s,
        marker=EVENT,
        each=scale.subscribers,
    )
    yield Number("notify", pace.per_s)


Starters = Mapping[str, Callable[[Path], Target]]


def services(commits: Sequence[str], say: Callable[[str], None]) -> Starters:
    """The present version, the first one, those of commits, and the peers, by the names of their columns."""
    compileall.compile_dir(targets.PACKAGE, quiet=2)  # else the start would be slow, and take more memory
    found = {"ours": partial(targets.version, targets.PACKAGE)}
    for name, commit in (("first", versions.FIRST), *((commit, commit) for commit in commits)):
        try:
            package = versions.tree(commit)
            compileall.compile_dir(package, quiet=2)
            found[name] = partial(targets.version, package)
        except BenchError as error:
            say(f"  {name} is left out: {error}")
    return {**found, **{name: partial(targets.peer, name) for name in targets.PEERS}}


def measure_services(commits: Sequence[str], collect: Collector, folder: Path) -> None:
    """The present version beside the first one, those of commits, and the peers."""
    measure_rounds(services(commits, collect.say), collect, folder)


def measure_rounds(starters: Starters, collect: Collector, folder: Path) -> None:
    """All services side by side. In each round they do the same piece of work one right after the other."""
    scale = collect.scale
    with ExitStack() as stack:
        running: dict[str, tuple[Target, str]] = {}
        for name, start in starters.items():
            place, begun_s = fresh(folder / name), time.perf_counter()
            try:
                target = start(place)
            except (BenchError, OSError) as error:  # another version may need other settings
                if name == "ours":
                    raise
                collect.say(f"  {name} is left out, it did not start: {error}")
                continue
            stack.callback(target.stop)
            collect.take(name, [Number("start_empty", time.perf_counter() - begun_s)])
            collect.take(name, work.memory(target, "rss_empty"))
            running[name] = target, work.new_node(target)
        there = dict.fromkeys(running, 0)
        for number, size in enumerate(fill.sizes(scale.items)[:2]):
            for name, (target, node) in running.items():
                there[name] = work.fill_node(target, node, there[name] + 1, size, scale.fill_s)
            for _ in range(scale.runs):
                for piece in (work.publish, work.notify, work.subscribe, work.create_nodes) if not number else ():
                    for name, (target, _) in running.items():
                        collect.take(name, piece(target, scale))
                for name, (target, node) in running.items():
                    collect.take(name, work.first_pages(target, scale, node, f"page_{size}_start", there[name]))
        for _ in range(scale.runs):
            for name, (target, _) in running.items():
                collect.take(name, work.list_nodes(target, scale))
    shutil.rmtree(folder)


def measure_large(collect: Collector, folder: Path) -> None:
    """What a large database costs: start-up, memory, pages."""
    scale = collect.scale
    database = fresh(folder) / "feeds.db"
    collect.say(f"  filling a database with {scale.items:,} items")
    command = [sys.executable, "-m", "bench.fill", targets.sqlite_url(database), str(scale.items), str(scale.standing)]
    subprocess.run(command, check=True, timeout=FILL_S, env=targets.environment())
    for _ in range(scale.runs):
        target, taken_s = targets.ours(folder, targets.sqlite_url(database))
        try:
            collect.take("ours", [Number("start_full", taken_s)])
            target.wire.settle(1.0)
            collect.take("ours", work.memory(target, "rss_full"))
            collect.take("ours", work.our_pages(target, scale))
            node = work.new_node(target)
            work.fill_node(target, node, 1, min(1_000, scale.publishes), 60)
            collect.take("ours", work.tell_crowd(target, scale))
        finally:
            target.stop()
    shutil.rmtree(folder)


def measure_routed(name: str, collect: Collector, folder: Path) -> None:
    """Our component behind a real server."""
    for _ in range(collect.scale.runs):
        routed = targets.routed(name, folder)
        try:
            collect.take("ours", work.through_server(routed, collect.scale))
        finally:
            routed.target.stop()
        shutil.rmtree(folder)


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder

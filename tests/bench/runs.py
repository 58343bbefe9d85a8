"""The benchmark from end to end: targets come and go, their numbers are collected and written down as they come."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from bench import fill, stanzas, targets, work
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


def measure_ours(collect: Collector, folder: Path) -> None:
    """Our component: fresh for what writes, over a large database for what reads."""
    scale = collect.scale
    for run in range(scale.runs):
        place = fresh(folder / f"ours-{run}")
        target, taken_s = targets.ours(place, targets.sqlite_url(place / "feeds.db"))
        try:
            collect.take("ours", [Number("start_empty", taken_s)])
            collect.take("ours", work.memory(target, "rss_empty"))
            for piece in (work.publish, work.notify, work.create_nodes, work.list_nodes, work.subscribe):
                collect.take("ours", piece(target, scale))
        finally:
            target.stop()
        shutil.rmtree(place)
    measure_large(collect, fresh(folder / "large"))
    shutil.rmtree(folder / "large")


def measure_large(collect: Collector, folder: Path) -> None:
    """What a large database costs: start-up, memory, pages."""
    scale = collect.scale
    database = folder / "feeds.db"
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


def measure_peer(name: str, collect: Collector, folder: Path) -> None:
    """A server's own pubsub service. What is large is filled once and read in each run."""
    scale = collect.scale
    target = targets.peer(name, folder)
    try:
        collect.take(name, work.memory(target, "rss_empty"))
        small, large = fill.sizes(scale.items)[:2]
        node = work.new_node(target)
        there = work.fill_node(target, node, 1, small, scale.fill_s)
        for _ in range(scale.runs):
            for piece in (work.publish, work.notify, work.subscribe):
                collect.take(name, piece(target, scale))
            collect.take(name, work.peer_pages(target, scale, node, f"page_{small}_start", there))
        there = work.fill_node(target, node, there + 1, large, scale.fill_s)
        for _ in range(scale.runs):
            collect.take(name, work.peer_pages(target, scale, node, f"page_{large}_start", there))
        for _ in range(scale.runs):
            collect.take(name, work.create_nodes(target, scale, scale.runs))
        for _ in range(scale.runs):
            collect.take(name, work.list_nodes(target, scale))
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

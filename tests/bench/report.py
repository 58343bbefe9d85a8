"""The rows of the benchmark, their goals, and the table."""

import json
import os
import platform
import re
import shutil
import sqlite3
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench import fill
from bench.targets import PEERS
from bench.work import Number, Scale

Results = Mapping[str, Mapping[str, Sequence[Number]]]  # target -> row -> one number a run


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name in words, its unit, its goal in that unit, and whether less is better."""

    name: str
    title: str
    unit: str = "/s"
    goal: float | None = None
    less: bool = False
    peers: bool = True


def rows(scale: Scale) -> list[Row]:
    """All rows of a run at this scale, in the order they are shown."""
    found = [
        Row("publish_64", "publish, 64 in flight", goal=12_000),
        Row("publish_1", "publish, one at a time", goal=1_500),
        Row("notify", f"notifications, {scale.subscribers:,} subscribers", goal=250_000),
    ]
    sizes = fill.sizes(scale.items)
    for size in sizes:
        for place in ("start", "middle", "end"):
            row = f"page_{size}_{place}"
            shared = place == "start" and size in sizes[:2]
            title = f"page of 50, {place} of {size:,} items"
            found.append(Row(row, title, goal=4_000, peers=shared))
            found.append(Row(f"{row}_p99", f"{title}: p99", " ms", 5, less=True, peers=shared))
    return [
        *found,
        Row("create", "create nodes", goal=5_000),
        Row("list", f"list {scale.nodes:,} nodes, page of 50", goal=4_000),
        Row("list_p99", f"list {scale.nodes:,} nodes, page of 50: p99", " ms", 5, less=True),
        Row("subscribe", f"subscribe, to {scale.subscriptions:,} on one node", goal=10_000),
        Row("start_empty", "start-up, nothing stored", " s", less=True, peers=False),
        Row("start_full", f"start-up, {scale.items:,} items", " s", less=True, peers=False),
        Row("rss_empty", "memory, nothing stored", " MB", less=True),
        Row("rss_full", f"memory, {scale.items:,} items and {scale.standing:,} subscriptions", " MB", 100, True, False),
        Row("rss_worked", "memory, the same after pages, publishes and the next row", " MB", 100, True, False),
        Row("crowd", f"one item to {scale.standing:,} subscribers", peers=False),
        *(
            row
            for server in ("Prosody", "ejabberd")
            for row in (
                Row(f"through_{server.lower()}", f"notifications through {server} as router", peers=False),
                Row(f"through_{server.lower()}_cpu", f"our CPU there, of {server}'s", " %", 10, True, False),
            )
        ),
    ]


def text(results: Results, scale: Scale, described: Mapping[str, str]) -> str:
    """The table, what else was found out, and the machine."""
    machine = "; ".join(f"{key} {value}" for key, value in described.items())
    runs = "one run" if scale.runs == 1 else f"medians of {scale.runs} runs"
    return "\n\n".join((table(results, scale, PEERS), notes(results), f"{machine}; {runs}"))


def read(files: Iterable[Path]) -> str:
    """The same from files of results; a row that is in several counts as the last one has it."""
    results: dict[str, dict[str, list[Number]]] = {}
    scale, described = Scale(), dict[str, str]()
    for file in files:
        found: dict[str, dict[str, list[Number]]] = {}
        for line in file.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if "machine" in entry:
                scale, described = Scale(**entry["scale"]), entry["machine"]
            elif "row" in entry:
                number = Number(entry["row"], entry["value"], entry["note"])
                found.setdefault(entry["target"], {}).setdefault(number.row, []).append(number)
        for target, numbers in found.items():
            results.setdefault(target, {}).update(numbers)
    return text(results, scale, described)


def table(results: Results, scale: Scale, peers: Iterable[str]) -> str:
    """A Markdown table: ours against the goal, the harness's own limit, and each peer with the ratio ours to peer."""
    names = [name for name in peers if name in results]
    lines = [
        "| work | goal | ours | goal reached | harness alone |" + "".join(f" {name} (ours is) |" for name in names),
        "|---|---:|---:|---|---:|" + "---:|" * len(names),
    ]
    for row in rows(scale):
        mine = middle(results, "ours", row)
        cells = [row.title, _goal(row), _text(row, mine), _reached(row, mine), _text(row, middle(results, "echo", row))]
        cells += [_against(row, mine, middle(results, name, row)) for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def middle(results: Results, target: str, row: Row) -> float | None:
    """The median of the runs."""
    numbers = results.get(target, {}).get(row.name, ())
    return statistics.median(number.value for number in numbers) if numbers else None


def notes(results: Results) -> str:
    """What the numbers say beside their values, of the last run."""
    lines = [
        f"- {target}, {row}: {numbers[-1].note}"
        for target, found in results.items()
        for row, numbers in found.items()
        if numbers and numbers[-1].note
    ]
    return "\n".join(lines)


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    return f"{'under' if row.less else 'at least'} {row.goal:,.0f}{row.unit}"


def _text(row: Row, value: float | None) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{row.unit}"


def _reached(row: Row, value: float | None) -> str:
    if row.goal is None or value is None:
        return ""
    return "yes" if (value < row.goal if row.less else value >= row.goal) else "**no**"


def _against(row: Row, mine: float | None, theirs: float | None) -> str:
    if theirs is None:
        return ""
    if not mine or not theirs:
        return _text(row, theirs)
    ratio = mine / theirs
    return f"{_text(row, theirs)} ({ratio:,.{0 if ratio >= 10 else 2}f}x)"


def machine(folder: Path) -> dict[str, str]:
    """What it all ran on."""
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text("utf-8"))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "CPU": f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{int(memory[1]) // 1024:,} MB" if memory else "",
        "kernel": platform.release(),
        "file system": _output("stat", "-f", "-c", "%T", str(folder)),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "slixmpp": version("slixmpp"),
        "lxml": version("lxml"),
        "Prosody": _debian("prosody"),
        "ejabberd": _debian("ejabberd"),
        "load before the run": load,
    }


def _debian(package: str) -> str:
    return _output("dpkg-query", "-W", "-f", "${Version}", package)


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return "unknown"
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"

"""The tables of the benchmark, and the machine it ran on."""

import json
import os
import platform
import re
import shutil
import sqlite3
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench import web_targets
from bench.grids import Grid, grids
from bench.rows import FLOODS, MEMORY, QUIET_USERS, Row, hub_rows, merge_rows, rows, source_rows, web_rows
from bench.targets import PEERS, ROOT
from bench.work import Number, Scale

FIRST = "first version"  # the column
SLOWER = 1.05  # a loss that has to be explained
PUBLISHED = ROOT / "docs" / "benchmarks.md"
FAIR_RATIO = 2.0  # the goal for the quiet users' p99 beside a flood
Results = Mapping[str, Mapping[str, Sequence[Number]]]  # target -> row -> one number a run


def text(results: Results, scale: Scale, described: Mapping[str, str]) -> str:
    """The table, what else was found out, and the machine."""
    machine = "; ".join(f"{key} {value}" for key, value in described.items())
    runs = "one run" if scale.runs == 1 else f"medians of {scale.runs} runs"
    tables = [
        table(results, found, columns)
        for found, columns in (
            (rows(scale), _columns(results)),
            (web_rows(scale), {name: name for name in web_targets.PEERS}),
            (hub_rows(scale), dict[str, str]()),
            (merge_rows(scale), dict[str, str]()),
            (source_rows(), dict[str, str]()),
        )
        if any(row.name in results.get(name, {}) for row in found for name in ("ours", *columns))
    ]
    if any(row.startswith("fair_") for row in results.get("ours", {})):
        tables.append(fairness(results))
    if slower := list(slower_rows(results, rows(scale), PUBLISHED.read_text("utf-8"))):
        tables.append("Slower than in docs/benchmarks.md, as a ratio to the first version:\n\n" + "\n".join(slower))
    tables += [grid_table(results, grid) for grid in grids(scale) if _has_any(results, grid)]
    return "\n\n".join((*tables, notes(results), f"{machine}; {runs}"))


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


def table(results: Results, found: Iterable[Row], columns: Mapping[str, str]) -> str:
    """A Markdown table: ours against the goal, and each other target with the ratio ours to theirs.

    `columns` are the other targets with what they are called; the harness's own limit is no rival.
    """
    names = [name for name in columns if name in results]
    lines = [
        "| work | goal | ours | goal reached |"
        + "".join(f" {columns[name]}{'' if name == 'echo' else ' (ours is)'} |" for name in names),
        "|---|---:|---:|---|" + "---:|" * len(names),
    ]
    for row in found:
        if not any(row.name in results.get(name, {}) for name in ("ours", *names)):
            continue
        mine = middle(results, "ours", row.name)
        limit = _limit(results, row)
        cells = [row.title, _goal(row, limit), _text(row, mine), _reached(row, mine, limit)]
        for name in names:
            theirs = middle(results, name, row.theirs)
            cells.append(_text(row, theirs) if name == "echo" else _against(row, mine, theirs))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _columns(results: Results) -> dict[str, str]:
    """The targets of the first table and their titles. The names of other versions (`--beside`) are commits."""
    versions = [name for name in results if name not in {"ours", "echo", "first", *PEERS, *web_targets.PEERS}]
    return {"echo": "harness alone", "first": FIRST, **{name: name for name in (*versions, *PEERS)}}


def slower_rows(results: Results, found: Iterable[Row], page: str) -> Iterator[str]:
    """The rows that have lost more than 5 % against the first version since the published table, with both ratios."""
    published: dict[str, str] = {}
    column = 0  # the one of the first version in the table that a line belongs to
    for cells in (line.split("|") for line in page.splitlines()):
        title = cells[1].strip() if len(cells) > 1 else ""
        if title == "work":
            column = next((number for number, cell in enumerate(cells) if FIRST in cell), 0)
        elif column and column < len(cells):
            published[title] = cells[column]
    for row in found:
        mine, theirs = (middle(results, name, row.name) for name in ("ours", "first"))
        before = re.search(r"\(([\d.,]+)x\)", published.get(row.title, ""))
        if mine and theirs and before:
            now, then = mine / theirs, float(before[1].replace(",", ""))
            if (now / then if row.less else then / now) > SLOWER:
                yield f"- {row.title}: {now:.2f}x, published {then:.2f}x"


def fairness(results: Results) -> str:
    """The quiet users' p99 alone and beside each flood, medians of the rounds, and the memory of the process."""
    titles = [f" {title} alone | beside | ratio |" for title in QUIET_USERS.values()]
    lines = ["| flood |" + "".join(titles), "|---|" + "---:|---:|---:|" * len(titles)]
    for name, title in FLOODS.items():
        cells = [title]
        for user in QUIET_USERS:
            alone = middle(results, "ours", f"fair_{name}_{user}_alone")
            beside = middle(results, "ours", f"fair_{name}_{user}")
            if alone is None or beside is None:
                cells += ["", "", ""]
                continue
            ratio = f"{beside / alone:,.1f}x"
            within = beside <= FAIR_RATIO * alone
            cells += [f"{alone:,.1f} ms", f"{beside:,.1f} ms", ratio if within else f"**{ratio}**"]
        lines.append("| " + " | ".join(cells) + " |")
    memory = [
        f"{moment} {value:,.0f} MB"
        for number, moment in enumerate(MEMORY)
        if (value := middle(results, "ours", f"fair_rss_{number}")) is not None
    ]
    return "\n".join((*lines, "", f"Resident memory: {', '.join(memory)}. Ratios above {FAIR_RATIO:.0f}x are bold."))


def grid_table(results: Results, grid: Grid) -> str:
    """A Markdown table with a column for each arrangement of the service."""
    lines = [f"| {' | '.join((grid.title, *grid.columns.values()))} |", "|---|" + "---:|" * len(grid.columns)]
    for row in grid.rows:
        values = (middle(results, "ours", f"{row.name}_{column}") for column in grid.columns)
        lines.append(f"| {' | '.join((row.title, *(_text(row, value) for value in values)))} |")
    return "\n".join(lines)


def _has_any(results: Results, grid: Grid) -> bool:
    names = results.get("ours", {})
    return any(f"{row.name}_{column}" in names for row in grid.rows for column in grid.columns)


def middle(results: Results, target: str, row: str) -> float | None:
    """The median of the runs."""
    numbers = results.get(target, {}).get(row, ())
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


def _limit(results: Results, row: Row) -> float | None:
    """The goal as a number."""
    theirs = middle(results, row.of, row.theirs) if row.of else None
    return row.goal if theirs is None else theirs * row.part


def _goal(row: Row, limit: float | None) -> str:
    return "" if limit is None else f"{'under' if row.less else 'at least'} {limit:,.0f}{row.unit}"


def _text(row: Row, value: float | None) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{row.unit}"


def _reached(row: Row, value: float | None, limit: float | None) -> str:
    if limit is None or value is None:
        return ""
    return "yes" if (value < limit if row.less else value >= limit) else "**no**"


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
        "aiohttp": version("aiohttp"),
        "PostgreSQL": _output("psql", "--version").removeprefix("psql (PostgreSQL) "),
        "nginx": _debian("nginx-light") if _debian("nginx") == "unknown" else _debian("nginx"),
        "uvicorn": _pinned("uvicorn"),
        "load before the run": load,
    }


def _debian(package: str) -> str:
    return _output("dpkg-query", "-W", "-f", "${Version}", package)


def _pinned(package: str) -> str:
    text = Path(__file__).with_name("requirements.txt").read_text("utf-8")
    return next((line.partition("==")[2] for line in text.splitlines() if line.startswith(f"{package}==")), "unknown")


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return "unknown"
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"

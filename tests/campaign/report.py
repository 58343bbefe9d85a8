"""The record of campaigns, docs/reliability.jsonl, and the tables of docs/reliability.md that are built from it."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from campaign.pieces import Task, Total
from smartfeeds import __version__

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "reliability.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
START, END = "<!-- campaigns: written by `make campaign NAME=page` -->\n", "<!-- end of campaigns -->"

INPUTS = " inputs"  # the end of the name of a count of inputs
NO_LINK = "no process with a link"  # of times in which no process had a link to the XMPP server

Row = Mapping[str, Any]


def row(name: str, task: Task, total: Total, seconds: float) -> Row:
    """The row of a run. `recovery_s` has, for each fault, number, median and maximum."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "campaign": name,
        "variant": task.variant,
        "defect": task.defect,
        "seed": task.seed,
        "faults": total.faults,
        "counts": dict(sorted(total.counts.items())),
        "findings": len(total.findings),
        "verdict": "broken" if total.findings else "sound",
        "recovery_s": {
            fault: [len(times), round(statistics.median(times), 2), round(max(times), 2)]
            for fault, times in sorted(total.recoveries.items())
        },
        "seconds": round(seconds),
    }


def append(new: Row) -> None:
    """Adds a row to the record."""
    with RECORD.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(new) + "\n")


def read() -> list[Row]:
    """The rows of the record."""
    return [json.loads(line) for line in RECORD.read_text("utf-8").splitlines()]


def summary(row: Row) -> str:
    """The result of a run in one line."""
    counts = ", ".join(f"{value:,} {name}" for name, value in row["counts"].items() if value)
    times = "; ".join(
        f"{fault}: {number} times, recovered after {median} s (median), {worst} s (maximum)"
        for fault, (number, median, worst) in row["recovery_s"].items()
    )
    return f"{row['campaign']} seed {row['seed']}: {row['faults']} faults, {row['verdict']}; {counts}; {times}"


@dataclass(slots=True)
class _Sum:
    seeds: list[int] = field(default_factory=list)
    faults: int = 0
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    findings: int = 0
    median_s: list[tuple[float, int]] = field(default_factory=list)
    worst_s: float = 0.0
    last: str = ""
    version: str = ""

    def add_times(self, number: int, median_s: float, worst_s: float) -> None:
        """Adds the times of a run."""
        self.median_s.append((median_s, number))
        self.worst_s = max(self.worst_s, worst_s)

    def times(self) -> list[float]:
        """The median of each run, as often as it stands for a time."""
        return sorted(time_s for time_s, number in self.median_s for _ in range(number))


def tables(rows: Sequence[Row]) -> str:
    """The tables of the page: runs of the service, and negative controls."""
    parts = [_table([row for row in rows if not row["defect"]], "campaign")]
    broken = [row for row in rows if row["defect"]]
    if broken:
        parts.append("### Negative controls\n\n" + _table(broken, "defect"))
    if takeovers := _takeovers(rows):
        parts.append("### Takeovers between processes\n\n" + takeovers)
    if inputs := _inputs(rows):
        parts.append("### Mutated inputs\n\n" + inputs)
    if growth := _growth(rows):
        parts.append("### Use of memory, files and threads\n\n" + growth)
    return "\n\n".join(parts) + "\n"


def _name(row: Row) -> str:
    # The variants of `fuzz` are parsers, which have a table of their own.
    variant = "" if any(name.endswith(INPUTS) for name in row["counts"]) else row["variant"]
    return " ".join(filter(None, (row["campaign"], variant, row["defect"].replace("_", " "))))


def _is_takeover(fault: str) -> bool:
    """Whether the times of this name are not those of clients."""
    return fault.startswith("takeover") or fault == NO_LINK


def _takeovers(rows: Sequence[Row]) -> str:
    """How long shards, or the link, had no other owner; empty if no campaign measured that."""
    sums: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for row in rows:
        for fault, times in row["recovery_s"].items():
            if _is_takeover(fault):
                sums[_name(row), fault].add_times(*times)
    lines = ["| campaign | time | number | median, maximum |", "|---|---|---:|---:|"]
    lines += [
        f"| {name} | {fault} | {len(total.times()):,} | {_recovery(total)} |" for (name, fault), total in sums.items()
    ]
    return "\n".join(lines) if sums else ""


def _inputs(rows: Sequence[Row]) -> str:
    """How many inputs each parser got; empty without a run of `fuzz`."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums += Counter({name: value for name, value in row["counts"].items() if name.endswith(INPUTS)})
    lines = ["| parser | inputs |", "|---|---:|"]
    lines += [f"| {name.removesuffix(INPUTS)} | {number:,} |" for name, number in sorted(sums.items())]
    return "\n".join(lines) if sums else ""


def _growth(rows: Sequence[Row]) -> str:
    """What a long life used after a quarter of its time and at its end; empty without a soak."""
    soaks = [row["counts"] for row in rows if "soak_s" in row["counts"]]
    lines = [
        "| minutes | memory (MiB) | open files | threads | largest log of the database (MiB) | median latency (ms) "
        "| processor time of a write (ms) | wait for a processor for each write (ms) |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {counts['soak_s'] // 60} | {counts['rss_kib_early'] / 1024:.0f} to {counts['rss_kib_late'] / 1024:.0f} "
        f"| {counts['files_early']} to {counts['files_late']} | {counts['threads_early']} to {counts['threads_late']} "
        f"| {counts['wal_kib_largest'] / 1024:.0f} "
        f"| {counts['latency_us_early'] / 1000:.0f} to {counts['latency_us_late'] / 1000:.0f} "
        f"| {_span_ms(counts, 'write_cpu_us')} | {_span_ms(counts, 'write_delay_us')} |"
        for counts in soaks
    ]
    return "\n".join(lines) if soaks else ""


def _span_ms(counts: Mapping[str, int], name: str) -> str:
    """The first and the last value of a number that older rows do not have."""
    early, late = counts.get(f"{name}_early"), counts.get(f"{name}_late")
    return "" if early is None or late is None else f"{early / 1000:.1f} to {late / 1000:.1f}"


def _table(rows: Sequence[Row], title: str) -> str:
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for row in rows:
        total = sums[_name(row)]
        total.seeds.append(row["seed"])
        total.faults += row["faults"]
        total.findings += row["findings"]
        total.last, total.version = max(total.last, row["date"]), row["version"]
        for count, value in row["counts"].items():
            total.counts[count] += value
        for fault, times in row["recovery_s"].items():
            if not _is_takeover(fault):
                total.add_times(*times)
    lines = [
        f"| {title} | faults | acknowledged | no answer | notifications | findings | recovered after (median, maximum) "
        "| first seeds of the runs | version, last run |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for name, total in sums.items():
        counts = total.counts
        lines.append(
            f"| {name} | {total.faults:,} | {counts['acknowledged']:,} | {counts['unknown']:,} | {counts['pushes']:,} "
            f"| {total.findings:,} | {_recovery(total)} | {', '.join(map(str, dict.fromkeys(total.seeds)))} "
            f"| {total.version}, {total.last} |"
        )
    return "\n".join(lines)


def _recovery(total: _Sum) -> str:
    """The median of the medians of all runs and faults, each counted as often as it happened, and the maximum."""
    times = total.times()
    return f"{statistics.median(times):.1f} s, {total.worst_s:.1f} s" if times else ""


def with_tables(page: str, rows: Sequence[Row]) -> str:
    """The page with the tables of these rows between its marks."""
    head, _, rest = page.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{tables(rows)}\n{END}{tail}"


def write_page() -> None:
    """Writes the tables into docs/reliability.md."""
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), read()), "utf-8")

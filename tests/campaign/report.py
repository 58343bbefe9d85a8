"""The record of campaigns, docs/reliability.jsonl, and the tables of docs/reliability.md that are built from it."""

import json
import statistics
from collections import defaultdict
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


def tables(rows: Sequence[Row]) -> str:
    """The tables of the page: runs of the service, and negative controls."""
    parts = [_table([row for row in rows if not row["defect"]], "campaign")]
    broken = [row for row in rows if row["defect"]]
    if broken:
        parts.append("### Negative controls\n\n" + _table(broken, "defect"))
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row], title: str) -> str:
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for row in rows:
        name = " ".join(filter(None, (row["campaign"], row["variant"], row["defect"].replace("_", " "))))
        total = sums[name]
        total.seeds.append(row["seed"])
        total.faults += row["faults"]
        total.findings += row["findings"]
        total.last, total.version = max(total.last, row["date"]), row["version"]
        for count, value in row["counts"].items():
            total.counts[count] += value
        for number, median_s, worst_s in row["recovery_s"].values():
            total.median_s.append((median_s, number))
            total.worst_s = max(total.worst_s, worst_s)
    lines = [
        f"| {title} | faults | acknowledged | no answer | notifications | findings | recovered after (median, maximum) "
        "| first seeds of the runs | version, last run |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for name, total in sums.items():
        counts = total.counts
        lines.append(
            f"| {name} | {total.faults:,} | {counts['acknowledged']:,} | {counts['unknown']:,} | {counts['pushes']:,} "
            f"| {total.findings:,} | {_recovery(total)} | {', '.join(map(str, total.seeds))} "
            f"| {total.version}, {total.last} |"
        )
    return "\n".join(lines)


def _recovery(total: _Sum) -> str:
    """The median of the medians of all runs and faults, each counted as often as it happened, and the maximum."""
    times = sorted(time_s for time_s, number in total.median_s for _ in range(number))
    return f"{statistics.median(times):.1f} s, {total.worst_s:.1f} s" if times else ""


def with_tables(page: str, rows: Sequence[Row]) -> str:
    """The page with the tables of these rows between its marks."""
    head, _, rest = page.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{tables(rows)}\n{END}{tail}"


def write_page() -> None:
    """Writes the tables into docs/reliability.md."""
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), read()), "utf-8")

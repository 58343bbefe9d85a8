"""`python -m bench.capacity`: calculates what one machine can do, from the measured CPU time of operations.

The costs are in the tables "Measurements" of docs/scaling.md. The calculation divides the cores between the service,
PostgreSQL and ejabberd. It knows four limits: the cores, the one core that a process of the service can use, the feeds
that each process owns, and the connections to PostgreSQL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.doctor.probe_postgres import CONNECTIONS

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
BUSY = 0.9  # of a core: a part that is busy for a longer time makes requests wait
CORES = (4, 16, 64)
FEEDS = 1_000  # which have equal work
DEFAULT_CONNECTIONS = 100  # `max_connections` of PostgreSQL
MEASURED = (1, 3)  # processes of the measurements with the lowest and the highest cost
PUBLISH, NOTIFY, PAGE_OF_50 = (
    "publish, 64 in flight over 48 feeds",
    "notifications of 16 feeds",
    "pages of 50, Atom, other",
)


@dataclass(frozen=True, slots=True)
class Work:
    """A unit of work: how often it needs each operation. With `by_owner` the process that owns the feed does it."""

    name: str
    operations: dict[str, int]
    by_owner: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """The CPU time of a unit of work in microseconds: of the service, and of PostgreSQL and ejabberd together."""

    service_us: float
    others_us: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """The greatest rate of a work on a machine, the processes of the service that it needs, and the next limit."""

    per_s: float
    processes: int
    limit: str


WORKS = (
    Work("publish", {PUBLISH: 1}),
    Work("notify", {NOTIFY: 1}, by_owner=True),
    Work("page of 50, Atom", {PAGE_OF_50: 1}),
    Work("publish, notify 100 subscribers, 1 page", {PUBLISH: 1, NOTIFY: 100, PAGE_OF_50: 1}, by_owner=True),
)


def cost_of(work: Work, page: str, processes: int) -> Cost:
    """Returns the cost with the number of processes that were measured. Raises KeyError if the page lacks it."""
    service_us = others_us = 0.0
    for operation, count in work.operations.items():
        rows = re.findall(rf"^\| {re.escape(operation)}: CPU of ([\w ]+) \|(.*)\|$", page, re.M)
        used_us = {part: _microseconds(cells.split("|")[processes - 1]) for part, cells in rows}
        service_us += count * used_us["service"]
        others_us += count * (used_us["PostgreSQL"] + used_us.get("ejabberd", 0.0))
    return Cost(service_us, others_us)


def _microseconds(cell: str) -> float:
    return float(cell.strip().removesuffix(" us").replace(",", ""))


def capacity(cost: Cost, cores: int, *, by_owner: bool) -> Capacity:
    """Returns the capacity of a machine for one kind of work."""
    per_s = BUSY * cores * 1e6 / (cost.service_us + cost.others_us)
    for processes in range(1, SHARDS + 1):
        if per_s * _largest_share(processes, by_owner=by_owner) * cost.service_us <= BUSY * 1e6:
            is_above = processes * CONNECTIONS > DEFAULT_CONNECTIONS
            return Capacity(per_s, processes, "`max_connections`, then cores" if is_above else "cores")
    share = _largest_share(SHARDS, by_owner=by_owner)
    return Capacity(BUSY * 1e6 / cost.service_us / share, SHARDS, "shards")


def _largest_share(processes: int, *, by_owner: bool) -> float:
    """Returns the part of the work of the process that has most. A shard has its feeds by their number, modulo 64."""
    if not by_owner:
        return 1 / processes
    return ceil(SHARDS / processes) * ceil(FEEDS / SHARDS) / FEEDS


def table(page: str) -> Iterator[str]:
    """Returns the rows of the table in docs/scaling.md."""
    for work in WORKS:
        for cores in CORES:
            best, worst = (capacity(cost_of(work, page, count), cores, by_owner=work.by_owner) for count in MEASURED)
            processes = max(best.processes, worst.processes)
            rates = f"{_rounded(worst.per_s)} to {_rounded(best.per_s)}/s"
            yield f"| {work.name} | {cores} | {rates} | {processes} | {worst.limit} |"


def _rounded(per_s: float) -> str:
    """Returns a rate with two digits: the costs are not known better."""
    return f"{round(per_s, 2 - len(str(round(per_s)))):,.0f}"


if __name__ == "__main__":
    print("\n".join(table(PAGE.read_text("utf-8"))))

"""The tables in which the service is compared with itself: more processes, another engine, another network."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.rows import PART_NAMES, READER_FORMS, Row
from bench.work import IN_FLIGHT, PAGES_IN_FLIGHT, Scale


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a column for each arrangement. A number is in the row `ROW_COLUMN`, named by both keys."""

    title: str
    columns: Mapping[str, str]
    rows: tuple[Row, ...]


def grids(scale: Scale) -> tuple[Grid, ...]:
    """All tables of a run at this scale."""
    counts = {str(count): f"{count} {'process' if count == 1 else 'processes'}" for count in scale.processes}
    readers = {f"readers_{name}": f"pages of 50, {name.replace('_', ', ')}" for name in READER_FORMS}
    return (
        Grid(
            "several processes on ejabberd",
            counts,
            (
                *_with_parts("processes_publish", "publish, 64 in flight over 48 feeds", PART_NAMES),
                *_with_parts("processes_notify", "notifications of 16 feeds", PART_NAMES),
            ),
        ),
        Grid(
            "processes for HTTP only",
            counts,
            tuple(row for name, title in readers.items() for row in _with_parts(name, title, _WITHOUT_EJABBERD)),
        ),
        Grid("distance of the database", {"local": "same machine", "remote": "1.5 ms further away"}, _remote_rows()),
        Grid(
            "engine of the store, without wires",
            {"sqlite": "SQLite", "postgres": "PostgreSQL"},
            tuple(
                row
                for name, count in _WORKS
                for row in _with_parts(f"engines_{name}_{count}", _titled(name, count), _ENGINE_PARTS)
            ),
        ),
    )


_WITHOUT_EJABBERD = {name: key for name, key in PART_NAMES.items() if name != "ejabberd"}
_ENGINE_PARTS = {name: PART_NAMES[name] for name in ("service", "PostgreSQL")}
WORKS_IN_FLIGHT = {
    "publish": (IN_FLIGHT, 1),
    "page": (PAGES_IN_FLIGHT, 1),
    "create": (IN_FLIGHT,),
    "list": (PAGES_IN_FLIGHT,),
    "subscribe": (IN_FLIGHT, 1),
}
_TITLES = {
    "publish": "publish",
    "page": "page of 50",
    "create": "create nodes",
    "list": "list nodes, page of 50",
    "subscribe": "subscribe",
}
# The works of `bench.bench_engines`, by how many are in flight.
_WORKS = [(name, count) for name, counts in WORKS_IN_FLIGHT.items() for count in counts]
REMOTE_WORKS = ("publish", "page", "subscribe")


def _with_parts(name: str, title: str, parts: Mapping[str, str]) -> tuple[Row, ...]:
    """The row of a rate, and a row for the CPU time of each part."""
    details = (Row(f"{name}_{key}", f"{title}: CPU of {part}", " us", less=True) for part, key in parts.items())
    return Row(name, title), *details


def _remote_rows() -> tuple[Row, ...]:
    rows = [Row("remote_trip", "round trip to the database", " ms", less=True)]
    for name, count in _WORKS:
        if name in REMOTE_WORKS:
            row, title = f"remote_{name}_{count}", _titled(name, count)
            rows += [
                Row(row, title),
                Row(f"{row}_ms", f"{title}: median", " ms", less=True),
                Row(f"{row}_trips", f"{title}: round trips for each", "", less=True),
            ]
    return tuple(rows)


def _titled(name: str, count: int) -> str:
    return f"{_TITLES[name]}, {'one at a time' if count == 1 else f'{count} in flight'}"

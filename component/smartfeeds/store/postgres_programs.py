"""The programs that serve a PostgreSQL database now (OPS-091, docs/upgrading.md).

Each process of the service has a lock session. Its name says on which machine the process runs, and which schema its
program was made for. So a program that upgrades the schema sees the processes that could not work with it.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from smartfeeds.store.migrate import HEAD, works_with

NAME_BYTES: Final = 63  # PostgreSQL cuts a longer name
SESSIONS: Final = (
    "SELECT application_name, backend_start FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name ~ '^smartfeeds .+ locks$' ORDER BY backend_start"
)


def session_name(instance: str) -> str:
    """Returns the name of the lock session of this process: `smartfeeds INSTANCE SCHEMA PID@HOST locks`."""
    head, end = f"smartfeeds {instance} {HEAD} ", " locks"
    place = f"{os.getpid()}@{os.uname().nodename}"
    return f"{head}{place[: NAME_BYTES - len(head) - len(end)]}{end}"


def outdated_programs(sessions: Iterable[tuple[Any, ...]], target: str) -> list[str]:
    """Returns the processes that cannot work with the schema `target`, as texts for an operator.

    `sessions` are the rows of `SESSIONS`. A name of another form is that of an older program.
    """
    return [
        _describe(name, since)
        for name, since in sessions
        if len(parts := name.split(" ")) != 5 or not works_with(parts[2], target)
    ]


def _describe(name: str, since: datetime) -> str:
    _, instance, *details, _ = name.split(" ")
    time = f"since {since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if len(details) < 2:
        return f"process {instance} (schema unknown, {time})"
    schema, place = details
    pid, _, host = place.partition("@")
    return f"process {pid} on {host} (schema {schema}, {time})"

"""The load and the standbys of a database server, for metrics (docs/postgres.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# The values of pg_stat_replication.sync_state, and "unknown" if the user of the service may not read them.
STANDBY_STATES: Final = ("sync", "quorum", "potential", "async", "unknown")


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The state of a PostgreSQL server and of one of its databases at one moment.

    `free_connections` is what the limits of the server, the user and the database permit beside the open connections.
    `waiting_sessions` are the sessions on this database that wait for a lock, `longest_wait_s` is the longest of these
    waits. `standbys` counts the connected standbys by their state, and `standby_lag_bytes` is the log that the slowest
    of them has not applied, None if no standby shows it.
    """

    free_connections: int
    waiting_sessions: int
    longest_wait_s: float
    standbys: Mapping[str, int]
    standby_lag_bytes: int | None

"""The metrics of the processes on a database, and of what they share: the database and the link (docs/scaling.md)."""

from dataclasses import dataclass
from typing import Annotated

from prometheus_client import Counter

from smartfeeds.telemetry import REGISTRY

NOTICES = Counter(
    "smartfeeds_notices_total",
    "Notices of changes between the processes on a database, by direction: sent or received",
    ["direction"],
    registry=REGISTRY,
)


@dataclass(frozen=True, slots=True)
class OwnershipReading:
    """The shards of this process, and what it knows of the other processes on the database."""

    shards: Annotated[int, "smartfeeds_shards_owned", "Shards that this process owns, of 64"] = 0
    processes: Annotated[int, "smartfeeds_processes", "Processes on the database, as this process has seen them"] = 1
    lease_age_s: Annotated[
        float,
        "smartfeeds_lease_age_seconds",
        "Seconds since the last beat on the lock session; above store.lease_s this process owns nothing",
    ] = 0.0


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """The identity of this process. The number is always 1: Prometheus joins its labels to other metrics."""

    role: str
    version: str
    schema: str
    count: Annotated[int, "smartfeeds_process_info", "1, with the role, version and schema of the process"] = 1


@dataclass(frozen=True, slots=True)
class DatabaseReading:
    """The load of the PostgreSQL server, read every 15 seconds."""

    free_connections: Annotated[
        int,
        "smartfeeds_database_free_connections",
        "Connections that the database server still permits to this user (from the database, equal in all processes)",
    ]
    waiting_sessions: Annotated[
        int,
        "smartfeeds_database_waiting_sessions",
        "Sessions on the database that wait for a lock (from the database, equal in all processes)",
    ]
    longest_wait_s: Annotated[
        float,
        "smartfeeds_store_lock_wait_seconds",
        "How long the oldest of these sessions has waited (from the database, equal in all processes)",
    ]


@dataclass(frozen=True, slots=True)
class StandbyReading:
    """The connected standbys of the database server in one state."""

    state: str
    count: Annotated[
        int,
        "smartfeeds_standbys",
        "Connected standbys by state: sync, quorum, potential, async, or unknown (from the database, equal in all)",
    ]


@dataclass(frozen=True, slots=True)
class StandbyLagReading:
    """The distance of the slowest standby."""

    lag_bytes: Annotated[
        int,
        "smartfeeds_standby_lag_bytes",
        "Log that the slowest standby has not applied; absent if hidden (from the database, equal in all processes)",
    ]


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """The stanzas that this process has sent to itself through the XMPP server (`canary`).

    `lost_lately` and `lately` count those of the last minutes.
    """

    sent: Annotated[int, "smartfeeds_canary_sent_total", "Pings of this process to its own address"] = 0
    lost: Annotated[
        int, "smartfeeds_canary_lost_total", "Pings to its own address that got no response although the link was up"
    ] = 0
    seconds: Annotated[float, "smartfeeds_canary_seconds", "Seconds that the last response to such a ping took"] = 0.0
    lost_lately: int = 0
    lately: int = 0

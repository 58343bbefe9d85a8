"""The metrics of the processes on a database."""

import pytest

from smartfeeds import telemetry
from smartfeeds.app.sides import declare_metrics
from smartfeeds.features.cluster.metrics import (
    CanaryReading,
    DatabaseReading,
    OwnershipReading,
    ProcessReading,
    StandbyLagReading,
    StandbyReading,
)


def test_metrics_of_a_process_and_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-081] [OPS-082] [OPS-084] A split shows: two processes that own all shards, or none."""
    readings = (
        OwnershipReading(32, 2, 0.5),
        CanaryReading(sent=9, lost=1, seconds=0.25),
        ProcessReading("active", "1.2", "0035"),
        DatabaseReading(88, 3, 1.5),
        StandbyReading("sync", 1),
        StandbyReading("async", 2),
        StandbyLagReading(4_096),
    )
    declare_metrics()
    monkeypatch.setattr(telemetry.GATHERED, "source", lambda: readings)

    lines = telemetry.metrics_text().decode().splitlines()

    assert {
        'smartfeeds_process_info{role="active",schema="0035",version="1.2"} 1.0',
        "smartfeeds_shards_owned 32.0",
        "smartfeeds_processes 2.0",
        "smartfeeds_lease_age_seconds 0.5",
        "smartfeeds_canary_sent_total 9.0",
        "smartfeeds_canary_lost_total 1.0",
        "smartfeeds_canary_seconds 0.25",
        "smartfeeds_database_free_connections 88.0",
        "smartfeeds_database_waiting_sessions 3.0",
        "smartfeeds_store_lock_wait_seconds 1.5",
        'smartfeeds_standbys{state="sync"} 1.0',
        'smartfeeds_standbys{state="async"} 2.0',
        "smartfeeds_standby_lag_bytes 4096.0",
    } <= set(lines)

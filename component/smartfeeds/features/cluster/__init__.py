"""Several processes with one database: ownership, letters between them, shards and the canary."""

from smartfeeds.app.feature import Feature


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.cluster import group_readings as g

    return (
        g.OwnershipReading,
        g.CanaryReading,
        g.ProcessReading,
        g.DatabaseReading,
        g.StandbyReading,
        g.StandbyLagReading,
    )


CLUSTER = Feature("cluster", metrics=_metrics)

"""Several processes with one database: ownership, letters between them, shards and the canary."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, ServiceSide

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings
    from smartfeeds.app.group import Group, Spawn
    from smartfeeds.delivery.changes import ChangeNotifier
    from smartfeeds.service.feeds import FeedService


def _service() -> ServiceSide:
    from smartfeeds.features.cluster.metrics import (
        CanaryReading,
        DatabaseReading,
        OwnershipReading,
        ProcessReading,
        StandbyLagReading,
        StandbyReading,
    )

    return ServiceSide(
        metrics=(
            OwnershipReading,
            CanaryReading,
            ProcessReading,
            DatabaseReading,
            StandbyReading,
            StandbyLagReading,
        )
    )


def _group(settings: "Settings", service: "FeedService", changes: "ChangeNotifier", spawn: "Spawn") -> "Group":
    from smartfeeds.features.cluster.setup import make_process_group

    return make_process_group(settings, service, changes, spawn)


CLUSTER = Feature("cluster", service=_service, group=_group)

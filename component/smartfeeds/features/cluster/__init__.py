"""Several processes with one database: ownership, letters between them, shards and the canary."""

from smartfeeds.app.feature import Feature

CLUSTER = Feature("cluster")

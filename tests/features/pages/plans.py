"""The statements of the river, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.core.model import Edge
from smartfeeds.features.pages import river_rows
from smartfeeds.store.base import ReadTx


def read(tx: ReadTx) -> None:
    river_rows.changed_items(tx, 50, Edge(30_000, 60_000))

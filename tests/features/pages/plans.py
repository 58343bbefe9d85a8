"""The statements of the river and of answers, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.core.model import Edge
from smartfeeds.features.pages import reply_rows, river_rows
from smartfeeds.store.base import ReadTx


def read(tx: ReadTx) -> None:
    river_rows.changed_items(tx, 50, Edge(30_000, 60_000))
    reply_rows.count_replies(tx, 1, ["urn:x:1", "urn:x:2"])

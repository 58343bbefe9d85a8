"""The statements of mirrors, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.mirrors import rows
from smartfeeds.features.mirrors.mirror import MirrorRow, make_mirror
from smartfeeds.store.base import WriteTx


def write(tx: WriteTx) -> None:
    mirror = make_mirror(node="feed1", address="xmpp:b.example?;node=n")
    rows.put(tx, MirrorRow(mirror))
    rows.remove(tx, mirror.name)

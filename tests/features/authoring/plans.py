"""The statements of files, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.authoring import rows
from smartfeeds.store.base import WriteTx
from store.values import DIGEST, FILE_ID, feed_file


def write(tx: WriteTx) -> None:
    rows.put(tx, feed_file(1))
    rows.set_owner(tx, feed_file(1), "b@x")
    rows.remove(tx, feed_file(1))
    rows.known_digests(tx, [DIGEST])
    rows.is_used(tx, feed_file(1)._replace(file_id=FILE_ID))

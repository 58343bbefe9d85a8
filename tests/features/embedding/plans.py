"""The statements of the replies of guests, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.embedding import rows
from smartfeeds.features.embedding.guests import GuestReply, ReplyState
from smartfeeds.store.base import ReadTx, WriteTx

_REPLY = GuestReply("r", 1, ReplyState.WAITING, "Mara", "Good morning", "a", 1, 2)


def read(tx: ReadTx) -> None:
    rows.reply(tx, "r")
    rows.waiting(tx, 1)
    rows.waiting_count(tx, 1)
    rows.waiting_times(tx, 1)
    rows.ended(tx, 50, 10)


def write(tx: WriteTx) -> None:
    rows.put(tx, _REPLY)
    rows.remove(tx, "r")
    rows.remove_of_node(tx, 2)

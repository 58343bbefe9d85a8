"""Replies of guests in SQL (`guest_reply`)."""

from smartfeeds.features.embedding.guests import GuestReply, ReplyState
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_tables import Table

GUEST_REPLY = Table("guest_reply", "reply_id", "node_no, state, name, text, target, created_us, expires_us")
_STATES = {state.value: state for state in ReplyState}
_WAITING = "WHERE node_no = ? AND state = 'waiting'"


def to_reply(row: Row) -> GuestReply:
    """A reply from the columns of GUEST_REPLY. Raises KeyError."""
    reply_id, node_no, state, *rest = row
    return GuestReply(reply_id, node_no, _STATES[state], *rest)


def reply(tx: ReadTx, reply_id: str) -> GuestReply | None:
    """Returns the reply with this id."""
    row = tx.db.row(f"{GUEST_REPLY.select} WHERE reply_id = ?", (reply_id,))
    return to_reply(row) if row else None


def waiting(tx: ReadTx, node_no: int) -> list[GuestReply]:
    """Returns the replies to a node that wait, oldest first. Their number is bounded."""
    rows = tx.db.rows(f"{GUEST_REPLY.select} {_WAITING} ORDER BY created_us, reply_id", (node_no,))
    return undamaged(GUEST_REPLY, to_reply, rows)


def waiting_count(tx: ReadTx, node_no: int) -> int:
    """Returns the number of replies to a node that wait."""
    row = tx.db.row(f"SELECT count(*) FROM guest_reply {_WAITING}", (node_no,))
    return 0 if row is None else int(row[0])


def waiting_times(tx: ReadTx, node_no: int) -> list[int]:
    """Returns the times of the replies to a node that wait, oldest first. Their number is bounded."""
    return [int(row[0]) for row in tx.db.rows(f"SELECT created_us FROM guest_reply {_WAITING} ORDER BY 1", (node_no,))]


def ended(tx: ReadTx, now_us: int, limit: int) -> list[str]:
    """Returns the ids of the first replies whose time is over."""
    rows = tx.db.rows(
        "SELECT reply_id FROM guest_reply WHERE expires_us <= ? ORDER BY expires_us LIMIT ?", (now_us, limit)
    )
    return [str(row[0]) for row in rows]


def put(tx: WriteTx, value: GuestReply) -> None:
    """Stores a reply, or replaces it."""
    texts = (value.name, value.text, value.target)
    tx.change(
        GUEST_REPLY.replace,
        (value.reply_id, value.node_no, value.state.value, *texts, value.created_us, value.expires_us),
    )


def remove(tx: WriteTx, reply_id: str) -> None:
    """Removes a reply."""
    tx.change(GUEST_REPLY.delete, (reply_id,))


def remove_of_node(tx: WriteTx, node_no: int) -> None:
    """Removes all replies to a node."""
    tx.change("DELETE FROM guest_reply WHERE node_no = ?", (node_no,))

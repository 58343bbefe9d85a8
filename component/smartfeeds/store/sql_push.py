"""What pushing needs in SQL: marks, events that are still to be sent, and what a deleted node leaves behind.

There is no outbox table: the items above a mark are what is still to be sent (SF-007, design section 4).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from smartfeeds.core.model import Mark, NodeEvent, NodeState
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.rows import EVENT, KEYS, to_event
from smartfeeds.store.sql_nodes import SUBSCRIPTIONS_IN, NodeReads, NodeWrites


def _beyond(order: Order) -> str:
    """The nodes with items above the mark of an order; without a mark nobody ever waited for that order."""
    return (
        f"SELECT m.node_no FROM mark m WHERE m.ord = '{order.value}'"
        f" AND EXISTS (SELECT 1 FROM item i WHERE i.node_no = m.node_no AND i.{KEYS[order]} > m.key_us)"
    )


_UNPUSHED = (
    "SELECT node_no FROM node WHERE state = 'deleted' UNION SELECT node_no FROM event"
    f" UNION {' UNION '.join(map(_beyond, Order))} ORDER BY 1"
)

# table -> what names its rows, in the order they go. The words of items go with them.
_BELONGINGS = (
    ("facet", "node_no, facet, modified_us, item_no"),
    ("item", "item_no"),
    ("subscription", "sub_no"),
    ("affiliation", "node_no, jid"),
    ("event", "event_no"),
    ("mark", "node_no, ord"),
)


class PushReads(NodeReads):
    """The part of ReadTx that is about pushing."""

    def mark(self, node_no: int, order: Order) -> Mark | None:
        found = self._db.row("SELECT key_us, cursor FROM mark WHERE node_no = ? AND ord = ?", (node_no, order.value))
        return Mark(*found) if found else None

    def unpushed(self) -> list[int]:
        return [row[0] for row in self._db.rows(_UNPUSHED)]

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        rows = self._db.rows(
            f"SELECT {EVENT} FROM event WHERE node_no = ? ORDER BY at_us, event_no LIMIT ?", (node_no, limit)
        )
        return [to_event(row) for row in rows]


class PushWrites(NodeWrites, PushReads):
    """The part of WriteTx that is about pushing."""

    def add_event(self, event: NodeEvent) -> NodeEvent:
        self.changes += 1
        event_no = self._db.insert(
            "INSERT INTO event (node_no, at_us, kind, data, recipient) VALUES (?, ?, ?, ?, ?)",
            (event.node_no, event.at_us, event.kind, event.data, event.to),
            "event_no",
        )
        return replace(event, event_no=event_no)

    def remove_events(self, event_nos: Iterable[int]) -> None:
        self.changes += 1
        self._db.run_many("DELETE FROM event WHERE event_no = ?", [(event_no,) for event_no in event_nos])

    def set_mark(self, node_no: int, order: Order, mark: Mark) -> None:
        self.changes += 1
        self._db.run(
            "INSERT INTO mark (node_no, ord, key_us, cursor) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (node_no, ord) DO UPDATE SET key_us = excluded.key_us, cursor = excluded.cursor",
            (node_no, order.value, mark.key_us, mark.cursor),
        )

    def reap(self, node_no: int, limit: int) -> bool:
        node = self.node_by_no(node_no)
        if node is None:
            return True
        if node.state is not NodeState.DELETED:
            raise StoreError(f"node {node_no} is not deleted")
        self.changes += 1
        for table, key in _BELONGINGS:
            limit -= self._reap_rows(table, key, node_no, limit)
            if limit <= 0:
                return False
        self.settle()
        self.forget()
        self._db.run("DELETE FROM node WHERE node_no = ?", (node_no,))
        return True

    def _reap_rows(self, table: str, key: str, node_no: int, limit: int) -> int:
        told = f"{key}, bare" if table == "subscription" else key
        rows = self._db.rows(f"SELECT {told} FROM {table} WHERE node_no = ? LIMIT ?", (node_no, limit))
        if table == "item":
            self._db.drop_documents([row[0] for row in rows])
        elif table == "subscription":
            for bare, gone in Counter(row[1] for row in rows).items():
                self._tally(SUBSCRIPTIONS_IN, bare, -gone)
            rows = [row[:1] for row in rows]
        match = " AND ".join(f"{name} = ?" for name in key.split(", "))
        self._db.run_many(f"DELETE FROM {table} WHERE {match}", rows)
        return len(rows)

"""Delivery in SQL: marks and failures of consumers, events to send, and the rows of deleted nodes.

There is no outbox table: the items above the mark of a consumer are what is still to be sent to it (SF-007).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from smartfeeds.core.consumers import PUSH, Consumer, ConsumerRow, Failure
from smartfeeds.core.model import Mark, NodeEvent, NodeState
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.rows import EVENT, KEYS, to_event
from smartfeeds.store.sql_nodes import SUBSCRIPTIONS_IN, NodeReads, NodeWrites


def _behind(order: Order) -> str:
    """The consumers with items above their mark in an order."""
    return (
        f"SELECT m.node_no, m.consumer FROM mark m WHERE m.ord = '{order.value}'"
        f" AND EXISTS (SELECT 1 FROM item i WHERE i.node_no = m.node_no AND i.{KEYS[order]} > m.key_us)"
    )


_BEHIND = (
    f"SELECT node_no, '{PUSH}' FROM node WHERE state = 'deleted' UNION SELECT node_no, '{PUSH}' FROM event"
    f" UNION {' UNION '.join(map(_behind, Order))} ORDER BY 1, 2"
)
_FAILURE = "f.failures, f.since_us, f.next_us, f.error"
_CONSUMERS = (
    f"SELECT m.node_no, m.consumer, m.ord, m.key_us, m.cursor, {_FAILURE} FROM mark m"
    " LEFT JOIN failure f ON f.node_no = m.node_no AND f.consumer = m.consumer"
    " WHERE (m.node_no, m.ord, m.consumer) > (?, ?, ?) ORDER BY m.node_no, m.ord, m.consumer LIMIT ?"
)

# table -> what names its rows, in the order they go. The words of items go with them.
_BELONGINGS = (
    ("facet", "node_no, facet, modified_us, item_no"),
    ("item", "item_no"),
    ("subscription", "sub_no"),
    ("affiliation", "node_no, jid"),
    ("event", "event_no"),
    ("mark", "node_no, ord, consumer"),
    ("failure", "node_no, consumer"),
)


class PushReads(NodeReads):
    """The part of ReadTx that is about delivery."""

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        row = self._db.row(
            "SELECT key_us, cursor FROM mark WHERE node_no = ? AND ord = ? AND consumer = ?",
            (node_no, order.value, name),
        )
        return Mark(*row) if row else None

    def behind(self) -> list[Consumer]:
        return [Consumer(*row) for row in self._db.rows(_BEHIND)]

    def consumers(self, after: tuple[int, str, str], limit: int) -> list[ConsumerRow]:
        return [
            ConsumerRow(
                Consumer(node_no, name),
                Order(order),
                Mark(key_us, cursor),
                Failure(*failure) if failure[0] is not None else None,
            )
            for node_no, name, order, key_us, cursor, *failure in self._db.rows(_CONSUMERS, (*after, limit))
        ]

    def failure(self, consumer: Consumer) -> Failure | None:
        row = self._db.row(f"SELECT {_FAILURE} FROM failure f WHERE node_no = ? AND consumer = ?", consumer)
        return Failure(*row) if row else None

    def failures(self) -> list[tuple[Consumer, Failure]]:
        rows = self._db.rows(f"SELECT node_no, consumer, {_FAILURE} FROM failure f ORDER BY 1, 2")
        return [(Consumer(node_no, name), Failure(*failure)) for node_no, name, *failure in rows]

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        rows = self._db.rows(
            f"SELECT {EVENT} FROM event WHERE node_no = ? ORDER BY at_us, event_no LIMIT ?", (node_no, limit)
        )
        return [to_event(row) for row in rows]


class PushWrites(NodeWrites, PushReads):
    """The part of WriteTx that is about delivery."""

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

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        self.changes += 1
        self._db.run(
            "INSERT INTO mark (node_no, ord, consumer, key_us, cursor) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (node_no, ord, consumer) DO UPDATE SET key_us = excluded.key_us, cursor = excluded.cursor",
            (node_no, order.value, name, mark.key_us, mark.cursor),
        )

    def set_failure(self, consumer: Consumer, failure: Failure | None) -> None:
        self.changes += 1
        if failure is None:
            self._db.run("DELETE FROM failure WHERE node_no = ? AND consumer = ?", consumer)
            return
        self._db.run(
            "INSERT INTO failure (node_no, consumer, failures, since_us, next_us, error) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (node_no, consumer) DO UPDATE SET failures = excluded.failures, since_us = excluded.since_us,"
            " next_us = excluded.next_us, error = excluded.error",
            (*consumer, failure.count, failure.since_us, failure.next_us, failure.error),
        )

    def remove_consumer(self, consumer: Consumer) -> None:
        self.set_failure(consumer, None)
        self._db.run("DELETE FROM mark WHERE node_no = ? AND consumer = ?", consumer)

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
        columns = f"{key}, bare" if table == "subscription" else key
        rows = self._db.rows(f"SELECT {columns} FROM {table} WHERE node_no = ? LIMIT ?", (node_no, limit))
        if table == "item":
            self._db.drop_documents([row[0] for row in rows])
        elif table == "subscription":
            for bare, gone in Counter(row[1] for row in rows).items():
                self._tally(SUBSCRIPTIONS_IN, bare, -gone)
            rows = [row[:1] for row in rows]
        match = " AND ".join(f"{name} = ?" for name in key.split(", "))
        self._db.run_many(f"DELETE FROM {table} WHERE {match}", rows)
        return len(rows)

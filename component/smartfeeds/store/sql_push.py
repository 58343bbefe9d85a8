"""Delivery in SQL: marks and failures of consumers, events to send, and the rows of deleted nodes.

There is no outbox table: the items above the mark of a consumer are what is still to be sent to it (SF-007).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from smartfeeds.core.consumers import HELD, PUSH, Backlog, Consumer, ConsumerRow, Failure, Pause, SentBatch, Wait
from smartfeeds.core.model import Mark, NodeEvent, NodeState, OpenPurge, PushStart
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import KEYS, to_views
from smartfeeds.store.sql_nodes import BY_NO, NodeReads, NodeWrites, item_above
from smartfeeds.store.sql_people import SUBSCRIBED_VIEWS
from smartfeeds.store.sql_tables import (
    AFFILIATION,
    BATCH,
    EVENT,
    FACET,
    FAILURE,
    FILE,
    FILE_USE,
    ITEM,
    MARK,
    NODE,
    PURGE,
    REQUEST_FORM,
    SUBSCRIPTION,
    Table,
)
from smartfeeds.store.sql_tallies import BLOCKS, SUBSCRIPTIONS_BY, SUM


def _behind(order: Order) -> str:
    # An item above the mark may have been removed since `behind` was set.
    return f"SELECT node_no, consumer FROM mark WHERE behind = 1 AND ord = '{order.value}' AND {item_above(order)}"


_BEHIND = (
    f"SELECT node_no, '{PUSH}' FROM node WHERE state = 'deleted' UNION SELECT node_no, '{PUSH}' FROM event"
    f" UNION {' UNION '.join(map(_behind, Order))} ORDER BY 1, 2"
)


def _oldest_above(order: Order, condition: str) -> str:
    # One look-up in an index for each mark, whatever the number of items above it.
    oldest = f"SELECT MIN(i.{KEYS[order]}) FROM item i WHERE i.node_no = mark.node_no AND i.{KEYS[order]} > mark.key_us"
    return f"SELECT node_no, consumer, ({oldest}) AS oldest_us FROM mark WHERE ord = '{order.value}' AND {condition}"


def _all_above(condition: str) -> str:
    return " UNION ALL ".join(_oldest_above(order, condition) for order in Order)


# The marks of held events never are behind, so these statements test their names.
_IS_HELD = f"substr(consumer, 1, {len(HELD) + 1}) = '{HELD}:'"
_PUSH_BEHIND = f"behind = 1 AND consumer = '{PUSH}'"
_OTHERS_BEHIND = f"(behind = 1 AND consumer <> '{PUSH}' OR {_IS_HELD})"
_UNPUSHED = (
    "SELECT COUNT(DISTINCT node_no), MIN(oldest_us) FROM (SELECT node_no, kind, at_us AS oldest_us FROM event"
    f" UNION ALL {_all_above(_PUSH_BEHIND)}) AS unpushed WHERE oldest_us IS NOT NULL"
)
_FOLLOWERS_BEHIND = (
    "SELECT COUNT(*), MIN(held_us) FROM (SELECT node_no, consumer,"
    f" MIN(CASE WHEN {_IS_HELD} THEN oldest_us END) AS held_us"
    f" FROM ({_all_above(_OTHERS_BEHIND)}) AS above"
    " WHERE oldest_us IS NOT NULL GROUP BY node_no, consumer) AS followers"
)
_EVENTS = f"{EVENT.select} WHERE node_no = ? ORDER BY at_us, event_no LIMIT ?"
# One look-up for each order, because the index has the order before the consumer, and a node may have many consumers.
_MARKS = " UNION ALL ".join(
    f"SELECT ord, key_us, cursor FROM mark WHERE node_no = ? AND ord = '{order.value}' AND consumer = ?"
    for order in Order
)
_FAILURE = "f.failures, f.since_us, f.next_us, f.error"
_CONSUMERS = (
    f"SELECT m.node_no, m.consumer, m.ord, m.key_us, m.cursor, {_FAILURE} FROM mark m"
    " LEFT JOIN failure f ON f.node_no = m.node_no AND f.consumer = m.consumer"
)
_ALL_CONSUMERS = (
    f"{_CONSUMERS} WHERE (m.node_no, m.ord, m.consumer) > (?, ?, ?) ORDER BY m.node_no, m.ord, m.consumer LIMIT ?"
)
_CONSUMERS_OF_NODE = (
    f"{_CONSUMERS} WHERE m.node_no = ? AND (m.ord, m.consumer) > (?, ?) ORDER BY m.ord, m.consumer LIMIT ?"
)

# The rows that belong to a node, in the order in which they are removed: a row before the row that it refers to. The
# words of items are removed with them.
_BELONGINGS = (FACET, FILE_USE, FILE, ITEM, SUBSCRIPTION, AFFILIATION, EVENT, PURGE, MARK, FAILURE, BATCH, REQUEST_FORM)


# The error of a row for a planned pause. A failure always has an error (`core.consumers.next_failure`).
_NO_ERROR = ""


def _to_wait(count: int, since_us: int, next_us: int | None, error: str) -> Wait:
    if error == _NO_ERROR and next_us is not None:
        return Pause(next_us)
    return Failure(count, since_us, next_us, error)


def _to_consumer(row: Row) -> ConsumerRow:
    node_no, name, order, key_us, cursor, *wait = row
    reason = _to_wait(*wait) if wait[0] is not None else None
    return ConsumerRow(Consumer(node_no, name), Order(order), Mark(key_us, cursor), reason)


class PushReads(NodeReads):
    """The part of ReadTx that is about delivery."""

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        """Returns the mark of the consumer of this name in an order of a feed; None if it does not read that order."""
        row = self.db.row(
            "SELECT key_us, cursor FROM mark WHERE node_no = ? AND ord = ? AND consumer = ?",
            (node_no, order.value, name),
        )
        return Mark(*row) if row else None

    def behind(self) -> list[Consumer]:
        """Returns the consumers with items above a mark, by node_no and name. `PUSH` is one of them for a node that has
        events to send or is deleted. Consumers of held events are not listed. The cost grows with the result.
        """
        self.settle()
        return [Consumer(*row) for row in self.db.rows(_BEHIND)]

    def backlog(self) -> Backlog:
        """Returns what all consumers still have to receive. It reads each mark of the store once."""
        self.settle()
        unpushed, followers = self.db.row(_UNPUSHED), self.db.row(_FOLLOWERS_BEHIND)
        assert unpushed is not None  # a count always has a row
        assert followers is not None
        return Backlog(*unpushed, *followers)

    def consumers(self, after: tuple[int, str, str], limit: int) -> list[ConsumerRow]:
        """Returns the marks of all consumers, by node_no, order and name, behind the mark that `after` names."""
        return self.values(MARK, _to_consumer, _ALL_CONSUMERS, after, limit)

    def consumers_of(self, node_no: int, after: tuple[str, str], limit: int) -> list[ConsumerRow]:
        """Returns the marks of the consumers of a node, by order and name, after the mark that `after` names. The cost
        grows with the result.
        """
        return self.values(MARK, _to_consumer, _CONSUMERS_OF_NODE, (node_no, *after), limit)

    def push_start(self, node_no: int, events: int) -> PushStart:
        """Returns where the next notifications of a node begin, with up to this number of events. The node is read too,
        so `node_by_no` costs nothing afterwards.
        """
        node, views, marks, waiting, blocks = self.db.rows_of(
            [
                (BY_NO + self._lock, (node_no,)),
                (SUBSCRIBED_VIEWS, (node_no, node_no)),
                (_MARKS, (node_no, PUSH) * len(Order)),
                (_EVENTS, (node_no, events)),
                (SUM, (BLOCKS,)),
            ]
        )
        for row in node:
            self._remember(row)
        return PushStart(
            to_views(views),
            {Order(row[0]): Mark(*row[1:]) for row in marks},
            [NodeEvent(*row) for row in waiting],
            int(blocks[0][0] or 0) + self._differences.get(BLOCKS, 0),
        )

    def wait(self, consumer: Consumer) -> Wait | None:
        """Returns why a consumer waits, None if it does not."""
        row = self.db.row(f"SELECT {_FAILURE} FROM failure f WHERE node_no = ? AND consumer = ?", consumer)
        return _to_wait(*row) if row else None

    def failures(self) -> list[tuple[Consumer, Failure]]:
        """Returns the consumers whose last delivery failed, by node_no and name."""
        return [(consumer, wait) for consumer, wait in self.waits() if isinstance(wait, Failure)]

    def waits(self) -> list[tuple[Consumer, Wait]]:
        """Returns the consumers that wait after a failure or for a time that they want, by node_no and name."""
        rows = self.db.rows(f"SELECT node_no, consumer, {_FAILURE} FROM failure f ORDER BY 1, 2")
        return [(Consumer(node_no, name), _to_wait(*wait)) for node_no, name, *wait in rows]

    def batch(self, consumer: Consumer) -> SentBatch | None:
        """Returns the batch that was last sent to a consumer."""
        row = self.db.row(f"{BATCH.select} WHERE node_no = ? AND consumer = ?", consumer)
        return SentBatch(row[2], bool(row[3])) if row else None

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        """Returns the events of a node that are still to be sent, by at_us, then event_no."""
        return [NodeEvent(*row) for row in self.db.rows(_EVENTS, (node_no, limit))]

    def open_purges(self) -> list[OpenPurge]:
        """Returns the purges that have begun and not ended, by node_no. Their number is small."""
        return [OpenPurge(*row) for row in self.db.rows(f"{PURGE.select} ORDER BY node_no")]

    def open_purge(self, node_no: int) -> OpenPurge | None:
        """Returns the purge of a node that has begun and not ended."""
        row = self.db.row(f"{PURGE.select} WHERE node_no = ?", (node_no,))
        return OpenPurge(*row) if row else None


class PushWrites(NodeWrites, PushReads):
    """The part of WriteTx that is about delivery."""

    def add_event(self, event: NodeEvent) -> NodeEvent:
        """Stores an event to send and returns it with its number."""
        self.changes += 1
        event_no = self.db.add(EVENT, (event.node_no, event.at_us, event.kind, event.data, event.to))
        return replace(event, event_no=event_no)

    def remove_events(self, event_nos: Iterable[int]) -> None:
        """Removes events that were sent."""
        self.changes += 1
        self.db.run_many(EVENT.delete, [(event_no,) for event_no in event_nos])

    def put_purge(self, purge: OpenPurge) -> None:
        """Stores a purge that has begun, or replaces the open purge of its node."""
        self.change(PURGE.replace, purge)

    def remove_purge(self, node_no: int) -> None:
        """Removes the purge of a node that has ended."""
        self.change(PURGE.delete, (node_no,))

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        """Stores how far the consumer of this name has come in an order of a feed."""
        behind = self._may_be_behind(Consumer(node_no, name), order, mark)
        self.change(MARK.replace, (node_no, order.value, name, mark.key_us, mark.cursor, int(behind)))

    def move_mark(self, consumer: Consumer, order: Order, mark: Mark) -> None:
        """As `set_mark`. A consumer without a mark in this order gets none, because it was removed meanwhile."""
        behind = self._may_be_behind(consumer, order, mark)
        key = (consumer.node_no, order.value, consumer.name)
        self.change(MARK.update, (mark.key_us, mark.cursor, int(behind), *key))

    def _may_be_behind(self, consumer: Consumer, order: Order, mark: Mark) -> bool:
        """Returns whether a feed has items above a mark, or may have them soon.

        Another transaction that has locked the feed may have an item that cannot be seen yet, and has not changed this
        mark if it was behind before (`FALL_BEHIND`). If the feed is free, it stays locked until this transaction ends,
        so the next publisher sees the new mark.
        """
        if consumer.kind == HELD:
            return False
        node_no = consumer.node_no
        # Most consumers of a feed stand at one mark. Items that this transaction stores later make them fall behind
        # when it settles.
        key = node_no, order, mark.key_us
        behind = self._above.get(key)
        if behind is None:
            free, above = self.db.rows_of(
                [
                    (f"SELECT node_no FROM node WHERE node_no = ?{self.db.skip_locked}", (node_no,)),
                    (f"SELECT 1 FROM item WHERE node_no = ? AND {KEYS[order]} > ? LIMIT 1", (node_no, mark.key_us)),
                ]
            )
            behind = self._above[key] = not free or bool(above)
        return behind

    def set_wait(self, consumer: Consumer, wait: Wait | None) -> None:
        """Stores why a consumer waits; None removes it."""
        if wait is None:
            self.change(FAILURE.delete, consumer)
            return
        failure = wait if isinstance(wait, Failure) else Failure(1, wait.next_us, wait.next_us, _NO_ERROR)
        self.change(FAILURE.replace, (*consumer, failure.count, failure.since_us, failure.next_us, failure.error))

    def put_batch(self, consumer: Consumer, batch: SentBatch) -> None:
        """Stores the batch that is sent to a consumer now, or replaces the former one."""
        self.change(BATCH.replace, (*consumer, batch.end_us, int(batch.joined)))

    def remove_consumer(self, consumer: Consumer) -> None:
        """Removes the marks, the failure and the batch of a consumer."""
        self.set_wait(consumer, None)
        self.pushed.clear()
        self.db.run(BATCH.delete, consumer)
        # With the order, because the index has it before the consumer, and a node may have many consumers.
        self.db.run_many(MARK.delete, [(consumer.node_no, order.value, consumer.name) for order in Order])

    def reap(self, node_no: int, limit: int) -> bool:
        """Removes up to `limit` rows of a deleted node. Returns True if none is left."""
        node = self.node_by_no(node_no)
        if node is None:
            return True
        if node.state is not NodeState.DELETED:
            raise StoreError(f"node {node_no} is not deleted")
        self.changes += 1
        # The statements below do not change the rows in memory.
        self.settle()
        self.forget()
        for table in _BELONGINGS:
            limit -= self._reap_rows(table, node_no, limit)
            if limit <= 0:
                return False
        self.db.run(NODE.delete, (node_no,))
        return True

    def _reap_rows(self, table: Table, node_no: int, limit: int) -> int:
        """Removes rows of a node and returns their number."""
        columns = f"{table.key}, bare" if table is SUBSCRIPTION else table.key
        rows = self.db.rows(f"SELECT {columns} FROM {table.name} WHERE node_no = ? LIMIT ?", (node_no, limit))
        if table is ITEM:
            self.db.drop_documents([row[0] for row in rows])
        elif table is SUBSCRIPTION:
            for bare, count in Counter(row[1] for row in rows).items():
                self.add_tallies(SUBSCRIPTIONS_BY.names_of(bare), -count)
            rows = [row[:1] for row in rows]
        self.db.run_many(table.delete, rows)
        return len(rows)

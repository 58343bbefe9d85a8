"""Consumers of feeds in the store: added with a mark, and listed with what they still have to receive."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from smartfeeds.core.consumers import PUSH, RETRY_REQUEST_US, Consumer, ConsumerRow, Failure, failure_of
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Mark, Slice
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.view import Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context
from smartfeeds.service.pulls import WHOLE, key_of, newest_mark
from smartfeeds.store.base import ReadTx, WriteTx

# Before the first row of `ReadTx.consumers`.
FIRST = (0, "", "")
_SEARCHED = 500  # consumers that a search for a name reads at once


class ConsumerState(Enum):
    """The state of a consumer. The values are stable names for scripts."""

    CURRENT = "current"
    BEHIND = "behind"
    PAUSED = "paused"
    RETRYING = "retrying"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """A consumer in one order. `node` is the name of its feed, `waiting` counts the items above its mark, and `lag_us`
    is the age of the oldest of them; 0 where none waits. `next_us` is the time of the next attempt, None if none is
    planned."""

    consumer: Consumer
    node: str
    order: Order
    state: ConsumerState
    waiting: int
    lag_us: int
    next_us: int | None
    failure: Failure | None


def add_consumer(tx: WriteTx, consumer: Consumer, order: Order, mark: Mark | None = None) -> None:
    """Stores a consumer that begins behind a mark, or behind the newest item if `mark` is None.

    It changes nothing if the consumer exists, or if the feed does not exist.
    """
    node = tx.node_by_no(consumer.node_no)
    if node is not None and tx.mark(consumer.node_no, order, consumer.name) is None:
        tx.set_mark(consumer.node_no, order, consumer.name, mark or newest_mark(tx, node, order))


def retry_consumers(tx: WriteTx, _context: Context, name: str | None) -> list[Consumer]:
    """Requests an attempt for the consumers of this name whose last delivery failed, or for all of them if it is None.

    Also consumers that were given up get one attempt. A running service makes it at its next look at the store.
    Returns these consumers. Raises FeedError if no consumer of this name fails, or none exists.
    """
    consumers = []
    for consumer, failure in tx.failures():
        if name in (None, consumer.name):
            tx.set_wait(consumer, replace(failure, next_us=RETRY_REQUEST_US))
            consumers.append(consumer)
    if name is not None and not consumers:
        if name in _names(tx):
            text = f"the consumer {name} has no failed delivery, so there is nothing to retry"
        else:
            hint = did_you_mean(name, _names(tx)) or "; smartfeeds consumer list shows the names"
            text = f"there is no consumer {name}{hint}"
        raise FeedError(Condition.ITEM_NOT_FOUND, text)
    return consumers


def _names(tx: ReadTx) -> Iterator[str]:
    after = FIRST
    while rows := tx.consumers(after, _SEARCHED):
        yield from (row.consumer.name for row in rows)
        after = place_of(rows[-1])


def waiting_items(tx: ReadTx, node_no: int, order: Order, mark: Mark) -> tuple[int, int | None]:
    """Returns the number of items above a mark, and the key of the oldest of them."""
    after = Edge(mark.key_us, MAX_ITEM_NO)
    oldest = tx.slice(node_no, Slice(WHOLE[order], 1, after=after))
    if not oldest:
        return 0, None
    count = tx.count(node_no, WHOLE[order]) - tx.count(node_no, WHOLE[order], before=after)
    return count, key_of(order, oldest[0])


def consumer_statuses(
    tx: ReadTx, context: Context, after: tuple[int, str, str], limit: int
) -> tuple[list[ConsumerStatus], tuple[int, str, str] | None]:
    """Consumers by node_no, order and name, and where the next page begins; None behind the last one."""
    rows = tx.consumers(after, limit)
    statuses = [status_of(tx, context, row) for row in rows]
    return statuses, place_of(rows[-1]) if len(rows) == limit else None


def place_of(row: ConsumerRow) -> tuple[int, str, str]:
    """Returns the place of a row in `ReadTx.consumers`."""
    return row.consumer.node_no, row.order.value, row.consumer.name


def status_of(tx: ReadTx, context: Context, row: ConsumerRow) -> ConsumerStatus:
    """Returns a consumer with what it still has to receive."""
    node_no = row.consumer.node_no
    node = tx.node_by_no(node_no)
    assert node is not None  # the rows of a node go before the node
    waiting, oldest_us = waiting_items(tx, node_no, row.order, row.mark)
    if oldest_us is None and row.consumer.name == PUSH and row.order is Order.MODIFIED:
        # Events of the node itself, such as its deletion, are no items.
        oldest_us = next((event.at_us for event in tx.events(node_no, 1)), None)
    lag_us = 0 if oldest_us is None else max(1, context.now_us - oldest_us)
    failure = failure_of(row.wait)
    next_us = None if row.wait is None else row.wait.next_us
    if failure is not None:
        state = ConsumerState.STOPPED if next_us is None else ConsumerState.RETRYING
    elif next_us is not None:
        state = ConsumerState.PAUSED
    else:
        state = ConsumerState.CURRENT if oldest_us is None else ConsumerState.BEHIND
    return ConsumerStatus(row.consumer, node.name, row.order, state, waiting, lag_us, next_us, failure)

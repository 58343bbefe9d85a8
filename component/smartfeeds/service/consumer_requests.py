"""Administration of consumers by requests: owners list the consumers of their nodes, admins retry all consumers."""

from dataclasses import dataclass

from smartfeeds.core.consumers import ConsumerRow
from smartfeeds.core.model import Affiliation, KeyRange
from smartfeeds.service import consumers
from smartfeeds.service.consumers import FIRST, ConsumerState, ConsumerStatus, place_of, status_of
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.standing import check_admin
from smartfeeds.store.base import ReadTx, WriteTx

# Consumers, and nodes of an owner, that one request examines.
CONSUMERS_READ = 500
NODES_READ = 100


@dataclass(frozen=True, slots=True)
class ListConsumers(Request):
    """The consumers after a position, those of its nodes for an owner. `behind` excludes current ones."""

    behind: bool = False
    after: tuple[int, str, str] = FIRST
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ConsumerList(Answer):
    """Consumers, and the position after which the list continues; None at its end."""

    statuses: tuple[ConsumerStatus, ...]
    after: tuple[int, str, str] | None


@dataclass(frozen=True, slots=True)
class RetryConsumers(Request):
    """Retries the consumers of this name that fail, or all of them if it is None."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ConsumersRetried(Answer):
    """The number of consumers that will be retried."""

    count: int


def list_consumers(tx: ReadTx, context: Context, request: ListConsumers) -> ConsumerList:
    """Consumers with their lag and their last error, those of its nodes for an owner."""
    rows, after = _consumers_of(tx, context, request)
    statuses: list[ConsumerStatus] = []
    for row in rows:
        status = status_of(tx, context, row)
        if request.behind and status.state is ConsumerState.CURRENT:
            continue
        if len(statuses) == request.limit:
            last = statuses[-1]
            return ConsumerList(tuple(statuses), (last.consumer.node_no, last.order.value, last.consumer.name))
        statuses.append(status)
    return ConsumerList(tuple(statuses), after)


def _consumers_of(
    tx: ReadTx, context: Context, request: ListConsumers
) -> tuple[list[ConsumerRow], tuple[int, str, str] | None]:
    """Returns the next consumers of the nodes that the actor manages, and the place where the list continues."""
    limit = CONSUMERS_READ if request.behind else request.limit
    if is_admin(context.policy, request.actor):
        rows = tx.consumers(request.after, limit)
        return rows, place_of(rows[-1]) if len(rows) == limit else None
    # An owner has few of the nodes, so their consumers are read node by node instead of selected from all.
    part = KeyRange(NODES_READ, after=request.after[0] - 1)
    nodes = tx.affiliations_of(str(request.actor.bare), part, kind=Affiliation.OWNER)
    rows = []
    for node, _ in nodes:
        after = request.after[1:] if node.node_no == request.after[0] else ("", "")
        rows += tx.consumers_of(node.node_no, after, limit - len(rows))
        if len(rows) == limit:
            return rows, place_of(rows[-1])
    return rows, (nodes[-1][0].node_no + 1, "", "") if len(nodes) == NODES_READ else None


def retry_consumers(tx: WriteTx, context: Context, request: RetryConsumers) -> ConsumersRetried:
    """Retries consumers. Raises FeedError: FORBIDDEN, ITEM_NOT_FOUND if no consumer of this name fails."""
    check_admin(context.policy, request.actor)
    return ConsumersRetried(len(consumers.retry_consumers(tx, context, request.name)))

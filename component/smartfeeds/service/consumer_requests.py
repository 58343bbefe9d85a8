"""The list of consumers: owners see the consumers of their nodes, and admins retry all consumers."""

from dataclasses import dataclass

from smartfeeds.core.consumers import RETRY_REQUEST_US, ConsumerRow
from smartfeeds.core.model import Affiliation, KeyRange
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.service import consumers
from smartfeeds.service.consumers import FIRST, ConsumerState, ConsumerStatus, place_of, status_of
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    ActionRoute,
    Brief,
    Caller,
    Column,
    Fields,
    Filter,
    ListAnswer,
    ListCommand,
    Places,
    Resource,
    TablePage,
    text_of,
)
from smartfeeds.service.standing import check_admin
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import N_

ALL = "*"  # stands for all consumers that failed
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
    nodes = tx.affiliations_of(request.actor.bare_text, part, kind=Affiliation.OWNER)
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


async def _read(caller: Caller, page: ResultSetRequest, behind: bool) -> ListAnswer[ConsumerStatus]:
    position = FIRST
    if page.after:
        node_no, order, name = page.after.split(":", 2)
        position = int(node_no), order, name
    request = ListConsumers(caller.actor, caller.service, behind, position, int(page.max or 0))
    answer = await caller.ask(request, ConsumerList)
    return ListAnswer(answer.statuses, after="" if answer.after is None else ":".join(map(str, answer.after)))


async def _retry(caller: Caller, fields: Fields) -> ActionResult:
    name = text_of(fields, "consumer")
    request = RetryConsumers(caller.actor, caller.service, None if name == ALL else name)
    answer = await caller.ask(request, ConsumersRetried)
    return ActionResult(done="retried", body={"retried": answer.count})


def next_attempt(next_us: int | None) -> str:
    """The time of the next attempt, "" if there is none."""
    if next_us is None:
        return ""
    return "now" if next_us == RETRY_REQUEST_US else format_datetime(next_us)


CONSUMERS: Resource[ConsumerStatus] = Resource(
    "consumers",
    "consumer",
    (
        Column("consumer", lambda status: status.consumer.name, N_("Consumer")),
        Column("node", lambda status: status.node, "Node", heading=N_("Feed")),
        Column("order", lambda status: status.order.value, "Order"),
        Column(
            "state",
            lambda status: status.state.value,
            N_("State"),
            "word",
            words=tuple(state.value for state in ConsumerState),
        ),
        Column("waiting", lambda status: status.waiting, N_("Waiting"), "number"),
        Column("lag_s", lambda status: status.lag_us // US_PER_S, N_("Lag in seconds"), "number", var="lag"),
        Column("failures", lambda status: status.failure.count if status.failure else 0, N_("Failures"), "number"),
        Column(
            "next_attempt",
            lambda status: next_attempt(status.next_us),
            N_("Next attempt"),
            "time",
            text=lambda status: "" if status.next_us is None else format_datetime(status.next_us),
            var="next",
            words=("now",),
        ),
        Column("error", lambda status: status.failure.error if status.failure else "", N_("Last error")),
    ),
    empty="There are no consumers.",
    brief=Brief(("consumer", "node", "state", "waiting", "lag_s", "error"), cut=("error",)),
    read=_read,
    places=Places(r"[0-9]{1,18}:[a-z]*:[^\r\n]*", ":".join(map(str, FIRST))),
    narrow=Filter(
        "behind",
        "Only consumers that are not current",
        "Each node has one for notifications.",
        "only consumers that are not current",
    ),
    command=ListCommand(
        "list-consumers",
        "List consumers with their lag",
        ("consumer", "node", "order", "state", "waiting", "lag_s", "next_attempt", "error"),
    ),
    summary="The consumers of your nodes with their lag; all consumers for admins",
    table=TablePage(
        N_("Consumers"),
        N_("What follows your feeds, how far it is behind, and the last error."),
        N_("There are no consumers."),
        ("consumer", "node", "state", "waiting", "lag_s", "failures", "next_attempt", "error"),
    ),
    actions=(
        Action(
            "retry",
            _retry,
            button=N_("Retry"),
            key="consumer",
            for_admins=True,
            route=ActionRoute(
                "POST",
                "retryConsumers",
                "Makes the next attempt for consumers that failed now, also for those that were given up",
                members=("consumer",),
                body="Retry",
                answers={
                    200: {
                        "type": "object",
                        "required": ["retried"],
                        "properties": {"retried": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}},
                        "additionalProperties": False,
                    }
                },
                errors=(404,),
            ),
        ),
    ),
)

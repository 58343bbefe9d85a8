"""The service: the table of use cases, and the loops that run them as transactions of the store.

Every wire passes typed requests to `FeedService.handle` and encodes the typed answers. `KERNEL` has one line for each
type of request; features add theirs.
"""

from collections.abc import Callable, Collection
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

from smartfeeds.core.touches import Touch
from smartfeeds.service import (
    affiliations,
    authorization,
    consumer_requests,
    discovery,
    documents,
    hooks,
    managed_nodes,
    nodes,
    origins,
    placing,
    publishing,
    pulls,
    standing,
    subscriptions,
    work,
)
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context, OverdueItems, Policy, check_admitted
from smartfeeds.service.damage import DamageLog
from smartfeeds.service.expiry import expire
from smartfeeds.service.requests import Answer
from smartfeeds.service.steps import IndexFirst, MoreSteps, WriteStep
from smartfeeds.service.touches import touch_of
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import Again, ReadTx, Store, WriteTx
from smartfeeds.telemetry import CURSOR_DEGRADATIONS, STORE_SECONDS

T = TypeVar("T")
TxT = TypeVar("TxT", bound=ReadTx)

INDEXED = 100  # items that one transaction reads for the filter index: some 10 ms
# Reads of filtered views take long. They only run in the writing connection, where all writes wait for them, if items
# were published after each of so many attempts to bring the index up to date first.
INDEX_TRIES = 8


_READS: dict[type[r.Request], tuple[str, Callable[..., Answer | IndexFirst]]] = {
    r.Pull: ("pull", pulls.pull),
    r.PullFeed: ("pull_feed", documents.pull_feed),
    r.GetItem: ("get_item", pulls.get_item),
    r.GetConfiguration: ("get_configuration", nodes.get_configuration),
    r.GetDefaultConfiguration: ("get_default_configuration", nodes.get_default),
    r.GetSubscriptions: ("get_subscriptions", subscriptions.get_subscriptions),
    r.GetSubscribeOptions: ("get_subscribe_options", subscriptions.get_options),
    r.GetDefaultSubscribeOptions: ("get_default_subscribe_options", subscriptions.get_default_options),
    r.GetNodeSubscriptions: ("get_node_subscriptions", subscriptions.list_for_owner),
    authorization.GetPendingNodes: ("get_pending_nodes", authorization.pending_nodes),
    r.GetAffiliations: ("get_affiliations", affiliations.get_affiliations),
    r.GetNodeInfo: ("get_node_info", discovery.node_info),
    discovery.GetAddressInfo: ("get_address_info", discovery.address_info),
    r.GetNodes: ("get_nodes", discovery.address_items),
    discovery.GetChangedNodes: ("get_changed_nodes", discovery.get_changed_nodes),
    r.GetItemIds: ("get_item_ids", discovery.item_ids),
    origins.GetListedSources: ("get_listed_sources", origins.listed_sources),
    placing.GetOutline: ("get_outline", placing.get_outline),
    standing.GetStanding: ("get_standing", standing.get_standing),
    managed_nodes.ListManagedNodes: ("list_managed_nodes", managed_nodes.list_managed),
    consumer_requests.ListConsumers: ("list_consumers", consumer_requests.list_consumers),
    managed_nodes.GetManagedNode: ("get_managed_node", managed_nodes.get_managed_node),
    work.ListWork: ("list_work", work.list_work),
}
_WRITES: dict[type[r.Request], tuple[str, Callable[..., Answer | MoreSteps[Answer] | IndexFirst]]] = {
    r.Publish: ("publish", publishing.publish),
    r.Retract: ("retract", publishing.retract),
    r.Purge: ("purge", publishing.purge),
    r.CreateNode: ("create", nodes.create),
    r.EnsureNode: ("ensure", nodes.ensure),
    r.Configure: ("configure", nodes.configure),
    r.DeleteNode: ("delete", nodes.delete),
    r.Subscribe: ("subscribe", subscriptions.subscribe),
    r.Unsubscribe: ("unsubscribe", subscriptions.unsubscribe),
    r.SetSubscribeOptions: ("set_subscribe_options", subscriptions.set_options),
    r.SetSubscriptions: ("set_subscriptions", subscriptions.set_for_owner),
    authorization.AnswerAuthorization: ("answer_authorization", authorization.decide),
    authorization.ResendPending: ("resend_pending", authorization.resend),
    r.SetAffiliations: ("set_affiliations", affiliations.set_affiliations),
    placing.MoveItem: ("move_item", placing.move_item),
    subscriptions.Bounce: ("bounce", subscriptions.end_after_bounce),
    consumer_requests.RetryConsumers: ("retry_consumers", consumer_requests.retry_consumers),
}

KERNEL: Final = UseCases(
    _READS,
    _WRITES,
    pulls=frozenset({r.Pull, r.PullFeed, r.GetItem}),
    limited=frozenset({r.Publish, r.Retract, placing.MoveItem}),
    hooks=hooks.KERNEL,
)


class FeedService:
    """The use cases over one store, by default those of the kernel.

    `clock` returns microseconds since the Unix epoch. `on_change` is called after each commit with the numbers of the
    nodes that have changes to deliver.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        *,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        on_change: Callable[[Collection[int]], None],
        use_cases: UseCases = KERNEL,
    ) -> None:
        self.store = store
        self.use_cases = use_cases
        self.policy = policy
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._damage_log = DamageLog()

    async def handle(self, request: r.Request) -> Answer:
        """Returns the answer to a request. Raises FeedError, or StoreError if the store fails."""
        kind = type(request)
        if kind in self.use_cases.writes:
            work = partial(_admitted, use_case=self.use_cases.write_of(request), request=request)
            return await self.write(work, turn=request.turn, touch=touch_of(request))
        _, look = self.use_cases.reads[kind]
        use_case = partial(_admitted, use_case=look, request=request)
        return await self.read(use_case, turn=request.turn, touch=touch_of(request))

    async def read(
        self, work: Callable[[ReadTx, Context], T | IndexFirst], *, turn: str = "", touch: Touch | None = None
    ) -> T:
        """Runs a use case that only reads, on one snapshot. `turn` is the user it runs for, and `touch` names what it
        will look up (see `Store.read`).
        """
        context = self._context()
        began_s = perf_counter()
        try:
            return await self._read(work, context, turn, touch)
        finally:
            STORE_SECONDS.observe("read", perf_counter() - began_s)
            if context.degraded:
                CURSOR_DEGRADATIONS.inc(len(context.degraded))
            if context.damaged:
                self._damage_log.write(context.damaged)

    async def _read(
        self, work: Callable[[ReadTx, Context], T | IndexFirst], context: Context, turn: str, touch: Touch | None
    ) -> T:
        tries = 0
        while True:
            first: WriteStep[object]
            try:
                result = await self.store.read(lambda tx: work(tx, context), turn=turn, touch=touch)
            except OverdueItems as overdue:
                first = partial(expire, overdue=overdue)
            else:
                if not isinstance(result, IndexFirst):
                    return result
                tries += 1
                if tries == INDEX_TRIES:
                    # Each time an item was published between the index and the read, so both run in one transaction.
                    return await self.write(_indexed(result.node_no, work), turn=turn)
                first = _indexed(result.node_no, lambda _tx, _context: None)
            await self.write(first, turn=turn)

    async def write(self, work: WriteStep[T], *, turn: str = "", touch: Touch | None = None) -> T:
        """Runs a use case that writes, each of its steps in a transaction of its own, and returns the answer of the
        last one when it is durable.

        Wakes the deliveries after each step, also if the caller was cancelled meanwhile. Later writes of the same turn
        run after the last step. `touch` names what the first step will look up (see `Store.write`).
        """
        steps = _Steps(self._context)
        began_s = perf_counter()

        def announce() -> None:
            if steps.context.degraded:
                CURSOR_DEGRADATIONS.inc(len(steps.context.degraded))
            if steps.context.damaged:
                self._damage_log.write(steps.context.damaged)
            if steps.context.changed:
                self._on_change(steps.context.changed)

        try:
            return await self.store.write(partial(steps.run, work), turn=turn, on_commit=announce, touch=touch)
        finally:
            STORE_SECONDS.observe("write", perf_counter() - began_s)

    def _context(self) -> Context:
        return Context(self.policy, self._clock(), self._new_id, hooks=self.use_cases.hooks)


def _admitted(tx: TxT, context: Context, use_case: Callable[..., T], request: r.Request) -> T:
    """Runs a use case for an actor who may use the service. Raises FeedError for others."""
    check_admitted(tx, context.policy, request.actor)
    return use_case(tx, context, request=request)


class _Steps:
    """Runs the steps of a use case as works of the store. `context` is that of the step that ran last."""

    __slots__ = ("_new_context", "context")

    def __init__(self, new_context: Callable[[], Context]) -> None:
        self._new_context = new_context
        self.context: Context

    def run(self, step: WriteStep[T], tx: WriteTx) -> T | Again:
        """Runs a step. Returns or raises Again if another step follows."""
        context = self.context = self._new_context()
        try:
            result = step(tx, context)
        except OverdueItems as overdue:
            raise self._again(_then(partial(expire, overdue=overdue), step)) from None
        if isinstance(result, MoreSteps):
            return self._again(result.step)
        if isinstance(result, IndexFirst):
            return self._again(_indexed(result.node_no, step))
        return result

    def _again(self, step: WriteStep[T]) -> Again:
        return Again(partial(self.run, step))


def _then(first: WriteStep[object], work: WriteStep[T]) -> WriteStep[T]:
    """Returns the steps of `first`, followed by a work."""

    def step(tx: WriteTx, context: Context) -> MoreSteps[T]:
        result = first(tx, context)
        return MoreSteps(_then(result.step, work) if isinstance(result, MoreSteps) else work)

    return step


def _indexed(node_no: int, work: Callable[[WriteTx, Context], T | MoreSteps[T] | IndexFirst]) -> WriteStep[T]:
    """Returns the steps that bring the filter index of a node up to date, followed by a work in the last transaction.

    Each transaction is small, so that others may write in between.
    """

    def step(tx: WriteTx, context: Context) -> T | MoreSteps[T]:
        if tx.index_node(node_no, INDEXED) >= INDEXED:
            return MoreSteps(step)
        result = work(tx, context)
        if isinstance(result, IndexFirst):
            raise AssertionError(f"the filter index of node {result.node_no} is behind right after indexing {node_no}")
        return result

    return step

"""The service: one table of use cases, each run as one transaction of the store.

Every wire hands its typed request to `FeedService.handle` and encodes the typed answer; a request type that is not in
the table does not exist.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeVar

from smartfeeds.service import affiliations, conflicts, discovery, documents, nodes, publishing, pulls, subscriptions
from smartfeeds.service import requests as r
from smartfeeds.service import sync_requests as s
from smartfeeds.service.context import Context, IndexBehindError, Policy
from smartfeeds.service.continuations import ApplyAffiliations, PurgeOn
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.telemetry import CURSOR_DEGRADATIONS, STORE_SECONDS

T = TypeVar("T")
Answer = (
    r.Published
    | r.Done
    | r.Page
    | r.FeedPage
    | r.ItemShown
    | r.NodeCreated
    | r.Configuration
    | r.Subscribed
    | r.SubscriptionList
    | r.SubscribeOptions
    | r.AffiliationList
    | r.PartlyRefused
    | r.NodeInfo
    | r.NodeList
    | r.ItemIds
    | s.ConflictList
    | s.Resolved
)

INDEXED = 100  # items that one transaction reads for the filter index: some 10 ms
# Reads of filtered views are long, so they do not run in the writing connection unless the index is behind every time.
INDEX_TRIES = 8

_READ_SECONDS = STORE_SECONDS.labels("read")
_WRITE_SECONDS = STORE_SECONDS.labels("write")


class Clock(Protocol):
    """The time, as the border gives it."""

    def __call__(self) -> int:
        """Microseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class _Reading:
    name: str
    work: Callable[..., Answer | r.Request]


@dataclass(frozen=True, slots=True)
class _Writing:
    name: str
    work: Callable[..., Answer | r.Request]


# A use case with its name in metrics and logs, by its request.
USE_CASES: dict[type[r.Request], _Reading | _Writing] = {
    r.Publish: _Writing("publish", publishing.publish),
    r.Retract: _Writing("retract", publishing.retract),
    r.Purge: _Writing("purge", publishing.purge),
    PurgeOn: _Writing("purge_on", publishing.purge_on),
    r.Pull: _Reading("pull", pulls.pull),
    r.PullFeed: _Reading("pull_feed", documents.pull_feed),
    r.GetItem: _Reading("get_item", pulls.get_item),
    r.CreateNode: _Writing("create", nodes.create),
    r.GetConfiguration: _Reading("get_configuration", nodes.get_configuration),
    r.Configure: _Writing("configure", nodes.configure),
    r.GetDefaultConfiguration: _Reading("get_default_configuration", nodes.get_default),
    r.DeleteNode: _Writing("delete", nodes.delete),
    r.Subscribe: _Writing("subscribe", subscriptions.subscribe),
    r.Unsubscribe: _Writing("unsubscribe", subscriptions.unsubscribe),
    r.GetSubscriptions: _Reading("get_subscriptions", subscriptions.get_subscriptions),
    r.GetSubscribeOptions: _Reading("get_subscribe_options", subscriptions.get_options),
    r.SetSubscribeOptions: _Writing("set_subscribe_options", subscriptions.set_options),
    r.GetDefaultSubscribeOptions: _Reading("get_default_subscribe_options", subscriptions.get_default_options),
    r.GetNodeSubscriptions: _Reading("get_node_subscriptions", subscriptions.list_for_owner),
    r.SetSubscriptions: _Writing("set_subscriptions", subscriptions.set_for_owner),
    r.GetAffiliations: _Reading("get_affiliations", affiliations.get_affiliations),
    r.SetAffiliations: _Writing("set_affiliations", affiliations.set_affiliations),
    ApplyAffiliations: _Writing("apply_affiliations", affiliations.apply_affiliations),
    r.GetNodeInfo: _Reading("get_node_info", discovery.node_info),
    r.GetNodes: _Reading("get_nodes", discovery.list_nodes),
    r.GetItemIds: _Reading("get_item_ids", discovery.item_ids),
    s.ListConflicts: _Reading("list_conflicts", conflicts.list_conflicts),
    s.ResolveConflicts: _Writing("resolve_conflicts", conflicts.resolve_conflicts),
    r.Bounce: _Writing("bounce", subscriptions.bounced),
}

OPERATIONS: Mapping[type[r.Request], str] = {request: use_case.name for request, use_case in USE_CASES.items()}


class FeedService:
    """The use cases over one store.

    `on_change` is called, after the commit, with the numbers of the nodes that have something to push.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        on_change: Callable[[Collection[int]], None],
    ) -> None:
        self.store = store
        self.policy = policy
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change

    async def handle(self, request: r.Request) -> Answer:
        """The answer to a request. Raises FeedError, or StoreError where the store fails.

        A use case that answers with a request has more to do, in a transaction of its own.
        """
        answer = await self._step(request)
        while isinstance(answer, r.Request):
            answer = await self._step(answer)
        return answer

    async def _step(self, request: r.Request) -> Answer | r.Request:
        use_case = USE_CASES[type(request)]
        work, turn = use_case.work, request.turn
        if isinstance(use_case, _Writing):
            return await self.write(lambda tx, context: work(tx, context, request), turn=turn)
        return await self.read(lambda tx, context: work(tx, context, request), turn=turn)

    async def read(self, work: Callable[[ReadTx, Context], T], *, turn: str = "") -> T:
        """Runs a use case that only reads, on one snapshot. `turn` says for whom (see `Store.read`)."""
        context = self._context()
        answer = await self._read(context, work, turn)
        _count(context)
        return answer

    async def _read(self, context: Context, work: Callable[[ReadTx, Context], T], turn: str) -> T:
        began_s = perf_counter()
        try:
            for _ in range(INDEX_TRIES):
                try:
                    return await self.store.read(lambda tx: work(tx, context), turn=turn)
                except IndexBehindError as behind:
                    node_no = behind.node_no
                await self._index(node_no, turn)
        finally:
            _READ_SECONDS.observe(perf_counter() - began_s)
        # Each time something was published between the index and the read, so both happen in one transaction.
        return await self.store.write(lambda tx: _indexed(tx, node_no, context, work), turn=turn)

    async def write(self, work: Callable[[WriteTx, Context], T], *, turn: str = "") -> T:
        """Runs a use case that writes; returns when it is durable, and wakes the pushes."""
        context = self._context()
        began_s = perf_counter()
        try:
            answer = await self.store.write(lambda tx: work(tx, context), turn=turn)
        except IndexBehindError as behind:
            node_no = behind.node_no
            await self._index(node_no, turn)
            answer = await self.store.write(lambda tx: _indexed(tx, node_no, context, work), turn=turn)
        finally:
            _WRITE_SECONDS.observe(perf_counter() - began_s)
        _count(context)
        if context.changed:
            self._on_change(context.changed)
        return answer

    async def _index(self, node_no: int, turn: str) -> None:
        """Brings a node's filter index up to date in small transactions, so that others may write in between."""
        while await self.store.write(lambda tx: tx.index_node(node_no, INDEXED), turn=turn) >= INDEXED:
            pass

    def _context(self) -> Context:
        return Context(self.policy, self._clock(), self._new_id)


def _count(context: Context) -> None:
    """Tells the metrics what a use case that is over has collected for them."""
    CURSOR_DEGRADATIONS.inc(len(context.degraded))


def _indexed(tx: WriteTx, node_no: int, context: Context, work: Callable[[WriteTx, Context], T]) -> T:
    tx.index_node(node_no)
    return work(tx, context)

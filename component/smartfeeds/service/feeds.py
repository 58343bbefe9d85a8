"""The service: the table of use cases, and the loops that run them as transactions of the store.

Every wire passes typed requests to `FeedService.handle` and encodes the typed answers. `READS` and `WRITES`
have one line for each type of request.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from time import perf_counter
from typing import TypeVar

from smartfeeds.errors import StoreError
from smartfeeds.service import (
    admin_records,
    administration,
    affiliations,
    archive,
    attachments,
    authorization,
    conflicts,
    discovery,
    documents,
    nodes,
    presence,
    pulls,
    subscriptions,
)
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context, OverdueItems, Policy
from smartfeeds.service.expiry import expire
from smartfeeds.service.requests import Answer
from smartfeeds.service.steps import IndexFirst, MoreSteps, WriteStep
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.telemetry import CURSOR_DEGRADATIONS, STORE_SECONDS

T = TypeVar("T")

INDEXED = 100  # items that one transaction reads for the filter index: some 10 ms
# Reads of filtered views take long. They only run in the writing connection, where all writes wait for them, if items
# were published after each of so many attempts to bring the index up to date first.
INDEX_TRIES = 8

_READ_SECONDS = STORE_SECONDS.labels("read")
_WRITE_SECONDS = STORE_SECONDS.labels("write")


# The use cases that only read, and those that write, by the type of the request. The names are for metrics and logs.
READS: dict[type[r.Request], tuple[str, Callable[..., Answer | IndexFirst]]] = {
    r.Pull: ("pull", pulls.pull),
    r.PullFeed: ("pull_feed", documents.pull_feed),
    archive.QueryArchive: ("query_archive", archive.query_archive),
    archive.GetArchiveEnds: ("get_archive_ends", archive.archive_ends),
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
    r.GetItemIds: ("get_item_ids", discovery.item_ids),
    presence.ContactProbe: ("probe", presence.probed),
    presence.ContactArrived: ("contact_arrived", presence.arrived),
    presence.NotifyRequested: ("notify_requested", presence.notify_requested),
    conflicts.ListConflicts: ("list_conflicts", conflicts.list_conflicts),
    administration.GetStanding: ("get_standing", administration.get_standing),
    administration.ListManagedNodes: ("list_managed_nodes", administration.list_managed),
    administration.CountStore: ("count_store", administration.count_store),
    administration.ListAddresses: ("list_addresses", administration.list_addresses),
    admin_records.ListTokens: ("list_tokens", admin_records.list_tokens),
    admin_records.ListMirrors: ("list_mirrors", admin_records.list_mirrors),
    admin_records.ListConsumers: ("list_consumers", admin_records.list_consumers),
}
WRITES: dict[type[r.Request], tuple[str, Callable[..., Answer | MoreSteps[Answer] | IndexFirst]]] = {
    r.Publish: ("publish", attachments.publish),
    r.Retract: ("retract", attachments.retract),
    r.Purge: ("purge", attachments.purge),
    r.CreateNode: ("create", attachments.create),
    r.Configure: ("configure", attachments.configure),
    r.DeleteNode: ("delete", attachments.delete),
    r.Subscribe: ("subscribe", subscriptions.subscribe),
    r.Unsubscribe: ("unsubscribe", subscriptions.unsubscribe),
    r.SetSubscribeOptions: ("set_subscribe_options", subscriptions.set_options),
    r.SetSubscriptions: ("set_subscriptions", subscriptions.set_for_owner),
    authorization.AnswerAuthorization: ("answer_authorization", authorization.answer),
    authorization.ResendPending: ("resend_pending", authorization.resend),
    r.SetAffiliations: ("set_affiliations", affiliations.set_affiliations),
    conflicts.ResolveConflicts: ("resolve_conflicts", conflicts.resolve_conflicts),
    subscriptions.Bounce: ("bounce", subscriptions.bounced),
    presence.ChangeContact: ("change_contact", presence.change_contact),
    presence.ContactLeft: ("contact_left", presence.left),
    admin_records.AddToken: ("add_token", admin_records.create_token),
    admin_records.RevokeToken: ("revoke_token", admin_records.remove_token),
    admin_records.AddMirror: ("add_mirror", admin_records.create_mirror),
    admin_records.RemoveMirror: ("remove_mirror", admin_records.end_mirror),
    admin_records.RestartMirror: ("restart_mirror", admin_records.repeat_mirror),
    admin_records.RetryConsumers: ("retry_consumers", admin_records.retry_failed),
}

OPERATIONS = {request: name for request, (name, _) in (*READS.items(), *WRITES.items())}


class FeedService:
    """The use cases over one store.

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
    ) -> None:
        self.store = store
        self.policy = policy
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._announcements: set[asyncio.Task[None]] = set()

    async def handle(self, request: r.Request) -> Answer:
        """Returns the answer to a request. Raises FeedError, or StoreError if the store fails."""
        kind = type(request)
        if kind in WRITES:
            _, change = WRITES[kind]
            return await self.write(partial(change, request=request), turn=request.turn)
        _, look = READS[kind]
        return await self.read(partial(look, request=request), turn=request.turn)

    async def read(self, work: Callable[[ReadTx, Context], T | IndexFirst], *, turn: str = "") -> T:
        """Runs a use case that only reads, on one snapshot. `turn` is the user it runs for (see `Store.read`)."""
        context = self._context()
        began_s = perf_counter()
        try:
            return await self._without_expired(lambda: self._read(work, context, turn), turn)
        finally:
            _READ_SECONDS.observe(perf_counter() - began_s)
            CURSOR_DEGRADATIONS.inc(len(context.degraded))

    async def _without_expired(self, run: Callable[[], Awaitable[T]], turn: str) -> T:
        """Runs a use case; as often as it finds expired items, removes them and runs it again."""
        while True:
            try:
                return await run()
            except OverdueItems as overdue:
                expired = overdue
            await self.write(partial(expire, overdue=expired), turn=turn)

    async def _read(self, work: Callable[[ReadTx, Context], T | IndexFirst], context: Context, turn: str) -> T:
        node_no = 0
        for _ in range(INDEX_TRIES):
            result = await self.store.read(lambda tx: work(tx, context), turn=turn)
            if not isinstance(result, IndexFirst):
                return result
            node_no = result.node_no
            await self._index(node_no, turn)
        # Each time an item was published between the index and the read, so both run in one transaction.
        return await self._indexed(node_no, work, context, turn)

    async def write(self, work: WriteStep[T], *, turn: str = "") -> T:
        """Runs a use case that writes, each of its steps in a transaction of its own, and returns the answer of the
        last one when it is durable."""
        result = await self.step(work, turn=turn)
        while isinstance(result, MoreSteps):
            result = await self.step(result.step, turn=turn)
        return result

    async def step(self, work: WriteStep[T], *, turn: str = "") -> T | MoreSteps[T]:
        """Runs one step; returns when it is durable, and wakes the deliveries."""
        context = self._context()
        began_s = perf_counter()
        try:
            result = await self._without_expired(lambda: self._write(work, context, turn), turn)
        except asyncio.CancelledError:
            task = asyncio.get_running_loop().create_task(self._announce_cancelled(context, turn))
            self._announcements.add(task)
            task.add_done_callback(self._announcements.discard)
            raise
        finally:
            _WRITE_SECONDS.observe(perf_counter() - began_s)
        CURSOR_DEGRADATIONS.inc(len(context.degraded))
        if context.changed:
            self._on_change(context.changed)
        return result

    async def _announce_cancelled(self, context: Context, turn: str) -> None:
        """Wakes the deliveries after a step whose caller was cancelled: the store commits a step that has begun.

        A task and a shield for every step would make each publish 7 us slower, so only this case pays.
        """
        # The store runs the works of one turn in their order, so the step has ended when this one ends. If the store is
        # closed or fails, the deliveries are woken anyway and read what there is.
        with contextlib.suppress(StoreError):
            await self.store.write(lambda _tx: None, turn=turn)
        if context.changed:
            self._on_change(context.changed)

    async def _write(self, work: WriteStep[T], context: Context, turn: str) -> T | MoreSteps[T]:
        result = await self.store.write(lambda tx: work(tx, context), turn=turn)
        if not isinstance(result, IndexFirst):
            return result
        await self._index(result.node_no, turn)
        return await self._indexed(result.node_no, work, context, turn)

    async def _index(self, node_no: int, turn: str) -> None:
        """Brings a node's filter index up to date in small transactions, so that others may write in between."""
        while await self.store.write(lambda tx: tx.index_node(node_no, INDEXED), turn=turn) >= INDEXED:
            pass

    async def _indexed(
        self, node_no: int, work: Callable[[WriteTx, Context], T | IndexFirst], context: Context, turn: str
    ) -> T:
        """Brings a node's filter index up to date and runs the work, both in one transaction."""

        def both(tx: WriteTx) -> T | IndexFirst:
            tx.index_node(node_no)
            return work(tx, context)

        result = await self.store.write(both, turn=turn)
        if isinstance(result, IndexFirst):
            raise AssertionError(f"the filter index of node {result.node_no} is behind right after indexing {node_no}")
        return result

    def _context(self) -> Context:
        return Context(self.policy, self._clock(), self._new_id)

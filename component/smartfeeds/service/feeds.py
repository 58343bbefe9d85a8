"""The service: the table of use cases, and the loops that run them as transactions of the store.

Every wire passes typed requests to `FeedService.handle`, or to `submit` if it needs no task, and encodes the typed
answers. `KERNEL` has one line for each type of request; features add theirs.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cache, partial
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar

from smartfeeds.core.attachment_names import GOVERNED
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.position import Cursor, cursors_in
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import split_name
from smartfeeds.errors import StoreError
from smartfeeds.service import (
    affiliations,
    authorization,
    consumer_requests,
    discovery,
    feed_pages,
    managed_nodes,
    nodes,
    origins,
    placing,
    publishing,
    pulls,
    requests,
    standing,
    subscriptions,
    work,
)
from smartfeeds.service.context import Context, Hooks, NewReply, OverdueItems, Personal, Policy, check_admitted
from smartfeeds.service.damage import DamageLog
from smartfeeds.service.expiry import expire
from smartfeeds.service.personal import KERNEL_TABLES
from smartfeeds.service.requests import Answer
from smartfeeds.service.scans import Scans
from smartfeeds.service.steps import BeginIndexes, IndexFirst, MoreSteps, ReadAgain, WriteStep
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import Again, ReadTx, Store, Work, WriteTx, settle
from smartfeeds.telemetry import CURSOR_DEGRADATIONS, STORE_SECONDS

T = TypeVar("T")

INDEXED = 100  # items that one transaction reads for the filter index: some 10 ms
# Steps of the index that the first search of all feeds waits for, about 0.25 s. Then it returns what is indexed.
SEARCHED_STEPS = 20
# Reads of filtered views take long. They only run in the writing connection, where all writes wait for them, if items
# were published after each of so many attempts to bring the index up to date first.
INDEX_TRIES = 8


_READS: dict[type[requests.Request], tuple[str, Callable[..., Answer | IndexFirst]]] = {
    requests.Pull: ("pull", pulls.pull),
    requests.PullFeed: ("pull_feed", feed_pages.pull_feed),
    requests.GetItem: ("get_item", pulls.get_item),
    requests.GetConfiguration: ("get_configuration", nodes.get_configuration),
    requests.GetDefaultConfiguration: ("get_default_configuration", nodes.get_default),
    requests.GetSubscriptions: ("get_subscriptions", subscriptions.get_subscriptions),
    requests.GetSubscribeOptions: ("get_subscribe_options", subscriptions.get_options),
    requests.GetDefaultSubscribeOptions: ("get_default_subscribe_options", subscriptions.get_default_options),
    requests.GetNodeSubscriptions: ("get_node_subscriptions", subscriptions.list_for_owner),
    authorization.GetPendingNodes: ("get_pending_nodes", authorization.pending_nodes),
    requests.GetAffiliations: ("get_affiliations", affiliations.get_affiliations),
    requests.GetNodeInfo: ("get_node_info", discovery.node_info),
    discovery.GetAddressInfo: ("get_address_info", discovery.address_info),
    requests.GetNodes: ("get_nodes", discovery.address_items),
    discovery.GetChangedNodes: ("get_changed_nodes", discovery.get_changed_nodes),
    requests.GetItemIds: ("get_item_ids", discovery.item_ids),
    origins.GetListedSources: ("get_listed_sources", origins.listed_sources),
    placing.GetOutline: ("get_outline", placing.get_outline),
    standing.GetStanding: ("get_standing", standing.get_standing),
    managed_nodes.ListManagedNodes: ("list_managed_nodes", managed_nodes.list_managed),
    consumer_requests.ListConsumers: ("list_consumers", consumer_requests.list_consumers),
    managed_nodes.GetManagedNode: ("get_managed_node", managed_nodes.get_managed_node),
    work.ListWork: ("list_work", work.list_work),
}
_WRITES: dict[type[requests.Request], tuple[str, Callable[..., Answer | MoreSteps[Answer] | IndexFirst]]] = {
    requests.Publish: ("publish", publishing.publish),
    requests.Retract: ("retract", publishing.retract),
    requests.Purge: ("purge", publishing.purge),
    requests.CreateNode: ("create", nodes.create),
    requests.EnsureNode: ("ensure", nodes.ensure),
    requests.Configure: ("configure", nodes.configure),
    requests.DeleteNode: ("delete", nodes.delete),
    requests.Subscribe: ("subscribe", subscriptions.subscribe),
    requests.Unsubscribe: ("unsubscribe", subscriptions.unsubscribe),
    requests.SetSubscribeOptions: ("set_subscribe_options", subscriptions.set_options),
    requests.SetSubscriptions: ("set_subscriptions", subscriptions.set_for_owner),
    authorization.AnswerAuthorization: ("answer_authorization", authorization.decide),
    authorization.ResendPending: ("resend_pending", authorization.resend),
    requests.SetAffiliations: ("set_affiliations", affiliations.set_affiliations),
    placing.MoveItem: ("move_item", placing.move_item),
    subscriptions.Bounce: ("bounce", subscriptions.end_after_bounce),
    consumer_requests.RetryConsumers: ("retry_consumers", consumer_requests.retry_consumers),
}

KERNEL: Final = UseCases(
    _READS,
    _WRITES,
    pulls=frozenset({requests.Pull, requests.PullFeed, requests.GetItem}),
    limited=frozenset({requests.Publish, requests.Retract, placing.MoveItem}),
    hooks=Hooks(personal=(Personal(KERNEL_TABLES),)),
)


# Ids of one request, and items of a group: the look-up of a batch with many requests stays short.
_TOUCHED_ITEMS = 100
_MAY_NAME_NODE = requests.GetNodeInfo | requests.GetItemIds | requests.GetSubscriptions | requests.GetAffiliations
_UNFINISHED = frozenset({MoreSteps, IndexFirst})  # results that say what runs next
_COUNTED = requests.CreateNode | requests.EnsureNode | requests.Subscribe

# Receives the answer to a request, or the error in place of it. What it raises is only logged.
Finish = Callable[[Any, BaseException | None], None]


class RequestTasks:
    """The tasks of requests that need more than one read or write of the store."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, answer: Awaitable[object], finish: Finish) -> asyncio.Task[None]:
        """Waits for the answer to a request in a task of its own, and calls `finish`. Returns the task."""
        task = asyncio.get_running_loop().create_task(_finish_with(answer, finish))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _finish_with(awaited: Awaitable[object], finish: Finish) -> None:
    try:
        answer = await awaited
    except asyncio.CancelledError as error:  # the caller is gone, or the process ends
        finish(None, error)
        raise
    except Exception as error:  # noqa: BLE001 - `finish` decides what each error becomes on its wire
        finish(None, error)
    else:
        finish(answer, None)


class FeedService:
    """The use cases over one store, by default those of the kernel.

    `clock` returns microseconds since the Unix epoch. `on_change` is called after each commit with the numbers of the
    nodes that have changes to deliver, once for the writes that shared it, `on_reply` with each entry that may answer
    another one. `answered` counts the answers by the type of their request.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        *,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        on_change: Callable[[Collection[int]], None],
        on_reply: Callable[[NewReply], None] | None = None,
        use_cases: UseCases = KERNEL,
    ) -> None:
        self.store = store
        self.use_cases = use_cases
        self.policy = policy
        self.tasks = RequestTasks()
        self.damage_log = DamageLog()
        self.answered: Counter[type[requests.Request]] = Counter()
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self.on_reply = on_reply
        self._scans = Scans(store, self._begin_index)
        self._changed: set[int] = set()  # nodes, since the last call of `on_change`

    def handle(self, request: requests.Request) -> Awaitable[Answer]:
        """Returns the answer to a request. Raises FeedError, or StoreError if the store fails."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.submit(request, partial(settle, future)).future = future
        return future

    def submit(self, request: requests.Request, finish: Finish) -> Work:
        """Handles a request, and calls `finish` with the answer, or with FeedError or StoreError.

        The request has no task and no future, because those would cost as much as all its statements. The work is for
        callers that set `Work.future`, so that it is not run for nobody.
        """
        kind = type(request)
        named: Any = request  # governed requests name a node
        writes = self.use_cases.writes
        is_write = kind in writes
        work: Work
        if is_write:
            function = writes[kind][1]
            governed = self.use_cases.governed
            if kind in governed and (named.node or "").startswith(GOVERNED):
                function = governed[kind]
            use_case = partial(function, request=request)
            work = _Write(self, use_case, request, finish, request.actor.bare_text, _touch_of(request))
        else:
            work = _Read(self, partial(self.use_cases.reads[kind][1], request=request), request, finish)
        try:
            (self.store.submit_write if is_write else self.store.submit_read)(work)
        except StoreError as error:
            finish(None, error)
        return work

    async def read(
        self, work: Callable[[ReadTx, Context], T | ReadAgain], *, turn: str = "", touch: Touch | None = None
    ) -> T:
        """Runs a use case that only reads, on one snapshot. `turn` is the user it runs for, and `touch` names what it
        will look up (see `Store.read`).
        """
        context = self.new_context()
        began_s = perf_counter()
        try:
            return await self.read_on(work, context, turn, touch)
        finally:
            STORE_SECONDS.observe("read", perf_counter() - began_s)
            self.note_findings(context)

    async def read_on(
        self,
        work: Callable[[ReadTx, Context], T | ReadAgain],
        context: Context,
        turn: str = "",
        touch: Touch | None = None,
        result: ReadAgain | None = None,
    ) -> T:
        """Runs a use case as `read` does, with what it needs before: an index, or the removal of expired items.

        `result` is that of its last run, None if it must run first.
        """

        def step(tx: ReadTx) -> T | ReadAgain:
            return work(tx, context)

        tries = 0
        answer: T | ReadAgain | None = result
        while True:
            try:
                if answer is None:
                    answer = await self.store.read(step, turn=turn, touch=touch)
                if isinstance(answer, IndexFirst):
                    answer = await self._scans.read(answer, step, turn, touch)
            except OverdueItems as overdue:
                await self.write(partial(expire, overdue=overdue), turn=turn)
                answer = None
                continue
            if isinstance(answer, BeginIndexes):
                await self.write(_begun(answer.node_nos, SEARCHED_STEPS), turn=turn)
            elif not isinstance(answer, IndexFirst):
                return answer
            else:
                tries += 1
                if tries == INDEX_TRIES:
                    # Each time an item was published between the index and the read, so both run in one transaction.
                    return await self.write(_indexed(answer.node_no, work), turn=turn)
                await self.write(_indexed(answer.node_no, _nothing), turn=turn)
            answer = None

    def _begin_index(self, node_no: int, turn: str) -> Awaitable[None]:
        return self.write(_begun((node_no,)), turn=turn)

    async def write(self, work: WriteStep[T], *, turn: str = "", touch: Touch | None = None) -> T:
        """Runs a use case that writes, each of its steps in a transaction of its own, and returns the answer of the
        last one when it is durable.

        Wakes the deliveries after each step, also if the caller was cancelled meanwhile. Later writes of the same turn
        run after the last step. `touch` names what the first step will look up (see `Store.write`).
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        write = _Write(self, work, None, partial(settle, future), turn, touch)
        write.future = future
        self.store.submit_write(write)
        return await future

    def new_context(self) -> Context:
        """Returns what one run of a use case needs."""
        return Context(self.policy, self._clock(), self._new_id, hooks=self.use_cases.hooks)

    def note_findings(self, context: Context) -> None:
        """Counts and logs what a use case has found out about cursors and items."""
        if context.degraded:
            CURSOR_DEGRADATIONS.inc(len(context.degraded))
        if context.damaged:
            self.damage_log.write(context.damaged)

    def note_changes(self, node_nos: Collection[int]) -> None:
        """Calls `on_change` in the next iteration of the event loop: deliveries begin after the answers to the writes
        of this commit, and once for all of them."""
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._announce)
        self._changed.update(node_nos)

    def _announce(self) -> None:
        changed, self._changed = self._changed, set()
        self._on_change(changed)


class _Read(Work):
    """A request that only reads, as a work of the store."""

    __slots__ = ("_began_s", "_finish", "_request", "_service", "_use_case", "context")

    def __init__(
        self,
        service: FeedService,
        use_case: Callable[[ReadTx, Context], Answer | ReadAgain],
        request: requests.Request,
        finish: Finish,
    ) -> None:
        super().__init__(request.turn)
        self._service = service
        self._use_case = use_case
        self._request = request
        self._finish = finish
        self._began_s = perf_counter()
        self.context = service.new_context()

    def touch(self) -> Touch | None:
        return _touch_of(self._request)

    def step(self, tx: ReadTx) -> Answer | ReadAgain:
        check_admitted(tx, self.context.policy, self._request.actor)
        return self._use_case(tx, self.context)

    def ended(self) -> None:
        if isinstance(self.result, ReadAgain) or isinstance(self.error, OverdueItems):
            again = self._service.read_on(self.step_in, self.context, self.turn, self.touch(), self.result)
            task = self._service.tasks.start(again, self._pass_on)
            if self.future is not None:
                self.future.add_done_callback(lambda _future: task.cancel())  # the caller may be gone before the end
        else:
            self._pass_on(self.result, self.error)

    def step_in(self, tx: ReadTx, _context: Context) -> Answer | ReadAgain:
        """The step again, for `FeedService.read_on`."""
        return self.step(tx)

    def _pass_on(self, answer: Any, error: BaseException | None) -> None:
        service = self._service
        STORE_SECONDS.observe("read", perf_counter() - self._began_s)
        if self.context.degraded or self.context.damaged:
            service.note_findings(self.context)
        if error is None:
            service.answered[type(self._request)] += 1
        self._finish(answer, error)


class _Write(Work):
    """A use case that writes, as a work of the store: its steps, each in a transaction of its own.

    With a request its actor must be admitted. `context` is that of the step that ran last.
    """

    __slots__ = ("_began_s", "_finish", "_request", "_service", "_use_case", "context")

    def __init__(
        self,
        service: FeedService,
        use_case: WriteStep[Any],
        request: requests.Request | None,
        finish: Finish,
        turn: str = "",
        touch: Touch | None = None,
    ) -> None:
        super().__init__(turn, touch)
        self._service = service
        self._use_case = use_case
        self._request = request
        self._finish = finish
        self._began_s = perf_counter()
        self.context: Context

    def step(self, tx: WriteTx) -> object:
        return self._run(self._use_case, tx)

    def _run(self, step: WriteStep[Any], tx: WriteTx) -> object:
        """Runs a step. Returns or raises Again if another step follows."""
        context = self.context = self._service.new_context()
        if self._request is not None:
            check_admitted(tx, context.policy, self._request.actor)
        try:
            result = step(tx, context)
        except OverdueItems as overdue:
            # Raised and not returned: the step runs again from its beginning.
            raise self._again(_then(partial(expire, overdue=overdue), step)) from None
        if type(result) not in _UNFINISHED:
            return result
        if isinstance(result, MoreSteps):
            return self._again(result.step)
        return self._again(_indexed(result.node_no, step))

    def _again(self, step: WriteStep[Any]) -> Again:
        return Again(partial(self._run, step))

    def committed(self) -> None:
        context = self.context
        if context.degraded or context.damaged:
            self._service.note_findings(context)
        if context.changed:
            self._service.note_changes(context.changed)
        if context.replies and self._service.on_reply is not None:
            for reply in context.replies:
                self._service.on_reply(reply)

    def ended(self) -> None:
        STORE_SECONDS.observe("write", perf_counter() - self._began_s)
        if self.error is None and self._request is not None:
            self._service.answered[type(self._request)] += 1
        self._finish(self.result, self.error)


def _then(first: WriteStep[object], work: WriteStep[T]) -> WriteStep[T]:
    """Returns the steps of `first`, followed by a work."""

    def step(tx: WriteTx, context: Context) -> MoreSteps[T]:
        result = first(tx, context)
        return MoreSteps(_then(result.step, work) if isinstance(result, MoreSteps) else work)

    return step


def _begun(node_nos: Sequence[int], steps: int = 0) -> WriteStep[None]:
    """Returns the steps that make the filter indexes of these nodes follow their items, and then bring the indexes of
    all nodes forward, by at most so many steps.
    """

    def step(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
        for node_no in node_nos:
            if tx.begin_index(node_no):
                context.changed.add(node_no)  # wakes what makes the index
        more = steps and tx.index_some(INDEXED)
        return MoreSteps(_begun((), steps - 1)) if more and steps > 1 else None

    return step


def _nothing(_tx: WriteTx, _context: Context) -> None:
    """The work of a write that only brings an index up to date."""


def _indexed(node_no: int, work: Callable[[WriteTx, Context], T | MoreSteps[T] | ReadAgain]) -> WriteStep[T]:
    """Returns the steps that bring the filter index of a node up to date, followed by a work in the last transaction.

    Each transaction is small, so that others may write in between.
    """

    def step(tx: WriteTx, context: Context) -> T | MoreSteps[T]:
        if tx.index_node(node_no, INDEXED) >= INDEXED:
            return MoreSteps(step)
        result = work(tx, context)
        if isinstance(result, ReadAgain):
            raise AssertionError(f"{result} right after indexing node {node_no}")
        return result

    return step


class _Kind(NamedTuple):
    """The look-ups of a type of request: `counts` and `subscribes` against a quota, the live `node` of its name, and
    its one item, or the items of its page."""

    counts: bool
    subscribes: bool
    node: bool
    one_item: bool
    page: bool
    publishes: bool


@cache  # by types, so it is bounded
def _kind_of(request: type[requests.Request]) -> _Kind:
    """Returns what a type of request looks up. Asked for each request, these questions would be seven calls."""
    return _Kind(
        issubclass(request, _COUNTED),
        issubclass(request, requests.Subscribe),
        issubclass(request, requests.NodeRequest | _MAY_NAME_NODE),
        issubclass(request, requests.Publish | requests.Retract | requests.GetItem),
        issubclass(request, requests.Pull),
        issubclass(request, requests.Publish),
    )


def _touch_of(request: requests.Request) -> Touch | None:
    """Returns what a request will look up, None if it is not about one node and counts against no quota."""
    if isinstance(request, requests.PullFeed):
        feed = request.node if request.view else ""
        return Touch(request.node, request.actor.bare_text, feed=feed, cursors=_cursors(request.page))
    kind = _kind_of(type(request))  # type: ignore[arg-type]  # mypy takes the type for one of its values
    named: Any = request  # it has the fields of its kind
    jid = request.actor.bare_text
    quota_of = jid if kind.counts else ""
    if not kind.node or not named.node:
        return Touch("", jid, quota_of=quota_of) if quota_of else None
    split = split_name(named.node) if "?" in named.node or "%" in named.node else None
    feed = "" if split is None else split[0]
    item_ids: tuple[str, ...] = ()
    cursors: tuple[Cursor, ...] = ()
    if kind.page:
        cursors = _cursors(named.page)
        item_ids = named.item_ids if len(named.item_ids) <= _TOUCHED_ITEMS else ()
    elif kind.one_item and named.item_id:
        item_ids = (named.item_id,)
    return Touch(named.node, jid, item_ids, int(kind.publishes), feed, cursors, quota_of, kind.subscribes)


def _cursors(page: ResultSetRequest | None) -> tuple[Cursor, ...]:
    """Returns the cursors of a page. The use case reads the positions again, and refuses what is none."""
    texts = [text for text in (page.after, page.before) if text] if page is not None else []
    cursors = [cursor for text in texts for cursor in cursors_in(text)]
    return tuple(cursor for cursor in cursors if cursor.checksum and cursor.offset < _TOUCHED_ITEMS)

"""The works that wait for a connection of the store, and the connections that run them in batches.

All works that wait are handed to a free connection at once, up to the size of a batch. Works that arrive meanwhile go
into the next batch. For writes this is group commit. For reads it spreads the cost of the switch to the connection's
thread, which is about that of several statements.

`turn` names the sender of a work. `SenderQueue` divides the time of the connections between the senders that wait
(`core.fairness`), whatever each of their works costs. This has nothing to do with `delivery.turns`, which decides to
which consumer of which feed the next delivery goes, and counts deliveries instead of time.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from smartfeeds.core.fairness import FairOrder, Share, Shares
from smartfeeds.core.touches import Touch
from smartfeeds.errors import StoreClosedError, StoreError
from smartfeeds.store.base import Work, settle
from smartfeeds.store.engine import OverBudgetError

# The cost of a work before its time is known: less than any work takes, and enough for senders of equal cost to
# alternate.
ADVANCE_S = 1e-5
# Senders whose time is remembered while none of their works waits. A forgotten sender loses only its debt: it starts at
# the cost of the sender that was served last.
REMEMBERED = 4_096


class _Call(Work):
    """A function that a task waits for."""

    __slots__ = ("_function", "_on_commit")

    future: asyncio.Future[Any]

    def __init__(
        self,
        function: Callable[[Any], Any],
        future: asyncio.Future[Any],
        turn: str,
        on_commit: Callable[[], None] | None,
        touch: Touch | None,
    ) -> None:
        super().__init__(turn, touch)
        self._function = function
        self._on_commit = on_commit
        self.future = future

    def step(self, tx: Any) -> object:
        return self._function(tx)

    def committed(self) -> None:
        if self._on_commit is not None:
            self._on_commit()

    def ended(self) -> None:
        settle(self.future, self.result, self.error)


# Runs works in order on one connection. It returns how many of them it has run, at least one. Only the last of them may
# be unfinished (`Again`), because works of its sender may follow it.
BatchRunner = Callable[[list[Work]], Awaitable[int]]


class _SenderAccount(Share):
    """The waiting works of one sender, the number of those that run, and the time that its last work took.

    `blocked`: the sender is slow and has a work that runs.
    """

    __slots__ = ("blocked", "last_s", "running", "works")

    def __init__(self, cost: float) -> None:
        # Also the fields of `Share`: `super` would be one more call for each new sender.
        self.cost = cost
        self.entry = 0
        self.works: deque[Work] = deque()
        self.running = 0
        self.last_s = 0.0
        self.blocked = False


class SenderQueue:
    """The works that wait. The works of one sender keep their order; the sender that has used the least time comes
    first.

    A sender pays `ADVANCE_S` when a work is handed out, and the rest of its time when it is done. A slow sender has one
    work running at a time: otherwise it could occupy all connections at once, and all others would wait for one of its
    works. A sender is slow if its last work took more than `slow_s`. Works without a turn have no common sender, so
    they are never slow.
    """

    __slots__ = ("_accounts", "_order", "_slow_s")

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self._accounts: Shares[str, _SenderAccount] = Shares(
            self._new_account, lambda account: not account.works and not account.running, REMEMBERED
        )
        self._order: FairOrder[_SenderAccount] = FairOrder()

    def __bool__(self) -> bool:
        return self._order.waiting > 0

    def is_serving(self, turn: str) -> bool:
        """Returns whether a work of this sender waits or runs."""
        account = self._accounts.get(turn)
        return account is not None and bool(account.running or any(not _is_dropped(work) for work in account.works))

    def add(self, work: Work) -> None:
        """Adds a work behind the others of its sender."""
        account = self._accounts[work.turn]
        account.works.append(work)
        if not account.entry and not account.blocked:
            self._order.enter(account)

    def take(self, most: int) -> list[Work]:
        """Removes and returns the next works, up to `most` of them. A work that nobody waits for is passed over.

        A slow work is returned alone: the other works of its batch would be answered only after it.
        """
        works: list[Work] = []
        left = most
        while left and self._order.waiting:
            account = self._order.pop()
            # The sender is served until another one has cost less. So the works of a sender that is alone are one run,
            # whose cost for the order is that of one work.
            most_cost = self._order.next_cost
            is_slow = account.last_s > self._slow_s
            while True:
                work = account.works.popleft()
                if work.future is None or not work.future.done():
                    if is_slow and works:
                        account.works.appendleft(work)
                        self._order.put_back(account, 0.0)
                        return works
                    self._order.reached = account.cost
                    account.cost += ADVANCE_S
                    account.running += 1
                    works.append(work)
                    left -= 1
                    if is_slow:
                        account.blocked = bool(work.turn)
                        break
                if not account.works or not left or account.cost >= most_cost:
                    break
            if account.works and not account.blocked:
                self._order.enter(account)
            if is_slow and works:
                break
        return works

    def put_back(self, works: Sequence[Work]) -> None:
        """Makes these works the next ones again. They must be the last that `take` returned, in this order."""
        for work in reversed(works):
            account = self._accounts[work.turn]
            account.works.appendleft(work)
            account.running -= 1
            account.blocked = False
            self._order.put_back(account, ADVANCE_S)

    def go_on(self, work: Work, function: Callable[[Any], Any]) -> None:
        """Adds the next part of a work that has run and was charged.

        It comes before the other works of its sender, so that they take effect in their order. Works without a turn
        have no common sender, so there it comes last.
        """
        work.rest, work.result, work.error, work.spent_s = function, None, None, 0.0
        account = self._accounts[work.turn]
        if work.turn:
            account.works.appendleft(work)
        else:
            account.works.append(work)
        self._order.enter(account)

    def _new_account(self, _turn: str) -> _SenderAccount:
        return _SenderAccount(self._order.reached)  # a work may be put back after its account was dropped

    def charge(self, works: Sequence[Work]) -> None:
        """Adds the time of works that are done to their senders."""
        for work in works:
            account = self._accounts.get(work.turn)
            if account is not None:
                account.last_s = work.spent_s or account.last_s
                if work.spent_s > ADVANCE_S:
                    account.cost += work.spent_s - ADVANCE_S
                account.running -= 1
                account.blocked = False
                if account.works and not account.entry:
                    self._order.enter(account)


class WorkQueue:
    """A queue of works that one or more connections serve. Up to `batch` works run in one batch; a work that probably
    takes more than `slow_s` runs alone. Works that exceed the budget of these connections run again in `overflow`.
    """

    def __init__(
        self, connections: list[BatchRunner], batch: int, slow_s: float, overflow: "WorkQueue | None" = None
    ) -> None:
        self._idle = connections
        self._batch = batch
        self._waiting = SenderQueue(slow_s)
        self._serving: set[asyncio.Task[None]] = set()
        self._overflow = overflow
        self._closed = False

    def is_serving(self, turn: str) -> bool:
        """Returns whether a work of this sender waits or runs."""
        return self._waiting.is_serving(turn)

    async def call(
        self,
        function: Callable[[Any], Any],
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> Any:
        """Runs a work in some batch and returns its result when the batch is done. Raises what the work raises, or
        StoreError.
        """
        work = _Call(function, asyncio.get_running_loop().create_future(), turn, on_commit, touch)
        self.submit(work)
        return await work.future

    def submit(self, work: Work) -> None:
        """Runs a work in some batch. Raises StoreError if the store is closed.

        A sender whose work waits or runs in `overflow` starts no other work here, so that it cannot use all
        connections. Works without a turn come from many parts of the service: the health probe must not wait for the
        search of another part.
        """
        overflow = self._overflow
        if overflow is not None and work.turn and overflow.is_serving(work.turn):
            overflow.submit(work)
            return
        if self._closed:
            raise StoreClosedError("the store is closed")
        self._waiting.add(work)
        if self._idle:
            task = asyncio.get_running_loop().create_task(self._serve(self._idle.pop()))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def close(self, *, drops: bool = False) -> None:
        """Rejects further works and waits for those that are queued, or, if it `drops` them, for those that run."""
        self._closed = True
        while drops and (works := self._waiting.take(self._batch)):
            self._waiting.charge(works)
            self._fail(works, StoreClosedError("the store is closed"))
        while self._serving:
            await asyncio.wait(self._serving)

    async def _serve(self, run: BatchRunner) -> None:
        try:
            while works := self._waiting.take(self._batch):
                await self._run_batch(run, works)
        finally:
            self._idle.append(run)

    async def _run_batch(self, run: BatchRunner, works: list[Work]) -> None:
        try:
            done = await run(works)
        except asyncio.CancelledError as error:
            # The whole program ends. No caller may wait for ever.
            self._fail(works, error)
            raise
        except Exception as error:  # noqa: BLE001 - the callers of all works must get an answer
            self._waiting.charge(works)
            is_known = isinstance(error, StoreError)
            self._fail(works, error if is_known else StoreError(f"the database connection failed: {error}"))
            return
        if done < len(works):
            self._waiting.put_back(works[done:])
            works = works[:done]
        self._waiting.charge(works)
        for work in works:
            if work.error is None:
                try:
                    work.committed()
                except Exception as error:  # noqa: BLE001 - the queue must serve the other works
                    work.fail(error)
            if work.again is not None:
                self._waiting.go_on(work, work.again.work)
            elif self._overflow is not None and isinstance(work.error, OverBudgetError):
                self._run_long(work, self._overflow)
            elif work.future is None or not work.future.done():
                # As `_end`, without two calls for each request.
                try:
                    work.ended()
                except Exception as error:  # noqa: BLE001 - as above
                    _report(error)

    def _run_long(self, work: Work, overflow: "WorkQueue") -> None:
        work.spent_s = 0.0
        try:
            overflow.submit(work)
        except StoreError as error:
            work.fail(error)
            _end(work)

    def _fail(self, works: list[Work], error: BaseException) -> None:
        for work in works:
            work.fail(error)
            _end(work)


def _is_dropped(work: Work) -> bool:
    """Returns whether nobody waits for the result of a work any more."""
    return work.future is not None and work.future.done()


def _end(work: Work) -> None:
    if not _is_dropped(work):
        try:
            work.ended()
        except Exception as error:  # noqa: BLE001 - the queue must serve the other works
            _report(error)


def _report(error: Exception) -> None:
    """Logs what `Work.ended` raised. It is a bug, and must not end the task that serves the queue."""
    context = {"message": "the result of a work could not be passed on", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)

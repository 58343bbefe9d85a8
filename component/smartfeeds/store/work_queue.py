"""The works that wait for a connection of the store, and the connections that run them in batches.

All works that wait are handed to a free connection at once, up to the size of a batch. Works that arrive meanwhile go
into the next batch. For writes this is group commit. For reads it spreads the cost of the switch to the connection's
thread, which is about that of several statements.

`turn` names the sender of a work. `SenderQueue` divides the time of the connections between the senders that wait
(`core.fairness`), whatever each of their works costs. This has nothing to do with `delivery.turns`, which decides to
which consumer of which feed the next delivery goes, and counts deliveries instead of time.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smartfeeds.core.fairness import FairOrder, Share, Shares
from smartfeeds.core.touches import Touch
from smartfeeds.errors import StoreError
from smartfeeds.store.base import Again

# The cost of a work before its time is known: less than any work takes, and enough for senders of equal cost to
# alternate.
ADVANCE_S = 1e-5
REMEMBERED = 4_096  # senders whose time is remembered while none of their works waits


@dataclass(slots=True, eq=False)
class QueuedWork:
    """A work that waits or runs, and its result or error afterwards. `on_commit` is called after each commit."""

    function: Callable[[Any], Any]
    future: asyncio.Future[Any]
    turn: str = ""
    on_commit: Callable[[], None] | None = None
    touch: Touch | None = None
    result: Any = None
    error: BaseException | None = None
    spent_s: float = 0.0

    def run(self, tx: object) -> None:
        """Runs the work in a transaction, and stores its result or error and the time that it took."""
        began_s = time.perf_counter()
        try:
            self.result, self.error = self.function(tx), None
        except Exception as error:  # noqa: BLE001 - every error of a work is raised at its caller
            self.result, self.error = None, error
        self.spent_s += time.perf_counter() - began_s

    @property
    def again(self) -> Again | None:
        """The next part of a work that has not ended."""
        outcome = self.result if self.error is None else self.error
        return outcome if isinstance(outcome, Again) else None

    def settle(self) -> Again | None:
        """Calls `on_commit` if the work was committed, and passes the result to the caller unless the call was
        cancelled. If the work has not ended, its next part is returned instead. An error of `on_commit` is raised at
        the caller.
        """
        if self.error is None and self.on_commit is not None:
            try:
                self.on_commit()
            except Exception as error:  # noqa: BLE001 - the queue must serve the other works
                self.error = error
        again = self.again
        if again is not None or self.future.done():
            return again
        if self.error is None:
            self.future.set_result(self.result)
        elif isinstance(self.error, StopIteration):
            self.future.set_exception(RuntimeError("a work raised StopIteration"))
        else:
            self.future.set_exception(self.error)
        return None


# Runs works in order on one connection. It returns how many of them it has run, at least one. Only the last of them may
# be unfinished (`Again`), because works of its sender may follow it.
BatchRunner = Callable[[list[QueuedWork]], Awaitable[int]]


class _SenderAccount(Share):
    """The waiting works of one sender, and the time that its last work took. `blocked`: the sender is slow and has a
    work that runs.
    """

    __slots__ = ("blocked", "last_s", "works")

    def __init__(self) -> None:
        super().__init__()
        self.works: deque[QueuedWork] = deque()
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
            self._new_account, lambda account: not account.works and not account.blocked, REMEMBERED
        )
        self._order: FairOrder[_SenderAccount] = FairOrder()

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, work: QueuedWork) -> None:
        """Adds a work behind the others of its sender."""
        account = self._accounts[work.turn]
        account.works.append(work)
        if not account.blocked:
            self._order.enter(account)

    def take(self) -> QueuedWork:
        """Removes and returns the next work. Raises IndexError if none waits."""
        account = self._order.pop()
        work = account.works.popleft()
        account.cost += ADVANCE_S
        account.blocked = bool(work.turn) and account.last_s > self._slow_s
        if account.works and not account.blocked:
            self._order.enter(account)
        return work

    def put_back(self, works: Sequence[QueuedWork]) -> None:
        """Makes these works the next ones again. They must be the last that `take` returned, in this order."""
        for work in reversed(works):
            account = self._accounts[work.turn]
            account.works.appendleft(work)
            account.blocked = False
            self._order.put_back(account, ADVANCE_S)

    def go_on(self, work: QueuedWork, function: Callable[[Any], Any]) -> None:
        """Adds the next part of a work that has run and was charged.

        It comes before the other works of its sender, so that they take effect in their order. Works without a turn
        have no common sender, so there it comes last.
        """
        work.function, work.result, work.error, work.spent_s = function, None, None, 0.0
        account = self._accounts[work.turn]
        if work.turn:
            account.works.appendleft(work)
        else:
            account.works.append(work)
        self._order.enter(account)

    def _new_account(self, _turn: str) -> _SenderAccount:
        account = _SenderAccount()
        account.cost = self._order.reached  # a work may be put back after its account was dropped
        return account

    def charge(self, work: QueuedWork) -> None:
        """Adds the time of a work to its sender. The work is done, or its caller has been cancelled."""
        account = self._accounts.get(work.turn)
        if account is not None:
            account.last_s = work.spent_s or account.last_s
            account.cost += max(0.0, work.spent_s - ADVANCE_S)
            account.blocked = False
            if account.works:
                self._order.enter(account)

    def is_slow(self, work: QueuedWork) -> bool:
        """Returns whether the last work of this sender took long, so that this one probably does too."""
        account = self._accounts.get(work.turn)
        return account is not None and account.last_s > self._slow_s


class WorkQueue:
    """A queue of works that one or more connections serve. Up to `batch` works run in one batch; a work that probably
    takes more than `slow_s` runs alone.
    """

    def __init__(self, connections: list[BatchRunner], batch: int, slow_s: float) -> None:
        self._idle = connections
        self._batch = batch
        self._waiting = SenderQueue(slow_s)
        self._serving: set[asyncio.Task[None]] = set()
        self._calls: Counter[str] = Counter()
        self._closed = False

    def is_serving(self, turn: str) -> bool:
        """Returns whether a work of this sender waits or runs."""
        return turn in self._calls

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
        if self._closed:
            raise StoreError("the store is closed")
        loop = asyncio.get_running_loop()
        work = QueuedWork(function, loop.create_future(), turn, on_commit, touch)
        self._waiting.add(work)
        if self._idle:
            task = loop.create_task(self._serve(self._idle.pop()))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        self._calls[turn] += 1
        try:
            return await work.future
        finally:
            self._calls[turn] -= 1
            if not self._calls[turn]:
                del self._calls[turn]

    async def close(self) -> None:
        """Rejects further works and waits for those that are queued."""
        self._closed = True
        while self._serving:
            await asyncio.wait(self._serving)

    async def _serve(self, run: BatchRunner) -> None:
        try:
            while works := self._next_batch():
                await self._run_batch(run, works)
        finally:
            self._idle.append(run)

    def _next_batch(self) -> list[QueuedWork]:
        works: list[QueuedWork] = []
        while self._waiting and len(works) < self._batch:
            work = self._waiting.take()
            if work.future.done():
                self._waiting.charge(work)
                continue
            # A slow work runs alone: the other works of its batch would be answered only after it.
            slow = self._waiting.is_slow(work)
            if slow and works:
                self._waiting.put_back([work])
                break
            works.append(work)
            if slow:
                break
        return works

    async def _run_batch(self, run: BatchRunner, works: list[QueuedWork]) -> None:
        try:
            done = await run(works)
        except asyncio.CancelledError:
            # The whole program ends.
            for work in works:
                work.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - the callers of all works must get an answer
            for work in works:
                self._waiting.charge(work)
                work.error = StoreError(f"the database connection failed: {error}")
                work.settle()
            return
        self._waiting.put_back(works[done:])
        for work in works[:done]:
            self._waiting.charge(work)
            if (again := work.settle()) is not None:
                self._waiting.go_on(work, again.work)

"""Works waiting for connections, taken in batches: one hop to a connection's thread for all that are waiting.

What arrives while a batch runs goes into the next one. That is group commit for writes, and for reads it spreads the
price of the hop (a hop costs about as much as several statements).

A sender with many or slow works does not hold up the others: the time of a connection is divided between the turns
that wait, whatever each of their works costs.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiosqlite

from smartfeeds.core.fairness import FairOrder, Share, Shares
from smartfeeds.errors import StoreError

# What a job is charged before its time is known: less than any takes, enough for turns of equal cost to alternate.
ADVANCE_S = 1e-5
REMEMBERED = 4_096  # turns whose time is remembered while they are idle


async def hop(connection: aiosqlite.Connection, work: Callable[..., Any], *args: object) -> Any:
    """Runs a function in a connection's thread; aiosqlite has no public way to run several statements there."""
    return await connection._execute(work, *args)  # type: ignore[no-untyped-call]


async def ended(connection: aiosqlite.Connection) -> None:
    """Waits until the thread of a connection that was closed, or could not be made, is gone.

    Its last act is to call the event loop, which must still be there.
    """
    while connection._thread.is_alive():  # noqa: ASYNC110 - a thread sets no event when it ends
        await asyncio.sleep(0.001)


@dataclass(slots=True, eq=False)
class StoreJob:
    """A work, and how it ended once it has run."""

    work: Callable[[Any], Any]
    future: asyncio.Future[Any]
    turn: str = ""
    result: Any = None
    error: BaseException | None = None
    spent_s: float = 0.0

    def run(self, tx: object) -> None:
        """Runs the work in a transaction, keeps its result or error, and adds the time that it took."""
        began_s = time.perf_counter()
        try:
            self.result, self.error = self.work(tx), None
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the caller
            self.result, self.error = None, error
        self.spent_s += time.perf_counter() - began_s

    def settle(self) -> None:
        """Passes the result to the caller unless the call was cancelled."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        elif isinstance(self.error, StopIteration):
            self.future.set_exception(RuntimeError("a work raised StopIteration"))
        else:
            self.future.set_exception(self.error)


@dataclass(frozen=True, slots=True)
class StoreLane:
    """A connection and what runs a batch on it: called in its thread, it returns how many jobs it ran, at least one."""

    connection: aiosqlite.Connection
    run: Callable[[list[StoreJob]], int]


class _TurnAccount(Share):
    """The jobs of one turn that wait, and the time that its last job took. `held`: a job of a slow turn is in work."""

    __slots__ = ("held", "jobs", "last_s")

    def __init__(self) -> None:
        super().__init__()
        self.jobs: deque[StoreJob] = deque()
        self.last_s = 0.0
        self.held = False


class StoreTurns:
    """Jobs that wait. Those of one turn keep their order; the turn that has used the least time comes first.

    A job is charged `ADVANCE_S` when it is taken, and the time that it took when it is done. A slow turn has one job in
    work at a time: otherwise it would occupy all connections at once, and everybody would wait for one of its jobs. A
    turn is slow if its last job took more than `slow_s`. Jobs without a turn have no common sender, so they never are.
    """

    __slots__ = ("_accounts", "_order", "_slow_s")

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self._accounts: Shares[str, _TurnAccount] = Shares(
            self._new_account, lambda account: not account.jobs, REMEMBERED
        )
        self._order: FairOrder[_TurnAccount] = FairOrder()

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, job: StoreJob) -> None:
        """Puts a job behind the others of its turn."""
        account = self._accounts[job.turn]
        account.jobs.append(job)
        if not account.held:
            self._order.enter(account)

    def take(self) -> StoreJob:
        """The next job. Raises IndexError where none waits."""
        account = self._order.pop()
        job = account.jobs.popleft()
        account.cost += ADVANCE_S
        account.held = bool(job.turn) and account.last_s > self._slow_s
        if account.jobs and not account.held:
            self._order.enter(account)
        return job

    def put_back(self, jobs: Sequence[StoreJob]) -> None:
        """Jobs that were taken last, and in this order, are the next ones again."""
        for job in reversed(jobs):
            account = self._accounts[job.turn]
            account.jobs.appendleft(job)
            account.held = False
            self._order.put_back(account, ADVANCE_S)

    def _new_account(self, _turn: str) -> _TurnAccount:
        account = _TurnAccount()
        account.cost = self._order.reached  # a job may be put back after its account was forgotten
        return account

    def charge(self, job: StoreJob) -> None:
        """A job that was taken is done, or nobody waits for it any more: its turn pays the time that it took."""
        account = self._accounts.get(job.turn)
        if account is not None:
            account.last_s = job.spent_s or account.last_s
            account.cost += max(0.0, job.spent_s - ADVANCE_S)
            account.held = False
            if account.jobs:
                self._order.enter(account)

    def is_slow(self, job: StoreJob) -> bool:
        """Whether a job probably takes long."""
        account = self._accounts.get(job.turn)
        return account is not None and account.last_s > self._slow_s


class StoreLanes:
    """A queue of works that is served by one or more connections. A work that probably takes more than `slow_s` runs
    alone."""

    def __init__(self, lanes: list[StoreLane], batch: int, slow_s: float) -> None:
        self._idle = lanes
        self._batch = batch
        self._waiting = StoreTurns(slow_s)
        self._serving: set[asyncio.Task[None]] = set()
        self._calls: Counter[str] = Counter()
        self._closed = False

    def works_for(self, turn: str) -> bool:
        """Whether a work of this turn waits or runs."""
        return turn in self._calls

    async def call(self, work: Callable[[Any], Any], turn: str = "") -> Any:
        """Runs a work in some batch; its result, when the batch is done. Raises what it raises, or StoreError."""
        if self._closed:
            raise StoreError("the store is closed")
        loop = asyncio.get_running_loop()
        job = StoreJob(work, loop.create_future(), turn)
        self._waiting.add(job)
        if self._idle:
            task = loop.create_task(self._serve(self._idle.pop()))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        self._calls[turn] += 1
        try:
            return await job.future
        finally:
            self._calls[turn] -= 1
            if not self._calls[turn]:
                del self._calls[turn]

    async def close(self) -> None:
        """Takes no more works and waits for those that were taken."""
        self._closed = True
        while self._serving:
            await asyncio.wait(self._serving)

    async def _serve(self, lane: StoreLane) -> None:
        try:
            while jobs := self._next_batch():
                await self._run(lane, jobs)
        finally:
            self._idle.append(lane)

    def _next_batch(self) -> list[StoreJob]:
        jobs: list[StoreJob] = []
        while self._waiting and len(jobs) < self._batch:
            job = self._waiting.take()
            if job.future.done():
                self._waiting.charge(job)
                continue
            # A slow job runs alone: the other jobs of its batch would be answered only after it.
            slow = self._waiting.is_slow(job)
            if slow and jobs:
                self._waiting.put_back([job])
                break
            jobs.append(job)
            if slow:
                break
        return jobs

    async def _run(self, lane: StoreLane, jobs: list[StoreJob]) -> None:
        try:
            done = await hop(lane.connection, lane.run, jobs)
        except asyncio.CancelledError:
            # The whole program is being ended: nobody is left to be answered.
            for job in jobs:
                job.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - nobody may be left waiting
            for job in jobs:
                self._waiting.charge(job)
                job.error = StoreError(f"the database connection failed: {error}")
                job.settle()
            return
        self._waiting.put_back(jobs[done:])
        for job in jobs[:done]:
            self._waiting.charge(job)
            job.settle()

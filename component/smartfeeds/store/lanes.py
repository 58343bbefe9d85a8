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
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import aiosqlite

from smartfeeds.errors import StoreError

# What a job is charged before its time is known: less than any takes, enough for turns of equal cost to alternate.
ADVANCE_S = 1e-5
SLOW_S = 0.005  # as long as a commit; what takes longer does not share a commit with works that wait behind it
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
class Job:
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
class Lane:
    """A connection and what runs a batch on it: called in its thread, it returns how many jobs it ran, at least one."""

    connection: aiosqlite.Connection
    run: Callable[[list[Job]], int]


@dataclass(slots=True, eq=False)
class _Account:
    """The jobs of one turn that wait, and the time that its jobs took, in seconds on the scale of `Turns`."""

    jobs: deque[Job] = field(default_factory=deque)
    used_s: float = 0.0
    last_s: float = 0.0
    entry: int = 0


class Turns:
    """Jobs that wait. Those of one turn keep their order; the turn that has used the least time comes first.

    This is start-time fair queueing. A turn that was idle starts at the time of the turn that was served last, so that
    nobody saves up time. A job is charged `ADVANCE_S` when it is taken, and the time that it took when it is done.
    """

    __slots__ = ("_accounts", "_entries", "_heap", "_now_s", "_waiting")

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._heap: list[tuple[float, int, str]] = []  # one valid entry for each turn that waits, and outdated ones
        self._entries = 0
        self._now_s = 0.0
        self._waiting = 0

    def __bool__(self) -> bool:
        return self._waiting > 0

    def add(self, job: Job) -> None:
        """Puts a job behind the others of its turn."""
        account = self._accounts.get(job.turn)
        if account is None:
            self._forget_some()
            account = self._accounts[job.turn] = _Account()
        account.jobs.append(job)
        self._waiting += 1
        if len(account.jobs) == 1:
            account.used_s = max(account.used_s, self._now_s)
            self._enter(job.turn, account)

    def take(self) -> Job:
        """The next job. Raises IndexError where none waits."""
        while True:
            self._now_s, entry, turn = heappop(self._heap)
            account = self._accounts.get(turn)
            if account is not None and account.entry == entry:
                break
        job = account.jobs.popleft()
        self._waiting -= 1
        account.used_s += ADVANCE_S
        account.entry = 0
        if account.jobs:
            self._enter(turn, account)
        return job

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Jobs that were taken last, and in this order, are the next ones again."""
        for job in reversed(jobs):
            account = self._accounts.setdefault(job.turn, _Account(used_s=self._now_s))
            account.jobs.appendleft(job)
            account.used_s -= ADVANCE_S
            self._waiting += 1
            self._enter(job.turn, account, first=True)

    def charge(self, job: Job) -> None:
        """A job that was taken is done: its turn pays the time that it took."""
        account = self._accounts.get(job.turn)
        if account is None:
            return
        account.last_s = job.spent_s
        account.used_s += max(0.0, job.spent_s - ADVANCE_S)
        if account.jobs:
            self._enter(job.turn, account)

    def is_slow(self, job: Job) -> bool:
        """Whether the last job of the same turn took long, so that the next one probably does too."""
        account = self._accounts.get(job.turn)
        return account is not None and account.last_s > SLOW_S

    def _enter(self, turn: str, account: _Account, *, first: bool = False) -> None:
        self._entries += 1
        account.entry = -self._entries if first else self._entries
        heappush(self._heap, (account.used_s, account.entry, turn))

    def _forget_some(self) -> None:
        if len(self._accounts) >= REMEMBERED:
            self._accounts = {turn: account for turn, account in self._accounts.items() if account.jobs}


class Lanes:
    """A queue of works that is served by one or more connections."""

    def __init__(self, lanes: list[Lane], batch: int) -> None:
        self._idle = lanes
        self._batch = batch
        self._waiting = Turns()
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
        job = Job(work, loop.create_future(), turn)
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

    async def _serve(self, lane: Lane) -> None:
        try:
            while jobs := self._next_batch():
                await self._run(lane, jobs)
        finally:
            self._idle.append(lane)

    def _next_batch(self) -> list[Job]:
        jobs: list[Job] = []
        while self._waiting and len(jobs) < self._batch:
            job = self._waiting.take()
            if job.future.done():
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

    async def _run(self, lane: Lane, jobs: list[Job]) -> None:
        try:
            done = await hop(lane.connection, lane.run, jobs)
        except asyncio.CancelledError:
            # The whole program is being ended: nobody is left to be answered.
            for job in jobs:
                job.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - nobody may be left waiting
            for job in jobs:
                job.error = StoreError(f"the database connection failed: {error}")
                job.settle()
            return
        self._waiting.put_back(jobs[done:])
        for job in jobs[:done]:
            self._waiting.charge(job)
            job.settle()

"""Works waiting for connections, taken in batches: one hop to a connection's thread for all that are waiting.

What arrives while a batch runs goes into the next one. That is group commit for writes, and for reads it spreads the
price of the hop (a hop costs about as much as several statements).

Whoever has many works waiting does not hold up the others: works are taken in turn, one of each name at a time.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiosqlite

from smartfeeds.errors import StoreError


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

    def settle(self) -> None:
        """Tells the caller, unless he has gone."""
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


class Turns:
    """Jobs that wait: those of one turn in their order, and one of each turn after the other."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Job]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, job: Job) -> None:
        """Puts a job behind the others of its turn."""
        queue = self._queues.get(job.turn)
        if queue is None:
            self._queues[job.turn] = deque((job,))
        else:
            queue.append(job)

    def take(self) -> Job:
        """The next job. Raises KeyError where none waits."""
        turn, queue = self._queues.popitem(last=False)
        job = queue.popleft()
        if queue:
            self._queues[turn] = queue
        return job

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Jobs that were taken last, and in this order, are the next ones again."""
        for job in reversed(jobs):
            queue = self._queues.setdefault(job.turn, deque())
            queue.appendleft(job)
            self._queues.move_to_end(job.turn, last=False)


class Lanes:
    """A queue of works that is served by one or more connections."""

    def __init__(self, lanes: list[Lane], batch: int) -> None:
        self._idle = lanes
        self._batch = batch
        self._waiting = Turns()
        self._serving: set[asyncio.Task[None]] = set()
        self._closed = False

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
        return await job.future

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
            if not job.future.done():
                jobs.append(job)
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
            job.settle()

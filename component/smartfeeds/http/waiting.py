"""Held pulls: requests that wait for the next item of a view, and get it at the same time (SF-004, SF-056, A-11).

Equal pulls form a group. When their feed changes, the answer is made once, and its bytes are written to all connections
of the group before any request is finished. A held pull has no mark in the service: its client has the position, and
the answer is that of a pull at the time of the change.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")
Write = Callable[[bytes], object]

# Groups that are asked for together: their reads share a snapshot and a switch to another thread. Their pages are in
# memory at the same time.
ASKED_AT_ONCE = 16
WRITTEN_AT_ONCE = 512  # connections to write to before other tasks run: about 6 ms
ANSWERED_AT_ONCE = 128  # requests to finish before other tasks run


@dataclass(eq=False, slots=True)
class HeldPull(Generic[Answer]):
    """One held pull.

    `write` gets the bytes of the answer as soon as the answer exists, and then `timer` is cancelled. `answered` gets
    the answer when the whole group has its bytes, and None after the timeout.
    """

    write: Write | None
    answered: "asyncio.Future[Answer | None]"
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class _HeldFeed(Generic[Key, Answer]):
    """The held pulls of one node, by group. A group is a dictionary, because pulls are answered in the order of their
    arrival and leave in any order. `dirty`: the node has changed since the groups were asked for last."""

    groups: dict[Key, dict[HeldPull[Answer], None]] = field(default_factory=dict)
    dirty: bool = False
    task: "asyncio.Task[None] | None" = None


class HeldPulls(Generic[Key, Answer]):
    """Holds pulls until `answer(key)` returns an answer; None means that there is none yet. `raw` returns the bytes of
    an answer, which are written before the requests are finished."""

    def __init__(
        self, answer: Callable[[Key], Coroutine[Any, Any, Answer | None]], raw: Callable[[Answer], bytes]
    ) -> None:
        self._answer = answer
        self._raw = raw
        self._feeds: dict[int, _HeldFeed[Key, Answer]] = {}
        # The number of changes so far, of all feeds. A caller passes the number that it has seen to `wait`.
        self.changes = 0
        self._stopped = False
        self.held = 0

    @property
    def node_nos(self) -> Collection[int]:
        """The nodes of the held pulls."""
        return list(self._feeds)

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""
        self.changes += 1
        for node_no in node_nos:
            feed = self._feeds.get(node_no)
            if feed is not None:
                self._ask(feed, node_no)

    async def wait(
        self, node_no: int, key: Key, seen: int, timeout_s: float, write: Write | None = None
    ) -> Answer | None:
        """Waits for the answer, which is passed to `write` first; None after the timeout.

        `seen` is the value of `changes` before the caller found nothing. Raises ConnectionError after `stop`.
        """
        if self._stopped:
            raise ConnectionResetError("the service ends")
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer | None] = loop.create_future()
        waiter = HeldPull(write, answered, loop.call_later(timeout_s, _give_up, answered))
        feed = self._feeds.setdefault(node_no, _HeldFeed())
        feed.groups.setdefault(key, {})[waiter] = None
        self.held += 1
        try:
            if seen != self.changes:  # a change came between the read of the caller and this wait
                self._ask(feed, node_no)
            return await answered
        finally:
            waiter.timer.cancel()
            self.held -= 1
            self._forget(node_no, key, waiter)

    async def stop(self) -> None:
        """Cancels the work on answers and ends all waits with ConnectionResetError."""
        self._stopped = True
        tasks = [feed.task for feed in self._feeds.values() if feed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for feed in self._feeds.values():
            _end(waiter for group in feed.groups.values() for waiter in group)

    def _forget(self, node_no: int, key: Key, waiter: HeldPull[Answer]) -> None:
        feed = self._feeds.get(node_no)
        if feed is None:
            return
        group = feed.groups.get(key, {})
        group.pop(waiter, None)
        if not group:
            feed.groups.pop(key, None)
        if not feed.groups and feed.task is None:
            del self._feeds[node_no]

    def _ask(self, feed: _HeldFeed[Key, Answer], node_no: int) -> None:
        feed.dirty = True
        if feed.task is None:
            feed.task = asyncio.get_running_loop().create_task(self._run(feed), name=f"held {node_no}")
            feed.task.add_done_callback(lambda task: self._ended(feed, node_no, task))

    async def _run(self, feed: _HeldFeed[Key, Answer]) -> None:
        while feed.dirty:
            feed.dirty = False  # before the pages are read: a change that comes meanwhile sets it again
            # Large groups first, so that a client with many different views delays few others.
            keys = sorted(feed.groups, key=lambda key: -len(feed.groups[key]))
            asked = 0
            # One, one, two, four: the first ones may have to wait for the filter index, and the others find it current.
            while part := keys[asked : asked + min(max(asked, 1), ASKED_AT_ONCE)]:
                asked += len(part)
                await self._answer_groups(feed, part)

    async def _answer_groups(self, feed: _HeldFeed[Key, Answer], keys: list[Key]) -> None:
        if len(keys) == 1:  # most feeds have one group, which needs no task
            await self._deliver(feed, keys[0], await self._answer(keys[0]))
            return
        async with asyncio.TaskGroup() as tasks:
            for key, answer in [(key, tasks.create_task(self._answer(key))) for key in keys]:
                await self._deliver(feed, key, await answer)

    async def _deliver(self, feed: _HeldFeed[Key, Answer], key: Key, answer: Answer | None) -> None:
        """Writes the bytes to all connections of a group first, because finishing one request takes longer than several
        writes.
        """
        if answer is None:
            return
        # Removed first: an equal pull that comes from here on has a group of its own, for the next answer. Nobody else
        # has these waiters now, so their wait must end here, whatever happens.
        waiters = list(feed.groups.pop(key, {}))
        try:
            data = self._raw(answer) if any(waiter.write is not None for waiter in waiters) else b""
            for number, waiter in enumerate(waiters, 1):
                if waiter.write is not None and not waiter.answered.done():
                    waiter.timer.cancel()
                    waiter.write(data)
                if number % WRITTEN_AT_ONCE == 0:
                    await asyncio.sleep(0)
            for number, waiter in enumerate(waiters, 1):
                if not waiter.answered.done():
                    waiter.answered.set_result(answer)
                if number % ANSWERED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            _end(waiters)
            raise
        except Exception as error:  # noqa: BLE001 - each request passes it to the failure boundary of the router
            _end(waiters, error)

    def _ended(self, feed: _HeldFeed[Key, Answer], node_no: int, task: "asyncio.Task[None]") -> None:
        feed.task = None
        if not feed.groups:
            self._feeds.pop(node_no, None)
        elif feed.dirty and not task.cancelled():  # the node has changed since the last look of the task
            self._ask(feed, node_no)


def _give_up(answered: "asyncio.Future[Answer | None]") -> None:
    if not answered.done():
        answered.set_result(None)


def _end(waiters: Iterable[HeldPull[Answer]], error: Exception | None = None) -> None:
    """Ends waits with an error, by default because the service stops."""
    for waiter in waiters:
        if not waiter.answered.done():
            waiter.answered.set_exception(error or ConnectionResetError("the service ends"))

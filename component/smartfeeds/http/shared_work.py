"""Runs the same work once for all callers that ask for it at the same moment.

A caller never gets a result that is older than its request: a caller that comes while the work runs gets the next run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Asker = TypeVar("Asker")


class SharedWork(Generic[Key, Asker, Result]):
    """Runs `work(key, asker)` for the first asker, one run at a time for each key. `get` raises its errors."""

    def __init__(self, work: Callable[[Key, Asker], Awaitable[Result]]) -> None:
        self._work = work
        self._next: dict[Key, asyncio.Task[Result]] = {}
        # The runs. The future is done at the end of a run; None while no caller waits for it.
        self._running: dict[Key, asyncio.Future[None] | None] = {}

    async def get(self, key: Key, asker: Asker) -> Result:
        """The result of a run that begins after this call."""
        task = self._next.get(key) if self._next else None
        if task is None:
            if key not in self._running:
                return await self._run(key, asker)  # nobody to share with: no task
            task = self._next[key] = asyncio.get_running_loop().create_task(self._run_next(key, asker))
            task.add_done_callback(_look_at)
        # A caller that is cancelled must not cancel the run for the others.
        return await asyncio.shield(task)

    async def _run(self, key: Key, asker: Asker) -> Result:
        self._running[key] = None
        try:
            return await self._work(key, asker)
        finally:
            if (ended := self._running.pop(key)) is not None and not ended.done():
                ended.set_result(None)

    async def _run_next(self, key: Key, asker: Asker) -> Result:
        try:
            while key in self._running:
                ended = self._running[key] = self._running[key] or asyncio.get_running_loop().create_future()
                await ended
        finally:
            # A caller that comes from here on gets the next run.
            del self._next[key]
        return await self._run(key, asker)


def _look_at(task: "asyncio.Task[Result]") -> None:
    """Marks the exception as retrieved: all callers may be gone."""
    if not task.cancelled():
        task.exception()

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
        self._running: dict[Key, asyncio.Task[Result]] = {}

    async def get(self, key: Key, asker: Asker) -> Result:
        """The result of a run that begins after this call."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.get_running_loop().create_task(self._run(key, asker))
            task.add_done_callback(_look_at)
        # A caller that is cancelled must not cancel the run for the others.
        return await asyncio.shield(task)

    async def _run(self, key: Key, asker: Asker) -> Result:
        running = self._running.get(key)
        if running is not None:
            await asyncio.wait((running,))
        # A caller that comes from here on gets the next run.
        self._running[key] = self._next.pop(key)
        try:
            return await self._work(key, asker)
        finally:
            del self._running[key]


def _look_at(task: "asyncio.Task[Result]") -> None:
    """Marks the exception as retrieved: all callers may be gone."""
    if not task.cancelled():
        task.exception()

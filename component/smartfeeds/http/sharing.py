"""Work that many ask for at the same moment is done once for all of them.

Nobody gets what was found out before he asked: who comes while a work runs gets the result of the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Asker = TypeVar("Asker")


class Shared(Generic[Key, Asker, Result]):
    """Runs `work(key, asker)`, one at a time for each key, for the first who asks. `get` raises what it raises."""

    def __init__(self, work: Callable[[Key, Asker], Awaitable[Result]]) -> None:
        self._work = work
        self._next: dict[Key, asyncio.Task[Result]] = {}
        self._running: dict[Key, asyncio.Task[Result]] = {}

    async def get(self, key: Key, asker: Asker) -> Result:
        """The result of a work that begins after this was called."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.get_running_loop().create_task(self._run(key, asker))
            task.add_done_callback(_look_at)
        # Who goes takes nothing away from the others.
        return await asyncio.shield(task)

    async def _run(self, key: Key, asker: Asker) -> Result:
        running = self._running.get(key)
        if running is not None:
            await asyncio.wait((running,))
        # Who comes from here on gets the one after this.
        self._running[key] = self._next.pop(key)
        try:
            return await self._work(key, asker)
        finally:
            del self._running[key]


def _look_at(task: "asyncio.Task[Result]") -> None:
    """There may be nobody left who wants to know how it ended."""
    if not task.cancelled():
        task.exception()

"""Background work that runs on one process at a time."""

import asyncio
from collections.abc import Callable, Coroutine

from smartfeeds.delivery.shards import shard_of_name


class Duty:
    """Background work that runs while this process owns the shard of its name (`ownership.ShardWork`).

    `work` returns the coroutine of the work, which runs for ever. `spawn` starts it.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Coroutine[None, None, None]],
        spawn: Callable[[Coroutine[None, None, None], str], "asyncio.Task[None]"],
    ) -> None:
        self._name = name
        self._shard = shard_of_name(name)
        self._work = work
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None

    async def begin(self, shards: frozenset[int]) -> None:
        """Starts the work if its shard is one of these, after an earlier run of it has ended."""
        if self._shard not in shards:
            return
        # `drop` does not wait, and this process may own the shard again before the task has ended.
        if self._task is not None and self._task.cancelling():
            await asyncio.wait((self._task,))
        if self._task is None or self._task.done():
            self._task = self._spawn(self._work(), self._name)

    async def end(self, shards: frozenset[int]) -> None:
        """Ends the work if its shard is one of these."""
        self.drop(shards)
        if self._shard in shards and self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def drop(self, shards: frozenset[int]) -> None:
        """Cancels the work if its shard is one of these."""
        if self._shard in shards and self._task is not None:
            self._task.cancel()

"""Background tasks that end with their owner."""

import asyncio
from collections.abc import Coroutine


class Tasks:
    """The tasks of one owner. `name` is the name of each task."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself has weak references to tasks only

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Starts work and returns its task."""
        task = asyncio.get_running_loop().create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def idle(self) -> None:
        """Waits until no task runs."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def stop(self) -> None:
        """Cancels all tasks and waits until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.idle()

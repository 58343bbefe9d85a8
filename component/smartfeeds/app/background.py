"""The background tasks of the service: most of them never end, and the end of one of them ends the service."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator

import structlog

from smartfeeds.delivery.changes import log_failures_of
from smartfeeds.errors import StoreLostError

_log = structlog.get_logger()


class BackgroundTasks:
    """The tasks that run now. `failed` is set, and `on_failure` is called, when one of them has raised an exception:
    only a restart helps then. `loss` is set if the exception says that the store is lost.
    """

    def __init__(self, on_failure: Callable[[], object]) -> None:
        self.failed = False
        self.loss: StoreLostError | None = None
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []

    def __iter__(self) -> Iterator["asyncio.Task[None]"]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[None, None, None], name: str) -> "asyncio.Task[None]":
        """Starts a task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._end)
        return task

    def spawn_operation(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> Callable[[], object]:
        """Starts an operation of an admin, whose failure is logged. Returns the function that cancels it."""
        return self.spawn(log_failures_of(work), name).cancel

    async def stop(self) -> None:
        """Cancels all tasks, and waits until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, task: "asyncio.Task[None]") -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            if isinstance(error, StoreLostError):
                self.loss = error
                _log.error("store_lost", reason=str(error))
            else:
                _log.error("task_failed", task=task.get_name(), exc_info=error)
            self.failed = True
            self._on_failure()

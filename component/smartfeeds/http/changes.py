"""Changes that have begun are finished even if their client disconnects, so that every stored change is pushed."""

import asyncio

import structlog

from smartfeeds.errors import FeedError, StoreError
from smartfeeds.service.answers import Handle
from smartfeeds.service.requests import Answer, Request

_log = structlog.get_logger()


class Changes:
    """Performs requests that change something. Call `stop` once."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._tasks: set[asyncio.Task[Answer]] = set()

    async def perform(self, request: Request) -> Answer:
        """Performs a change, even if the caller is cancelled meanwhile."""
        task = asyncio.ensure_future(self._handle(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_report)
            raise

    async def stop(self) -> None:
        """Waits for changes that have begun."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _report(task: "asyncio.Task[Answer]") -> None:
    """Logs the error of a change whose client is gone, because nobody else reads it."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, StoreError):
        _log.error("store_failed", reason=str(error))
    elif error is not None and not isinstance(error, FeedError):
        _log.error("request_failed", exc_info=error)

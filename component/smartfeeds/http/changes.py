"""Changes that have begun are finished even if their client disconnects, so that every stored change is pushed."""

import asyncio

from smartfeeds.service.answers import Handle
from smartfeeds.service.requests import Answer, Request


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
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Waits for changes that have begun."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

"""Removes expired items in the background (`service.expiry`)."""

import asyncio
from functools import partial

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.service.expiry import expire, overdue_nodes
from smartfeeds.service.feeds import FeedService

SWEEP_S = 60.0  # requests see no expired items, so this only bounds how long they use space


class ExpirySweep:
    """Looks for expired items once a minute."""

    def __init__(self, service: FeedService) -> None:
        self._service = service

    async def run(self) -> None:
        """Sweeps for ever."""
        while True:
            with failures_logged():
                await self.sweep()
            await asyncio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        """Removes the items that have expired, in small transactions. Raises StoreError."""
        after: int | None = 0
        while after is not None:
            overdue, after = await self._service.read(partial(overdue_nodes, after=after), turn="expiry")
            for each in overdue:
                await self._service.write(partial(expire, overdue=each), turn="expiry")

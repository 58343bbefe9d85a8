"""Ends subscriptions in the background when their leases are over."""

import asyncio

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.leases import end_leases, has_ended

CHECK_S = 10.0  # a subscription may outlive its lease by so much; a check is one look into an index


class LeaseSweep:
    """Looks for ended leases at a steady pace."""

    def __init__(self, service: FeedService) -> None:
        self._service = service

    async def sweep(self) -> None:
        """Ends every subscription whose lease is over, in small transactions. Raises StoreError."""
        if await self._service.read(has_ended, turn="leases"):
            await self._service.write(end_leases, turn="leases")

    async def run(self) -> None:
        """Sweeps for ever."""
        while True:
            with failures_logged():
                await self.sweep()
            await asyncio.sleep(CHECK_S)

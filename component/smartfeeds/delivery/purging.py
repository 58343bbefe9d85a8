"""Continues purges that another process began and did not end, because it was stopped or killed.

A purge retracts items in several transactions (`service.publishing.purge`). Its event is stored with the first of them.
"""

import asyncio
from functools import partial

from smartfeeds.delivery.changes import LOOK_S, failures_logged
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.publishing import continue_purge


class OpenPurges:
    """Runs the open purges of the store to their end."""

    def __init__(self, service: FeedService) -> None:
        self._service = service

    async def run(self) -> None:
        """Continues open purges at once, and then every `LOOK_S` seconds, for ever. Failures are logged."""
        while True:
            with failures_logged():
                await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Continues every open purge until it ends. Raises StoreError."""
        for purge in await self._service.read(lambda tx, _context: tx.open_purges()):
            await self._service.write(partial(continue_purge, node_no=purge.node_no), turn="purge")

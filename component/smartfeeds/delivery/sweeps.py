"""Background work of the store: the end of leases, the expiry of items, purges that a stop interrupted, and counts that
several processes have changed. Features have sweeps of their own.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smartfeeds.delivery.changes import LOOK_S, failures_logged
from smartfeeds.service.context import Context
from smartfeeds.service.expiry import due_expiry
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.leases import due_leases
from smartfeeds.service.publishing import due_purges
from smartfeeds.service.steps import WriteStep
from smartfeeds.service.tallies import due_tallies
from smartfeeds.store.base import ReadTx

# The steps that are due behind a number, and the number behind which the search continues (None: at the end).
DueSteps = tuple[Sequence[WriteStep[object]], int | None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One kind of background work. `pause_s` is the time between two sweeps, in seconds."""

    name: str
    find_due: Callable[[ReadTx, Context, int], DueSteps]
    pause_s: float

    async def sweep(self, service: FeedService) -> None:
        """Runs all steps that are due, each in a transaction. Raises StoreError."""
        after: int | None = 0
        while after is not None:
            steps, after = await self._due(service, after)
            for step in steps:
                await service.write(step, turn=self.name)

    async def _due(self, service: FeedService, after: int) -> DueSteps:
        return await service.read(lambda tx, context: self.find_due(tx, context, after), turn=self.name)

    async def run(self, service: FeedService) -> None:
        """Sweeps for ever. Failures are logged."""
        while True:
            with failures_logged():
                await self.sweep(service)
            await asyncio.sleep(self.pause_s)


# The pause of LEASES is the greatest delay of the end of a lease; a sweep without work is one look-up in an index. The
# pause of EXPIRY bounds only how long expired items use space: requests never see them.
# A purge is due if its process was stopped; LOOK_S is also the pause after which changes of other processes are
# searched.
LEASES = Sweep("leases", due_leases, 10.0)
EXPIRY = Sweep("expiry", due_expiry, 60.0)
PURGES = Sweep("purges", due_purges, LOOK_S)
# A count has a row for each connection that has changed it. The sweep only bounds their number.
TALLIES = Sweep("tallies", due_tallies, 600.0)
SWEEPS = (LEASES, EXPIRY, PURGES, TALLIES)

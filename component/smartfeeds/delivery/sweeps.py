"""Background work that is due at a time or after a restart: each sweep reads what is due, and does it step by step."""

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
from smartfeeds.store.base import ReadTx

# The steps that are due among the next nodes behind a number, and the number to go on with.
DueSteps = tuple[Sequence[WriteStep[object]], int | None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One kind of background work. `pause_s` is the time between two sweeps, in seconds."""

    name: str
    find_due: Callable[[ReadTx, Context, int], DueSteps]
    pause_s: float

    async def sweep(self, service: FeedService) -> None:
        """Does everything that is due, in small transactions. Raises StoreError."""
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


# A lease ends at most one pause of the sweep late, and a check is one look into an index. Requests see no
# expired items, so the pause only bounds how long these use space. Purges are open after a process was stopped.
LEASES = Sweep("leases", due_leases, 10.0)
EXPIRY = Sweep("expiry", due_expiry, 60.0)
PURGES = Sweep("purges", due_purges, LOOK_S)
SWEEPS = (LEASES, EXPIRY, PURGES)

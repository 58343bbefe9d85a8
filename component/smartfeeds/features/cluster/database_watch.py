"""The state of the database server, read from the store for the metrics (`database_state`)."""

import asyncio
from collections.abc import Awaitable, Callable

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.features.cluster.metrics import DatabaseReading, StandbyLagReading, StandbyReading
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.database_state import DatabaseState

# The statements take 2 ms beside the server, on a connection for reads, so they delay neither the event loop nor beats.
PAUSE_S = 15.0


class DatabaseWatch:
    """Reads the state of the database server again and again."""

    def __init__(self, service: FeedService, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._service = service
        self._sleep = sleep
        self._state: DatabaseState | None = None

    async def look(self) -> None:
        """Reads the state once. Raises StoreError; then there is no reading, because the last one may be wrong now."""
        self._state = None
        self._state = await self._service.read(lambda tx, _context: tx.database_state(), turn="database state")

    async def run(self) -> None:
        """Reads the state for ever. Failures are logged."""
        while True:
            with failures_logged():
                await self.look()
            await self._sleep(PAUSE_S)

    def load(self) -> tuple[DatabaseReading, ...]:
        """Returns the last reading of the load; nothing before the first read and after a failure."""
        state = self._state
        if state is None:
            return ()
        return (DatabaseReading(state.free_connections, state.waiting_sessions, state.longest_wait_s),)

    def standbys(self) -> tuple[StandbyReading, ...]:
        """Returns the last numbers of standbys by state, as `load`."""
        return () if self._state is None else tuple(StandbyReading(*pair) for pair in self._state.standbys.items())

    def standby_lag(self) -> tuple[StandbyLagReading, ...]:
        """Returns the last lag of the slowest standby, as `load`; nothing if no standby shows it."""
        lag_bytes = None if self._state is None else self._state.standby_lag_bytes
        return () if lag_bytes is None else (StandbyLagReading(lag_bytes),)

"""The watch of the database server: what it reads, and what it shows when it cannot read."""

import asyncio

from smartfeeds.errors import StoreError
from smartfeeds.features.cluster import database_watch
from smartfeeds.features.cluster.database_watch import DatabaseWatch
from smartfeeds.features.cluster.metrics import DatabaseReading, StandbyLagReading, StandbyReading
from smartfeeds.store.database_state import DatabaseState
from support.faketime import FakeTime, settle

STATE = DatabaseState(74, 1, 2.5, {"sync": 1, "async": 0}, 4_096)


class FakeService:
    """A service whose reads end with the next of `outcomes`."""

    def __init__(self, *outcomes: DatabaseState | StoreError | None) -> None:
        self.outcomes = list(outcomes)

    async def read(self, _work: object, *, turn: str) -> DatabaseState | None:
        assert turn
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome


async def test_watch_shows_the_last_state_and_none_while_the_database_fails() -> None:
    """[OPS-082] The state before a failure may be wrong. The watch goes on after it."""
    time = FakeTime()
    watch = DatabaseWatch(FakeService(STATE, StoreError("gone"), STATE), time.sleep)  # type: ignore[arg-type]
    shown = [(watch.load(), watch.standbys(), watch.standby_lag())]
    task = asyncio.create_task(watch.run())
    for pause_s in (database_watch.PAUSE_S, database_watch.PAUSE_S, 0.0):
        await settle()
        shown.append((watch.load(), watch.standbys(), watch.standby_lag()))
        await time.advance(pause_s)
    task.cancel()

    nothing = ((), (), ())
    state = (
        (DatabaseReading(74, 1, 2.5),),
        (StandbyReading("sync", 1), StandbyReading("async", 0)),
        (StandbyLagReading(4_096),),
    )
    assert shown == [nothing, state, nothing, state]

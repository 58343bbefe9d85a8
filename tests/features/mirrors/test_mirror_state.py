"""The state of a mirror: what `note` and `write` changed is stored, whatever fails or is cancelled in between."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from smartfeeds.delivery.lane import RETRY_S
from smartfeeds.errors import StoreError
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore, StateChange
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.service.context import Context
from smartfeeds.store.base import Work, WriteTx
from support.faketime import FakeTime, settle
from support.waiting import HANG_S, in_vain
from support.world import FEED, World

NAME = "m"


class FailingStore:
    """A store whose next `failures` writes fail."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.failures = 0

    def submit_write(self, work: Work) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the database is locked")
        self.inner.submit_write(work)


async def state_store(world: World, time: FakeTime | None = None) -> MirrorStateStore:
    mirror = make_mirror(node=FEED, address="https://a.example/f", name=NAME)
    await world.store.write(lambda tx: stored_mirrors.put(tx, MirrorRow(mirror)))
    tools = SourceTools(world.clock, (time or FakeTime()).sleep, lambda: 0.0)
    return MirrorStateStore(world.service, NAME, Direction.IN, MirrorState(), tools)


async def stored_items(world: World) -> int:
    row = await world.store.read(lambda tx: stored_mirrors.mirror(tx, NAME))
    assert row is not None
    return row.state(Direction.IN).items


def items(number: int) -> Callable[[MirrorState], MirrorState]:
    return lambda state: replace(state, items=number)


async def test_change_is_stored_after_a_pause_if_the_store_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    time, failing = FakeTime(), FailingStore(world.store)
    states = await state_store(world, time)
    monkeypatch.setattr(world.service, "store", failing)
    failing.failures = 2
    states.note(items(5))
    await settle()
    assert (await stored_items(world), time.sleeping) == (0, [RETRY_S])
    await time.advance(RETRY_S)
    assert (await stored_items(world), time.sleeping) == (0, [RETRY_S])
    await time.advance(RETRY_S)

    assert (await stored_items(world), time.sleeping) == (5, [])


async def test_settle_stores_a_change_whose_write_has_failed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = FailingStore(world.store)
    states = await state_store(world)
    monkeypatch.setattr(world.service, "store", failing)
    failing.failures = 1
    states.note(items(5))
    await settle()
    await states.settle()
    assert await stored_items(world) == 5

    states.note(items(6))
    await settle()
    assert await stored_items(world) == 6, "later changes are stored as before"


async def test_settle_ends_although_the_store_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = FailingStore(world.store)
    states = await state_store(world)
    monkeypatch.setattr(world.service, "store", failing)
    failing.failures = 2
    states.note(items(5))
    await settle()
    await states.settle()

    assert (await stored_items(world), failing.failures) == (0, 0)


async def test_write_of_a_cancelled_caller_is_not_overwritten(world_on_disk: World) -> None:
    """The store commits what has begun. A `note` after it must not store the state from before it."""
    states = await state_store(world_on_disk)
    began, end = threading.Event(), threading.Event()

    def work(_tx: WriteTx, _context: Context) -> tuple[None, StateChange]:
        began.set()
        assert end.wait(HANG_S), in_vain("the end of the work")
        return None, items(5)

    caller = asyncio.create_task(states.write(work))
    await asyncio.to_thread(began.wait)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    end.set()
    states.note(lambda state: replace(state, position="p"))
    await states.settle()

    assert (states.state.items, states.state.position) == (5, "p")
    assert await stored_items(world_on_disk) == 5

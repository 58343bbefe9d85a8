"""Requests whose caller is cancelled while the store works for them."""

import asyncio
import threading
from collections.abc import Collection
from typing import Any

import pytest

from smartfeeds.service.context import Context
from smartfeeds.service.publishing import publish
from smartfeeds.service.requests import Publish
from smartfeeds.store.base import WriteTx
from support.waiting import HANG_S, in_vain, wait_for
from support.world import FEED, OWNER, SERVICE, World, draft, entry, jid


@pytest.mark.parametrize("turn", ["", OWNER])
async def test_publish_of_a_cancelled_caller_wakes_the_deliveries(
    world_on_disk: World, monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    """The store commits it, and subscribers must not wait for the next look at the store."""
    world = world_on_disk
    await world.create()
    node_no = (await world.node()).node_no
    began, end, announced = threading.Event(), threading.Event(), asyncio.Event()
    changes: list[Collection[int]] = []

    def look(node_nos: Collection[int]) -> None:
        changes.append(set(node_nos))
        announced.set()

    monkeypatch.setattr(world.service, "_on_change", look)
    request = Publish(jid(OWNER), SERVICE, FEED, "a", draft(entry("a")))

    def work(tx: WriteTx, context: Context) -> Any:
        began.set()
        assert end.wait(HANG_S), in_vain("the end of the work")
        return publish(tx, context, request)

    caller = asyncio.create_task(world.service.write(work, turn=turn))
    await asyncio.to_thread(began.wait)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    assert caller.cancelled() and not changes
    end.set()
    await wait_for(announced.wait(), "the announcement of the change")

    assert changes == [{node_no}]
    assert await world.ids_of(FEED) == "a"

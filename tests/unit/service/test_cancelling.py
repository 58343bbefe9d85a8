"""Requests whose caller is cancelled while the store works for them."""

import asyncio
import threading
from collections.abc import Collection
from typing import Any

import pytest

from smartfeeds.service.context import Context
from smartfeeds.service.publishing import publish
from smartfeeds.service.requests import Publish, Pull
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


async def test_read_of_a_cancelled_caller_does_not_go_on_after_its_index(
    world_on_disk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read begins anew when the filter index is up to date. Nobody waits for it any more."""
    world = world_on_disk
    await world.create()
    await world.publish_all("a b c")
    began, end = threading.Event(), threading.Event()
    index = WriteTx.index_node

    def index_slowly(tx: WriteTx, node_no: int, limit: int) -> int:
        began.set()
        assert end.wait(HANG_S), in_vain("the end of the index")
        return index(tx, node_no, limit)

    monkeypatch.setattr(WriteTx, "index_node", index_slowly)
    caller = asyncio.create_task(world.pull(f"{FEED}?q=a"))
    await asyncio.to_thread(began.wait)
    tasks = list(world.service.tasks._tasks)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    end.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert caller.cancelled()
    assert world.service.answered[Pull] == 0

"""The list of work that goes on after the answer to a request, through the whole component."""

import asyncio
from functools import partial

import pytest

from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import EmptyResult
from smartfeeds.store.base import WriteTx
from support.component import ALICE, NS, Component, Starter, bare
from support.dialog import Dialog, table

ADMIN = "root@example.org/desk"


async def wait_for_ever(_sweep: Sweep, _service: FeedService) -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with two admins, and with a node of Alice. Only the tests do the work that goes on."""
    monkeypatch.setattr("smartfeeds.delivery.changes.LOOK_S", 3_600)
    monkeypatch.setattr(Sweep, "run", wait_for_ever)
    component = await start(pubsub={"admins": [bare(ADMIN), "ann@example.org"]})
    await component.create(ALICE, "tea", title="Tea & cakes")
    return component


async def work_of(service: Component, user: str) -> list[dict[str, str]]:
    answer = await Dialog(service, user, "list-work").begin()
    return [] if answer.find(".//x:item", NS) is None else table(answer)


def _retire(tx: WriteTx, _context: Context, name: str) -> None:
    node = tx.node(name)
    assert node is not None
    tx.retire_node(node.node_no)


async def test_removed_node_is_listed_until_its_rows_are_gone(
    service: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-070] Only admins see it, because a deleted node has no owners any more."""
    # The notification of the item may still be under way, and would remove the rows.
    monkeypatch.setattr("smartfeeds.push.sender.reap", lambda _tx, _context, node: EmptyResult())
    await service.publish(ALICE, "tea", "one")
    await service.app.service.write(partial(_retire, name="tea"))

    (work,) = await work_of(service, ADMIN)

    assert (work["work"], work["subject"]) == ("removal", "tea")

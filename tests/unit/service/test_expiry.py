"""Items that have expired are gone for every reader at once, whatever the sweep does (XEP-0060 16.4.4)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable

import pytest

from smartfeeds import system
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Mark
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import SMART, Order
from smartfeeds.delivery.deliverer import ConsumerPosition
from smartfeeds.delivery.slices import read_changes
from smartfeeds.service import requests as r
from smartfeeds.service.managed_nodes import ListManagedNodes
from smartfeeds.service.resources import ListAnswer
from support.service import stored_service
from support.shell import Run
from support.world import ALICE, OWNER, SERVICE, World, draft, entry, jid

NODE = "box"
PLAIN = "<n xmlns='urn:example:n'/>"


async def ask(world: World, request: r.Request) -> r.Answer:
    return await world.service.handle(request)


def live_ids(items: Iterable[Item]) -> list[str]:
    return [item.id for item in items if not item.deleted]


async def page(world: World) -> list[str]:
    return live_ids((await world.pull(NODE)).items)


async def items_by_id(world: World) -> list[str]:
    return live_ids((await world.pull(NODE, ids="old new")).items)


async def count(world: World) -> int | None:
    return (await world.pull(NODE, max=0)).count


async def view(world: World) -> list[str]:
    return live_ids((await world.pull(f"{NODE}?order=created")).items)


async def facet(world: World) -> list[str]:
    return live_ids((await world.pull(f"{NODE}?author={OWNER}")).items)


async def document(world: World) -> list[str]:
    answer = await world.service.handle(r.PullFeed(jid(ALICE), SERVICE, NODE, stock=True))
    assert isinstance(answer, r.FeedPage) and answer.page is not None
    return live_ids(answer.page.items)


async def discovered(world: World) -> tuple[str, ...]:
    answer = await world.service.handle(r.GetItemIds(jid(ALICE), SERVICE, NODE))
    assert isinstance(answer, r.ItemIds)
    return answer.ids


async def described(world: World) -> int:
    answer = await world.service.handle(r.GetNodeInfo(jid(ALICE), SERVICE, NODE))
    assert isinstance(answer, r.NodeInfo)
    return answer.node.live


async def managed(world: World) -> tuple[int, int]:
    answer = await world.service.handle(ListManagedNodes(jid(OWNER), SERVICE))
    assert isinstance(answer, ListAnswer)
    return answer.entries[0].items, answer.entries[0].deleted


async def consumed(world: World) -> list[str]:
    consumer = Consumer((await world.node(NODE)).node_no, "hook:x")
    await world.service.write(lambda tx, _context: tx.set_mark(consumer.node_no, Order.MODIFIED, "hook:x", Mark(0, "")))
    batch = await world.service.read(
        lambda tx, context: read_changes(tx, context, consumer, ConsumerPosition(), SMART, 9)
    )
    assert batch is not None
    return live_ids(batch.items)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (page, ["new"]),
        (items_by_id, ["new"]),
        (count, 1),
        (view, ["new"]),
        (facet, ["new"]),
        (document, ["new"]),
        (discovered, ("new",)),
        (described, 1),
        (managed, (1, 1)),
        (consumed, ["new"]),
    ],
)
async def test_no_reader_sees_an_expired_item(
    world: World, read: Callable[[World], Awaitable[object]], expected: object
) -> None:
    """[xep-map 73]: no sweep runs here."""
    await world.create(NODE, item_expire="60")
    await world.publish("old", PLAIN, node=NODE)
    world.clock.move(59)
    await world.publish("new", PLAIN, node=NODE)
    world.clock.move(1)

    assert await read(world) == expected


async def test_expired_item_is_not_sent_after_an_outage(world: World) -> None:
    """Followers of views receive its tombstone, others nothing (xep-map 73)."""
    await world.create(NODE, item_expire="60")
    await world.subscribe(ALICE, NODE)
    await world.subscribe(ALICE, f"{NODE}?order=modified")
    await world.cut()
    await world.publish("old", PLAIN, node=NODE)
    world.clock.move(61)
    await world.start()

    assert [(event.node, event.short) for event in await world.events()] == [(f"{NODE}?order=modified", "-old")]


async def _publish_an_hour_ago() -> None:
    async with stored_service(clock=lambda: system.now_us() - 3_600 * US_PER_S) as service:
        await service.handle(r.Publish(Jid("", service.policy.domain), SERVICE, NODE, "old", draft(entry("Old"))))


def test_commands_show_no_expired_items(ready: Run) -> None:
    """Commands that only read do not remove the items, and `export` does."""
    ready("node", "create", NODE, "--kind", "generic", "--option", "item_expire=60")
    asyncio.run(_publish_an_hour_ago())

    (row,) = json.loads(ready("node", "list", "--json").stdout)
    shown = json.loads(ready("node", "show", NODE, "--json").stdout)
    exported = ready("export", "--node", NODE, "--to", "atom").stdout

    assert [(each["items"], each["deleted"]) for each in (row, shown)] == [(0, 1), (0, 1)]
    assert "<title>Old</title>" not in exported

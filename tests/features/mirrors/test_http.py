"""Mirrors of a Smart Feed over real HTTP: by its address, its view, its documents."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from lxml import etree

from smartfeeds.core.model import Item, Slice
from smartfeeds.core.view import SHARED
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_documents import WebPosition
from smartfeeds.features.mirrors.mirror_http import WebMirrorReader
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.syncing import sync_of
from support.component import ALICE
from support.documents import at_once
from support.sqlite_memory import SqliteMemoryStore
from support.web import Web, WebStarter
from support.world import World, running_world

NODE = "plans"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world(SqliteMemoryStore(), Policy("feeds.b.example")) as made:
        yield made


async def items(service: FeedService) -> dict[str, tuple[bytes, bytes, bool]]:
    """What has to be the same on both sides."""

    def read(tx, context) -> list[Item]:  # type: ignore[no-untyped-def]
        node = tx.node(NODE)
        found = tx.slice(node.node_no, Slice(SHARED, 1_000))
        return [item._replace(sync=sync_of(context, node, item)) for item in found]

    return {item.id: (item.payload, item.sync, item.deleted) for item in await service.read(read)}


async def reader_of(world: World, web: Web, path: str, fetcher: Fetcher) -> WebMirrorReader:
    mirror = make_mirror(node=NODE, address=f"{web.origin}{path}", allow_private=True)
    await world.store.write(lambda tx: stored_mirrors.put(tx, MirrorRow(mirror)))
    tools = SourceTools(world.clock, asyncio.sleep, lambda: 0.0, aside=at_once)
    state_store = MirrorStateStore(world.service, mirror.name, Direction.IN, MirrorState(), tools)
    return WebMirrorReader(mirror, world.service, fetcher, state_store, tools)


@pytest.mark.parametrize(
    "path",
    [
        "/feeds/plans/",
        "/feeds/plans/?order=modified&sync=true",
        "/feeds/plans/?sync=true&max=7",
        "/feeds/plans.atom?sync=true",
        "/feeds/plans.atom?sync=true&max=all",
        "/feeds/plans/?order=created&sync=true",
        "/feeds/plans/?max=7&order=created",
        "/feeds/plans.atom?sync=true&order=created",
    ],
)
async def test_every_address_of_a_feed_gives_all_of_it_and_then_what_is_new(
    start_web: WebStarter, world: World, path: str
) -> None:
    web = await start_web(pubsub={"page_default": 20})
    component = web.component
    await component.create(ALICE, NODE)
    for number in range(50):
        await component.publish(ALICE, NODE, f"item {number}")
        component.clock.advance(1)
    await component.retract(ALICE, NODE, "item 7")
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as fetcher:
        reader = await reader_of(world, web, path, fetcher)
        await reader.read()
        assert await items(world.service) == await items(component.app.service)

        component.clock.advance(60)
        await component.publish(ALICE, NODE, "item 3")
        for number in range(30):
            component.clock.advance(1)
            await component.publish(ALICE, NODE, f"later {number}")
        await reader.read()
        assert await items(world.service) == await items(component.app.service)
        assert (reader.state_store.state.refused, reader.state_store.state.items) == (0, 50 + 31)


@pytest.mark.parametrize("query", ["?order=created&sync=true", "?order=created"])
async def test_position_in_another_order_is_left(start_web: WebStarter, world: World, query: str) -> None:
    """An older version has stored it: a cursor in the order of creation passes over edits and deletions."""
    web = await start_web()
    component = web.component
    await component.create(ALICE, NODE)
    for name in ("a", "b"):
        await component.publish(ALICE, NODE, name)
        component.clock.advance(1)
    page = await web.get(f"/feeds/{NODE}.atom?order=created")
    cursor = etree.fromstring(page.body).findtext(f"{{{FANOUT_NS}}}last_cursor")
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as fetcher:
        reader = await reader_of(world, web, f"/feeds/{NODE}/{query}", fetcher)
        await reader.read()
        await component.retract(ALICE, NODE, "a")
        position = str(WebPosition(cursor, view="sync" not in query))
        reader.state_store.note(lambda state: replace(state, position=position))
        await reader.read()
    assert await items(world.service) == await items(component.app.service)

"""What one batch reads from the store."""

from functools import partial

import pytest

from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.push.batch import NodeBatch, read_batch, read_views
from support.world import ALICE, BOB, CREATED, MODIFIED, World, bare


async def read(world: World) -> NodeBatch:
    """All that the feed holds, as if nothing had been sent."""
    marks = {order: Mark(-1, "") for order in Order}

    await world.service.write(lambda tx, _context: tx.index_some(100))
    found = await world.service.read(lambda tx, context: read_batch(tx, context, 1, marks, frozenset(), lambda _: None))
    assert found is not None
    return found


async def test_totals_are_counted_for_filtered_views_with_a_change_alone(feed: World) -> None:
    """[xep-map 172] [xep-map 249]: thousands of views that a change is not in cost no count; items tell the others."""
    for node in (MODIFIED, CREATED, "comments", "comments?category=news", "comments?category=sport"):
        await feed.subscribe(ALICE, node)
    await feed.subscribe(BOB, "comments?order=created&category=news")
    await feed.publish("a", category="news")

    batch = await read(feed)

    news = ["category=news&order=created", "category=news&order=modified"]
    assert sorted(batch.totals) == news
    assert set(batch.totals.values()) == {1}
    assert len(batch.views) == 6


@pytest.mark.parametrize("item_id", ["", "a"])
async def test_totals_of_generic_nodes_are_always_there(world: World, item_id: str) -> None:
    """[xep-map 172]: a retraction there is an event, and no item tells the total."""
    await world.create("comments", kind="generic")
    await world.subscribe(ALICE, "comments")
    if item_id:
        await world.publish(item_id)

    assert (await read(world)).totals == {"": len(item_id)}


async def test_many_filtered_views_are_counted_a_few_at_a_time(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 249]: whoever follows thousands of views of one feed does not hold up the readers of others."""
    monkeypatch.setattr("smartfeeds.push.batch.VIEWS", 2)
    await feed.publish("a", category="news")
    nodes = [f"comments?category=news&category=c{number}" for number in range(5)]
    for node in nodes:
        await feed.subscribe(ALICE, node)
    batch = await read(feed)
    assert (len(batch.totals), len(batch.previous), len(batch.due)) == (2, 2, 3)

    told = []
    for item_id, category in (("b", "news"), ("c", "sport"), ("d", "news")):
        await feed.publish(item_id, category=category)
        told.append([(one.short, one.total, one.previous, one.last) for one in await feed.events()])

    a, b, _c, d = [bare((await feed.pull(MODIFIED, index=number, max=1)).last) for number in range(4)]
    assert told == [[("+b", 2, a, b)] * 5, [], [("+d", 3, b, d)] * 5]


async def test_views_counted_after_a_publish_include_the_new_item(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 172]: the filter index is brought up to date before the views of a later snapshot are counted."""
    monkeypatch.setattr("smartfeeds.push.batch.VIEWS", 1)
    await feed.publish("a", category="news")
    for category in ("c1", "c2"):
        await feed.subscribe(ALICE, f"comments?category=news&category={category}")
    batch = await read(feed)
    (second,) = batch.due

    await feed.publish("b", category="news")
    batch = await feed.service.read(partial(read_views, batch=batch, known=frozenset()))

    assert batch.totals[second] == 2
    assert not batch.due

"""A node is indexed from its first filtered read on. Until its index is there, filtered pages come from a scan, in
steps that let others through.
"""

import asyncio

import pytest

from smartfeeds.service import feeds
from smartfeeds.store.base import ReadTx
from smartfeeds.store.scan import Scan
from support.world import FEED, World

NEWS = f"{FEED}?category=news"
ITEMS = 12
STEP = 3


@pytest.fixture
async def behind(feed: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A feed of twelve items, of which the index has none, and a scan reads three at a time."""
    monkeypatch.setattr("smartfeeds.store.sql_items.SCAN_LEAST", 3)
    monkeypatch.setattr(feeds, "SCAN_STEP", STEP)
    for number in range(ITEMS):
        await feed.publish(f"i{number}", category="news" if number % 2 else "other")
        feed.clock.move(1)
    return feed


def watch(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the numbers of new items in the steps of the scans that follow."""
    scan_on = ReadTx.scan_on
    steps: list[int] = []

    def watched(tx: ReadTx, scan: Scan, limit: int) -> bool | None:
        before = len(scan.item_nos)
        result = scan_on(tx, scan, limit)
        steps.append(len(scan.item_nos) - before)
        return result

    monkeypatch.setattr(ReadTx, "scan_on", watched)
    return steps


async def is_indexed(world: World) -> bool:
    return await world.service.read(lambda tx, _context: tx.index_current(1))


async def test_page_of_a_scan_is_that_of_the_index(behind: World) -> None:
    """[A-20] [SF-095] [SF-096] The items, the cursors, the index and the count; the index is made afterwards."""

    async def pages() -> list[object]:
        first = await behind.pull(NEWS, max=4)
        rest = await behind.pull(NEWS, after=first.last, max=4)
        newest = await behind.pull(NEWS, before="", max=3)
        created = await behind.pull(f"{NEWS}&order=created", max=3)
        return [first, rest, newest, created]

    scanned = await pages()
    assert not await is_indexed(behind)
    while await behind.service.store.index_some(100):
        pass
    assert await is_indexed(behind)
    assert scanned == await pages()


async def test_a_step_of_a_scan_reads_few_items_and_others_are_served_between_steps(
    behind: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-095] The page is one snapshot: an item that is published meanwhile is in it, and the steps go on to it."""
    steps = watch(monkeypatch)
    works = behind.service.store.works
    page = await behind.pull(NEWS, max=100)
    assert page.count == ITEMS // 2
    assert steps == [STEP] * (ITEMS // STEP) + [0]
    assert behind.service.store.works - works >= len(steps)  # each in a transaction of its own
    assert not await is_indexed(behind)

    await behind.publish("late", category="news")
    assert (await behind.pull(NEWS, max=100)).ids == f"{page.ids} late"
    assert steps[-2:] == [0, 1]  # the scan was kept, and goes on behind the items that it has


async def test_scan_that_is_void_makes_way_for_the_index(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadTx, "scan_on", lambda _tx, _scan, _limit: None)
    assert (await behind.pull(NEWS, max=100)).count == ITEMS // 2
    assert await is_indexed(behind)


async def test_short_backlog_is_indexed_first(behind: World) -> None:
    await behind.store.write(lambda tx: tx.begin_index(1))
    while await behind.service.store.index_some(100):
        pass
    await behind.publish("late", category="news")
    assert not await is_indexed(behind)
    assert (await behind.pull(NEWS, max=100)).count == ITEMS // 2 + 1
    assert await is_indexed(behind)


async def test_node_is_indexed_from_its_first_filtered_read_on(behind: World) -> None:
    """[A-20] Nobody pays for the index of a node that nobody filters; versions that were replaced before count."""
    await behind.publish("i1", category="other")  # it was news
    rows = "SELECT count(DISTINCT item_no) FROM facet"

    async def indexed() -> int:
        return await behind.store.read(lambda tx: tx.number(rows))

    assert await behind.store.index_some(100) == 0
    assert await indexed() == 1  # the replaced version
    page = await behind.pull(NEWS, max=100)
    assert (page.short, page.count) == ("+i3 +i5 +i7 +i9 +i11 ~i1", ITEMS // 2)
    assert await behind.store.index_some(100) == ITEMS
    assert (await indexed(), await behind.pull(NEWS, max=100)) == (ITEMS, page)


async def test_empty_node_is_indexed_from_its_first_filtered_read_on(feed: World) -> None:
    assert (await feed.pull(NEWS, max=9)).count == 0
    await feed.publish("a", category="news")
    assert await feed.store.index_some(100) == 1


async def test_scans_are_kept_for_few_views_and_not_for_ever(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "KEPT_SCANS", 2)
    monkeypatch.setattr(feeds, "KEPT_SCAN_S", 0.0)
    for name in ("news", "other", "none"):
        await behind.pull(f"{FEED}?category={name}", max=1)
    assert len(behind.service._scans) <= 2
    for _ in range(3):
        await asyncio.sleep(0)
    assert not behind.service._scans

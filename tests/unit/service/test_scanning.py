"""A node is indexed from its first filtered read on. Until its index is there, filtered pages come from a scan, in
steps that let others through.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from smartfeeds.core.model import IndexState
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import parse_view
from smartfeeds.service import scans
from smartfeeds.store.base import ReadTx, Work, WriteTx
from smartfeeds.store.scan import Scan
from support.world import FEED, World

NEWS = f"{FEED}?category=news"
ITEMS = 12
STEP = 3


@pytest.fixture
async def behind(feed: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A feed of twelve items, of which the index has none, and a scan reads three at a time.

    Other tasks run before each read.
    """
    read = feed.store.read

    async def yielding(*args: Any, **options: Any) -> Any:
        await asyncio.sleep(0)
        return await read(*args, **options)

    monkeypatch.setattr(feed.store, "read", yielding)
    monkeypatch.setattr("smartfeeds.store.sql_items.SCAN_LEAST", 3)
    monkeypatch.setattr("smartfeeds.service.steps.SCAN_LEAST", 3)
    monkeypatch.setattr(scans, "SCAN_STEP", STEP)
    for number in range(ITEMS):
        await feed.publish(f"i{number}", category="news" if number % 2 else "other")
        feed.clock.move(1)
    return feed


def watch(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the numbers of new items in the steps of the scans that follow."""
    scan_on = ReadTx.scan_on
    steps: list[int] = []

    def watched(tx: ReadTx, scan: Scan, limit: int) -> bool | None:
        before = scan.judged
        result = scan_on(tx, scan, limit)
        steps.append(scan.judged - before)
        return result

    monkeypatch.setattr(ReadTx, "scan_on", watched)
    return steps


async def until(condition: Callable[[], bool]) -> None:
    """Lets the tasks run until a condition holds. The store of these tests answers at once."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never holds")


def hold_writes(world: World, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds the writes of the service until the event is set."""
    event, write = asyncio.Event(), world.service.write

    async def late(*args: Any, **options: Any) -> Any:
        await event.wait()
        return await write(*args, **options)

    monkeypatch.setattr(world.service, "write", late)
    return event


async def is_indexed(world: World) -> bool:
    return await world.service.read(lambda tx, _context: tx.index_state(1) is IndexState.CURRENT)


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


async def test_readers_of_one_view_share_its_scan(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty readers judge each item once. Each of them continues the scan in turn, and pays for its step."""
    steps = watch(monkeypatch)
    read, turns = behind.store.read, list[str]()

    async def noted(work: Callable[[ReadTx], object], *, turn: str = "", touch: Touch | None = None) -> object:
        turns.append(turn)
        return await read(work, turn=turn, touch=touch)

    monkeypatch.setattr(behind.store, "read", noted)
    readers = [f"u{number}@example.org" for number in range(20)]
    pages = await asyncio.gather(*(behind.pull(NEWS, max=100, actor=reader) for reader in readers))
    assert {page.ids for page in pages} == {"i1 i3 i5 i7 i9 i11"}
    assert sum(steps) == ITEMS
    assert set(readers) <= set(turns)


async def test_reader_that_is_cancelled_does_not_end_the_scan_of_others(
    behind: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = watch(monkeypatch)
    readers = [asyncio.create_task(behind.pull(NEWS, max=100)) for _ in range(3)]
    await until(lambda: bool(steps))
    readers[0].cancel()
    pages = await asyncio.gather(*readers, return_exceptions=True)
    assert isinstance(pages[0], asyncio.CancelledError)
    assert [page.count for page in pages[1:]] == [ITEMS // 2] * 2  # type: ignore[union-attr]
    assert sum(steps) == ITEMS


async def test_reader_pauses_while_another_does_a_step(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step runs in another connection. A reader that waits for its turn does not delay others."""
    steps = watch(monkeypatch)
    await behind.pull(NEWS, max=1)
    (shared,) = behind.service._scans._scans.values()
    pauses, sleep = 0, asyncio.sleep

    async def paused(delay_s: float) -> None:
        nonlocal pauses
        if delay_s == scans.BUSY_PAUSE_S:
            pauses += 1
            shared.lock.release()
        await sleep(0)

    monkeypatch.setattr(scans.asyncio, "sleep", paused)
    assert shared.lock.acquire(blocking=False)
    before = len(steps)
    assert (await behind.pull(NEWS, max=100)).count == ITEMS // 2
    assert (pauses, steps[before:]) == (1, [0])
    assert not shared.lock.locked()


async def test_scan_without_readers_is_dropped(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the place of a scan that somebody waits for. A step that runs may end first."""
    steps = watch(monkeypatch)
    reader = asyncio.create_task(behind.pull(NEWS, max=100))
    await until(lambda: bool(steps))
    tasks = list(behind.service.tasks._tasks)
    reader.cancel()
    await asyncio.gather(reader, *tasks, return_exceptions=True)
    assert not behind.service._scans._scans
    assert sum(steps) < ITEMS


async def test_two_scans_run_and_further_readers_wait_for_the_index(
    behind: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scans compete with the index, which serves all views."""
    steps = watch(monkeypatch)
    await behind.store.write(lambda tx: tx.begin_index(1))
    writes = hold_writes(behind, monkeypatch)
    names = ("news", "other", "none", "few")
    readers = [asyncio.create_task(behind.pull(f"{FEED}?category={name}", max=100)) for name in names]
    await asyncio.gather(*readers[:2])
    assert sum(steps) == 2 * ITEMS
    assert not readers[2].done() and not readers[3].done()
    writes.set()
    assert [page.count for page in await asyncio.gather(*readers)] == [ITEMS // 2, ITEMS // 2, 0, 0]
    assert sum(steps) == 2 * ITEMS
    assert await is_indexed(behind)


async def test_scan_above_the_memory_of_scans_is_given_up(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its readers wait for the index. No scan of the view begins until then."""
    monkeypatch.setattr(scans, "SCANS_BYTES", 700)
    steps = watch(monkeypatch)
    await behind.store.write(lambda tx: tx.begin_index(1))
    writes = hold_writes(behind, monkeypatch)
    readers = [asyncio.create_task(behind.pull(NEWS, max=100)) for _ in range(2)]
    await until(lambda: len(steps) == 2)
    readers.append(asyncio.create_task(behind.pull(NEWS, max=100)))
    for _ in range(100):
        await asyncio.sleep(0)
    assert steps == [STEP] * 2  # 792 bytes after the second one
    assert sum(shared.size_bytes for shared in behind.service._scans._scans.values()) == 0
    writes.set()
    assert [page.count for page in await asyncio.gather(*readers)] == [ITEMS // 2] * 3
    assert await is_indexed(behind)


async def test_scan_that_nobody_uses_makes_room_for_another(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "SCANS_BYTES", 2_500)
    kept = behind.service._scans._scans
    for name in ("news", "other"):
        assert (await behind.pull(f"{FEED}?category={name}", max=100)).count == ITEMS // 2
        assert [filters for _node_no, filters in kept] == [parse_view(f"category={name}").filters]  # type: ignore[union-attr]
    assert not await is_indexed(behind)


async def test_pages_of_a_kept_scan_write_nothing(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page begins the index. Whether a scan is shorter is decided once, in a read."""
    submit, writes, decisions = behind.store.submit_write, list[Work](), list[bool]()
    is_shorter = ReadTx.scan_is_shorter

    def noted(work: Work) -> None:
        writes.append(work)
        submit(work)

    def decided(tx: ReadTx, node_no: int) -> bool:
        assert not isinstance(tx, WriteTx)
        decisions.append(is_shorter(tx, node_no))
        return decisions[-1]

    monkeypatch.setattr(behind.store, "submit_write", noted)
    monkeypatch.setattr(ReadTx, "scan_is_shorter", decided)
    page = await behind.pull(NEWS, max=2)
    assert (len(writes), decisions) == (1, [True, True])  # before and after the index has begun
    for _ in range(2):
        page = await behind.pull(NEWS, after=page.last, max=2)
        await behind.pull(f"{NEWS}&order=created", max=1)
    assert page.ids == "i9 i11"
    assert (len(writes), len(decisions)) == (1, 2)


async def test_each_page_moves_the_end_of_its_scan(behind: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer of an earlier page does not drop the scan of a later one."""
    loop = asyncio.get_running_loop()
    call_later, timers = loop.call_later, list[asyncio.TimerHandle]()

    def planned(delay: float, callback: Callable[..., object], *args: Any, **options: Any) -> asyncio.TimerHandle:
        timer = call_later(delay, callback, *args, **options)
        if delay == scans.KEPT_SCAN_S:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", planned)
    for _ in range(3):
        await behind.pull(NEWS, max=1)
    assert [timer.cancelled() for timer in timers] == [True, True, False]
    assert behind.service._scans._scans
    timers[-1]._run()  # type: ignore[attr-defined]
    timers[-1].cancel()
    assert not behind.service._scans._scans

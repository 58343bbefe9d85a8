"""Who is sent when: restarts, lost links, back-pressure, many feeds (design section 4)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.core.model import Mark, NodeEvent
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import Order
from smartfeeds.delivery import dispatcher as module
from smartfeeds.delivery import lane
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition, Outcome
from smartfeeds.errors import StoreError
from smartfeeds.push import sender
from smartfeeds.store.base import Work
from support.faketime import settle
from support.waiting import wait_for
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, T0_US, World, bare


@pytest.fixture
def world(world_on_disk: World) -> World:
    """The store of a running service answers later, so requests and deliveries run between the steps of a delivery."""
    return world_on_disk


async def marks(world: World) -> tuple[Mark | None, Mark | None]:
    """The marks as stored."""
    return await world.store.read(lambda tx: (tx.mark(1, Order.MODIFIED, PUSH), tx.mark(1, Order.CREATED, PUSH)))


def positions(world: World) -> dict[Consumer, ConsumerPosition]:
    """The positions that are kept in memory."""
    return world.dispatcher._lanes[PUSH].positions


async def test_crash_before_anything_was_sent_loses_nothing(feed: World) -> None:
    """[SF-002] [SF-007] [SF-039] [xep-map 175]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    (first,) = await feed.events()
    await feed.dispatcher.save_marks()
    await feed.cut()
    await feed.publish_all("b c")
    await feed.crash()
    await feed.start()

    events = await feed.events()
    assert [event.short for event in events] == ["+b", "+c"]
    assert events[0].previous == first.last and events[1].previous == events[0].last


async def test_crash_after_sending_repeats_at_most_what_was_not_marked(feed: World) -> None:
    """[SF-050] [SF-109]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(ALICE, CREATED)
    await feed.publish("a")
    await feed.settle()
    await feed.dispatcher.save_marks()
    await feed.publish_all("b c")
    before = await feed.events()
    await feed.crash()
    await feed.start()
    again = await feed.events()
    assert [event.xml.get("id") for event in again] == [
        event.xml.get("id") for event in sorted(before, key=lambda e: e.node != MODIFIED) if event.item_id != "a"
    ]
    assert [(event.previous, event.last) for event in again] == [
        (event.previous, event.last)
        for event in sorted(before, key=lambda e: e.node != MODIFIED)
        if event.item_id != "a"
    ]
    await feed.dispatcher.save_marks()
    await feed.crash()
    await feed.start()
    assert await feed.told() == ""


async def test_orderly_end_saves_the_marks(feed: World) -> None:
    """[SF-002]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(ALICE, CREATED)
    await feed.publish("a")
    assert len(await feed.events()) == 2
    await feed.stop()

    cursor = "1304942400_0_e8b7be43"
    assert await marks(feed) == (Mark(T0_US, cursor), Mark(T0_US, "c" + cursor))
    assert await feed.store.read(lambda tx: tx.behind()) == []


@pytest.mark.parametrize("view", [MODIFIED, f"{FEED}?q=odd", FEED])
async def test_restart_keeps_the_chain_of_filtered_views_too(feed: World, view: str) -> None:
    """[xep-map 173] [xep-map 175]"""
    await feed.subscribe(ALICE, view)
    await feed.publish("a", title="odd")
    await feed.publish("b", title="even")
    last = (await feed.events())[-1].last
    await feed.dispatcher.save_marks()
    await feed.crash()
    await feed.start()
    await feed.publish("c", title="odd")

    (event,) = await feed.events()
    assert event.previous == last


async def test_waiting_too_long_is_dropped_and_counted_and_shows_as_a_gap(feed: World) -> None:
    """[SF-041] [SF-049] [xep-map 183]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    (first,) = await feed.events()
    await feed.cut()
    await feed.publish_all("b c")
    feed.clock.move(feed.max_age_s)
    await feed.publish("d")
    await feed.start()
    (event,) = await feed.events()

    assert (event.short, feed.sender.counters.dropped) == ("+d", 2)
    assert event.previous == bare((await feed.pull(MODIFIED, index=2, max=1)).last) != first.last
    assert (await feed.pull(MODIFIED, after=first.last or "")).ids == "b c d"
    await feed.settle()
    await feed.publish("e")
    assert (await feed.events())[0].previous == event.last


async def test_back_pressure_holds_a_feed_and_nothing_else_and_queues_nothing(feed: World) -> None:
    """[SF-041] [xep-map 152] [xep-map 183]"""
    await feed.subscribe(ALICE, MODIFIED)
    feed.wire.gate = asyncio.Event()
    await feed.publish("a")
    await wait_for(feed.wire.waiting.wait(), "a write to wait")
    await feed.publish_all("b c d")
    await feed.publish("b", title="edited")

    assert await feed.ids_of(MODIFIED) == "a c d b"
    assert feed.dispatcher.busy and feed.wire.sent == []
    feed.wire.gate.set()
    assert await feed.told() == "+a +c +d +b"
    assert not feed.dispatcher.busy


async def test_back_pressure_past_the_age_drops_and_goes_on(feed: World) -> None:
    """[SF-041]"""
    await feed.subscribe(ALICE, MODIFIED)
    feed.wire.gate = asyncio.Event()
    await feed.publish("a")
    await wait_for(feed.wire.waiting.wait(), "a write to wait")
    await feed.publish_all("b c")
    feed.clock.move(feed.max_age_s + 10)
    feed.wire.gate.set()
    await feed.settle()
    await feed.publish("d")

    assert await feed.told() == "+a +d"
    assert (feed.sender.counters.dropped, feed.sender.counters.lag_us) == (2, 0)


async def test_many_feeds_take_turns(world: World) -> None:
    """[xep-map 182] Fair between feeds: a long backlog does not hold back a short one."""
    names = [f"n{number:02}" for number in range(40)]
    for name in names:
        await world.create(name)
        await world.subscribe(ALICE, name + "?order=modified")
    await world.cut()
    # Ten batches: the store charges turns by time, so under load the backlog may be served a few times in a row.
    for number in range(640):
        await world.publish(f"i{number}", node=names[0])
    for name in names[1:]:
        await world.publish("x", node=name)
    await world.start()

    nodes = [event.node.partition("?")[0] for event in await world.events()]
    assert nodes.count(names[0]) == 640 and set(nodes) == set(names)
    last_of_the_long = len(nodes) - nodes[::-1].index(names[0])
    assert all(nodes.index(name) < last_of_the_long for name in names[1:])


async def test_link_lost_in_the_middle_goes_on_from_the_mark_when_it_is_back(feed: World) -> None:
    """[SF-039] [xep-map 175]"""
    await feed.subscribe(ALICE, MODIFIED)
    feed.wire.up = False
    await feed.publish_all("a b")
    await feed.settle()
    assert feed.wire.sent == [] and not feed.dispatcher.busy
    await feed.start()

    events = await feed.events()
    assert [event.short for event in events] == ["+a", "+b"]
    assert events[1].previous == events[0].last


async def test_link_cut_while_a_write_waits_moves_nothing(feed: World) -> None:
    await feed.subscribe(ALICE, MODIFIED)
    feed.wire.gate = asyncio.Event()
    await feed.publish("a")
    await wait_for(feed.wire.waiting.wait(), "a write to wait")
    await feed.cut()
    feed.wire.gate = None
    await feed.start()

    assert await feed.told() == "+a"


async def test_nothing_is_read_without_a_link(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-041] Every look wakes all feeds that are behind. Reading their batches would keep the store busy for as long
    as the server is away."""
    await feed.subscribe(ALICE, MODIFIED)
    feed.wire.up = False
    await feed.publish("a")
    await feed.settle()
    reads: list[str] = []
    read = feed.store.read

    async def counted(work: object, *, turn: str = "", touch: Touch | None = None) -> object:
        reads.append(turn)
        return await read(work, turn=turn, touch=touch)  # type: ignore[arg-type]

    monkeypatch.setattr(feed.store, "read", counted)
    await feed.dispatcher.look()
    await feed.settle()
    assert [turn for turn in reads if turn] == []
    feed.wire.up = True
    await feed.dispatcher.look()
    assert await feed.told() == "+a"


async def test_wake_without_a_link_starts_nothing(feed: World) -> None:
    await feed.cut()
    feed.dispatcher.wake([1])

    assert not feed.dispatcher.busy
    await feed.dispatcher.idle()


class Stumbling:
    """A store whose writes or reads fail some times."""

    def __init__(self, inner: Any, *, reads: int = 0, writes: int = 0) -> None:
        self._inner = inner
        self.reads, self.writes = reads, writes

    async def read(self, work: Callable[[Any], Any], **options: Any) -> Any:
        if self.reads:
            self.reads -= 1
            raise StoreError("disk on fire")
        return await self._inner.read(work, **options)

    async def write(self, work: Callable[[Any], Any], **options: Any) -> Any:
        if self.writes:
            self.writes -= 1
            raise StoreError("disk full")
        return await self._inner.write(work, **options)

    def submit_read(self, work: Work) -> None:
        if self.reads:
            self.reads -= 1
            raise StoreError("disk on fire")
        self._inner.submit_read(work)

    def submit_write(self, work: Work) -> None:
        if self.writes:
            self.writes -= 1
            raise StoreError("disk full")
        self._inner.submit_write(work)


async def test_store_that_fails_is_tried_again(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "RETRY_S", 0)
    await feed.subscribe(ALICE, MODIFIED)
    feed.service.store = Stumbling(feed.store)
    await feed.publish("a")
    feed.service.store.reads = 3

    assert await feed.told() == "+a"


async def test_marks_that_cannot_be_saved_are_kept_for_the_next_time(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MARKS_FLUSH_S", 0)
    await feed.subscribe(ALICE, MODIFIED)
    feed.service.store = stumbling = Stumbling(feed.store)
    await feed.publish("a")
    stumbling.writes = 1
    await feed.events()
    await settle()
    old, _ = await marks(feed)
    assert stumbling.writes == 0 and old is not None and old.cursor == ""
    stumbling.writes = 1
    with pytest.raises(StoreError):
        await feed.dispatcher.save_marks()
    await feed.dispatcher.save_marks()

    new, _ = await marks(feed)
    assert new == Mark(T0_US, "1304942400_0_e8b7be43")


async def test_positions_of_idle_feeds_are_forgotten_and_the_chain_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 175] No state in memory that correctness needs."""
    monkeypatch.setattr(module, "POSITIONS", 2)
    monkeypatch.setattr(module, "MARKS_FLUSH_S", 0)
    lasts = {}
    for round_ in range(2):
        for name in "abcde":
            if not round_:
                await world.create(name)
                await world.subscribe(ALICE, name)
            await world.publish(f"i{round_}", node=name)
            (event,) = await world.events()
            assert event.previous == lasts.get(name)
            lasts[name] = event.last
            for _ in range(5):
                await settle()
                await world.store.read(lambda tx: tx.node_count())
    assert len(positions(world)) <= 3


async def test_nodes_deleted_before_their_marks_were_saved_are_no_trouble(feed: World) -> None:
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    await feed.settle()
    await feed.delete()
    assert (await feed.told()).split()[-1] == "delete"
    await feed.dispatcher.save_marks()
    await feed.crash()
    await feed.start()

    assert await feed.told() == ""


async def test_delete_and_purge_survive_a_crash(feed: World) -> None:
    """[xep-map 79] [xep-map 81]"""
    await feed.create("other")
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(BOB, "other")
    await feed.publish("a", node="other")
    await feed.events()
    await feed.cut()
    await feed.purge(node="other")
    await feed.delete()
    await feed.crash()
    await feed.start()

    assert sorted((event.to, event.short) for event in await feed.events()) == [(ALICE, "delete"), (BOB, "purge")]
    assert await feed.store.read(lambda tx: (tx.node_by_no(1), tx.events(2, 9))) == (None, [])


async def test_nobody_subscribed_sends_nothing_and_the_first_subscriber_starts_at_the_newest(feed: World) -> None:
    """[xep-map 173]"""
    await feed.publish_all("a b")
    assert await feed.told() == ""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.unsubscribe(ALICE, MODIFIED)
    await feed.publish("c")
    assert await feed.told() == ""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("d")

    (event,) = await feed.events()
    assert event.previous == bare((await feed.pull(MODIFIED, index=2, max=1)).last)


async def test_sender_that_fails_unexpectedly_is_logged_and_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """[xep-map 182]"""
    for name in ("bad", "good"):
        await world.create(name)
        await world.subscribe(ALICE, name)
    whole = world.sender.deliver

    async def deliver(consumer: Consumer, position: ConsumerPosition) -> Outcome:
        if consumer.node_no == 1:
            raise ValueError("unforeseen")
        return await whole(consumer, position)

    monkeypatch.setattr(world.sender, "deliver", deliver)
    await world.publish("a", node="bad")
    await world.publish("b", node="good")

    assert await world.told() == "+b"
    assert "unforeseen" in capsys.readouterr().out


async def test_any_number_of_changed_feeds_is_sent_by_few_tasks_and_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-007] Memory does not grow with the feeds that have something to send, nor with those that nobody follows."""
    world.dispatcher.register(PUSH, ConsumerKind(world.sender, at_once=3, every_feed=True))
    names = [f"n{number:02}" for number in range(12)]
    for name in names:
        await world.create(name)
    await world.cut()
    for name in names[:6]:
        await world.subscribe(ALICE, name)
    for name in names:
        await world.publish("x", node=name)
    await world.start()
    world.dispatcher.wake(range(1, 13))
    (reading,) = world.dispatcher.readings()

    assert sorted(event.node for event in await world.events()) == names[:6]
    assert reading.running == 3 and sorted(positions(world)) == [Consumer(number, PUSH) for number in range(1, 7)]


async def test_large_item_for_many_is_written_in_parts(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 182] A page of recipients times the largest item would be tens of megabytes at once."""
    monkeypatch.setattr("smartfeeds.push.sender.SPLICE_BYTES", 40_000)
    monkeypatch.setattr("smartfeeds.push.sender.FLUSH_BYTES", 10_000)
    people = [f"u{number}@example.org" for number in range(9)]
    for who in people:
        await feed.subscribe(who, FEED)
    await feed.publish("a", content="x" * 15_000)

    assert [event.to for event in await feed.events()] == people
    assert feed.wire.writes == 5


async def test_event_whose_removal_failed_is_not_sent_again_behind_later_items(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-041] A second purge behind the item would make a client discard it."""
    await world.create()
    await world.subscribe(ALICE, FEED)
    await world.publish("a")
    await world.settle()
    await world.told()
    await world.dispatcher.pause(PUSH)
    await world.purge()
    world.clock.move(1)
    await world.publish("b")
    write, errors = world.service.write, [StoreError("the disk is full")]

    async def failing_write(work: Callable[..., object], *, turn: str = "", touch: Touch | None = None) -> object:
        if "_clean_up" in getattr(work, "__qualname__", "") and errors:
            raise errors.pop()
        return await write(work, turn=turn, touch=touch)  # type: ignore[arg-type]

    monkeypatch.setattr(world.service, "write", failing_write)
    await world.dispatcher.resume(PUSH)
    await world.dispatcher.idle()
    failure = world.dispatcher.failure(Consumer(1, PUSH))
    assert failure is not None and failure.next_us == failure.since_us + int(sender.RETRY_S * US_PER_S)
    assert await world.told() == "purge +b"
    world.dispatcher.hurry(Consumer(1, PUSH))
    await world.dispatcher.idle()
    await world.publish("c")

    assert not errors and await world.told() == "+c"
    assert await world.store.read(lambda tx: tx.events(1, 10)) == []


async def test_events_whose_numbers_and_times_differ_in_order_are_all_sent(world: World) -> None:
    """A clock that steps back gives a later event an earlier time. Each is sent once, in the order of times."""
    await world.create()
    await world.subscribe(ALICE, FEED)
    await world.settle()
    await world.dispatcher.pause(PUSH)
    first_us = world.clock()
    for number in range(70):  # more than a batch, so that the events are sent in two
        await world.publish(f"i{number}")
        world.clock.move(1)
    for at_us in (world.clock(), first_us):
        event = NodeEvent(0, 1, at_us, "configuration")
        await world.store.write(lambda tx, event=event: tx.add_event(event))  # type: ignore[misc]
    await world.dispatcher.resume(PUSH)
    told = (await world.told()).split()

    assert [text for text in told if not text.startswith("+")] == ["configuration", "configuration"]
    assert len(told) == 72 and told[-1] == "configuration"

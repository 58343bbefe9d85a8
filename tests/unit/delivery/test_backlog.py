"""The backlog of all consumers in the metrics: from the store, also while nothing sends."""

import pytest

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.view import Order
from smartfeeds.delivery.backlog import PAUSE_S, BacklogWatch
from smartfeeds.errors import StoreError
from smartfeeds.service.consumers import add_consumer
from smartfeeds.telemetry import BacklogReading
from support.world import ALICE, FEED, World

NOTHING = BacklogReading(0, 0.0, 0.0, 0)


async def look(world: World) -> BacklogReading:
    """What a watch reads that begins now."""
    watch = BacklogWatch(world.service, world.clock)
    assert watch.readings() == ()
    await watch.look()
    (reading,) = watch.readings()
    return reading


async def test_changes_that_nothing_sends_are_counted_with_their_age(feed: World) -> None:
    """[OPS-083] The link is down, so only the store knows of the changes."""
    await feed.subscribe(ALICE, FEED)
    await feed.stop()
    assert await look(feed) == NOTHING
    feed.wire.up = False
    await feed.publish("a")
    feed.clock.move(30)
    await feed.publish("b")
    feed.clock.move(12)

    assert await look(feed) == BacklogReading(1, 42.0, 0.0, 0)

    feed.wire.up = True
    await feed.crash()
    await feed.start()
    assert await feed.told() == "+a +b"
    await feed.stop()
    assert await look(feed) == NOTHING


async def test_other_consumers_are_counted_apart(feed: World) -> None:
    """[OPS-083] A mirror without a connection does not count as a notification that is late."""
    await feed.publish("a")
    await feed.service.write(
        lambda tx, _context: add_consumer(tx, Consumer(1, "mirror:xmpp:b.example?;node=n"), Order.MODIFIED)
    )
    assert await look(feed) == NOTHING
    await feed.publish("b")
    await feed.publish("c")

    assert await look(feed) == BacklogReading(0, 0.0, 0.0, 1)


async def test_ages_grow_between_reads_and_after_a_failed_read(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-083] [OPS-085] The readings are those of the store. A store that fails does not end the watch."""
    await feed.subscribe(ALICE, FEED)
    feed.wire.up = False
    await feed.publish("a")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        feed.clock.move(seconds)
        if len(pauses) == 1:
            monkeypatch.setattr(feed.service, "read", failing)
        if len(pauses) == 3:
            raise EndOfTestError

    async def failing(*_values: object, **_more: object) -> None:
        raise StoreError("the disk is full")

    watch = BacklogWatch(feed.service, feed.clock, sleep)
    with pytest.raises(EndOfTestError):
        await watch.run()

    assert pauses == [PAUSE_S] * 3
    assert watch.readings() == (BacklogReading(1, 3 * PAUSE_S, 0.0, 0),)


class EndOfTestError(Exception):
    """Ends a loop that runs for ever."""

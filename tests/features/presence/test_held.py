"""Events that wait for the presence of a subscriber: nothing is lost and nothing is out of order."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from smartfeeds.core.consumers import HELD, PUSH, held_consumer
from smartfeeds.delivery.backlog import BacklogWatch
from smartfeeds.delivery.deliverer import ConsumerKind
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.features.presence.held import HeldSender
from smartfeeds.features.presence.interests import Interest, Interests
from smartfeeds.features.presence.states import Availability, OnlineResource
from smartfeeds.push.audience import hold
from smartfeeds.push.batch import read_held_batch
from smartfeeds.push.side import PushSide
from smartfeeds.store.base import Store
from smartfeeds.telemetry import BacklogReading
from smartfeeds.xmpp.caps import CapsKey
from support.sqlite_memory import SqliteMemoryStore
from support.world import ALICE, BOB, FEED, SERVICE, World, running

CONSUMER = held_consumer(1, 1)


class PresentWorld(World):
    """Everything below the wire, with the presence of users: `availability` and `interests`."""

    kinds = (PUSH, HELD)

    def __init__(self, store: Store) -> None:
        self.availability, self.interests = Availability(), Interests()
        super().__init__(store)

    def push_side(self, dispatcher: Dispatcher) -> PushSide:
        """What is known of the recipients. Delivers the events that wait for them."""
        held = HeldSender(self.service, self.wire, self.availability, clock=self.clock)
        dispatcher.register(HELD, ConsumerKind(held, on_demand=True))
        return PushSide(self.availability, self.interests)


@pytest.fixture
async def world() -> AsyncIterator[PresentWorld]:
    """A service that is online, and knows who is present."""
    async with running(PresentWorld(SqliteMemoryStore())) as made:
        yield made


@pytest.fixture
async def waiting(world: PresentWorld) -> PresentWorld:
    """A feed whose events wait, and Alice, who is subscribed and offline."""
    await world.create(presence_based_delivery="true")
    await world.subscribe(ALICE, FEED)
    world.availability.watch(SERVICE, ALICE, granted=True)
    return world


def come(world: PresentWorld) -> None:
    world.availability.note(SERVICE, ALICE, "phone", OnlineResource())
    world.dispatcher.follow(CONSUMER)


def leave(world: PresentWorld) -> None:
    world.availability.leave(SERVICE, ALICE, "")


async def marks(world: PresentWorld) -> list[str]:
    await world.settle()
    rows = await world.service.read(lambda tx, _: tx.consumers((0, "", ""), 9))
    return [row.consumer.name for row in rows if row.consumer.kind == HELD]


async def test_crash_before_the_mark_of_the_node_is_stored_loses_nothing(waiting: PresentWorld) -> None:
    """[SF-041] The hold is durable before the node's mark passes the change."""
    await waiting.publish("a")
    await waiting.settle()
    await waiting.crash()
    await waiting.start()
    assert await waiting.told() == ""
    await waiting.publish("b")
    come(waiting)
    assert await waiting.told(ALICE) == "+a +b"
    assert await marks(waiting) == []


async def test_publish_during_the_return_arrives_once_and_in_order(waiting: PresentWorld) -> None:
    """[SF-003] The subscription joins the others only when nothing newer is left."""
    await waiting.publish("a")
    await waiting.settle()
    waiting.wire.gate = asyncio.Event()
    waiting.wire.waiting.clear()
    come(waiting)
    await waiting.wire.waiting.wait()
    await waiting.publish("b")
    waiting.wire.gate.set()
    assert await waiting.told(ALICE) == "+a +b"
    waiting.wire.gate = None
    await waiting.publish("c")
    assert await waiting.told(ALICE) == "+c"
    assert await marks(waiting) == []


async def test_arrival_before_the_hold_is_durable_loses_nothing(
    waiting: PresentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arrival finds nothing held and releases nothing."""

    async def hold_after_arrival(*args: object) -> object:
        waiting.availability.note(SERVICE, ALICE, "phone", OnlineResource())
        return await hold(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("smartfeeds.push.sender.hold", hold_after_arrival)
    await waiting.publish("a")
    assert await waiting.told(ALICE) == "+a"
    await waiting.publish("b")
    assert await waiting.told(ALICE) == "+b"
    assert await marks(waiting) == []


async def test_absent_subscriber_is_read_once(waiting: PresentWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a release in vain, changes do not wake the consumer until the next release."""
    reads = []

    def read(*args: object, **kwargs: object) -> object:
        reads.append(args)
        return read_held_batch(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("smartfeeds.features.presence.held.read_held_batch", read)
    await waiting.publish("a")
    await waiting.settle()
    waiting.dispatcher.follow(CONSUMER)
    await waiting.settle()
    for item_id in "bc":
        await waiting.publish(item_id)
        await waiting.settle()
    assert len(reads) == 1
    come(waiting)
    assert await waiting.told(ALICE) == "+a +b +c"


async def test_departure_during_the_return_keeps_the_rest(
    waiting: PresentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smartfeeds.push.batch.ITEMS", 2)
    for item_id in "abcd":
        await waiting.publish(item_id)
    await waiting.settle()
    waiting.wire.gate = asyncio.Event()
    waiting.wire.waiting.clear()
    come(waiting)
    await waiting.wire.waiting.wait()
    leave(waiting)
    waiting.wire.gate.set()
    assert await waiting.told(ALICE) == "+a +b"
    waiting.wire.gate = None
    come(waiting)
    assert await waiting.told(ALICE) == "+c +d"


async def test_lost_link_during_the_return_repeats_the_batch(waiting: PresentWorld) -> None:
    """[SF-041] Delivery continues from the mark when the link is back."""
    await waiting.publish("a")
    await waiting.settle()
    waiting.wire.up = False
    come(waiting)
    assert await waiting.told() == ""
    await waiting.cut()
    await waiting.start()
    assert await waiting.told(ALICE) == "+a"


async def test_others_receive_while_one_waits(waiting: PresentWorld) -> None:
    """[SF-003]"""
    await waiting.subscribe(BOB, FEED)
    for item_id in "ab":
        await waiting.publish(item_id)
        await waiting.settle()
    await waiting.retract("a")
    assert await waiting.told(BOB) == "+a +b -a"
    come(waiting)
    assert await waiting.told(ALICE) == "+b -a"


async def test_subscription_that_is_gone_ends_the_delivery(waiting: PresentWorld) -> None:
    await waiting.publish("a")
    await waiting.settle()
    await waiting.unsubscribe(ALICE, FEED)
    come(waiting)
    assert await waiting.told() == ""
    assert await marks(waiting) == []


async def test_deleted_node_ends_the_delivery(waiting: PresentWorld) -> None:
    await waiting.publish("a")
    await waiting.settle()
    await waiting.delete()
    come(waiting)
    assert await waiting.told(ALICE) == "delete"


async def test_interests_without_subscribers_store_one_mark(world: PresentWorld) -> None:
    """[SF-007] The mark of a node to which nobody has subscribed begins when the first resource asks for it."""
    await world.create()
    await world.publish("a")
    key = CapsKey("sha-1", "x")
    world.clock.move(1)
    world.interests.learn(key, (FEED,))
    world.interests.add(key, Interest(f"{BOB}/desk", SERVICE, world.clock.now_us - 1))
    await world.publish("b")
    assert await world.told(f"{BOB}/desk") == "+b"
    await world.dispatcher.save_marks()
    await world.crash()
    await world.start()
    assert await world.told() == ""
    await world.publish("c")
    assert await world.told(f"{BOB}/desk") == "+c"


async def test_items_that_wait_for_presence_have_a_lag(waiting: PresentWorld) -> None:
    """[OPS-083] The lag of a durable subscription grows until its subscriber returns."""
    await waiting.publish("a")
    await waiting.settle()
    await waiting.stop()
    waiting.clock.move(3600)

    watch = BacklogWatch(waiting.service, waiting.clock)
    await watch.look()
    assert watch.readings() == (BacklogReading(0, 0.0, 3600.0, 1),)

"""Two processes on one database: what one of them learns, and the other one needs."""

import pytest

from smartfeeds.core.consumers import Consumer
from smartfeeds.delivery import changes
from support.chat import write
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare
from support.contacts import befriend, tell
from support.processes import owner_first, shared, until, without_locks

pytestmark = pytest.mark.parametrize("engine", ["postgres"], indirect=True)
BOBS = bare(BOB)


@pytest.fixture
async def pair(start: Starter, monkeypatch: pytest.MonkeyPatch) -> list[Component]:
    """The process that serves the feed news, and another one. Neither looks into the store by itself."""
    monkeypatch.setattr(changes, "LOOK_S", 3_600.0)
    first = await start()
    await first.create(ALICE, "news")
    second = await start()
    await shared(first, second)
    return await owner_first("news", first, second)


async def chat_consumer(component: Component) -> Consumer:
    node = await component.app.service.read(lambda tx, _context: tx.node("news"))
    assert node is not None
    return Consumer(node.node_no, f"chat:{BOBS}")


async def fail(owner: Component) -> Consumer:
    """Bob follows the feed, and the first delivery to him fails."""
    await write(owner, BOB, "subscribe news")
    consumer = await chat_consumer(owner)
    owner.returned[BOBS] = "service-unavailable"
    await owner.publish(ALICE, "news", "one")
    await until(lambda: owner.app.dispatcher.failure(consumer), "a failure")
    await owner.events(BOBS)
    owner.returned.clear()
    return consumer


@pytest.mark.parametrize("attempt", ["hurry", "forgive"])
async def test_attempt_is_made_by_the_process_that_serves_the_consumer(pair: list[Component], attempt: str) -> None:
    """[TOP-013] [PG-070] A callback that registers again, or a command of a user, may reach any process."""
    owner, other = pair
    consumer = await fail(owner)
    getattr(other.app.dispatcher, attempt)(consumer)
    (message,) = await owner.next_event(BOBS)
    assert message.get("id", "").startswith(f"chat-{consumer.node_no}-")
    await until(lambda: owner.app.dispatcher.failure(consumer) is None, "the end of the failure")
    assert not other._messages.get(BOBS), "the other process sends nothing"


async def test_subscription_that_another_process_adds_is_served_at_once(pair: list[Component]) -> None:
    """[TOP-013] [PG-071]"""
    owner, other = pair
    await write(other, BOB, "subscribe news")
    consumer = await chat_consumer(other)
    lane = owner.app.dispatcher._lanes["chat"]
    await until(lambda: lane.follows(consumer), "the new consumer")
    await other.publish(ALICE, "news", "one")
    assert len(await owner.next_event(BOBS)) == 1


async def test_message_of_a_person_ends_a_failure_from_before_the_take_over(
    start: Starter, pair: list[Component]
) -> None:
    """[TOP-045] [PG-070] The new owner reads from the store which deliveries failed."""
    owner, other = pair
    consumer = await fail(owner)
    await start.stop(owner)
    await until(lambda: other.app.ownership.owns_consumer(consumer), "the take-over")
    bot = other.app.bot
    assert bot is not None
    await until(lambda: bot.sender.has_failed(BOBS), "the failure")
    await write(other, BOB, "help")
    await until(lambda: other._messages.get(BOBS), "the delivery")


async def hold_event(owner: Component, other: Component) -> None:
    """Bob, a contact who is offline, has an event that waits for his presence."""
    await befriend(owner, BOB)
    await until(lambda: other.app.availability.is_available(BOBS) is False, "the contact at the other process")
    await owner.configure(ALICE, "news", presence_based_delivery="true")
    await owner.subscribe(BOB, "news")
    await owner.publish(ALICE, "news", "one")
    for component in (owner, other):
        await component.events(BOBS)


async def item_ids(*components: Component) -> list[str]:
    """The ids of the items that all processes have sent to Bob since the last call."""
    await shared(*components)
    messages = [message for component in components for message in await component.events(BOBS)]
    return [item.get("id", "") for message in messages for item in message.iter("{*}item")]


async def test_presence_that_another_process_receives_while_the_locks_are_lost(pair: list[Component]) -> None:
    """[TOP-013] [TOP-041] The process reads it when it has a lock session again. No event is lost or sent twice."""
    owner, other = pair
    await hold_event(owner, other)
    async with without_locks(owner):
        await tell(other, BOB)
        await other.settle()
        assert other.app.availability.is_available(BOBS)
        assert owner.app.availability.is_available(BOBS) is False
    await until(lambda: owner.app.availability.is_available(BOBS), "his presence")
    assert await item_ids(owner, other) == ["one"]
    await owner.publish(ALICE, "news", "two")
    await until(lambda: owner._messages.get(BOBS) or other._messages.get(BOBS), "the notification")
    assert await item_ids(owner, other) == ["two"]


async def test_presence_that_arrives_while_the_locks_are_lost_reaches_the_others(pair: list[Component]) -> None:
    """[TOP-013] [TOP-041] Its letter waits. Otherwise the others would send events to a person who is gone."""
    owner, other = pair
    await befriend(owner, BOB)
    await tell(owner, BOB)
    await until(lambda: other.app.availability.is_available(BOBS), "his presence at the other process")
    async with without_locks(owner):
        await tell(owner, BOB, kind="unavailable")
        await owner.settle()
    await until(lambda: other.app.availability.is_available(BOBS) is False, "his absence")


async def test_process_that_was_without_the_database_for_too_long_connects_again(pair: list[Component]) -> None:
    """[TOP-041] It asks all contacts for their presence, because letters are lost."""
    owner, _ = pair
    await befriend(owner, BOB)
    owner.presences.clear()
    owner.app.group._on_missed()
    await owner.relink()
    kinds = [presence.get("type") for presence in owner.presences if presence.get("to") == BOBS]
    assert kinds == [None, "probe"] and owner.presences[-1].get("from") == DOMAIN

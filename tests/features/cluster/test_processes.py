"""Two processes on one database: what one of them learns, and the other one needs."""

import asyncio
from functools import partial

import pytest

from features.cluster.processes import owner_first, shared, without_locks
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import IndexState
from smartfeeds.delivery import changes
from smartfeeds.delivery.indexing import Indexer
from smartfeeds.features.bot.bot import Bot
from smartfeeds.features.presence.xmpp import Presences
from support.chat import write
from support.component import ALICE, BOB, DOMAIN, INFO, Component, Element, Starter, bare
from support.contacts import befriend, tell
from support.waiting import until, wait_for

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


async def test_notice_of_another_process_starts_the_indexing(
    pair: list[Component], monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-064] [PG-076] A notice wakes the process that brings the filter index forward."""
    monkeypatch.setattr("smartfeeds.delivery.indexing.INDEX_REST_S", 0.0)
    monkeypatch.setattr("smartfeeds.delivery.indexing.Indexer.look", look_at_nothing)
    indexer, other = sorted(pair, key=lambda each: not each.app.ownership.owns_name("filter index"))
    assert not other.app.ownership.owns_name("filter index")
    await other.app.service.store.write(lambda tx: tx.begin_index(1))
    for name in ("one", "two"):  # a process that begins indexes the first one without a notice
        await other.publish(ALICE, "news", name)
        await until(partial(is_indexed, indexer), "the index")


async def look_at_nothing(_indexer: Indexer) -> None:
    """The look that a process takes now and then, whether or not it has received a notice."""


async def is_indexed(component: Component) -> bool:
    """Whether the filter index of the first node is up to date."""
    return await component.app.service.read(lambda tx, _context: tx.index_state(1) is IndexState.CURRENT)


async def test_message_of_a_person_ends_a_failure_from_before_the_take_over(
    start: Starter, pair: list[Component]
) -> None:
    """[TOP-045] [PG-070] The new owner reads from the store which deliveries failed."""
    owner, other = pair
    consumer = await fail(owner)
    await start.stop(owner)
    await until(lambda: other.app.dispatcher.owns(consumer), "the take-over")
    bot = other.app.parts.get(Bot)
    await until(lambda: bot.sender.has_failed(BOBS), "the failure")
    await write(other, BOB, "help")
    await until(lambda: other._messages.get(BOBS), "the delivery")


async def hold_event(owner: Component, other: Component) -> None:
    """Bob, a contact who is offline, has an event that waits for his presence."""
    await befriend(owner, BOB)
    await until(
        lambda: other.app.parts.get(Presences).availability.is_available(BOBS) is False,
        "the contact at the other process",
    )
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
        assert other.app.parts.get(Presences).availability.is_available(BOBS)
        assert owner.app.parts.get(Presences).availability.is_available(BOBS) is False
    await until(lambda: owner.app.parts.get(Presences).availability.is_available(BOBS), "his presence")
    assert await item_ids(owner, other) == ["one"]
    await owner.publish(ALICE, "news", "two")
    await until(lambda: owner._messages.get(BOBS) or other._messages.get(BOBS), "the notification")
    assert await item_ids(owner, other) == ["two"]


async def test_presence_that_arrives_while_the_locks_are_lost_reaches_the_others(pair: list[Component]) -> None:
    """[TOP-013] [TOP-041] Its letter waits. Otherwise the others would send events to a person who is gone."""
    owner, other = pair
    await befriend(owner, BOB)
    await tell(owner, BOB)
    await until(
        lambda: other.app.parts.get(Presences).availability.is_available(BOBS), "his presence at the other process"
    )
    async with without_locks(owner):
        await tell(owner, BOB, kind="unavailable")
        await owner.settle()
    await until(lambda: other.app.parts.get(Presences).availability.is_available(BOBS) is False, "his absence")


async def test_process_that_was_without_the_database_for_too_long_connects_again(pair: list[Component]) -> None:
    """[TOP-041] It asks all contacts for their presence, because letters are lost."""
    owner, _ = pair
    await befriend(owner, BOB)
    owner.presences.clear()
    owner.app.group._on_missed()
    await owner.relink()
    kinds = [presence.get("type") for presence in owner.presences if presence.get("to") == BOBS]
    assert kinds == [None, "probe"] and owner.presences[-1].get("from") == DOMAIN


async def test_request_that_reaches_a_process_that_ends_is_answered_by_another_one(
    start: Starter, pair: list[Component], monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-034] The server sends requests until the connection is closed, and they are passed on."""
    ending, other = pair
    answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
    other._asked["late"], other._answers["late"] = (ALICE, DOMAIN), answer
    drain, drains = ending.app._drain, []

    async def drain_later() -> None:
        drains.append(drain)
        if len(drains) == 2:  # the first one comes before the hand-over
            await ending.session.send(
                f"<iq type='get' id='late' from='{ALICE}' to='{DOMAIN}'><query xmlns='{INFO}'/></iq>"
            )
            await wait_for(asyncio.shield(answer), "the answer to late")
        await drain()

    monkeypatch.setattr(ending.app, "_drain", drain_later)
    await start.stop(ending)
    assert (await answer).get("type") == "result"
    assert len(drains) == 2

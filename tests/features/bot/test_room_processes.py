"""A room whose stanzas arrive at any of two processes: the bot is in it once, and answers once."""

from collections.abc import Awaitable, Callable

import pytest

from features.bot.test_rooms import ROOM, presence, rooms_in_store, say
from features.cluster.processes import joined
from smartfeeds.features.bot.bot import Bot
from smartfeeds.features.bot.rooms import Room, Rooms
from support.chat import body_of, deliver
from support.component import ALICE, BOB, Component, Starter
from support.waiting import until

pytestmark = pytest.mark.parametrize("engine", ["postgres"], indirect=True)
SELF = ("feeds", "none", "110")


def rooms_of(component: Component) -> Rooms:
    bot = component.app.parts.get(Bot)
    return bot.rooms


def state_of(component: Component) -> Room | None:
    return rooms_of(component)._rooms.get(ROOM)


def waiting_for(condition: Callable[[], object]) -> Callable[[float], Awaitable[None]]:
    """A pause that ends when the letters of the other process have arrived."""

    async def pause(_seconds: float) -> None:
        await until(condition, "the presence that another process passes on")

    return pause


@pytest.fixture
async def pair(start: Starter) -> list[Component]:
    """Two processes; Alice, an owner of the room, has written to the first one that the bot shall enter it."""
    first, second = await start(), await start()
    await joined(first, second)
    await deliver(first, ALICE, f"/join {ROOM}")
    await until(lambda: state_of(second), "the room at the other process")
    return [first, second]


async def enter(first: Component, second: Component) -> None:
    """Presence of the room: that of Alice arrives at the second process, that of the bot at the first one."""
    rooms_of(first)._others._sleep = waiting_for(lambda: (state := state_of(first)) and state.managers)
    await presence(second, "Alice", "owner", jid=ALICE)
    await presence(first, "Bob", "member", jid=BOB)
    await presence(first, *SELF)
    await until(lambda: rooms_of(second).is_in(ROOM), "the room at the other process")


async def test_process_that_enters_decides_with_the_presence_of_all_processes(pair: list[Component]) -> None:
    """[TOP-005] [TOP-013] Without the presence of Alice, who requested it, the bot would leave again."""
    first, second = pair
    await enter(first, second)
    assert rooms_of(first).is_in(ROOM) and await rooms_in_store(second) == [ROOM]
    assert [body_of(message)[:23] for message in await first.events("alice@example.org")] == ["I am in the room now. W"]
    assert await second.events("alice@example.org") == [], "one process tells her"
    people = [state.people for component in pair if (state := state_of(component)) is not None]
    assert people[0] == people[1] and len(people[0]) == 2


async def test_each_process_answers_what_it_receives(pair: list[Component]) -> None:
    """[TOP-005] [TOP-013] The room sends each message to one process, so there is one answer."""
    await enter(*pair)
    for component in pair:
        await component.events(ROOM)
    for component, other in (pair, pair[::-1]):
        (answer,) = await say(component, "Bob", "feeds: help")
        assert answer.startswith("Bob: ")
        assert await other.events(ROOM) == []
    (answer,) = await say(pair[1], "Alice", "feeds: language de")
    assert "Deutsch" in answer, "the second process knows who the owners are"


async def test_room_is_served_after_the_process_that_has_entered_it_is_gone(pair: list[Component]) -> None:
    """[TOP-013] The room sees one occupant, whose other connections stay."""
    first, second = pair
    await enter(first, second)
    await first.cut()
    await second.events(ROOM)
    assert len(await say(second, "Bob", "feeds: help")) == 1


async def test_room_that_the_bot_leaves_is_left_by_all_processes(pair: list[Component]) -> None:
    """[TOP-013]"""
    first, second = pair
    await enter(first, second)
    await say(second, "Alice", "feeds: leave")
    await presence(second, *SELF, kind="unavailable")
    await until(lambda: not rooms_of(first).knows(ROOM), "the end of the stay")
    assert await say(first, "Bob", "feeds: help") == [] and await rooms_in_store(first) == []


async def test_owner_who_writes_to_one_process_is_the_sponsor_for_all(pair: list[Component]) -> None:
    """[TOP-013] The room hides addresses, so only the message of an owner proves the right to have the bot there."""
    first, second = pair
    rooms_of(first)._others._sleep = waiting_for(lambda: (state := state_of(first)) and state.managers)
    await presence(second, "Alice", "owner")
    await presence(first, *SELF)
    await until(lambda: rooms_of(second).is_in(ROOM), "the room at the other process")
    assert await say(second, "Bob", "feeds: help") == []
    assert len(await say(first, "Alice", "feeds: help")) == 1
    assert len(await say(second, "Bob", "feeds: help")) == 1


async def test_reply_to_an_item_is_understood_by_all_processes(pair: list[Component]) -> None:
    """[TOP-013] The room returns the message of the bot, with the id that it gave it, to one process."""
    first, second = pair
    await enter(first, second)
    stanza_id = f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='s1'/>"
    await deliver(first, f"{ROOM}/feeds", "news", stanza_id, type="groupchat", id="chat-1-2-3-4")
    await until(lambda: rooms_of(second).own_id(ROOM, "s1") == "chat-1-2-3-4", "the id")


async def test_attempt_to_enter_ends_everywhere_when_the_room_refuses(pair: list[Component]) -> None:
    """[TOP-013]"""
    first, second = pair
    await presence(second, "feeds", kind="error", error="forbidden")
    await until(lambda: not rooms_of(first).knows(ROOM) and not rooms_of(second).knows(ROOM), "the end of the attempt")
    assert [body_of(message) for message in await first.events("alice@example.org")] == ["The room does not let me in."]
    assert await second.events("alice@example.org") == []

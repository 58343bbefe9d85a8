"""Requests of strangers for rooms change nothing for users of the bot, for rooms, and for people who never wrote."""

import pytest

from features.bot.test_rooms import MUC_USER, ROOM, invite, presence, rooms_in_store, say
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.bot import Bot
from support.chat import body_of, deliver, write
from support.component import ALICE, BOB, CAROL, DOMAIN, EVE, Component, Starter, bare

INVITE = f"<x xmlns='{MUC_USER}'><invite from='{bare(CAROL)}'/></x>"


@pytest.fixture
async def club(component: Component) -> Component:
    """A component whose bot delivers news to the room."""
    await component.create(ALICE, "news")
    await invite(component)
    await presence(component, "Alice", "owner")
    await presence(component, "feeds", "none", "110")
    await say(component, "Alice", "feeds: subscribe news")
    return component


async def subscribed(component: Component, jid: str) -> int:
    return await component.app.service.read(lambda tx, _context: tx.subscribed_by(jid))


async def request_rooms(component: Component, *rooms: str, user: str = EVE) -> None:
    """Requests of users of another server, each for one room."""
    for number, room in enumerate(rooms):
        await deliver(component, user.replace("@", f"{number}@", 1), f"/join {room}")
    await component.settle()


async def test_stranger_ends_no_subscriptions_of_a_room_that_restarts(club: Component) -> None:
    await presence(club, "feeds", "none", "110", "332", kind="unavailable")
    await request_rooms(club, ROOM)
    await presence(club, "Alice", "owner", jid=ALICE)
    await presence(club, "feeds", "none", "110")

    assert (await rooms_in_store(club), await subscribed(club, ROOM)) == ([ROOM], 1)


async def test_stranger_ends_no_subscriptions_of_a_room_that_the_bot_enters_again(club: Component) -> None:
    await club.cut()
    await club.link()
    await request_rooms(club, ROOM)
    await presence(club, "Alice", "owner", jid=ALICE)
    await presence(club, "feeds", "none", "110")

    assert (await rooms_in_store(club), await subscribed(club, ROOM)) == ([ROOM], 1)


async def test_room_that_is_requested_before_the_bot_enters_its_rooms_again_is_not_forgotten(
    component: Component,
) -> None:
    """Requests arrive as soon as the link is up, while the service still reads what it resumes."""
    rooms = component.app.parts.get(Bot).rooms
    await request_rooms(component, ROOM)

    await rooms.rejoin()

    assert rooms.knows(ROOM)


async def test_stored_room_is_not_evicted_by_requests_for_others(club: Component) -> None:
    await presence(club, "feeds", "none", "110", "332", kind="unavailable")
    await request_rooms(club, ROOM, *(f"r{number}@rooms.elsewhere.example" for number in range(11)))

    assert (await rooms_in_store(club), await subscribed(club, ROOM)) == ([ROOM], 1)


async def test_room_that_was_just_created_again_stays_stored(club: Component) -> None:
    """The occupants of a temporary room may return after the restart of its service."""
    await presence(club, "feeds", "none", "110", "332", kind="unavailable")
    await request_rooms(club, ROOM)
    await presence(club, "feeds", "owner", "110", "201")

    assert club.presences[-1].get("type") == "unavailable"
    assert (await rooms_in_store(club), await subscribed(club, ROOM)) == ([ROOM], 1)


@pytest.fixture
async def person(component: Component) -> Component:
    """A component with a user of the bot."""
    await component.create(BOB, "news")
    await write(component, ALICE, "subscribe news")
    await write(component, ALICE, "quiet 22-7 Europe/Berlin")
    return component


async def test_address_of_a_user_is_no_room(person: Component) -> None:
    await request_rooms(person, bare(ALICE), *(f"r{number}@rooms.elsewhere.example" for number in range(11)))
    refusal = [body_of(one) for one in await person.events("eve0@elsewhere.example/x")]
    row = await person.app.service.read(lambda tx, _context: chat_rows.chat(tx, bare(ALICE)))

    assert refusal == ["There is no such room."]
    assert f"{bare(ALICE)}/feeds" not in [one.get("to") for one in person.presences]
    assert await subscribed(person, bare(ALICE)) == 1
    assert row is not None and row.settings.quiet is not None


async def test_error_from_the_address_of_a_new_user_ends_nothing(component: Component) -> None:
    """The user begins to use the bot after a stranger named the address as a room."""
    await component.create(BOB, "news")
    await request_rooms(component, bare(ALICE))
    texts = await write(component, ALICE, "subscribe news")
    error = "<error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    await component.send(f"<presence from='{bare(ALICE)}/feeds' to='{DOMAIN}' type='error'>{error}</presence>")
    await component.settle()

    assert texts[0].startswith("You follow news now."), "the bot still listens to the user"
    assert await subscribed(component, bare(ALICE)) == 1


async def test_inviter_outside_the_room_receives_nothing(component: Component) -> None:
    """Anybody may pretend to be a room that passes on an invitation of Carol."""
    for text in ("BUY PILLS", "http://evil.example/"):
        await component.send(f"<message from='room@evil.example' to='{DOMAIN}'>{INVITE}</message>")
        await component.settle()
        item = "<item affiliation='none' role='participant'/><status code='110'/>"
        content = f"<x xmlns='{MUC_USER}'>{item}</x>"
        await component.send(f"<presence from='room@evil.example/{text}' to='{DOMAIN}'>{content}</presence>")
        await component.send(
            f"<presence from='room@evil.example/{text}' to='{DOMAIN}' type='unavailable'>{content}</presence>"
        )
    await component.settle()
    told = [body_of(one) for one in await component.events("room@evil.example")]

    assert await component.events(bare(CAROL)) == []
    assert told and all("feeds: help" in text for text in told)


async def test_refusal_of_a_room_goes_to_the_room_that_sent_the_invitation(component: Component) -> None:
    await component.send(f"<message from='room@evil.example' to='{DOMAIN}'>{INVITE}</message>")
    await component.settle()
    error = "<error type='auth'><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    await component.send(f"<presence from='room@evil.example/feeds' to='{DOMAIN}' type='error'>{error}</presence>")
    await component.settle()
    (message,) = await component.events("room@evil.example")

    assert message.find(f"{{{MUC_USER}}}x/{{{MUC_USER}}}decline") is not None
    assert await component.events(bare(CAROL)) == []


async def test_user_cannot_send_the_invitation_of_a_room(component: Component) -> None:
    await component.send(f"<message from='{EVE}' to='{DOMAIN}' type='chat'>{INVITE}</message>")
    await component.settle()

    assert component.presences == []


async def test_invitations_count_for_the_room_that_sends_them(start: Starter) -> None:
    component = await start(bot={"messages_per_minute": 1})
    for _ in range(40):
        await component.send(f"<message from='room@evil.example' to='{DOMAIN}'>{INVITE}</message>")
    await component.settle()

    assert await write(component, CAROL, "list") == ["There are no feeds."]
    assert len(component.presences) == 1


async def test_addresses_without_an_answer_make_room_after_a_minute(start: Starter) -> None:
    component = await start(bot={"rooms_max": 4})
    for number in range(6):
        content = f"<x xmlns='{MUC_USER}'><invite from='u@nowhere.example'/></x>"
        await component.send(f"<message from='room@r{number}.site{number}.example' to='{DOMAIN}'>{content}</message>")
    await component.settle()
    await request_rooms(component, ROOM)
    assert [one.get("type") for one in component.presences] == [None] * 4
    component.clock.advance(61)
    await request_rooms(component, ROOM)

    assert [one.get("type") for one in component.presences[4:]] == ["unavailable"] * 4 + [None]
    assert component.presences[-1].get("to") == f"{ROOM}/feeds"


async def test_services_of_one_site_share_their_places(start: Starter) -> None:
    component = await start(bot={"rooms_max": 12})
    for number in range(20):
        content = f"<x xmlns='{MUC_USER}'><invite from='u@nowhere.example'/></x>"
        await component.send(f"<message from='room@r{number}.evil.example' to='{DOMAIN}'>{content}</message>")
    await component.settle()

    assert len(component.presences) == 3


async def test_rooms_that_wait_for_one_user_are_few(component: Component) -> None:
    for number in range(5):
        await deliver(component, EVE, f"/join r{number}@rooms.example.org")
    await component.settle()

    assert len(component.presences) == 3
    assert [body_of(one)[:24] for one in await component.events(EVE)][3:] == ["I am in too many rooms; "] * 2


async def test_request_right_after_the_removal_of_the_bot_needs_a_sponsor(club: Component) -> None:
    """The removal is not stored yet when the request arrives."""
    item = "<item affiliation='none' role='none'/><status code='110'/><status code='307'/>"
    kick = f"<x xmlns='{MUC_USER}'>{item}</x>"
    removal = f"<presence from='{ROOM}/feeds' to='{DOMAIN}' type='unavailable'>{kick}</presence>"
    await club.send(f"{removal}<message from='{EVE}' to='{DOMAIN}' type='chat'><body>/join {ROOM}</body></message>")
    await club.settle()
    await presence(club, "Alice", "owner", jid=ALICE)
    await presence(club, "feeds", "none", "110")

    assert (await rooms_in_store(club), await subscribed(club, ROOM)) == ([], 0)


async def test_request_for_a_room_that_the_bot_is_in_joins_it_no_second_time(club: Component) -> None:
    joins = len(club.presences)

    assert await write(club, BOB, f"/join {ROOM}") == ["I am in that room already."]
    assert len(club.presences) == joins

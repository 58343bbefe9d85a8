"""Group chats: who may bring the bot, who may change, and how it leaves."""

import pytest

from smartfeeds.features.bot import rows as chat_rows
from support.chat import body_of, deliver
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare

ROOM = "club@rooms.example.org"
MUC_USER = "http://jabber.org/protocol/muc#user"


async def presence(
    component: Component,
    nick: str,
    affiliation: str = "none",
    *codes: str,
    jid: str = "",
    kind: str = "",
    inner: str = "",
    error: str = "",
) -> None:
    """A presence of the room."""
    item = f"<item affiliation='{affiliation}' role='participant'{f' jid={jid!r}' if jid else ''}/>"
    statuses = "".join(f"<status code='{code}'/>" for code in codes)
    content = f"<x xmlns='{MUC_USER}'>{item}{statuses}{inner}</x>"
    if error:
        kind, content = "error", f"<error type='cancel'><{error} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    attributes = f" type='{kind}'" if kind else ""
    await component.send(f"<presence from='{ROOM}/{nick}' to='{DOMAIN}'{attributes}>{content}</presence>")
    await component.settle()


async def invite(component: Component, inviter: str = f"{ROOM}/Alice", password: str = "") -> None:
    """A mediated invitation."""
    secret = f"<password>{password}</password>" if password else ""
    content = f"<x xmlns='{MUC_USER}'><invite from='{inviter}'/>{secret}</x>"
    await component.send(f"<message from='{ROOM}' to='{DOMAIN}'>{content}</message>")
    await component.settle()


async def say(component: Component, nick: str, text: str) -> list[str]:
    """A message of an occupant; what the bot then says in the room."""
    await deliver(component, f"{ROOM}/{nick}", text, type="groupchat")
    return [body_of(message) for message in await component.events(ROOM)]


async def rooms_in_store(component: Component) -> list[str]:
    return [row.jid for row in await component.app.service.read(lambda tx, _context: chat_rows.rooms(tx))]


@pytest.fixture
async def club(component: Component) -> Component:
    """A component whose bot is in the room, with Alice as its owner and Bob as an ordinary occupant."""
    await component.create(ALICE, "news")
    await invite(component)
    await presence(component, "Alice", "owner")
    await presence(component, "Bob", "member")
    await presence(component, "feeds", "none", "110")
    await component.events(ROOM)
    return component


async def test_invitation_of_the_room_is_accepted(component: Component) -> None:
    await invite(component)
    (join,) = component.presences
    assert join.get("to") == f"{ROOM}/feeds"
    assert join.find("{http://jabber.org/protocol/muc}x") is not None
    await presence(component, "feeds", "none", "110")

    (message,) = await component.events(ROOM)
    assert (message.get("type"), body_of(message)[:21]) == ("groupchat", "I am in the room now.")
    assert await rooms_in_store(component) == [ROOM]


CONFERENCE = "jabber:x:conference"


async def test_direct_invitation_of_a_user_is_accepted(component: Component) -> None:
    """XEP-0249: the message comes from the user, and names the room."""
    await component.send(f"<message from='{ALICE}' to='{DOMAIN}'><x xmlns='{CONFERENCE}' jid='{ROOM}'/></message>")
    await component.settle()

    assert [join.get("to") for join in component.presences] == [f"{ROOM}/feeds"]


async def test_direct_invitation_with_a_password_is_declined_to_the_user(component: Component) -> None:
    """The bot keeps no passwords (XEP-0249)."""
    content = f"<x xmlns='{CONFERENCE}' jid='{ROOM}' password='secret'/>"
    await component.send(f"<message from='{ALICE}' to='{DOMAIN}'>{content}</message>")
    await component.settle()

    assert component.presences == await component.events(ROOM) == []
    assert ["password" in body_of(message) for message in await component.events(bare(ALICE))] == [True]


@pytest.mark.parametrize("jid", ["", "rooms.example.org", "club@", f"{ROOM}/Alice"])
async def test_direct_invitation_joins_the_room_itself_or_none(component: Component, jid: str) -> None:
    """An address without a local part is no room, and the resource would be an occupant."""
    await component.send(f"<message from='{ALICE}' to='{DOMAIN}'><x xmlns='{CONFERENCE}' jid='{jid}'/></message>")
    await component.settle()

    assert [join.get("to") for join in component.presences] == ([f"{ROOM}/feeds"] if jid.startswith(ROOM) else [])


@pytest.mark.parametrize("is_first", [True, False])
async def test_mediated_invitation_with_the_element_of_a_direct_one_names_its_room_once(
    component: Component, is_first: bool
) -> None:
    """Older services of rooms add that element. The room that sends the message counts (XEP-0249, section 3)."""
    direct = f"<x xmlns='{CONFERENCE}' jid='other@rooms.example.org'/>"
    mediated = f"<x xmlns='{MUC_USER}'><invite from='{ROOM}/Alice'/></x>"
    content = mediated + direct if is_first else direct + mediated
    await component.send(f"<message from='{ROOM}' to='{DOMAIN}'>{content}</message>")
    await component.settle()

    joins = [join.get("to") for join in component.presences]
    assert joins == [f"{ROOM}/feeds"] if is_first else "other@rooms.example.org/feeds" not in joins


async def test_invitation_with_a_password_is_declined_through_the_room(component: Component) -> None:
    await invite(component, password="secret")
    (message,) = await component.events(ROOM)

    decline = message.find(f"{{{MUC_USER}}}x/{{{MUC_USER}}}decline")
    assert decline is not None and decline.get("to") == f"{ROOM}/Alice"
    assert "password" in str(decline.findtext(f"{{{MUC_USER}}}reason"))
    assert component.presences == []


async def test_room_that_asks_for_a_password_is_given_up(component: Component) -> None:
    await deliver(component, ALICE, f"/join {ROOM}")
    await component.settle()
    await presence(component, "feeds", error="not-authorized")

    texts = [body_of(message) for message in await component.events(bare(ALICE))]
    assert len(texts) == 1 and texts[0].startswith("The room has a password.")
    assert await rooms_in_store(component) == []


async def test_all_read_and_only_owners_and_admins_change(club: Component) -> None:
    assert await say(club, "Bob", "feeds: list") == ["Bob: Feeds:\n- news"]
    assert await say(club, "Bob", "feeds: subscribe news") == ["Bob: Only owners and admins of this room may do that."]
    assert (await say(club, "Alice", "feeds: subscribe news"))[0].startswith("Alice: You follow news now.")
    await club.publish(ALICE, "news", "one")
    (message,) = await club.events(ROOM)
    assert message.get("type") == "groupchat" and body_of(message).startswith("one\n")


async def test_approval_is_told_in_the_room(club: Component) -> None:
    await club.create(ALICE, "plans", access_model="authorize")
    await say(club, "Alice", "feeds: subscribe plans")
    await deliver(club, ALICE, f"allow plans {ROOM}")
    texts = [(one.get("type"), body_of(one)) for one in await club.events(ROOM) if len(body_of(one))]

    assert texts == [("groupchat", "You may follow plans now. New items arrive here.")]


async def test_owner_who_leaves_or_loses_the_rank_may_change_no_more(club: Component) -> None:
    await presence(club, "Alice", "none")
    assert (await say(club, "Alice", "feeds: subscribe news"))[0].startswith("Alice: Only owners and admins")
    await presence(club, "Bob", "admin")
    await presence(club, "Bob", "admin", kind="unavailable")
    assert (await say(club, "Bob", "feeds: subscribe news"))[0].startswith("Bob: Only owners and admins")


async def test_messages_that_do_not_name_the_bot_and_its_own_are_ignored(club: Component) -> None:
    assert await say(club, "Alice", "list") == []
    assert await say(club, "feeds", "feeds: list") == []
    await deliver(club, ROOM, "feeds: list", type="groupchat")
    await deliver(club, f"{ROOM}/Alice", "list", type="chat")
    assert await club.events(ROOM) == await club.events(f"{ROOM}/Alice") == []


@pytest.mark.parametrize("kind", ["error", "headline", "normal"])
async def test_messages_of_other_types_are_not_answered(club: Component, kind: str) -> None:
    await deliver(club, f"{ROOM}/Alice", "feeds: list", type=kind)
    assert await club.events(ROOM) == await club.events(f"{ROOM}/Alice") == []


async def test_history_of_the_room_is_not_answered(club: Component) -> None:
    delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
    await deliver(club, f"{ROOM}/Alice", "feeds: list", delay, type="groupchat")
    assert await club.events(ROOM) == []


async def test_two_bots_in_a_room_stop_soon(club: Component) -> None:
    """Each takes the answer of the other as a question, because it begins with its nick."""
    await presence(club, "other", "none")
    count, answers = 0, await say(club, "other", "feeds: list")
    while answers and count < 50:
        count += 1
        answers = await say(club, "other", f"feeds: {answers[0].removeprefix('other: ')}")

    assert 1 < count < 10


async def test_nick_with_control_characters_is_shown_without_them(club: Component) -> None:
    await presence(club, "B\u2067ob", "member")
    (answer,) = await say(club, "B\u2067ob", "feeds: subscriptions")
    assert answer == "B ob: You follow no feed yet."


async def test_long_message_is_cut_to_its_command(club: Component) -> None:
    """64 KB are more than most servers pass on."""
    assert await say(club, "Bob", "x" * 65_536) == []
    (answer,) = await say(club, "Bob", f"feeds: {'y' * 65_536}")
    assert len(answer) < 200


async def test_bot_enters_again_after_a_restart_and_delivers_what_it_missed(club: Component, start: Starter) -> None:
    await say(club, "Alice", "feeds: subscribe news")
    club = await start.again(club)
    assert [join.get("to") for join in club.presences] == [f"{ROOM}/feeds"]
    await club.publish(ALICE, "news", "one")
    assert await club.events(ROOM) == [], "the bot is not in the room yet"
    await presence(club, "feeds", "none", "110")
    await club.publish(ALICE, "news", "two")

    assert [body_of(one).split("\n")[0] for one in await club.events(ROOM)] == ["one", "two"]


@pytest.mark.parametrize("code", ["301", "307", "321", "322"])
async def test_bot_that_is_removed_stays_away(club: Component, start: Starter, code: str) -> None:
    await say(club, "Alice", "feeds: subscribe news")
    await presence(club, "feeds", "none", "110", code, kind="unavailable")
    assert await rooms_in_store(club) == []
    await club.publish(ALICE, "news", "one")
    assert await club.events(ROOM) == []
    club = await start.again(club)
    assert club.presences == []


async def test_destroyed_room_is_forgotten(club: Component) -> None:
    await presence(club, "feeds", "none", kind="unavailable", inner="<destroy/>")

    assert await rooms_in_store(club) == []


async def test_taken_nick_is_varied(component: Component) -> None:
    await invite(component)
    for nick in ("feeds", "feeds2", "feeds3"):
        await presence(component, nick, error="conflict")
    assert [join.get("to") for join in component.presences] == [
        f"{ROOM}/{nick}" for nick in ("feeds", "feeds2", "feeds3", "feeds4")
    ]
    await presence(component, "feeds4", error="conflict")
    assert len(component.presences) == 4


async def test_leave_is_for_admins_and_ends_the_subscriptions(club: Component) -> None:
    await say(club, "Alice", "feeds: subscribe news")
    assert await say(club, "Bob", "feeds: leave") == ["Bob: Only owners and admins of this room may do that."]
    assert await say(club, "Alice", "feeds: leave") == []
    assert club.presences[-1].get("type") == "unavailable"
    await club.publish(ALICE, "news", "one")
    assert await club.events(ROOM) == []


async def test_direct_request_of_a_visible_stranger_is_refused(component: Component) -> None:
    await deliver(component, BOB, f"/join {ROOM}")
    await component.settle()
    await presence(component, "Alice", "owner", jid=ALICE)
    await presence(component, "Bob", "member", jid=BOB)
    await presence(component, "feeds", "none", "110")

    (message,) = await component.events(bare(BOB))
    assert body_of(message).startswith("I left the room again")
    assert component.presences[-1].get("type") == "unavailable"


async def test_rooms_in_which_nobody_answers_for_the_bot_are_few(component: Component) -> None:
    """Nobody can fill the list of rooms."""
    users = [f"user{number}@example.org/x" for number in range(15)]
    for number, user in enumerate(users):
        await deliver(component, user, f"/join room-{number}@rooms.example.org")
    await component.settle()

    kinds = [one.get("type") for one in component.presences]
    assert (kinds.count(None), kinds.count("unavailable")) == (15, 5)


async def test_one_service_cannot_take_all_places(start: Starter) -> None:
    """A service of anybody can invite the bot to any number of rooms, and answer nothing."""
    component = await start(bot={"rooms_max": 12})
    for number in range(20):
        invitation = f"<x xmlns='{MUC_USER}'><invite from='room-{number}@rooms.evil.example/x'/></x>"
        room = f"room-{number}@rooms.evil.example"
        await component.send(f"<message from='{room}' to='{DOMAIN}'>{invitation}</message>")
    await component.settle()
    assert len(component.presences) == 3
    await invite(component)

    assert component.presences[-1].get("to") == f"{ROOM}/feeds"


async def test_presence_of_rooms_that_the_bot_did_not_enter_is_ignored(component: Component) -> None:
    await presence(component, "feeds", "owner", "110")
    await presence(component, "Eve", "owner")
    assert await say(component, "Eve", "feeds: list") == []
    assert component.presences == []


async def test_configured_room_is_entered(start: Starter) -> None:
    component = await start(bot={"rooms": [ROOM], "name": "News"})

    assert [join.get("to") for join in component.presences] == [f"{ROOM}/News"]


async def test_settings_of_two_managers_at_once_are_both_stored(club: Component) -> None:
    await presence(club, "Bob", "admin")
    commands = (("Alice", "quiet 22-7 Europe/Berlin"), ("Bob", "digest daily 8:00"), ("Alice", "subscribe news"))
    for nick, text in commands:
        await deliver(club, f"{ROOM}/{nick}", f"feeds: {text}", type="groupchat")
    await club.settle()
    row = await club.app.service.read(lambda tx, _context: chat_rows.chat(tx, ROOM))

    assert row is not None and row.settings.zone == "Europe/Berlin" and row.settings.language == "en"
    assert row.settings.quiet is not None and row.settings.digest is not None

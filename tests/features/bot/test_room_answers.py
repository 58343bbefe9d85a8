"""Replies, reactions, corrections and own items in group chats: in whose name, and when the bot is silent."""

from xml.sax.saxutils import quoteattr

import pytest

from support.chat import body_of, deliver
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare

A = "http://www.w3.org/2005/Atom"
ROOM = "club@rooms.example.org"
MUC_USER = "http://jabber.org/protocol/muc#user"
REFUSAL = f"This room does not prove to me who you are. To publish in your name, write to me directly: {DOMAIN}"


async def enter(component: Component, nick: str, jid: str = "", *codes: str, room: str = ROOM) -> None:
    """An occupant enters, or changes."""
    item = f"<item affiliation='{'owner' if nick == 'Alice' else 'none'}'{f' jid={quoteattr(jid)}' if jid else ''}/>"
    statuses = "".join(f"<status code='{code}'/>" for code in codes)
    presence = f"<presence from='{room}/{nick}' to='{DOMAIN}'><x xmlns='{MUC_USER}'>{item}{statuses}</x></presence>"
    await component.send(presence)
    await component.settle()


async def set_up(component: Component, room: str = ROOM) -> None:
    """The feeds `blog` and `blog-comments`, and the room, which follows the blog. It hides Carol's address."""
    await component.create(ALICE, "blog")
    await component.create(ALICE, "blog-comments", publish_model="open")
    invitation = f"<x xmlns='{MUC_USER}'><invite from='{room}/Alice'/></x>"
    await component.send(f"<message from='{room}' to='{DOMAIN}'>{invitation}</message>")
    await component.settle()
    await enter(component, "Alice", ALICE, room=room)
    await enter(component, "Bob", BOB, room=room)
    await enter(component, "Carol", room=room)
    await enter(component, "feeds", "", "110", room=room)
    await say(component, "Alice", "feeds: subscribe blog", room=room)


@pytest.fixture
async def club(component: Component) -> Component:
    await set_up(component)
    return component


async def say(component: Component, nick: str, text: str, inner: str = "", room: str = ROOM, **ids: str) -> list[str]:
    """A message of an occupant; what the bot then says in the room."""
    await deliver(component, f"{room}/{nick}", text, inner, type="groupchat", **ids)
    return [body_of(message) for message in await component.events(room)]


async def shown(component: Component, item_id: str = "post", room: str = ROOM, *, delay: str = "") -> str:
    """Publishes a post, which the bot shows in the room. Returns the id that the room gives to that message."""
    link = f"<link rel='replies' href='xmpp:{DOMAIN}?;node=blog-comments'/>"
    await component.publish(ALICE, "blog", item_id, f"<entry xmlns='{A}'><title>{item_id}</title>{link}</entry>")
    (message,) = await component.events(room)
    stanza_id = f"<stanza-id xmlns='urn:xmpp:sid:0' by='{room}' id='sid-{item_id}'/>"
    forged = "<stanza-id xmlns='urn:xmpp:sid:0' by='eve@example.org' id='sid-forged'/>"
    own = str(message.get("id"))
    assert await say(component, "feeds", body_of(message), forged + stanza_id + delay, room=room, id=own) == []
    return f"sid-{item_id}"


def reply(message_id: str) -> str:
    return f"<reply xmlns='urn:xmpp:reply:0' to='{ROOM}/feeds' id='{message_id}'/>"


def like(message_id: str, *texts: str) -> str:
    inner = "".join(f"<reaction>{text}</reaction>" for text in texts)
    return f"<reactions xmlns='urn:xmpp:reactions:0' id='{message_id}'>{inner}</reactions>"


async def entries(component: Component, node: str = "blog-comments") -> list[tuple[str, str]]:
    """The titles in a feed, with the addresses of their authors."""
    answer = await component.get(ALICE, f"<items node='{node}'/>")
    return [
        (str(one.findtext(f"{{{A}}}title")), str(one.findtext(f"{{{A}}}author/{{{A}}}uri")))
        for one in answer.iter(f"{{{A}}}entry")
    ]


async def test_reply_is_published_in_the_name_of_the_person(club: Component) -> None:
    post = await shown(club)

    assert await say(club, "Bob", "Well said", reply(post)) == ["Bob: Your answer is published in blog-comments."]
    assert await entries(club) == [("Well said", f"xmpp:{bare(BOB)}")]


async def test_mention_is_no_part_of_the_answer(club: Component) -> None:
    assert await say(club, "Bob", "feeds: Well said", reply(await shown(club)))
    assert await entries(club) == [("Well said", f"xmpp:{bare(BOB)}")]


async def test_correction_replaces_the_answer_and_the_item(club: Component) -> None:
    await club.affiliate(ALICE, "blog", BOB, "publisher")
    post = await shown(club)
    await say(club, "Bob", "Wel said", reply(post), id="r1")
    replace = "<replace xmlns='urn:xmpp:message-correct:0' id='{}'/>"
    await say(club, "Bob", "Well said", reply(post) + replace.format("r1"), id="r2")
    assert await entries(club) == [("Well said", f"xmpp:{bare(BOB)}")]

    assert "Bob: Published in blog." in await say(club, "Bob", "feeds: post blog Helo", id="p1")
    assert "Bob: Changed in blog." in await say(club, "Bob", "feeds: post blog Hello", replace.format("p1"), id="p2")
    assert ("Hello", f"xmpp:{bare(BOB)}") in await entries(club, "blog")
    assert ("Helo", f"xmpp:{bare(BOB)}") not in await entries(club, "blog")


async def test_like_is_published_and_taken_back_in_silence(club: Component) -> None:
    post = await shown(club)
    assert await say(club, "Bob", "", like(post, "👍")) == []
    assert await entries(club) == [("♥", f"xmpp:{bare(BOB)}")]
    assert await say(club, "Bob", "", like(post)) == []
    assert await entries(club) == []


async def test_person_whom_the_room_hides_is_refused_when_the_bot_is_addressed(club: Component) -> None:
    post = await shown(club)
    assert await say(club, "Carol", "feeds: Well said", reply(post)) == [f"Carol: {REFUSAL}"]
    assert await say(club, "Carol", "feeds: post blog-comments Hello") == [f"Carol: {REFUSAL}"]
    assert await say(club, "Carol", "Well said", reply(post)) == []
    assert await say(club, "Carol", "", like(post, "👍")) == []
    assert await entries(club) == []


async def test_bot_does_not_comment_on_replies_that_the_feed_refuses(club: Component) -> None:
    """People talk with each other about an item: an error is told to those only who addressed the bot."""
    post = await shown(club)
    await club.configure(ALICE, "blog-comments", publish_model="publishers")
    assert await say(club, "Bob", "Well said", reply(post)) == []
    assert await say(club, "Bob", "", like(post, "👍")) == []
    (answer,) = await say(club, "Bob", "feeds: Well said", reply(post))
    assert answer == "Bob: Only its publishers may answer in blog-comments. Ask its owner: alice@example.org"


async def test_reply_to_others_is_talk_and_with_a_mention_a_command(club: Component) -> None:
    assert await say(club, "Bob", "I agree", reply("sid-of-carol")) == []
    assert await say(club, "Bob", "", like("sid-of-carol", "👍")) == []
    assert (await say(club, "Bob", "feeds: list", reply("sid-of-carol")))[0].startswith("Bob: Feeds:")
    await shown(club)
    assert await say(club, "Bob", "I agree", reply("sid-forged")) == []


async def test_room_is_not_believed_about_users_of_other_servers(component: Component) -> None:
    """Anybody can run a room that names any address."""
    room = "club@rooms.evil.example"
    await set_up(component, room)
    post = await shown(component, room=room)
    assert await say(component, "Bob", "feeds: I hate you all", reply(post), room=room) == [f"Bob: {REFUSAL}"]
    assert await say(component, "Alice", "feeds: delete blog", room=room) == [f"Alice: {REFUSAL}"]
    await enter(component, "Bob", "bob@evil.example/x", room=room)
    assert await say(component, "Bob", "feeds: Well said", reply(post), room=room)
    assert await entries(component) == [("Well said", "xmpp:bob@evil.example")]
    assert [title for title, _ in await entries(component, "blog")] == ["post"]


async def test_room_of_the_operator_is_believed(start: Starter) -> None:
    room = "club@rooms.elsewhere.example"
    component = await start(bot={"rooms": [room]})
    await set_up(component, room)
    await say(component, "Bob", "Well said", reply(await shown(component, room=room)), room=room)

    assert await entries(component) == [("Well said", f"xmpp:{bare(BOB)}")]


async def test_nick_that_changes_hands_changes_the_author(club: Component) -> None:
    post = await shown(club)
    item = "<x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none'/><status code='303'/></x>"
    await club.send(f"<presence type='unavailable' from='{ROOM}/Bob' to='{DOMAIN}'>{item}</presence>")
    assert await say(club, "Bob", "Not me", reply(post)) == []
    await enter(club, "Bob", "eve@example.org/x")
    await say(club, "Bob", "Me", reply(post))

    assert await entries(club) == [("Me", "xmpp:eve@example.org")]


async def test_bot_finds_its_messages_in_the_history_after_a_restart(club: Component, start: Starter) -> None:
    await club.affiliate(ALICE, "blog", BOB, "publisher")
    await club.publish(ALICE, "blog", "other")
    (message,) = await club.events(ROOM)
    club = await start.again(club)
    await enter(club, "Bob", BOB)
    await enter(club, "feeds", "", "110")
    stanza_id = f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='sid-1'/>"
    delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
    assert await say(club, "feeds", body_of(message), stanza_id + delay, id=str(message.get("id"))) == []
    assert await say(club, "Bob", "feeds: list", delay) == [], "history is not answered"

    assert "Bob: Your answer is published in blog." in await say(club, "Bob", "Well said", reply("sid-1"))


async def test_mention_alone_is_a_call_for_help(club: Component) -> None:
    for text in ("feeds", "@feeds:", "feeds, "):
        (answer,) = await say(club, "Bob", text)
        assert answer.startswith("Bob: I deliver feeds by chat.")

"""The chat bot in group chats of real servers."""

import itertools
from pathlib import Path

from lxml import etree

from support.client import Client, ClientFactory
from support.servers import GUESTS, ROOMS, TestServer
from support.service import running, write_config
from support.talk import ask, hear, next_from, say, text_of

Element = etree._Element
PUBSUB = "http://jabber.org/protocol/pubsub"
MUC_USER = "http://jabber.org/protocol/muc#user"
SELF = "<status code='110'/>"

_rooms = (f"room-{number}@{ROOMS}" for number in itertools.count())


async def enter(client: Client, room: str, nick: str, **settings: str) -> None:
    """Enters a room, and makes it usable with these settings if the client has created it."""
    fields = "".join(
        f"<field var='muc#roomconfig_{name}'><value>{value}</value></field>" for name, value in settings.items()
    )
    config = "<field var='FORM_TYPE'><value>http://jabber.org/protocol/muc#roomconfig</value></field>"
    client.send_raw(f"<presence to='{room}/{nick}'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
    while True:
        presence = await client.next_presence()
        codes = {one.get("code") for one in presence.iter("{http://jabber.org/protocol/muc#user}status")}
        if "201" in codes:
            form = f"<x xmlns='jabber:x:data' type='submit'>{config}{fields}</x>"
            owner = f"<query xmlns='http://jabber.org/protocol/muc#owner'>{form}</query>"
            assert (await client.set(room, owner)).get("type") == "result"
        if "110" in codes:
            return


async def in_room(client: Client, room: str, text: str, nick: str = "feeds") -> str:
    """Sends a message to a room and returns the next one of the bot there."""
    say(client, room, text, kind="groupchat")
    return await hear_in_room(client, room, nick)


async def hear_in_room(client: Client, room: str, nick: str = "feeds") -> str:
    """The next message of the bot in a room that is no answer to somebody else."""
    while True:
        message = await next_from(client, room)
        text = text_of(message)
        name = client.bare.partition("@")[0].capitalize()
        if message.get("from") == f"{room}/{nick}" and text.startswith(("Alice: ", "Bob: ")) <= text.startswith(name):
            return text


async def test_room_follows_a_feed(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    domain, room = server.take_name(), next(_rooms)
    path = write_config(tmp_path, server, domain)
    alice, bob = await client(server, "alice"), await client(server, "bob")
    await enter(alice, room, "Alice")
    async with running(path):
        await create_open_feed(alice, domain)
        invitation = f"<x xmlns='jabber:x:conference' jid='{room}'/>"
        alice.send_raw(f"<message to='{domain}'>{invitation}</message>")
        assert (await hear(alice, domain)).startswith("I am in the room, but it does not show me who its admins are.")
        await enter(bob, room, "Bob")

        assert (await in_room(alice, room, "feeds: subscribe village")).startswith("Alice: You follow village now.")
        assert await in_room(bob, room, "feeds: unsubscribe village") == (
            "Bob: Only owners and admins of this room may do that."
        )
        assert (await ask(bob, domain, "post village Market on Sunday")).startswith("Published in village")
        assert (await hear_in_room(bob, room)).startswith("Market on Sunday\nbob in village\n")
    # After a restart the bot enters again, and what was published meanwhile is delivered.
    async with running(path):
        assert (await ask(bob, domain, "post village Second", message_id="m2")).startswith("Published in village")
        assert (await hear_in_room(bob, room)).startswith("Second\n")
        kick = "<query xmlns='http://jabber.org/protocol/muc#admin'><item nick='feeds' role='none'/></query>"
        assert (await alice.set(room, kick)).get("type") == "result"
        assert await ask(alice, domain, f"/join {room}") == f"I am entering {room}."
        assert (await hear(alice, domain)).startswith("I am in the room, ")
        assert await in_room(alice, room, "feeds: subscriptions") == "Alice: You follow no feed yet."


async def test_mediated_invitation_and_taken_nick(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    domain, room = server.take_name(), next(_rooms)
    alice, bob = await client(server, "alice"), await client(server, "bob")
    await enter(alice, room, "Alice")
    await enter(bob, room, "feeds")
    async with running(write_config(tmp_path, server, domain)):
        invite = f"<x xmlns='http://jabber.org/protocol/muc#user'><invite to='{domain}'/></x>"
        alice.send_raw(f"<message to='{room}'>{invite}</message>")
        assert (await hear_in_room(alice, room, "feeds2")).startswith("I am in the room now.")

        assert (await in_room(alice, room, "feeds2: list", "feeds2")).startswith("Alice: There are no feeds.")


async def test_person_who_is_no_admin_of_a_room_cannot_bring_the_bot(
    server: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    domain, room = server.take_name(), next(_rooms)
    alice, bob = await client(server, "alice"), await client(server, "bob")
    await enter(alice, room, "Alice")
    await enter(bob, room, "Bob")
    async with running(write_config(tmp_path, server, domain)):
        await ask(bob, domain, f"/join {room}")
        assert (await hear(bob, domain)).startswith("I am in the room, ")
        # The bot answers Bob only after an owner of the room has written to it.
        say(bob, room, "feeds: list", kind="groupchat")
        say(bob, room, "done", kind="groupchat", message_id="m2")
        assert [text_of(await next_from(alice, room)) for _ in range(2)] == ["feeds: list", "done"]
        assert await in_room(alice, room, "feeds: list") == "Alice: There are no feeds."
        await ask(bob, domain, f"/join no-such-room@{ROOMS}")
        assert await hear(bob, domain) == "There is no such room."


async def test_reply_in_a_room_that_shows_addresses(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """The answer is published in the name of the person, also after a restart of the service."""
    domain, room = server.take_name(), next(_rooms)
    alice, bob = await client(server, "alice"), await client(server, "bob")
    await enter(alice, room, "Alice", whois="anyone")
    await enter(bob, room, "Bob")
    path = write_config(tmp_path, server, domain)
    async with running(path):
        await create_open_feed(alice, domain)
        await ask(alice, domain, f"/join {room}")
        assert (await hear(alice, domain)).startswith("I am in the room now.")
        assert (await in_room(alice, room, "feeds: subscribe village")).startswith("Alice: You follow village now.")
        await ask(bob, domain, "post village Who comes?")
        item = await message_in_room(bob, room, "Who comes?")
        assert await reply(bob, room, item, "I do") == "Bob: Your answer is published in village."
        assert (await ask(bob, domain, "latest village 1", message_id="m3")).startswith(
            "> Who comes?\nI do\nbob in village\n"
        )
    async with running(path):
        if (await ask(alice, domain, f"/join {room}")) != "I am in that room already.":
            assert (await hear(alice, domain)).startswith("I am in the room now.")
        assert await reply(bob, room, item, "Me too") == "Bob: Your answer is published in village."


async def test_account_that_plays_a_room_is_not_believed(
    server: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    """The sessions of a guest of the same server send the presence of the bot and of occupants."""
    domain = server.take_name()
    alice = await client(server, "alice")
    owner, poser, bot = (Client(f"eve@{GUESTS}/{nick}", "secret", presence=True) for nick in ("eve", "alice", "feeds"))
    items = f"<iq type='get' to='{domain}'><pubsub xmlns='{PUBSUB}'><items node='village'/></pubsub></iq>"
    try:
        for session in (owner, poser, bot):
            await session.login(server.client_port)
        async with running(write_config(tmp_path, server, domain)):
            await create_open_feed(alice, domain)
            assert await ask(owner, domain, f"/join {owner.bare}") == f"I am entering {owner.bare}."
            for session, jid, status in ((owner, owner.bare, ""), (poser, alice.bare, ""), (bot, bot.bare, SELF)):
                x = f"<x xmlns='{MUC_USER}'><item affiliation='owner' jid='{jid}'/>{status}</x>"
                session.send_raw(f"<presence to='{domain}'>{x}</presence>")
                # A response shows that the service has read the presence of this session.
                assert (await session.iq(items)).get("type") == "result"
            assert (await hear(owner, domain)).startswith("I am in the room now.")
            say(poser, domain, "feeds: post village I am Alice", kind="groupchat")
            assert (await poser.iq(items)).get("type") == "result"
            assert await ask(alice, domain, "latest village") == "There are no items yet."
    finally:
        for session in (owner, poser, bot):
            await session.logout()


async def message_in_room(client: Client, room: str, start: str) -> Element:
    """The next message of the bot in a room that begins with this text."""
    while True:
        message = await next_from(client, room)
        if text_of(message).startswith(start):
            return message


async def reply(client: Client, room: str, message: Element, text: str) -> str:
    """Replies to a message as XEP-0461 requires, with the id of the room if there is one."""
    ids = [one.get("id") for one in message.iter("{urn:xmpp:sid:0}stanza-id") if one.get("by") == room]
    quoted = f"<reply xmlns='urn:xmpp:reply:0' to='{room}/feeds' id='{[*ids, message.get('id')][0]}'/>"
    say(client, room, text, quoted, kind="groupchat")
    return text_of(await message_in_room(client, room, "Bob: "))


async def create_open_feed(owner: Client, domain: str) -> None:
    """Makes the feed `village`, in which everybody may publish."""
    form = (
        f"<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>{PUBSUB}#node_config</value></field>"
        "<field var='pubsub#publish_model'><value>open</value></field></x>"
    )
    body = f"<pubsub xmlns='{PUBSUB}'><create node='village'/><configure>{form}</configure></pubsub>"
    assert (await owner.set(domain, body)).get("type") == "result"

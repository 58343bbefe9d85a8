"""Whom the bot believes: a room speaks for its occupants only if service discovery proves that it is a room."""

import asyncio

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.features.accounts.sign_ins import SignIns
from smartfeeds.features.bot.room_verifier import VALID_S
from smartfeeds.xmpp.stream import ComponentStream
from support.chat import body_of, deliver, write
from support.component import ALICE, BOB, CONFERENCE_INFO, DOMAIN, ITEMS, NS, Component, Element, Starter, bare

MUC = "http://jabber.org/protocol/muc"
ROOM, SERVICE = "club@rooms.example.org", "rooms.example.org"
GUEST = "eve@guest.example.org"
FEATURE = f"<feature var='{MUC}'/>"
REFUSAL = f"This room does not prove to me who you are. To publish in your name, write to me directly: {DOMAIN}"


def identities(*kinds: str, feature: str = FEATURE) -> str:
    """Service discovery information with these identities, written `category/type`."""
    split = [kind.split("/") for kind in kinds]
    return "".join(f"<identity category='{category}' type='{kind}'/>" for category, kind in split) + feature


CONFERENCE = identities("conference/text")
SERVER = identities("server/im", feature="")
ACCOUNT = identities("account/registered", feature="")


async def presence(component: Component, room: str, nick: str, item: str, *codes: str, more: str = "") -> None:
    """A presence of an occupant, in which the item has these attributes. `more` follows the elements of the room."""
    statuses = "".join(f"<status code='{code}'/>" for code in codes)
    inner = f"<x xmlns='{MUC}#user'><item affiliation='owner' role='moderator' {item}/>{statuses}</x>{more}"
    await component.send(f"<presence from='{room}/{nick}' to='{DOMAIN}'>{inner}</presence>")
    await component.settle()


async def pose(
    component: Component, room: str = GUEST, claim: str = f"jid='{bare(ALICE)}'", more: str = ""
) -> list[str]:
    """Somebody who plays a room brings the bot there and writes a post as Alice. Returns the answers of the bot."""
    await component.create(ALICE, "news")
    await enter(component, room, claim, more)
    return await say(component, room)


async def enter(component: Component, room: str, claim: str = f"jid='{bare(ALICE)}'", more: str = "") -> None:
    await deliver(component, f"{GUEST}/x", f"/join {room}")
    await component.settle()  # presence of a room that the bot does not enter yet is ignored
    await presence(component, room, "eve", "jid='eve@guest.example.org'")
    await presence(component, room, "alice", claim, more=more)
    await presence(component, room, "feeds", "", "110")
    await component.events(room)


async def say(
    component: Component, room: str, text: str = "feeds: post news I am Alice", stanza_id: str = "m1"
) -> list[str]:
    """A message of the occupant `alice`; what the bot then says in the room."""
    await deliver(component, f"{room}/alice", text, type="groupchat", id=stanza_id)
    return [body_of(message) for message in await component.events(room)]


async def posts(component: Component) -> list[str]:
    return await component.item_ids(ALICE, "news")


@pytest.mark.parametrize(
    ("room", "service", "address"),
    [
        (GUEST, SERVER, ACCOUNT),
        (GUEST, SERVER, None),
        (GUEST, None, None),
        (GUEST, SERVER, CONFERENCE),
        (GUEST, identities("server/im", "conference/text"), CONFERENCE),
        (GUEST, CONFERENCE, ACCOUNT),
        (GUEST, CONFERENCE, identities("conference/text", "account/registered")),
        (GUEST, CONFERENCE, identities("conference/text", "ACCOUNT/anonymous")),
        (GUEST, CONFERENCE, identities("conference/text", "pubsub/pep")),
        (GUEST, CONFERENCE, identities("client/pc")),
        (GUEST, CONFERENCE, None),
        (GUEST, None, CONFERENCE),
        (ROOM, identities("conference/text", feature=""), CONFERENCE),
        (ROOM, CONFERENCE, identities("conference/text", feature="")),
        (ROOM, identities(), identities()),
        ("#club%irc.example.com@irc.example.org", identities("conference/irc"), identities("conference/irc")),
        ("#club@irc.example.org", identities("conference/text", "gateway/irc"), CONFERENCE),
        ("#club@irc.example.org", identities("conference/text", "conference/irc"), CONFERENCE),
        ("store@pubsub.example.org", identities("pubsub/service"), None),
    ],
    ids=[
        "account",
        "account that is hidden",
        "domain without an answer",
        "account that answers as a room",
        "server with rooms",
        "account of a conference domain",
        "account and room",
        "anonymous account",
        "account with pep",
        "client",
        "room without an answer",
        "only the room answers",
        "domain without rooms",
        "no room",
        "no identity",
        "irc gateway",
        "gateway with rooms",
        "conference of another network",
        "another component",
    ],
)
async def test_address_that_is_not_proved_to_be_a_room_cannot_name_its_occupants(
    component: Component, room: str, service: str | None, address: str | None
) -> None:
    """The addresses are below example.org, whose users they name."""
    component.infos = {
        jid: info for jid, info in ((room.partition("@")[2], service), (room, address)) if info is not None
    }
    assert await pose(component, room) == [f"alice: {REFUSAL}"]
    assert await posts(component) == []


@pytest.mark.parametrize("room", [f"eve@{bare(ALICE).partition('@')[2]}", "eve@example.com", "club@rooms.example.com"])
async def test_address_outside_the_subdomains_is_not_even_asked(component: Component, room: str) -> None:
    """Not an account of the same host, and nobody on another server, whatever they answer."""
    component.infos = dict.fromkeys((room.partition("@")[2], room), CONFERENCE)
    assert await pose(component, room) == [f"alice: {REFUSAL}"]
    assert component.asked == []


@pytest.mark.parametrize("item", ["jid='example.org'", "jid=''", "jid='@'", "jid='alice@example.org@x'", ""])
async def test_occupant_without_an_address_is_nobody(component: Component, item: str) -> None:
    assert await pose(component, ROOM, item) == [f"alice: {REFUSAL}"]


@pytest.mark.parametrize(
    "more",
    [
        f"<x xmlns='{MUC}#user'><item affiliation='owner' jid='bob@example.org'/></x>",
        f"<x xmlns='{MUC}#user'><item affiliation='owner' jid='alice@example.org'/></x>",
    ],
)
async def test_occupant_with_two_addresses_is_nobody(component: Component, more: str) -> None:
    """A service that passes on what a client wrote has not checked it."""
    assert await pose(component, ROOM, more=more) != []
    assert await posts(component) == []


@pytest.mark.parametrize(
    "service",
    [CONFERENCE, CONFERENCE_INFO, identities("conference/text", "directory/chatroom", "store/file")],
    ids=["smallest", "usual", "with other identities"],
)
async def test_room_of_a_conference_service_is_believed(component: Component, service: str) -> None:
    component.infos = {SERVICE: service, ROOM: CONFERENCE}
    assert await pose(component, ROOM) != [f"alice: {REFUSAL}"]
    assert len(await posts(component)) == 1
    assert sorted(component.asked) == [(ROOM, ""), (SERVICE, "")]
    assert component.listed == ["example.org"]


@pytest.mark.parametrize(
    "services",
    [
        "",
        "<item jid='evil.example.org'/><item jid='feeds.example.org'/>",
        "<item jid='conf.evil.example.org' node='rooms'/>",
        "<item jid='lobby@conf.evil.example.org'/><item jid='conf.evil.example.org/x'/>",
        "<item name='conf.evil.example.org'/><item jid=''/>",
        "<item xmlns='urn:example:other' jid='conf.evil.example.org'/>",
    ],
    ids=["nothing", "the domain between", "a node", "a room and a resource", "a name", "another namespace"],
)
async def test_room_of_a_stranger_below_the_domain_of_the_users_is_not_believed(
    component: Component, services: str
) -> None:
    """A stranger who runs `evil.example.org`, or a domain below it, is no server of the users of `example.org`."""
    room, domain = "club@conf.evil.example.org", "conf.evil.example.org"
    component.infos = {domain: CONFERENCE, room: CONFERENCE}
    component.services["example.org"] = services
    component.services[domain] = component.services["evil.example.org"] = f"<item jid='{domain}'/>"
    assert await pose(component, room) == [f"alice: {REFUSAL}"]
    assert await posts(component) == [] and component.listed == ["example.org"]


@pytest.mark.parametrize("item", ["rooms.example.org", "ROOMS.Example.org", "rooms.example.org."])
async def test_server_may_spell_the_domain_of_its_rooms_as_it_likes(component: Component, item: str) -> None:
    component.services["example.org"] = f"<item jid='pubsub.example.org'/><item jid='{item}' name='Rooms'/>"
    await pose(component, ROOM)
    assert len(await posts(component)) == 1


async def test_server_that_does_not_list_its_services_proves_nothing(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for its response is over at once."""
    call = ComponentStream.call

    async def impatient_call(stream: ComponentStream, kind: str, to: str, payload: bytes, timeout_s: float) -> Element:
        return await call(stream, kind, to, payload, 0 if to == "example.org" else timeout_s)

    monkeypatch.setattr(ComponentStream, "call", impatient_call)
    component = await start()
    component.silent = {"example.org"}
    assert await pose(component, ROOM) == [f"alice: {REFUSAL}"]
    assert component.listed == ["example.org"] and await posts(component) == []


async def test_room_of_the_operator_needs_no_proof(start: Starter) -> None:
    component = await start(bot={"rooms": [ROOM]})
    component.infos = {}
    await pose(component, ROOM)
    assert len(await posts(component)) == 1


async def test_answers_of_others_prove_nothing_and_the_message_waits(component: Component) -> None:
    """An occupant, or any other address, answers with the id of the request before the server does."""
    component.infos = {}
    component.silent = {"guest.example.org", GUEST}
    await component.create(ALICE, "news")
    await enter(component, GUEST)
    await component.deaf()
    await deliver(component, f"{GUEST}/alice", "feeds: post news I am Alice", type="groupchat")
    requests = [await component.session.stanzas.get() for _ in range(3)]
    info = f"<query xmlns='http://jabber.org/protocol/disco#info'>{CONFERENCE}</query>"
    for sender in (f"{GUEST}/alice", f"{GUEST}/x", "guest.example.org/x", "GUEST.example.org.", "example.org", ""):
        for request in requests:
            head = f"id='{request.get('id')}' to='{DOMAIN}'" + (f" from='{sender}'" if sender else "")
            await component.send(f"<iq type='result' {head}>{info}</iq>")
    for request in requests:
        head = f"id='{request.get('id')}' to='{DOMAIN}' from='{request.get('to')}'"
        await component.send(f"<iq type='result' {head}><query xmlns='{MUC}'>{CONFERENCE}</query></iq>")
    component.reading = asyncio.get_running_loop().create_task(component.read())

    assert [body_of(message) for message in await component.next_event(GUEST)] == [f"alice: {REFUSAL}"]
    assert await posts(component) == []


async def test_proof_ends_after_a_minute(component: Component) -> None:
    """The domain of the rooms becomes a host with accounts."""
    component.infos = {SERVICE: CONFERENCE, ROOM: CONFERENCE}
    await pose(component, ROOM)
    await say(component, ROOM, stanza_id="m2")
    assert len(await posts(component)) == 2 and len(component.asked) == 2
    component.infos = {SERVICE: SERVER, ROOM: ACCOUNT}
    component.clock.advance(VALID_S)
    assert await say(component, ROOM) == [f"alice: {REFUSAL}"]
    component.infos = {SERVICE: CONFERENCE, ROOM: CONFERENCE}
    component.clock.advance(VALID_S)
    await say(component, ROOM, stanza_id="m3")
    assert len(await posts(component)) == 3


async def test_nick_that_changes_hands_while_the_proof_is_read_keeps_its_message(component: Component) -> None:
    """The message belongs to the occupant who had the nick when it arrived."""
    component.infos = {SERVICE: CONFERENCE, ROOM: CONFERENCE}
    await component.create(ALICE, "news", publish_model="open")
    await enter(component, ROOM, f"jid='{bare(BOB)}'")
    await component.deaf()
    await deliver(component, f"{ROOM}/alice", "feeds: post news I am Bob", type="groupchat")
    requests = [await component.session.stanzas.get() for _ in range(3)]
    item = f"<x xmlns='{MUC}#user'><item affiliation='owner' jid='{bare(ALICE)}'/></x>"
    await component.send(f"<presence from='{ROOM}/alice' to='{DOMAIN}'>{item}</presence>")
    for request in requests:
        is_list = request.find(f"{{{ITEMS}}}query") is not None
        await (component._list(request) if is_list else component._describe(request, ""))
    component.reading = asyncio.get_running_loop().create_task(component.read())
    await component.settle()
    answer = await component.get(ALICE, "<items node='news'/>")
    authors = answer.iterfind(".//a:author/a:uri", NS)
    assert [author.text for author in authors] == [f"xmpp:{bare(BOB)}"]


PING = "<ping xmlns='urn:xmpp:ping'/>"


async def test_occupant_has_not_the_rights_of_the_room(component: Component) -> None:
    """Rooms pass on requests and private messages of any occupant (XEP-0045 section 7.5), from the room's address."""
    component.infos = {SERVICE: CONFERENCE, ROOM: CONFERENCE}
    await component.create(ALICE, "news")
    await component.create(ALICE, "plans", access_model="authorize")
    await enter(component, ROOM)
    await say(component, ROOM, "feeds: subscribe news")
    await component.affiliate(ALICE, "plans", ROOM, "owner")
    assert await component.subscribe(BOB, "plans") == "pending"
    ps = "http://jabber.org/protocol/pubsub"
    for inner in (f"<unsubscribe node='news' jid='{ROOM}'/>", "<create node='club'/>", "<publish node='plans'/>"):
        answer = await component.set(f"{ROOM}/mallory", inner)
        assert answer.find("c:error/st:forbidden", NS) is not None, inner
    command = "<command xmlns='http://jabber.org/protocol/commands' node='x'/>"
    answer = await component.ask(f"{ROOM}/mallory", "set", command)
    assert answer.find("c:error/st:forbidden", NS) is not None
    assert (await component.ask(f"{ROOM}/mallory", "get", PING)).get("type") == "result", "clients ask occupants"
    form = (
        f"<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>{ps}#subscribe_authorization</value>"
        f"</field><field var='pubsub#node'><value>plans</value></field><field var='pubsub#subscriber_jid'><value>"
        f"{bare(BOB)}</value></field><field var='pubsub#allow'><value>true</value></field></x>"
    )
    await component.send(f"<message from='{ROOM}/mallory' to='{DOMAIN}'>{form}</message>")
    assert await write(component, f"{ROOM}/mallory", "unsubscribe news") == []
    answer = await component.set(BOB, f"<subscribe node='plans' jid='{bare(BOB)}'/>")
    assert answer.find("c:error/{*}pending-subscription", NS) is not None, "the form of an occupant approves nothing"
    assert (await say(component, ROOM, "feeds: subscriptions"))[-1] == "alice: You follow:\n- news"


async def test_room_shows_the_bot_although_it_has_not_entered_yet(component: Component, start: Starter) -> None:
    """After a restart an occupant's private message looks like one of an account."""
    component.infos = {SERVICE: CONFERENCE, ROOM: CONFERENCE}
    await component.create(ALICE, "news")
    await enter(component, ROOM)
    await say(component, ROOM, "feeds: subscribe news")
    component = await start.again(component)
    assert await write(component, f"{ROOM}/mallory", "unsubscribe news") == []


async def test_occupant_cannot_sign_a_browser_in_as_the_room(component: Component) -> None:
    """Somebody types the address of the room at the sign-in page, and confirms the request through the room."""
    await enter(component, ROOM)
    sign_ins = component.app.parts.get(SignIns)
    target = Jid("club", SERVICE)
    sign_in = sign_ins.begin("cookie", "192.0.2.1", "site", target, "/")
    sign_ins.inform(sign_in, target)
    confirm = f"<confirm xmlns='http://jabber.org/protocol/http-auth' id='{sign_in.code}' method='POST' url='x'/>"
    await component.send(f"<message from='{ROOM}/mallory' to='{DOMAIN}'>{confirm}</message>")
    await component.settle()
    assert sign_ins.take("cookie") is None

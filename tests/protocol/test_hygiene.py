"""The link and the rules for all stanzas, through the whole component (xep-map A, B).

That each request gets one answer, from where it went, and that every stanza has both addresses and ours as sender, is
checked by the `component` fixture for every stanza of every test. Lines 4, 5 and 11 are tests of the link alone.
"""

import asyncio
import hashlib

import pytest
from lxml import etree

from smartfeeds.app import config
from smartfeeds.core.jid import parse_jid
from smartfeeds.service.requests import Publish
from smartfeeds.xmpp.decode import decode
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    INFO,
    ITEMS,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    RSM,
    SUBSCRIBE_OPTIONS,
    Component,
    Refusal,
    Starter,
    bare,
    body,
    entry,
    form,
    ok,
    refusal,
    submit,
)
from support.faketime import settle

pytestmark = pytest.mark.shared

BAD_REQUEST = Refusal("modify", "bad-request")
NOT_FOUND = Refusal("cancel", "item-not-found")
UNAVAILABLE = Refusal("cancel", "service-unavailable")
BOBS = bare(BOB)
GONE = "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"


# A. The link


async def test_link_begins_with_header_and_handshake(component: Component) -> None:
    """[xep-map 1] [xep-map 2]"""
    session = component.session
    header = etree.fromstring(session.header.encode() + b"</stream:stream>")

    assert (header.nsmap[None], dict(header.attrib)) == ("jabber:component:accept", {"to": DOMAIN})
    assert session.handshake == hashlib.sha1((session.switches.stream_id + "secret").encode()).hexdigest()


async def test_nothing_is_sent_before_the_handshake_and_everything_after_it(start: Starter) -> None:
    """[xep-map 3] [xep-map 9]: an event that arose without a link waits for the next one."""
    component = await start(link={"retry_first_s": 0.001, "retry_most_s": 0.002})
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    await component.server.stop_listening()
    component.session.cut()
    await component.app.stream.wait_closed()

    alice = parse_jid(ALICE)
    assert alice is not None
    request = decode("set", _published("one"), alice, DOMAIN)
    assert isinstance(request, Publish)
    await component.app.handle(request)
    await component.server.listen()
    await component.follow(await component.server.session(2))

    assert component.session.before_online == []
    (message,) = await component.events(BOBS)
    assert message.xpath("string(.//ev:item/@id)", namespaces=NS) == "one"


def _published(item_id: str) -> etree._Element:
    item = f"<item id='{item_id}'>{entry(item_id)}</item>"
    return etree.fromstring(f"<pubsub xmlns='{PS}'><publish node='comments'>{item}</publish></pubsub>")


async def test_lost_link_comes_back_and_leaves_nothing_half_written(start: Starter) -> None:
    """[xep-map 9]"""
    component = await start(link={"retry_first_s": 0.001, "retry_most_s": 0.002})
    await component.create(ALICE, "comments")
    requests = [etree.tostring(_published(f"n{number:02}"), encoding="unicode") for number in range(20)]
    lost = [asyncio.create_task(component.ask(ALICE, "set", request)) for request in requests]
    await settle()
    component.session.cut()
    await component.follow(await component.server.session(2))
    for task in lost:
        task.cancel()

    page = ok(await component.get(BOB, f"<items node='comments'/><set xmlns='{RSM}'><max>100</max></set>"))
    items = page.findall("ps:pubsub/ps:items/ps:item", NS)
    ids = [str(item.get("id")) for item in items]
    assert ids == [f"n{number:02}" for number in range(len(ids))]
    assert [item.findtext("a:entry/a:title", namespaces=NS) for item in items] == ids
    assert page.findtext(".//rsm:count", namespaces=NS) == str(len(ids))
    await component.publish(ALICE, "comments", "after")
    assert await component.item_ids(BOB, "comments") == [*ids, "after"]


@pytest.mark.parametrize("place", [DOMAIN, f"article_1@{DOMAIN}", f"article_1@{DOMAIN}/widget"])
async def test_everything_comes_from_the_address_that_was_asked(component: Component, place: str) -> None:
    """[xep-map 6] [xep-map 7] [xep-map 8]: results, errors, discovery, events."""
    await component.create(ALICE, "comments", notify_config="true", send_last_published_item="on_sub")
    await component.publish(ALICE, "comments", "one")

    answers = [
        await component.set(BOB, f"<subscribe node='comments' jid='{BOBS}'/>", place),
        await component.get(BOB, "<items node='missing'/>", place),
        await component.ask(BOB, "get", f"<query xmlns='{INFO}'/>", place),
        await component.ask(BOB, "get", f"<query xmlns='{ITEMS}' node='comments'/>", place),
        await component.ask(BOB, "get", "<query xmlns='urn:example:unknown'/>", place),
        await component.ask(BOB, "get", "<ping xmlns='urn:xmpp:ping'/>", place),
        await component.ask(BOB, "get", "<query xmlns='jabber:iq:version'/>", place),
    ]
    await component.publish(ALICE, "comments", "two")
    messages = await component.events(BOBS)
    await component.retract(ALICE, "comments", "two")
    messages += await component.events(BOBS)
    await component.configure(ALICE, "comments", title="New")
    messages += await component.events(BOBS)
    await component.affiliate(ALICE, "comments", BOB, "outcast")
    messages += await component.events(BOBS)

    assert {(answer.get("from"), answer.get("to")) for answer in answers} == {(place, BOB)}
    assert len(messages) == 5
    assert {(m.get("from"), m.get("to")) for m in messages} == {(place.partition("/")[0], BOBS)}


async def test_events_come_from_the_address_of_each_subscription(component: Component) -> None:
    """[xep-map 7] [xep-map 8] [xep-map 164]"""
    await component.create(ALICE, "comments")
    for user, place in ((BOB, f"one@{DOMAIN}"), (CAROL, f"two@{DOMAIN}")):
        ok(await component.set(user, f"<subscribe node='comments' jid='{bare(user)}'/>", place))

    await component.publish(ALICE, "comments", "one")

    assert [m.get("from") for m in await component.events(BOBS)] == [f"one@{DOMAIN}"]
    assert [m.get("from") for m in await component.events(bare(CAROL))] == [f"two@{DOMAIN}"]


@pytest.mark.parametrize("letter", ["x", "\u20ac", "&", '"'])
async def test_pages_are_shortened_to_the_stanza_ceiling(start: Starter, letter: str) -> None:
    """[xep-map 10]: and what was left out comes with the next page."""
    component = await start(pubsub={"page_bytes": 20_000, "max_payload_size_bytes": 10_000})
    limit = component.app.settings.pubsub.stanza_bytes
    await component.create(ALICE, "comments")
    ids = [f"{number:03}{letter * (1_000 // len(letter.encode()))}" for number in range(20)]
    for item_id in ids:
        await component.publish(ALICE, "comments", item_id, entry("t" * 100))

    seen: list[str] = []
    after = ""
    while len(seen) < len(ids):
        page = ok(await component.get(BOB, f"<items node='comments'/><set xmlns='{RSM}'><max>100</max>{after}</set>"))
        assert len(etree.tostring(page)) < limit
        found = [str(item.get("id")) for item in page.iterfind("ps:pubsub/ps:items/ps:item", NS)]
        assert 0 < len(found) < len(ids)
        seen += found
        after = f"<after>{page.findtext('.//rsm:last', namespaces=NS)}</after>"
    plain = ok(await component.get(BOB, "<items node='comments'/>"))

    assert seen == ids
    assert plain.find(".//rsm:set", NS) is not None and len(etree.tostring(plain)) < limit


async def test_list_of_nodes_is_shortened_to_the_stanza_ceiling(start: Starter) -> None:
    """[xep-map 10] [xep-map 42]"""
    component = await start(pubsub={"page_bytes": 2_000, "max_payload_size_bytes": 1_024})
    names = [f"{number:02}{'&' * 100}" for number in range(12)]
    for name in names:
        await component.create(ALICE, name, title="<" * 100)

    seen: list[str] = []
    after = ""
    while len(seen) < len(names):
        page = ok(await component.ask(BOB, "get", f"<query xmlns='{ITEMS}'>{after}</query>"))
        assert len(etree.tostring(page)) < component.app.settings.pubsub.stanza_bytes
        found = [str(item.get("node")) for item in page.iterfind("items:query/items:item", NS)]
        assert 0 < len(found) < len(names)
        seen += found
        last = page.findtext("items:query/rsm:set/rsm:last", namespaces=NS)
        after = f"<set xmlns='{RSM}'><after>{(last or '').replace('&', '&amp;')}</after></set>"

    assert seen == names


async def test_answer_that_cannot_be_shortened_is_refused_and_the_link_stays(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 10]: what is told of a node has no next page."""
    monkeypatch.setattr(config, "MAX_SYNC_BYTES", 0)
    component = await start(pubsub={"page_bytes": 1_024, "max_payload_size_bytes": 1_024})
    await component.create(ALICE, "comments")
    entries = [f"<affiliation jid='{'x' * 900}{n}@example.org' affiliation='owner'/>" for n in range(12)]
    ok(await component.owner_set(ALICE, f"<affiliations node='comments'>{''.join(entries)}</affiliations>"))

    answer = await component.ask(ALICE, "get", f"<query xmlns='{INFO}' node='comments'/>")

    assert refusal(answer) == Refusal("modify", "not-acceptable")
    assert await component.item_ids(BOB, "comments") == []
    assert len(component.server.sessions) == 1


async def test_event_is_not_much_longer_than_its_payload(component: Component) -> None:
    """[xep-map 10] [xep-map 180]: a body is for reading, so it has an end."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments", include_body="true")
    await component.publish(ALICE, "comments", "one", entry("t" * 60_000))

    (message,) = await component.events(BOBS)

    assert message.findtext("c:body", namespaces=NS) == "t" * 1_000
    assert len(etree.tostring(message)) < 65_536 + 8_192


# B. Every stanza


@pytest.mark.parametrize("kind", ["get", "set"])
@pytest.mark.parametrize(
    "payload",
    [
        "<query xmlns='urn:example:unknown'/>",
        "<query xmlns='jabber:iq:private'/>",
        "<query xmlns='jabber:iq:register'/>",
        "<pubsub xmlns='http://jabber.org/protocol/pubsub#event'/>",
        "<actions xmlns='http://jabber.org/protocol/commands'/>",
        "<items xmlns='http://jabber.org/protocol/pubsub'/>",
    ],
)
async def test_unknown_payload_is_unavailable(component: Component, kind: str, payload: str) -> None:
    """[xep-map 12] [xep-map 13] [xep-map 25]"""
    assert refusal(await component.ask(BOB, kind, payload)) == UNAVAILABLE


@pytest.mark.parametrize("payload", ["", "<a xmlns='urn:a'/><b xmlns='urn:b'/>", "text"])
async def test_request_without_exactly_one_payload_is_refused(component: Component, payload: str) -> None:
    """[xep-map 12]; RFC 6120 8.2.3."""
    assert refusal(await component.ask(BOB, "get", payload)) == BAD_REQUEST


async def test_many_requests_at_once_get_one_answer_each(component: Component) -> None:
    """[xep-map 12]: the fixture counts them."""
    await component.create(ALICE, "comments")
    for number in range(50):
        await component.publish(ALICE, "comments", f"n{number}")
    answers = await asyncio.gather(*(component.get(BOB, "<items node='comments'/>") for _ in range(20)))

    assert [len(ok(answer).findall(".//ps:item", NS)) for answer in answers] == [50] * 20


@pytest.mark.parametrize(
    "stanza",
    [
        "<iq type='result' id='r1' {}><pubsub xmlns='http://jabber.org/protocol/pubsub'/></iq>",
        f"<iq type='error' id='r2' {{}}>{GONE}</iq>",
        "<iq type='result' id='r3' {}/>",
        f"<message type='error' id='r4' {{}}>{GONE}</message>",
        f"<message type='error' id='99.1' {{}}>{GONE}</message>",
        "<message type='normal' id='r5' {}><body>hello</body><x xmlns='urn:example:x'/></message>",
        "<message type='headline' id='r6' {}/>",
        "<presence {}/>",
        "<presence type='subscribe' {}/>",
        "<presence type='error' {}/>",
    ],
)
async def test_stanza_that_is_no_request_gets_no_answer(component: Component, stanza: str) -> None:
    """[xep-map 14]: the fixture would report one."""
    await component.send(stanza.format(f"from='{BOB}' to='{DOMAIN}'"))
    await component.settle()

    assert await component.events(BOB) == await component.events(BOBS) == []
    assert component.faults == []


PS_ACTIONS = {
    "get": {"items", "subscriptions", "affiliations", "options", "default"},
    "set": {"publish", "retract", "subscribe", "unsubscribe", "options", "create"},
}
OWNER_ACTIONS = {
    "get": {"configure", "default", "affiliations", "subscriptions"},
    "set": {"configure", "delete", "purge", "affiliations", "subscriptions"},
}
WRONG = [
    (kind, space, action)
    for space, known in ((PS, PS_ACTIONS), (OWNER, OWNER_ACTIONS))
    for kind in ("get", "set")
    for action in sorted({*set().union(*PS_ACTIONS.values(), *OWNER_ACTIONS.values()), "dance", ""} - known[kind])
]


@pytest.mark.parametrize(("kind", "space", "action"), WRONG)
async def test_action_that_does_not_exist_there_is_refused(
    component: Component, kind: str, space: str, action: str
) -> None:
    """[xep-map 15] [xep-map 16]: unknown, none, of the wrong IQ type, or of the other namespace."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")
    # What each action needs to be carried out, were it taken for one.
    needed = {
        "publish": f"<item id='two'>{entry('two')}</item>",
        "retract": "<item id='one'/>",
        "configure": form(NODE_CONFIG, title="Changed"),
    }
    inner = f"<{action} node='comments' jid='{bare(ALICE)}'>{needed.get(action, '')}</{action}>" if action else ""

    answer = await component.ask(ALICE, kind, f"<pubsub xmlns='{space}'>{inner}</pubsub>")

    assert refusal(answer) == BAD_REQUEST
    assert await component.item_ids(ALICE, "comments") == ["one"]
    assert ok(await component.get(ALICE, "<subscriptions/>")).find(".//ps:subscription", NS) is None
    configuration = ok(await component.owner_get(ALICE, "<configure node='comments'/>"))
    assert configuration.find(".//x:field[@var='pubsub#title'][x:value='Changed']", NS) is None


@pytest.mark.parametrize(
    "inner",
    [
        "<purge xmlns='http://jabber.org/protocol/pubsub#owner' node='comments'/>",
        "<items node='comments'/><purge xmlns='http://jabber.org/protocol/pubsub#owner' node='comments'/>",
        "<subscribe node='comments' jid='alice@example.org'/><unsubscribe node='comments' jid='alice@example.org'/>",
    ],
)
@pytest.mark.parametrize("kind", ["get", "set"])
async def test_mixed_actions_are_refused(component: Component, kind: str, inner: str) -> None:
    """[xep-map 15] [xep-map 16]; XEP-0060 17.4."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")

    answer = await component.ask(ALICE, kind, f"<pubsub xmlns='{PS}'>{inner}</pubsub>")

    assert refusal(answer) == BAD_REQUEST
    assert await component.item_ids(ALICE, "comments") == ["one"]
    assert ok(await component.get(ALICE, "<subscriptions/>")).find(".//ps:subscription", NS) is None


@pytest.mark.parametrize("space", [INFO, ITEMS])
async def test_discovery_of_type_set_is_refused(component: Component, space: str) -> None:
    """[xep-map 15]; XEP-0030 3.1."""
    assert refusal(await component.ask(BOB, "set", f"<query xmlns='{space}'/>")) == BAD_REQUEST


ERRORS = {  # one of every row of section 1.1 that v1 can send, by a request of Bob's
    "bad-request": ("set", PS, "<publish node='open'/>", Refusal("modify", "bad-request", "item-required")),
    "conflict": ("set", PS, "<create node='open'/>", Refusal("cancel", "conflict")),
    "precondition": (
        "set",
        PS,
        f"<publish node='open'><item>{entry('x')}</item></publish>"
        f"<publish-options>{form(PS + '#publish-options', access_model='whitelist')}</publish-options>",
        Refusal("cancel", "conflict", "precondition-not-met"),
    ),
    "feature-not-implemented": (
        "set",
        PS,
        f"<publish node='open?order=created'><item>{entry('x')}</item></publish>",
        Refusal("cancel", "feature-not-implemented", "unsupported", "publish"),
    ),
    "forbidden": ("set", OWNER, "<delete node='open'/>", Refusal("auth", "forbidden")),
    "item-not-found": ("get", PS, "<items node='missing'/>", NOT_FOUND),
    "not-acceptable": (
        "set",
        PS,
        f"<create node='new'/><configure>{form(NODE_CONFIG, max_items='0')}</configure>",
        Refusal("modify", "not-acceptable"),
    ),
    "not-allowed": ("set", PS, "<create node='open?x=1'/>", Refusal("cancel", "not-allowed")),
    "closed-node": ("get", PS, "<items node='closed'/>", Refusal("cancel", "not-allowed", "closed-node")),
    "not-authorized": ("get", PS, "<items node='asked'/>", Refusal("auth", "not-authorized", "not-subscribed")),
    "unsubscribe": (
        "set",
        PS,
        f"<unsubscribe node='open' jid='{BOBS}'/>",
        Refusal("cancel", "unexpected-request", "not-subscribed"),
    ),
    "options": (
        "get",
        PS,
        f"<options node='open' jid='{BOBS}'/>",
        Refusal("modify", "unexpected-request", "not-subscribed"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_errors_have_their_type_and_their_parts_in_order(component: Component, name: str) -> None:
    """[xep-map 17] [xep-map 18] [xep-map 19]: `refusal` checks the order; wait is tested in [xep-map 110]."""
    for node, model in (("open", "open"), ("closed", "whitelist"), ("asked", "authorize")):
        await component.create(ALICE, node, access_model=model, publish_model="open")
    kind, space, inner, wanted = ERRORS[name]

    answer = await component.ask(BOB, kind, f"<pubsub xmlns='{space}'>{inner}</pubsub>")

    assert refusal(answer) == wanted
    assert not wanted.feature.startswith("http")


async def test_addresses_are_compared_in_their_normal_form(component: Component) -> None:
    """[xep-map 20]"""
    await component.create("Alice@EXAMPLE.org/Home", "comments")
    await component.subscribe("BOB@example.ORG/work", "comments", "bob@EXAMPLE.org")

    await component.publish("alice@example.org/other", "comments", "one")
    listed = ok(await component.owner_get(ALICE, "<affiliations node='comments'/>"))

    assert [dict(e.attrib) for e in listed.iterfind(".//own:affiliation", NS)] == [
        {"jid": bare(ALICE), "affiliation": "owner"}
    ]
    assert len(await component.events(BOBS)) == 1
    ok(await component.set(BOB, "<unsubscribe node='comments' jid='Bob@Example.Org'/>"))
    assert refusal(await component.get(BOB, f"<options node='comments' jid='{BOBS}/Work'/>")).condition == (
        "unexpected-request"
    )


async def test_resources_are_compared_as_they_are(component: Component) -> None:
    """[xep-map 20]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments", f"{BOBS}/Work")

    answer = await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}/work'/>")

    assert refusal(answer) == Refusal("cancel", "unexpected-request", "not-subscribed")
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}/Work'/>"))


@pytest.mark.parametrize(
    "jid", ["@", "a@b@c", "bob@", "@example.org", "bob@example.org/", "a b@c", "x" * 1100 + "@c", ""]
)
async def test_malformed_addresses_get_an_error(component: Component, jid: str) -> None:
    """[xep-map 21]: in attributes and in forms; the fixture reports internal errors."""
    await component.create(ALICE, "comments")
    owners = f"<affiliation jid='{jid}' affiliation='member'/>"
    subscriptions = f"<subscription jid='{jid}' subscription='none'/>"
    contact = submit({"FORM_TYPE": [NODE_CONFIG], "pubsub#contact": ["ann@example.org", jid]})
    options = form(SUBSCRIBE_OPTIONS, deliver="0")

    answers = [
        await component.set(BOB, f"<subscribe node='comments' jid='{jid}'/>"),
        await component.set(BOB, f"<unsubscribe node='comments' jid='{jid}'/>"),
        await component.get(BOB, f"<options node='comments' jid='{jid}'/>"),
        await component.set(BOB, f"<options node='comments' jid='{jid}'>{options}</options>"),
        await component.owner_set(ALICE, f"<affiliations node='comments'>{owners}</affiliations>"),
        await component.owner_set(ALICE, f"<subscriptions node='comments'>{subscriptions}</subscriptions>"),
    ]
    configured = await component.owner_set(ALICE, f"<configure node='comments'>{contact}</configure>")

    assert {refusal(answer).type for answer in answers} == {"modify"}
    if jid:
        assert refusal(configured) == Refusal("modify", "jid-malformed")
    else:
        assert body(ok(configured)) == []  # an empty value of a field is none


@pytest.mark.parametrize("sender", ["a@b@c", "", "bob@/x"])
async def test_request_from_a_malformed_address_is_dropped(component: Component, sender: str) -> None:
    """[xep-map 21] [xep-map 6]: an answer would have no address; the fixture would report one."""
    await component.send(f"<iq type='get' id='bad' from='{sender}' to='{DOMAIN}'><query xmlns='{INFO}'/></iq>")
    await component.settle()

    assert component.faults == []

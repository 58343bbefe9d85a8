"""Publishing through the whole component (xep-map H; XEP-0060 7.1)."""

import asyncio

import pytest

from smartfeeds.formats.xml import MAX_DEPTH, MAX_NAMES
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DATA,
    EVE,
    NS,
    PS,
    PUBLISH_OPTIONS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    entry,
    fields,
    form,
    ok,
    refusal,
    tree,
)
from support.pulls import Shown, infoset, parsed, payload_of, publish_all, pull

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
BAD_REQUEST = Refusal("modify", "bad-request")
INVALID_PAYLOAD = Refusal("modify", "bad-request", "invalid-payload")
TOO_BIG = Refusal("modify", "not-acceptable", "payload-too-big")
UNMET = Refusal("cancel", "conflict", "precondition-not-met")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
FULL_ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:1</id><title>Hello</title>"
    "<updated>2026-01-01T00:00:00Z</updated><author><name>Alice</name></author><content>text</content></entry>"
)


async def publish(component: Component, user: str, inner: str, node: str = "comments", beside: str = "") -> Element:
    """The answer to a publish of these children."""
    return await component.set(user, f"<publish node='{node}'>{inner}</publish>{beside}")


async def item_of(component: Component, node: str, item_id: str, user: str = ALICE) -> Element:
    """One item as it is pulled by id."""
    (item,) = (await pull(component, node, user=user, ids=[item_id])).items
    return item


# Ids


@pytest.mark.both_engines
async def test_publish_with_an_id_gives_it_back(start: Starter) -> None:
    """[xep-map 130]"""
    component = await start()
    await component.create(ALICE, "comments")

    answer = ok(await publish(component, ALICE, f"<item id='tag:x,1'>{entry('one')}</item>"))

    assert body(answer) == [
        tree(f"<pubsub xmlns='{PS}'><publish node='comments'><item id='tag:x,1'/></publish></pubsub>")
    ]
    assert await component.item_ids(BOB, "comments") == ["tag:x,1"]


async def test_publish_without_an_id_tells_the_generated_one(component: Component) -> None:
    """[xep-map 131] [SF-011]"""
    await component.create(ALICE, "comments")

    told = []
    for _ in range(3):
        answer = ok(await publish(component, ALICE, f"<item>{entry('one')}</item>"))
        item_id = str(answer.xpath("string(ps:pubsub/ps:publish/ps:item/@id)", namespaces=NS))
        assert body(answer) == [
            tree(f"<pubsub xmlns='{PS}'><publish node='comments'><item id='{item_id}'/></publish></pubsub>")
        ]
        told.append(item_id)

    assert len(set(told)) == 3
    assert await component.item_ids(BOB, "comments") == told


async def test_publish_with_an_empty_id_gets_an_id(component: Component) -> None:
    """As in the example of XEP-0346 3.3."""
    await component.create(ALICE, "comments")

    answer = ok(await publish(component, ALICE, f"<item id=''>{entry('x')}</item>"))

    (item_id,) = answer.xpath(".//ps:item/@id", namespaces=NS)
    assert item_id and await component.item_ids(BOB, "comments") == [item_id]
    empty = await component.set(ALICE, "<retract node='comments'><item id=''/></retract>")
    assert refusal(empty) == Refusal("modify", "bad-request", "item-required")


@pytest.mark.parametrize("item_id", ["x" * 1024, "ü" * 512])
async def test_publish_with_an_id_that_is_too_long_is_refused(component: Component, item_id: str) -> None:
    """[xep-map 55]"""
    await component.create(ALICE, "comments")

    assert refusal(await publish(component, ALICE, f"<item id='{item_id}'>{entry('x')}</item>")) == BAD_REQUEST
    assert await component.item_ids(BOB, "comments") == []


# Form


@pytest.mark.parametrize("node", ["", " node=''"])
async def test_publish_without_a_node_is_refused(component: Component, node: str) -> None:
    """[xep-map 134]"""
    answer = await component.set(ALICE, f"<publish{node}><item id='x'>{entry('x')}</item></publish>")

    assert refusal(answer) == Refusal("modify", "bad-request", "nodeid-required")


async def test_publish_without_item_or_payload_is_refused(component: Component) -> None:
    """[xep-map 135]"""
    await component.create(ALICE, "comments")

    assert refusal(await publish(component, ALICE, "")) == Refusal("modify", "bad-request", "item-required")
    for item in ("<item/>", "<item id='x'/>", "<item id='x'> text </item>"):
        assert refusal(await publish(component, ALICE, item)) == Refusal("modify", "bad-request", "payload-required")
    assert await component.item_ids(BOB, "comments") == []


async def test_item_with_two_payloads_is_refused(component: Component) -> None:
    """[xep-map 136]"""
    await component.create(ALICE, "comments")

    answer = await publish(component, ALICE, f"<item id='x'>{entry('a')}{entry('b')}</item>")

    assert refusal(answer) == INVALID_PAYLOAD
    assert await component.item_ids(BOB, "comments") == []


async def test_payload_of_a_whole_stanza_is_refused_and_the_link_stays(component: Component) -> None:
    """[xep-map 137] [xep-map 10]: 600 KB, more than a server lets through, and more than one item may have."""
    await component.create(ALICE, "comments")
    await component.create(ALICE, "box", kind="generic")

    for node in ("comments", "box"):
        assert refusal(await publish(component, ALICE, f"<item>{entry('x' * 600_000)}</item>", node)) == TOO_BIG

    assert len(component.server.sessions) == 1
    assert await component.item_ids(BOB, "box") == []


async def test_payload_that_a_feed_does_not_accept_is_refused(component: Component) -> None:
    """[xep-map 138] [SF-091]: the error says how to store other payloads."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "old")

    answer = await publish(component, ALICE, "<item id='1'><entry xmlns=''/></item>")

    assert refusal(answer) == INVALID_PAYLOAD
    assert "persist_items false, item_expire, max_items below 10000, or another pubsub#type" in str(
        answer.xpath("string(c:error/st:text)", namespaces=NS)
    )
    assert await component.item_ids(BOB, "comments") == ["old"]


# The same publish again


@pytest.mark.both_engines
async def test_identical_publish_is_no_change(start: Starter) -> None:
    """[TOP-035] The answer is that of a change, but the item stays in its place and nothing is pushed."""
    component = await start()
    await component.create(ALICE, "comments", publish_model="open")
    await component.subscribe(BOB, "comments")
    sent = FULL_ENTRY.replace("2026-01-01T00:00:00Z", "now")
    changed = ok(await publish(component, ALICE, f"<item id='one'>{sent}</item>"))
    await component.publish(ALICE, "comments", "two")
    component.clock.advance(60)
    await component.events(bare(BOB))
    before = tree((await item_of(component, "comments", "one"))[0])

    # Written in another way; canonical form is the same.
    again = ok(await publish(component, ALICE, f"<item id='one'>{sent.replace('<title>', '<title >')}</item>"))

    assert body(again) == body(changed)
    assert await component.events(bare(BOB)) == []
    assert await component.item_ids(BOB, "comments") == ["one", "two"]
    assert tree((await item_of(component, "comments", "one"))[0]) == before


async def test_two_items_at_once_are_refused(component: Component) -> None:
    """[xep-map 140]: none is stored; the condition is that of section 1.3, row 12.11."""
    await component.create(ALICE, "comments")

    answer = await publish(component, ALICE, f"<item id='a'>{entry('a')}</item><item id='b'>{entry('b')}</item>")

    assert refusal(answer) == INVALID_PAYLOAD
    assert await component.item_ids(BOB, "comments") == []


# Overwriting, publishers


@pytest.mark.both_engines
async def test_existing_id_is_overwritten(start: Starter) -> None:
    """[xep-map 141] [SF-010] [SF-011] [SF-037]: newest in modified order, its old place in created order, one event."""
    component = await start()
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c")
    await component.subscribe(BOB, "comments")
    edited = FULL_ENTRY.replace("Hello", "edited")

    await component.publish(ALICE, "comments", "a", edited)

    (event,) = await component.events(bare(BOB))
    (item,) = event.iterfind("ev:event/ev:items/ev:item", NS)
    assert (item.get("id"), infoset(payload_of(item))) == ("a", infoset(parsed(edited)))
    for node, ids in ((MODIFIED, ["b", "c", "a"]), (CREATED, ["a", "b", "c"]), ("comments", ["b", "c", "a"])):
        page = await pull(component, node)
        assert page.ids == ids
        assert infoset(payload_of(page.items[ids.index("a")])) == infoset(parsed(edited))


async def test_publisher_of_a_request_is_ignored(component: Component) -> None:
    """[xep-map 142] [SF-110]: the stored one is the requester's bare JID, of whoever published last."""
    await component.create(ALICE, "comments", publish_model="open")
    await component.subscribe(CAROL, "comments")

    ok(await publish(component, BOB, f"<item id='one' publisher='alice@example.org'>{entry('one')}</item>"))

    (event,) = await component.events(bare(CAROL))
    assert event.xpath("string(ev:event/ev:items/ev:item/@publisher)", namespaces=NS) == bare(BOB)
    assert (await item_of(component, "comments", "one")).get("publisher") == bare(BOB)
    await component.publish(ALICE, "comments", "one")
    assert (await item_of(component, "comments", "one")).get("publisher") == bare(ALICE)


@pytest.mark.parametrize(("itemreply", "expected"), [("publisher", bare(BOB)), ("none", None)])
async def test_itemreply_decides_whether_the_publisher_is_told(
    component: Component, itemreply: str, expected: str | None
) -> None:
    """[xep-map 143]: in events, in every kind of retrieval, and in the item sent to a new subscriber."""
    await component.create(
        ALICE, "comments", publish_model="open", itemreply=itemreply, send_last_published_item="on_sub"
    )
    await component.subscribe(CAROL, "comments")
    await component.subscribe(CAROL, MODIFIED)

    await component.publish(BOB, "comments", "one")

    messages = await component.events(bare(CAROL))
    await component.subscribe(EVE, "comments")
    messages += await component.events(bare(EVE))
    told = [item.get("publisher") for message in messages for item in message.iterfind(".//ev:item", NS)]
    assert told == [expected] * 3
    pages: list[Shown] = [
        await pull(component, "comments"),
        await pull(component, CREATED, max=1),
        await pull(component, "comments", ids=["one"]),
        await pull(component, MODIFIED, max_items=1),
    ]
    assert [page.items[0].get("publisher") for page in pages] == [expected] * 4


# Payloads

SIGNATURE = (
    "<s:note xmlns:s='urn:example:s' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xmlns:t='urn:example:t'"
    " xsi:type='t:kind'>t:name</s:note>"
)
PAYLOADS = {
    "CDATA": "<p xmlns='urn:x'><![CDATA[<b> & ]]>]]&gt;<![CDATA[]]></p>",
    "entities and references": "<p xmlns='urn:x' a='&quot;&apos;&lt;&amp;'>&lt;&#x41;&#65;&gt;&#xD;&#9;</p>",
    "line ends in attributes": "<p xmlns='urn:x' a='1&#10;2&#13;3&#9;4'/>",
    "spaces": "<p xmlns='urn:x'>  <q>\n\t</q> tail </p>",
    "mixed content": "<p xmlns='urn:x'>a<q>b</q>c<q/>d</p>",
    "language": "<p xmlns='urn:x' xml:lang='de-AT'><q xml:lang='en'>x</q><r xml:lang=''/></p>",
    "xml:space and xml:base": "<p xmlns='urn:x' xml:space='preserve' xml:base='http://example.org/'> </p>",
    "prefixes": "<a:p xmlns:a='urn:x' xmlns:b='urn:y' a:k='1' b:k='2' k='3'><b:q/><q xmlns=''/></a:p>",
    "one namespace under two prefixes": "<a:p xmlns:a='urn:x' xmlns:b='urn:x'><b:q a:k='1'/></a:p>",
    "a prefix with another meaning inside": "<a:p xmlns:a='urn:x'><a:q xmlns:a='urn:y'/></a:p>",
    "names in content": SIGNATURE,
    "no namespace": "<p xmlns='' k='v'><q/></p>",
    "relative namespace": "<vCard xmlns='vcard-temp'><FN>Ann</FN><x:y xmlns:x='also-relative'/></vCard>",
    "pubsub inside": f"<pubsub xmlns='{PS}'><items node='x'><item id='y'/></items></pubsub>",
    "a stanza inside": "<message xmlns='jabber:client' to='x'><body>y</body></message>",
    "all planes": "<p xmlns='urn:x' ключ='значение'>é e\u0301 \u202e 東京 😀 \u00a0\u2028</p>",
}


@pytest.mark.parametrize("name", PAYLOADS)
async def test_payload_comes_back_infoset_equal(component: Component, name: str) -> None:
    """[xep-map 144]: in the event, by id and in a page, whatever language the stanza has."""
    await component.create(ALICE, "box", kind="generic")
    await component.subscribe(BOB, "box")
    publishing = f"<publish node='box'><item id='one'>{PAYLOADS[name]}</item></publish>"
    ok(
        await component.ask(
            ALICE, "set", f"<pubsub xmlns='{PS}' xml:lang='de' xml:space='preserve'>{publishing}</pubsub>"
        )
    )

    given = [
        item
        for message in await component.events(bare(BOB))
        for item in message.iterfind("ev:event/ev:items/ev:item", NS)
    ]
    given += (await pull(component, "box", ids=["one"])).items + (await pull(component, "box", max=1)).items
    assert [infoset(payload_of(item)) for item in given] == [infoset(parsed(PAYLOADS[name]))] * 3


async def test_prefixes_in_content_keep_their_meaning(component: Component) -> None:
    """[xep-map 144]: also those that are declared around the payload, at the stanza."""
    await component.create(ALICE, "box", kind="generic")
    inner = "<note xmlns='urn:x' kind='o:outer'>o:text</note>"
    answer = await component.ask(
        ALICE,
        "set",
        f"<pubsub xmlns='{PS}' xmlns:o='urn:example:outer'><publish node='box'>"
        f"<item id='one'>{inner}</item></publish></pubsub>",
    )
    ok(answer)
    await component.publish(ALICE, "box", "two", SIGNATURE)

    assert payload_of(await item_of(component, "box", "one")).nsmap["o"] == "urn:example:outer"
    second = payload_of(await item_of(component, "box", "two"))
    assert (second.nsmap["t"], second.prefix) == ("urn:example:t", "s")


def nested(depth: int) -> str:
    """A payload of so many levels."""
    return "<d xmlns='urn:x'>" + "<d>" * (depth - 1) + "</d>" * depth


def many_names(count: int) -> str:
    """A payload of so many distinct names."""
    return "<d xmlns='urn:x'>" + "".join(f"<n{number}/>" for number in range(count - 1)) + "</d>"


@pytest.mark.parametrize(
    ("payload", "accepted"),
    [
        pytest.param(nested(MAX_DEPTH), True, id="deepest"),
        pytest.param(nested(MAX_DEPTH + 1), False, id="too deep"),
        pytest.param(nested(240), False, id="as deep as the parser goes"),
        pytest.param(many_names(MAX_NAMES), True, id="most names"),
        pytest.param(
            "<d xmlns='urn:x' " + " ".join(f"xmlns:p{n}='urn:{n}'" for n in range(65)) + ">p1:</d>",
            False,
            id="prefixes",
        ),
    ],
)
async def test_payload_within_its_limits_is_taken(component: Component, payload: str, *, accepted: bool) -> None:
    """[xep-map 246]: beyond them it is refused, and the link goes on."""
    await component.create(ALICE, "box", kind="generic")

    answer = await publish(component, ALICE, f"<item id='x'>{payload}</item>", "box")

    if accepted:
        ok(answer)
    else:
        assert refusal(answer) == INVALID_PAYLOAD
    assert await component.item_ids(BOB, "box") == (["x"] if accepted else [])
    assert len(component.server.sessions) == 1


@pytest.mark.parametrize(
    "payload", [pytest.param(nested(2_000), id="2,000 levels"), pytest.param(many_names(10_000), id="10,000 names")]
)
async def test_payload_far_beyond_its_limits_is_refused(component: Component, payload: str) -> None:
    """[xep-map 246]: the stanza gets one error, whatever becomes of its inside; the link and the service go on."""
    await component.create(ALICE, "box", kind="generic")

    answer = await publish(component, ALICE, f"<item id='x'>{payload}</item>", "box")

    assert refusal(answer).type == "modify"
    await component.publish(ALICE, "box", "y", "<d xmlns='urn:x'/>")
    assert await component.item_ids(BOB, "box") == ["y"]
    assert len(component.server.sessions) == 1


@pytest.mark.parametrize("namespace", ["two words", "%zz", "http://[", "^", "{x}", "a\u00adb", "urn:ü", "#", "?", "//"])
async def test_namespace_that_is_no_uri_ends_nothing(component: Component, namespace: str) -> None:
    """[xep-map 144]: taken with its name as it is, or refused; the link stays for everybody else."""
    await component.create(ALICE, "box", kind="generic")
    payload = f"<p xmlns='urn:x'><x:q xmlns:x='{namespace}'/></p>"

    answer = await publish(component, ALICE, f"<item id='x'>{payload}</item>", "box")

    if answer.get("type") == "result":
        assert payload_of(await item_of(component, "box", "x"))[0].tag == f"{{{namespace}}}q"
    else:
        assert refusal(answer).type == "modify"
    await component.publish(ALICE, "box", "y", "<d xmlns='urn:x'/>")
    assert len(component.server.sessions) == 1


# Publish options


async def test_option_that_is_not_so_stops_the_publish(component: Component) -> None:
    """[xep-map 146]: nothing is stored, nothing is configured, nobody is told."""
    await component.create(ALICE, "comments", title="Comments")
    await component.publish(ALICE, "comments", "old")
    await component.subscribe(BOB, "comments")
    before = fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>")))
    given = (
        f"<publish-options>{form(PUBLISH_OPTIONS, '', persist_items='true', notify_config='true')}</publish-options>"
    )

    answer = await publish(component, ALICE, f"<item id='x'>{entry('x')}</item>", beside=given)

    assert refusal(answer) == UNMET
    assert await component.item_ids(BOB, "comments") == ["old"]
    assert fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>"))) == before
    assert await component.events(bare(BOB)) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(f"<x xmlns='{DATA}' type='result'/>", id="a result"),
        pytest.param("<x xmlns='jabber:x:oob' type='submit'/>", id="another x"),
    ],
)
async def test_options_without_their_form_are_refused(component: Component, options: str) -> None:
    """[xep-map 148]"""
    await component.create(ALICE, "comments")
    given = f"<publish-options>{options}</publish-options>"

    answer = await publish(component, ALICE, f"<item id='x'>{entry('x')}</item>", beside=given)

    assert refusal(answer) == BAD_REQUEST
    assert await component.item_ids(BOB, "comments") == []


async def test_options_of_movim_let_its_post_through_in_one_request(component: Component) -> None:
    """[xep-map 145]; 6.1: only owners notice notify_sub, so it is no condition for a post."""
    await component.create(ALICE, "comments")
    wanted = form(PUBLISH_OPTIONS, persist_items="true", max_items="max", itemreply="publisher", notify_sub="true")
    given = f"<publish-options>{wanted}</publish-options>"

    answer = await publish(component, ALICE, f"<item id='x'>{entry('x')}</item>", beside=given)

    ok(answer)
    assert await component.item_ids(BOB, "comments") == ["x"]
    assert (await component.config(ALICE, "comments"))["notify_sub"] == ["false"]


@pytest.mark.both_engines
async def test_options_configure_the_node_that_auto_create_makes(start: Starter) -> None:
    """[xep-map 150]"""
    component = await start(pubsub={"auto_create": True})
    wanted = form(PUBLISH_OPTIONS, access_model="whitelist", title="Mine", max_items="max")
    given = f"<publish-options>{wanted}</publish-options>"

    ok(await publish(component, ALICE, f"<item id='x'>{entry('x')}</item>", "made", given))

    config = fields(ok(await component.owner_get(ALICE, "<configure node='made'/>")))
    assert (config["access_model"], config["title"]) == (["whitelist"], ["Mine"])
    assert refusal(await component.get(BOB, "<items node='made'/>")) == Refusal("cancel", "not-allowed", "closed-node")
    impossible = f"<publish-options>{form(PUBLISH_OPTIONS, access_model='presence')}</publish-options>"
    answer = await publish(component, ALICE, f"<item id='x'>{entry('x')}</item>", "other", impossible)
    assert refusal(answer) == Refusal("modify", "not-acceptable", "unsupported-access-model")
    assert refusal(await component.get(ALICE, "<items node='other'/>")) == NOT_FOUND


# Events, and writers at once


@pytest.mark.both_engines
async def test_item_can_be_pulled_when_its_event_arrives(start: Starter) -> None:
    """[xep-map 152] [SF-003]: also when the event overtakes the answer to the publisher."""
    component = await start()
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    for number in range(20):
        publishing = asyncio.create_task(component.publish(ALICE, "comments", f"item-{number}"))
        (event,) = await component.next_event(bare(BOB))
        (told,) = event.iterfind("ev:event/ev:items/ev:item", NS)
        assert told.get("id") == f"item-{number}"
        assert (await pull(component, "comments", ids=[f"item-{number}"])).ids == [f"item-{number}"]
        await publishing


@pytest.mark.both_engines
async def test_many_writers_at_once_get_keys_in_the_order_they_become_visible(start: Starter) -> None:
    """[A-31] [xep-map 153] [SF-039]: a reader who follows by pulls sees each of them once."""
    component = await start()
    await component.create(ALICE, "comments", publish_model="open")
    await component.publish(ALICE, "comments", "first")
    last = (await pull(component, MODIFIED, max=1)).last
    users = [ALICE, BOB, CAROL, EVE]

    publishing = [
        asyncio.create_task(component.publish(users[number % 4], "comments", f"item-{number}")) for number in range(60)
    ]
    seen: list[str] = []
    while len(seen) < 60:
        page = await pull(component, MODIFIED, after=last, max=7)
        seen += page.ids
        last = page.last or last
    await asyncio.gather(*publishing)

    assert sorted(seen) == sorted(f"item-{number}" for number in range(60))
    assert (await pull(component, CREATED, max=100)).ids[1:] == seen

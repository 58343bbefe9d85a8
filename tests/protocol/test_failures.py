"""Errors that come back, hostile requests, limits, through the whole component (xep-map Q; XEP-0060 12.4, 14)."""

import asyncio
from itertools import pairwise

import pytest
import pytest_asyncio

from smartfeeds.push.bounces import BOUND, PERIOD_S
from smartfeeds.xmpp.decode import MAX_ENTRIES
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    INFO,
    ITEMS,
    NODE_CONFIG,
    NS,
    PS,
    Component,
    Refusal,
    Starter,
    bare,
    entry,
    fields,
    form,
    headers,
    ok,
    refusal,
    submit,
    tree,
)
from support.pulls import publish_all, pull, put, request, result_set
from support.waiting import wait_for

pytestmark = pytest.mark.shared

BUSY = Refusal("wait", "resource-constraint")
TOO_MANY = Refusal("wait", "policy-violation", "too-many-subscriptions")
TOO_LONG = Refusal("modify", "not-acceptable")
NOT_FOUND = Refusal("cancel", "item-not-found")
BAD_REQUEST = Refusal("modify", "bad-request")
MODIFIED = "comments?order=modified"


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """A feed that BOB and CAROL follow."""
    await component.create(ALICE, "comments")
    for user in (BOB, CAROL):
        await component.subscribe(user, "comments")
    return component


async def subscribed(component: Component, user: str) -> bool:
    """Whether the user has a subscription."""
    answer = ok(await component.get(user, "<subscriptions/>"))
    return answer.find(".//ps:subscription[@subscription='subscribed']", NS) is not None


def bounce(message_id: str, sender: str, condition: str = "service-unavailable") -> str:
    """An error that answers an event."""
    return (
        f"<message type='error' id='{message_id}' from='{sender}' to='{DOMAIN}'><error type='cancel'>"
        f"<{condition} xmlns='{NS['st']}'/></error></message>"
    )


async def told(component: Component, user: str, item_id: str) -> str:
    """Publishes an item; the id of the message that tells the user."""
    await component.publish(ALICE, "comments", item_id)
    (message,) = await component.events(bare(user))
    return str(message.get("id"))


# Bounces


async def test_error_is_matched_by_its_id_to_the_subscription(feed: Component) -> None:
    """[xep-map 241] [xep-map 242] [xep-map 14]: gone ends that one, and no other, at once; nobody gets an answer."""
    await feed.create(ALICE, "other")
    await feed.subscribe(BOB, "other")
    message_id = await told(feed, BOB, "one")

    await feed.send(bounce(message_id, bare(BOB), "gone"))
    await feed.settle()

    listed = ok(await feed.get(BOB, "<subscriptions/>"))
    assert [each.get("node") for each in listed.iterfind(".//ps:subscription", NS)] == ["other"]
    assert await subscribed(feed, CAROL)
    await feed.publish(ALICE, "comments", "two")
    assert [
        m.find(".//ev:item", NS) for m in await feed.events(bare(BOB)) if m.find(".//ev:item", NS) is not None
    ] == []


@pytest.mark.parametrize("event", ["purge", "configuration", "retract"])
async def test_error_to_any_event_is_matched(feed: Component, event: str) -> None:
    """[xep-map 241]"""
    await feed.configure(ALICE, "comments", notify_config="true")
    await feed.publish(ALICE, "comments", "one")
    await feed.events(bare(BOB))
    if event == "purge":
        ok(await feed.owner_set(ALICE, "<purge node='comments'/>"))
    elif event == "retract":
        await feed.retract(ALICE, "comments", "one")
    else:
        await feed.configure(ALICE, "comments", title="New")
    (message,) = await feed.events(bare(BOB))
    assert message.find(f".//ev:{event}", NS) is not None

    await feed.send(bounce(str(message.get("id")), BOB, "gone"))
    await feed.settle()

    assert not await subscribed(feed, BOB)
    assert await subscribed(feed, CAROL)


@pytest.mark.parametrize(
    "condition",
    ["service-unavailable", "remote-server-not-found", "recipient-unavailable", "item-not-found", "forbidden", "x"],
)
async def test_other_errors_end_nothing_on_first_sight(feed: Component, condition: str) -> None:
    """[xep-map 243] [xep-map 244]: the user may be offline, or the way to him cut."""
    for number in range(3):
        await feed.send(bounce(await told(feed, BOB, f"item-{number}"), bare(BOB), condition))
        await feed.settle()

    assert await subscribed(feed, BOB)
    await told(feed, BOB, "later")


async def many(component: Component, message_id: str, sender: str, count: int) -> None:
    """So many errors at once, in portions as a server forwards them."""
    for start in range(0, count, 250):
        await component.send(bounce(message_id, sender) * min(250, count - start))
        await component.settle()


async def test_too_many_errors_end_the_subscription(feed: Component) -> None:
    """[xep-map 243]: past the limit, not at it; that of the others goes on."""
    message_id = await told(feed, BOB, "one")

    await many(feed, message_id, bare(BOB), BOUND)
    assert await subscribed(feed, BOB)
    await many(feed, message_id, bare(BOB), 1)

    assert not await subscribed(feed, BOB)
    assert await subscribed(feed, CAROL)


async def test_good_period_starts_the_count_anew(feed: Component) -> None:
    """[xep-map 243]"""
    message_id = await told(feed, BOB, "one")
    await many(feed, message_id, bare(BOB), BOUND)

    feed.clock.advance(PERIOD_S + 1)
    await many(feed, message_id, bare(BOB), BOUND)

    assert await subscribed(feed, BOB)


@pytest.mark.parametrize("sender", [EVE, "elsewhere.example", "bob@elsewhere.example", "alice@example.org/home"])
async def test_forged_errors_end_nobodys_subscription(feed: Component, sender: str) -> None:
    """[xep-map 241]: neither at once, nor by wearing it out for the next true error."""
    message_id = await told(feed, BOB, "one")

    await feed.send(bounce(message_id, sender, "gone"))
    await many(feed, message_id, sender, BOUND + 10)
    assert await subscribed(feed, BOB)
    await many(feed, message_id, bare(BOB), 1)
    assert await subscribed(feed, BOB)


@pytest.mark.parametrize(
    "message_id", ["", "1", "1.", "x.y", "1.1.1", "9" * 40 + ".1", "1." + "9" * 40, "-1.1", "0.1", "٣.١"]
)
async def test_errors_with_other_ids_are_nothing_to_us(feed: Component, message_id: str) -> None:
    """[xep-map 241] [xep-map 14]"""
    await feed.send(bounce(message_id, bare(BOB), "gone"))
    await feed.settle()

    assert await subscribed(feed, BOB)


# Hostile payloads and names


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param("<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>", id="doctype"),
        pytest.param("<p xmlns='urn:x'>&xxe;</p>", id="entity"),
    ],
)
async def test_document_type_in_a_stanza_is_never_expanded(start: Starter, inside: str) -> None:
    """[xep-map 246]: XMPP forbids it, so no server sends it; the link is made anew and nothing is stored."""
    component = await start(link={"retry_first_s": 0.01})
    await component.create(ALICE, "box", kind="generic")
    await component.deaf()
    await component.send(
        f"<iq type='set' id='evil' from='{EVE}' to='{DOMAIN}'><pubsub xmlns='{PS}'><publish node='box'>"
        f"<item id='x'>{inside}</item></publish></pubsub></iq>"
    )

    await wait_for(component.session.closed.wait(), "the end of the connection")
    await component.relink()

    assert await component.item_ids(BOB, "box") == []


async def test_no_address_in_a_payload_or_a_form_is_fetched(feed: Component) -> None:
    """[xep-map 247]: neither when it is published, nor when it is pulled."""
    connected: list[object] = []
    server = await asyncio.start_server(lambda reader, writer: connected.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/x"
    payload = (
        f"<entry xmlns='http://www.w3.org/2005/Atom' xml:base='{url}'><title>x</title><icon>{url}</icon>"
        f"<link rel='enclosure' href='{url}'/><link rel='alternate' href='{url}'/><content src='{url}'/>"
        f"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{url}'/>"
        f"<x xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:schemaLocation='{url} {url}'/></entry>"
    )
    async with server:
        await feed.publish(ALICE, "comments", "one", payload)
        for name in ("body_xslt", "dataform_xslt"):
            changed = form(NODE_CONFIG, "", **{name: url})
            answer = await feed.owner_set(ALICE, f"<configure node='comments'>{changed}</configure>")
            assert refusal(answer) == Refusal("modify", "not-acceptable")
        for text in (url, f"xmpp:{url}"):
            await feed.configure(ALICE, "comments", description=text, title=text, type=text)
            ok(await feed.ask(BOB, "get", f"<query xmlns='{INFO}' node='comments'/>"))
        assert (await pull(feed, MODIFIED)).ids == ["one"]
        await feed.settle()

    assert connected == []


NASTY = [
    "'; DROP TABLE item; --",
    '" OR 1=1 --',
    "%",
    "_",
    "*",
    "\\",
    "{0} {x} %s %(x)s",
    "?order=created'",
    "a\u0300\u0301\u0302",
    "\u202egnp.exe\u200d",
    "\ufeff\u2028\u00ad",
    "\U0001f469\u200d\U0001f4bb\U000e0001",
    "../../etc/passwd",
    "'\"<>&",
    "x" * 1023,
]


@pytest.mark.parametrize("text", NASTY)
async def test_ids_names_and_cursors_are_only_ever_values(component: Component, text: str) -> None:
    """[xep-map 248] [xep-map 55]: whatever they hold, they come back as they are and touch nothing else."""
    await component.create(ALICE, "comments")
    await component.create(ALICE, text)
    await component.publish(ALICE, "comments", "before")
    await component.publish(ALICE, text, text)
    await component.publish(ALICE, "comments", text)
    await component.subscribe(BOB, text)

    assert await component.item_ids(BOB, text) == [text]
    assert (await pull(component, text, ids=[text])).ids == [text]
    await component.publish(ALICE, "comments", "after")
    assert (await pull(component, "comments", after=f"id:{text}")).ids == ["after"]
    for position in (f"cursor:{text[:1000]}", f"time:{text[:1000]}"):
        for rsm in ({"after": position}, {"before": position}):
            answer = await request(component, MODIFIED, beside=result_set(**rsm))
            assert refusal(answer) in (NOT_FOUND, BAD_REQUEST)
    await component.publish(ALICE, text, "next")
    (message,) = await component.events(bare(BOB))
    assert message.xpath("string(ev:event/ev:items/@node)", namespaces=NS) == text
    listed = ok(await component.ask(BOB, "get", f"<query xmlns='{ITEMS}'/>"))
    assert {item.get("node") for item in listed.iterfind(".//items:item", NS)} == {"comments", text}
    await component.retract(ALICE, text, text)
    assert await component.item_ids(BOB, text) == ["next"]
    assert await component.item_ids(BOB, "comments") == ["before", text, "after"]


async def test_names_that_look_alike_are_different(component: Component) -> None:
    """[xep-map 47] [xep-map 55]: names are compared byte for byte, never folded or composed."""
    names = ["caf\u00e9", "cafe\u0301", "Caf\u00e9", "caf\u00e9 ", "сafé"]
    for name in names:
        await component.create(ALICE, name)
        await component.publish(ALICE, name, name)

    for name in names:
        assert await component.item_ids(BOB, name) == [name]


# Quotas


async def test_publishes_have_a_rate_for_each_address(start: Starter) -> None:
    """[xep-map 249]: whatever resource they come from; the others go on."""
    component = await start(limits={"publishes_per_s": 0.02})
    await component.create(ALICE, "comments", publish_model="open")

    answers = [
        await component.set(f"{bare(EVE)}/{n}", f"<publish node='comments'><item>{entry('x')}</item></publish>")
        for n in range(3)
    ]

    assert [answer.get("type") for answer in answers] == ["result", "error", "error"]
    assert refusal(answers[-1]) == BUSY
    await component.publish(BOB, "comments", "bobs")
    assert len(await component.item_ids(BOB, "comments")) == 2


async def test_publishes_have_a_rate_for_each_domain(start: Starter) -> None:
    """[xep-map 249]: new addresses do not escape it."""
    component = await start(limits={"publishes_per_s": 0.001})
    await component.create(ALICE, "comments", publish_model="open")
    publishing = f"<publish node='comments'><item>{entry('x')}</item></publish>"

    answers = [await component.set(f"user-{n}@elsewhere.example/x", publishing) for n in range(3)]

    assert [answer.get("type") for answer in answers] == ["result", "error", "error"]
    assert refusal(answers[-1]) == BUSY
    await component.publish(BOB, "comments", "bobs")


async def test_subscriptions_and_nodes_have_a_quota_for_each_address(start: Starter) -> None:
    """[xep-map 249] [xep-map 110]"""
    component = await start(limits={"subscriptions_per_jid": 3, "nodes_per_jid": 2})
    await component.create(ALICE, "comments")
    await component.create(ALICE, "other")
    for node, jid in (("comments", bare(BOB)), (MODIFIED, bare(BOB)), ("comments", BOB)):
        await component.subscribe(BOB, node, jid)

    refused = await component.set(BOB, f"<subscribe node='other' jid='{bare(BOB)}'/>")
    full = await component.set(ALICE, "<create node='third'/>")

    assert refusal(refused) == TOO_MANY
    assert refusal(full) == Refusal("wait", "policy-violation")
    await component.subscribe(BOB, "comments")  # has it already
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOB}'/>"))
    await component.subscribe(BOB, "other")
    await component.subscribe(CAROL, "other")


async def test_filtered_views_of_a_node_have_a_quota_for_each_address(start: Starter) -> None:
    """[xep-map 249]: each of them is looked at for every change of the node, so nobody may have thousands."""
    component = await start(limits={"filters_per_jid": 3})
    await component.create(ALICE, "comments")
    await component.create(ALICE, "other")
    for number in range(3):
        await component.subscribe(EVE, f"comments?q=word{number}")

    for jid in (bare(EVE), EVE):
        asked = f"<subscribe node='comments?kind=new' jid='{jid}'/>"
        assert refusal(await component.set(EVE, asked)) == TOO_MANY
    await component.subscribe(EVE, "comments?q=word1", EVE)  # no other view
    await component.subscribe(EVE, "comments")
    await component.subscribe(EVE, MODIFIED)
    await component.subscribe(EVE, "other?kind=new")
    await component.subscribe(BOB, "comments?kind=new")
    ok(await component.set(EVE, f"<unsubscribe node='comments?q=word0' jid='{bare(EVE)}'/>"))
    await component.subscribe(EVE, "comments?kind=new")


@pytest.mark.parametrize("count", [33, 64, 65, 150])
async def test_view_of_too_many_parameters_is_not_found(component: Component, count: int) -> None:
    """[xep-map 53]: 32 values of one filter, 64 parameters in all."""
    await component.create(ALICE, "comments")
    name = "comments?" + "&".join(f"q={n}" for n in range(count))

    assert refusal(await request(component, name)) == NOT_FOUND
    subscribing = name.replace("&", "&amp;")
    assert refusal(await component.set(EVE, f"<subscribe node='{subscribing}' jid='{bare(EVE)}'/>")) == NOT_FOUND


async def test_view_of_32_values_works(component: Component) -> None:
    """[xep-map 53] [SF-024]"""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")
    name = "comments?author=alice@example.org&" + "&".join(f"author={n}" for n in range(31))

    assert (await pull(component, name)).ids == ["one"]


# Large things


async def test_form_of_thousands_of_fields_changes_nothing_else(component: Component) -> None:
    """[xep-map 64] [xep-map 67]: unknown fields are passed over. A field with thousands of values is refused, and
    a form of ten thousand fields is not read."""
    await component.create(ALICE, "comments", title="Mine")
    unknown = {"FORM_TYPE": [NODE_CONFIG], **{f"pubsub#x{number}": ["1"] for number in range(2_000)}}
    many_values = {"FORM_TYPE": [NODE_CONFIG], "pubsub#contact": [f"u{n}@x.example" for n in range(4_000)]}
    many_fields = {f"pubsub#title{number}": ["1"] for number in range(10_000)}

    ok(await component.owner_set(ALICE, f"<configure node='comments'>{submit(unknown)}</configure>"))
    for form_ in (many_values, many_fields):
        refused = await component.owner_set(ALICE, f"<configure node='comments'>{submit(form_)}</configure>")
        assert refusal(refused) == Refusal("modify", "not-acceptable")

    config = fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>")))
    assert (config["title"], config["contact"]) == (["Mine"], [])


def longest(component: Component) -> int:
    """The size of the longest stanza that was sent, in bytes."""
    ends = [0]
    received = bytes(component.session.received)
    for mark in (b"</iq>", b"</message>"):
        start = received.find(mark)
        while start >= 0:
            ends.append(start)
            start = received.find(mark, start + 1)
    ends.sort()
    return max(later - earlier for earlier, later in pairwise([*ends, len(received)]))


LIMIT_BYTES = 262_144  # what a server with small limits takes (ejabberd's sample for clients)


async def test_no_answer_is_longer_than_a_stanza_may_be(start: Starter) -> None:
    """[xep-map 10]: not even where names, titles, ids and lists are made as long as they can be."""
    component = await start(limits={"subscriptions_per_jid_and_node": 150})
    long = "&<'\">" * 204
    await component.many_nodes([f"{number:03}{long}" for number in range(100)])
    first = f"000{long}"
    attribute = first.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&apos;")
    await component.configure(ALICE, first, title=long, description=long, publish_model="open")
    await put(component, first, [(f"{number:03}{long}", 1_700_000_000_000_000 + number) for number in range(200)])
    affiliations = [f"<affiliation jid='u{n}@{'x' * 200}.example' affiliation='publisher'/>" for n in range(900)]
    for at in range(0, len(affiliations), MAX_ENTRIES):
        some = "".join(affiliations[at : at + MAX_ENTRIES])
        ok(await component.owner_set(ALICE, f"<affiliations node='{attribute}'>{some}</affiliations>"))
    for number in range(150):
        await component.subscribe(EVE, first, f"{bare(EVE)}/{number}" + "r" * 900)

    items = f"<items node='{attribute}'"
    wanted = "".join(f"<item id='{number:03}{attribute[3:]}'/>" for number in range(40))
    answers = [
        await component.ask(BOB, "get", f"<query xmlns='{ITEMS}'/>"),
        await component.ask(BOB, "get", f"<query xmlns='{ITEMS}' node='{attribute}'/>"),
        await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='{attribute}'/>"),
        await component.get(BOB, f"{items}/>"),
        await component.get(BOB, f"{items}>{wanted}</items>"),
        await component.get(BOB, f"{items}/>{result_set(max=500, before='')}"),
        await component.get(EVE, "<subscriptions/>"),
        await component.owner_get(ALICE, f"<subscriptions node='{attribute}'/>"),
        await component.owner_get(ALICE, f"<affiliations node='{attribute}'/>"),
        await component.owner_get(ALICE, f"<configure node='{attribute}'/>"),
    ]

    refused = [number for number, answer in enumerate(answers) if answer.get("type") == "error"]
    assert all(refusal(answers[number]) == TOO_LONG for number in refused)
    assert set(refused) <= {4, 6, 7, 8}, "what has pages is cut, what has none is refused"
    assert longest(component) < LIMIT_BYTES


async def test_request_for_more_items_than_a_stanza_holds_is_refused(component: Component) -> None:
    """[xep-map 10] [xep-map 190]: an item that is left out would be taken for deleted (6.1), so none is."""
    await component.create(ALICE, "comments")
    ids = [f"item-{number}" for number in range(8)]
    for item_id in ids:
        await component.publish(ALICE, "comments", item_id, entry("x" * 60_000))

    answer = await request(component, "comments", ids=ids)

    assert refusal(answer) == TOO_LONG
    assert (await pull(component, "comments", ids=ids[:3])).ids == ids[:3]
    assert (await pull(component, "comments", ids=[f"item-{number}" for number in range(7, 507)])).ids == ["item-7"]
    unknown = await request(component, "comments", ids=[str(number) for number in range(501)])
    assert refusal(unknown) == TOO_LONG
    assert len(component.server.sessions) == 1


@pytest.mark.parametrize("size", [65_000, 65_500])
async def test_largest_item_goes_out_in_an_event_and_a_page(component: Component, size: int) -> None:
    """[xep-map 10]: with the longest names around it."""
    node, item_id = "n&" * 511, "i<" * 511
    await component.create(ALICE, "x" * 1000)
    attribute = node.replace("&", "&amp;")
    ok(await component.set(ALICE, f"<create node='{attribute}'/>"))
    await component.subscribe(BOB, node, f"{bare(BOB)}/{'r' * 1000}", include_body="true")

    title = "&" * (size // 5 - 100)
    await component.publish(ALICE, node, item_id, entry(title))

    (message,) = await component.events(f"{bare(BOB)}/{'r' * 1000}")
    assert message.findtext(".//ev:item/a:entry/a:title", None, NS) == title
    assert (await pull(component, node)).ids == [item_id]
    assert longest(component) < LIMIT_BYTES


async def test_stranger_learns_nothing_about_a_closed_node(component: Component) -> None:
    """[xep-map 185] [SF-111]: whether an id exists, how many items there are, who reads them."""
    await component.create(ALICE, "comments", access_model="whitelist")
    await publish_all(component, "comments", "a b")
    closed, forbidden = Refusal("cancel", "not-allowed", "closed-node"), Refusal("auth", "forbidden")

    for item_id in ("a", "unknown"):
        assert refusal(await request(component, "comments", user=EVE, ids=[item_id])) == closed
        retracting = f"<retract node='comments'><item id='{item_id}'/></retract>"
        assert refusal(await component.set(EVE, retracting)) == forbidden
        publishing = f"<publish node='comments'><item id='{item_id}'>{entry('x')}</item></publish>"
        assert refusal(await component.set(EVE, publishing)) == forbidden
    for rsm in ({"max": "0"}, {"after": "id:a"}, {"after": "cursor:1_0_00000000"}, {"index": "0"}):
        assert refusal(await request(component, "comments", user=EVE, beside=result_set(**rsm))) == closed
    info = str(tree(ok(await component.ask(EVE, "get", f"<query xmlns='{INFO}' node='comments'/>"))))
    assert bare(ALICE) not in info and "num_subscribers" not in info


async def test_header_values_cannot_be_written_by_publishers(feed: Component) -> None:
    """[xep-map 170]: headers inside a payload stay inside; those of the event are ours alone."""
    forged = (
        "<headers xmlns='http://jabber.org/protocol/shim'><header name='LastCursor'>9_0_00000000</header></headers>"
    )

    await feed.publish(ALICE, "comments", "one", entry("x").replace("</entry>", f"{forged}</entry>"))

    (message,) = await feed.events(bare(BOB))
    assert len(message.findall("shim:headers", NS)) == 1
    assert headers(message)["LastCursor"] != "9_0_00000000"


async def test_one_feed_under_attack_holds_no_other_back(start: Starter) -> None:
    """[xep-map 182]: many matching filtered views on one feed; another feed's events and pulls come all the same."""
    component = await start(limits={"filters_per_jid": 40})
    await component.create(ALICE, "comments")
    await component.create(ALICE, "quiet")
    await component.subscribe(BOB, "quiet")
    await put(component, "comments", [(f"item-{n}", 1_700_000_000_000_000 + n) for n in range(500)])
    for number in range(40):
        await component.subscribe(EVE, f"comments?author=alice@example.org&author={number}")

    attack = asyncio.create_task(component.publish(ALICE, "comments", "attack"))
    await component.publish(ALICE, "quiet", "one")
    (message,) = await component.next_event(bare(BOB))
    assert message.find(".//ev:item[@id='one']", NS) is not None
    await attack
    assert len(await component.events(bare(EVE))) == 40

"""Node names, views and ids through the whole component (xep-map D; Smart Feeds, XMPP)."""

import os
import subprocess
import sys
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pytest
from structlog.testing import capture_logs

from smartfeeds.service.nodes import MAX_NEIGHBOURS
from smartfeeds.xmpp.framer import CUT_NS
from support.component import (
    ALICE,
    BOB,
    DOMAIN,
    INFO,
    ITEMS,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    entry,
    form,
    ok,
    refusal,
    text_of,
    tree,
)
from support.features import FEATURE_NAMES

pytestmark = pytest.mark.shared

BOBS = bare(BOB)
NOT_FOUND = Refusal("cancel", "item-not-found")
NOT_ALLOWED = Refusal("cancel", "not-allowed")
ATTACHMENTS = "urn:xmpp:pubsub-attachments:1/xmpp:juliet@capulet.lit?;node=urn%3Axmpp%3Amicroblog%3A0;item=x"


async def pull(component: Component, node: str, inner: str = "") -> Element:
    """The answer to a request for items."""
    return await component.get(BOB, f"<items node={quoteattr(node)}>{inner}</items>")


async def test_exact_name_wins_over_a_view(component: Component) -> None:
    """[xep-map 47]"""
    literal = "comments?order=created"
    await component.create(ALICE, literal)
    await component.create(ALICE, "comments")
    await component.publish(ALICE, literal, "in the literal node")
    await component.publish(ALICE, "comments", "in the feed")

    assert await component.item_ids(BOB, literal) == ["in the literal node"]
    assert await component.item_ids(BOB, "comments?order=modified") == ["in the feed"]


@pytest.mark.parametrize("name", [ATTACHMENTS, "what?", "a?order=created", "?", "?order=created", "a?b?c"])
async def test_question_mark_without_a_feed_before_it_is_part_of_the_name(component: Component, name: str) -> None:
    """[xep-map 48]"""
    await component.create(ALICE, name)
    await component.subscribe(BOB, name)
    await component.publish(ALICE, name, "one")

    assert await component.item_ids(BOB, name) == ["one"]
    (message,) = await component.events(BOBS)
    assert message.xpath("string(.//ev:items/@node)", namespaces=NS) == name


async def test_views_of_generic_nodes_have_no_sync_data(component: Component) -> None:
    """[xep-map 48]: a name with a question mark that is no view is the name of a node."""
    await component.create(ALICE, "box", kind="generic")
    await component.publish(ALICE, "box", "one")

    assert await component.item_ids(BOB, "box?order=created") == ["one"]
    refused = await component.set(ALICE, "<create node='box?order=created'/>")
    for name in ("box?sync=true", "box?colour=red"):
        assert refusal(await pull(component, name)) == NOT_FOUND
        await component.create(ALICE, name)
        assert await component.item_ids(BOB, name) == []

    assert refusal(refused).condition == "not-allowed"


def categorised(category: str) -> str:
    return f"<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><category term={quoteattr(category)}/></entry>"


@pytest.mark.parametrize(
    "query",
    [
        "category=Tea%20%26%20milk&order=created",
        "order=created&category=Tea+%26+milk",
        "category=%54ea%20%26%20milk&order=created",
        "category=tea%20%26%20MILK&order=created",
    ],
)
async def test_parameters_are_a_query_string_in_any_order(component: Component, query: str) -> None:
    """[xep-map 49]"""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one", categorised("Tea & milk"))
    await component.publish(ALICE, "comments", "two", categorised("Tea"))
    await component.subscribe(BOB, "comments?category=Tea%20%26%20milk&order=created")

    assert await component.item_ids(BOB, f"comments?{query}") == ["one"]
    ok(await component.set(BOB, f"<unsubscribe node={quoteattr('comments?' + query)} jid='{BOBS}'/>"))
    assert ok(await component.get(BOB, "<subscriptions/>")).find(".//ps:subscription", NS) is None


async def test_question_mark_alone_asks_for_the_default_view(component: Component) -> None:
    """[xep-map 49]: no parameters are the defaults of all of them, and what was deleted is shown."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")
    await component.retract(ALICE, "comments", "one")

    assert await component.item_ids(BOB, "comments?") == ["one"]
    assert await component.item_ids(BOB, "comments") == []


# One view as clients spell its name. The first is the canonical spelling.
VIEW_SPELLINGS = [
    "comments?category=tea%20%26%20milk&order=created",
    "comments?order=created&category=tea+%26+milk",
    "comments?order=created;category=tea%20%26%20milk",
    "comments?category=tea %26 milk;order=created",
    "comments?order=created&amp;category=tea%20%26%20milk",
    "comments?%6frder=created&category=TEA%20%26%20milk",
    "comments%3Forder%3Dcreated%26category%3Dtea%2520%2526%2520milk",
    "comments%3forder=created;category=tea%2520%2526%2520milk",
    "comments?;order=created;category=tea%20%26%20milk",
]
PUBSUB_GET, PUBSUB_SET = ("get", f"<pubsub xmlns='{PS}'>{{}}</pubsub>"), ("set", f"<pubsub xmlns='{PS}'>{{}}</pubsub>")
OWNER_GET = ("get", f"<pubsub xmlns='{OWNER}'>{{}}</pubsub>")
OWNER_SET = ("set", f"<pubsub xmlns='{OWNER}'>{{}}</pubsub>")
PLAIN_GET, PLAIN_SET = ("get", "{}"), ("set", "{}")
# A view can be read only.
WRITES_OF_A_VIEW = ["publish", "retract", "create", "get configuration", "configure", "purge", "delete"]
ARCHIVE = {
    "archive": (PLAIN_SET, "<query xmlns='urn:xmpp:mam:2' node={}/>"),
    "metadata": (PLAIN_GET, "<metadata xmlns='urn:xmpp:mam:2' node={}/>"),
}
# Every request about a node, in an order in which all of them succeed that a view allows.
REQUESTS = {
    "items": (PUBSUB_GET, "<items node={}/>"),
    "max_items": (PUBSUB_GET, "<items max_items='1' node={}/>"),
    "item ids": (PUBSUB_GET, "<items node={}><item id='one'/></items>"),
    "page": (PUBSUB_GET, "<items node={}/><set xmlns='http://jabber.org/protocol/rsm'><max>1</max></set>"),
    "disco#info": (PLAIN_GET, f"<query xmlns='{INFO}' node={{}}/>"),
    "disco#items": (PLAIN_GET, f"<query xmlns='{ITEMS}' node={{}}/>"),
    **(ARCHIVE if "archive" in FEATURE_NAMES else {}),
    "subscribe": (PUBSUB_SET, f"<subscribe node={{}} jid='{BOBS}'/>"),
    "get options": (PUBSUB_GET, f"<options node={{}} jid='{BOBS}'/>"),
    "set options": (PUBSUB_SET, f"<options node={{}} jid='{BOBS}'>{form(SUBSCRIBE_OPTIONS, deliver='1')}</options>"),
    "subscriptions": (PUBSUB_GET, "<subscriptions node={}/>"),
    "affiliations": (PUBSUB_GET, "<affiliations node={}/>"),
    "default options": (PUBSUB_GET, "<default node={}/>"),
    "unsubscribe": (PUBSUB_SET, f"<unsubscribe node={{}} jid='{BOBS}'/>"),
    "publish": (PUBSUB_SET, f"<publish node={{}}><item id='two'>{entry('two')}</item></publish>"),
    "retract": (PUBSUB_SET, "<retract node={}><item id='one'/></retract>"),
    "create": (PUBSUB_SET, "<create node={}/>"),
    "get configuration": (OWNER_GET, "<configure node={}/>"),
    "configure": (OWNER_SET, f"<configure node={{}}>{form(NODE_CONFIG, title='x')}</configure>"),
    "owner's affiliations": (OWNER_GET, "<affiliations node={}/>"),
    "owner's subscriptions": (OWNER_GET, "<subscriptions node={}/>"),
    "purge": (OWNER_SET, "<purge node={}/>"),
    "delete": (OWNER_SET, "<delete node={}/>"),
}


async def responses(component: Component, node: str) -> dict[str, tuple[str, str]]:
    """The type and the content of the response to each request about a node, with its name replaced."""
    found = {}
    for name, ((kind, around), request) in REQUESTS.items():
        answer = await component.ask(BOB, kind, around.format(request.format(quoteattr(node))))
        assert set(answer.xpath(".//@node")) <= {node, "comments"}
        content = repr([tree(child) for child in answer])
        for text in (repr(node)[1:-1], quote(node, safe="")):
            content = content.replace(text, "NODE")
        found[name] = (str(answer.get("type")), content)
    return found


@pytest.mark.parametrize("node", VIEW_SPELLINGS[1:])
async def test_view_has_one_meaning_in_every_request_however_it_is_spelt(component: Component, node: str) -> None:
    """[xep-map 49] [xep-map 50] [SF-086]: URI-escaped, with semicolons, with ampersands."""
    await component.create(BOB, "comments")
    await component.publish(BOB, "comments", "one", categorised("Tea & milk"))
    await component.publish(BOB, "comments", "other", categorised("Tea"))

    expected, found = await responses(component, VIEW_SPELLINGS[0]), await responses(component, node)

    assert found == expected
    kinds = {name: kind for name, (kind, _) in found.items()}
    assert [name for name, kind in kinds.items() if kind == "error"] == WRITES_OF_A_VIEW


@pytest.mark.parametrize("node", VIEW_SPELLINGS)
async def test_event_names_the_view_as_the_subscriber_spelt_it(component: Component, node: str) -> None:
    """[xep-map 115] [SF-097]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, node)
    await component.publish(ALICE, "comments", "other", categorised("Tea"))
    await component.publish(ALICE, "comments", "one", categorised("Tea & milk"))

    (message,) = await component.events(BOBS)
    assert message.xpath("string(.//ev:items/@node)", namespaces=NS) == node
    assert message.xpath("string(.//ev:item/@id)", namespaces=NS) == "one"


async def test_semicolon_in_a_value_is_an_ordinary_character(component: Component) -> None:
    """[xep-map 49]: unless a parameter follows."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one", categorised("Tea; milk=1"))

    assert await component.item_ids(BOB, "comments?category=Tea; milk=1") == ["one"]


# Spellings by which clients reach views of a feed: plain ones, and encoded ones.
PLAIN = [
    *("news?order=modified", "news?", "news?q=tea", "news?kind=new&order=created", "news?;order=modified"),
    *("news?%6frder=modified", "news?since=1", "news?order=modified&max=5", "news?q=%21"),
]
ENCODED = [
    *("news%3Forder%3Dmodified", "news%3Forder=modified", "news%3forder=modified", "n%65ws%3Forder=modified"),
    *("news%3F;order%3Dmodified", "news%3F"),
]


@pytest.mark.parametrize("name", ENCODED)
async def test_encoded_name_of_a_view_cannot_be_taken_by_a_node(component: Component, name: str) -> None:
    """[xep-map 51]: before the feed exists and beside it, by nobody and in no way; its node would get the requests."""
    node = quoteattr(name)
    item = f"<publish node={node}><item id='forged'>{entry('x')}</item></publish>"

    assert refusal(await component.set(BOB, f"<create node={node}/>")) == NOT_ALLOWED
    generic = f"<configure>{form(NODE_CONFIG, kind='generic')}</configure>"
    assert refusal(await component.set(BOB, f"<create node={node}/>{generic}")) == NOT_ALLOWED
    await component.set(BOB, item)
    await component.create(ALICE, "news")
    assert refusal(await component.set(ALICE, f"<create node={node}/>")) == NOT_ALLOWED
    listed = ok(await component.ask(ALICE, "get", f"<query xmlns='{ITEMS}'/>"))
    assert [str(each.get("node")) for each in listed.iter(f"{{{ITEMS}}}item")] == ["news"]


@pytest.mark.parametrize("name", PLAIN)
async def test_name_of_a_view_is_free_until_the_feed_exists(component: Component, name: str) -> None:
    """[xep-map 48] [xep-map 51]: then nobody else can create that feed, and beside it nobody can create the name."""
    await component.create(BOB, name)
    assert refusal(await component.set(ALICE, "<create node='news'/>")) == NOT_ALLOWED

    other = name.replace("news", "other")
    await component.create(ALICE, "other")
    assert refusal(await component.set(BOB, f"<create node={quoteattr(other)}/>")).condition in (
        "not-allowed",
        "bad-request",
    )


@pytest.mark.parametrize("name", ["news?a=1&order=modified", "news?a=1&amp;kind=new"])
async def test_view_of_a_node_with_a_query_string_is_found(component: Component, name: str) -> None:
    """[xep-map 51]"""
    ok(await component.set(BOB, f"<create node={quoteattr(name)}/>"))

    assert refusal(await component.set(ALICE, "<create node='news?a=1'/>")) == NOT_ALLOWED
    ok(await component.set(BOB, "<create node='news?a=1'/>"))


@pytest.mark.parametrize("older", ["news%3Forder%3Dmodified", "news%3forder=modified"])
async def test_feed_cannot_be_created_behind_an_older_node_of_somebody_else(component: Component, older: str) -> None:
    """[xep-map 51]: the older node would get the requests for the view."""
    await component.older_nodes([older], user=BOB)

    assert refusal(await component.set(ALICE, "<create node='news'/>")) == NOT_ALLOWED
    ok(await component.set(BOB, "<create node='news'/>"))


async def test_feed_cannot_be_created_before_more_names_than_the_service_reads(start: Starter) -> None:
    """[xep-map 51]: the cost of a creation does not grow with the nodes of others, and the name stays refused."""
    component = await start()
    await component.many_nodes([f"big?page={n}" for n in range(MAX_NEIGHBOURS)], user=BOB)
    await component.many_nodes([f"small?page={n}" for n in range(MAX_NEIGHBOURS - 1)], user=BOB)

    answer = await component.set(ALICE, "<create node='big'/>")
    assert refusal(answer) == NOT_ALLOWED
    assert f"{MAX_NEIGHBOURS} or more nodes have names that begin with big?" in text_of(answer)
    await component.create(ALICE, "small")


SPELLINGS = ["comments", "comments?order=created", "comments?q=x&order=modified", "comments?%6frder=created&author=A+b"]


@pytest.mark.parametrize("node", SPELLINGS)
async def test_replies_name_the_node_as_the_request_did(component: Component, node: str) -> None:
    """[xep-map 50]"""
    await component.create(ALICE, "comments")
    named = quoteattr(node)

    answers = [
        await component.get(BOB, f"<items node={named}/>"),
        await component.set(BOB, f"<subscribe node={named} jid='{BOBS}'/>"),
        await component.get(BOB, f"<options node={named} jid='{BOBS}'/>"),
        await component.get(BOB, f"<subscriptions node={named}/>"),
        await component.get(BOB, f"<affiliations node={named}/>"),
        await component.get(BOB, f"<default node={named}/>"),
        await component.ask(BOB, "get", f"<query xmlns='{INFO}' node={named}/>"),
    ]

    assert [str(ok(answer).xpath("string((.//@node)[1])")) for answer in answers] == [node] * len(answers)


async def test_replies_to_owners_name_the_node_as_the_request_did(component: Component) -> None:
    """[xep-map 50]"""
    name = 'it\'s "ours" & <yours>'
    await component.create(ALICE, name)
    named = quoteattr(name)

    answers = [
        await component.owner_get(ALICE, f"<{action} node={named}/>")
        for action in ("configure", "affiliations", "subscriptions")
    ]
    answers.append(await component.set(ALICE, f"<publish node={named}><item id='1'>{entry('x')}</item></publish>"))
    answers.append(await component.ask(ALICE, "get", f"<query xmlns='{ITEMS}' node={named}/>"))

    assert [str(ok(answer).xpath("string((.//@node)[1])")) for answer in answers] == [name] * len(answers)


@pytest.mark.parametrize("query", ["order=created", "order=modified&amp;author=ann", "colour=red", "", "since=x"])
async def test_view_of_a_feed_cannot_be_created(component: Component, query: str) -> None:
    """[xep-map 51]: known parameters or not."""
    await component.create(ALICE, "comments")

    assert refusal(await component.set(ALICE, f"<create node='comments?{query}'/>")) == NOT_ALLOWED
    listed = ok(await component.ask(ALICE, "get", f"<query xmlns='{ITEMS}'/>"))
    assert [str(each.get("node")) for each in listed.iter(f"{{{ITEMS}}}item")] == ["comments"]


def no_feature(name: str) -> Refusal:
    return Refusal("cancel", "feature-not-implemented", "unsupported", name)


@pytest.mark.parametrize(
    ("kind", "space", "inner", "wanted"),
    [
        ("set", PS, f"<publish node='$'><item id='two'>{entry('x')}</item></publish>", no_feature("publish")),
        ("set", PS, "<retract node='$'><item id='one'/></retract>", no_feature("delete-items")),
        ("set", OWNER, "<purge node='$'/>", no_feature("purge-nodes")),
        ("set", OWNER, "<delete node='$'/>", NOT_ALLOWED),
        ("set", OWNER, f"<configure node='$'>{form(NODE_CONFIG, title='x')}</configure>", NOT_ALLOWED),
        ("get", OWNER, "<configure node='$'/>", NOT_ALLOWED),
    ],
)
@pytest.mark.parametrize("user", [ALICE, BOB])
async def test_view_cannot_be_written_to(
    component: Component, kind: str, space: str, inner: str, wanted: Refusal, user: str
) -> None:
    """[xep-map 52]: by its owner as little as by anybody."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")

    request = inner.replace("$", "comments?order=modified")
    answer = await component.ask(user, kind, f"<pubsub xmlns='{space}'>{request}</pubsub>")

    assert refusal(answer) == wanted
    assert await component.item_ids(BOB, "comments") == ["one"]


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        "order=random",
        "order=Created",
        "order=created&order=modified",
        "order=modified&colour=red",
        "order",
        "kind=strange",
        "author=",
        "category=%ff",
    ],
)
async def test_unknown_parameters_are_not_found_for_all_alike(component: Component, query: str) -> None:
    """[xep-map 53]"""
    await component.create(ALICE, "comments")
    named = quoteattr(f"comments?{query}")

    answers = [
        await component.get(BOB, f"<items node={named}/>"),
        await component.get(BOB, f"<items node={named}><item id='x'/></items>"),
        await component.set(BOB, f"<subscribe node={named} jid='{BOBS}'/>"),
        await component.set(BOB, f"<unsubscribe node={named} jid='{BOBS}'/>"),
        await component.get(BOB, f"<options node={named} jid='{BOBS}'/>"),
        await component.ask(BOB, "get", f"<query xmlns='{INFO}' node={named}/>"),
    ]

    assert {refusal(answer) for answer in answers} == {NOT_FOUND}


async def test_both_orders_hold_the_same_items_in_their_own_order(component: Component) -> None:
    """[xep-map 54]"""
    await component.create(ALICE, "comments")
    for item_id in ("one", "two", "three", "four"):
        await component.publish(ALICE, "comments", item_id)
    await component.publish(ALICE, "comments", "two", entry("edited"))
    await component.retract(ALICE, "comments", "one")

    assert await component.item_ids(BOB, "comments?order=created") == ["one", "two", "three", "four"]
    assert await component.item_ids(BOB, "comments?order=modified") == ["three", "four", "two", "one"]
    assert await component.item_ids(BOB, "comments") == ["three", "four", "two"]


NAMES = [
    "x",
    " ",
    "with blanks  inside and behind ",
    "a/b//c",
    "urn:xmpp:microblog:0:comments/tag:example.org,2026:x",
    "\u00fc\u4e2d\U0001f600e\u0301",
    "<&>'\"]]>",
    "tab\tline\nreturn\r",
    "%41%zz",
    "c:\\" + "x" * 1020,
    "\u20ac" * 341,
    "&" * 1023,
]


@pytest.mark.parametrize("name", NAMES)
async def test_names_and_ids_survive_a_round_trip(component: Component, name: str) -> None:
    """[xep-map 55]"""
    named = "'" + "".join(f"&#{ord(c)};" if c in "&<>'\"\t\r\n" else c for c in name) + "'"
    item = f"<item id={named}>{entry('x')}</item>"
    ok(await component.set(ALICE, f"<create node={named}/>"))
    ok(await component.set(BOB, f"<subscribe node={named} jid='{BOBS}'/>"))
    published = ok(await component.set(ALICE, f"<publish node={named}>{item}</publish>"))
    by_id = ok(await component.get(BOB, f"<items node={named}><item id={named}/></items>"))
    listed = ok(await component.ask(BOB, "get", f"<query xmlns='{ITEMS}'/>"))
    ids = ok(await component.ask(BOB, "get", f"<query xmlns='{ITEMS}' node={named}/>"))
    (message,) = await component.events(BOBS)

    for found in (published, by_id, message):
        assert (found.xpath("string(.//@node)"), found.xpath("string(.//*[local-name()='item']/@id)")) == (name, name)
    assert listed.xpath(".//@node") == [name]
    assert (ids.xpath("string(.//@node)"), ids.xpath(".//@name")) == (name, [name])


@pytest.mark.parametrize("name", ["x" * 1024, "\u20ac" * 342])
async def test_names_and_ids_have_at_most_1023_bytes(component: Component, name: str) -> None:
    """[xep-map 55]"""
    await component.create(ALICE, "comments")
    bad_request = Refusal("modify", "bad-request")

    publish = f"<publish node='comments'><item id='{name}'>{entry('x')}</item></publish>"
    assert refusal(await component.set(ALICE, f"<create node='{name}'/>")) == bad_request
    assert refusal(await component.set(ALICE, publish)) == bad_request
    assert await component.item_ids(BOB, "comments") == []


async def test_resource_of_our_address_is_no_node(component: Component) -> None:
    """XEP-0060 4.6: a node is named by its attribute alone."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")

    answer = await component.get(BOB, "<items/>", to="feeds.example.org/comments")
    info = ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}'/>", to="feeds.example.org/comments"))

    assert refusal(answer) == Refusal("modify", "bad-request", "nodeid-required")
    assert info.find("info:query/info:identity[@type='service']", NS) is not None
    assert body(ok(await component.get(BOB, "<subscriptions/>", to="feeds.example.org/x"))) != []


@pytest.mark.parametrize("address", ["a\u0221@b.example", "a@b.example/\u0221", "a@-b.example"])
async def test_address_that_only_slixmpp_refuses_gets_an_error_where_slixmpp_answers(
    component: Component, address: str
) -> None:
    """[xep-map 246] It is served like any other; only what is left to slixmpp is refused, in one line of the log."""
    await component.create(ALICE, "comments", access_model="open")

    with capture_logs() as logs:
        ok(await component.get(address, "<items node='comments'/>"))
        answer = await component.ask(address, "get", "<query xmlns='jabber:iq:version'/>")

    assert refusal(answer) == Refusal("modify", "jid-malformed")
    assert [entry["event"] for entry in logs if entry["log_level"] != "debug"] == ["address_refused"]
    assert not any("exc_info" in entry for entry in logs)


async def test_mark_of_unread_content_cannot_be_sent_by_a_client(component: Component) -> None:
    """[xep-map 246] The sender of a request that was cut down is told why and rests; others cannot get there."""
    for namespace, expected in (
        ("urn:smartfeeds:0#cut", Refusal("cancel", "service-unavailable")),
        (CUT_NS, Refusal("modify", "not-acceptable")),
    ):
        answer = await component.ask(ALICE, "set", f"<cut xmlns='{namespace}'>forged</cut>")
        assert refusal(answer) == expected


def test_mark_of_unread_content_differs_from_process_to_process() -> None:
    program = [sys.executable, "-c", "from smartfeeds.xmpp.framer import CUT_NS; print(CUT_NS)"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    printed = [subprocess.check_output(program, env=environment, text=True).strip() for _ in range(2)]

    assert len({*printed, CUT_NS}) == 3


# Feeds at an address of their own (SF-085)

ARTICLE = f"article_1@{DOMAIN}"


async def test_request_without_a_node_means_the_feed_at_its_address(component: Component) -> None:
    """[SF-085]: reading, publishing, subscribing, configuring; pushes come from this address."""
    await component.create(ALICE, "article_1")
    item = f"<item id='one'>{entry('first')}</item>"

    subscription = ok(await component.set(BOB, f"<subscribe jid='{BOBS}'/>", ARTICLE))
    ok(await component.set(ALICE, f"<publish>{item}</publish>", ARTICLE))
    page = ok(await component.get(BOB, "<items/>", f"{ARTICLE}/desk"))
    (message,) = await component.events(BOBS)

    assert subscription.xpath("string(.//ps:subscription/@node)", namespaces=NS) == "article_1"
    assert page.xpath(".//ps:items/@node | .//ps:item/@id", namespaces=NS) == ["article_1", "one"]
    assert message.get("from") == ARTICLE
    assert message.xpath("string(.//ev:items/@node)", namespaces=NS) == "article_1"
    ok(await component.get(BOB, f"<options jid='{BOBS}'/>", ARTICLE))
    ok(await component.owner_set(ALICE, f"<configure>{form(NODE_CONFIG, title='First')}</configure>", ARTICLE))
    assert (await component.config(ALICE, "article_1"))["title"] == ["First"]
    ok(await component.set(ALICE, "<retract notify='1'><item id='one'/></retract>", ARTICLE))
    ok(await component.set(BOB, f"<unsubscribe jid='{BOBS}'/>", ARTICLE))
    ok(await component.owner_set(ALICE, "<delete/>", ARTICLE))
    assert refusal(await component.get(BOB, "<items/>", ARTICLE)) == NOT_FOUND


async def test_discovery_at_the_address_of_a_feed_describes_the_feed(start: Starter) -> None:
    """[SF-085]: other addresses, and feeds that the requester may not know of, are the service."""
    component = await start(pubsub={"closed_nodes": "hide"})
    await component.create(ALICE, "article_1", title="First")
    await component.create(ALICE, "hidden", access_model="whitelist")
    await component.publish(ALICE, "article_1", "one")

    async def discover(user: str, query: str, to: str) -> Element:
        return ok(await component.ask(user, "get", f"<query xmlns='{query}'/>", to))

    identity = "string(.//info:identity/@type)"
    info = await discover(BOB, INFO, ARTICLE)
    assert info.xpath(identity, namespaces=NS) == "leaf"
    assert info.xpath("string(.//x:field[@var='xmpp-jid']/x:value)", namespaces=NS) == ARTICLE
    assert info.xpath("string(.//x:field[@var='xmpp-node']/x:value)", namespaces=NS) == "article_1?order=modified"
    items = await discover(BOB, ITEMS, ARTICLE)
    assert items.xpath(".//items:item/@name", namespaces=NS) == ["one"]
    for local in ("hidden", "missing"):
        info = await discover(BOB, INFO, f"{local}@{DOMAIN}")
        assert info.xpath(identity, namespaces=NS) == "service"
        items = await discover(BOB, ITEMS, f"{local}@{DOMAIN}")
        assert items.xpath(".//items:item/@node", namespaces=NS) == ["article_1"]
    assert (await discover(ALICE, INFO, f"hidden@{DOMAIN}")).xpath(identity, namespaces=NS) == "leaf"


async def test_request_for_all_nodes_means_all_nodes_at_every_address(component: Component) -> None:
    """[SF-085]: lists of the requester's own subscriptions and affiliations, and instant nodes."""
    for node in ("article_1", "other"):
        await component.create(ALICE, node)

    affiliations = ok(await component.get(ALICE, "<affiliations/>", ARTICLE))
    created = ok(await component.set(ALICE, "<create/>", ARTICLE))

    assert affiliations.xpath(".//ps:affiliation/@node", namespaces=NS) == ["article_1", "other"]
    assert created.xpath("string(.//ps:create/@node)", namespaces=NS) not in ("", "article_1")

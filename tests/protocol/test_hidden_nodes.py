"""What users learn of a node that is closed to them: that it is closed, and whom to ask, or nothing at all
(`pubsub.closed_nodes`; SF-111; XEP-0060 4.5, 6.1.3.4, 6.5.9.8)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    EVE,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    SUBSCRIBE_OPTIONS,
    Component,
    Refusal,
    Starter,
    bare,
    entry,
    form,
    ok,
    refusal,
    tree,
)

pytestmark = pytest.mark.shared

INFO = "http://jabber.org/protocol/disco#info"
ITEMS = "http://jabber.org/protocol/disco#items"
COMMANDS = "http://jabber.org/protocol/commands"
CLOSED, ABSENT = "plans-1", "plans-2"
ITEM = f"<item id='a'>{entry('x')}</item>"
WHO = bare(BOB)


def of(kind: str, xmlns: str, inner: str) -> tuple[str, str]:
    return kind, f"<pubsub xmlns='{xmlns}'>{inner}</pubsub>"


# `%s` is the node, `{me}` the bare address of the asker.
REQUESTS = {
    "items": of("get", PS, "<items node='%s'/>"),
    "item by id": of("get", PS, "<items node='%s'><item id='a'/></items>"),
    "item that is not there": of("get", PS, "<items node='%s'><item id='b'/></items>"),
    "view": of("get", PS, "<items node='%s?order=modified'/>"),
    "view that cannot be": of("get", PS, "<items node='%s?order=size'/>"),
    "count": of("get", PS, "<items node='%s'/><set xmlns='http://jabber.org/protocol/rsm'><max>0</max></set>"),
    "subscribe": of("set", PS, "<subscribe node='%s' jid='{me}'/>"),
    "subscribe to a view": of("set", PS, "<subscribe node='%s?order=created' jid='{me}'/>"),
    "subscribe somebody else": of("set", PS, f"<subscribe node='%s' jid='{WHO}'/>"),
    "unsubscribe": of("set", PS, "<unsubscribe node='%s' jid='{me}'/>"),
    "options": of("get", PS, "<options node='%s' jid='{me}'/>"),
    "set options": of("set", PS, f"<options node='%s' jid='{{me}}'>{form(SUBSCRIBE_OPTIONS, deliver='0')}</options>"),
    "default options": of("get", PS, "<default node='%s'/>"),
    "own subscriptions": of("get", PS, "<subscriptions node='%s'/>"),
    "own affiliation": of("get", PS, "<affiliations node='%s'/>"),
    "publish": of("set", PS, f"<publish node='%s'>{ITEM}</publish>"),
    "publish without an id": of("set", PS, f"<publish node='%s'><item>{entry('x')}</item></publish>"),
    "publish nothing": of("set", PS, "<publish node='%s'/>"),
    "publish to a view": of("set", PS, f"<publish node='%s?order=modified'>{ITEM}</publish>"),
    "retract": of("set", PS, "<retract node='%s'><item id='a'/></retract>"),
    "retract nothing": of("set", PS, "<retract node='%s'/>"),
    "create": of("set", PS, "<create node='%s'/>"),
    "create a view": of("set", PS, "<create node='%s?order=modified'/>"),
    "configuration": of("get", OWNER, "<configure node='%s'/>"),
    "configure": of("set", OWNER, f"<configure node='%s'>{form(NODE_CONFIG, title='x')}</configure>"),
    "affiliations": of("get", OWNER, "<affiliations node='%s'/>"),
    "affiliate": of(
        "set", OWNER, f"<affiliations node='%s'><affiliation jid='{WHO}' affiliation='owner'/></affiliations>"
    ),
    "subscribers": of("get", OWNER, "<subscriptions node='%s'/>"),
    "approve": of(
        "set", OWNER, f"<subscriptions node='%s'><subscription jid='{WHO}' subscription='none'/></subscriptions>"
    ),
    "purge": of("set", OWNER, "<purge node='%s'/>"),
    "delete": of("set", OWNER, "<delete node='%s'/>"),
    "info": ("get", f"<query xmlns='{INFO}' node='%s'/>"),
    "info of a view": ("get", f"<query xmlns='{INFO}' node='%s?order=modified'/>"),
    "item list": ("get", f"<query xmlns='{ITEMS}' node='%s'/>"),
}


async def answers(component: Component, user: str, node: str) -> dict[str, str]:
    """The answers to all requests about a node, as text, with its name replaced."""
    found = {}
    for name, (kind, body) in REQUESTS.items():
        asked = body.replace("{me}", bare(user)).replace("%s", node)
        answer = await component.ask(user, kind, asked)
        del answer.attrib["id"]
        found[name] = str(tree(answer)).replace(node, ABSENT)
    return found


@pytest.fixture
async def hiding(start: Starter) -> Component:
    """A component that hides closed nodes."""
    return await start(pubsub={"closed_nodes": "hide"})


@pytest.mark.parametrize("affiliation", ["none", "outcast"])
async def test_hidden_node_answers_as_one_that_does_not_exist(hiding: Component, affiliation: str) -> None:
    """[SF-111] Every kind of request, by somebody who may not create nodes either."""
    component = hiding
    await component.create(ALICE, CLOSED, access_model="whitelist", title="Plans")
    await component.publish(ALICE, CLOSED, "a")
    await component.affiliate(ALICE, CLOSED, EVE, affiliation)

    closed, absent = await answers(component, EVE, CLOSED), await answers(component, EVE, ABSENT)

    assert closed == absent
    assert all("'type': 'error'" in answer for answer in closed.values())


async def test_name_of_a_closed_node_is_taken(component: Component) -> None:
    """[xep-map 58] Names are unique, so those who may create nodes can find out that a name is taken."""
    await component.create(ALICE, CLOSED, access_model="whitelist")
    assert refusal(await component.set(BOB, f"<create node='{CLOSED}'/>")) == Refusal("cancel", "conflict")


async def test_exact_name_of_a_hidden_node_leaves_the_view_to_others(hiding: Component) -> None:
    """[SF-087] A node that is named like a view hides that view only from those who may know of the node."""
    component = hiding
    await component.create(ALICE, "news?order=created", kind="generic", access_model="whitelist")
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "one")

    assert await component.item_ids(EVE, "news?order=created") == ["one"]
    assert await component.item_ids(ALICE, "news?order=created") == []


READ = Refusal("cancel", "not-allowed", "closed-node")
FORBIDDEN = Refusal("auth", "forbidden")
ABSENCE = Refusal("cancel", "item-not-found")
NOT_SUBSCRIBED = Refusal("auth", "not-authorized", "not-subscribed")


INVALID_JID = Refusal("modify", "bad-request", "invalid-jid")
# The requests that only readers may make, and the answers to the others.
READS = (
    *("items", "item by id", "item that is not there", "view", "count", "item list"),
    *("subscribe", "subscribe to a view"),
)
EXPECTED: dict[str, Refusal | str] = {
    **dict.fromkeys(("publish", "publish without an id", "publish nothing", "retract"), FORBIDDEN),
    **dict.fromkeys(("configuration", "configure", "affiliations", "affiliate", "subscribers", "approve"), FORBIDDEN),
    **dict.fromkeys(("purge", "delete", "create", "create a view"), FORBIDDEN),
    **dict.fromkeys(("own subscriptions", "own affiliation", "default options", "info", "info of a view"), "result"),
    "view that cannot be": ABSENCE,
    "subscribe somebody else": INVALID_JID,
    "unsubscribe": Refusal("cancel", "unexpected-request", "not-subscribed"),
    **dict.fromkeys(("options", "set options"), Refusal("modify", "unexpected-request", "not-subscribed")),
    "publish to a view": Refusal("cancel", "feature-not-implemented", "unsupported", "publish"),
    "retract nothing": Refusal("modify", "bad-request", "item-required"),
}
TEXTS = ("Plans of the club", "our plan", bare(ALICE))


@pytest.mark.parametrize("affiliation", ["none", "outcast"])
async def test_closed_node_answers_that_it_is_closed_and_nothing_else(component: Component, affiliation: str) -> None:
    """[xep-map 103] [xep-map 185] [SF-111] XEP-0060 6.1.3.4 and 6.5.9.8: every kind of request. Neither its title, nor
    its owner, nor an item is in an answer."""
    await component.create(ALICE, CLOSED, access_model="whitelist", title=TEXTS[0])
    await component.publish(ALICE, CLOSED, "a", entry(TEXTS[1]))
    await component.affiliate(ALICE, CLOSED, EVE, affiliation)

    found = {}
    for name, (kind, body) in REQUESTS.items():
        answer = await component.ask(EVE, kind, body.replace("{me}", bare(EVE)).replace("%s", CLOSED))
        assert not [text for text in TEXTS if text in str(tree(answer))], name
        found[name] = refusal(answer) if answer.get("type") == "error" else "result"

    closed = READ if affiliation == "none" else FORBIDDEN
    assert found == EXPECTED | dict.fromkeys(READS, closed)
    items = ok(await component.ask(EVE, "get", f"<query xmlns='{ITEMS}'/>"))
    assert CLOSED not in str(tree(items))


async def test_contact_of_a_closed_node_is_for_those_who_may_ask(component: Component) -> None:
    """[xep-map 34] The owner says whom to ask. An outcast need not ask."""
    await component.create(ALICE, CLOSED, access_model="whitelist", contact="carol@example.org")
    info = f"<query xmlns='{INFO}' node='{CLOSED}'/>"
    for affiliation, shown in (("none", True), ("outcast", False)):
        await component.affiliate(ALICE, CLOSED, EVE, affiliation)
        for request in (info, f"<pubsub xmlns='{PS}'><items node='{CLOSED}'/></pubsub>"):
            answer = await component.ask(EVE, "get", request)
            assert ("carol@example.org" in str(tree(answer))) is shown


@pytest.mark.parametrize(
    ("options", "affiliation", "answered", "hidden"),
    [
        ({"access_model": "whitelist"}, "none", READ, ABSENCE),
        ({"access_model": "whitelist"}, "outcast", FORBIDDEN, ABSENCE),
        ({"access_model": "whitelist"}, "publish-only", FORBIDDEN, FORBIDDEN),
        ({"access_model": "whitelist", "publish_model": "open"}, "none", READ, READ),
        ({"access_model": "whitelist", "publish_model": "open"}, "outcast", FORBIDDEN, ABSENCE),
        ({"access_model": "authorize"}, "none", NOT_SUBSCRIBED, NOT_SUBSCRIBED),
        ({"access_model": "authorize"}, "outcast", FORBIDDEN, FORBIDDEN),
        ({"access_model": "open"}, "outcast", FORBIDDEN, FORBIDDEN),
    ],
)
@pytest.mark.parametrize("setting", ["answer", "hide"])
async def test_users_who_may_know_of_a_node_get_the_reason_why_they_cannot_read(
    start: Starter, setting: str, options: dict[str, str], affiliation: str, answered: Refusal, hidden: Refusal
) -> None:
    """[xep-map 185] [SF-111] Nodes that everybody may find or publish to, and nodes of one's own affiliations."""
    component = await start(pubsub={"closed_nodes": setting})
    await component.create(ALICE, "notes", **options)
    await component.affiliate(ALICE, "notes", BOB, affiliation)
    expected = answered if setting == "answer" else hidden
    assert refusal(await component.get(BOB, "<items node='notes'/>")) == expected


@pytest.mark.parametrize(("setting", "expected"), [("answer", READ), ("hide", ABSENCE)])
async def test_subscriber_of_a_node_that_was_closed_still_knows_it(
    start: Starter, setting: str, expected: Refusal
) -> None:
    """[xep-map 181] [xep-map 122] The subscription gives nothing any more, and can be ended."""
    component = await start(pubsub={"closed_nodes": setting})
    await component.create(ALICE, "notes")
    await component.subscribe(BOB, "notes")
    await component.configure(ALICE, "notes", access_model="whitelist")

    assert refusal(await component.get(BOB, "<items node='notes'/>")) == READ
    listed = ok(await component.get(BOB, "<subscriptions node='notes'/>"))
    assert len(listed.findall("ps:pubsub/ps:subscriptions/ps:subscription", NS)) == 1
    ok(await component.set(BOB, f"<unsubscribe node='notes' jid='{bare(BOB)}'/>"))
    assert refusal(await component.get(BOB, "<items node='notes'/>")) == expected

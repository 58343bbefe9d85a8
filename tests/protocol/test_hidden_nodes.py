"""A closed node does not exist for those who may not know of it: every answer is the same (SF-111; XEP-0060 4.5)."""

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


@pytest.mark.parametrize("affiliation", ["none", "outcast"])
async def test_closed_node_answers_as_one_that_does_not_exist(component: Component, affiliation: str) -> None:
    """[SF-111] Every kind of request, by somebody who may not create nodes either."""
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


async def test_exact_name_of_a_hidden_node_leaves_the_view_to_others(component: Component) -> None:
    """[SF-087] A node that is named like a view hides that view only from those who may know of the node."""
    await component.create(ALICE, "news?order=created", kind="generic", access_model="whitelist")
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "one")

    assert await component.item_ids(EVE, "news?order=created") == ["one"]
    assert await component.item_ids(ALICE, "news?order=created") == []


READ = Refusal("cancel", "not-allowed", "closed-node")
FORBIDDEN = Refusal("auth", "forbidden")
ABSENCE = Refusal("cancel", "item-not-found")
NOT_SUBSCRIBED = Refusal("auth", "not-authorized", "not-subscribed")


@pytest.mark.parametrize(
    ("options", "affiliation", "expected"),
    [
        ({"access_model": "whitelist"}, "none", ABSENCE),
        ({"access_model": "whitelist"}, "outcast", ABSENCE),
        ({"access_model": "whitelist"}, "publish-only", FORBIDDEN),
        ({"access_model": "whitelist", "publish_model": "open"}, "none", READ),
        ({"access_model": "whitelist", "publish_model": "open"}, "outcast", ABSENCE),
        ({"access_model": "authorize"}, "none", NOT_SUBSCRIBED),
        ({"access_model": "authorize"}, "outcast", FORBIDDEN),
        ({"access_model": "open"}, "outcast", FORBIDDEN),
    ],
)
async def test_users_who_may_know_of_a_node_get_the_reason_why_they_cannot_read(
    component: Component, options: dict[str, str], affiliation: str, expected: Refusal
) -> None:
    """[xep-map 185] [SF-111] Nodes that everybody may find or publish to, and nodes of one's own affiliations."""
    await component.create(ALICE, "notes", **options)
    await component.affiliate(ALICE, "notes", BOB, affiliation)
    assert refusal(await component.get(BOB, "<items node='notes'/>")) == expected


async def test_subscriber_of_a_node_that_was_closed_still_knows_it(component: Component) -> None:
    """[xep-map 181] [xep-map 122] The subscription gives nothing any more, and can be ended."""
    await component.create(ALICE, "notes")
    await component.subscribe(BOB, "notes")
    await component.configure(ALICE, "notes", access_model="whitelist")

    assert refusal(await component.get(BOB, "<items node='notes'/>")) == READ
    listed = ok(await component.get(BOB, "<subscriptions node='notes'/>"))
    assert len(listed.findall("ps:pubsub/ps:subscriptions/ps:subscription", NS)) == 1
    ok(await component.set(BOB, f"<unsubscribe node='notes' jid='{bare(BOB)}'/>"))
    assert refusal(await component.get(BOB, "<items node='notes'/>")) == ABSENCE

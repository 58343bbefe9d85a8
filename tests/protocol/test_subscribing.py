"""Subscribing through the whole component (xep-map G; XEP-0060 6.1)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    NS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    form,
    ok,
    refusal,
    tree,
)
from support.subscribing import BOBS, listed, pubsub, request, subscription

pytestmark = pytest.mark.shared

NO_JID = Refusal("modify", "bad-request", "jid-required")
NO_NODEID = Refusal("modify", "bad-request", "nodeid-required")
INVALID_JID = Refusal("modify", "bad-request", "invalid-jid")
NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
PENDING = Refusal("auth", "not-authorized", "pending-subscription")


def items(messages: list[Element]) -> list[tuple[str, str]]:
    """Node and item id of events."""
    found = [message.find("ev:event/ev:items", NS) for message in messages]
    return [(str(each.get("node")), str(each[0].get("id"))) for each in found if each is not None]


# Subscribing


@pytest.mark.parametrize("jid", [BOBS, BOB])
async def test_subscribe_with_ones_own_address(component: Component, jid: str) -> None:
    """[xep-map 98]"""
    await component.create(ALICE, "comments")

    answer = ok(await request(component, jid))
    await component.publish(ALICE, "comments", "one")

    assert body(answer) == [pubsub(subscription(jid))]
    assert items(await component.events(jid)) == [("comments", "one")]


async def test_subscribe_compares_addresses_in_their_normal_form(component: Component) -> None:
    """[xep-map 98] [xep-map 20]: case matters in the resource alone."""
    await component.create(ALICE, "comments")

    assert body(ok(await request(component, "BOB@Example.ORG"))) == [pubsub(subscription())]
    assert body(ok(await request(component, f"{BOBS}/Other"))) == [pubsub(subscription(f"{BOBS}/Other"))]
    assert body(ok(await request(component, f"{BOBS}/other"))) == [pubsub(subscription(f"{BOBS}/other"))]
    assert len(await listed(component)) == 3


@pytest.mark.parametrize("jid", [bare(CAROL), CAROL, "example.org", "a@b@c", "bob@example.org/"])
async def test_subscribe_of_another_address_is_refused(component: Component, jid: str) -> None:
    """[xep-map 99] [xep-map 21]"""
    await component.create(ALICE, "comments")

    assert refusal(await request(component, jid)) == INVALID_JID
    assert await listed(component) == await listed(component, CAROL) == []


@pytest.mark.parametrize("action", ["subscribe", "unsubscribe"])
async def test_subscribe_and_unsubscribe_need_jid_and_node(component: Component, action: str) -> None:
    """[xep-map 100]"""
    await component.create(ALICE, "comments")

    assert refusal(await component.set(BOB, f"<{action} node='comments'/>")) == NO_JID
    assert refusal(await component.set(BOB, f"<{action} jid='{BOBS}'/>")) == NO_NODEID


@pytest.mark.parametrize("action", ["subscribe", "unsubscribe"])
async def test_subscribe_and_unsubscribe_need_a_node_that_exists(component: Component, action: str) -> None:
    """[xep-map 101] [xep-map 122]"""
    assert refusal(await component.set(BOB, f"<{action} node='missing' jid='{BOBS}'/>")) == NOT_FOUND


@pytest.mark.parametrize("affiliation", ["outcast", "publish-only"])
@pytest.mark.parametrize("model", ["open", "authorize", "whitelist"])
async def test_subscribe_is_forbidden_to_outcasts_and_who_may_only_publish(
    component: Component, affiliation: str, model: str
) -> None:
    """[xep-map 102]"""
    await component.create(ALICE, "comments", access_model=model)
    await component.affiliate(ALICE, "comments", BOB, affiliation)

    assert refusal(await request(component)) == FORBIDDEN
    assert await listed(component) == []


async def test_subscribe_to_a_whitelist_is_refused_to_outsiders(component: Component) -> None:
    """[xep-map 103]"""
    await component.create(ALICE, "comments", access_model="whitelist")

    assert refusal(await request(component)) == Refusal("cancel", "not-allowed", "closed-node")
    await component.configure(ALICE, "comments", publish_model="open")
    assert refusal(await request(component)) == Refusal("cancel", "not-allowed", "closed-node")
    assert await listed(component) == []


async def test_subscribe_to_an_authorize_node_waits_and_cannot_be_asked_twice(component: Component) -> None:
    """[xep-map 104]"""
    await component.create(ALICE, "comments", access_model="authorize")

    first = ok(await request(component))
    second = await request(component)

    assert body(first) == [pubsub(subscription(state="pending"))]
    assert refusal(second) == PENDING
    assert await listed(component) == [("comments", BOBS, "pending")]


async def test_pending_subscriber_gets_no_events_and_cannot_retrieve(component: Component) -> None:
    """[xep-map 108]"""
    await component.create(ALICE, "comments", access_model="authorize", notify_config="true")
    await request(component)

    await component.publish(ALICE, "comments", "one")
    await component.retract(ALICE, "comments", "one")
    await component.configure(ALICE, "comments", title="New")
    await component.owner_set(ALICE, "<purge node='comments'/>")

    assert await component.events(BOBS) == []
    answer = await component.get(BOB, "<items node='comments'/>")
    assert refusal(answer) == Refusal("auth", "not-authorized", "not-subscribed")


@pytest.mark.parametrize("affiliation", ["member", "publisher", "owner"])
async def test_members_publishers_and_owners_do_not_wait(component: Component, affiliation: str) -> None:
    """[xep-map 109]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.affiliate(ALICE, "comments", BOB, affiliation)

    assert body(ok(await request(component))) == [pubsub(subscription())]


@pytest.mark.both_engines
async def test_subscribe_over_the_quota_is_refused(start: Starter) -> None:
    """[xep-map 110]"""
    component = await start(limits={"subscriptions_per_jid": 2})
    await component.create(ALICE, "comments")
    await request(component)
    await request(component, BOB)

    third = await request(component, node="comments?order=created", user=f"{BOBS}/elsewhere")

    assert refusal(third) == Refusal("wait", "policy-violation", "too-many-subscriptions")
    assert len(await listed(component)) == 2
    assert body(ok(await request(component))) == [pubsub(subscription())]
    assert await component.subscribe(CAROL, "comments") == "subscribed"


async def test_subscribe_is_unsupported_where_the_node_says_so(component: Component) -> None:
    """[xep-map 111] [xep-map 19]"""
    await component.create(ALICE, "comments", subscribe="false")

    answer = await request(component)

    assert refusal(answer) == Refusal("cancel", "feature-not-implemented", "unsupported", "subscribe")
    assert await listed(component) == []


@pytest.mark.parametrize("node", ["comments", "comments?order=modified"])
async def test_second_subscribe_is_answered_as_the_first_and_makes_no_second(component: Component, node: str) -> None:
    """[xep-map 112]"""
    await component.create(ALICE, "comments")

    first, second = ok(await request(component, node=node)), ok(await request(component, node=node))
    await component.publish(ALICE, "comments", "one")

    assert body(first) == body(second)
    assert await listed(component) == [(node, BOBS, "subscribed")]
    assert items(await component.events(BOBS)) == [(node, "one")]


async def test_second_subscribe_of_who_was_approved_stays_subscribed(component: Component) -> None:
    """[xep-map 112] [xep-map 104]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await request(component)
    approval = f"<subscription jid='{BOBS}' subscription='subscribed'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='comments'>{approval}</subscriptions>"))

    assert body(ok(await request(component))) == [pubsub(subscription())]
    assert await listed(component) == [("comments", BOBS, "subscribed")]


async def test_second_subscribe_keeps_the_options(component: Component) -> None:
    """[xep-map 112]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments", deliver="false")

    ok(await request(component))
    await component.publish(ALICE, "comments", "one")

    assert await component.events(BOBS) == []


async def test_bare_and_full_address_are_two_subscriptions(component: Component) -> None:
    """[xep-map 113]"""
    await component.create(ALICE, "comments")
    await request(component, BOBS)
    await request(component, BOB)

    await component.publish(ALICE, "comments", "one")

    assert await listed(component) == [("comments", BOBS, "subscribed"), ("comments", BOB, "subscribed")]
    assert items(await component.events(BOBS)) == [("comments", "one")]
    assert items(await component.events(BOB)) == [("comments", "one")]
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))
    assert await listed(component) == [("comments", BOB, "subscribed")]


@pytest.mark.both_engines
async def test_one_address_follows_the_bare_node_and_several_views(start: Starter) -> None:
    """[xep-map 114]"""
    component = await start()
    nodes = ["comments", "comments?order=modified", "comments?order=created"]
    await component.create(ALICE, "comments")

    answers = [ok(await request(component, node=node)) for node in nodes]
    await component.publish(ALICE, "comments", "one")

    assert [body(answer) for answer in answers] == [[pubsub(subscription(node=node))] for node in nodes]
    assert await listed(component) == [(node, BOBS, "subscribed") for node in nodes]
    assert sorted(items(await component.events(BOBS))) == sorted((node, "one") for node in nodes)
    ok(await component.set(BOB, f"<unsubscribe node='{nodes[1]}' jid='{BOBS}'/>"))
    assert await listed(component) == [(node, BOBS, "subscribed") for node in (nodes[0], nodes[2])]


async def test_two_spellings_of_a_view_are_one_subscription_under_the_last(component: Component) -> None:
    """[xep-map 115] [xep-map 49]"""
    first = "comments?author=Ann&amp;order=created"
    second = "comments?order=created&amp;author=ann"
    await component.create(ALICE, "comments", publish_model="open")
    await request(component, node=first)

    answer = ok(await request(component, node=second))
    atom = "<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><author><name>Ann</name></author></entry>"
    await component.publish(ALICE, "comments", "one", atom)

    assert body(answer) == [pubsub(subscription(node=second))]
    written = second.replace("&amp;", "&")
    assert await listed(component) == [(written, BOBS, "subscribed")]
    assert items(await component.events(BOBS)) == [(written, "one")]
    ok(await component.set(BOB, f"<unsubscribe node='{first}' jid='{BOBS}'/>"))
    assert await listed(component) == []


async def test_node_that_sends_its_last_item_does_so_behind_the_result(component: Component) -> None:
    """[xep-map 116]"""
    await component.create(ALICE, "comments", send_last_published_item="on_sub")
    await component.publish(ALICE, "comments", "one")
    await component.publish(ALICE, "comments", "two")
    await component.publish(ALICE, "comments", "three")
    component.clock.advance(60)
    await component.retract(ALICE, "comments", "three")
    await component.settle()

    ok(await request(component))
    (message,) = await component.events(BOBS)

    assert items([message]) == [("comments", "two")]
    assert message.findtext(".//a:title", namespaces=NS) == "two"
    assert (message.get("type"), message.get("from")) == ("headline", "feeds.example.org")
    delay = message.find("delay:delay", NS)
    assert delay is not None and str(delay.get("stamp")).startswith("2026-01-01T00:00:00.")
    assert str(delay.get("stamp")).endswith("Z")


@pytest.mark.parametrize("option", ["on_sub", "on_sub_and_presence"])
async def test_every_subscribe_sends_the_last_item(component: Component, option: str) -> None:
    """[xep-map 116]: as Prosody does, also if nothing changes. Without presence the two options are one."""
    await component.create(ALICE, "comments", send_last_published_item=option)
    await component.publish(ALICE, "comments", "one")

    ok(await request(component))
    ok(await request(component))

    assert items(await component.events(BOBS)) == [("comments", "one")] * 2
    assert (await component.config(ALICE, "comments"))["send_last_published_item"] == [option]


async def test_last_item_is_sent_as_the_node_sends_items(component: Component) -> None:
    """[xep-map 116]; xep-map 2.1 deliver_payloads, notification_type, itemreply."""
    await component.create(
        ALICE,
        "comments",
        send_last_published_item="on_sub",
        deliver_payloads="false",
        notification_type="normal",
        itemreply="none",
    )
    await component.publish(ALICE, "comments", "one")

    options = f"<options>{form(SUBSCRIBE_OPTIONS, include_body='1')}</options>"
    ok(await component.set(BOB, f"<subscribe node='comments' jid='{BOBS}'/>{options}"))
    (message,) = await component.events(BOBS)

    assert message.findtext("c:body", namespaces=NS) == "one"
    found = message.find("ev:event", NS)
    assert found is not None and message.get("type") == "normal"
    assert tree(found) == tree(f"<event xmlns='{NS['ev']}'><items node='comments'><item id='one'/></items></event>")


async def test_last_item_of_a_view_is_one_that_the_view_holds(component: Component) -> None:
    """[xep-map 116] [xep-map 114]"""
    await component.create(ALICE, "comments", send_last_published_item="on_sub")
    for item_id, category in (("one", "red"), ("two", "blue")):
        atom = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><category term='{category}'/></entry>"
        await component.publish(ALICE, "comments", item_id, atom)

    ok(await request(component, node="comments?category=red"))
    assert items(await component.events(BOBS)) == [("comments?category=red", "one")]
    ok(await request(component, node="comments?category=green"))
    assert await component.events(BOBS) == []


@pytest.mark.parametrize(("model", "option"), [("open", "never"), ("authorize", "on_sub")])
async def test_nothing_follows_otherwise(component: Component, model: str, option: str) -> None:
    """[xep-map 116] [xep-map 108]"""
    await component.create(ALICE, "comments", access_model=model, send_last_published_item=option)
    await component.publish(ALICE, "comments", "one")

    ok(await request(component))

    assert await component.events(BOBS) == []


async def test_empty_node_has_no_last_item(component: Component) -> None:
    """[xep-map 116]"""
    await component.create(ALICE, "comments", send_last_published_item="on_sub")

    ok(await request(component))

    assert await component.events(BOBS) == []


async def test_pending_subscriber_is_subscribed_once_nothing_is_in_the_way(component: Component) -> None:
    """[xep-map 109] [xep-map 104]: made a member while waiting."""
    await component.create(ALICE, "comments", access_model="authorize")
    await request(component)
    await component.affiliate(ALICE, "comments", BOB, "member")

    assert body(ok(await request(component))) == [pubsub(subscription())]
    assert await listed(component) == [("comments", BOBS, "subscribed")]

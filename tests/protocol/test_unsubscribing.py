"""Unsubscribing, one's own list, and what owners are told of it (xep-map G; XEP-0060 5.6, 6.2, 16.4.4)."""

import pytest

from smartfeeds.delivery.sweeps import LEASES
from support.component import (
    ALICE,
    BOB,
    CAROL,
    NS,
    Component,
    Refusal,
    Starter,
    bare,
    body,
    entry,
    ok,
    refusal,
    tree,
)
from support.subscribing import BOBS, listed, pubsub, request, subscription

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
NOT_SUBSCRIBED = Refusal("cancel", "unexpected-request", "not-subscribed")


async def test_unsubscribe_stops_events(component: Component) -> None:
    """[xep-map 119]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    await component.subscribe(CAROL, "comments")

    answer = ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))
    await component.publish(ALICE, "comments", "one")

    assert body(answer) == [pubsub(subscription(state="none"))]
    assert await listed(component) == []
    assert await component.events(BOBS) == []
    assert len(await component.events(bare(CAROL))) == 1


async def test_unsubscribe_takes_back_a_request_that_waits(component: Component) -> None:
    """[xep-map 119] [xep-map 104]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await request(component)

    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))

    assert await listed(component) == []
    assert body(ok(await request(component))) == [pubsub(subscription(state="pending"))]


@pytest.mark.parametrize(
    ("jid", "node"), [(BOBS, "comments"), (BOB, "posts"), (BOBS, "posts?order=modified"), (BOBS, "posts?order=created")]
)
async def test_unsubscribe_of_a_user_who_is_not_subscribed_is_refused(
    component: Component, jid: str, node: str
) -> None:
    """[xep-map 120]"""
    await component.create(ALICE, "comments")
    await component.create(ALICE, "posts")
    await component.subscribe(BOB, "posts")

    assert refusal(await component.set(BOB, f"<unsubscribe node='{node}' jid='{jid}'/>")) == NOT_SUBSCRIBED
    assert await listed(component) == [("posts", BOBS, "subscribed")]


@pytest.mark.parametrize("user", [CAROL, ALICE, "bob@elsewhere.example/work"])
async def test_unsubscribe_of_somebody_else_is_forbidden(component: Component, user: str) -> None:
    """[xep-map 121]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    assert refusal(await component.set(user, f"<unsubscribe node='comments' jid='{BOBS}'/>")) == FORBIDDEN
    assert await listed(component) == [("comments", BOBS, "subscribed")]


async def test_subid_that_is_not_in_use_is_ignored(component: Component) -> None:
    """[xep-map 123]; XEP-0060 6.5.9.2, 6.3.4.4 by analogy."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    ok(await component.get(BOB, "<items node='comments' subid='123'/>"))
    ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}' subid='123'/>"))
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}' subid='123'/>"))

    assert await listed(component) == []


async def test_own_subscriptions_are_those_of_the_bare_address(component: Component) -> None:
    """[xep-map 124]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.create(ALICE, "posts")
    await request(component)
    await request(component, BOB, "posts")
    await request(component, f"{BOBS}/other", "posts?order=created", f"{BOBS}/other")
    await component.subscribe(CAROL, "posts")

    everywhere = ok(await component.get(f"{BOBS}/third", "<subscriptions/>"))

    assert body(everywhere) == [
        pubsub(
            "<subscriptions>"
            + subscription(state="pending")
            + subscription(BOB, "posts")
            + subscription(f"{BOBS}/other", "posts?order=created")
            + "</subscriptions>"
        )
    ]


async def test_own_subscriptions_to_one_node_are_only_those(component: Component) -> None:
    """[xep-map 124] [xep-map 114]: a view is a node of its own here."""
    await component.create(ALICE, "comments")
    await component.create(ALICE, "posts")
    await request(component)
    await request(component, BOB, "posts")
    await request(component, BOBS, "posts?order=created")

    bare_node = ok(await component.get(BOB, "<subscriptions node='posts'/>"))
    view = ok(await component.get(BOB, "<subscriptions node='posts?order=created'/>"))

    assert body(bare_node) == [pubsub(f"<subscriptions node='posts'>{subscription(BOB, 'posts')}</subscriptions>")]
    assert body(view) == [
        pubsub(
            "<subscriptions node='posts?order=created'>"
            + subscription(BOBS, "posts?order=created")
            + "</subscriptions>"
        )
    ]
    assert refusal(await component.get(BOB, "<subscriptions node='missing'/>")) == NOT_FOUND


async def test_user_without_subscriptions_gets_an_empty_list(component: Component) -> None:
    """[xep-map 124]"""
    await component.create(ALICE, "comments")

    assert body(ok(await component.get(BOB, "<subscriptions/>"))) == [pubsub("<subscriptions/>")]
    assert body(ok(await component.get(BOB, "<subscriptions node='comments'/>"))) == [
        pubsub("<subscriptions node='comments'/>")
    ]


async def test_subscribers_may_publish_where_the_node_lets_them(component: Component) -> None:
    """[xep-map 108]: who waits is no subscriber, for publishing neither."""
    await component.create(ALICE, "comments", access_model="authorize", publish_model="subscribers")
    await request(component)

    answer = await component.set(BOB, f"<publish node='comments'><item>{entry('x')}</item></publish>")

    assert refusal(answer) == FORBIDDEN


@pytest.mark.parametrize("notify_sub", ["true", "false"])
async def test_owners_are_told_who_comes_and_goes_where_the_node_says_so(component: Component, notify_sub: str) -> None:
    """XEP-0060 16.4.4 notify_sub (xep-map 2.1): once a change, and not for who changes nothing."""
    jid = f"{BOBS}/my phone"
    await component.create(ALICE, "comments", notify_sub=notify_sub)

    for _ in range(2):
        ok(await request(component, jid))
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{jid}'/>"))

    told = [tree(child) for message in await component.events(bare(ALICE)) for child in message]
    states = ["subscribed", "none"] if notify_sub == "true" else []
    assert told == [tree(f"<event xmlns='{NS['ev']}'>{subscription(jid, state=state)}</event>") for state in states]
    assert await component.events(jid) == []


async def test_owners_are_not_told_of_requests_that_wait(component: Component) -> None:
    """XEP-0060 16.4.4 notify_sub: who waits is no subscriber yet."""
    await component.create(ALICE, "comments", access_model="authorize", notify_sub="true")

    ok(await request(component))
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))

    events = [message.find("ev:event", NS) for message in await component.events(bare(ALICE))]
    assert events == [None]  # the request itself


async def test_owners_are_notified_whoever_changes_a_subscription(component: Component) -> None:
    """XEP-0060 16.4.4 notify_sub: an approval, the list of an owner, an affiliation, a lease and a bounce."""
    await component.create(ALICE, "comments", access_model="authorize", notify_sub="true")

    async def states() -> list[str]:
        events = [message.find("ev:event/ev:subscription", NS) for message in await component.events(bare(ALICE))]
        return [str(event.get("subscription")) for event in events if event is not None]

    async def set_state(state: str) -> None:
        entry = f"<subscription jid='{BOBS}' subscription='{state}'/>"
        ok(await component.owner_set(ALICE, f"<subscriptions node='comments'>{entry}</subscriptions>"))

    ok(await request(component))
    await set_state("subscribed")
    assert await states() == ["subscribed"]
    await set_state("none")
    assert await states() == ["none"]
    component.clock.advance(3_600)  # owners are notified of three changes of a subscriber in an hour
    ok(await request(component))
    await component.affiliate(ALICE, "comments", BOB, "member")
    assert await states() == ["subscribed"]
    await component.affiliate(ALICE, "comments", BOB, "outcast")
    assert await states() == ["none"]
    component.clock.advance(3_600)
    await component.affiliate(ALICE, "comments", BOB, "member")
    await component.subscribe(BOB, "comments", expire="2026-01-01T02:01:00Z")
    component.clock.advance(60)
    await LEASES.sweep(component.app.service)
    assert await states() == ["subscribed", "none"]


async def test_owners_are_notified_of_subscriptions_that_an_owner_adds(start: Starter) -> None:
    """XEP-0060 8.8.2, 16.4.4 notify_sub."""
    component = await start(pubsub={"owners_subscribe_others": True})
    await component.create(ALICE, "comments", notify_sub="true")

    entry = f"<subscription jid='{BOBS}' subscription='subscribed'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='comments'>{entry}</subscriptions>"))

    expected = tree(f"<event xmlns='{NS['ev']}'>{subscription()}</event>")
    for address in (bare(ALICE), BOBS):
        assert [tree(child) for message in await component.events(address) for child in message] == [expected]

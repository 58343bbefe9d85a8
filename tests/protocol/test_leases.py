"""Subscriptions that end at a time, through the whole component with a clock of its own (XEP-0060 12.19)."""

import pytest

from smartfeeds.core.jid import parse_jid
from smartfeeds.delivery.sweeps import LEASES
from smartfeeds.service import leases
from smartfeeds.service.authorization import GetPendingNodes, PendingNodes, ResendPending, ResentRequests
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    NS,
    SUBSCRIBE_OPTIONS,
    Component,
    Refusal,
    Starter,
    bare,
    body,
    fields,
    form,
    ok,
    refusal,
    tree,
)
from support.subscribing import BOBS, pubsub, request, subscription

pytestmark = pytest.mark.shared

# The clock begins at 2026-01-01T00:00:00Z.
MINUTE, HOUR = "2026-01-01T00:01:00Z", "2026-01-01T01:00:00Z"


def lease(end: str, state: str = "subscribed", node: str = "comments") -> str:
    """The element that tells of a subscription with a lease."""
    return f"<subscription node='{node}' jid='{BOBS}' subscription='{state}' expiry='{end}'/>"


async def subscribe(component: Component, end: str, user: str = BOB, node: str = "comments") -> None:
    """Subscribes with a lease, or renews it."""
    assert await component.subscribe(user, node, expire=end) == "subscribed"


async def events(component: Component, address: str = BOBS) -> list[str]:
    """Short words for what an address received: an item, or the state of a subscription."""
    short = {"items": "item", "subscription": ""}
    found = [message.find("ev:event", NS) for message in await component.events(address)]
    children = [each[0] for each in found if each is not None]
    return [child.get("subscription") or short[child.tag.rpartition("}")[2]] for child in children]


async def test_lease_is_shown(component: Component) -> None:
    """XEP-0060 12.19: in the response, in the list and in the options."""
    await component.create(ALICE, "comments")
    options = f"<options>{form(SUBSCRIBE_OPTIONS, expire='2026-01-01T02:00:00+01:00')}</options>"

    answer = ok(await component.set(BOB, f"<subscribe node='comments' jid='{BOBS}'/>{options}"))
    mine = ok(await component.get(BOB, "<subscriptions/>"))
    shown = ok(await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>"))

    assert tree(answer[0][0]) == tree(f"<a xmlns='{NS['ps']}'>{lease(HOUR)}</a>")[3][0]
    assert fields(answer)["expire"] == [HOUR]
    assert body(mine) == [pubsub(f"<subscriptions>{lease(HOUR)}</subscriptions>")]
    assert fields(shown)["expire"] == [HOUR]


async def test_unsubscribe_is_answered_without_the_lease(component: Component) -> None:
    """[xep-map 119]; XEP-0060 12.19: the former subscription has none."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)

    answer = ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>"))

    assert body(answer) == [pubsub(subscription(state="none"))]


async def test_subscription_ends_with_its_lease_and_the_subscriber_is_notified(component: Component) -> None:
    """XEP-0060 12.19, 12.14."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)
    await component.subscribe(CAROL, "comments")

    component.clock.advance(59.9)
    await LEASES.sweep(component.app.service)
    await component.publish(ALICE, "comments", "one")
    assert await events(component) == ["item"]
    component.clock.advance(0.1)
    await LEASES.sweep(component.app.service)
    await component.publish(ALICE, "comments", "two")

    assert await events(component) == ["none"]
    assert body(ok(await component.get(BOB, "<subscriptions/>"))) == [pubsub("<subscriptions/>")]
    assert await events(component, bare(CAROL)) == ["item", "item"]
    await LEASES.sweep(component.app.service)
    assert await events(component) == []


@pytest.mark.parametrize("again", [True, False])
async def test_lease_is_renewed(component: Component, again: bool) -> None:
    """XEP-0060 12.19: by its options, or by subscribing again."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)
    component.clock.advance(59)

    if again:
        await subscribe(component, HOUR)
    else:
        submit = form(SUBSCRIBE_OPTIONS, expire=HOUR)
        ok(await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{submit}</options>"))
    component.clock.advance(3_540)
    await LEASES.sweep(component.app.service)
    assert await events(component) == []
    component.clock.advance(1)
    await LEASES.sweep(component.app.service)

    assert await events(component) == ["none"]


async def test_subscription_is_over_before_the_sweep_removes_it(component: Component) -> None:
    """XEP-0060 12.19: another subscribe begins a new subscription, which the sweep leaves alone."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)
    component.clock.advance(60)

    options = await component.get(BOB, f"<options node='comments' jid='{BOBS}'/>")
    answer = ok(await request(component))
    await LEASES.sweep(component.app.service)

    assert refusal(options) == Refusal("modify", "unexpected-request", "not-subscribed")
    assert body(answer) == [pubsub(subscription())]
    assert await events(component) == []
    assert body(ok(await component.get(BOB, "<subscriptions/>"))) == [
        pubsub(f"<subscriptions>{subscription()}</subscriptions>")
    ]


@pytest.mark.parametrize("approved", [True, False])
async def test_no_request_sees_a_subscription_whose_lease_is_over(component: Component, approved: bool) -> None:
    """XEP-0060 12.19: from its end on, also before the sweep."""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.publish(ALICE, "comments", "one")
    await component.subscribe(BOB, "comments", expire=MINUTE)
    approval = f"<subscriptions node='comments'><subscription jid='{BOBS}' subscription='subscribed'/></subscriptions>"
    if approved:
        ok(await component.owner_set(ALICE, approval))
        ok(await component.get(BOB, "<items node='comments'/>"))
    component.clock.advance(60)

    items = await component.get(BOB, "<items node='comments'/>")
    mine = ok(await component.get(BOB, "<subscriptions/>"))
    of_node = ok(await component.get(BOB, "<subscriptions node='comments'/>"))
    ended = await component.set(BOB, f"<unsubscribe node='comments' jid='{BOBS}'/>")
    list_of_owner = ok(await component.owner_get(ALICE, "<subscriptions node='comments'/>"))
    late_approval = await component.owner_set(ALICE, approval)

    assert refusal(items) == Refusal("auth", "not-authorized", "not-subscribed")
    assert not mine.findall(".//ps:subscription", NS) and not of_node.findall(".//ps:subscription", NS)
    assert refusal(ended) == Refusal("cancel", "unexpected-request", "not-subscribed")
    assert not list_of_owner.findall(".//own:subscription", NS)
    assert refusal(late_approval) == Refusal("modify", "not-acceptable")


async def test_request_whose_lease_is_over_is_not_pending(component: Component) -> None:
    """XEP-0060 8.7, 12.19."""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.subscribe(BOB, "comments", expire=MINUTE)
    await component.events(bare(ALICE))
    component.clock.advance(60)

    pending = await component.app.service.handle(GetPendingNodes(parse_jid(ALICE), DOMAIN))
    resent = await component.app.service.handle(ResendPending(parse_jid(ALICE), DOMAIN, "comments"))

    assert pending == PendingNodes(())
    assert resent == ResentRequests(0, more=False)


async def test_owner_subscribes_again_after_the_lease(component: Component) -> None:
    """XEP-0060 8.8.2, 12.19: the new subscription takes the place of the one that the sweep has not removed yet."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE, user=ALICE)
    component.clock.advance(60)

    entry = f"<subscription jid='{bare(ALICE)}' subscription='subscribed'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='comments'>{entry}</subscriptions>"))
    await LEASES.sweep(component.app.service)

    mine = ok(await component.get(ALICE, "<subscriptions/>"))
    assert body(mine) == [pubsub(f"<subscriptions>{subscription(bare(ALICE))}</subscriptions>")]


async def test_lease_can_be_removed(component: Component) -> None:
    """XEP-0060 12.19: a field without a value. Another subscribe without options leaves the lease as it is."""
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)
    ok(await request(component))
    assert body(ok(await component.get(BOB, "<subscriptions/>"))) == [
        pubsub(f"<subscriptions>{lease(MINUTE)}</subscriptions>")
    ]

    submit = form(SUBSCRIBE_OPTIONS, expire="")
    ok(await component.set(BOB, f"<options node='comments' jid='{BOBS}'>{submit}</options>"))
    component.clock.advance(3_600)
    await LEASES.sweep(component.app.service)

    assert await events(component) == []


async def test_leases_that_end_while_the_service_is_down_end_at_its_start(start: Starter) -> None:
    """XEP-0060 12.19: the end is in the store, and not in memory."""
    component = await start()
    await component.create(ALICE, "comments")
    await subscribe(component, MINUTE)
    await LEASES.sweep(component.app.service)
    component.clock.advance(60)

    component = await start.again(component)
    await LEASES.sweep(component.app.service)

    assert await events(component) == ["none"]


async def test_many_leases_end_in_small_steps(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """XEP-0060 12.19: each transaction ends a few, so that the writes of others do not wait for all."""
    monkeypatch.setattr(leases, "STEP", 2)
    names = [f"n{number}" for number in range(5)]
    await component.many_nodes(names)
    for name in names:
        await subscribe(component, MINUTE, node=name)
    component.clock.advance(60)
    sizes: list[int] = []
    change_state = leases.change_state
    end_leases = leases.end_leases

    def count(*arguments: object) -> None:
        sizes[-1] += 1
        change_state(*arguments)  # type: ignore[arg-type]

    def step(tx: object, context: object) -> object:
        sizes.append(0)
        return end_leases(tx, context)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "change_state", count)
    monkeypatch.setattr(leases, "end_leases", step)
    await LEASES.sweep(component.app.service)

    assert sizes == [2, 2, 1]
    assert await events(component) == ["none"] * 5


async def test_deleted_node_with_a_lease_is_no_trouble(component: Component) -> None:
    """XEP-0060 12.19 and 8.4."""
    await component.create(ALICE, "comments", notify_delete="false")
    await subscribe(component, MINUTE)
    ok(await component.owner_set(ALICE, "<delete node='comments'/>"))
    component.clock.advance(60)

    await LEASES.sweep(component.app.service)

    assert body(ok(await component.get(BOB, "<subscriptions/>"))) == [pubsub("<subscriptions/>")]

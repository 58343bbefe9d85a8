"""Subscribing, options, the owner's list (xep-map F, G)."""

import pytest

from smartfeeds.core.model import NodeKind, SubscriptionState
from smartfeeds.core.options import FormFields
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import (
    EmptyResult,
    GetDefaultSubscribeOptions,
    GetNodeSubscriptions,
    GetSubscribeOptions,
    GetSubscriptions,
    PartlyRefused,
    SetSubscribeOptions,
    SetSubscriptions,
    Subscribe,
    SubscribeOptions,
    SubscriptionList,
    SubscriptionShown,
    Unsubscribe,
)
from smartfeeds.service.subscriptions import Bounce
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, SERVICE, World, form, jid, refusal

SUBSCRIBED, PENDING, NONE = SubscriptionState.SUBSCRIBED, SubscriptionState.PENDING, SubscriptionState.NONE


async def mine(world: World, actor: str = ALICE, node: str | None = None) -> list[tuple[str, str, SubscriptionState]]:
    """An entity's own subscriptions."""
    answer = await world.service.handle(GetSubscriptions(jid(actor), SERVICE, node))
    assert isinstance(answer, SubscriptionList) and not answer.owner and answer.node == node
    return [(shown.node, shown.jid, shown.state) for shown in answer.entries]


async def theirs(world: World, actor: str = OWNER) -> list[tuple[str, str]]:
    """The owner's list."""
    answer = await world.service.handle(GetNodeSubscriptions(jid(actor), SERVICE, FEED))
    assert isinstance(answer, SubscriptionList) and answer.owner
    return [(shown.node, shown.jid) for shown in answer.entries]


async def set_states(world: World, *entries: tuple[str, str], actor: str = OWNER) -> EmptyResult | PartlyRefused:
    answer = await world.service.handle(SetSubscriptions(jid(actor), SERVICE, FEED, entries))
    assert isinstance(answer, EmptyResult | PartlyRefused)
    return answer


# Subscribing.


@pytest.mark.parametrize("who", [ALICE, ALICE + "/phone"])
@pytest.mark.parametrize("node", [FEED, MODIFIED, CREATED])
async def test_subscribe_of_the_bare_or_full_jid_is_subscribed(feed: World, who: str, node: str) -> None:
    """[SF-018] [SF-097] [xep-map 98]"""
    answer = await feed.subscribe(who, node)

    assert answer.subscription == SubscriptionShown(node, who, SUBSCRIBED)
    assert (answer.options, answer.last) == (None, None)
    assert await mine(feed) == [(node, who, SUBSCRIBED)]


@pytest.mark.parametrize(
    ("node", "who", "condition"),
    [
        (FEED, BOB, Condition.INVALID_JID),
        (FEED, BOB + "/x", Condition.INVALID_JID),
        (FEED, "a@@b", Condition.INVALID_JID),
        (FEED, None, Condition.JID_REQUIRED),
        (FEED, "", Condition.JID_REQUIRED),
        (None, ALICE, Condition.NODEID_REQUIRED),
        ("nope", ALICE, Condition.ITEM_NOT_FOUND),
        ("comments?colour=red", ALICE, Condition.ITEM_NOT_FOUND),
        ("comments?since=1", ALICE, Condition.BAD_REQUEST),
    ],
)
async def test_subscribe_malformed_is_refused(
    feed: World, node: str | None, who: str | None, condition: Condition
) -> None:
    """[xep-map 53] [xep-map 99] [xep-map 100] [xep-map 101]"""
    assert await refusal(feed.service.handle(Subscribe(jid(ALICE), SERVICE, node, who))) is condition
    assert await mine(feed) == []


@pytest.mark.parametrize(
    ("model", "affiliation", "outcome"),
    [
        ("open", "none", SUBSCRIBED),
        ("open", "outcast", Condition.FORBIDDEN),
        ("open", "publish-only", Condition.FORBIDDEN),
        ("whitelist", "none", Condition.CLOSED_NODE),
        ("whitelist", "outcast", Condition.FORBIDDEN),
        ("whitelist", "member", SUBSCRIBED),
        ("authorize", "none", PENDING),
        ("authorize", "member", SUBSCRIBED),
        ("authorize", "publisher", SUBSCRIBED),
        ("authorize", "owner", SUBSCRIBED),
    ],
)
async def test_subscribe_follows_model_and_affiliation(
    feed: World, model: str, affiliation: str, outcome: SubscriptionState | Condition
) -> None:
    """[SF-111] [xep-map 102] [xep-map 104] [xep-map 109]"""
    await feed.configure(access_model=model)
    await feed.affiliate(ALICE, affiliation)
    if isinstance(outcome, Condition):
        assert await refusal(feed.subscribe(ALICE, FEED)) is outcome
    else:
        assert (await feed.subscribe(ALICE, FEED)).subscription.state is outcome


async def test_subscribe_again_while_pending_is_refused(feed: World) -> None:
    """[xep-map 104]"""
    await feed.configure(access_model="authorize")
    await feed.subscribe(ALICE, FEED)

    assert await refusal(feed.subscribe(ALICE, FEED)) is Condition.PENDING_SUBSCRIPTION
    assert await mine(feed) == [(FEED, ALICE, PENDING)]


async def test_subscribe_past_the_quota_is_refused_but_a_second_time_is_not(feed: World) -> None:
    """[xep-map 110]"""
    feed.set_policy(subscriptions_per_jid=2)
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(ALICE + "/phone", MODIFIED)

    assert await refusal(feed.subscribe(ALICE, CREATED)) is Condition.TOO_MANY_SUBSCRIPTIONS
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(BOB, FEED)


async def test_subscribe_past_the_quota_of_a_domain_is_refused_whatever_the_address(feed: World) -> None:
    """[xep-map 110] [xep-map 249] Who owns a domain has as many JIDs as they like."""
    feed.set_policy(subscriptions_per_domain=2)
    await feed.subscribe("1@evil.example", FEED)
    await feed.subscribe("2@evil.example/x", MODIFIED)

    assert await refusal(feed.subscribe("3@evil.example", FEED)) is Condition.TOO_MANY_SUBSCRIPTIONS
    await feed.subscribe("1@evil.example", FEED)  # has it already
    await feed.subscribe("1@sub.evil.example", FEED)
    await feed.unsubscribe("1@evil.example", FEED)
    await feed.subscribe("3@evil.example", FEED)


async def test_subscribe_to_one_node_more_often_than_allowed_is_refused(feed: World) -> None:
    """[xep-map 110] The resources of an address count together, and so do all views: each is sent every change."""
    await feed.create("other")
    feed.set_policy(subscriptions_per_jid_and_node=3)
    for who, node in ((ALICE, FEED), (f"{ALICE}/1", FEED), (f"{ALICE}/1", MODIFIED)):
        await feed.subscribe(who, node)

    assert await refusal(feed.subscribe(f"{ALICE}/2", FEED)) is Condition.TOO_MANY_SUBSCRIPTIONS
    assert await refusal(feed.subscribe(ALICE, CREATED)) is Condition.TOO_MANY_SUBSCRIPTIONS
    await feed.subscribe(f"{ALICE}/1", MODIFIED)  # has it already
    await feed.subscribe(f"{ALICE}/2", "other")
    await feed.subscribe(BOB, FEED)
    await feed.unsubscribe(f"{ALICE}/1", FEED)
    await feed.subscribe(f"{ALICE}/2", FEED)


async def test_subscribe_with_many_resources_ends_at_the_default(feed: World) -> None:
    """[xep-map 110] One item of 60 kB does not become 600 MB for one account."""
    for number in range(50):
        await feed.subscribe(f"{ALICE}/{number}", FEED)

    assert await refusal(feed.subscribe(f"{ALICE}/50", FEED)) is Condition.TOO_MANY_SUBSCRIPTIONS


async def test_subscribe_to_more_filtered_views_of_a_node_than_allowed_is_refused(feed: World) -> None:
    """[xep-map 110]"""
    feed.set_policy(filters_per_jid=2)
    for query in ("q=a", "q=b", "order=created", "q=a"):
        await feed.subscribe(ALICE, f"{FEED}?{query}")

    assert await refusal(feed.subscribe(ALICE, f"{FEED}?q=c")) is Condition.TOO_MANY_SUBSCRIPTIONS
    await feed.subscribe(ALICE, f"{FEED}?q=b")
    await feed.subscribe(BOB, f"{FEED}?q=c")


async def test_subscribe_and_unsubscribe_are_told_to_owners_where_the_node_says_so(feed: World) -> None:
    """[xep-map 179] notify_sub."""
    await feed.subscribe(ALICE, MODIFIED)
    assert await feed.told() == ""
    await feed.configure(notify_sub="1")
    await feed.subscribe(BOB, MODIFIED)
    await feed.unsubscribe(BOB, MODIFIED)

    events = await feed.events()
    assert [(event.to, event.short, event.xml[0][0].get("jid")) for event in events] == [
        (OWNER, "subscription", BOB),
        (OWNER, "subscription", BOB),
    ]
    assert [event.xml[0][0].get("subscription") for event in events] == ["subscribed", "none"]


async def repeat(world: World, times: int, who: str) -> None:
    """Subscribes and unsubscribes so often."""
    for _ in range(times):
        await world.subscribe(who, MODIFIED)
        await world.unsubscribe(who, MODIFIED)


async def test_owners_are_notified_of_three_changes_of_a_subscriber_in_an_hour(feed: World) -> None:
    """notify_sub: a loop does not fill the chat windows of the owners [xep-map 179]."""
    await feed.configure(notify_sub="1")

    await repeat(feed, 10, ALICE)
    assert [event.xml[0][0].get("jid") for event in await feed.events()] == [ALICE] * 3
    await repeat(feed, 1, BOB)
    assert [event.xml[0][0].get("jid") for event in await feed.events()] == [BOB] * 2
    feed.clock.move(3_599)
    await repeat(feed, 1, ALICE)
    assert await feed.told() == ""
    feed.clock.move(1)
    await repeat(feed, 1, ALICE)
    assert [event.xml[0][0].get("jid") for event in await feed.events()] == [ALICE] * 2


async def test_owners_are_notified_of_thirty_changes_of_a_domain_in_an_hour(feed: World) -> None:
    """notify_sub: somebody who creates JIDs is bounded too [xep-map 179]."""
    await feed.configure(notify_sub="1")

    for number in range(20):
        await repeat(feed, 1, f"u{number}@elsewhere.example")
    await repeat(feed, 1, ALICE)

    senders = [event.xml[0][0].get("jid", "").partition("@")[2] for event in await feed.events()]
    assert senders == ["elsewhere.example"] * 30 + ["example.org"] * 2


async def test_owners_who_never_subscribed_are_not_notified_of_subscribers(feed: World) -> None:
    """notify_sub: an owner cannot send messages to JIDs that it makes owners [xep-map 179]."""
    strangers = [f"victim{number}@innocent.example" for number in range(20)]
    await feed.configure(notify_sub="1")
    for stranger in strangers:
        await feed.affiliate(stranger, "owner")

    await feed.subscribe(ALICE, MODIFIED)
    assert [event.to for event in await feed.events()] == [OWNER]
    await feed.subscribe(strangers[3], CREATED)
    await feed.events()
    await feed.subscribe(BOB, MODIFIED)
    assert sorted(event.to for event in await feed.events()) == sorted((OWNER, strangers[3]))
    await feed.unsubscribe(strangers[3], CREATED)
    await feed.events()
    await feed.unsubscribe(BOB, MODIFIED)
    assert [event.to for event in await feed.events()] == [OWNER]


async def test_requests_and_changes_of_a_subscriber_are_counted_apart(feed: World) -> None:
    """Forms that were sent do not hold back the notification of the approval [xep-map 105] [xep-map 179]."""
    await feed.configure(access_model="authorize", notify_sub="1")
    for _ in range(4):
        await feed.subscribe(ALICE, MODIFIED)
        await feed.unsubscribe(ALICE, MODIFIED)
    assert len(await feed.events(to=OWNER)) == 3
    await feed.configure(access_model="open")

    await feed.subscribe(ALICE, MODIFIED)

    assert [event.to for event in await feed.events()] == [OWNER]


async def test_subscribe_again_after_approval_stays_approved_and_a_pending_one_leaves_unseen(feed: World) -> None:
    """[xep-map 112] [xep-map 119]"""
    await feed.configure(access_model="authorize", notify_sub="1")
    await feed.subscribe(ALICE, FEED)
    await set_states(feed, (ALICE, "subscribed"))
    await feed.subscribe(BOB, FEED)
    await feed.events()

    assert (await feed.subscribe(ALICE, FEED)).subscription.state is SUBSCRIBED
    await feed.unsubscribe(BOB, FEED)
    assert await feed.told() == ""


async def test_approval_begins_the_subscription_with_what_is_published_after_it(feed: World) -> None:
    """[xep-map 95] [xep-map 108]"""
    await feed.configure(access_model="authorize")
    await feed.subscribe(ALICE, MODIFIED)
    await feed.cut()
    await feed.publish("a")
    await set_states(feed, (ALICE, "subscribed"))
    await feed.start()
    await feed.publish("b")

    assert [event.item_id for event in await feed.events(to=ALICE) if event.item_id] == ["b"]


async def test_subscribe_where_the_node_does_not_let_one_is_unsupported(feed: World) -> None:
    """[xep-map 111]"""
    await feed.configure(subscribe="0")
    with pytest.raises(FeedError) as caught:
        await feed.subscribe(ALICE, FEED)

    assert (caught.value.condition, caught.value.feature) == (Condition.UNSUPPORTED, "subscribe")


async def test_subscribe_twice_is_one_subscription_under_the_name_last_used(feed: World) -> None:
    """[xep-map 112] [xep-map 115]"""
    await feed.subscribe(ALICE, "comments?author=x&order=modified")
    before = await feed.node()
    answer = await feed.subscribe(ALICE, "comments?order=modified&author=X")
    assert await mine(feed) == [("comments?order=modified&author=X", ALICE, SUBSCRIBED)]
    assert answer.subscription.node == "comments?order=modified&author=X"
    after = await feed.node()
    await feed.subscribe(ALICE, "comments?order=modified&author=X")

    assert before.audience < after.audience == (await feed.node()).audience


async def test_subscribe_one_jid_to_many_views_and_resources_is_many_subscriptions(feed: World) -> None:
    """[xep-map 113] [xep-map 114] [xep-map 124]"""
    for who, node in ((ALICE, FEED), (ALICE + "/phone", FEED), (ALICE, MODIFIED), (ALICE, CREATED)):
        await feed.subscribe(who, node)
    await feed.create("other")
    await feed.subscribe(ALICE, "other")
    await feed.subscribe(BOB, FEED)

    assert [(node, who) for node, who, _ in await mine(feed, ALICE + "/desk")] == [
        (FEED, ALICE),
        (FEED, ALICE + "/phone"),
        (MODIFIED, ALICE),
        (CREATED, ALICE),
        ("other", ALICE),
    ]
    assert await mine(feed, ALICE, "other") == [("other", ALICE, SUBSCRIBED)]
    assert await mine(feed, "carol@x") == []
    assert await refusal(mine(feed, ALICE, "nope")) is Condition.ITEM_NOT_FOUND


async def test_subscribe_with_last_published_item_on_gives_the_newest_live_one(feed: World) -> None:
    """[xep-map 116]"""
    await feed.configure(send_last_published_item="on_sub")
    assert (await feed.subscribe(ALICE, FEED)).last is None
    await feed.publish_all("a b c")
    await feed.retract("c")

    last = (await feed.subscribe(BOB, MODIFIED)).last
    assert last is not None and last.id == "b"
    filtered = (await feed.subscribe(BOB, f"{FEED}?q=a")).last
    assert filtered is not None and filtered.id == "a"
    await feed.configure(access_model="authorize")
    assert (await feed.subscribe("carol@x", FEED)).last is None


async def test_subscribe_with_options_applies_them_or_fails_whole(feed: World) -> None:
    """[xep-map 117] [xep-map 127]"""
    answer = await feed.subscribe(ALICE, FEED, deliver="0")
    assert (answer.kind, answer.options) == (NodeKind.FEED, {"deliver": ("false",)})
    assert await refusal(feed.subscribe(BOB, FEED, deliver="maybe")) is Condition.INVALID_OPTIONS
    assert await mine(feed, BOB) == []
    assert (await feed.subscribe(ALICE, FEED)).options is None
    assert (await options(feed)).options == {"deliver": ("false",)}


# Unsubscribing.


async def test_unsubscribe_ends_one_subscription(feed: World) -> None:
    """[xep-map 119]"""
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(ALICE, MODIFIED)
    await feed.unsubscribe(ALICE, "comments?order=modified")

    assert await mine(feed) == [(FEED, ALICE, SUBSCRIBED)]


@pytest.mark.parametrize(
    ("node", "who", "condition"),
    [
        (MODIFIED, ALICE, Condition.NOT_SUBSCRIBED),
        (FEED, ALICE + "/phone", Condition.NOT_SUBSCRIBED),
        (FEED, BOB, Condition.FORBIDDEN),
        ("nope", ALICE, Condition.ITEM_NOT_FOUND),
        (FEED, None, Condition.JID_REQUIRED),
        (None, ALICE, Condition.NODEID_REQUIRED),
    ],
)
async def test_unsubscribe_of_what_is_not_there_is_refused(
    feed: World, node: str | None, who: str | None, condition: Condition
) -> None:
    """[xep-map 120] [xep-map 121] [xep-map 122]"""
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(BOB, FEED)

    assert await refusal(feed.service.handle(Unsubscribe(jid(ALICE), SERVICE, node, who))) is condition
    assert len(await theirs(feed)) == 2


# Options.


async def options(world: World, node: str = FEED, who: str | None = ALICE, actor: str = ALICE) -> SubscribeOptions:
    answer = await world.service.handle(GetSubscribeOptions(jid(actor), SERVICE, node, who))
    assert isinstance(answer, SubscribeOptions)
    return answer


async def set_options(world: World, submitted: FormFields | None, who: str | None = ALICE, actor: str = ALICE) -> None:
    await world.service.handle(SetSubscribeOptions(jid(actor), SERVICE, FEED, who, submitted))


async def test_options_are_set_and_read_by_the_subscriber(feed: World) -> None:
    """[xep-map 125] [xep-map 128]"""
    await feed.subscribe(ALICE, FEED)
    assert await options(feed) == SubscribeOptions(FEED, ALICE, NodeKind.FEED, {})
    await set_options(feed, form(deliver="false", include_body="1"))
    assert (await options(feed)).options == {"deliver": ("false",), "include_body": ("true",)}
    await set_options(feed, form(deliver="true"))
    await set_options(feed, None)
    assert (await options(feed)).options == {"include_body": ("true",)}


@pytest.mark.parametrize(
    ("who", "condition"),
    [
        (BOB, Condition.FORBIDDEN),
        (ALICE, Condition.NOT_SUBSCRIBED),
        (None, Condition.JID_REQUIRED),
        ("@@", Condition.INVALID_JID),
    ],
)
async def test_options_of_others_or_of_nothing_are_refused(feed: World, who: str | None, condition: Condition) -> None:
    """[xep-map 126]"""
    await feed.subscribe(BOB, FEED)

    assert await refusal(options(feed, who=who)) is condition
    assert await refusal(set_options(feed, form(deliver="0"), who)) is condition


async def test_options_invalid_change_nothing(feed: World) -> None:
    """[xep-map 127]"""
    await feed.subscribe(ALICE, FEED)

    assert await refusal(set_options(feed, form(include_body="1", digest="1"))) is Condition.INVALID_OPTIONS
    assert (await options(feed)).options == {}


async def test_default_options_need_no_subscription(feed: World) -> None:
    """[xep-map 125] [xep-map 129]"""
    await feed.create("things", kind="generic")
    for node, kind in ((None, NodeKind.FEED), (FEED, NodeKind.FEED), ("things", NodeKind.GENERIC)):
        answer = await feed.service.handle(GetDefaultSubscribeOptions(jid(ALICE), SERVICE, node))
        assert answer == SubscribeOptions(node, None, kind, {})
    missing = feed.service.handle(GetDefaultSubscribeOptions(jid(ALICE), SERVICE, "nope"))
    assert await refusal(missing) is Condition.ITEM_NOT_FOUND


# The owner's side.


async def test_owner_list_has_the_subscribed_and_not_the_pending(feed: World) -> None:
    """[xep-map 93]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.configure(access_model="authorize")
    await feed.subscribe(BOB, FEED)

    assert await theirs(feed) == [(FEED, ALICE)]
    assert await refusal(theirs(feed, ALICE)) is Condition.FORBIDDEN
    assert await refusal(set_states(feed, (BOB, "subscribed"), actor=ALICE)) is Condition.FORBIDDEN


async def test_owner_approves_and_removes_and_the_subscriber_is_told(feed: World) -> None:
    """[xep-map 94] [xep-map 95] [xep-map 106]"""
    await feed.configure(access_model="authorize")
    await feed.subscribe(BOB, FEED)
    assert await refusal(feed.pull(FEED, actor=BOB)) is Condition.NOT_SUBSCRIBED_READER

    assert await set_states(feed, (BOB, "subscribed")) == EmptyResult()
    assert (await feed.pull(FEED, actor=BOB)).ids == ""
    assert await mine(feed, BOB) == [(FEED, BOB, SUBSCRIBED)]
    assert await set_states(feed, (BOB, "none")) == EmptyResult()
    assert await mine(feed, BOB) == []
    events = await feed.events(BOB)
    assert [(one.kind, one.xml[0][0].get("subscription")) for one in events] == [
        ("subscription", "subscribed"),
        ("subscription", "none"),
    ]
    assert [(one.node, one.xml.get("from"), one.last) for one in events] == [(FEED, SERVICE, None)] * 2


async def test_owner_removing_a_bare_jid_takes_all_its_resources_and_views(feed: World) -> None:
    """[xep-map 94]"""
    for who, node in ((ALICE, FEED), (ALICE + "/phone", MODIFIED), (ALICE + "/desk", FEED), (BOB, FEED)):
        await feed.subscribe(who, node)
    await set_states(feed, (ALICE + "/desk", "none"))
    assert [who for _, who in await theirs(feed)] == [ALICE, ALICE + "/phone", BOB]
    await set_states(feed, (ALICE, "none"))

    assert [who for _, who in await theirs(feed)] == [BOB]


async def test_owner_cannot_subscribe_who_never_asked_and_the_rest_is_applied(feed: World) -> None:
    """[xep-map 96]"""
    await feed.subscribe(ALICE, FEED)
    answer = await set_states(feed, ("carol@x", "subscribed"), (ALICE, "none"), ("@@", "none"), (BOB, "unconfigured"))

    assert isinstance(answer, PartlyRefused) and answer.subscriptions is not None
    assert [shown.jid for shown in answer.subscriptions.entries] == ["carol@x", "@@", BOB]
    assert await theirs(feed) == []


async def test_owner_setting_the_state_it_has_changes_and_tells_nothing(feed: World) -> None:
    await feed.subscribe(ALICE, FEED)
    await set_states(feed, (ALICE, "subscribed"))

    assert await feed.told() == ""


# Bounces.


@pytest.mark.parametrize(
    ("who", "condition", "ends"),
    [
        (ALICE + "/phone", "gone", True),
        (ALICE, "too-many-bounces", True),
        (ALICE, "service-unavailable", False),
        (BOB, "gone", False),
    ],
)
async def test_bounce_ends_a_subscription_only_for_good_and_from_its_own_address(
    feed: World, who: str, condition: str, ends: bool
) -> None:
    """[xep-map 241] [xep-map 242] [xep-map 244]"""
    await feed.subscribe(ALICE, FEED)
    await feed.service.handle(Bounce(jid(who), SERVICE, 1, condition))
    await feed.service.handle(Bounce(jid(ALICE), SERVICE, 99, "gone"))

    assert (await mine(feed) == []) is ends

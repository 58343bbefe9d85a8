"""Affiliations and the owner's lists through the whole component (xep-map F; XEP-0060 4.1, 5.7, 8.8, 8.9)."""

import pytest

from smartfeeds.core.model import Affiliation, Subscription, SubscriptionState
from smartfeeds.store.base import WriteTx
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    Component,
    Element,
    Refusal,
    Starter,
    Tree,
    bare,
    body,
    entry,
    form,
    headers,
    ok,
    refusal,
    tree,
)

pytestmark = pytest.mark.shared

FORBIDDEN = Refusal("auth", "forbidden")
NOT_FOUND = Refusal("cancel", "item-not-found")
NOT_ACCEPTABLE = Refusal("modify", "not-acceptable")
NO_NODEID = Refusal("modify", "bad-request", "nodeid-required")

# What each request of an owner looks like, for a node of this name.
OWNER_REQUESTS = {
    "get configure": ("get", "<configure node='{}'/>"),
    "set configure": ("set", "<configure node='{}'>" + form(NODE_CONFIG, title="Taken") + "</configure>"),
    "delete": ("set", "<delete node='{}'/>"),
    "purge": ("set", "<purge node='{}'/>"),
    "get affiliations": ("get", "<affiliations node='{}'/>"),
    "set affiliations": (
        "set",
        "<affiliations node='{}'><affiliation jid='eve@elsewhere.example' affiliation='owner'/></affiliations>",
    ),
    "get subscriptions": ("get", "<subscriptions node='{}'/>"),
    "set subscriptions": (
        "set",
        "<subscriptions node='{}'><subscription jid='carol@example.org' subscription='none'/></subscriptions>",
    ),
}


def affiliations(*entries: tuple[str, str], node: str = "comments") -> str:
    """An owner's request or answer with (jid, affiliation) entries."""
    inner = "".join(f"<affiliation jid='{jid}' affiliation='{held}'/>" for jid, held in entries)
    return f"<affiliations node='{node}'>{inner}</affiliations>"


def subscriptions(*entries: tuple[str, str], node: str = "comments") -> str:
    """An owner's request or answer with (jid, state) entries."""
    inner = "".join(f"<subscription jid='{jid}' subscription='{state}'/>" for jid, state in entries)
    return f"<subscriptions node='{node}'>{inner}</subscriptions>"


def owners(inner: str) -> Tree:
    """What is in an answer to an owner."""
    return tree(f"<pubsub xmlns='{OWNER}'>{inner}</pubsub>")


async def held(component: Component, owner: str = ALICE) -> dict[str, str]:
    """The affiliations of the node, by JID."""
    answer = ok(await component.owner_get(owner, affiliations()))
    found = [(str(e.get("jid")), str(e.get("affiliation"))) for e in answer.iterfind(".//own:affiliation", NS)]
    assert len(dict(found)) == len(found)
    return dict(found)


async def subscribers(component: Component) -> list[tuple[str, str]]:
    """The owner's list of subscriptions."""
    answer = ok(await component.owner_get(ALICE, subscriptions()))
    return sorted((str(e.get("jid")), str(e.get("subscription"))) for e in answer.iterfind(".//own:subscription", NS))


def state_event(message: Element, jid: str, state: str, node: str = "comments") -> bool:
    """Whether a message tells just this change of state (XEP-0060 12.14)."""
    wanted = f"<subscription node='{node}' jid='{jid}' subscription='{state}'/>"
    told = [tree(child) for child in message] == [tree(f"<event xmlns='{NS['ev']}'>{wanted}</event>")]
    return told and not headers(message)


# Who may do what

SUBSCRIBE, RETRIEVE, PUBLISH, OWN, OTHERS = "subscribe", "retrieve", "publish", "delete own item", "delete an item"
MANAGE = ("configure", "purge", "delete node")
MAY = {  # XEP-0060 4.1, for an open node whose publish model is publishers
    "owner": {SUBSCRIBE, RETRIEVE, PUBLISH, OWN, OTHERS, *MANAGE},
    "publisher": {SUBSCRIBE, RETRIEVE, PUBLISH, OWN},
    "publish-only": {PUBLISH, OWN},
    "member": {SUBSCRIBE, RETRIEVE},
    "none": {SUBSCRIBE, RETRIEVE},
    "outcast": set(),
}
REQUESTS = {
    SUBSCRIBE: ("set", PS, f"<subscribe node='comments' jid='{bare(BOB)}'/>"),
    RETRIEVE: ("get", PS, "<items node='comments'/>"),
    PUBLISH: ("set", PS, f"<publish node='comments'><item id='new'>{entry('new')}</item></publish>"),
    OWN: ("set", PS, "<retract node='comments'><item id='his'/></retract>"),
    OTHERS: ("set", PS, "<retract node='comments'><item id='hers'/></retract>"),
    "configure": ("set", OWNER, f"<configure node='comments'>{form(NODE_CONFIG, title='x')}</configure>"),
    "purge": ("set", OWNER, "<purge node='comments'/>"),
    "delete node": ("set", OWNER, "<delete node='comments'/>"),
}


@pytest.mark.parametrize("affiliation", MAY)
async def test_privileges_are_those_of_the_affiliation(component: Component, affiliation: str) -> None:
    """[xep-map 85]"""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "hers")
    if OWN in MAY[affiliation] or affiliation == "outcast":
        await component.affiliate(ALICE, "comments", BOB, "publisher")
        await component.publish(BOB, "comments", "his")
    await component.affiliate(ALICE, "comments", BOB, affiliation)
    asked = {name: r for name, r in REQUESTS.items() if name != OWN or OWN in MAY[affiliation] | {"outcast"}}

    answers = {
        name: await component.ask(BOB, kind, f"<pubsub xmlns='{space}'>{inner}</pubsub>")
        for name, (kind, space, inner) in asked.items()
    }

    assert {name for name, answer in answers.items() if answer.get("type") == "result"} == MAY[affiliation]
    refused = {refusal(answer) for name, answer in answers.items() if name not in MAY[affiliation]}
    assert refused <= {FORBIDDEN}


@pytest.mark.parametrize("affiliation", ["owner", "publisher", "member"])
@pytest.mark.parametrize("model", ["whitelist", "authorize"])
async def test_members_publishers_and_owners_pass_every_access_model(
    component: Component, model: str, affiliation: str
) -> None:
    """[xep-map 85]; X2: they retrieve without a subscription, too."""
    await component.create(ALICE, "comments", access_model=model)
    await component.affiliate(ALICE, "comments", BOB, affiliation)

    assert await component.item_ids(BOB, "comments") == []
    assert await component.subscribe(BOB, "comments") == "subscribed"


async def test_admin_of_the_service_owns_every_node(start: Starter) -> None:
    """[xep-map 85]: the operator names them."""
    component = await start(pubsub={"admins": [bare(CAROL)]})
    await component.create(ALICE, "comments")

    assert await held(component, CAROL) == {bare(ALICE): "owner"}
    assert refusal(await component.owner_get(BOB, affiliations())) == FORBIDDEN


@pytest.mark.parametrize("request_name", OWNER_REQUESTS)
@pytest.mark.parametrize("affiliation", ["publisher", "publish-only", "member", "none", "outcast"])
async def test_owner_requests_are_for_owners(component: Component, request_name: str, affiliation: str) -> None:
    """[xep-map 97] [xep-map 87]"""
    kind, inner = OWNER_REQUESTS[request_name]
    await component.create(ALICE, "comments")
    await component.subscribe(CAROL, "comments")
    await component.affiliate(ALICE, "comments", BOB, affiliation)
    before = await held(component)

    answer = await component.ask(BOB, kind, f"<pubsub xmlns='{OWNER}'>{inner.format('comments')}</pubsub>")

    assert refusal(answer) == FORBIDDEN
    assert await held(component) == before
    assert await subscribers(component) == [(bare(CAROL), "subscribed")]


@pytest.mark.parametrize("request_name", OWNER_REQUESTS)
async def test_owner_requests_need_a_node_that_exists(component: Component, request_name: str) -> None:
    """[xep-map 87]; XEP-0060 8.2.3, 8.4.3, 8.5.3, 8.8, 8.9."""
    kind, inner = OWNER_REQUESTS[request_name]

    missing = await component.ask(ALICE, kind, f"<pubsub xmlns='{OWNER}'>{inner.format('missing')}</pubsub>")
    nameless = inner.replace(" node='{}'", "")
    unnamed = await component.ask(ALICE, kind, f"<pubsub xmlns='{OWNER}'>{nameless}</pubsub>")

    assert refusal(missing) == NOT_FOUND
    assert refusal(unnamed) == NO_NODEID


# Affiliations


async def test_affiliations_belong_to_bare_jids(component: Component) -> None:
    """[xep-map 84]"""
    await component.create(ALICE, "comments")

    ok(await component.owner_set(ALICE, affiliations((BOB, "publisher"), ("CAROL@Example.org/phone", "member"))))

    assert await held(component) == {bare(ALICE): "owner", bare(BOB): "publisher", bare(CAROL): "member"}
    await component.publish(f"{bare(BOB)}/elsewhere", "comments", "one")
    assert await held(component, f"{bare(ALICE)}/elsewhere")


async def test_own_affiliations_are_told_over_all_nodes_and_for_one(component: Component) -> None:
    """[xep-map 86]"""
    await component.create(ALICE, "comments")
    await component.create(ALICE, "posts")
    await component.create(BOB, "private")
    await component.affiliate(ALICE, "comments", BOB, "publisher")

    everywhere = ok(await component.get(BOB, "<affiliations/>"))
    here = ok(await component.get(BOB, "<affiliations node='comments'/>"))
    nowhere = ok(await component.get(BOB, "<affiliations node='posts'/>"))
    nobody = ok(await component.get(EVE, "<affiliations/>"))

    publisher = "<affiliation node='comments' affiliation='publisher'/>"
    owner = "<affiliation node='private' affiliation='owner'/>"
    assert body(everywhere) == [tree(f"<pubsub xmlns='{PS}'><affiliations>{publisher}{owner}</affiliations></pubsub>")]
    assert body(here) == [
        tree(f"<pubsub xmlns='{PS}'><affiliations node='comments'>{publisher}</affiliations></pubsub>")
    ]
    assert body(nowhere) == [tree(f"<pubsub xmlns='{PS}'><affiliations node='posts'/></pubsub>")]
    assert body(nobody) == [tree(f"<pubsub xmlns='{PS}'><affiliations/></pubsub>")]


async def test_owner_sees_all_affiliations_but_none(component: Component) -> None:
    """[xep-map 87]"""
    await component.create(ALICE, "comments")
    for user, affiliation in ((BOB, "outcast"), (CAROL, "publish-only"), (EVE, "member")):
        await component.affiliate(ALICE, "comments", user, affiliation)
    await component.affiliate(ALICE, "comments", EVE, "none")

    answer = ok(await component.owner_get(ALICE, affiliations()))

    entries = ((bare(ALICE), "owner"), (bare(BOB), "outcast"), (bare(CAROL), "publish-only"))
    assert body(answer) == [owners(affiliations(*entries))]


@pytest.mark.both_engines
async def test_owner_set_changes_only_the_entries_given(start: Starter) -> None:
    """[xep-map 88]"""
    component = await start()
    await component.create(ALICE, "comments")
    ok(await component.owner_set(ALICE, affiliations((bare(BOB), "member"), (bare(CAROL), "outcast"))))
    untouched = f"<affiliation jid='{bare(CAROL)}'/>"

    answer = ok(
        await component.owner_set(
            ALICE,
            f"<affiliations node='comments'><affiliation jid='{bare(BOB)}' affiliation='publisher'/>{untouched}"
            "</affiliations>",
        )
    )
    changed = await held(component)
    ok(await component.owner_set(ALICE, affiliations((bare(CAROL), "none"))))

    assert body(answer) == []
    assert changed == {bare(ALICE): "owner", bare(BOB): "publisher", bare(CAROL): "outcast"}
    assert await held(component) == {bare(ALICE): "owner", bare(BOB): "publisher"}


async def test_last_owner_cannot_be_removed(component: Component) -> None:
    """[xep-map 89]"""
    await component.create(ALICE, "comments")

    answer = await component.owner_set(ALICE, affiliations((bare(BOB), "member"), (bare(ALICE), "publisher")))

    assert refusal(answer) == NOT_ACCEPTABLE
    assert body(answer)[:-1] == [owners(affiliations((bare(ALICE), "owner")))]
    assert await held(component) == {bare(ALICE): "owner", bare(BOB): "member"}


@pytest.mark.parametrize("old_first", [True, False])
async def test_owner_can_hand_over_the_node_in_one_request(component: Component, old_first: bool) -> None:
    """[xep-map 89]: the last owner is who would leave the node without one, whatever the order of the entries."""
    await component.create(ALICE, "comments")
    entries = [(bare(ALICE), "none"), (bare(BOB), "owner")]

    ok(await component.owner_set(ALICE, affiliations(*(entries if old_first else reversed(entries)))))

    assert await held(component, BOB) == {bare(BOB): "owner"}


async def test_two_owners_cannot_both_leave(component: Component) -> None:
    """[xep-map 89]"""
    await component.create(ALICE, "comments")
    await component.affiliate(ALICE, "comments", BOB, "owner")

    answer = await component.owner_set(ALICE, affiliations((bare(BOB), "none"), (bare(ALICE), "none")))

    assert refusal(answer) == NOT_ACCEPTABLE
    assert body(answer)[:-1] == [owners(affiliations((bare(ALICE), "owner")))]
    assert await held(component) == {bare(ALICE): "owner"}


@pytest.mark.parametrize("second", ["bob@example.org", "BOB@EXAMPLE.ORG", "bob@example.org/work"])
async def test_same_jid_twice_is_refused_and_changes_nothing(component: Component, second: str) -> None:
    """[xep-map 90] [xep-map 20]"""
    await component.create(ALICE, "comments")

    answer = await component.owner_set(ALICE, affiliations((bare(BOB), "member"), (second, "publisher")))

    assert refusal(answer) == Refusal("modify", "bad-request")
    assert await held(component) == {bare(ALICE): "owner"}


@pytest.mark.parametrize("value", ["king", "", "Owner"])
async def test_unknown_affiliation_is_named_in_the_error(component: Component, value: str) -> None:
    """[xep-map 91] [xep-map 19]"""
    await component.create(ALICE, "comments")

    answer = await component.owner_set(ALICE, affiliations((bare(CAROL), "member"), (bare(BOB), value)))

    assert refusal(answer) == Refusal("cancel", "feature-not-implemented", "unsupported", f"{value}-affiliation")
    assert await held(component) == {bare(ALICE): "owner"}


async def test_malformed_addresses_are_refused_and_change_nothing(component: Component) -> None:
    """[xep-map 21]; XEP-0060 17.1."""
    await component.create(ALICE, "comments")

    malformed = await component.owner_set(ALICE, affiliations((bare(CAROL), "member"), ("a@b@c", "member")))
    absent = await component.owner_set(
        ALICE, "<affiliations node='comments'><affiliation affiliation='member'/></affiliations>"
    )

    assert refusal(malformed) == Refusal("modify", "jid-malformed")
    assert refusal(absent) == Refusal("modify", "bad-request", "jid-required")
    assert await held(component) == {bare(ALICE): "owner"}


async def test_outcast_loses_all_subscriptions_and_is_told(component: Component) -> None:
    """[xep-map 92]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    await component.subscribe(BOB, "comments", BOB)

    await component.affiliate(ALICE, "comments", BOB, "outcast")
    await component.publish(ALICE, "comments", "one")

    for address in (bare(BOB), BOB):
        (message,) = await component.events(address)
        assert state_event(message, address, "none")
    assert await subscribers(component) == []


async def test_user_removed_from_a_whitelist_loses_the_subscription(component: Component) -> None:
    """[xep-map 92]: as for outcasts (XEP-0060 8.9.2.1, 4.5)."""
    await component.create(ALICE, "comments", access_model="whitelist")
    await component.affiliate(ALICE, "comments", BOB, "member")
    await component.subscribe(BOB, "comments")

    await component.affiliate(ALICE, "comments", BOB, "none")

    (message,) = await component.events(bare(BOB))
    assert state_event(message, bare(BOB), "none")
    assert await subscribers(component) == []


# The owner's list of subscriptions


async def test_owner_sees_subscribed_and_not_pending_users(component: Component) -> None:
    """[xep-map 93]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.affiliate(ALICE, "comments", BOB, "member")
    await component.subscribe(BOB, "comments")
    await component.subscribe(CAROL, "comments")

    answer = ok(await component.owner_get(ALICE, subscriptions()))

    assert body(answer) == [owners(subscriptions((bare(BOB), "subscribed")))]


async def test_owner_sees_a_follower_of_several_views_once_and_each_resource(component: Component) -> None:
    """[xep-map 93] [xep-map 113]"""
    await component.create(ALICE, "comments")
    for node in ("comments", "comments?order=created", "comments?order=modified"):
        await component.subscribe(BOB, node)
    await component.subscribe(BOB, "comments", BOB)

    assert await subscribers(component) == [(bare(BOB), "subscribed"), (BOB, "subscribed")]


async def test_owner_sees_an_empty_list(component: Component) -> None:
    """[xep-map 93]"""
    await component.create(ALICE, "comments")

    assert body(ok(await component.owner_get(ALICE, subscriptions()))) == [owners(subscriptions())]


async def test_owner_removes_a_subscriber_who_is_told(component: Component) -> None:
    """[xep-map 94] [xep-map 179]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    await component.subscribe(CAROL, "comments")

    answer = ok(await component.owner_set(ALICE, subscriptions((bare(BOB), "none"))))
    (message,) = await component.events(bare(BOB))
    await component.publish(ALICE, "comments", "one")

    assert body(answer) == []
    assert state_event(message, bare(BOB), "none")
    assert await subscribers(component) == [(bare(CAROL), "subscribed")]
    assert await component.events(bare(BOB)) == []
    assert len(await component.events(bare(CAROL))) == 1


async def test_owner_approves_a_pending_subscriber_who_is_notified(component: Component) -> None:
    """[xep-map 95]"""
    await component.create(ALICE, "comments", access_model="authorize")
    assert await component.subscribe(BOB, "comments") == "pending"

    answer = ok(await component.owner_set(ALICE, subscriptions((bare(BOB), "subscribed"))))
    (message,) = await component.events(bare(BOB))
    await component.publish(ALICE, "comments", "one")

    assert body(answer) == []
    assert state_event(message, bare(BOB), "subscribed")
    assert await subscribers(component) == [(bare(BOB), "subscribed")]
    assert len(await component.events(bare(BOB))) == 1
    assert await component.item_ids(BOB, "comments") == ["one"]


async def test_owner_denies_a_pending_subscriber_who_is_notified(component: Component) -> None:
    """[xep-map 95]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.subscribe(BOB, "comments")

    ok(await component.owner_set(ALICE, subscriptions((bare(BOB), "none"))))

    (message,) = await component.events(bare(BOB))
    assert state_event(message, bare(BOB), "none")
    assert await component.subscribe(BOB, "comments") == "pending"


async def test_approval_of_a_subscribed_user_changes_nothing(component: Component) -> None:
    """[xep-map 95]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    ok(await component.owner_set(ALICE, subscriptions((bare(BOB), "subscribed"))))

    assert await component.events(bare(BOB)) == []
    assert await subscribers(component) == [(bare(BOB), "subscribed")]


async def test_owner_cannot_subscribe_a_user_who_never_asked(component: Component) -> None:
    """[xep-map 96]"""
    await component.create(ALICE, "comments")
    await component.subscribe(CAROL, "comments")

    answer = await component.owner_set(ALICE, subscriptions((bare(BOB), "subscribed"), (bare(CAROL), "none")))

    assert refusal(answer) == NOT_ACCEPTABLE
    assert body(answer)[:-1] == [owners(subscriptions((bare(BOB), "none")))]
    assert await subscribers(component) == []
    assert await component.events(bare(BOB)) == []


@pytest.mark.parametrize("jid", [bare(ALICE), ALICE])
async def test_owner_subscribes_and_unsubscribes_itself_by_the_list(component: Component, jid: str) -> None:
    """XEP-0060 8.8.2: an owner is an entity like others, and needs no message about what it did itself."""
    await component.create(ALICE, "comments", access_model="whitelist")

    ok(await component.owner_set(ALICE, subscriptions((jid, "subscribed"))))
    assert await subscribers(component) == [(jid, "subscribed")]
    assert await component.events(jid) == []
    await component.publish(ALICE, "comments", "one")
    assert len(await component.events(jid)) == 1
    ok(await component.owner_set(ALICE, subscriptions((jid, "subscribed"))))
    ok(await component.owner_set(ALICE, subscriptions((jid, "none"))))

    assert await subscribers(component) == []


@pytest.mark.parametrize(
    ("options", "affiliation", "state"),
    [
        ({}, "none", "subscribed"),
        ({"access_model": "authorize"}, "none", "subscribed"),
        ({"access_model": "whitelist"}, "none", "none"),
        ({"access_model": "whitelist"}, "member", "subscribed"),
        ({}, "outcast", "none"),
        ({}, "publish-only", "none"),
        ({"subscribe": "false"}, "none", "none"),
    ],
)
async def test_owner_subscribes_others_where_the_operator_allows_it(
    start: Starter, options: dict[str, str], affiliation: str, state: str
) -> None:
    """[xep-map 96]; XEP-0060 8.8.2, 12.14: whoever may read the node is subscribed, and notified."""
    component = await start(pubsub={"owners_subscribe_others": True})
    await component.create(ALICE, "comments", **options)
    await component.affiliate(ALICE, "comments", BOB, affiliation)

    answer = await component.owner_set(ALICE, subscriptions((bare(BOB), "subscribed")))
    events = await component.events(bare(BOB))

    if state == "subscribed":
        assert body(ok(answer)) == []
        assert [each.get("subscription") for e in events for each in e.iterfind("ev:event/ev:subscription", NS)] == [
            "subscribed"
        ]
        await component.publish(ALICE, "comments", "one")
        assert len(await component.events(bare(BOB))) == 1
        assert await component.subscribe(BOB, "comments") == "subscribed"
    else:
        assert refusal(answer) == NOT_ACCEPTABLE
        assert body(answer)[:-1] == [owners(subscriptions((bare(BOB), "none")))]
        assert events == []
    assert await subscribers(component) == ([(bare(BOB), "subscribed")] if state == "subscribed" else [])


async def test_owner_subscribes_others_within_their_quotas(start: Starter) -> None:
    """[xep-map 96] [xep-map 110]: the quota is that of the user, and the other entries are applied."""
    component = await start(pubsub={"owners_subscribe_others": True}, limits={"subscriptions_per_jid": 1})
    await component.create(ALICE, "comments")
    await component.create(ALICE, "posts")
    await component.subscribe(BOB, "posts")

    answer = await component.owner_set(
        ALICE, subscriptions((bare(BOB), "subscribed"), (bare(CAROL), "subscribed"), (bare(ALICE), "subscribed"))
    )

    assert refusal(answer) == NOT_ACCEPTABLE
    assert body(answer)[:-1] == [owners(subscriptions((bare(BOB), "none")))]
    assert await subscribers(component) == [(bare(ALICE), "subscribed"), (bare(CAROL), "subscribed")]


@pytest.mark.parametrize("state", ["unconfigured", "pending", "yes"])
async def test_state_that_cannot_be_set_comes_back_as_it_is(component: Component, state: str) -> None:
    """[xep-map 96]; XEP-0060 8.8.2.4: entries that failed carry what they were before."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    answer = await component.owner_set(ALICE, subscriptions((bare(BOB), state)))

    assert refusal(answer) == NOT_ACCEPTABLE
    assert body(answer)[:-1] == [owners(subscriptions((bare(BOB), "subscribed")))]
    assert await subscribers(component) == [(bare(BOB), "subscribed")]
    assert await component.events(bare(BOB)) == []


async def test_malformed_subscriptions_are_refused(component: Component) -> None:
    """[xep-map 21]; XEP-0060 8.8.2."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    malformed = await component.owner_set(ALICE, subscriptions(("a@b@c", "none")))
    no_jid = await component.owner_set(
        ALICE, "<subscriptions node='comments'><subscription subscription='none'/></subscriptions>"
    )
    no_state = await component.owner_set(
        ALICE, f"<subscriptions node='comments'><subscription jid='{bare(BOB)}'/></subscriptions>"
    )

    assert refusal(malformed) == NOT_ACCEPTABLE
    assert refusal(no_jid) == Refusal("modify", "bad-request", "jid-required")
    assert refusal(no_state) == Refusal("modify", "bad-request")
    assert await subscribers(component) == [(bare(BOB), "subscribed")]


# Long lists

MANY = 5_000  # more than one stanza carries


async def fill(component: Component) -> None:
    """A node with many subscribers and affiliations, and one entity that has many of its own."""
    await component.create(ALICE, "comments")

    def work(tx: WriteTx) -> None:
        (node,) = tx.nodes("", 2)
        state = SubscriptionState.SUBSCRIBED
        for number in range(MANY):
            jid = f"{number:04}{'x' * 40}@example.org"
            tx.set_affiliation(node.node_no, jid, Affiliation.MEMBER)
            tx.put_subscription(Subscription(0, node.node_no, jid, "", "comments", DOMAIN, state, 0, 0, 0))
            view = f"by={number}"
            name = f"comments?{view}"
            tx.put_subscription(Subscription(0, node.node_no, bare(BOB), view, name, DOMAIN, state, 0, 0, 0))

    await component.app.service.store.write(work)


@pytest.mark.parametrize(
    ("space", "who", "name"),
    [
        (OWNER, ALICE, "<subscriptions node='comments'/>"),
        (OWNER, ALICE, "<affiliations node='comments'/>"),
        (PS, BOB, "<subscriptions/>"),
    ],
)
async def test_list_longer_than_a_stanza_is_read_to_its_end(start: Starter, space: str, who: str, name: str) -> None:
    """[xep-map 87] [xep-map 93] [xep-map 114] [xep-map 193] The first answer is as much as fits, and says that there
    is more; what it says leads through the rest."""
    component = await start()
    await fill(component)
    seen: list[str] = []
    sizes: list[int] = []
    beside = ""
    while True:
        answer = ok(await component.ask(who, "get", f"<pubsub xmlns='{space}'>{name}{beside}</pubsub>"))
        entries = [entry for entry in answer[0][0] if isinstance(entry.tag, str)]
        told = answer[0].find("rsm:set", NS)
        assert told is not None
        if not entries:
            break
        seen += [str(entry.get("node") if space == PS else entry.get("jid")) for entry in entries]
        beside = f"<set xmlns='{NS['rsm']}'><max>500</max><after>{told.findtext('rsm:last', None, NS)}</after></set>"
        sizes.append(len(entries))

    assert len(seen) == len(set(seen)) == MANY + (space == OWNER)
    first, *middle, last = sizes
    assert set(middle) == {500}, "each page but the first and the last is as long as was asked for"
    assert first >= 500 >= last > 0

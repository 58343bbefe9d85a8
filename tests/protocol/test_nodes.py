"""Creating, deleting and purging nodes through the whole component (xep-map E; XEP-0060 8.1, 8.4, 8.5)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    EVE,
    NODE_CONFIG,
    NS,
    OWNER,
    PS,
    Component,
    Refusal,
    Starter,
    bare,
    body,
    form,
    ok,
    refusal,
    submit,
    tree,
)
from support.nodes import event, exists

pytestmark = pytest.mark.shared

CLOSED_MODEL = Refusal("modify", "not-acceptable", "unsupported-access-model")
NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
BAD_REQUEST = Refusal("modify", "bad-request")
NO_NODEID = Refusal("modify", "bad-request", "nodeid-required")
NO_COLLECTIONS = Refusal("cancel", "feature-not-implemented", "unsupported", "collections")


def create(node: str, **options: str) -> str:
    """The children of a request to create and configure."""
    return f"<create node='{node}'/><configure>{form(NODE_CONFIG, **options)}</configure>"


# Creating


async def test_create_with_a_name_makes_the_requesters_bare_jid_owner(component: Component) -> None:
    """[xep-map 56]"""
    answer = ok(await component.set(ALICE, "<create node='comments'/>"))
    listed = ok(await component.owner_get(ALICE, "<affiliations node='comments'/>"))

    assert body(answer) == []
    assert body(listed) == [
        tree(
            f"<pubsub xmlns='{OWNER}'><affiliations node='comments'>"
            f"<affiliation jid='{bare(ALICE)}' affiliation='owner'/></affiliations></pubsub>"
        )
    ]


async def test_create_without_a_name_tells_the_generated_one(component: Component) -> None:
    """[xep-map 57]"""
    first = ok(await component.set(ALICE, "<create/>"))
    second = ok(await component.set(ALICE, "<create/>"))

    names = [str(answer.xpath("string(ps:pubsub/ps:create/@node)", namespaces=NS)) for answer in (first, second)]
    assert body(first) == [tree(f"<pubsub xmlns='{PS}'><create node='{names[0]}'/></pubsub>")]
    assert len(set(names)) == 2 and all(names)
    assert [await exists(component, name) for name in names] == [True, True]


async def test_create_with_an_empty_name_is_refused(component: Component) -> None:
    """XEP-0060 8.1.1: only an absent NodeID asks for an instant node."""
    assert refusal(await component.set(ALICE, "<create node=''/>")) == NO_NODEID


async def test_create_of_an_existing_node_leaves_it_as_it_is(component: Component) -> None:
    """[xep-map 58]"""
    await component.create(ALICE, "comments", title="Mine")

    again = await component.set(ALICE, create("comments", title="Changed"))
    stolen = await component.set(BOB, create("comments", title="Stolen"))

    assert refusal(again) == refusal(stolen) == Refusal("cancel", "conflict")
    assert (await component.config(ALICE, "comments"))["title"] == ["Mine"]
    assert refusal(await component.owner_get(BOB, "<configure node='comments'/>")) == FORBIDDEN


async def test_create_by_somebody_without_the_right_is_forbidden(component: Component) -> None:
    """[xep-map 59]"""
    named = await component.set(EVE, "<create node='comments'/>")
    instant = await component.set(EVE, "<create/>")

    assert refusal(named) == refusal(instant) == FORBIDDEN
    assert not await exists(component, "comments")


@pytest.mark.both_engines
async def test_create_over_the_quota_is_refused(start: Starter) -> None:
    """XEP-0060 8.1.1; a quota of nodes is the operator's policy (xep-map 249)."""
    component = await start(limits={"nodes_per_jid": 1})
    await component.create(ALICE, "one")

    answer = await component.set("alice@example.org/other", "<create node='two'/>")

    assert refusal(answer) == Refusal("wait", "policy-violation")
    await component.create(BOB, "two")


async def test_create_and_configure_applies_the_fields_and_defaults_for_the_rest(component: Component) -> None:
    """[xep-map 60]"""
    await component.create(ALICE, "plain")
    await component.create(ALICE, "made", title="Made", publish_model="open", deliver_payloads="0")

    plain, made = await component.config(ALICE, "plain"), await component.config(ALICE, "made")
    changed = {name: values for name, values in made.items() if values != plain[name]}
    assert changed == {"title": ["Made"], "publish_model": ["open"], "deliver_payloads": ["false"]}


@pytest.mark.parametrize(
    "configure", ["<configure/>", "<configure><x xmlns='jabber:x:data' type='cancel'/></configure>"]
)
async def test_create_with_an_empty_or_cancelled_configuration_takes_the_defaults(
    component: Component, configure: str
) -> None:
    """XEP-0060 8.1.2: an empty configure asks for the default configuration."""
    await component.create(ALICE, "plain")
    ok(await component.set(ALICE, f"<create node='made'/>{configure}"))

    assert await component.config(ALICE, "made") == await component.config(ALICE, "plain")


@pytest.mark.parametrize(
    "inner",
    [
        f"<configure>{form(NODE_CONFIG)}</configure><create node='comments'/>",
        f"<create node='comments'/><configure node='comments'>{form(NODE_CONFIG)}</configure>",
        f"<create node='comments'/><configure>{form(NODE_CONFIG)}</configure><configure/>",
        "<create node='comments'/><create node='other'/>",
    ],
)
async def test_create_with_a_misplaced_configure_creates_nothing(component: Component, inner: str) -> None:
    """[xep-map 61]"""
    assert refusal(await component.set(ALICE, inner)) == BAD_REQUEST
    assert not await exists(component, "comments")


@pytest.mark.parametrize("model", ["presence", "roster", "friends", ""])
async def test_create_with_an_access_model_we_do_not_have_creates_nothing(component: Component, model: str) -> None:
    """[xep-map 62]"""
    assert refusal(await component.set(ALICE, create("comments", access_model=model))) == CLOSED_MODEL
    assert not await exists(component, "comments")


async def test_configure_with_an_access_model_we_do_not_have_changes_nothing(component: Component) -> None:
    """[xep-map 62]"""
    await component.create(ALICE, "comments", access_model="whitelist")
    changed = form(NODE_CONFIG, title="New", access_model="presence")

    answer = await component.owner_set(ALICE, f"<configure node='comments'>{changed}</configure>")

    shown = await component.config(ALICE, "comments")
    assert refusal(answer) == CLOSED_MODEL
    assert (shown["access_model"], shown["title"]) == (["whitelist"], [""])


async def test_create_of_a_collection_is_unsupported(component: Component) -> None:
    """[xep-map 63]"""
    assert refusal(await component.set(ALICE, create("comments", node_type="collection"))) == NO_COLLECTIONS
    assert not await exists(component, "comments")


async def test_unknown_fields_are_ignored_in_create_and_configure(component: Component) -> None:
    """[xep-map 64]"""
    unknown = {"FORM_TYPE": [NODE_CONFIG], "pubsub#send_item_subscribe": ["1"], "pubsub#collection": ["root"]}
    unknown |= {"{http://example.org/}colour": ["red"], "title": ["no prefix"], "pubsub#title": ["Known"]}

    ok(await component.set(ALICE, f"<create node='comments'/><configure>{submit(unknown)}</configure>"))
    before = await component.config(ALICE, "comments")
    ok(await component.owner_set(ALICE, f"<configure node='comments'>{submit(unknown)}</configure>"))

    assert before == await component.config(ALICE, "comments")
    assert before["title"] == ["Known"]
    assert not {"send_item_subscribe", "collection", "{http://example.org/}colour"} & before.keys()


# Deleting and purging


async def test_deleted_node_is_gone(component: Component) -> None:
    """[xep-map 78]"""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")

    answer = ok(await component.owner_set(ALICE, "<delete node='comments'/>"))

    assert body(answer) == []
    for node in ("comments", "comments?order=modified"):
        assert refusal(await component.get(ALICE, f"<items node='{node}'/>")) == NOT_FOUND


async def test_deletion_is_told_to_every_subscriber_once(component: Component) -> None:
    """[xep-map 79]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.affiliate(ALICE, "comments", BOB, "member")
    assert await component.subscribe(BOB, "comments") == "subscribed"
    assert await component.subscribe(CAROL, "comments") == "pending"
    assert len(await component.events(bare(ALICE))) == 1  # the request of Carol

    ok(await component.owner_set(ALICE, "<delete node='comments'/>"))

    for user in (BOB, CAROL):
        (message,) = await component.events(bare(user))
        assert tree(event(message)) == tree(f"<event xmlns='{NS['ev']}'><delete node='comments'/></event>")
    assert await component.events(bare(ALICE)) == []


async def test_deletion_is_not_told_where_notify_delete_is_off(component: Component) -> None:
    """[xep-map 79]"""
    await component.create(ALICE, "comments", notify_delete="false")
    await component.subscribe(BOB, "comments")

    ok(await component.owner_set(ALICE, "<delete node='comments'/>"))

    assert await component.events(bare(BOB)) == []


@pytest.mark.both_engines
async def test_node_made_again_has_nothing_of_the_old_one(start: Starter) -> None:
    """[xep-map 80]"""
    component = await start()
    await component.create(ALICE, "comments", title="Old")
    await component.publish(ALICE, "comments", "one")
    await component.subscribe(BOB, "comments")
    await component.affiliate(ALICE, "comments", CAROL, "publisher")
    ok(await component.owner_set(ALICE, "<delete node='comments'/>"))
    await component.events(bare(BOB))

    await component.create(BOB, "comments")
    await component.publish(BOB, "comments", "two")

    assert await component.item_ids(ALICE, "comments?order=modified") == ["two"]
    assert (await component.config(BOB, "comments"))["title"] == [""]
    assert body(await component.get(BOB, "<subscriptions/>")) == [
        tree(f"<pubsub xmlns='{PS}'><subscriptions/></pubsub>")
    ]
    listed = ok(await component.owner_get(BOB, "<affiliations node='comments'/>"))
    assert [dict(each.attrib) for each in listed.iterfind(".//own:affiliation", NS)] == [
        {"jid": bare(BOB), "affiliation": "owner"}
    ]
    assert refusal(await component.owner_get(ALICE, "<configure node='comments'/>")) == FORBIDDEN
    assert await component.events(bare(BOB)) == []


async def test_purge_empties_the_node_and_is_told_once(component: Component) -> None:
    """[xep-map 81]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")
    await component.subscribe(BOB, "comments?order=modified")
    for number in ("one", "two", "three"):
        await component.publish(ALICE, "comments", number)
    await component.events(bare(BOB))

    answer = ok(await component.owner_set(ALICE, "<purge node='comments'/>"))
    messages = await component.events(bare(BOB))

    assert body(answer) == []
    assert await component.item_ids(BOB, "comments") == []
    assert sorted(map(tree, map(event, messages)), key=str) == [
        tree(f"<event xmlns='{NS['ev']}'><purge node='{node}'/></event>")
        for node in ("comments", "comments?order=modified")
    ]


@pytest.mark.both_engines
async def test_purged_items_stay_in_a_smart_view_as_tombstones(start: Starter) -> None:
    """[xep-map 82]"""
    component = await start()
    await component.create(ALICE, "comments")
    for number in ("one", "two"):
        await component.publish(ALICE, "comments", number)

    ok(await component.owner_set(ALICE, "<purge node='comments'/>"))

    page = ok(await component.get(BOB, "<items node='comments?order=modified'/>"))
    items = page.findall("ps:pubsub/ps:items/ps:item", NS)
    assert [item.get("id") for item in items] == ["one", "two"]
    assert [item.find(".//sx:sync[@deleted='true']", NS) is not None for item in items] == [True, True]


@pytest.mark.parametrize("action", ["delete", "purge"])
async def test_delete_and_purge_are_for_owners(component: Component, action: str) -> None:
    """[xep-map 83]"""
    await component.create(ALICE, "comments")
    await component.affiliate(ALICE, "comments", CAROL, "publisher")
    await component.publish(ALICE, "comments", "one")

    for user in (BOB, CAROL, EVE):
        assert refusal(await component.owner_set(user, f"<{action} node='comments'/>")) == FORBIDDEN
    assert refusal(await component.owner_set(ALICE, f"<{action} node='missing'/>")) == NOT_FOUND
    assert refusal(await component.owner_set(ALICE, f"<{action}/>")) == NO_NODEID
    assert await component.item_ids(BOB, "comments") == ["one"]

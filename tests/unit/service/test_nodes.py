"""Creating, configuring, deleting nodes; names with parameters (xep-map D, E)."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import SOCIAL_FEED, NodeOptions
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Policy
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    CreateNode,
    DeleteNode,
    GetConfiguration,
    GetDefaultConfiguration,
    NodeCreated,
)
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, SERVICE, World, form, jid, refusal


async def configuration(world: World, node: str = FEED, actor: str = OWNER) -> Configuration:
    answer = await world.service.handle(GetConfiguration(jid(actor), SERVICE, node))
    assert isinstance(answer, Configuration)
    return answer


async def test_create_makes_the_bare_jid_owner(world: World) -> None:
    """[xep-map 56] [xep-map 84]"""
    assert await world.create(actor=ALICE + "/phone") == FEED
    await world.configure(actor=ALICE, title="Mine")

    assert (await world.node()).creator == ALICE
    assert await world.store.read(lambda tx: [jid for jid, _ in tx.affiliations(1)]) == [ALICE]


@pytest.mark.parametrize("name", [None, ""])
async def test_create_without_name_makes_a_unique_one(world: World, name: str | None) -> None:
    """[xep-map 57]"""
    answers = [await world.service.handle(CreateNode(jid(OWNER), SERVICE, name)) for _ in range(2)]

    assert answers == [NodeCreated("id-1", True), NodeCreated("id-2", True)]


@pytest.mark.parametrize(
    ("name", "allowed"), [(".", False), ("..", False), ("...", True), (".a", True), ("a..b", True)]
)
async def test_create_refuses_names_that_no_browser_requests(world: World, name: str, allowed: bool) -> None:
    """A browser removes such a step from the path of the page, also if it is percent-encoded."""
    creation = world.create(name)

    assert await (creation if allowed else refusal(creation)) == (name if allowed else Condition.NOT_ACCEPTABLE)


async def test_create_of_a_taken_name_is_a_conflict_and_changes_nothing(world: World) -> None:
    """[xep-map 58]"""
    await world.create(title="Old")

    assert await refusal(world.create(title="New", actor=BOB)) is Condition.CONFLICT
    assert (await configuration(world)).options.stored == {"title": ("Old",)}


@pytest.mark.parametrize(
    ("creators", "allowed"),
    [({"*"}, True), ({ALICE}, True), ({"example.org"}, True), ({"elsewhere"}, False), (set(), False), ({BOB}, False)],
)
async def test_create_is_for_those_the_operator_lets(world: World, creators: set[str], allowed: bool) -> None:
    """[xep-map 59]"""
    world.set_policy(creators=frozenset(creators))
    if allowed:
        await world.create(actor=ALICE)
    else:
        assert await refusal(world.create(actor=ALICE)) is Condition.FORBIDDEN
        world.set_policy(admins=frozenset({ALICE}))
        await world.create(actor=ALICE)


async def test_create_past_the_quota_is_refused(world: World) -> None:
    world.set_policy(nodes_per_jid=2)
    await world.create("a")
    await world.create("b")

    assert await refusal(world.create("c")) is Condition.POLICY_VIOLATION
    await world.create("c", actor=ALICE)
    await world.delete(node="a")
    await world.create("d")


async def test_create_past_the_quota_of_a_domain_is_refused_whatever_the_address(world: World) -> None:
    """[xep-map 249] Who owns a domain has as many JIDs as they like."""
    world.set_policy(nodes_per_domain=2)
    await world.create("a", actor="1@evil.example")
    await world.create("b", actor="2@evil.example")

    assert await refusal(world.create("c", actor="3@evil.example")) is Condition.POLICY_VIOLATION
    await world.create("c", actor="1@sub.evil.example")
    await world.delete(node="a", actor="1@evil.example")
    await world.create("d", actor="3@evil.example")


async def test_create_with_configuration_applies_it_with_defaults_for_the_rest(world: World) -> None:
    """[xep-map 60] [xep-map 64]"""
    await world.create(title="News", access_model="whitelist", send_item_subscribe="1")
    found = await configuration(world)

    assert found.options.stored == {"title": ("News",), "access_model": ("whitelist",)}
    assert found.options.kind is NodeKind.FEED


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"access_model": "presence"}, Condition.UNSUPPORTED_ACCESS_MODEL),
        ({"node_type": "collection"}, Condition.UNSUPPORTED),
        ({"max_items": "0"}, Condition.NOT_ACCEPTABLE),
        ({"kind": "feed", "max_items": "10"}, Condition.NOT_ACCEPTABLE),
        ({"kind": "feed", "persist_items": "0"}, Condition.NOT_ACCEPTABLE),
        ({"kind": "collection"}, Condition.NOT_ACCEPTABLE),
    ],
)
async def test_create_with_a_refused_configuration_creates_nothing(
    world: World, options: dict[str, str], condition: Condition
) -> None:
    """[SF-012] [xep-map 62] [xep-map 63] [xep-map 72]"""
    assert await refusal(world.create(**options)) is condition
    assert await world.store.read(lambda tx: tx.node(FEED)) is None


async def test_create_kind_is_asked_for_or_the_policy(world: World) -> None:
    """[SF-114] D20."""
    await world.create("a")
    await world.create("b", kind="generic", max_items="10")
    world.set_policy(default_kind=NodeKind.GENERIC)
    await world.create("c")
    await world.create("d", kind="")

    kinds = [(await world.node(name)).kind for name in "abcd"]
    assert kinds == [NodeKind.FEED, NodeKind.GENERIC, NodeKind.GENERIC, NodeKind.GENERIC]


# Names with parameters.


@pytest.mark.parametrize("name", ["comments?order=created", "comments?order=score", "comments?", "comments?max=5"])
async def test_create_of_a_name_that_is_a_view_of_a_feed_is_not_allowed(feed: World, name: str) -> None:
    """[xep-map 51]"""
    assert await refusal(feed.create(name)) is Condition.NOT_ALLOWED


async def test_exact_name_wins_over_a_view(world: World) -> None:
    """[SF-087] [xep-map 47]"""
    await world.create("list?id=7")
    await world.create("list")
    await world.publish("a", node="list?id=7")

    assert (await world.pull("list?id=7")).ids == "a"
    assert (await world.pull("list?order=created")).ids == ""
    assert await refusal(world.pull("list?id=8")) is Condition.ITEM_NOT_FOUND


async def test_parameters_are_appended_to_a_name_that_has_a_query_string_of_its_own(world: World) -> None:
    """[SF-087]"""
    await world.create("list?id=7")
    await world.publish_all("a b", node="list?id=7")
    await world.publish("a", node="list?id=7", title="edited")

    assert (await world.pull("list?id=7&order=created")).ids == "a b"
    assert (await world.pull("list?id=7&order=modified")).ids == "b a"
    assert await refusal(world.pull("list?id=8&order=created")) is Condition.ITEM_NOT_FOUND


async def test_name_with_a_question_mark_whose_base_is_no_node_is_literal(world: World) -> None:
    """[xep-map 48]"""
    name = "urn:xmpp:pubsub-attachments:1/xmpp:juliet@capulet.lit?;node=x;item=1"
    await world.create(name)
    await world.publish("a", node=name)

    assert (await world.pull(name)).ids == "a"


async def test_parameters_in_any_order_name_one_view_and_the_name_comes_back_as_written(feed: World) -> None:
    """[SF-086] [xep-map 49] [xep-map 50]"""
    await feed.publish("a", author="ann")
    for name in ("comments?author=ann&order=created", "comments?order=created&author=%41nn"):
        assert (await feed.pull(name)).ids == "a"


@pytest.mark.parametrize("name", ["a b/c:d", "é東京😀", "<&\"'>", "x" * 1023, "?", "?order=created", "a%20b"])
async def test_odd_names_and_ids_survive(world: World, name: str) -> None:
    """[xep-map 55]"""
    await world.create(name)
    await world.publish(name, node=name, title="x")

    assert (await world.pull(name)).items[0].id == name


# Configuring.


async def test_configure_changes_only_what_the_form_holds(feed: World) -> None:
    """[xep-map 67]"""
    await feed.configure(title="News", language="en")
    await feed.configure(title="Old news")
    await feed.configure(language="")

    assert (await configuration(feed)).options.stored == {"title": ("Old news",)}


async def test_configure_refused_changes_nothing(feed: World) -> None:
    """[xep-map 71] [xep-map 72] [xep-map 74]"""
    await feed.publish("a")
    refused = await refusal(feed.configure(title="New", max_items="5"))

    assert refused is Condition.NOT_ACCEPTABLE
    assert (await configuration(feed)).options.stored == {}


async def test_configure_cancelled_changes_nothing(feed: World) -> None:
    """[xep-map 69]"""
    before = await feed.node()
    await feed.service.handle(Configure(jid(OWNER), SERVICE, FEED, None))
    await feed.configure()

    assert await feed.node() == before


async def test_owner_requests_by_others_or_without_node_are_refused(feed: World) -> None:
    """[xep-map 66] [xep-map 83] [xep-map 97]"""
    await feed.affiliate(ALICE, "publisher")
    for actor in (ALICE, BOB):
        assert await refusal(feed.configure(actor=actor, title="x")) is Condition.FORBIDDEN
        assert await refusal(feed.delete(actor=actor)) is Condition.FORBIDDEN
        assert await refusal(configuration(feed, actor=actor)) is Condition.FORBIDDEN
    for node, condition in (("", Condition.NODEID_REQUIRED), ("nope", Condition.ITEM_NOT_FOUND)):
        assert await refusal(feed.configure(node=node, title="x")) is condition
        assert await refusal(feed.delete(node=node)) is condition
        assert await refusal(configuration(feed, node)) is condition
    for view in (MODIFIED, CREATED):
        assert await refusal(feed.configure(node=view, title="x")) is Condition.NOT_ALLOWED
        assert await refusal(feed.delete(node=view)) is Condition.NOT_ALLOWED


async def test_default_configuration_is_that_of_a_leaf(world: World) -> None:
    """[xep-map 76] [xep-map 77]"""
    answer = await world.service.handle(GetDefaultConfiguration(jid(ALICE), SERVICE))
    assert answer == Configuration(None, NodeOptions(NodeKind.FEED))
    with pytest.raises(FeedError) as caught:
        await world.service.handle(GetDefaultConfiguration(jid(ALICE), SERVICE, "collection"))
    assert (caught.value.condition, caught.value.feature) == (Condition.UNSUPPORTED, "collections")


# Deleting.


async def test_delete_frees_the_name_and_a_new_node_has_nothing_of_the_old(feed: World) -> None:
    """[xep-map 78] [xep-map 80]"""
    await feed.publish_all("a b")
    await feed.subscribe(ALICE, FEED)
    await feed.affiliate(BOB, "publisher")
    await feed.delete()
    assert await refusal(feed.pull(FEED)) is Condition.ITEM_NOT_FOUND
    await feed.create(actor=ALICE)

    assert await feed.ids_of(MODIFIED) == ""
    assert await refusal(feed.publish("x", actor=BOB)) is Condition.FORBIDDEN
    assert await refusal(feed.delete(actor=OWNER)) is Condition.FORBIDDEN
    assert await feed.told() == "delete"
    assert await feed.store.read(lambda tx: (tx.node_by_no(1), len(tx.subscriptions_of(ALICE, now_us=None)))) == (
        None,
        0,
    )


async def test_delete_twice_is_not_found(feed: World) -> None:
    """[xep-map 78]"""
    await feed.delete()

    assert await refusal(feed.service.handle(DeleteNode(jid(OWNER), SERVICE, FEED))) is Condition.ITEM_NOT_FOUND


async def test_admin_of_the_service_owns_every_node(feed: World) -> None:
    feed.set_policy(admins=frozenset({BOB}))
    await feed.configure(actor=BOB + "/x", title="Tidied")
    await feed.delete(actor=BOB)


def test_policy_default_is_a_feed_service_for_everybody() -> None:
    """[SF-022] [xep-map 201]"""
    policy = Policy(SERVICE)

    assert (policy.default_kind, policy.page_default, policy.page_max) == (NodeKind.FEED, 50, 500)
    assert (policy.page_bytes, policy.span_cursors, policy.auto_create) == (204_800, True, False)
    assert SOCIAL_FEED.startswith("urn:xmpp:pubsub-social-feed")
    assert form(title="x") == {"pubsub#title": ("x",)}


async def test_name_before_somebody_elses_views_cannot_be_a_feed(world: World) -> None:
    """[xep-map 51]: whoever asks for a view of a feed must never get a stranger's node."""
    for name in ("plan?order=modified", "plan?", "plan?page=1"):
        await world.service.handle(CreateNode(jid(ALICE), SERVICE, name))

    assert await refusal(world.service.handle(CreateNode(jid(BOB), SERVICE, "plan"))) is Condition.NOT_ALLOWED
    await world.service.handle(CreateNode(jid(ALICE), SERVICE, "plan"))
    await world.service.handle(CreateNode(jid(ALICE), SERVICE, "page?page=1"))
    await world.service.handle(CreateNode(jid(BOB), SERVICE, "page"))

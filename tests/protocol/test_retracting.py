"""Retracting through the whole component (xep-map I; XEP-0060 7.2; section 2.3 of the map)."""

import pytest
import pytest_asyncio

from support.component import (
    ALICE,
    BOB,
    CAROL,
    EVE,
    NS,
    Component,
    Element,
    Refusal,
    bare,
    body,
    headers,
    ok,
    refusal,
    tree,
)
from support.pulls import infoset, payload_of, publish_all, pull

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
BAD_REQUEST = Refusal("modify", "bad-request")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:b</id><title>Secret title</title>"
    "<updated>2026-01-01T00:00:00Z</updated><author><name>Somebody</name></author><summary>secret</summary>"
    "<content>secret</content><category term='secret'/><link rel='enclosure' href='http://example.org/secret'/></entry>"
)


async def retract(component: Component, user: str, item_id: str, node: str = "comments", notify: str = "") -> Element:
    """The answer to a retraction."""
    told = f" notify='{notify}'" if notify else ""
    return await component.set(user, f"<retract node='{node}'{told}><item id='{item_id}'/></retract>")


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """An open feed of ALICE: a and c by her, b by BOB."""
    await component.create(ALICE, "comments", publish_model="open")
    await component.publish(ALICE, "comments", "a")
    component.clock.advance(1)
    await component.publish(BOB, "comments", "b", ENTRY)
    component.clock.advance(1)
    await component.publish(ALICE, "comments", "c")
    component.clock.advance(1)
    return component


@pytest.mark.parametrize("user", [ALICE, BOB])
async def test_owner_and_original_publisher_may_retract(feed: Component, user: str) -> None:
    """[xep-map 154]"""
    answer = ok(await retract(feed, user, "b"))

    assert body(answer) == []
    assert await feed.item_ids(EVE, "comments") == ["a", "c"]


@pytest.mark.parametrize("role", ["none", "member", "publisher", "publish-only", "outcast"])
async def test_nobody_else_may_retract(feed: Component, role: str) -> None:
    """[xep-map 155] [xep-map 85]: another publisher neither."""
    if role != "none":
        await feed.affiliate(ALICE, "comments", CAROL, role)

    assert refusal(await retract(feed, CAROL, "b")) == FORBIDDEN
    assert await feed.item_ids(ALICE, "comments") == ["a", "b", "c"]


@pytest.mark.parametrize("role", ["publisher", "publish-only"])
async def test_appointed_publisher_may_retract_what_is_his(feed: Component, role: str) -> None:
    """[xep-map 154] [xep-map 85]"""
    await feed.affiliate(ALICE, "comments", CAROL, role)
    await feed.publish(CAROL, "comments", "hers")

    ok(await retract(feed, CAROL, "hers"))

    assert await feed.item_ids(ALICE, "comments") == ["a", "b", "c"]


async def test_missing_item_or_node_is_not_found(feed: Component) -> None:
    """[xep-map 156]: an unknown id, a tombstone, a missing node."""
    await feed.affiliate(ALICE, "comments", CAROL, "publisher")
    ok(await retract(feed, BOB, "b"))

    for user, item_id, node in (
        (ALICE, "unknown", "comments"),
        (CAROL, "unknown", "comments"),
        (ALICE, "b", "comments"),
        (BOB, "b", "comments"),
        (ALICE, "a", "missing"),
        (EVE, "a", "missing"),
    ):
        assert refusal(await retract(feed, user, item_id, node)) == NOT_FOUND
    assert refusal(await retract(feed, EVE, "unknown")) == FORBIDDEN


async def test_retract_without_node_item_or_id_is_refused(feed: Component) -> None:
    """[xep-map 157]"""
    no_node = Refusal("modify", "bad-request", "nodeid-required")
    no_item = Refusal("modify", "bad-request", "item-required")

    assert refusal(await feed.set(ALICE, "<retract><item id='a'/></retract>")) == no_node
    assert refusal(await feed.set(ALICE, "<retract node=''><item id='a'/></retract>")) == no_node
    assert refusal(await feed.set(ALICE, "<retract node='comments'/>")) == no_item
    assert refusal(await feed.set(ALICE, "<retract node='comments'><item/></retract>")) == no_item
    assert await feed.item_ids(ALICE, "comments") == ["a", "b", "c"]


async def test_several_items_at_once_are_refused(feed: Component) -> None:
    """[xep-map 158]"""
    answer = await feed.set(ALICE, "<retract node='comments'><item id='a'/><item id='c'/></retract>")

    assert refusal(answer) == BAD_REQUEST
    assert await feed.item_ids(ALICE, "comments") == ["a", "b", "c"]


async def test_bare_view_does_not_show_what_was_retracted(feed: Component) -> None:
    """[xep-map 159]: neither in lists nor by id."""
    ok(await retract(feed, BOB, "b"))

    assert (await pull(feed, "comments")).ids == ["a", "c"]
    assert (await pull(feed, "comments", max=10)).ids == ["a", "c"]
    by_id = await pull(feed, "comments", ids=["b"])
    assert (by_id.ids, by_id.told) == ([], False)
    assert (await pull(feed, "comments", ids=["b", "c"])).ids == ["c"]


async def test_smart_view_shows_a_tombstone(feed: Component) -> None:
    """[A-151] [xep-map 160] [SF-013]: stripped and marked, newest in modified order, at its place in created order."""
    ok(await retract(feed, BOB, "b"))

    tombstone = tree(
        "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:b</id><title/>"
        "<updated>2026-01-01T00:00:03Z</updated>"
        "<sx:sync xmlns:sx='http://feedsync.org/2007/feedsync' deleted='true' id='b'/></entry>"
    )
    for node, ids in ((MODIFIED, ["a", "c", "b"]), (CREATED, ["a", "b", "c"])):
        page = await pull(feed, node, max=10)
        assert (page.ids, page.count) == (ids, 3)
        (by_id,) = (await pull(feed, node, ids=["b"])).items
        for item in (page.items[ids.index("b")], by_id):
            assert (tree(payload_of(item)), item.get("publisher")) == (tombstone, bare(BOB))


async def test_generic_node_forgets_what_was_retracted(component: Component) -> None:
    """[xep-map 159]; section 2.3: tombstones belong to feeds."""
    await component.create(ALICE, "box", kind="generic")
    for item_id in ("a", "b"):
        await component.publish(ALICE, "box", item_id, "<n xmlns='urn:example:n'/>")
    await component.subscribe(BOB, "box")

    ok(await retract(component, ALICE, "a", "box"))

    assert (await pull(component, "box", max=10)).ids == ["b"]
    (event,) = await component.events(bare(BOB))
    assert told_of(event) == "retract a"
    assert refusal(await retract(component, ALICE, "a", "box")) == NOT_FOUND


def told_of(message: Element) -> str:
    """What an event tells: `retract b`, `item b`."""
    (child,) = message.iterfind("ev:event/ev:items/*", NS)
    return f"{child.tag.rpartition('}')[2]} {child.get('id')}"


@pytest.mark.parametrize(
    ("notify_retract", "notify", "told"),
    [
        ("true", "", True),
        ("true", "false", True),
        ("true", "1", True),
        ("false", "true", True),
        ("false", "1", True),
        ("false", "", False),
        ("false", "false", False),
        ("false", "0", False),
    ],
)
async def test_bare_subscribers_are_told_where_node_or_request_says_so(
    component: Component, notify_retract: str, notify: str, told: bool
) -> None:
    """[xep-map 161]: by one event."""
    await component.create(ALICE, "comments", notify_retract=notify_retract)
    await publish_all(component, "comments", "a b")
    await component.subscribe(BOB, "comments")

    ok(await retract(component, ALICE, "a", notify=notify))

    events = await component.events(bare(BOB))
    assert [told_of(event) for event in events] == (["retract a"] if told else [])


@pytest.mark.parametrize("notify_retract", ["true", "false"])
@pytest.mark.parametrize("notify", ["", "true", "false"])
async def test_smart_subscribers_get_the_tombstone_in_any_case(
    component: Component, notify_retract: str, notify: str
) -> None:
    """[xep-map 162] [SF-037] [SF-038] [SF-098]: in modified order; nothing in created order."""
    await component.create(ALICE, "comments", notify_retract=notify_retract)
    await publish_all(component, "comments", "a b")
    await component.subscribe(BOB, MODIFIED)
    await component.subscribe(CAROL, CREATED)

    ok(await retract(component, ALICE, "a", notify=notify))

    (event,) = await component.events(bare(BOB))
    assert told_of(event) == "item a"
    assert event.find(".//sx:sync[@deleted='true']", NS) is not None
    newest = (await pull(component, MODIFIED, max=1, before="")).last
    assert headers(event)["TotalItems"] == "2"
    assert f"cursor:{headers(event)['LastCursor']}" == newest
    assert await component.events(bare(CAROL)) == []


async def test_publishing_the_id_again_brings_the_item_back(feed: Component) -> None:
    """[xep-map 163] [SF-013]: with its first created date, for its publisher, told as an item."""
    await feed.subscribe(EVE, "comments")
    await feed.subscribe(EVE, MODIFIED)
    await feed.subscribe(EVE, CREATED)
    ok(await retract(feed, BOB, "b"))
    await feed.events(bare(EVE))

    await feed.publish(BOB, "comments", "b", ENTRY)

    assert [told_of(event) for event in await feed.events(bare(EVE))] == ["item b", "item b"]
    assert (await pull(feed, "comments")).ids == ["a", "c", "b"]
    assert (await pull(feed, MODIFIED, max=10)).ids == ["a", "c", "b"]
    created = await pull(feed, CREATED, max=10)
    assert (created.ids, created.count) == (["a", "b", "c"], 3)
    (item,) = (await pull(feed, "comments", ids=["b"])).items
    assert infoset(payload_of(item)) == infoset(payload_of(created.items[1]))
    assert item.find(".//sx:sync", NS) is None
    ok(await retract(feed, BOB, "b"))


async def test_deletion_can_be_published(feed: Component) -> None:
    """xep-map 2.3: an entry that is marked as deleted is a deletion, told as one."""
    await feed.subscribe(EVE, "comments")
    mark = "<sync xmlns='http://feedsync.org/2007/feedsync' deleted='true'/>"

    await feed.publish(BOB, "comments", "b", f"<entry xmlns='http://www.w3.org/2005/Atom'>{mark}</entry>")

    assert [told_of(event) for event in await feed.events(bare(EVE))] == ["retract b"]
    assert (await pull(feed, "comments")).ids == ["a", "c"]
    assert (await pull(feed, MODIFIED, max=10)).ids == ["a", "c", "b"]

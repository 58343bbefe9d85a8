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
from support.pulls import payload_of, publish_all, pull

pytestmark = pytest.mark.shared

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


async def test_retraction_is_answered_without_a_body(feed: Component) -> None:
    """[xep-map 154]"""
    answer = ok(await retract(feed, BOB, "b"))

    assert body(answer) == []
    assert await feed.item_ids(EVE, "comments") == ["a", "c"]


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


def told_of(message: Element) -> str:
    """What an event tells: `retract b`, `item b`."""
    (child,) = message.iterfind("ev:event/ev:items/*", NS)
    return f"{child.tag.rpartition('}')[2]} {child.get('id')}"


async def test_bare_subscribers_are_told_where_the_request_says_so(component: Component) -> None:
    """[xep-map 161]: by one event."""
    await component.create(ALICE, "comments", notify_retract="false")
    await publish_all(component, "comments", "a b c d e")
    await component.subscribe(BOB, "comments")

    for item_id, notify in (("a", "true"), ("b", ""), ("c", "false"), ("d", "0"), ("e", "1")):
        ok(await retract(component, ALICE, item_id, notify=notify))

    assert [told_of(event) for event in await component.events(bare(BOB))] == ["retract a", "retract e"]


async def test_smart_subscribers_get_the_tombstone_in_any_case(component: Component) -> None:
    """[xep-map 162] [SF-037] [SF-038] [SF-098]: in modified order; nothing in created order."""
    await component.create(ALICE, "comments", notify_retract="false")
    await publish_all(component, "comments", "a b")
    await component.subscribe(BOB, MODIFIED)
    await component.subscribe(CAROL, CREATED)

    ok(await retract(component, ALICE, "a"))

    (event,) = await component.events(bare(BOB))
    assert told_of(event) == "item a"
    assert event.find(".//sx:sync[@deleted='true']", NS) is not None
    newest = (await pull(component, MODIFIED, max=1, before="")).last
    assert headers(event)["TotalItems"] == "2"
    assert f"cursor:{headers(event)['LastCursor']}" == newest
    assert await component.events(bare(CAROL)) == []

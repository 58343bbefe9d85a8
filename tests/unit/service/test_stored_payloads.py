"""What a publish stores: payloads that are accepted, entries that are completed, and the same payload again."""

import re

import pytest
from lxml import etree

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import OWN_NS
from support.world import ALICE, ATOM_NS, BOB, FEED, MODIFIED, OWNER, World, entry, refusal

FULL_ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:1</id><title>Hello</title>"
    "<updated>2026-01-01T00:00:00Z</updated><author><name>Alice</name></author><content>text</content></entry>"
)


async def payload_of(world: World, item_id: str, node: str = FEED) -> bytes:
    (item,) = (await world.pull(node, ids=item_id)).items
    return item.payload


async def atom_of(world: World, item_id: str, node: str = FEED) -> dict[str, str]:
    """The texts of an entry's children by name, in their order."""
    root = etree.fromstring(await payload_of(world, item_id, node))
    return {etree.QName(child).localname: child.text or "" for child in root}


# What is accepted.


async def test_payload_may_have_exactly_the_size_of_the_node(world: World) -> None:
    """[xep-map 137] Counted in bytes of the stored form."""
    await world.create("box", kind="generic", max_payload_size="1000")
    left = 1_000 - len('<t xmlns="urn:x"></t>')

    for text in ("x" * (left + 1), "ü" * 500):
        publishing = world.publish("x", f"<t xmlns='urn:x'>{text}</t>", node="box")
        assert await refusal(publishing) is Condition.PAYLOAD_TOO_BIG
    await world.publish("x", f"<t xmlns='urn:x'>{'x' * left}</t>", node="box")
    assert len(await payload_of(world, "x", "box")) == 1_000


@pytest.mark.parametrize(
    ("item_id", "payload"),
    [
        pytest.param("1", "<geoloc xmlns='http://jabber.org/protocol/geoloc'/>", id="another root"),
        pytest.param("1", "<entry xmlns='urn:example:x'/>", id="another namespace"),
        pytest.param("1", "<entry xmlns=''/>", id="no namespace"),
        pytest.param("1", f"<feed xmlns='{ATOM_NS}'/>", id="a feed"),
        pytest.param(None, f"<feed xmlns='{ATOM_NS}'/>", id="a feed without id"),
        pytest.param("0", f"<title xmlns='{ATOM_NS}'/>", id="a title at 0"),
    ],
)
async def test_feed_with_an_item_takes_only_atom_entries(feed: World, item_id: str | None, payload: str) -> None:
    """[xep-map 138] [SF-091] The error says how to store other payloads."""
    await feed.publish("old")

    with pytest.raises(FeedError) as refused:
        await feed.publish(item_id, payload)

    assert refused.value.condition is Condition.INVALID_PAYLOAD
    assert "persist_items false, item_expire, max_items below 10000, or another pubsub#type" in refused.value.text
    assert await feed.ids_of(FEED) == "old"


async def test_item_nought_may_be_a_feed_or_an_entry(feed: World) -> None:
    """[xep-map 138] The metadata of a microblog (XEP-0277 5)."""
    metadata = (
        f'<feed xmlns="{ATOM_NS}"><id>tag:x</id><title>Mine</title><updated>2026-01-01T00:00:00Z</updated></feed>'
    )
    for payload in (metadata, FULL_ENTRY):
        await feed.publish("0", payload)
        assert await payload_of(feed, "0") == payload.replace("'", '"').encode()


# Completion.


async def test_entry_that_lacks_all_is_completed(feed: World) -> None:
    """[SF-091] [SF-092] [xep-map 139] Movim's probe is an empty entry. XEP-0060 12.22: the address of an item."""
    feed.clock.move(3.25)
    await feed.publish("test_post", f"<entry xmlns='{ATOM_NS}'/>")
    await feed.publish("a b", f"<a:entry xmlns:a='{ATOM_NS}'/>")

    assert await atom_of(feed, "test_post") == {
        "id": "xmpp:feeds.example.org?;node=comments;item=test_post",
        "title": "",
        "updated": "2011-05-09T12:00:03.25Z",
    }
    (spaced,) = (item for item in (await feed.pull(FEED)).items if item.id == "a b")
    assert b"<a:id>xmpp:feeds.example.org?;node=comments;item=a%20b</a:id>" in spaced.payload


@pytest.mark.parametrize("missing", ["id", "title", "updated"])
async def test_entry_keeps_what_it_has(feed: World, missing: str) -> None:
    """[xep-map 139] Only what lacks is added, all else stays as it was."""
    payload = re.sub(f"<{missing}>.*?</{missing}>", "", FULL_ENTRY)
    await feed.publish("a", payload)

    stored = await payload_of(feed, "a")
    assert stored.count(f"<{missing}>".encode()) == 1
    assert re.sub(f"<{missing}>.*?</{missing}>".encode(), b"", stored) == payload.replace("'", '"').encode()


async def test_derived_atom_ids_differ_from_node_to_node_and_never_change(feed: World) -> None:
    """[SF-092] RFC 4287 4.2.6: an edit and a restoration keep the atom:id, also one that the publisher gave."""
    await feed.create("notes & more")
    for node, quoted in ((FEED, "comments"), ("notes & more", "notes%20%26%20more")):
        for title in ("one", "edited"):
            await feed.publish("a", entry(title), node=node)
            assert (await atom_of(feed, "a", node))["id"] == f"xmpp:feeds.example.org?;node={quoted};item=a"
    await feed.publish("b", FULL_ENTRY)
    await feed.publish("b", entry("edited"))
    assert (await atom_of(feed, "b"))["id"] == "tag:example.org,2026:1"
    await feed.retract("b")
    await feed.publish("b", entry("restored"))
    assert (await atom_of(feed, "b"))["id"] == "tag:example.org,2026:1"


@pytest.mark.parametrize(
    ("date", "valid"),
    [
        ("2026-01-01T02:00:00+02:00", "2026-01-01T02:00:00+02:00"),
        (" 2026-01-01T00:00:00Z ", " 2026-01-01T00:00:00Z "),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "2026-01-01T00:00:00Z"),
        ("2026-01-01 10:00:00", "2026-01-01T10:00:00Z"),
        ("yesterday", ""),
        ("", ""),
        ("2026-02-30T00:00:00Z", ""),
        ("31 Dec 9999 23:00:00 -0500", ""),
        ("<b xmlns='urn:x'>2026</b>", ""),
    ],
)
async def test_invalid_dates_are_replaced_by_valid_ones(feed: World, date: str, valid: str) -> None:
    """RFC 4287 3.3: a readable date is rewritten, an unreadable one becomes the time of creation or of this change.

    The publisher's text stays, for readers that show it.
    """

    def dated(title: str) -> str:
        head = f"<entry xmlns='{ATOM_NS}'><id>tag:x,1</id><title>{title}</title>"
        return f"{head}<updated>{date}</updated><published>{date}</published></entry>"

    await feed.publish("a", dated("first"))
    first = await atom_of(feed, "a")
    feed.clock.move(60)
    await feed.publish("a", dated("second"))
    second = await atom_of(feed, "a")

    assert list(first) == list(second) == ["id", "title", "updated", "published"]
    assert (first["published"], first["updated"]) == (valid or "2011-05-09T12:00:00Z",) * 2
    assert second["published"] == first["published"]
    assert second["updated"] == (valid or "2011-05-09T12:01:00Z")
    originals = etree.fromstring(await payload_of(feed, "a")).xpath(
        ".//@*[namespace-uri()=$own and local-name()='original']", own=OWN_NS
    )
    assert originals == ([] if valid == date or not date else [re.sub("<.*?>", "", date)] * 2)


# The same payload again.


SAME = {
    "complete": FULL_ENTRY,
    "lacks all": f"<entry xmlns='{ATOM_NS}'/>",
    "invalid dates": FULL_ENTRY.replace("2026-01-01T00:00:00Z", "now"),
    "deletion mark that is not set": FULL_ENTRY.replace(
        "<author>", "<s:sync xmlns:s='http://feedsync.org/2007/feedsync' deleted='false'/><author>"
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("kind", ["feed", "generic"])
async def test_identical_publish_is_no_change(world: World, kind: str, name: str) -> None:
    """[TOP-035] The item stays in its place and nothing is pushed."""
    await world.create(kind=kind, publish_model="open")
    await world.publish("a", SAME[name])
    await world.publish("b")
    world.clock.move(60)
    await world.subscribe(BOB, FEED)
    before = (await world.pull(FEED)).items

    # Written in another way; canonical form is the same.
    await world.publish("a", SAME[name].replace("<title>", "<title >"))

    assert await world.told() == ""
    assert (await world.pull(FEED)).items == before


async def test_publish_that_differs_in_anything_is_a_change(feed: World) -> None:
    """Another payload, another publisher, a deleted item."""
    await feed.affiliate(ALICE, "publisher")
    await feed.subscribe(BOB, MODIFIED)
    spaced = FULL_ENTRY.replace("text", "text ")
    for actor, payload in ((OWNER, FULL_ENTRY), (OWNER, spaced), (ALICE, spaced)):
        await feed.publish("a", payload, actor=actor)
        assert await feed.told() == "+a"
    await feed.retract("a")
    assert await feed.told() == "-a"
    await feed.publish("a", spaced, actor=ALICE)
    assert await feed.told() == "+a"

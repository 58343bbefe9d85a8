"""The chain of pushes of a view: what is told, in which order, with which cursors (Smart Feeds, Push Interface)."""

from typing import Any

import pytest
from lxml import etree

from smartfeeds.core.times import parse_t
from support.golden import GOLDEN
from support.world import (
    ALICE,
    BOB,
    CREATED,
    FEED,
    MODIFIED,
    SERVICE,
    T0_US,
    Event,
    World,
    bare,
    entry,
)

CHAIN = GOLDEN["push_chain_modified_order"]


def check_chain(events: list[Event], previous: str | None = None) -> None:
    """Each event follows the one before it."""
    for event in events:
        assert event.previous == previous
        previous = event.last


async def play_golden(world: World, event: dict[str, Any]) -> None:
    """Makes the feed what a row of the golden chain says it is."""
    items, (newest_id, newest_t) = event["items"], event["feed"][-1]
    assert newest_id == items[-1]
    time_us = parse_t(newest_t) or 0
    if len(items) > 1:
        await world.put(*[(item_id, time_us) for item_id in items])
        world.clock.now_us = time_us
        world.dispatcher.wake([1])
    elif "tombstone" in event["event"]:
        await world.retract(items[0])
    else:
        world.clock.now_us = time_us
        await world.publish(items[0])


async def test_golden_chain_has_its_headers(feed: World) -> None:
    """[SF-037] [SF-042] [SF-044] [SF-099] [xep-map 162] [xep-map 163] [xep-map 170] [xep-map 173] [xep-map 174]"""
    await feed.subscribe(ALICE, MODIFIED)
    for row, shim in zip(CHAIN, GOLDEN["shim"], strict=True):
        await play_golden(feed, row)
        events = await feed.events()

        assert [event.item_id for event in events] == row["items"]
        assert events[0].previous == row["PreviousCursor"]
        assert events[-1].last == row["LastCursor"]
        assert {event.total for event in events} == {row["TotalItems"]}
        check_chain(events, row["PreviousCursor"])
        if len(events) == 1:
            headers = etree.tostring(events[0].xml[-1], method="c14n")
            assert headers == etree.tostring(etree.fromstring(shim["xml"]), method="c14n")


async def test_golden_push_is_a_headline_with_one_item_and_headers_behind(feed: World) -> None:
    """[SF-100] [xep-map 164] [xep-map 165] [xep-map 166] [xep-map 169] [xep-map 171]"""
    golden = etree.fromstring(GOLDEN["xmpp"]["push"])
    await feed.subscribe("alice@example.net/1", "comments?order=modified", service="article_1@feeds.example")
    await feed.publish("a")
    feed.clock.move(1)
    await feed.publish("b")
    feed.clock.move(0.5)
    await feed.events()
    await feed.publish("a", entry(author="alice", content="edited"))
    (event,) = await feed.events()

    def bones(xml: etree._Element) -> list[tuple[str, dict[str, str]]]:
        return [
            (str(one.tag), {name: value for name, value in one.attrib.items() if name != "publisher"})
            for one in xml.iter()
            if etree.QName(one).namespace != "http://www.w3.org/2005/Atom"
        ]

    assert event.xml.attrib.pop("id") != ""
    assert bones(event.xml) == bones(golden)
    assert [header.text for header in event.xml[-1]] == [header.text for header in golden[-1]]


async def test_chain_of_every_view_holds_and_its_cursors_pull_what_followed(feed: World) -> None:
    """[SF-009] [SF-037] [SF-039] [SF-042] [SF-043] [SF-044] [xep-map 172] [xep-map 175] [xep-map 176] [xep-map 177]"""
    views = (FEED, MODIFIED, CREATED, f"{FEED}?q=odd", f"{FEED}?kind=new&order=created")
    for view in views:
        await feed.subscribe(ALICE, view)
    told: dict[str, list[Event]] = {view: [] for view in views}
    for number in range(14):
        item_id = f"i{number % 7}"
        await feed.publish(item_id, title=f"{'odd' if number % 3 else 'even'} {number}")
        if number % 4 == 3:
            await feed.settle()
            await feed.retract(item_id)
        feed.clock.move(0.1)
        for event in await feed.events():
            told[event.node].append(event)
            page = await feed.pull(event.node, before="", max=1)
            if number % 4 != 3:
                assert (event.total, event.last) == (page.count, bare(page.last))
    for view in views:
        check_chain(told[view])
        assert len(told[view]) > 3
        for event in told[view]:
            if event.previous:
                since = await feed.pull(view, after=event.previous)
                assert since == await feed.pull(view, after=f"cursor:{event.previous}")
                assert set(since.ids.split()) <= {one.item_id for one in told[view]}


async def test_chain_pushed_at_once_or_late_says_the_same(feed: World) -> None:
    """[SF-039] [xep-map 177]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish_all("a b c d e")
    at_once = await feed.events()
    await feed.cut()
    await feed.publish_all("f g h")
    await feed.start()
    late = await feed.events()

    check_chain([*at_once, *late])
    assert " ".join(event.short for event in late) == "+f +g +h"


async def test_created_order_subscribers_hear_of_new_items_only(feed: World) -> None:
    """[SF-038] [SF-098] [xep-map 162] [xep-map 178]"""
    await feed.subscribe(ALICE, CREATED)
    await feed.publish_all("a b")
    await feed.settle()
    await feed.publish("a", title="edited")
    await feed.retract("b")
    await feed.publish("b", title="back")
    await feed.publish("c")

    events = await feed.events()
    assert " ".join(event.short for event in events) == "+a +b +c"
    check_chain(events)
    assert all((event.last or "").startswith("c") for event in events)
    assert (await feed.pull(CREATED, after=events[1].last or "")).ids == "c"


@pytest.mark.parametrize(
    ("asked", "option", "told"),
    [(True, "1", "-a"), (True, "0", "-a"), (False, "1", "-a"), (False, "0", "")],
)
async def test_retraction_is_told_to_the_bare_view_on_request_and_to_smart_views_always(
    feed: World, asked: bool, option: str, told: str
) -> None:
    """[SF-013] [xep-map 161] [xep-map 162]"""
    await feed.configure(notify_retract=option)
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(BOB, MODIFIED)
    await feed.publish_all("a b")
    await feed.events()
    await feed.retract("a", notify=asked)

    events = await feed.events()
    assert " ".join(event.short for event in events if event.to == ALICE) == told
    (smart,) = [event for event in events if event.to == BOB]
    assert (smart.kind, smart.short, smart.total) == ("item", "-a", 2)
    if told:
        retract = next(event for event in events if event.to == ALICE)
        assert (retract.kind, retract.total) == ("retract", 1)
        assert len(retract.xml[0][0][0]) == 0
    await feed.publish("c")
    events = await feed.events()
    assert {event.to: event.total for event in events} == {ALICE: 2, BOB: 3}


async def test_quick_edits_of_one_item_are_told_as_its_newest_state(feed: World) -> None:
    """[SF-009] [SF-010] The feed is its own outbox: what was overtaken is not told."""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.cut()
    await feed.publish("a", title="one")
    await feed.publish("b")
    await feed.publish("a", title="two")
    await feed.start()

    events = await feed.events()
    assert [(event.short, event.text) for event in events] == [("+b", "b"), ("+a", "two")]
    check_chain(events)


async def test_lost_push_shows_as_a_gap_that_a_pull_fills(feed: World) -> None:
    """[SF-049] [xep-map 175] [xep-map 176]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    (first,) = await feed.events()
    await feed.publish("b")
    await feed.events()
    await feed.publish("c")
    (third,) = await feed.events()

    assert third.previous != first.last
    assert (await feed.pull(MODIFIED, after=first.last or "")).ids == "b c"


async def test_clock_set_back_changes_no_order_and_breaks_no_chain(feed: World) -> None:
    """[SF-039] [xep-map 153] [xep-map 177]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(ALICE, CREATED)
    for item_id, seconds in (("a", -86_400), ("b", 0), ("a", -1), ("c", 200_000), ("d", -5)):
        await feed.publish(item_id)
        await feed.settle()
        feed.clock.move(seconds)
    events = await feed.events()

    for view, expected in ((MODIFIED, "+a +b +a +c +d"), (CREATED, "+a +b +c +d")):
        told = [event for event in events if event.node == view]
        assert " ".join(event.short for event in told) == expected
        check_chain(told)
    assert feed.sender.counters.dropped == 0


async def test_several_views_and_resources_get_an_event_each_under_their_own_name(feed: World) -> None:
    """[xep-map 113] [xep-map 114] [xep-map 115] [xep-map 168]"""
    await feed.subscribe(ALICE, "comments?author=x&order=modified")
    await feed.subscribe(ALICE, "comments?order=modified&author=x")
    for who, node in ((ALICE, FEED), (ALICE, MODIFIED), (ALICE + "/phone", FEED), (BOB, CREATED)):
        await feed.subscribe(who, node)
    await feed.publish("a", author="x")

    events = await feed.events()
    assert sorted((event.to, event.node) for event in events) == [
        (ALICE, FEED),
        (ALICE, "comments?order=modified"),
        (ALICE, "comments?order=modified&author=x"),
        (ALICE + "/phone", FEED),
        (BOB, CREATED),
    ]
    ids = [event.xml.get("id") for event in events]
    assert len(set(ids)) == 5
    assert {event.xml.get("from") for event in events} == {SERVICE}


async def test_new_subscriber_hears_only_what_comes_after(feed: World) -> None:
    """[SF-047] [xep-map 119]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.cut()
    await feed.publish_all("a b")
    await feed.subscribe(BOB, MODIFIED)
    await feed.subscribe(BOB, CREATED)
    await feed.publish("c")
    await feed.start()

    events = await feed.events()
    assert [event.short for event in events if event.to == ALICE] == ["+a", "+b", "+c"]
    assert [event.short for event in events if event.to == BOB] == ["+c", "+c"]
    last = await feed.pull(MODIFIED, index=1, max=1)
    assert {event.previous for event in events if event.to == BOB and event.node == MODIFIED} == {bare(last.last)}
    await feed.unsubscribe(BOB, MODIFIED)
    await feed.publish("d")
    assert await feed.told(BOB) == "+d"


async def test_items_of_one_key_are_all_told_also_where_a_batch_ends_among_them(feed: World) -> None:
    """[SF-107] [xep-map 177] A-38: ties come from elsewhere, but none of them is passed over."""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.put(*[(f"i{number:03}", T0_US) for number in range(150)])
    feed.dispatcher.wake([1])

    events = await feed.events()
    assert [event.item_id for event in events] == [f"i{number:03}" for number in range(150)]
    check_chain(events)

"""Filters: pulled as they are pushed, and never another order (SF-015, SF-016, SF-024)."""

from collections.abc import Callable

import pytest

from smartfeeds.store.base import WriteTx
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, World, bare, entry

ROWS = (
    ("a", {"author": "Ann", "category": "news", "content": "the quick fox"}),
    ("b", {"author": "Bob", "category": "News", "content": "the slow fox", "reply_to": "tag:a"}),
    ("c", {"author": "Ann", "category": "sport", "content": "quick legs"}),
    ("d", {"author": "Cid", "content": "nothing"}),
)
CASES = [
    ("author=ann", "a c"),
    ("author=Ann&author=CID", "a c d"),
    (f"author={OWNER}", "a b c d"),
    ("author=xmpp:" + OWNER, "a b c d"),
    ("author=nobody", ""),
    ("category=news", "a b"),
    ("category=news&category=sport", "a b c"),
    ("category=news&author=ann", "a"),
    ("q=quick", "a c"),
    ("q=QUICK+fox", "a"),
    ("q=fox&q=slow", "b"),
    ("q=qui", ""),
    ("in-reply-to=tag:a", "b"),
    ("kind=new", "a b c d"),
    ("kind=edited", ""),
    ("q=", "a b c d"),
]


async def publish_rows(world: World) -> None:
    for item_id, parts in ROWS:
        await world.publish(item_id, **parts)
        world.clock.move(1)


@pytest.mark.parametrize(("query", "ids"), CASES)
async def test_filter_pulled_in_either_order_and_counted_is_its_items(feed: World, query: str, ids: str) -> None:
    """[SF-015] [SF-016] [SF-024] [SF-095] [xep-map 204]"""
    await publish_rows(feed)
    for order in ("", "&order=created"):
        page = await feed.pull(f"{FEED}?{query}{order}", max=9)
        assert (page.ids, page.count) == (ids, len(ids.split()))
        assert await feed.ids_of(f"{FEED}?{query}{order}") == ids


@pytest.mark.parametrize(("query", "ids"), CASES)
async def test_filter_pushed_is_the_same_items_with_their_count(feed: World, query: str, ids: str) -> None:
    """[SF-015] [SF-099] [xep-map 172] [xep-map 173] [xep-map 174] [xep-map 175]"""
    node = f"{FEED}?{query}"
    await feed.subscribe(ALICE, node)
    previous = None
    for item_id, parts in ROWS:
        await feed.publish(item_id, **parts)
        expected = item_id in ids.split()
        events = await feed.events()
        assert [event.short for event in events] == [f"+{item_id}"] * expected
        if expected:
            page = await feed.pull(node, before="", max=1)
            assert (events[0].total, events[0].last) == (page.count, bare(page.last))
            assert events[0].previous == previous
            previous = events[0].last


@pytest.mark.parametrize("query", ["author=ann", "category=news", "q=fox", "kind=edited&kind=new", "in-reply-to=tag:a"])
async def test_filter_after_edits_and_deletions_is_a_part_of_the_whole_in_its_order(feed: World, query: str) -> None:
    """[SF-016]"""
    await publish_rows(feed)
    await feed.publish("a", author="Ann", category="news", content="fox again")
    await feed.retract("c")
    await feed.publish("b", author="Ann", reply_to="tag:a")
    await feed.publish("d", author="Dan", content="fox")
    whole = (await feed.ids_of(MODIFIED)).split()

    part = (await feed.ids_of(f"{FEED}?{query}")).split()

    assert part == [item_id for item_id in whole if item_id in part]
    assert 0 < len(part) < len(whole)


async def test_filter_by_kind_of_change_follows_what_last_happened(feed: World) -> None:
    """[SF-038]"""
    await feed.publish_all("a b c d")
    await feed.publish("b", title="edited")
    await feed.retract("c")
    await feed.retract("d")
    await feed.publish("d", title="back")

    assert await feed.ids_of(f"{FEED}?kind=new") == "a"
    assert await feed.ids_of(f"{FEED}?kind=edited") == "b d"
    assert await feed.ids_of(f"{FEED}?kind=deleted") == "c"
    assert await feed.ids_of(f"{FEED}?kind=deleted&kind=new") == "a c"


async def test_filter_cursor_means_the_same_place_in_every_view(feed: World) -> None:
    """[SF-026] O and C are taken before any filter (design section 1)."""
    await publish_rows(feed)
    whole = await feed.pull(MODIFIED, max=2)
    part = await feed.pull(f"{FEED}?author=ann", max=1)

    assert (await feed.pull(f"{FEED}?author=ann", after=whole.last or "")).ids == "c"
    assert (await feed.pull(MODIFIED, after=part.last or "")).ids == "b c d"


async def test_filter_item_that_stops_matching_vanishes_and_comes_back(feed: World) -> None:
    """[A-20] [SF-015] A-20."""
    node = f"{FEED}?category=news"
    await feed.subscribe(ALICE, node)
    await feed.publish("a", category="news")
    await feed.publish("a", category="other")
    assert await feed.ids_of(node) == ""
    await feed.publish("a", category="news")

    assert await feed.ids_of(node) == "a"
    assert await feed.told() in ("+a", "+a +a")


async def test_filter_by_the_publisher_sees_deletions_too(feed: World) -> None:
    """[SF-013] The publisher stays on a tombstone."""
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=BOB)
    await feed.publish("b", actor=OWNER)
    await feed.subscribe(ALICE, f"{FEED}?author={BOB}")
    await feed.retract("a", actor=BOB)
    await feed.retract("b")

    assert await feed.told() == "-a"
    assert await feed.ids_of(f"{FEED}?author={BOB}") == "a"


async def test_filter_of_markup_finds_words_of_titles_and_html(feed: World) -> None:
    html = "<content type='html'>&lt;p>Gr&amp;uuml;n &lt;b>bel&lt;/b>ow&lt;/p></content>"
    await feed.publish("a", entry("Straße", inner=html))

    for query, ids in (("strasse", "a"), ("gr%C3%BCn", "a"), ("below", "a"), ("bel", ""), ("p", "")):
        assert await feed.ids_of(f"{FEED}?q={query}") == ids


async def test_filter_over_a_feed_that_is_not_indexed_yet_lets_others_write_in_between(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-016]"""
    monkeypatch.setattr("smartfeeds.service.feeds.INDEXED", 2)
    await publish_rows(feed)
    whole = feed.store.write
    writes = 0

    async def write(work: Callable[[WriteTx], object], *, turn: str) -> object:
        nonlocal writes
        writes += 1
        if writes == 2:
            await whole(lambda tx: tx.set_keys(1, 2**60, 2**60))  # another writer
        return await whole(work, turn=turn)

    monkeypatch.setattr(feed.store, "write", write)

    assert (await feed.pull(f"{FEED}?author=ann")).ids == "a c"
    assert writes == 4


async def test_filter_subscribed_to_with_its_newest_item_finds_it_in_a_feed_that_is_not_indexed_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 116]"""
    monkeypatch.setattr("smartfeeds.service.feeds.INDEXED", 2)
    await world.create(send_last_published_item="on_sub")
    await publish_rows(world)
    answer = await world.subscribe(ALICE, f"{FEED}?author=ann")

    assert answer.last is not None and answer.last.id == "c"
    assert len(await world.store.read(lambda tx: tx.subscriptions(1, 0, 9))) == 1


async def test_filter_by_author_does_not_find_publishers_that_are_not_shown(feed: World) -> None:
    """[SF-015] Neither when pulled nor when pushed nor by its count; authors that entries name, it does."""
    await feed.configure(publish_model="open")
    await feed.subscribe(ALICE, f"{FEED}?author={BOB}")
    await feed.publish("shown", actor=BOB)
    assert await feed.ids_of(f"{FEED}?author={BOB}") == "shown"
    assert await feed.told(ALICE) == "+shown"

    await feed.configure(itemreply="none")
    await feed.publish("secret", actor=BOB)
    await feed.publish("named", author=BOB, actor=ALICE)
    await feed.publish("dropped", actor=BOB)
    await feed.retract("dropped", actor=BOB)
    for view in (f"author={BOB}", f"author={BOB}&kind=new", f"author={BOB}&order=created"):
        page = await feed.pull(f"{FEED}?{view}", max=9)
        assert (page.ids, page.count) == ("named", 1)
    (event,) = await feed.events(ALICE)
    assert (event.short, event.total) == ("+named", 1)

    await feed.configure(itemreply="publisher")
    assert await feed.ids_of(f"{FEED}?author={BOB}") == "shown secret named dropped"

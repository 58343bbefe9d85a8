"""Filters: pulled as they are pushed, and never another order (SF-015, SF-016, SF-024)."""

import pytest
from lxml import etree

from smartfeeds.errors import Condition
from smartfeeds.formats.atom import FEEDSYNC_NS, is_left
from support.commits import watch_commits
from support.sqlite_memory import SqliteMemoryStore
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, World, bare, entry, refusal

ROWS = (
    ("a", {"author": "Ann", "category": "news", "content": "the quick fox", "lang": "en"}),
    ("b", {"author": "Bob", "category": "News", "content": "the slow fox", "reply_to": "tag:a", "lang": "EN-gb"}),
    ("c", {"author": "Ann", "category": "sport", "content": "quick legs", "lang": "de"}),
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
    ("lang=en", "a b"),
    ("lang=en-GB", "b"),
    ("lang=e", ""),
    ("lang=de&lang=en-gb", "b c"),
    ("lang=en&category=news&kind=new&author=ann&q=fox", "a"),
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


@pytest.mark.parametrize(
    "query", ["author=ann", "category=news", "q=fox", "kind=edited&q=fox", "in-reply-to=tag:a", "lang=en"]
)
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


async def test_item_whose_language_changes_leaves_the_view_of_the_former_one(feed: World) -> None:
    """[SF-015] [A-20] Items without a language are in no view of a language."""
    await feed.subscribe(ALICE, f"{FEED}?lang=en")
    pushed = []
    for item_id, lang in (("a", "en-US"), ("b", "fr"), ("c", ""), ("a", "fr"), ("b", "en")):
        await feed.publish(item_id, lang=lang)
        pushed += [event.short for event in await feed.events()]

    assert (await feed.pull(f"{FEED}?lang=en")).short == "~a +b"
    assert (await feed.pull(f"{FEED}?lang=fr")).short == "+a ~b"
    assert pushed == ["+a", "~a", "+b"]


async def test_filter_by_kind_of_change_follows_what_last_happened(feed: World) -> None:
    """[SF-038]"""
    await feed.publish_all("a b c d")
    await feed.publish("b", title="edited")
    await feed.retract("c")
    await feed.retract("d")
    await feed.publish("d", title="back")

    assert (await feed.pull(f"{FEED}?kind=new")).short == "+a ~b -c ~d"
    assert (await feed.pull(f"{FEED}?kind=edited")).short == "+b +d"
    assert (await feed.pull(f"{FEED}?kind=deleted")).short == "-c ~d"
    assert (await feed.pull(f"{FEED}?kind=deleted&kind=new")).short == "+a ~b -c ~d"


async def test_filter_cursor_means_the_same_place_in_every_view(feed: World) -> None:
    """[SF-026] O and C are taken before any filter (design section 1)."""
    await publish_rows(feed)
    whole = await feed.pull(MODIFIED, max=2)
    part = await feed.pull(f"{FEED}?author=ann", max=1)

    assert (await feed.pull(f"{FEED}?author=ann", after=whole.last or "")).ids == "c"
    assert (await feed.pull(MODIFIED, after=part.last or "")).ids == "b c d"


NEWS = f"{FEED}?category=news"


async def test_filter_item_that_stops_matching_is_pulled_pushed_and_counted_as_left(feed: World) -> None:
    """[A-20] [SF-015] Its content is not for the readers of the view, and it moves to the newest end of it."""
    await feed.subscribe(ALICE, NEWS)
    await feed.publish("a", title="one", category="news")
    await feed.publish("b", category="news")
    assert await feed.told() == "+a +b"
    before = await feed.pull(NEWS, max=9)
    feed.clock.move(1)
    await feed.publish("a", title="secret", category="other")

    page = await feed.pull(NEWS, max=9)
    (event,) = await feed.events()

    assert (page.short, page.count) == ("+b ~a", 2)
    assert (event.short, event.total) == ("~a", 2)
    assert (event.previous, event.last) == (bare(before.last), bare(page.last))
    assert (await feed.pull(NEWS, after=before.last or "")).short == "~a"
    shown = page.items[1]
    assert shown.publisher == "" and b"secret" not in shown.payload and b"other" not in shown.payload
    assert shown.payload in etree.tostring(event.xml, method="c14n", exclusive=True)
    assert (await feed.pull(MODIFIED)).short == "+b +a"


@pytest.mark.parametrize("pulled", [False, True])
async def test_filter_item_that_comes_and_goes_is_told_each_time(feed: World, pulled: bool) -> None:
    """[A-20] [SF-037] Whether or not anybody has pulled in between, and so brought the index forward."""
    await feed.subscribe(ALICE, NEWS)
    await feed.subscribe(BOB, f"{FEED}?q=sun&category=news")
    steps = [("news", "rain", "+a", ""), ("news", "sun", "+a", "+a"), ("other", "sun", "~a", "~a")]
    steps += [("other", "rain", "~a", "~a"), ("news", "rain", "+a", "~a"), ("news", "sun", "+a", "+a")]
    for category, text, *told in steps:
        await feed.publish("a", category=category, content=text)
        if pulled:
            assert (await feed.pull(NEWS)).short == told[0]
        events = await feed.events()
        assert [" ".join(event.short for event in events if event.to == to) for to in (ALICE, BOB)] == told
    await feed.retract("a")
    assert await feed.told() == "-a -a"
    await feed.publish("a", category="other")
    assert await feed.told() == "~a ~a"


async def test_filter_sees_the_deletion_of_an_item_that_was_in_it_and_of_no_other(feed: World) -> None:
    """[A-20] [SF-013] A tombstone has no category, but its item had one."""
    await feed.subscribe(ALICE, NEWS)
    await feed.publish("a", category="news")
    await feed.publish("b", category="other")
    assert await feed.told() == "+a"
    await feed.retract("a")
    await feed.retract("b")

    assert await feed.told() == "-a"
    assert (await feed.pull(NEWS)).short == "-a"
    await feed.publish("a", title="back", category="news")
    assert await feed.told() == "+a"
    assert (await feed.pull(NEWS)).short == "+a"


async def test_filter_in_order_of_creation_shows_what_has_left_at_its_old_place(feed: World) -> None:
    """[A-20] [SF-098] There is no event: in that order nothing has happened."""
    await feed.subscribe(ALICE, f"{NEWS}&order=created")
    await feed.publish("a", category="news")
    await feed.publish("b", category="news")
    assert await feed.told() == "+a +b"
    await feed.publish("a", category="other")

    page = await feed.pull(f"{NEWS}&order=created", max=9)

    assert (page.short, page.count, await feed.told()) == ("~a +b", 2, "")


async def test_filter_pulled_by_id_shows_items_as_they_stand_to_it(feed: World) -> None:
    """[A-20] [SF-015] [xep-map 186] Items that were never in it are not there."""
    await feed.publish_all("a b c")
    for item_id, category in (("a", "news"), ("b", "news"), ("d", "other"), ("a", "other"), ("e", "news")):
        await feed.publish(item_id, title=category, category=category)
    await feed.retract("b")

    page = await feed.pull(NEWS, ids="a b c d e")

    assert page.short == "~a -b +e"
    assert b"other" not in page.items[0].payload
    assert (await feed.pull(MODIFIED, ids="a b c d e")).short == "+a -b +c +d +e"


async def test_filter_with_sync_data_shows_what_has_left_without_any(feed: World) -> None:
    """[A-20] [FS-026] Nobody may merge it as a deletion: what no view shows is not deleted anywhere."""
    for sync, deleted in (("", True), ("&sync=true", False)):
        await feed.publish("a", category="news")
        await feed.publish("a", category="other")
        (item,) = (await feed.pull(NEWS + sync)).items
        root = etree.fromstring(item.payload)
        marks = root.findall(f"{{{FEEDSYNC_NS}}}sync")
        assert item.left and is_left(root)
        assert [dict(mark.attrib) for mark in marks] == [{"deleted": "true"}] * deleted


async def test_entry_marked_as_left_is_refused(feed: World) -> None:
    """[A-20] Followers would drop an item that is there, and a copy of a view would delete what it left out."""
    await feed.publish("a", category="news")
    await feed.publish("a", category="other")
    (item,) = (await feed.pull(NEWS)).items

    assert await refusal(feed.publish("a", item.payload.decode())) is Condition.INVALID_PAYLOAD
    mark = '<left xmlns="urn:smartfeeds:0"/>'
    assert await refusal(feed.publish("b", entry("title", inner=mark))) is Condition.INVALID_PAYLOAD
    assert (await feed.pull(MODIFIED)).short == "+a"


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
    commits: list[None] = []

    def write_as_another() -> None:
        commits.append(None)
        if len(commits) == 2:
            assert isinstance(feed.store, SqliteMemoryStore)
            feed.store.commit(lambda tx: tx.set_keys(1, 2**60, 2**60))

    watch_commits(monkeypatch, write_as_another)

    assert (await feed.pull(f"{FEED}?author=ann")).ids == "a c"
    assert len(commits) == 3


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


async def test_filter_by_an_id_finds_the_answers_to_its_addresses(feed: World) -> None:
    """[SF-015] In pulls, pushes and after an edit that answers nothing any more."""
    node = f"{FEED}?in-reply-to=A%201"
    await feed.subscribe(ALICE, node)
    references = {
        "id": "A 1",
        "xmpp": "xmpp:feeds.example?;node=notes;item=A%201",
        "foreign": "xmpp:other.example?;node=other;item=A%201",
        "page": "https://feeds.example/base/entries/notes/A%201?x=1#y",
        "urn": "urn:x-smartfeeds:A%201",
    }
    for number, other in enumerate(
        ("A 2", "xmpp:feeds.example?;node=A%201", "https://x.example/A%201", "https://x.example/entries/A%201", "%FF")
    ):
        await feed.publish(f"other-{number}", reply_to=other)
    assert await feed.events() == []
    for item_id, reference in references.items():
        await feed.publish(item_id, reply_to=reference)
        assert [event.short for event in await feed.events()] == [f"+{item_id}"]
    assert await feed.ids_of(node) == "id xmpp foreign page urn"
    assert await feed.ids_of(f"{FEED}?in-reply-to=urn:x-smartfeeds:A%25201") == "urn"
    await feed.publish("page")
    assert [event.short for event in await feed.events()] == ["~page"]

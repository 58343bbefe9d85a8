"""Documents into nodes: ids and dates kept, the unchanged left alone (design section 1, `T`)."""

from dataclasses import replace
from functools import partial
from typing import Any

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import IndexState, NodeKind
from smartfeeds.core.options import MAX_TEXT
from smartfeeds.errors import Condition
from smartfeeds.formats.atom import id_and_updated
from smartfeeds.formats.feed_details import FeedDetails, load_details
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.service.feed_pages import version_of
from smartfeeds.service.importing import ImportCounts, import_document, import_items, index_import
from support.world import ALICE, CREATED, FEED, MODIFIED, OWNER, SERVICE, T0_US, S, World, draft, entry, jid, refusal

DAY_US = 86_400 * S


def item(item_id: str, days_ago: float | None = None, title: str = "", *, deleted: bool = False) -> ImportedItem:
    published_us = None if days_ago is None else T0_US - int(days_ago * DAY_US)
    return ImportedItem(item_id, published_us, None, draft(entry(title or item_id)).payload, deleted)


async def bring(world: World, *items: ImportedItem) -> ImportCounts:
    return await import_document(world.service, FEED, FeedDocument("Atom", title="News", items=items), jid(OWNER))


async def created(world: World) -> dict[str, int]:
    """Days before now that each item counts as created."""
    return {one.id: (T0_US - one.created_us) // DAY_US for one in (await world.pull(CREATED)).items}


async def test_import_into_a_new_node_keeps_titles_ids_and_dates_oldest_first(world: World) -> None:
    """[SF-030] [SF-104] A-04."""
    done = await bring(world, item("c", 1), item("b", 5), item("a", 9))

    assert done == ImportCounts(added=3)
    assert await created(world) == {"a": 9, "b": 5, "c": 1}
    assert await world.ids_of(CREATED) == await world.ids_of(MODIFIED) == "a b c"
    assert (await world.node()).options.stored["title"] == ("News",)


async def test_import_of_items_without_a_date_leaves_the_dates_of_the_others(world: World) -> None:
    """[SF-104] A-04: an undated item would else get the time of the import, and all behind it the keys after that."""
    await bring(world, item("new"), item("d", 1), item("middle"), item("b", 5), item("oldest"))

    found = {one.id: one.created_us for one in (await world.pull(CREATED)).items}
    assert list(found) == ["oldest", "b", "middle", "d", "new"]
    assert (found["b"], found["d"]) == (T0_US - 5 * DAY_US, T0_US - DAY_US)
    assert (found["oldest"], found["middle"]) == (found["b"] - 1, found["b"] + 1)
    assert found["new"] >= T0_US


async def test_import_of_an_old_item_behind_newer_ones_becomes_the_next_key(feed: World) -> None:
    """[SF-026] A-04: nothing is ever inserted behind a cursor."""
    await bring(feed, item("b", 2))
    last = (await feed.pull(CREATED)).items[0].created_us
    cursor = (await feed.pull(CREATED, before="", max=1)).last or ""
    await bring(feed, item("a", 9), item("z", -9))

    assert await feed.ids_of(CREATED) == "b a z"
    a, z = (await feed.pull(CREATED, after=cursor)).items
    assert (a.id, a.created_us, z.id, z.created_us) == ("a", last + 1, "z", z.modified_us)


async def test_import_again_changes_nothing_and_later_only_what_changed(feed: World) -> None:
    await feed.subscribe(ALICE, MODIFIED)
    await bring(feed, item("n"), item("b", 2), item("a", 3))
    assert await feed.told() == "+a +b +n"
    assert await bring(feed, item("n"), item("b", 2), item("a", 3)) == ImportCounts(unchanged=3)
    assert await feed.told() == ""
    done = await bring(feed, item("n"), item("b", 2, deleted=True), item("a", 3, "new title"), item("x", deleted=True))

    assert done == ImportCounts(changed=1, deleted=1, unchanged=2)
    assert sorted((await feed.told()).split()) == ["+a", "-b"]
    assert await bring(feed, item("b", 2, deleted=True)) == ImportCounts(unchanged=1)
    assert (await created(feed))["a"] == 3


async def test_import_skips_what_the_node_cannot_hold_and_says_so(feed: World) -> None:
    await feed.configure(max_payload_size="400")
    done = await bring(feed, item("a", 1), item("b", 1, "x" * 400), item("i" * 1_024, 1))

    assert done.added == 1 and {item_id for item_id, _ in done.skipped} == {"b", "i" * 80}
    assert await feed.ids_of(MODIFIED) == "a"


async def test_import_in_several_chunks_tells_how_far_it_is(world: World) -> None:
    counts: list[int] = []
    items = tuple(item(f"i{number}", 200 - number) for number in range(130))
    await import_document(world.service, FEED, FeedDocument("Atom", items=items), jid(OWNER), on_progress=counts.append)

    assert sum(counts) == 130 and len(counts) == 3
    assert await world.ids_of(CREATED) == " ".join(one.id for one in items)


async def test_import_leaves_no_backlog_of_the_filter_index(world: World) -> None:
    """The first filtered pull after a large import does not wait for its index, if somebody has read such a view."""
    await bring(world, *(item(str(number), 1 + number) for number in range(150)))
    node = await world.node()
    await index_import(world.service, FEED)
    assert await world.store.read(lambda tx: tx.index_state(node.node_no) is IndexState.UNREAD)
    await world.store.write(lambda tx: tx.begin_index(node.node_no))
    assert not await world.store.read(lambda tx: tx.index_state(node.node_no) is IndexState.CURRENT)
    await index_import(world.service, FEED)
    assert await world.store.read(lambda tx: tx.index_state(node.node_no) is IndexState.CURRENT)


async def test_import_into_a_node_that_goes_away_is_refused(world: World) -> None:
    work = partial(import_items, name=FEED, actor=jid(OWNER), items=[item("a")])

    assert await refusal(world.service.write(work)) is Condition.ITEM_NOT_FOUND


async def test_import_makes_a_feed_with_as_much_of_long_texts_as_a_node_keeps(world: World) -> None:
    world.set_policy(default_kind=NodeKind.GENERIC)
    document = FeedDocument("RSS", title="t" * 3_000, description="d" * 3_000, items=(item("a", 1),))

    done = await import_document(world.service, FEED, document, jid(OWNER))
    assert (done.added, done.notes) == (
        1,
        tuple(
            f"the {name} of the feed has 3000 characters, and the first 2000 were kept"
            for name in ("title", "description")
        ),
    )
    made = await world.node()
    assert made.kind is NodeKind.FEED
    assert [len(made.options.stored[name][0]) for name in ("title", "description")] == [MAX_TEXT, MAX_TEXT]


def of_feed(title: str, link: str, **parts: Any) -> FeedDocument:
    return FeedDocument("RSS", title=title, link=link, channel=Channel(**parts))


async def details(world: World) -> FeedDetails:
    return load_details((await world.node()).options.details)


async def test_import_gives_an_existing_node_the_feed_data_that_it_lacks(feed: World) -> None:
    """The node was made without any; what its owner wrote stays, and the import reports it."""
    await feed.configure(title="Mine")
    version = version_of(await feed.node())
    document = of_feed("Theirs", "http://e.example/", language="de", icon="http://e.example/i.png")

    done = await import_document(feed.service, FEED, document, jid(OWNER))

    node = await feed.node()
    assert (node.options.title, node.options.language) == ("Mine", "de")
    assert await details(feed) == FeedDetails("http://e.example/", document.channel or Channel())
    assert done.notes == ("the node has its own title: that of the document was left out",)
    assert version_of(node) != version  # pages of the node are made anew


async def test_import_leaves_the_feed_data_that_a_node_has(world: World) -> None:
    first = of_feed("News", "http://e.example/", language="de", published_us=S, changed_us=S)
    await import_document(world.service, FEED, first, jid(OWNER))
    node = await world.node()

    dated = replace(first, channel=Channel(language="de", published_us=2 * S, changed_us=2 * S))
    assert await import_document(world.service, FEED, dated, jid(OWNER)) == ImportCounts()
    moved = of_feed("News", "http://new.example/", language="en")
    (note,) = (await import_document(world.service, FEED, moved, jid(OWNER))).notes
    assert note == (
        "the node has its own language, page, pictures and other feed data: that of the document was left out"
    )
    assert await world.node() == node


async def test_import_without_a_valid_language_leaves_the_language_of_the_node_empty(world: World) -> None:
    """The node would refuse the text, and the items of the document would be lost with it."""
    await import_document(world.service, FEED, of_feed("News", "http://e.example/", language="de-DE-1"), jid(OWNER))

    assert ((await world.node()).options.title, (await world.node()).options.language) == ("News", "")


async def test_import_into_a_generic_node_is_refused(world: World) -> None:
    await world.create(kind="generic")

    assert await refusal(bring(world, item("a", 1))) is Condition.NOT_ALLOWED
    assert (await world.node()).total == 0


async def test_import_derives_an_atom_id_of_service_and_node(world: World) -> None:
    """[SF-092] [SF-071] A guid that is no URI is unique in its feed alone; the id of an item never changes."""
    document = read_document(b"<rss><channel><item><guid>1</guid><title>A</title></item></channel></rss>")
    for name in ("a", "b"):
        await import_document(world.service, name, document, jid(OWNER))
        (stored,) = (await world.pull(name)).items
        assert id_and_updated(stored.payload)[0] == f"xmpp:{SERVICE}?;node={name};item=1"
    assert await import_document(world.service, "b", document, jid(OWNER)) == ImportCounts(unchanged=1)

    older = replace(document.items[0], payload=draft(entry("A", inner="<id>urn:x:older</id>")).payload)
    await import_document(world.service, "c", replace(document, items=(older,)), jid(OWNER))
    await import_document(world.service, "c", document, jid(OWNER))
    (stored,) = (await world.pull("c")).items
    assert id_and_updated(stored.payload)[0] == "urn:x:older"


async def test_import_leaves_sync_data_out(world: World) -> None:
    """[FS-022] Beside the history that the import makes, what the document says of another one would contradict it."""
    sync = "<sync xmlns='http://feedsync.org/2007/feedsync' id='x' updates='3'><history sequence='3' by='b'/></sync>"
    shared = ImportedItem("a", None, None, draft(entry("a", inner=sync)).payload)

    assert await bring(world, shared) == ImportCounts(added=1)
    assert b"sync" not in (await world.pull(MODIFIED)).items[0].payload
    assert await bring(world, shared) == ImportCounts(unchanged=1)

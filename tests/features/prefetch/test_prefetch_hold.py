"""Items that are held back until their enclosures have arrived (RSS-035, RSS-036)."""

from dataclasses import replace

import pytest
from aiohttp import web

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import paused, resumed
from smartfeeds.features.polling.source import Source, SourceSettings, held_reader, new_source
from smartfeeds.features.polling.sources import remove_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.held_items import MAX_HELD_US
from support.prefetching import FEED, NODE, podcast, running_prefetching, sent
from support.world import OWNER

DATA = b"sound" * 100
VIEWS = (NODE, f"{NODE}?order=modified", f"{NODE}?order=created", f"{NODE}?kind=new")


@pytest.fixture
async def loading(world, site, tmp_path):
    async with running_prefetching(world, site, tmp_path / "enclosures") as made:
        yield made


@pytest.fixture
def held(loading, site):
    """Adds a source that holds items back, and polls it at noon, outside of the window."""
    site.pages["/a.mp3"] = site.pages["/b.mp3"] = sent(DATA)
    loading.at("12:00")

    async def add(*episodes, **options):
        return await loading.add(*episodes, prefetch_hold=True, **options)

    return add


async def shown(loading, node=NODE):
    """The titles that a view shows, in its order, and how many items it counts."""
    page = await loading.world.pull(node, actor=OWNER, max=99)
    titles = [item.payload.partition(b"<title>")[2].partition(b"<")[0].decode() for item in page.items]
    assert page.count == len(titles)
    return " ".join(titles)


async def waiting(loading, source):
    """The number of held items."""
    return len(await loading.world.store.read(lambda tx: tx.documents(held_reader(source.source_no))))


async def change(loading, source: Source, make):
    """Changes a source as an operator does."""

    def work(tx, _context):
        row = source_rows.source(tx, source.source_no)
        source_rows.put(tx, make(row))

    await loading.world.service.write(work)


async def test_item_appears_in_no_view_before_its_enclosure(loading, held):
    """[RSS-035] [RSS-036] Its keys are those of the moment of its release: followers that have read on get it."""
    await loading.world.create(NODE)
    await held("a")
    assert [await shown(loading, view) for view in VIEWS] == [""] * 4
    await loading.world.publish("mine", node=NODE, actor=OWNER)
    cursor = (await loading.world.pull(f"{NODE}?order=modified", actor=OWNER, max=9)).last
    assert cursor

    await loading.look("02:30", 1)
    following = await loading.world.pull(f"{NODE}?order=modified", actor=OWNER, max=9, after=cursor)
    assert [item.id for item in following.items] == [(await loading.item_ids())["a"]]
    (item,) = following.items
    assert item.modified_us >= loading.world.clock.now_us - US_PER_S
    assert await loading.states() == {"a.mp3": "arrived"}


async def test_others_are_not_held_back(loading, held, site):
    """[RSS-034] An enclosure that the rules refuse is never loaded, so nothing waits for it."""
    await held("a", ("refused", "/x.pdf"), media_type="audio/mpeg", length="2000000")
    assert await shown(loading) == "refused a"
    site.pages[FEED] = podcast("b", ("none", "ftp://x.example/none"))
    (source,) = await loading.world.store.read(lambda tx: source_rows.sources(tx, 0, NO_LIMIT))
    await loading.poll(source)
    assert await shown(loading) == "refused a none"
    await loading.look("02:30", 1)
    assert await shown(loading) == "refused a none b"


async def test_item_waits_for_all_its_enclosures(loading, held, site):
    """[RSS-036] [A-127]"""
    two = podcast("a").replace(b"</entry>", b'<link rel="enclosure" href="/b.mp3" type="audio/mpeg"/></entry>')
    site.pages["/b.mp3"] = web.Response(status=503)
    source = await held("a")
    site.pages[FEED] = two
    await loading.poll(source)
    await loading.look("02:30", 1)
    assert (await loading.states(), await shown(loading)) == ({"a.mp3": "arrived", "b.mp3": "waiting"}, "")
    site.pages["/b.mp3"] = sent(DATA)
    await loading.look("02:30", 2)
    assert await shown(loading) == "a"


async def test_end_of_a_load_waits_for_a_poll_of_another_process(loading, held, monkeypatch):
    """A poll locks the node before it looks at the enclosures, so the end of a load does the same [PG-007]."""
    await held("a")
    steps = []
    transaction = await loading.world.store.write(type)

    def noting(name, method):
        def noted(tx, *arguments):
            steps.append(name)
            return method(tx, *arguments)

        return noted

    for owner, name in ((transaction, "lock"), (enclosure_rows, "put")):
        monkeypatch.setattr(owner, name, noting(name, getattr(owner, name)))
    await loading.look("02:30", 1)
    assert await shown(loading) == "a"
    last = len(steps) - steps[::-1].index("put") - 1
    assert steps[last - 1] == "lock"


async def test_item_appears_when_its_enclosure_is_given_up(loading, held, site):
    """[PRE-025] [RSS-036] At once for 404, after three windows for other failures."""
    site.pages["/a.mp3"] = web.Response(status=404)
    site.pages["/b.mp3"] = web.Response(status=500)
    await held("a", "b")
    await loading.look("02:30", 1)
    assert await shown(loading) == "a"
    await loading.look("02:30", 2)
    assert await shown(loading) == "a"
    await loading.look("02:30", 3)
    assert await shown(loading) == "a b"
    assert await loading.states() == {"a.mp3": "given-up", "b.mp3": "given-up"}


async def test_item_appears_after_a_week_at_the_latest(loading, held):
    """[RSS-036] There may never be room for its file, which is no failure."""
    source = await held("a")
    loading.free = 0.0
    loading.world.clock.now_us += MAX_HELD_US - 1
    await loading.poll(source)
    assert await shown(loading) == ""
    loading.world.clock.now_us += 1
    await loading.poll(source)
    assert (await shown(loading), await waiting(loading, source)) == ("a", 0)


async def test_edit_of_a_held_item_replaces_it(loading, held, site):
    """[RSS-036] [SRC-070] It appears once, in its last version, and the time of an edit is no new start."""
    source = await held("a")
    for text in (b"first edit", b"second edit"):
        site.pages[FEED] = podcast("a").replace(b"<title>a</title>", b"<title>" + text + b"</title>")
        await loading.poll(source)
        await loading.poll(source)
        assert (await shown(loading), await waiting(loading, source)) == ("", 1)
    await loading.look("02:30", 1)
    assert await shown(loading) == "second edit"
    (item,) = (await loading.world.pull(NODE, actor=OWNER)).items
    assert item.revision == 1


async def test_edit_without_the_enclosure_appears_at_once(loading, held, site):
    """[RSS-036]"""
    source = await held("a")
    site.pages[FEED] = podcast(("a", "ftp://x.example/a"))
    await loading.poll(source)
    assert (await shown(loading), await waiting(loading, source)) == ("a", 0)


async def test_edit_of_a_published_item_is_not_held_back(loading, held, site):
    """[RSS-036] Readers have the item already."""
    source = await held("a")
    await loading.look("02:30", 1)
    site.pages[FEED] = podcast(("a", "/b.mp3"))
    await loading.poll(source)
    assert (await shown(loading), await waiting(loading, source)) == ("a", 0)
    assert b"/b.mp3" in (await loading.world.pull(NODE, actor=OWNER)).items[0].payload


async def test_item_that_is_retracted_while_it_is_held_never_appears(loading, held, site):
    """[RSS-036] [SRC-067] Not even as a tombstone, and its file is not kept."""
    source = await held("a")
    names = b'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
    gone = b"<at:deleted-entry " + names + b' ref="urn:x:a" when="2026-01-01T00:00:00Z"/>'
    site.pages[FEED] = podcast().replace(b"</feed>", gone + b"</feed>")
    await loading.poll(source)
    assert await waiting(loading, source) == 0
    await loading.look("02:30", 1)
    assert [await shown(loading, view) for view in VIEWS] == [""] * 4


async def test_held_items_outlive_the_process_and_unchanged_documents(loading, held):
    """[PRE-027] [RSS-036]"""
    source = await held("a", "b")
    await loading.poll(source)
    loading.prefetcher = loading.new_prefetcher()
    await loading.prefetcher.tidy()
    assert await waiting(loading, source) == 2
    await loading.look("02:30", 1)
    assert (await shown(loading), await waiting(loading, source)) == ("a b", 0)


@pytest.mark.parametrize("setting", ["prefetch_hold", "prefetch"])
async def test_items_appear_when_the_setting_is_switched_off(loading, held, setting):
    """[RSS-036] With the next poll, which `source set` makes due."""
    source = await held("a")
    await change(loading, source, lambda row: replace(row, settings=replace(row.settings, **{setting: False})))
    await loading.poll(source)
    assert (await shown(loading), await waiting(loading, source)) == ("a", 0)


async def test_items_appear_when_nothing_is_loaded_any_more(loading, held):
    """[PRE-036] [RSS-036] The operator has removed the folder."""
    source = await held("a")
    loading.world.service.policy = replace(loading.world.service.policy, of_features=())
    await loading.poll(source)
    assert await shown(loading) == "a"


async def test_paused_source_publishes_nothing(loading, held):
    """[SRC-047] [RSS-036] Its files arrive; the next poll publishes the items."""
    source = await held("a")
    await change(loading, source, lambda row: paused(row, "somebody", loading.world.clock.now_us))
    await loading.look("02:30", 1)
    assert (await loading.states(), await shown(loading)) == ({"a.mp3": "arrived"}, "")
    await change(loading, source, lambda row: resumed(row, loading.world.clock.now_us))
    await loading.poll(source)
    assert await shown(loading) == "a"


async def test_held_items_go_with_their_source(loading, held):
    """[RSS-036]"""
    source = await held("a")
    await loading.world.service.write(lambda tx, context: remove_source(tx, context, source))
    assert await waiting(loading, source) == 0
    await loading.look("02:30", 1)
    assert await shown(loading) == ""


async def test_operator_can_have_the_file_of_a_held_item_now(loading, held):
    """[PRE-008] [RSS-036]"""
    source = await held("a")
    (item_id,) = await loading.world.store.read(lambda tx: list(tx.documents(held_reader(source.source_no))))
    await loading.ask_id(item_id)
    await loading.look("13:00")
    assert await shown(loading) == "a"


def test_hold_needs_prefetch():
    with pytest.raises(ConfigError, match="switch prefetch on"):
        new_source(NODE, "https://a.example/", 0, SourceSettings(prefetch_hold=True))

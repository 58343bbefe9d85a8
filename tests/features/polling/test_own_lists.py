"""Subscription lists that are nodes of this service: which edits of the outline make which sources.

The table has the ways in which a list is held and changed. The rules for a list elsewhere are in
`test_followed_lists.py`; a list here must have the same results.
"""

import asyncio

import pytest

from smartfeeds.core.options import KIND
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.errors import ConfigError
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_http import WebMirrorReader
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import HOUR_S, UNLISTED, paused
from smartfeeds.features.polling.source import Reach, SourceSettings, SourceState, new_source
from smartfeeds.features.polling.sources import add_source, find_source
from smartfeeds.features.polling.subscription_lists import add_list
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.sync_documents.sync_import import DocumentItem, ImportReport, ImportTarget, merge_document
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.service.requests import CreateNode
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.sync_outline import pieces_of, read_sync_outline
from support.polling import NODE, atom, running_polling
from support.world import ALICE, BOB, SERVICE, entry, jid

LIST = "blogs"
OWN_URL = "http://feeds.example.org:8280"
LIST_SETTINGS = SourceSettings(is_list=True)


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site, own_url=OWN_URL) as running:
        for name in "abcd":
            site.pages[f"/{name}"] = atom(name)
        yield running


def line(site, name, version=1, inner="", *, url="", by="peer", deleted=False, conflict=""):
    """An outline with sync data of SSE. A name of one letter is a feed, another one is a folder."""
    xml_url = url or (site.url(f"/{name}") if len(name) == 1 else "")
    updates = "".join(f"<sx:update by='{by}{one}'/>" for one in range(version - 1, 0, -1))
    marks = " deleted='true'" if deleted else ""
    marks += f" xmlns:sx='{SSE_NS}' id='{name}' version='{version}'"
    feed = f' type="rss" xmlUrl="{xml_url}"' if xml_url else ""
    history = f"<sx:history by='{by}{version}'>{updates}</sx:history>{conflict}"
    return f'<outline text="{name}"{feed}><sx:sync{marks}>{history}</sx:sync>{inner}</outline>'


async def bring(world, *lines, node=LIST):
    """Merges outlines into a node, as a mirror and `import --sync` do."""
    outline = read_sync_outline(f"<opml version='2.0'><head/><body>{''.join(lines)}</body></opml>".encode())
    items = [DocumentItem(piece.index, piece.raw, synced=True) for piece in pieces_of(outline)]
    report = ImportReport()
    await merge_document(world.service, ImportTarget(node, jid("owner@example.org")), items, report)
    assert not report.reasons


async def follow(world, text=LIST, node=NODE, settings=LIST_SETTINGS):
    return await world.service.write(lambda tx, context: add_list(tx, context, text, node, settings, OWN_URL))


async def states(world):
    rows = await world.store.read(lambda tx: source_rows.sources(tx, 0, 1_000))
    return {row.first_url.rpartition("/")[2]: row.state.value for row in rows if not row.settings.is_list}


@pytest.mark.parametrize(
    ("before", "after", "followed", "ended"),
    [
        pytest.param([("a",)], [("b",)], "ab", "", id="outline added"),
        pytest.param([("a",), ("b",)], [("b", 2, "", "deleted")], "a", "b", id="outline removed"),
        pytest.param(
            [("a",), ("b", 2, "", "deleted")], [("b", 3)], "ab", "", id="outline restored, removed at the first read"
        ),
        pytest.param([("news", 1, "a"), ("b",)], [("b", 2, "", "into news")], "ab", "", id="moved to another folder"),
        pytest.param([("a",), ("b",)], [("a", 2, "", "renamed")], "ab", "", id="renamed"),
        pytest.param([("a",), ("b",)], [("b", 2, "", "url c")], "ac", "b", id="address changed"),
        pytest.param([("news", 1, "ab"), ("c",)], [("news", 2, "ab", "deleted all")], "c", "ab", id="folder emptied"),
        pytest.param([("news", 1, "ab"), ("c",)], [("news", 2, "", "deleted")], "c", "ab", id="folder removed"),
        pytest.param(
            [("news", 1, "ab"), ("c",)], [("news", 2, "", "deleted"), ("a", 2, "", "to root")], "ac", "b",
            id="folder removed, one feed moved out of it",
        ),
        pytest.param([("news", 1, "a"), ("text",)], [("text", 2)], "a", "", id="outline without an address"),
        pytest.param([("a",), ("b",)], [("b", 2, "", "conflict")], "ab", "", id="conflict, the winner is live"),
        pytest.param(
            [("a",), ("b",)], [("b", 3, "", "deleted conflict")], "a", "b", id="conflict, the winner is a deletion"
        ),
        pytest.param([("a",), ("b",)], [], "ab", "", id="nothing changed"),
        pytest.param(
            [("a",), ("b",)], [("a", 2, "", "deleted"), ("b", 2, "", "deleted")], "ab", "",
            id="everything removed: an empty list ends nothing",
        ),
    ],
)  # fmt: skip
async def test_edit_of_the_outline_changes_the_sources(polling, site, world, before, after, followed, ended):
    """[SRC-083] [SSE-016] [SSE-028] The next look of the poller, seconds later, follows the edit."""
    await bring(world, *(outline(site, *one) for one in before))
    await follow(world)
    await polling.look()
    if after:
        await bring(world, *(outline(site, *one) for one in after))
    await polling.look(5)
    expected = dict.fromkeys(followed, "polled") | dict.fromkeys(ended, "paused")
    assert await states(world) == expected


def outline(site, name, version=1, inside="", what=""):
    """An outline of the table: `inside` are the feeds in a folder, `what` is what was done to it."""
    children = "".join(line(site, one) for one in inside)
    if what == "into news":
        return line(site, "news", 1, line(site, "a") + line(site, name, version))
    if what == "deleted all":
        children = "".join(line(site, one, 2, deleted=True) for one in inside)
    if what in ("conflict", "deleted conflict"):
        conflict = f"<sx:conflicts>{line(site, name, version, by='other', deleted=what == 'conflict')}</sx:conflicts>"
        return line(site, name, version, conflict=conflict, deleted=what != "conflict")
    url = site.url("/c") if what == "url c" else ""
    return line(site, name, version, children, url=url, deleted=what.startswith("deleted"))


async def test_feed_in_two_folders_ends_with_the_second_one(polling, site, world):
    """[SRC-083]"""
    one, two = (line(site, name, url=site.url("/a")) for name in ("one-feed", "same-feed"))
    await bring(world, line(site, "news", 1, one), line(site, "more", 1, two), line(site, "b"))
    await follow(world)
    await polling.look()
    assert await states(world) == {"a": "polled", "b": "polled"}
    await bring(world, line(site, "one-feed", 2, url=site.url("/a"), deleted=True))
    await polling.look(5)
    assert await states(world) == {"a": "polled", "b": "polled"}
    await bring(world, line(site, "same-feed", 2, url=site.url("/a"), deleted=True))
    await polling.look(5)
    assert await states(world) == {"a": "paused", "b": "polled"}


async def test_outline_that_returns_is_polled_again(polling, site, world):
    """[SRC-083] The source is the same one, with its items; a source that a person has paused stays as it is."""
    await bring(world, line(site, "a"), line(site, "b"))
    await follow(world)
    await polling.look()
    [member] = [
        row for row in await world.store.read(lambda tx: source_rows.sources(tx, 0, 9)) if row.url == site.url("/b")
    ]
    await bring(world, line(site, "b", 2, deleted=True))
    await polling.look(5)
    assert (await polling.source(member)).reason == UNLISTED
    await bring(world, line(site, "b", 3))
    await polling.look(5)
    assert (await polling.source(member)).state is SourceState.POLLED
    await world.store.write(lambda tx: source_rows.put(tx, paused(member, "the operator", world.clock())))
    await bring(world, line(site, "c"))
    await polling.look(5)
    assert await states(world) == {"a": "polled", "b": "paused", "c": "polled"}
    assert sorted(await polling.titles()) == ["a", "b", "c"]


async def test_people_edit_the_list_here(polling, site, world):
    """[SRC-083] An entry with a link to a feed is an outline of the list, whoever publishes it."""
    await world.create(LIST, publish_model="open")
    link = '<link rel="related" type="application/rss+xml" href="{}"/>'
    for name in "ab":
        await world.publish(name, entry(name, inner=link.format(site.url(f"/{name}"))), node=LIST, actor=ALICE)
    row = await follow(world)
    await polling.look()
    assert await states(world) == {"a": "polled", "b": "polled"}
    member = (await world.store.read(lambda tx: source_rows.sources_of_list(tx, row.source_no)))[0]
    # The person who edits the list is not the operator.
    assert member.reach is Reach.PUBLIC
    await world.retract("a", node=LIST, actor=ALICE)
    await polling.look(5)
    assert await states(world) == {"a": "paused", "b": "polled"}


@pytest.mark.parametrize(
    "spelling", ["blogs", f"{OWN_URL}/feeds/blogs.opml?sync=true", "xmpp:feeds.example.org?;node=blogs"]
)
async def test_list_is_followed_and_found_in_each_spelling(polling, site, world, spelling):
    """[SRC-082] [SRC-083] A second follow of the same list into the same node is refused in any spelling."""
    await bring(world, line(site, "a"))
    row = await follow(world, spelling)
    assert row.url == xmpp_uri(SERVICE, LIST)
    with pytest.raises(ConfigError, match="already"):
        await follow(world)
    for text in (spelling, LIST, str(row.source_no)):
        assert await world.service.read(lambda tx, context: find_source(tx, context, text, own_url=OWN_URL)) == row  # noqa: B023


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "no subscription list: it has 1 item, none of which is a feed"),
        ("empty", "no subscription list: it has no items"),
        ("generic", "the node generic is no feed"),
        ("missing", "there is no node missing"),
        (f"{OWN_URL}/feeds/missing.opml", "no feed is there"),
        ("xmpp:feeds.example.org?;node=missing", "no feed is there"),
        (f"{OWN_URL}/feeds.opml?sources=true", "no feed is there"),
        (f"{OWN_URL}/feeds/blogs.opml?category=x", "is a view of a feed"),
        ("xmpp:feeds.example.org?;node=blogs%3Fcategory=x", "is a view of a feed"),
        ("xmpp:other.example?;node=blogs", "mirror it"),
    ],
)
async def test_address_here_without_a_list_is_refused_at_once(site, world, text, expected):
    """[SRC-083] The refusal says what was found; nothing is stored that would only fail."""
    await bring(world, line(site, "a"))
    await world.create("plain")
    await world.publish("note", node="plain")
    await world.create("empty")
    await world.service.handle(CreateNode(jid(ALICE), SERVICE, "generic", {KIND: ("generic",)}))
    with pytest.raises(ConfigError, match=expected.replace("?", r"\?")):
        await follow(world, text)
    assert await world.store.read(lambda tx: source_rows.sources(tx, 0, 9)) == []


async def test_list_is_no_node_for_the_entries_of_its_feeds(site, world):
    """[SRC-083] They would be outlines of the list."""
    await bring(world, line(site, "a"))
    with pytest.raises(ConfigError, match="need another node"):
        await follow(world, node=LIST)


async def test_deleted_node_ends_no_source(polling, site, world):
    """[SRC-083] [SRC-043] A node of the same name goes on with the list; the source waits for it without a loop."""
    await bring(world, line(site, "a"), line(site, "b"))
    row = await follow(world)
    await polling.look()
    await world.delete(node=LIST)
    await polling.look(5)
    row = await polling.source(row)
    assert (row.state, row.reason) == (SourceState.SLOWED, f"there is no node {LIST}")
    assert await states(world) == {"a": "polled", "b": "polled"}
    polled_us = row.polled_us
    await polling.look(60)
    assert (await polling.source(row)).polled_us == polled_us

    await bring(world, line(site, "a"))
    await polling.look(5)
    assert (await polling.source(row)).state is SourceState.POLLED
    assert await states(world) == {"a": "polled", "b": "paused"}


async def test_purged_list_ends_no_source(polling, site, world):
    """[SRC-083] An empty list may be a mistake."""
    await bring(world, line(site, "a"))
    row = await follow(world)
    await polling.look()
    await world.purge(node=LIST)
    await polling.look(5)
    row = await polling.source(row)
    assert row.state is SourceState.SLOWED and "no feeds" in row.reason
    assert await states(world) == {"a": "polled"}


@pytest.mark.parametrize(("reader", "state"), [("", "polled"), ("owner@example.org", "polled"), (BOB, "slowed")])
async def test_list_in_a_closed_node_is_read_by_those_who_may(polling, site, world, reader, state):
    """[SRC-083] The operator reads every node; a user who has added the source only what the user may read."""
    await bring(world, line(site, "a"))
    await world.configure(node=LIST, access_model="whitelist")
    source = new_source(NODE, xmpp_uri(SERVICE, LIST), world.clock(), LIST_SETTINGS, owner=reader)
    source = await world.service.write(lambda tx, context: add_source(tx, context, source))
    await polling.look()
    assert (await polling.source(source)).state.value == state
    assert await states(world) == ({"a": "polled"} if state == "polled" else {})


async def test_unchanged_list_is_read_at_its_interval_alone(polling, site, world):
    """[SRC-021] A look without a change reads nothing, and a poll of an unchanged list is an unchanged document."""
    await bring(world, line(site, "a"))
    row = await follow(world)
    await polling.look()
    first_us = (await polling.source(row)).polled_us
    await polling.look(600)
    assert (await polling.source(row)).polled_us == first_us
    row = await polling.poll(row, HOUR_S)
    assert row.state is SourceState.POLLED and row.progress.full_us == first_us


async def test_list_that_was_stored_under_its_web_address_works_after_a_restart(polling, site, world):
    """[SRC-083] Earlier versions accepted it and never read it."""
    await bring(world, line(site, "a"))
    source = new_source(NODE, f"{OWN_URL}/feeds/blogs.opml", world.clock(), LIST_SETTINGS)
    other = paused(new_source("other", source.url, world.clock(), LIST_SETTINGS), "the operator", world.clock())
    row = await world.service.write(lambda tx, context: add_source(tx, context, source))
    stopped = await world.service.write(lambda tx, context: add_source(tx, context, other))
    await polling.look()
    assert (await polling.source(row)).url == (await polling.source(stopped)).url == xmpp_uri(SERVICE, LIST)
    assert (await polling.source(stopped)).due_us is None
    assert await states(world) == {"a": "polled"}


async def test_long_list_with_tombstones(polling, site, world):
    """[SRC-083] More items than one slice of the store has."""
    names = [f"feed-{number}" for number in range(300)]
    await bring(world, *(line(site, name, url=f"https://h.example/{name}", deleted=name > "feed-2") for name in names))
    row = await follow(world)
    await polling.poll(row)
    assert len(await states(world)) == sum(name <= "feed-2" for name in names) > 100


async def test_mirrored_list_is_followed(polling, site, world):
    """[SRC-083] [SSE-002] A peer with files publishes its list; the mirror brings it, and its removals."""
    mirror = make_mirror(node=LIST, address=site.url("/peer.opml"), allow_private=True)
    await world.store.write(lambda tx: stored_mirrors.put(tx, MirrorRow(mirror)))
    tools = SourceTools(world.clock, asyncio.sleep, lambda: 0.0)
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as fetcher:
        state_store = MirrorStateStore(world.service, mirror.name, Direction.IN, MirrorState(), tools)
        reader = WebMirrorReader(mirror, world.service, fetcher, state_store, tools)

        async def publish(*lines):
            site.pages["/peer.opml"] = f"<opml version='2.0'><head/><body>{''.join(lines)}</body></opml>".encode()
            await reader.read()
            await polling.look(5)

        await publish(line(site, "news", 1, line(site, "a")), line(site, "b"))
        await follow(world)
        await polling.look()
        assert await states(world) == {"a": "polled", "b": "polled"}
        await publish(line(site, "news", 2, line(site, "a"), deleted=True), line(site, "b"), line(site, "c"))
        assert await states(world) == {"a": "paused", "b": "polled", "c": "polled"}

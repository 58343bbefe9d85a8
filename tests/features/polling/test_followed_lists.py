"""Subscription lists that are followed: what a poll of a list makes of the sources, over real sockets."""

import pytest

from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling import sources as use_cases
from smartfeeds.features.polling import subscription_lists as source_lists
from smartfeeds.features.polling.polls import DAY_S, HOUR_S, UNLISTED, paused
from smartfeeds.features.polling.source import Reach, SourceState, new_source
from smartfeeds.features.polling.source_lists import read_source_list
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.sync.lexis import SSE_NS
from support.polling import NODE, atom, running_polling, tagged

LIST = "/list.opml"
OWN_URL = "http://feeds.example.org:8280/feeds"


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site, own_url=OWN_URL) as running:
        yield running


def opml(*urls, attributes=""):
    lines = "".join(f'<outline text="x" {attributes} xmlUrl="{url}"/>' for url in urls)
    head = "<head><title>Blogs</title></head>"
    return f'<opml version="2.0">{head}<body><outline text="folder">{lines}</outline></body></opml>'.encode()


async def sources(world):
    rows = await world.store.read(lambda tx: source_rows.sources(tx, 0, 100))
    return {row.first_url: row for row in rows if not row.settings.is_list}


async def states(world):
    return {url.rpartition("/")[2]: row.state for url, row in (await sources(world)).items()}


async def test_new_outline_adds_a_source_and_a_missing_one_pauses_it(polling, site, world):
    """[SRC-083] A changed xmlUrl is a new source. A feed that returns to the list is polled again."""
    for name in "abc":
        site.pages[f"/{name}"] = atom(name)
    site.pages[LIST] = opml(site.url("/a"), site.url("/b"))
    row = await polling.add(LIST, node=NODE, is_list=True, every_s=900)
    await polling.look()
    assert sorted(await polling.titles()) == ["a", "b"]
    assert (await polling.source(row)).progress.title == "Blogs"

    site.pages[LIST] = opml(site.url("/c"), site.url("/a"))
    await polling.poll(row, HOUR_S)
    assert await states(world) == {"a": SourceState.POLLED, "b": SourceState.PAUSED, "c": SourceState.POLLED}
    gone = (await sources(world))[site.url("/b")]
    assert (gone.reason, gone.due_us) == (UNLISTED, None)

    await polling.look()
    site.pages[LIST] = opml(site.url("/b"))
    await polling.poll(row, HOUR_S)
    assert await states(world) == {"a": SourceState.PAUSED, "b": SourceState.POLLED, "c": SourceState.PAUSED}
    await polling.look()
    assert sorted(await polling.titles()) == ["a", "b", "c"]


async def test_list_is_polled_as_a_feed_is(polling, site, world):
    """[SRC-002] [SRC-021] The request is conditional, and a list that is unchanged changes nothing."""
    site.pages[LIST] = tagged(opml(site.url("/a")))
    row = await polling.poll(await polling.add(LIST, node=NODE, is_list=True, every_s=7200))
    assert row.due_us - world.clock() in range(6_400_000_000, 8_000_000_000)
    await polling.poll(row, HOUR_S)
    assert [asked.headers.get("If-None-Match") for asked in site.asked] == [None, '"1"']
    assert await states(world) == {"a": SourceState.POLLED}


async def test_only_sources_of_the_list_are_changed(polling, site, world):
    """[SRC-083] A source that a person has added or paused stays as it is."""
    site.pages[LIST] = opml(site.url("/a"), site.url("/b"))
    mine = await polling.add("/a", node=NODE)
    other = await polling.add("/z", node=NODE)
    row = await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    listed = (await sources(world))[site.url("/b")]
    assert (mine.settings.list_no, listed.settings.list_no) == (0, row.source_no)
    await world.store.write(lambda tx: source_rows.put(tx, paused(listed, "the operator", world.clock())))

    site.pages[LIST] = opml(site.url("/c"), site.url("/b"))
    await polling.poll(row, HOUR_S)
    assert await polling.source(mine) == mine and await polling.source(other) == other
    assert (await polling.source(listed)).reason == "paused by the operator"


@pytest.mark.parametrize("body", [opml(), b"<html/>", b""])
async def test_list_without_feeds_ends_no_source(polling, site, world, body):
    """[SRC-083] [SRC-043] A mistake of its server must not stop everything."""
    site.pages[LIST] = opml(site.url("/a"))
    row = await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    site.pages[LIST] = body
    row = await polling.poll(row, HOUR_S)
    assert row.state is SourceState.SLOWED and row.reason
    assert await states(world) == {"a": SourceState.POLLED}


async def test_author_of_a_list_cannot_choose_a_node(polling, site, world):
    """[SRC-083] [SRC-082] Without --node each feed gets a new node. Feeds of this service are left out."""
    await world.create("127.0.0.1/a")
    address = 'xmlns:sf="urn:x-smartfeeds:opml" sf:xmpp="xmpp:feeds.example.org?;node=mine"'
    urls = [site.url("/a"), site.url("/b"), f"{OWN_URL}/blog.rss", "http://[", "gopher://c.example/"]
    site.pages[LIST] = opml(*urls, attributes=address)
    row = await polling.poll(await polling.add(LIST, node="", is_list=True))
    assert [(source.node, source.url) for source in (await sources(world)).values()] == [
        ("127.0.0.1/b", site.url("/b"))
    ]
    assert row.state is SourceState.POLLED
    assert row.reason.startswith("3 feeds left out: the node 127.0.0.1/a exists")


async def test_feeds_get_the_settings_of_the_list_without_its_password(polling, site, world):
    """[SRC-015] [SRC-085] The password is for the server of the list."""
    site.pages[LIST] = opml(site.url("/a"))
    row = await polling.add(LIST, node=NODE, is_list=True, user="me", password="secret", only="category=x", every_s=900)
    await polling.poll(row)
    source = (await sources(world))[site.url("/a")]
    settings = source.settings
    assert (settings.user, settings.password, settings.is_list) == ("", "", False)
    # The author of the list chooses the address, the operator has not seen it.
    assert source.reach is Reach.PUBLIC
    assert (settings.only, settings.every_s) == ("category=x", 900)
    assert "Authorization" in site.asked[0].headers


async def test_list_adds_a_limited_number_of_sources(polling, site, world, monkeypatch):
    """[SRC-083] Sources that the list does not name any more count too."""
    monkeypatch.setattr(source_lists, "MAX_LISTED", 2)
    site.pages[LIST] = opml(site.url("/a"), site.url("/b"))
    row = await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    site.pages[LIST] = opml(site.url("/b"), site.url("/c"))
    row = await polling.poll(row, DAY_S)
    assert set(await states(world)) == {"a", "b"}
    assert row.reason.startswith("1 feed left out: the list has added 2 sources")


async def test_sources_outlive_their_list(polling, site, world):
    """[SRC-083] They go on. The author of the list chose their addresses, so these open no network of the operator."""
    site.pages[LIST] = opml(site.url("/a"))
    row = await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    await world.service.write(lambda tx, context: use_cases.remove_source(tx, context, row))
    source = (await sources(world))[site.url("/a")]
    assert (source.state, source.reach) == (SourceState.POLLED, Reach.PUBLIC)


async def test_two_services_follow_the_list_of_each_other(polling, site, world):
    """[SRC-083] [SRC-082] What comes from here is left out, so that no feed goes round."""
    site.pages[LIST] = opml(f"{OWN_URL}/one.rss", f"{OWN_URL}/two.rss", site.url("/theirs"))
    await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    assert set(await states(world)) == {"theirs"}


def test_feed_still_needs_a_node():
    with pytest.raises(ConfigError, match="node"):
        new_source("", "https://a.example/", 0)


SYNC = '<s:sync xmlns:s="{}" id="{}" version="2" deleted="{}"><s:history by="peer"/></s:sync>'


@pytest.mark.parametrize("namespace", [FEEDSYNC_NS, SSE_NS])
async def test_outline_that_its_sync_data_calls_deleted_is_not_in_the_list(polling, site, world, namespace):
    """[SRC-083] [SSE-019] A list with sync data keeps what was removed from it, with its address and what is in it."""
    lines = {}
    for name, deleted in (("a", "false"), ("b", "true"), ("c", ""), ("d", "false")):
        sync = SYNC.format(namespace, name, deleted)
        lines[name] = f'<outline text="{name}" xmlUrl="{site.url(f"/{name}")}">{sync}</outline>'
    folder = f'<outline text="folder">{SYNC.format(namespace, "folder", "true")}{lines["d"]}</outline>'
    body = f'<opml version="2.0"><head/><body>{lines["a"]}{lines["b"]}{lines["c"]}{folder}</body></opml>'
    site.pages[LIST] = body.encode()
    await polling.poll(await polling.add(LIST, node=NODE, is_list=True))
    assert set(await states(world)) == {"a", "c"}
    assert [feed.url for feed in read_source_list(body.encode(), "")] == [site.url("/a"), site.url("/c")]

"""Sources over several polls: entries that change, leave and return, gaps, and older pages."""

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.core.times import US_PER_S, format_datetime, parse_datetime
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import DAY_S, HOUR_S
from smartfeeds.features.polling.source import SourceState
from smartfeeds.features.polling.source_entries import EntryKey, SourceEntry
from smartfeeds.formats.atom import PUBLISHED, UPDATED, digest_id, read_meta
from smartfeeds.formats.xml import parse_stored
from support.polling import NODE, PATH, atom, running_polling
from support.world import OWNER, T0_US

NAMES = 'xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0"'
COMPLETE = "<fh:complete/>"


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site) as running:
        yield running


def rss(*items, head=""):
    inner = "".join(f"<item>{item}</item>" for item in items)
    return f'<rss version="2.0" {NAMES}><channel><title>t</title>{head}{inner}</channel></rss>'.encode()


def item(name, link="", text="", guid=None):
    guid = name if guid is None else guid
    return (
        f'<guid isPermaLink="false">{guid}</guid><link>{link or f"https://a.example/{name}"}</link>'
        f"<title>{name}</title><description>{text}</description>"
    )


def named(body):
    """An Atom document with the namespaces of RFC 5005 and RFC 6721."""
    return body.replace(b"<feed ", f"<feed {NAMES} ".encode())


def older(rel, path):
    return f'<link rel="{rel}" href="{path}"/>'


async def entries(world):
    """The entries of the node by title."""
    items = (await world.pull(NODE, actor=OWNER, max=500)).items
    return {read_meta(one.payload).body: (one, parse_stored(one.payload)) for one in items}


async def test_items_without_dates_have_the_time_of_first_sight(polling, site, world):
    """[SRC-056] Also at later polls, and with dates that lie in the future."""
    ahead = format_datetime(T0_US + 3 * DAY_S * US_PER_S)
    site.pages[PATH] = rss(item("none"), item("ahead") + f"<pubDate>{ahead}</pubDate>")
    source = await polling.poll(await polling.add())
    first = {title: (one.created_us, tree.findtext(UPDATED)) for title, (one, tree) in (await entries(world)).items()}
    assert {created_us // US_PER_S for created_us, _ in first.values()} == {T0_US // US_PER_S}
    assert {parse_datetime(updated) // US_PER_S for _, updated in first.values()} == {T0_US // US_PER_S}
    before = (await world.node(NODE)).last_modified_us

    for later_s in (HOUR_S, 9 * DAY_S):
        source = await polling.poll(source, later_s)
    assert (await world.node(NODE)).last_modified_us == before, "nothing has changed"
    site.pages[PATH] = rss(item("none"), item("ahead", text="more") + f"<pubDate>{ahead}</pubDate>")
    await polling.poll(source, HOUR_S)
    one, tree = (await entries(world))["ahead"]
    assert one.created_us == first["ahead"][0] and tree.find(PUBLISHED) is None


async def test_change_without_a_date_gets_the_time_of_the_poll(polling, site, world):
    """[SRC-071] The order of elements and the title of the feed are no change."""
    site.pages[PATH] = rss(item("a") + "<category>x</category><category>y</category>")
    source = await polling.poll(await polling.add())
    before = (await world.node(NODE)).last_modified_us
    site.pages[PATH] = rss(item("a") + "<category>y</category><category>x</category>").replace(
        b"<title>t<", b"<title>(3) t<"
    )
    source = await polling.poll(source, HOUR_S)
    assert (await world.node(NODE)).last_modified_us == before

    site.pages[PATH] = rss(item("a", text="edited"))
    await polling.poll(source, HOUR_S)
    one, tree = (await entries(world))["a"]
    assert one.modified_us > before and parse_datetime(tree.findtext(UPDATED)) == T0_US + 2 * HOUR_S * US_PER_S


async def test_settings_leave_fields_out_of_the_comparison(polling, site, world):
    """[SRC-072] [SRC-085] An element, and a counter in links."""
    source = await polling.add(ignore=("description", "?visit"))
    keys = []
    for number in range(2):
        link = f"https://a.example/a?visit={number}"
        site.pages[PATH] = rss(item("a", link, text="same") + f"<description xmlns='urn:ads'>{number}</description>")
        source = await polling.poll(source, HOUR_S)
        keys.append((await world.node(NODE)).last_modified_us)

    assert keys[0] == keys[1]


async def test_feed_that_changes_all_its_ids_makes_no_doubles(polling, site, world):
    """[SRC-073] From http to https: item ids and atom:ids stay."""
    pages = [(name, f"http://a.example/{name}") for name in "abc"]
    site.pages[PATH] = rss(*(item(name, link, guid=link) for name, link in pages))
    source = await polling.poll(await polling.add())
    before = {title: (one.id, tree.findtext("{*}id")) for title, (one, tree) in (await entries(world)).items()}

    secure = [(name, link.replace("http:", "https:")) for name, link in [("d", "http://a.example/d"), *pages]]
    site.pages[PATH] = rss(*(item(name, link, guid=link) for name, link in secure))
    source = await polling.poll(source, HOUR_S)
    after = {title: (one.id, tree.findtext("{*}id")) for title, (one, tree) in (await entries(world)).items()}
    assert after.pop("d") not in before.values()
    assert after == before
    await polling.poll(source, HOUR_S)
    assert len(await entries(world)) == 4


async def test_two_entries_of_one_id_are_two_items_in_each_poll(polling, site, world):
    """[SRC-070]"""
    site.pages[PATH] = rss(item("b", "https://a.example/b", guid="x"), item("a", "https://a.example/a", guid="x"))
    source = await polling.poll(await polling.add())
    before = {title: one.id for title, (one, _) in (await entries(world)).items()}
    site.pages[PATH] = rss(item("c", "https://a.example/c", guid="x"), item("b", "https://a.example/b", guid="x"))
    await polling.poll(source, HOUR_S)

    after = {title: one.id for title, (one, _) in (await entries(world)).items()}
    assert set(after) == {"a", "b", "c"} and after | before == after


async def test_items_that_are_no_longer_in_the_node_stay_away(polling, site, world):
    """[SRC-075] The memory of the source has an entry whose item is gone."""
    source = await polling.add()
    identity = digest_id(source.first_url, "urn:x:a")
    entry = SourceEntry(EntryKey(identity), identity)
    await world.store.write(lambda tx: source_rows.put_entry(tx, source.source_no, entry))
    site.pages[PATH] = atom("c", "b", "a")
    source = await polling.poll(source)
    site.pages[PATH] = atom("c", "b", "a").replace(b"<title>a<", b"<title>a again<")
    await polling.poll(source, HOUR_S)

    assert await polling.titles() == ["b", "c"]


async def test_sources_fill_feeds_only(polling, site, world):
    """[SRC-075] A node whose limit would push items out is refused with a reason."""
    await world.create(NODE, "feeds.example.org", type="generic", max_items="20")
    site.pages[PATH] = atom("a")
    source = await polling.poll(await polling.add())

    assert "generic" in source.reason


async def test_complete_feed_retracts_what_two_documents_lack(polling, site, world):
    """[SRC-066] Not an incomplete one, and not an empty one. What returns is there again."""

    async def poll(*titles, head=COMPLETE):
        nonlocal source
        site.pages[PATH] = named(atom(*titles, inner=head))
        source = await polling.poll(source, HOUR_S)
        return sorted(await polling.titles())

    source = await polling.add()
    assert await poll("c", "b", "a") == ["a", "b", "c"]
    assert await poll("c", "b", head="") == ["a", "b", "c"]
    assert await poll("c", "b") == ["a", "b", "c"]
    assert await poll("c", "b", "a") == ["a", "b", "c"], "the count begins again"
    assert await poll("c", "b") == ["a", "b", "c"]
    assert await poll() == ["a", "b", "c"]
    assert await poll("c", "b") == ["b", "c"]
    assert await poll("c", "b") == ["b", "c"]
    assert await poll("c", "b", "a") == ["a", "b", "c"]


async def test_deleted_entry_retracts(polling, site):
    """[SRC-067] RFC 6721; an id that is not known is ignored, and a newer entry of the id wins."""
    site.pages[PATH] = atom("b", "a")
    source = await polling.poll(await polling.add())
    deletions = "".join(
        f'<at:deleted-entry ref="urn:x:{name}" when="{when}"/>'
        for name, when in (("a", "2011-05-10T00:00:00Z"), ("b", "2001-01-01T00:00:00Z"), ("z", "2011-05-10T00:00:00Z"))
    )
    site.pages[PATH] = named(atom("b", inner=deletions))
    await polling.poll(source, HOUR_S)

    assert await polling.titles() == ["b"]


@pytest.mark.parametrize("rel", ["prev-archive", "next"])
async def test_gap_is_closed_over_older_pages(polling, site, rel):
    """[SRC-059] [SRC-062] Three pages were missed; they shift while they are read, and items are stored once."""
    site.pages[PATH] = atom("b", "a")
    source = await polling.poll(await polling.add())
    site.pages[PATH] = named(atom("h", "g", inner=older(rel, "/3")))
    site.pages["/3"] = named(atom("g", "f", inner=older(rel, "/2")))
    site.pages["/2"] = named(atom("e", "d", inner=older(rel, "/1")))
    site.pages["/1"] = named(atom("c", "b", inner=older(rel, "/0")))
    source = await polling.poll(source, HOUR_S)

    assert sorted(await polling.titles()) == list("abcdefgh")
    assert site.paths == [PATH, PATH, "/3", "/2", "/1"], "until a known item"
    assert source.reason == ""
    assert len(polling.slept) >= 3, "at the pace of all requests to a host"


@pytest.mark.needs("documents")
async def test_gap_in_json_and_rss(polling, site):
    """[SRC-059] [SRC-064] next_url, and atom:link in RSS."""
    for path, first, second, old in (
        (
            "/json",
            b'{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"a","title":"a"}]}',
            b'{"version":"https://jsonfeed.org/version/1.1","next_url":"/old","items":[{"id":"c","title":"c"}]}',
            b'{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"b","title":"b"},{"id":"a","title":"a"}]}',
        ),
        (
            "/rss",
            rss(item("a")),
            rss(item("c"), head='<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="prev-archive" href="/old"/>'),
            rss(item("b"), item("a")),
        ),
    ):
        site.pages |= {path: first, "/old": old}
        source = await polling.poll(await polling.add(path, node=path[1:]))
        site.pages[path] = second
        await polling.poll(source, HOUR_S)
        assert sorted(await polling.titles(path[1:])) == ["a", "b", "c"]


async def test_gap_without_older_pages_is_said(polling, site):
    """[SRC-059] [SRC-065] And no more than ten pages are read."""
    site.pages[PATH] = atom("a")
    source = await polling.poll(await polling.add())
    site.pages[PATH] = atom("b")
    with capture_logs() as logs:
        source = await polling.poll(source, HOUR_S)
    assert source.state is SourceState.POLLED and source.reason.startswith("items may be missing: ")
    assert [log["event"] for log in logs if log["log_level"] == "warning"] == ["source_incomplete"]

    for number in range(20):
        site.pages[f"/{number}"] = atom(f"p{number}", inner=older("next", f"/{number + 1}"))
    site.pages[PATH] = atom("c", inner=older("next", "/0"))
    site.asked.clear()
    source = await polling.poll(source, HOUR_S)
    assert len(site.asked) == 11
    assert source.progress.gaps == 2 and "faster" in source.reason
    source = await polling.poll(source, HOUR_S)
    assert (source.progress.gaps, source.reason) == (0, "")


async def test_first_poll_reads_older_pages_by_request_only(polling, site):
    """[SRC-060] [SRC-085] Two pages; their items come first."""
    site.pages[PATH] = atom("c", inner=older("prev-archive", "/2"))
    site.pages["/2"] = atom("b", inner=older("prev-archive", "/1"), every_s=1).replace(b"2011", b"2010")
    site.pages["/1"] = atom("a", inner=older("prev-archive", "/0"), every_s=1).replace(b"2011", b"2009")
    await polling.poll(await polling.add(node="short"))
    assert (await polling.titles("short"), site.paths) == (["c"], [PATH])

    await polling.poll(await polling.add(node="long", history=2))
    assert await polling.titles("long") == ["a", "b", "c"]
    assert site.paths == [PATH, PATH, "/2", "/1"]


async def test_archives_are_read_once(polling, site):
    """[SRC-061] The second gap ends at the archive that the first one has read."""
    site.pages[PATH] = atom("a")
    source = await polling.poll(await polling.add())
    site.pages[PATH] = atom("c", inner=older("prev-archive", "/1"))
    site.pages["/1"] = atom("b", inner="")
    source = await polling.poll(source, HOUR_S)
    site.pages[PATH] = atom("e", inner=older("prev-archive", "/2"))
    site.pages["/2"] = atom("d", inner=older("prev-archive", "/1"))
    source = await polling.poll(source, HOUR_S)

    assert site.paths == [PATH, PATH, "/1", PATH, "/2"]
    assert sorted(await polling.titles()) == ["a", "b", "c", "d", "e"]
    assert source.progress.archives == (site.url("/2"), site.url("/1"))


@pytest.mark.parametrize(
    ("pages", "reason", "requests"),
    [
        ({PATH: "/1", "/1": "/2", "/2": "/1"}, "circle", 2),
        ({PATH: "http://localhost:1/x"}, "another host", 0),
        ({PATH: "/gone"}, "answered 404", 1),
        ({PATH: "/away"}, "another host", 1),
        ({PATH: "/page"}, "web page", 1),
    ],
    ids=["circle", "other host", "missing", "redirect", "page"],
)
async def test_links_to_older_pages_that_lead_nowhere_end_the_way(polling, site, pages, reason, requests):
    """[SRC-063] The document itself is stored, and the reason is shown."""

    async def away(_request):
        raise web.HTTPFound(site.url("/1", "localhost"))

    site.pages[PATH] = atom("a")
    source = await polling.poll(await polling.add())
    site.pages |= {"/away": away, "/page": b"<html><p>hello</p></html>"}
    for path, target in pages.items():
        site.pages[path] = atom(f"new {path}", inner=older("next", target))
    site.pages.setdefault("/1", atom("x"))
    site.asked.clear()
    source = await polling.poll(source, HOUR_S)

    assert "items may be missing" in source.reason and reason in source.reason
    assert f"new {PATH}" in await polling.titles()
    assert len([path for path in site.paths if path != PATH]) >= requests


async def test_gaps_in_a_row_halve_the_interval(polling, site):
    """[SRC-065] Down to the hint; without one, the operator is told."""
    head = "<ttl>10</ttl>"

    def document(number):
        dates = [format_datetime(T0_US + number * US_PER_S - place * 86_400 * US_PER_S) for place in range(3)]
        texts = [item(f"{number} {place}") + f"<pubDate>{date}</pubDate>" for place, date in enumerate(dates)]
        return rss(*texts, head=head)

    source = await polling.add()
    pauses = []
    for number in range(10):
        site.pages[PATH] = document(number)
        source = await polling.poll(source, 60)
        pauses.append(round((source.due_us - source.polled_us) / US_PER_S / 60))
    assert pauses[1] == pauses[0] and pauses[2] * 2 == pytest.approx(pauses[1], rel=0.05)
    assert pauses[-1] == 10 and "set a shorter interval" in source.reason
    assert pauses == sorted(pauses, reverse=True)


async def test_ids_and_order_may_jump_without_doubles(polling, site):
    """[SRC-069] [SRC-073] A feed that shows an older state of itself, and one without ids."""
    source = await polling.add()
    for titles in (("c", "b", "a"), ("b", "a"), ("a",), ("d", "c", "b", "a"), ("a", "b", "c", "d")):
        site.pages[PATH] = rss(*(f"<title>{title}</title>" for title in titles))
        source = await polling.poll(source, HOUR_S)

    assert sorted(await polling.titles()) == ["a", "b", "c", "d"]

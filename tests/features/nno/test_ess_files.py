"""ESS files from the web, and the full entries behind an outline."""

import pytest
from aiohttp import web

from smartfeeds.errors import FeedError
from smartfeeds.features.documents.ess import NnoEntry, dumb_checksum, write_nno
from smartfeeds.features.nno.entries import Aggregator, EntryRequest
from smartfeeds.features.nno.ess_files import EssSource, Puller
from smartfeeds.net.fetch import FetchError

BUILD_S = 1_304_942_400


def entry(site, name, minutes, title):
    return NnoEntry(site.url(f"/{name}.xml"), BUILD_S - 60 * minutes, dumb_checksum(title))


def told(pulled):
    return [found and (found.item.id, found.updated) for _entry, found in pulled.results]


# ESS files.


async def test_source_gives_the_file_and_asks_again_only_for_what_has_changed(site, fetcher):
    """[ESS-001] [ESS-013] [ESS-025] A conditional request; the last file stays where nothing has changed."""
    url = site.blog("a", ("urn:1", "one", 3), ("urn:2", "two", 9))
    body = site.pages["/a.ess"]

    async def page(request):
        known = request.headers.get("If-None-Match") == '"1"'
        return web.Response(
            status=304 if known else 200,
            body=None if known else body,
            headers={"ETag": '"1"'},
            content_type="application/ess",
        )

    site.pages["/a.ess"] = page
    source = EssSource(url)
    for _time in range(2):
        await source.refresh(fetcher, 50)
        (file,) = source.files
        assert file.feed_url == site.url("/a.xml")
        assert [stamp.time_s for stamp in file.entries] == [BUILD_S - 180, BUILD_S - 540]

    assert "application/ess" in site.asked[0].headers["Accept"]
    assert [request.headers.get("If-None-Match") for request in site.asked] == [None, '"1"']


async def test_source_keeps_no_more_than_can_ever_be_wanted(site, fetcher):
    """[ESS-011] The youngest of each feed."""
    source = EssSource(site.blog("a", *((f"urn:{n}", "t", n) for n in range(20))))
    await source.refresh(fetcher, 3)

    assert [stamp.time_s for stamp in source.files[0].entries] == [BUILD_S, BUILD_S - 60, BUILD_S - 120]


async def test_source_that_is_an_outline_gives_a_file_for_each_feed(site, fetcher):
    """[ESS-002] [ESS-023] A published NNO file feeds another aggregator."""
    site.pages["/x.nno"] = write_nno([entry(site, "a", 1, "x"), entry(site, "b", 2, "y")], BUILD_S * 10**6).data
    source = EssSource(site.url("/x.nno"))
    await source.refresh(fetcher, 50)

    assert [file.feed_url for file in source.files] == [site.url("/a.xml"), site.url("/b.xml")]


@pytest.mark.parametrize("content_type", ["text/html", "application/octet-stream"])
async def test_source_that_is_a_page_leads_to_the_file_it_links_to(site, fetcher, content_type):
    """[ESS-024] Asked at its own address from then on, and at the page's again when that fails."""
    url = site.blog("a", ("urn:1", "one", 3))
    links = "<link rel=alternate type=application/nno href=/no><link rel=alternate type=application/ess href=a.ess>"
    site.pages["/"] = web.Response(body=f"<html><head>{links}</head>".encode(), content_type=content_type)
    source = EssSource(site.url())
    await source.refresh(fetcher, 50)
    await source.refresh(fetcher, 50)
    assert source.files[0].feed_url == site.url("/a.xml")
    assert site.paths == ["/", "/a.ess", "/a.ess"]

    del site.pages["/a.ess"]
    for _time in range(2):
        with pytest.raises(FetchError, match=url):
            await source.refresh(fetcher, 50)
    assert source.files[0].feed_url == site.url("/a.xml")
    assert site.paths[3:] == ["/a.ess", "/", "/a.ess"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>no links", "no ESS file"),
        (b"60,http://e/,1", "left over"),
        (b"", "empty"),
        (b"9" * 1_000_001, "larger"),
    ],
)
async def test_source_that_is_no_ess_file_says_why(site, fetcher, body, reason):
    site.pages["/"] = body
    source = EssSource(site.url())

    with pytest.raises((FeedError, FetchError), match=reason):
        await source.refresh(fetcher, 50)
    assert source.files == ()


# Full entries.


async def test_pull_downloads_only_the_feeds_of_entries_that_are_new_enough(site, fetcher):
    """[ESS-018] The third feed is too old, and nobody asks for it."""
    aggregator = Aggregator(2)
    for name, minutes in (("a", 1), ("b", 2), ("old", 300)):
        source = EssSource(site.blog(name, (f"urn:{name}", f"title {name}", minutes)))
        await source.refresh(fetcher, 50)
        aggregator.add(source.files[0])
    pulled = await Puller(fetcher).pull(aggregator.result())

    assert told(pulled) == [("urn:a", False), ("urn:b", False)]
    assert [found.feed_title for found in pulled.fresh] == ["a", "b"]
    assert site.asked_for(".xml") == ["/a.xml", "/b.xml"]


async def test_pull_of_the_same_outline_downloads_nothing(site, fetcher):
    """[ESS-019] A second outline with the same entries: 0 downloads; with one younger entry: 1."""
    site.blog("a", ("urn:1", "one", 3))
    site.blog("b", ("urn:2", "two", 5))
    entries = [entry(site, "a", 3, "one"), entry(site, "b", 5, "two")]
    puller = Puller(fetcher)

    assert (await puller.pull(entries)).downloads == 2
    again = await puller.pull(entries)
    assert (again.downloads, again.fresh, told(again)) == (0, (), [("urn:1", False), ("urn:2", False)])

    site.blog("a", ("urn:0", "zero", 1), ("urn:1", "one", 3))
    younger = await puller.pull([entry(site, "a", 1, "zero"), *entries])
    assert [found.item.id for found in younger.fresh] == ["urn:0"]
    assert told(younger) == [("urn:0", False), ("urn:1", False), ("urn:2", False)]
    assert site.asked_for(".xml") == ["/a.xml", "/a.xml", "/b.xml"]


async def test_pull_takes_up_results_of_another_run(site, fetcher):
    """[ESS-019] Results that were kept somewhere are as good."""
    site.blog("a", ("urn:1", "one", 3))
    entries = [entry(site, "a", 3, "one")]
    first = Puller(fetcher)
    await first.pull(entries)

    assert (await Puller(fetcher, first.known).pull(entries)).downloads == 0
    assert set(first.known) == {EntryRequest(entries[0])}
    await first.pull([])
    assert first.known == {}


async def test_pull_picks_among_entries_of_one_minute_by_title(site, fetcher):
    """[ESS-020] Checksums 9 and 92."""
    site.blog("a", ("urn:1", "The Grateful Dead", 5), ("urn:2", "hello world", 5))

    assert told(await Puller(fetcher).pull([entry(site, "a", 5, "hello world")])) == [("urn:2", False)]


async def test_pull_marks_an_entry_with_a_new_time_as_updated(site, fetcher):
    """[ESS-021] Whether the outline or the feed has the newer time."""
    site.blog("a", ("urn:1", "hello world", 50))
    puller = Puller(fetcher)
    assert told(await puller.pull([entry(site, "a", 60, "hello world")])) == [("urn:1", True)]

    site.blog("b", ("urn:1", "x", 50))
    assert told(await puller.pull([entry(site, "b", 50, "x")])) == [("urn:1", False)]
    site.blog("b", ("urn:1", "x", 2))
    newer = await puller.pull([entry(site, "b", 2, "x")])
    assert told(newer) == [("urn:1", True)]
    assert [found.item.id for found in newer.fresh] == ["urn:1"]


async def test_pull_gives_entries_of_the_same_time_and_title_an_item_each(site, fetcher):
    """[ESS-022] Both are listed."""
    site.blog("a", ("urn:1", "same", 5), ("urn:2", "same", 5))

    pulled = await Puller(fetcher).pull([entry(site, "a", 5, "same")] * 2)
    assert told(pulled) == [("urn:1", False), ("urn:2", False)]


async def test_pull_reads_titles_as_they_stand_in_rss(site, fetcher):
    """[A-106] The reader trims them; the checksum is of the title with its blanks."""
    date = "<pubDate>Mon, 09 May 2011 11:55:00 GMT</pubDate>"
    site.pages["/a.xml"] = (
        f"<rss version='2.0'><channel><item><title>other</title><guid>1</guid>{date}</item>"
        f"<item><title> hello world </title><guid>2</guid>{date}</item></channel></rss>"
    ).encode()
    pulled = await Puller(fetcher).pull([entry(site, "a", 5, " hello world ")])

    assert told(pulled) == [("2", False)]


async def test_pull_looks_again_for_what_it_did_not_find_only_when_the_feed_has_changed(site, fetcher):
    """[ESS-019] A feed that lags behind its ESS file."""
    site.blog("a", ("urn:1", "one", 3))
    bodies = [site.pages["/a.xml"]]

    async def page(request):
        tag = f'"{len(bodies)}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304)
        return web.Response(body=bodies[-1], headers={"ETag": tag})

    site.pages["/a.xml"] = page
    one, zero = entry(site, "a", 3, "one"), entry(site, "a", 1, "zero")
    puller = Puller(fetcher)
    assert told(await puller.pull([zero])) == [None]
    assert told(await puller.pull([zero])) == [None]
    # Another entry may well be in what was downloaded before.
    assert told(await puller.pull([zero, one])) == [None, ("urn:1", False)]

    site.blog("a", ("urn:0", "zero", 1), ("urn:1", "one", 3))
    bodies.append(site.pages["/a.xml"])
    site.pages["/a.xml"] = page
    assert told(await puller.pull([zero, one])) == [("urn:0", False), ("urn:1", False)]
    assert [request.headers.get("If-None-Match") for request in site.asked] == [None, '"1"', None, '"1"']


async def test_pull_goes_on_without_the_feeds_that_fail(site, fetcher):
    """[ESS-018] They are told, with the reason, and asked again the next time."""
    site.blog("a", ("urn:1", "one", 3))
    site.pages["/b.xml"] = b"<html>"
    entries = [entry(site, "b", 1, "x"), entry(site, "c", 2, "y"), entry(site, "a", 3, "one")]
    puller = Puller(fetcher)
    pulled = await puller.pull(entries)

    assert told(pulled) == [None, None, ("urn:1", False)]
    assert set(pulled.failed) == {site.url("/b.xml"), site.url("/c.xml")}
    assert "web page" in pulled.failed[site.url("/b.xml")].reason
    assert "404" in pulled.failed[site.url("/c.xml")].reason
    assert (await puller.pull(entries, skip={site.url("/c.xml")})).downloads == 1


async def test_pull_leaves_deleted_entries_alone(site, fetcher):
    """[ESS-020] What a feed says is deleted is no entry."""
    site.pages["/a.xml"] = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><at:deleted-entry ref="urn:1" when="2011-05-09T11:55:00Z" '
        b'xmlns:at="http://purl.org/atompub/tombstones/1.0"/></feed>'
    )
    assert told(await Puller(fetcher).pull([entry(site, "a", 5, "")])) == [None]

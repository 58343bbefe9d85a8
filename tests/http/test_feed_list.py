"""All feeds over HTTP: a list in pages, and OPML of all of them."""

import asyncio
import threading
from typing import Any

import pytest

from smartfeeds.formats.opml import read_outline
from smartfeeds.http import feed_list
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.routes import Handlers
from support.component import ALICE, DOMAIN
from support.features import FEATURE_NAMES
from support.outlines import listed_feeds
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM_NS = "http://www.w3.org/2005/Atom"
US = 1_000_000
HTML = pytest.param("html", marks=pytest.mark.needs("pages"))
NNO, NNO_LIST = (pytest.param(value, marks=pytest.mark.needs("documents")) for value in ("nno", "/feeds.nno"))


def names(got: Got) -> list[str]:
    return [item["id"] for item in got.json["items"]]


async def make(web: Web, feeds: str) -> None:
    for name in feeds.split():
        await web.component.create(ALICE, name)


# Pages.


async def test_the_list_says_where_each_feed_is(start_web: WebStarter) -> None:
    """[SF-112] [SF-060] [SF-061] [SF-062] Each feed with its title, what it is about, and every way to get at it."""
    web = await start_web()
    await web.component.create(ALICE, "a b", title="Title", description="About")
    web.component.clock.advance(60)
    await web.component.publish(ALICE, "a b", "x")
    got = await web.get("/feeds/")
    assert (got.status, got.header("Content-Type")) == (200, "application/json; charset=utf-8")
    assert (got.json["count"], got.json["totalItems"], got.json["url"]) == (1, 1, f"{web.origin}/feeds/")
    (feed,) = got.json["items"]
    assert (feed["id"], feed["title"], feed["summary"]) == ("a b", "Title", "About")
    assert (feed["published"], feed["updated"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    links = {link.get("type", "xmpp"): link["href"] for link in feed["links"]}
    assert links.pop("xmpp") == f"xmpp:{DOMAIN}?;node=a%20b"
    assert set(links) >= {"application/json", "application/atom+xml", "application/rss+xml"}
    assert ("application/ess" in links) is ("documents" in FEATURE_NAMES)
    for media_type, address in links.items():
        answer = await web.get(address.removeprefix(web.origin))
        assert (answer.status, answer.header("Content-Type").partition(";")[0]) == (200, media_type)
    assert (await web.get(feed["url"].removeprefix(web.origin))).json["items"][0]["id"] == "x"


@pytest.mark.parametrize("count", [1, 3, 4, 7])
async def test_following_next_shows_each_feed_once(web: Web, count: int) -> None:
    """[SF-064] [A-10] Pages by name; the last one has no next."""
    feeds = [f"f&{number}" for number in range(7)]
    await web.component.many_nodes(feeds)
    path, seen = f"/feeds/?max={count}", []
    while path:
        page = (await web.get(path)).json
        assert (page["count"], page["totalItems"]) == (len(page["items"]), 7)
        seen.append([item["id"] for item in page["items"]])
        path = page.get("next", "").removeprefix(web.origin)
    assert [len(page) for page in seen[:-1]] == [count] * (len(seen) - 1)
    assert [name for page in seen for name in page] == feeds


async def test_before_and_after(web: Web) -> None:
    """[SF-019] [SF-020] [SF-021] A page from either side of a name, which need not be there."""
    await make(web, "a b c d e")
    assert names(await web.get("/feeds/?after=b&max=2")) == ["c", "d"]
    assert names(await web.get("/feeds/?before=d&max=2")) == ["b", "c"]
    assert names(await web.get("/feeds/?before=&max=2")) == ["d", "e"]
    assert names(await web.get("/feeds/?after=bb")) == ["c", "d", "e"]
    assert names(await web.get("/feeds/?after=e")) == []
    empty = (await web.get("/feeds/?max=0")).json
    assert (empty["count"], empty["totalItems"]) == (0, 5)


@pytest.mark.needs("pages", "documents")
async def test_the_list_as_a_page_links_both_ways(web: Web) -> None:
    """[SF-112] [ESS-024] HTML for a browser, with its neighbours; under the rules of our pages."""
    await make(web, "a b c d e")
    got = await web.get("/feeds/?after=b&max=1", accept="text/html")
    assert (got.status, got.header("Content-Type")) == (200, "text/html; charset=utf-8")
    assert 'href="/feeds/c/"' in got.text
    assert 'href="/feeds/d/"' not in got.text
    assert "/feeds/?after=c&amp;max=1" in got.text
    assert "/feeds/?before=c&amp;max=1" in got.text
    assert "script-src 'self'" in got.header("Content-Security-Policy")
    assert 'type="application/nno"' in got.text


@pytest.mark.parametrize("query", ["max=x", "max=-1", "max=1&max=2", "since=id:a", "max=1&Max=1", "after=%FF"])
async def test_parameters_that_a_list_does_not_have(web: Web, query: str) -> None:
    """Refused, not guessed."""
    assert (await web.get(f"/feeds/?{query}")).status == 400


@pytest.mark.parametrize("parameter", ["max=1", "after=a", "before=b"])
@pytest.mark.parametrize("form", ["json", "opml", HTML, NNO])
async def test_a_form_takes_the_parameters_that_mean_something_there(web: Web, form: str, parameter: str) -> None:
    """[A-24] Pages take all of them, NNO takes max, OPML is whole; by suffix as by Accept."""
    await make(web, "a b")
    right = form in ("json", "html") or (form == "nno" and parameter == "max=1")
    media_type = {"json": "application/json", "html": "text/html", "opml": "text/x-opml", "nno": "application/nno"}[
        form
    ]
    got = [await web.get(f"/feeds/?{parameter}", accept=media_type)]
    got += [] if form == "html" else [await web.get(f"/feeds.{form}?{parameter}")]
    assert {one.status for one in got} == {200 if right else 400}


async def test_the_address_without_its_slash(web: Web) -> None:
    """[SF-057] 308, with the query."""
    got = await web.get("/feeds?max=1")
    assert (got.status, got.header("Location")) == (308, "/feeds/?max=1")


@pytest.mark.parametrize("path", ["/feeds/", "/feeds.json", "/feeds.opml", NNO_LIST])
async def test_a_list_is_read_only_and_offers_its_other_forms(web: Web, path: str) -> None:
    """[SF-053] [ESS-024] GET and HEAD; Link names OPML and NNO."""
    head = await web.ask("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert f'<{web.origin}/feeds.opml>; rel="alternate"; type="text/x-opml"' in head.header("Link")
    has_nno = f'<{web.origin}/feeds.nno>; rel="alternate"; type="application/nno"' in head.header("Link")
    assert has_nno is ("documents" in FEATURE_NAMES)
    for method in ("POST", "PUT", "DELETE"):
        got = await web.ask(method, path)
        assert (got.status, got.header("Allow")) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json; charset=utf-8"),
        ("application/json", "application/json; charset=utf-8"),
        pytest.param("text/html", "text/html; charset=utf-8", marks=pytest.mark.needs("pages")),
        ("text/x-opml", "text/x-opml; charset=utf-8"),
        pytest.param("application/nno", "application/nno", marks=pytest.mark.needs("documents")),
    ],
)
async def test_the_form_that_is_wanted(web: Web, accept: str, media_type: str) -> None:
    """[SF-058] [ESS-025] By the Accept header, JSON where everything is welcome."""
    await make(web, "a")
    assert (await web.get("/feeds/", accept=accept)).header("Content-Type") == media_type


async def test_a_form_that_is_not_there(web: Web) -> None:
    assert (await web.get("/feeds/", accept="image/png")).status == 406


@pytest.mark.parametrize("path", ["/feeds/", "/feeds.opml", NNO_LIST, "/feeds/?max=1"])
async def test_a_list_is_sent_again_only_when_it_has_changed(web: Web, path: str) -> None:
    """304 until there is something new."""
    await make(web, "b")
    await web.component.publish(ALICE, "b", "x")
    first = await web.get(path)
    again = await web.get(path, If_None_Match=first.header("ETag"))
    assert (again.status, again.body, again.header("ETag")) == (304, b"", first.header("ETag"))
    await make(web, "a")
    await web.component.publish(ALICE, "a", "x")
    web.component.clock.advance(feed_list.CACHE_US / US)
    changed = await web.get(path, If_None_Match=first.header("ETag"))
    assert (changed.status, changed.body != first.body) == (200, True)


# The sources as a list.


# Who sees what.


# OPML.


async def test_opml_of_all_feeds(web: Web) -> None:
    """[SF-008] Every feed with its RSS document, its page, its address over XMPP."""
    await web.component.create(ALICE, "a&b", title="Title & more", description="About")
    await make(web, "c")
    got = await web.get("/feeds.opml")
    outline = read_outline(got.body)
    first, second = listed_feeds(outline)
    assert (got.header("Content-Type"), outline.title) == ("text/x-opml; charset=utf-8", f"Feeds of {DOMAIN}")
    assert (first.title, first.description, second.title) == ("Title & more", "About", "c")
    assert (first.html_url, second.xml_url) == (f"{web.origin}/feeds/a%26b/", f"{web.origin}/feeds/c.rss")
    assert second.xmpp == f"xmpp:{DOMAIN}?;node=c"
    assert (await web.get(first.xml_url.removeprefix(web.origin))).status == 200


async def test_a_whole_list_says_what_it_leaves_out(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-008] [ESS-010] Read in pieces up to a bound; beyond, the title and a header say how many are missing."""
    monkeypatch.setattr(feed_list, "LISTED", 5)
    monkeypatch.setattr(feed_list, "CHUNK", 2)
    await web.component.many_nodes([f"f{number}" for number in range(5)])
    whole = await web.get("/feeds.opml")
    assert (len(list(listed_feeds(read_outline(whole.body)))), whole.header(feed_list.LEFT_OUT)) == (5, "0")
    await web.component.many_nodes(["g0", "g1"])
    web.component.clock.advance(feed_list.CACHE_US / US)
    cut = await web.get("/feeds.opml")
    outline = read_outline(cut.body)
    assert [feed.title for feed in listed_feeds(outline)] == [f"f{number}" for number in range(5)]
    assert (outline.title, cut.header(feed_list.LEFT_OUT)) == (f"Feeds of {DOMAIN} (the first 5 of 7)", "2")


async def test_a_whole_list_is_made_once_for_all_who_ask_at_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 249] Many who ask for the same list together cost as much as one."""
    await make(web, "a b")
    app, asked = web.component.app, []
    handle = app.service.handle

    async def counted(request: Any) -> Any:
        asked.append(request)
        return await handle(request)

    monkeypatch.setattr(app.service, "handle", counted)
    answers = await asyncio.gather(*(web.get("/feeds.opml") for _ in range(20)))
    assert len({got.body for got in answers}) == 1
    assert len(asked) == 1


# What is kept.


def kept_by(web: Web) -> ByteCache[Any, Any]:
    site = web.component.app.site
    assert site is not None
    return site.handlers.get(Handlers).lists._cache


async def test_whole_lists_take_only_so_much_room(web: Web) -> None:
    """[xep-map 249] Under however many addresses they are asked for: the room is counted in bytes."""
    for number in range(100):
        await web.component.create(ALICE, f"f{number}", title="t" * 1_900)
    size_bytes = len((await web.get("/feeds.opml")).body)
    for number in range(2 * feed_list.CACHE_BYTES // size_bytes):
        assert (await web.get("/feeds.opml", Host=f"h{number}.example")).status == 200
    assert 5 * size_bytes < kept_by(web).size_bytes <= feed_list.CACHE_BYTES


async def test_whole_lists_that_are_old_are_forgotten(web: Web) -> None:
    """[xep-map 249] By their age, not only when others take their room."""
    await make(web, "a")
    for number in range(5):
        await web.get("/feeds.opml", Host=f"h{number}.example")
    assert len(kept_by(web)) == 5
    web.component.clock.advance(feed_list.CACHE_US / US)
    await web.get("/feeds.opml")
    assert len(kept_by(web)) == 1


async def test_document_of_all_feeds_is_written_in_a_thread(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand feeds take 0.2 s, in which the event loop serves other requests."""
    await make(web, "a b")
    threads = []

    def write(*values: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return document(*values, **options)

    document = feed_list.document_reply
    monkeypatch.setattr(feed_list, "document_reply", write)
    assert (await web.get("/feeds.opml")).status == 200
    assert len(threads) == 1 and threads[0] is not threading.main_thread()

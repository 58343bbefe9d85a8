"""The river: the newest entries of all feeds, as a page, JSON and Atom, and the list of feeds by last change."""

import gzip
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

import pytest
from lxml import etree, html

from smartfeeds.core.token import ALL_FEEDS, TokenScope
from smartfeeds.features.pages import river_requests as river
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB, CAROL, EVE, NS
from support.web import Got, Web

pytestmark = pytest.mark.shared

HTML = "text/html"
ATOM = "application/atom+xml"


def titled(title: str, text: str = "", author: str = "") -> str:
    name = f"<author><name>{escape(author)}</name></author>" if author else ""
    content = f"<content>{escape(text)}</content>" if text else ""
    return f"<entry xmlns='{NS['a']}'><title>{escape(title)}</title>{name}{content}</entry>"


async def publish(web: Web, *places: str) -> None:
    """Publishes FEED/ID for each of these places, a minute apart."""
    for place in places:
        feed, item_id = place.split("/")
        web.component.clock.advance(60)
        await web.component.publish(ALICE, feed, item_id, titled(place, f"At {web.component.clock.now_us}"))


async def make(web: Web, feeds: str, **options: str) -> None:
    for name in feeds.split():
        await web.component.create(ALICE, name, **options)


@pytest.fixture(params=["scan", "short scan", "merge"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways to read the river, which give the same: the items of all feeds, a merge of feeds, one after the
    other."""
    steps, rows = {"scan": (8, 256), "short scan": (1, 2), "merge": (0, 0)}[request.param]
    monkeypatch.setattr(river, "SCANS", steps)
    monkeypatch.setattr(river, "SCANNED", rows)
    monkeypatch.setattr(river, "FEEDS_AT_ONCE", 2)


def places(got: Got) -> list[str]:
    return [f"{entry['feed']['id']}/{entry['item']['id']}" for entry in got.json["items"]]


async def walk(web: Web, path: str, **headers: str) -> list[list[str]]:
    """The pages of the river from this one on."""
    pages = []
    while path:
        got = await web.get(path, **headers)
        assert (got.status, got.json["count"]) == (200, len(got.json["items"]))
        pages.append(places(got))
        path = got.json.get("next", "").removeprefix(web.origin)
    return pages


def shown(got: Got, feeds: bool = False) -> list[str]:
    """The titles of the entries on a page, or of the feeds."""
    page = html.fromstring(got.body)
    return [one.text_content() for one in page.xpath("//li/*[self::h2 or self::h3]/a" if feeds else "//article/h2/a")]


async def test_river_has_the_entries_of_all_feeds_newest_first(web: Web) -> None:
    await make(web, "a b c")
    await publish(web, "a/1", "b/1", "a/2", "a/3", "b/2")
    got = await web.get("/")
    assert (got.status, got.header("Content-Type")) == (200, "application/json; charset=utf-8")
    assert places(got) == ["b/2", "a/3", "a/2", "b/1", "a/1"]
    assert (got.json["url"], "next" in got.json) == (f"{web.origin}/", False)
    assert got.json["items"][0]["feed"] == {"id": "b", "title": "b", "url": f"{web.origin}/feeds/b/"}


@pytest.mark.usefixtures("way")
async def test_edit_brings_an_entry_to_the_top_and_a_deletion_removes_it(web: Web) -> None:
    await make(web, "a b")
    await publish(web, "a/1", "b/1", "a/2", "a/1")
    await web.component.retract(ALICE, "b", "1")
    assert places(await web.get("/")) == ["a/1", "a/2"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_of_the_river_have_every_entry_once(web: Web, size: int) -> None:
    await make(web, "a b c d")
    order = ["a/1", "b/1", "b/2", "b/3", "c/1", "a/2", "b/4", "b/5", "b/6", "a/3"]
    await publish(web, *order)
    pages = await walk(web, f"/?max={size}")
    assert [place for page in pages for place in page] == order[::-1]
    assert {len(page) for page in pages[:-1]} <= {size}


@pytest.mark.usefixtures("way")
async def test_pages_of_entries_with_equal_times_have_every_entry_once(web: Web) -> None:
    """Feeds may change in the same microsecond: the entry that was stored first is the older one."""
    await make(web, "a b c d e")
    for feed in "cabed":
        await web.component.publish(ALICE, feed, "1", titled("x"))
    pages = await walk(web, "/?max=2")
    assert pages == [["d/1", "e/1"], ["b/1", "a/1"], ["c/1"]]


@pytest.mark.usefixtures("way")
async def test_place_stays_valid_when_its_entry_and_its_feed_change(web: Web) -> None:
    """What changes meanwhile moves to the newest end; what was not shown yet is not skipped."""
    await make(web, "a b c")
    await publish(web, "a/1", "b/1", "c/1", "a/2", "b/2")
    first = await web.get("/?max=2")
    assert places(first) == ["b/2", "a/2"]
    following = first.json["next"].removeprefix(web.origin)
    await publish(web, "a/2", "c/2")
    assert places(await web.get(following)) == ["c/1", "b/1"]
    await web.component.owner_set(ALICE, "<delete node='a'/>")
    assert places(await web.get(following)) == ["c/1", "b/1"]


@pytest.mark.parametrize("query", ["after=x", "after=1_x_a", "after=1_1", "max=x", "max=1&max=2", "q=x", "after=%FF"])
async def test_invalid_parameters_are_rejected(web: Web, query: str) -> None:
    assert (await web.get(f"/?{query}")).status == 400


@pytest.mark.usefixtures("way")
async def test_page_is_bounded_by_bytes(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends when its entries are larger than a stanza, and goes on behind the last one."""
    await make(web, "a")
    for number in range(3):
        web.component.clock.advance(1)
        await web.component.publish(ALICE, "a", str(number), titled("x", "y" * 60_000))
    web.component.app.service.policy = web.component.app.service.policy.__class__(
        "feeds.example.org", page_bytes=70_000
    )
    assert await walk(web, "/") == [["a/2", "a/1"], ["a/0"]]


async def test_merge_reads_no_feed_that_cannot_be_on_the_page(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of the first page does not grow with the number of feeds."""
    await web.component.many_nodes([f"f{number:02}" for number in range(40)])
    for number in range(40):
        web.component.clock.advance(1)
        await web.component.publish(ALICE, f"f{number:02}", "1", titled("x"))
    monkeypatch.setattr(river, "FEEDS_AT_ONCE", 5)
    monkeypatch.setattr(river, "SCANS", 0)
    looked: list[int] = []
    readable = river._is_readable

    def counted(*arguments: object) -> bool:
        looked.append(1)
        return readable(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(river, "_is_readable", counted)
    assert places(await web.get("/?max=3")) == ["f39/1", "f38/1", "f37/1"]
    assert len(looked) <= 10


# Forms.


async def test_river_as_a_page(web: Web) -> None:
    """Entries with feed, author and beginning of the text; feeds with their newest entry; forms to subscribe to."""
    await make(web, "quiet")
    await web.component.create(ALICE, "town", title="Town <news>")
    await web.component.publish(ALICE, "town", "old/1", titled("Mill"))
    web.component.clock.advance(1)
    await web.component.publish(ALICE, "town", "a b", titled("Harbour & <b>", "Ships " * 200, "Ann <i>"))
    got = await web.get("/", accept=HTML)
    assert (got.status, got.header("Content-Type")) == (200, "text/html; charset=utf-8")
    assert shown(got) == ["Harbour & <b>", "Mill"]
    assert shown(got, feeds=True) == ["Town <news>", "quiet"]
    page = html.fromstring(got.body)
    card = page.xpath("//article")[0]
    assert card.xpath("h2/a/@href") == ["/entries/town/a%20b"]
    assert card.xpath(".//a[@class='from']/@href") == ["/feeds/town/"]
    assert card.xpath("string(.//*[@class='author'])") == "Ann <i>"
    assert 200 < len(card.xpath("string(.//*[@class='excerpt'])")) < 300
    assert page.xpath("//aside//li[1]//p[@class='headline']/a/@href") == ["/entries/town/a%20b"]
    assert page.xpath("//link[@rel='alternate']/@href") == ["/river.atom", "/feeds.nno", "/feeds.opml"]
    assert "script-src 'self'" in got.header("Content-Security-Policy")


async def test_entry_without_a_title_shows_the_beginning_of_its_text(web: Web) -> None:
    await make(web, "a")
    text = "one two three " * 40
    await web.component.publish(ALICE, "a", "1", titled("", text))
    await web.component.publish(ALICE, "a", "2", titled(""))
    got = await web.get("/", accept=HTML)
    assert shown(got) == ["Untitled"]
    (excerpt,) = html.fromstring(got.body).find_class("excerpt")
    assert excerpt.text_content().startswith("one two three one")


async def test_pages_of_the_river_are_linked(web: Web) -> None:
    await make(web, "a")
    await publish(web, *[f"a/{number}" for number in range(5)])
    titles, path = [], "/?max=2"
    while path:
        got = await web.get(path, accept=HTML)
        titles += shown(got)
        page = html.fromstring(got.body)
        path = next(iter(page.xpath("//a[@rel='next']/@href")), "")
    assert titles == [f"a/{number}" for number in range(4, -1, -1)]
    assert page.xpath("//a[@rel='prev']/@href") == ["/"]


async def test_river_as_atom_names_the_feed_of_each_entry(web: Web) -> None:
    """RFC 4287 4.2.11: atom:source, so that a reader shows where an entry comes from."""
    await web.component.create(ALICE, "town", title="Town & mill")
    await make(web, "b")
    await publish(web, "town/1", "b/1", "town/2")
    got = await web.get("/river.atom?max=2")
    assert (got.status, got.header("Content-Type")) == (200, "application/atom+xml; charset=utf-8")
    feed = etree.fromstring(got.body)
    texts = [
        (entry.findtext("a:title", "", NS), entry.findtext("a:source/a:title", "", NS))
        for entry in feed.iterfind("a:entry", NS)
    ]
    assert texts == [("town/2", "Town & mill"), ("b/1", "b")]
    ids = [one.text for one in feed.iterfind("a:entry/a:id", NS)]
    assert len(set(ids)) == 2
    links = {link.get("rel"): link.get("href") for link in feed.iterfind("a:link", NS)}
    assert (links["self"], links["alternate"]) == (f"{web.origin}/river.atom?max=2", f"{web.origin}/")
    older = etree.fromstring((await web.get(links["next"].removeprefix(web.origin))).body)
    assert [one.text for one in older.iterfind("a:entry/a:title", NS)] == ["town/1"]
    sources = [link.get("href") for link in feed.iterfind("a:entry/a:source/a:link", NS)]
    assert sources == [f"{web.origin}/feeds/town/", f"{web.origin}/feeds/b/"]


async def test_entry_keeps_the_source_that_it_has(web: Web) -> None:
    await make(web, "a")
    source = "<source><id>urn:x:y</id><title>Elsewhere</title></source>"
    await web.component.publish(ALICE, "a", "1", titled("x").replace("</entry>", f"{source}</entry>"))
    feed = etree.fromstring((await web.get("/", accept=ATOM)).body)
    assert [one.text for one in feed.iterfind("a:entry/a:source/a:title", NS)] == ["Elsewhere"]


async def test_empty_service_says_how_to_begin(web: Web) -> None:
    for path in ("/", "/feeds/"):
        assert "curl -X PUT" in (await web.get(path, accept=HTML)).text
    feed = etree.fromstring((await web.get("/river.atom")).body)
    assert feed.find("a:updated", NS) is not None
    assert (await web.get("/river.json")).json["items"] == []
    await make(web, "a")
    assert "curl -X PUT" not in (await web.get("/", accept=HTML)).text


@pytest.mark.parametrize("path", ["/", "/river.json", "/river.atom", "/feeds/", "/feeds/?sort=changed"])
@pytest.mark.parametrize("accept", ["", HTML])
async def test_pages_are_sent_again_only_when_they_have_changed_and_compressed(
    web: Web, path: str, accept: str
) -> None:
    await make(web, "a b c d e f g h")
    await publish(web, *[f"{feed}/1" for feed in "abcdefgh"])
    first = await web.get(path, accept)
    again = await web.get(path, accept, If_None_Match=first.header("ETag"))
    assert (again.status, again.body) == (304, b"")
    zipped = await web.get(path, accept, Accept_Encoding="gzip")
    assert zipped.header("Content-Encoding") in ("gzip", "") and zipped.header("ETag") == first.header("ETag")
    assert zipped.body == first.body or gzip.decompress(zipped.body) == first.body
    await publish(web, "a/2")
    assert (await web.get(path, accept, If_None_Match=first.header("ETag"))).status == 200


# Who sees what.


async def seen_by(web: Web, user: str, feed: str = ALL_FEEDS) -> list[object]:
    """Everything that pages with several feeds show to a user, or to an anonymous caller."""
    headers = {"Authorization": await bearer(web, user, TokenScope.READ, feed)} if user else {}
    river_pages = await walk(web, "/?max=2", **headers)
    changed = await web.get("/feeds/?sort=changed", **headers)
    page = await web.get("/", accept=HTML, **headers)
    hits = await web.get("/search?q=secret", **headers)
    return [
        river_pages,
        [item["id"] for item in changed.json["items"]],
        changed.json["totalItems"],
        shown(page, feeds=True),
        [[feed["feed"]["id"], len(feed["items"])] for feed in hits.json["items"]],
        hits.json["searched"],
    ]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("model", ["whitelist", "authorize"])
async def test_closed_feeds_change_nothing_for_others(web: Web, model: str) -> None:
    """[SF-111] Pages, places, order, counts and searches of a caller are the same as without the closed feed, except
    that feeds that ask for approval are listed."""
    await make(web, "a b c")
    await publish(web, "a/1", "b/1", "c/1", "a/2")
    expected = {user: await seen_by(web, user) for user in ("", BOB, EVE)}
    await make(web, "closed", access_model=model)
    for number in range(5):
        web.component.clock.advance(60)
        await web.component.publish(ALICE, "closed", str(number), titled("secret"))
    await web.component.index()
    await web.component.affiliate(ALICE, "closed", EVE, "outcast")
    for user in ("", BOB, EVE):
        pages, names, total, feeds, hits, searched = await seen_by(web, user)
        listed = ["closed"] if model == "authorize" and user != EVE else []
        assert pages == expected[user][0]
        assert (hits, searched) == ([], expected[user][5])
        assert names == [*listed, *expected[user][1]]  # type: ignore[misc]
        assert (total, feeds) == (len(names), names)  # type: ignore[arg-type]
        text = (await web.get("/", accept=HTML)).text
        assert "secret" not in text


@pytest.mark.usefixtures("way")
async def test_members_see_closed_feeds(web: Web) -> None:
    await make(web, "closed", access_model="whitelist")
    await make(web, "open")
    await publish(web, "closed/1", "open/1", "closed/2")
    await web.component.affiliate(ALICE, "closed", BOB, "member")
    for user, pages in (
        (BOB, [["closed/2", "open/1"], ["closed/1"]]),
        (ALICE, [["closed/2", "open/1"], ["closed/1"]]),
        ("", [["open/1"]]),
        (CAROL, [["open/1"]]),
    ):
        headers = {"Authorization": await bearer(web, user, TokenScope.READ)} if user else {}
        assert await walk(web, "/?max=2", **headers) == pages
        got = await web.get("/", **headers)
        assert ("private" in got.header("Cache-Control")) == bool(user)


async def test_token_of_one_feed_reads_as_nobody(web: Web) -> None:
    await make(web, "closed", access_model="whitelist")
    await publish(web, "closed/1")
    assert (await seen_by(web, ALICE, "closed"))[0] == [[]]


async def test_session_reads_the_river_of_its_user_and_is_in_no_shared_cache(web: Web) -> None:
    """A session for one feed gets the river of everybody, with the name of its user on the page."""
    await make(web, "closed", access_model="whitelist")
    await publish(web, "closed/1")
    everywhere = await sign_in(web, ALICE, TokenScope.READ)
    one_feed = await sign_in(web, ALICE, TokenScope.READ, "closed")
    for browser, expected in ((everywhere, ["closed/1"]), (one_feed, [])):
        for path in ("/", "/feeds/", "/search"):
            page = await browser.get(path, HTML)
            assert page.status == 200 and "private" in page.header("Cache-Control"), path
            assert "Access-Control-Allow-Origin" not in page.headers
        assert shown(await browser.get("/", HTML)) == expected


@pytest.mark.usefixtures("way")
async def test_outcast_does_not_see_an_open_feed(web: Web) -> None:
    await make(web, "a b")
    await publish(web, "a/1", "b/1")
    await web.component.affiliate(ALICE, "b", EVE, "outcast")
    assert await walk(web, "/", Authorization=await bearer(web, EVE, TokenScope.READ)) == [["a/1"]]


@pytest.mark.usefixtures("way")
async def test_items_of_generic_nodes_are_not_in_the_river(web: Web) -> None:
    await web.component.create(ALICE, "keys", kind="generic")
    await web.component.publish(ALICE, "keys", "1")
    assert places(await web.get("/")) == []
    assert shown(await web.get("/", accept=HTML), feeds=True) == ["keys"]


# The list by last change.


def names(got: Got) -> Sequence[str]:
    return [item["id"] for item in got.json["items"]]


@pytest.mark.parametrize("size", [1, 2, 5])
async def test_list_by_last_change(web: Web, size: int) -> None:
    await make(web, "a b c d")
    await publish(web, "b/1", "c/1", "a/1", "c/2")
    path, pages = f"/feeds/?sort=changed&max={size}", []
    while path:
        got = await web.get(path)
        assert got.json["totalItems"] == 4
        pages += names(got)
        path = got.json.get("next", "").removeprefix(web.origin)
    assert pages == ["c", "a", "b", "d"]


@pytest.mark.parametrize("order", ["", "sort=changed&"])
async def test_lists_continue_behind_a_name_with_a_line_feed(web: Web, order: str) -> None:
    """XML and percent-encoded paths may have one in a name."""
    every_name = ["a\nb", "c\rd", "e\tf", "g"]
    for name in every_name:
        await web.component.create(ALICE, name)
        await web.component.publish(ALICE, name, "1")
    for start in (f"/feeds/?{order}max=1", "/?max=1"):
        path, pages = start, []
        while path:
            got = await web.get(path)
            pages += [item.get("feed", item)["id"] for item in got.json["items"]]
            path = got.json.get("next", "").removeprefix(web.origin)
        assert sorted(pages) == every_name


async def test_list_page_has_the_newest_entry_of_each_feed_and_both_orders(web: Web) -> None:
    await make(web, "a b")
    await publish(web, "b/1", "a/1", "b/2")
    await web.component.retract(ALICE, "b", "2")
    for path, order in (("/feeds/", ["a", "b"]), ("/feeds/?sort=changed", ["b", "a"])):
        got = await web.get(path, accept=HTML)
        page = html.fromstring(got.body)
        assert shown(got, feeds=True) == order
        assert page.xpath("//p[@class='headline']/a/text()") == [f"{name}/1" for name in order]
        assert page.xpath("//nav[@class='views']/a/@href") == ["/", "/feeds/?sort=changed", "/feeds/"]
        assert page.xpath("//nav/a[@aria-current='page']/@href") == [path]


async def test_pages_of_the_list_by_last_change_are_linked(web: Web) -> None:
    await make(web, "a b c")
    await publish(web, "a/1", "b/1", "c/1")
    first = html.fromstring((await web.get("/feeds/?sort=changed&max=2", accept=HTML)).body)
    (path,) = first.xpath("//a[@rel='next']/@href")
    got = await web.get(path, accept=HTML)
    assert shown(got, feeds=True) == ["a"]
    assert re.findall('rel="prev" href="([^"]*)"', got.text) == ["/feeds/?sort=changed&amp;max=2"]


@pytest.mark.parametrize("query", ["sort=name", "sort=changed&place=a", "sort=", "place="])
async def test_invalid_parameters_of_the_list_by_last_change(web: Web, query: str) -> None:
    assert (await web.get(f"/feeds/?{query}")).status == 400


async def test_empty_place_is_the_beginning(web: Web) -> None:
    """As in the other lists."""
    await make(web, "a b")
    await publish(web, "a/1", "b/1")
    assert places(await web.get("/?after=")) == ["b/1", "a/1"]
    assert (await web.get("/search?after=")).status == 200


async def test_place_of_a_search_is_checked_without_filters(web: Web) -> None:
    assert (await web.get("/search?after=x")).status == 400


async def test_title_leads_to_the_original_and_the_time_to_our_page(web: Web) -> None:
    """In the river and in both lists. An address that is no link does not become one."""
    await make(web, "a b")
    link = "<link rel='alternate' href='https://blog.example/one'/>"
    await web.component.publish(ALICE, "a", "one", titled("One").replace("</entry>", f"{link}</entry>"))
    evil = "<link rel='alternate' href='javascript:alert(1)'/>"
    await web.component.publish(ALICE, "b", "two", titled("Two").replace("</entry>", f"{evil}</entry>"))
    for path in ("/", "/feeds/", "/search?q=one"):
        await web.component.index()
        page = html.fromstring((await web.get(path, HTML)).text)
        (title, *_) = page.xpath("//main//a[.='One'] | //main//a[.//mark]")
        assert (title.get("href"), "noopener" in title.get("rel")) == ("https://blog.example/one", True), path
        assert "/entries/a/one" in page.xpath("//main//a[@class='when']/@href"), path
        assert "javascript:" not in "".join(page.xpath("//@href"))
        assert set(page.xpath("//main//a[.='Two']/@href")) <= {"/entries/b/two"}

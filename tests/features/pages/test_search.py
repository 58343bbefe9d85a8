"""The search over all feeds: `/search` as a page and as JSON."""

from urllib.parse import quote

import pytest
from lxml import html

from smartfeeds.core.token import TokenScope
from smartfeeds.features.pages import river_requests as river
from smartfeeds.features.pages.highlight import mark_text
from support.bearer import bearer
from support.component import ALICE, BOB, entry
from support.prose import html_entry
from support.web import Got, Web

pytestmark = pytest.mark.shared

HTML = "text/html"


async def publish(web: Web, feed: str, item_id: str, text: str) -> None:
    web.component.clock.advance(60)
    payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{item_id}</title><content>{text}</content></entry>"
    await web.component.publish(ALICE, feed, item_id, payload)


async def filled(web: Web) -> None:
    """Feeds a, b and c with entries about bread, the newest in b."""
    for name in "abc":
        await web.component.create(ALICE, name, title=f"Feed {name}")
    for place, text in {
        "c1": "Nothing here",
        "a1": "Bread and butter",
        "b1": "Stale bread",
        "b2": "Fresh BREAD",
        "b3": "bread rolls",
        "b4": "Butter on bread",
    }.items():
        await publish(web, place[0], place, text)


def hits(got: Got) -> dict[str, list[str]]:
    assert got.status == 200, got
    return {feed["feed"]["id"]: [item["id"] for item in feed["items"]] for feed in got.json["items"]}


async def test_search_finds_entries_in_all_feeds(web: Web) -> None:
    """Grouped by feed: the feed that changed last first, and in it the newest entries. The first search of all begins
    the index of its feeds, and waits for it if it is short.
    """
    await filled(web)
    got = await web.get("/search?q=bread")
    assert hits(got) == {"b": ["b4", "b3", "b2"], "a": ["a1"]}
    assert list(hits(got)) == ["b", "a"]
    assert [feed["more"] for feed in got.json["items"]] == [True, False]
    assert (got.json["count"], got.json["searched"], "next" in got.json) == (2, 3, False)
    all_of_b = await web.get(got.json["items"][0]["url"].removeprefix(web.origin))
    assert [item["id"] for item in all_of_b.json["items"]] == ["b1", "b2", "b3", "b4"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("q=rolls", "1 entry"),
        ("q=butter", "2 entries"),
        ("q=bread", "5 entries"),  # four in a feed, of which three are shown
        ("q=zeppelin", ""),
        ("q=", ""),
    ],
)
async def test_page_says_how_many_entries_were_found(web: Web, query: str, text: str) -> None:
    await filled(web)
    await web.component.index()
    page = html.document_fromstring((await web.get(f"/search?{query}", HTML)).text)
    assert " ".join(page.xpath("string(//p[@role='status'])").split()) == text


async def test_page_counts_no_more_than_one_feed(web: Web) -> None:
    """Each count takes as long as the page of a feed with the same words."""
    await filled(web)
    for number in range(4):
        await publish(web, "c", f"c{number}", "More bread")
    await web.component.index()
    page = html.document_fromstring((await web.get("/search?q=bread", HTML)).text)
    assert " ".join(page.xpath("string(//p[@role='status'])").split()) == "The newest entries of 3 feeds"


async def test_page_that_continues_a_search_counts_nothing(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number would be that of the page."""
    monkeypatch.setattr(river, "FEEDS_WITH_HITS", 1)
    await filled(web)
    await web.component.index()
    page = html.document_fromstring((await web.get("/search?q=butter", HTML)).text)
    assert "The newest entries of 1 feed" in " ".join(page.text_content().split())
    (path,) = page.xpath("//a[@rel='next']/@href")
    assert html.document_fromstring((await web.get(path, HTML)).text).xpath("//p[@role='status']") == []


async def test_search_has_the_syntax_of_a_feed(web: Web) -> None:
    """[SF-015] All words, in any case and order; the other filters of views too."""
    await filled(web)
    await web.component.publish(ALICE, "c", "tagged", entry("x").replace("</entry>", "<category term='food'/></entry>"))
    await web.component.index()
    assert hits(await web.get("/search?q=BUTTER+bread")) == {"b": ["b4"], "a": ["a1"]}
    assert hits(await web.get("/search?q=brea")) == {}
    assert hits(await web.get("/search?category=food")) == {"c": ["tagged"]}
    assert hits(await web.get("/search?q=bread&category=food")) == {}


async def test_search_finds_what_is_there_now(web: Web) -> None:
    """Neither deleted entries nor what an entry said before it was edited."""
    await filled(web)
    await web.component.retract(ALICE, "a", "a1")
    await publish(web, "b", "b4", "Only jam")
    await web.component.index()
    assert hits(await web.get("/search?q=butter")) == {}


async def test_pages_of_a_search_have_each_feed_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(river, "FEEDS_WITH_HITS", 2)
    monkeypatch.setattr(river, "SEARCHED", 4)
    monkeypatch.setattr(river, "FEEDS_AT_ONCE", 3)
    for number in range(12):
        await web.component.create(ALICE, f"f{number:02}")
        await publish(web, f"f{number:02}", "1", "bread" if number % 3 else "jam")
    await web.component.index()
    path, pages = "/search?q=bread", []
    while path:
        got = await web.get(path)
        pages.append(list(hits(got)))
        assert got.json["searched"] <= 4 and len(pages[-1]) <= 2
        path = got.json.get("next", "").removeprefix(web.origin)
    assert [name for page in pages for name in page] == [f"f{n:02}" for n in range(11, -1, -1) if n % 3]


async def test_closed_feeds_are_searched_for_their_readers_only(web: Web) -> None:
    """[SF-111] The number of feeds that were searched does not show them either."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    await web.component.create(ALICE, "asked", access_model="authorize")
    await publish(web, "closed", "1", "bread")
    await publish(web, "asked", "1", "bread")
    await web.component.index()
    alice, bob = [{"Authorization": await bearer(web, user, TokenScope.READ)} for user in (ALICE, BOB)]
    for headers, expected in (({}, {}), (bob, {}), (alice, {"asked": ["1"], "closed": ["1"]})):
        got = await web.get("/search?q=bread", **headers)
        assert (hits(got), got.json["searched"]) == (expected, len(expected))
        assert ("private" in got.header("Cache-Control")) == bool(headers)


@pytest.mark.parametrize(
    "query",
    [
        "q=" + "+".join(f"w{number}" for number in range(33)),
        "q=" + "x" * 9_000,
        "q=" + "+".join("word" for _ in range(10_000)),
        "q=%ED%A0%80",
        "q=%00",
        "q=%21%21",
        "q",
        "kidn=new",
        "order=created",
        "after=x&q=a",
        "after=1_a&after=1_a&q=a",
        "lang=%2A",
    ],
)
async def test_invalid_searches_are_rejected(web: Web, query: str) -> None:
    for accept in ("", HTML):
        assert (await web.get(f"/search?{query}", accept=accept)).status == 400


@pytest.mark.parametrize(
    "words",
    ['"bread"', "bread OR jam*", "bread) OR (", "NEAR(bread)", "tokens:bread", "-bread", "bread'; DROP TABLE item"],
)
async def test_operators_of_the_index_are_plain_words(web: Web, words: str) -> None:
    await filled(web)
    got = await web.get(f"/search?q={quote(words)}")
    assert got.status == 200 and set(hits(got)) <= {"a", "b"}
    assert ("b" in hits(got)) == (words in ('"bread"', "-bread"))


async def test_search_as_a_page_marks_the_words(web: Web) -> None:
    await filled(web)
    await publish(web, "c", "c 9", "long " * 200 + "&lt;b&gt;bread&lt;/b&gt; &amp; more " + "end " * 100)
    await web.component.index()
    got = await web.get("/search?q=Bread", accept=HTML)
    page = html.fromstring(got.body)
    assert page.xpath("//section/h2/a/@href") == ["/feeds/c/", "/feeds/b/", "/feeds/a/"]
    assert page.xpath("//mark/text()") == ["bread", "bread", "bread", "BREAD", "Bread"]
    excerpt = page.xpath("//article")[0].xpath("string(.//*[@class='excerpt'])")
    assert excerpt.startswith("\N{HORIZONTAL ELLIPSIS}") and "<b>bread</b>" in excerpt and len(excerpt) < 300
    assert page.xpath("//section/p[@class='more']/a/@href") == ["/feeds/b/?q=Bread"]
    assert page.xpath("//input[@type='search']/@value") == ["Bread"]
    assert page.xpath("//h3/a/@href")[0] == "/entries/c/c%209"


@pytest.mark.parametrize(
    "text",
    ["<b>x</b> " * 3_000 + "<p>flour</p>", "<i>" * 3_000 + "x" + "</i>" * 3_000 + " flour", "x " * 9_000 + "flour"],
)
async def test_search_shows_a_word_far_down_in_a_text(web: Web, text: str) -> None:
    """A card reads only the beginning of a text, but a hit without its word does not say why it is one."""
    await web.component.create(ALICE, "a")
    await web.component.publish(ALICE, "a", "long", html_entry("Bread", text))
    await web.component.index()
    page = html.fromstring((await web.get("/search?q=flour", accept=HTML)).body)
    assert page.xpath("//*[@class='excerpt']/mark/text()") == ["flour"]


async def test_pages_of_a_search_are_linked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(river, "FEEDS_WITH_HITS", 1)
    await filled(web)
    got = await web.get("/search?q=bread", accept=HTML)
    (path,) = html.fromstring(got.body).xpath("//a[@rel='next']/@href")
    got = await web.get(path, accept=HTML)
    assert html.fromstring(got.body).xpath("//section/h2/a/@href") == ["/feeds/a/"]


async def test_search_without_words_is_a_form(web: Web) -> None:
    for path in ("/search", "/search?q="):
        got = await web.get(path, accept=HTML)
        assert got.status == 200 and "Type one or more words" in got.text
        assert hits(await web.get(path)) == {}
    await web.component.create(ALICE, "a")
    assert "Nothing matches" in (await web.get("/search?q=x", accept=HTML)).text


async def test_search_has_no_other_forms(web: Web) -> None:
    """The header Link names other forms of the same content; the river is none of a search."""
    await filled(web)
    for accept in ("", HTML):
        assert (await web.get("/search?q=bread", accept)).header("Link") == ""


async def test_search_is_sent_again_only_when_it_has_changed(web: Web) -> None:
    await filled(web)
    for accept in ("", HTML):
        first = await web.get("/search?q=bread", accept)
        assert (await web.get("/search?q=bread", accept, If_None_Match=first.header("ETag"))).status == 304


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Bread & <b>", {"bread", "b"}, "<mark>Bread</mark> &amp; &lt;<mark>b</mark>&gt;"),
        ("breadbin bread", {"bread"}, "breadbin <mark>bread</mark>"),
        ("Stra\N{LATIN SMALL LETTER SHARP S}e", {"strasse"}, "<mark>Stra\N{LATIN SMALL LETTER SHARP S}e</mark>"),
        ("<mark>", set(), "&lt;mark&gt;"),
        ("bread_bin", {"bin"}, "bread_<mark>bin</mark>"),
        ("cafe\N{COMBINING ACUTE ACCENT}s", {"caf\xe9s"}, "<mark>caf\xe9s</mark>"),
    ],
)
def test_marked_words_are_those_that_a_search_compares(text: str, words: set[str], expected: str) -> None:
    assert mark_text(text, words) == expected

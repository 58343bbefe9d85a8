"""Pages as documents: what stands in them, whatever the feed holds."""

import re
from dataclasses import replace
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import pytest
from lxml import etree
from markupsafe import escape

from smartfeeds.app.site import feed_forms
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import DETAILS, NodeOptions
from smartfeeds.core.text import words
from smartfeeds.core.urls import subscribe_uri
from smartfeeds.core.view import BARE, SMART, View, parse_view
from smartfeeds.features.pages.article import article
from smartfeeds.features.pages.faces import HUES, hue, initials
from smartfeeds.features.pages.feed_list import feed_list
from smartfeeds.features.pages.feed_page import CACHE_BYTES, FeedPageWriter
from smartfeeds.features.pages.frame import PAGE_POLICY, Frame
from smartfeeds.features.pages.problem_page import for_reader
from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS
from smartfeeds.formats.autodiscovery import LinkType, links_of
from smartfeeds.formats.feed_details import dump_details
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.http.encode import PageAddress
from smartfeeds.http.http_errors import PROBLEM, HttpError, error_reply
from smartfeeds.http.page_writer import ListPage
from smartfeeds.http.queries import read_query
from smartfeeds.http.replies import Reply
from smartfeeds.service.requests import FeedPage, Page, ResultSet
from support.prose import ATOM, PROSE, html_entry, note
from support.xml_work import xml_work

ORIGIN = "https://feeds.example.org"
FRAME = Frame()
LINKED = feed_forms().linked
HOST = "http://host.example"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
KEY_US = 1_767_225_600_000_000


def node(name: str = "notes", kind: NodeKind = NodeKind.FEED, **options: str) -> Node:
    found = {name: (value,) for name, value in options.items()}
    return Node(
        1, name, kind, "a@b.example", KEY_US, NodeOptions(kind, found), total=7, live=5, last_modified_us=KEY_US + 9
    )


def item(payload: str = "", number: int = 1, **more: object) -> Item:
    return Item(number, f"i{number}", KEY_US, KEY_US + number, payload.encode(), "a@b.example")._replace(**more)


def page(*items: Item, query: str = "", of: Node | None = None, older: bool = False, newer: bool = False) -> str:
    of = of or node()
    asked = read_query(query)
    view: View = (parse_view(asked.view) if asked.view else BARE) or SMART
    ends = ("cursor:1_0_00000000", "cursor:2_0_00000000") if items else (None, None)
    answer = FeedPage(of, view, "v", True, Page(of.name, items, ResultSet(3, *ends, 0), False), newer, older)
    return FeedPageWriter("feeds.example.org", LINKED).feed(FRAME, answer, PageAddress(ORIGIN, of.name, asked)).decode()


def tree(text: str) -> etree._Element:
    return etree.HTML(text)


@pytest.mark.needs("documents")
def test_browser_and_aggregator_find_every_form() -> None:
    """[ESS-024] The page links to Atom, RSS, JSON Feed, ESS and the NNO file, and our own reader of such links finds
    them."""
    found = {(link.type, link.href) for link in links_of(page().encode(), f"{ORIGIN}/feeds/notes/")}
    assert found == {
        (LinkType.ATOM, f"{ORIGIN}/feeds/notes.atom"),
        (LinkType.RSS, f"{ORIGIN}/feeds/notes.rss"),
        (LinkType.JSON_FEED, f"{ORIGIN}/feeds/notes.jsonfeed"),
        (LinkType.JSON_FEED, f"{ORIGIN}/feeds/notes.json"),
        (LinkType.ESS, f"{ORIGIN}/feeds/notes.ess"),
        (LinkType.NNO, f"{ORIGIN}/feeds.nno"),
    }
    links = tree(page(query="q=a")).xpath("//link[@rel='alternate']/@href")
    assert "/feeds/notes.jsonfeed?q=a" in links
    assert "/feeds/notes.json?q=a" in links


def imported(**parts: Any) -> Node:
    """A node with what its feed said of itself."""
    link = parts.pop("link", "")
    stored = dump_details(FeedDocument("RSS", link=link, channel=Channel(**parts)))
    return node(title="Notes", description="About", **{DETAILS: stored.text})


def test_page_shows_what_the_feed_says_of_itself() -> None:
    """Title, description, original page, pictures and categories, in the language of the feed."""
    of = imported(link=f"{HOST}/", icon=f"{HOST}/i.png", logo=f"{HOST}/l.png", categories=(("News", ""), ("a<b", "d")))
    of = of._replace(options=NodeOptions(of.kind, {**of.options.stored, "language": ("de",)}))
    shown = tree(page(item(note("a")), of=of))
    assert shown.xpath("//h1[@lang='de']/a/text()") == ["Notes"]
    assert shown.xpath("//p[@class='about'][@lang='de']/text()") == ["About"]
    assert shown.xpath("//div[@id='entries']/@lang") == ["de"]
    links = [(link.get("href"), link.text) for link in shown.xpath("//div[@class='head']/ul[@class='files']//a")]
    assert links == [
        (f"{HOST}/", "Original page"),
        (f"{HOST}/i.png", "Picture of the feed"),
        (f"{HOST}/l.png", "Picture of the feed"),
    ]
    assert shown.xpath("//p[@class='tags'][@lang='de']/span/text()") == ["News", "a<b"]


def test_page_of_an_imported_feed_loads_nothing_from_elsewhere() -> None:
    """Pictures are links, as those of entries are, and no address of a script is one."""
    of = imported(link=f"{HOST}/", icon=f"{HOST}/i.png", logo="javascript:alert(1)")
    shown = tree(page(of=of))
    assert [path for path in shown.xpath("//@src") if not path.startswith("/static/")] == []
    assert shown.xpath("//link[@rel='icon' or @rel='stylesheet']/@href")
    assert not any(path.startswith("http") for path in shown.xpath("//link[@rel='icon' or @rel='stylesheet']/@href"))
    assert "javascript:" not in page(of=of)


def test_page_of_a_feed_without_feed_data_has_no_room_for_it() -> None:
    shown = tree(page(of=node(title="Notes")))
    assert (
        shown.xpath("//div[@class='head']/ul | //div[@class='head']/p[@class='tags'] | //*[@id='entries']/@lang") == []
    )


def test_list_links_to_what_lists_all_feeds() -> None:
    """[ESS-024] The page of all feeds links to the NNO file, and to the OPML file."""
    page_of_none = feed_list(FRAME, ListPage((), 0, "", ""), {}, ())
    found = links_of(page_of_none, f"{ORIGIN}/feeds/")
    assert [(link.type, link.href) for link in found] == [(LinkType.NNO, f"{ORIGIN}/feeds.nno")]
    opml = tree(page_of_none.decode()).xpath("//link[@type='text/x-opml']/@href")
    assert opml == ["/feeds.opml"]


@pytest.mark.parametrize(
    ("name", "view", "wanted"),
    [
        ("notes", "", "xmpp:feeds.example.org?pubsub;action=subscribe;node=notes"),
        ("a b/ä;c", "", "xmpp:feeds.example.org?pubsub;action=subscribe;node=a%20b%2F%C3%A4%3Bc"),
        ("notes", "q=a+b", "xmpp:feeds.example.org?pubsub;action=subscribe;node=notes%3Fq%3Da%2Bb"),
        ("notes?x=1", "q=a", "xmpp:feeds.example.org?pubsub;action=subscribe;node=notes%3Fx%3D1%26q%3Da"),
    ],
)
def test_subscribing_takes_one_press(name: str, view: str, wanted: str) -> None:
    """The address names service, node and view, and nothing of a name can become another part of it (XEP-0147)."""
    assert subscribe_uri("feeds.example.org", name, view) == wanted
    assert tree(page(of=node(name), query=view)).xpath("//a[@class='primary']/@href") == [wanted]


def test_newest_entry_is_on_top() -> None:
    """Items come oldest first, and are read newest first."""
    found = tree(page(item(number=1), item(number=2))).xpath("//article/@data-id")
    assert found == ["i2", "i1"]


def test_addresses_of_pages_are_cursors() -> None:
    """[SF-064] Older is until the first item, newer is since the last one, and the view and length go along."""
    found = tree(page(item(), query="category=x&max=2&until=cursor:9_0_00000000", older=True, newer=True))
    older = "/feeds/notes/?category=x&until=cursor%3A1_0_00000000&max=2"
    newer = "/feeds/notes/?category=x&since=cursor%3A2_0_00000000&max=2"
    assert set(found.xpath("//a[@class='older']/@href")) == {older}
    assert set(found.xpath("//a[@class='newer']/@href")) == {newer}
    assert found.xpath("//link[@rel='next']/@href | //link[@rel='prev']/@href") == [newer, older]
    assert set(found.xpath("//a[@class='newest']/@href")) == {"/feeds/notes/?category=x"}


def test_changes_are_awaited_behind_what_was_read() -> None:
    """The newest page listens from right behind the feed's last change; a page of changes goes on behind its last."""
    assert tree(page(item())).xpath("//*[@id='entries']/@data-since") == ["time:1767225600.00001"]
    fetched = page(item(), query="order=modified&since=time:1")
    assert tree(fetched).xpath("//*[@id='entries']/@data-since") == ["cursor:2_0_00000000"]
    assert tree(fetched).xpath("//*[@id='entries']/@data-stream") == [""]
    assert tree(page(query="order=created&q=a")).xpath("//*[@id='entries']/@data-stream") == [
        "/feeds/notes/?q=a&order=modified"
    ]


def test_generic_node_has_what_it_can_do() -> None:
    """The items of a plain node are no entries: no search, no stream, no other forms."""
    found = tree(page(item(), of=node(kind=NodeKind.GENERIC)))
    assert (
        found.xpath("//main//form | //script[contains(@src, 'live')] | //link[@rel='alternate'] | //main//details")
        == []
    )
    assert len(found.xpath("//article")) == 1


def test_texts_of_strangers_are_text() -> None:
    """Title, description, name, words that were searched: whatever they hold is shown as it is."""
    evil = "</title><script>alert('1\")</script>&amp;"
    shown = page(of=node(evil, title=evil, description=evil), query="q=%3C/q%3E%22%3Cscript%3E&category=%22%3E%3Cb%3E")
    found = tree(shown)
    assert found.xpath("//script[not(@src)]") == []
    assert found.xpath("string(//h1)") == evil
    assert found.xpath("string(//title)").startswith(evil)
    assert found.xpath("//input[@type='search']/@value") == ['</q>"<script>']
    assert found.xpath("//input[@type='hidden']/@value") == ['"><b>']


def test_item_without_payload_is_shown() -> None:
    """What is no Atom entry still has its place and its time."""
    for payload in ("", "<x xmlns='urn:example:x'/>"):
        found = tree(article(FRAME, node(), item(payload)).html)
        assert found.xpath("//time/@datetime") == ["2026-01-01T00:00:00Z"]


def test_times_beyond_all_calendars_are_shown() -> None:
    """The first and the last day that an entry can name make no error."""
    for date in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        text = f"<entry xmlns='{ATOM}'><published>{date}</published></entry>"
        assert tree(article(FRAME, node(), item(text)).html).xpath("//time/@datetime") == [date]


def test_deleted_item_shows_nothing_of_itself() -> None:
    """[SF-013] Of a tombstone that still holds words, none is shown."""
    found = article(FRAME, node(), item(html_entry("Secret", "secret"), deleted=True, revision=2)).html
    assert "ecret" not in found
    assert tree(found).xpath("string(//span[@class='badge gone'])") == "deleted"


def test_edited_item_says_when() -> None:
    """A changed item has both times; one that is as it came has one."""
    assert tree(article(FRAME, node(), item(note("a"))).html).xpath("//*[@class='badge']") == []
    found = tree(article(FRAME, node(), item(note("a"), revision=2, modified_us=KEY_US + 3_600_000_000)).html)
    assert found.xpath("//time/@datetime") == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]


@pytest.mark.parametrize(
    ("payload", "addresses"),
    [
        (note("see https://h.example/a", "<link rel='preview' href='https://h.example/p.png'/>"), ["p.png", "a"]),
        (note("", "<link rel='preview' href='https://h.example/p.png'/>"), ["p.png"]),
        (note("text", "<link rel='preview' href='javascript:alert(1)'/>"), []),
        (
            html_entry(
                "T", "<img src='https://h.example/own.png'>", "<link rel='preview' href='https://h.example/p.png'/>"
            ),
            ["own.png"],
        ),
    ],
)
def test_picture_of_an_entry_is_above_a_text_that_has_none(payload: str, addresses: list[str]) -> None:
    """Without pictures on pages it is a link, as those in texts are."""
    found = tree(article(FRAME, node(), item(payload)).html)
    shown = [address.rpartition("/")[2] for address in found.xpath("//div[contains(@class, 'body')]//a/@href")]
    assert shown == addresses


def test_entry_shows_its_parts() -> None:
    """Author, tags, files with their sizes, source: each where it is, each safe."""
    more = (
        "<link rel='enclosure' href='https://h.example/a.ogg' type='audio/ogg' length='1234567'/>"
        "<link rel='enclosure' href='javascript:alert(1)'/><category term='a b' label='A B'/>"
        "<source><title>Elsewhere</title><link rel='self' href='https://s.example/'/></source>"
        "<author><name>Ann</name><uri>javascript:alert(1)</uri></author>"
    )
    found = tree(article(FRAME, node(), item(note("text", more))).html)
    assert found.xpath("string(//ul[@class='files']/li)") == "a.ogg audio/ogg 1.2 MB"
    assert len(found.xpath("//ul[@class='files']/li")) == 1
    assert found.xpath("//p[@class='tags']/a/@href") == ["/feeds/notes/?category=a%20b"]
    assert found.xpath("//span[@class='source']/a/@href") == ["https://s.example/"]
    assert found.xpath("string(//span[@class='author'])") == "Ann"
    assert found.xpath("//span[@class='author']/a/@href") == ["/feeds/notes/?author=Ann"]
    assert found.xpath("string(//span[contains(@class, 'face')])") == "A"
    assert not any("javascript" in address for address in found.xpath("//@href"))


def test_search_words_are_marked_in_texts_only() -> None:
    """The words of a search are marked in title and text, never in attributes, tags or references."""
    html = "<p title='bread'>Fresh <a href='https://h.example/bread'>BREAD</a> &amp; b&lt;bread&gt; amp breads</p>"
    found = tree(article(FRAME, node(), item(html_entry("Bread <b>", html)), search=words("bread amp p b")).html)
    assert found.xpath("//h2//mark/text()") == ["Bread", "b"]
    assert found.xpath("//div[@class='body']//mark/text()") == ["BREAD", "b", "bread", "amp"]
    assert found.xpath("//div[@class='body']//a/@href") == ["https://h.example/bread"]
    assert found.xpath("string(//div[@class='body'])") == "Fresh BREAD & b<bread> amp breads"


def test_search_hit_behind_the_cut_has_a_snippet() -> None:
    """A text that is too long for the page shows the part around the word that the search found."""
    text = "word " * 20_000 + "needle <i> end"
    found = tree(article(FRAME, node(), item(note(escape(text))), search=words("needle")).html)
    assert found.xpath("//p[@class='excerpt']/mark/text()") == ["needle"]
    assert found.xpath("//div[@class='body']//mark") == []
    assert tree(article(FRAME, node(), item(note(escape(text)))).html).xpath("//p[@class='excerpt']") == []


@pytest.mark.parametrize(
    ("text", "long"), [("short", False), ("x " * 600, True), ("a\n" * 20, True), ("a\n" * 5, False)]
)
def test_long_text_is_clamped_and_leads_to_the_entry(text: str, long: bool) -> None:
    """A text of more than about twelve lines has a link to the page of the entry, which works without a script."""
    found = tree(article(FRAME, node(), item(note(text))).html)
    assert bool(found.xpath("//div[@class='body clamp']")) is long
    assert found.xpath("//a[@class='open']/@href") == (["/entries/notes/i1"] if long else [])


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Ann Miller", "AM"), ("bob", "B"), ("Ana de la Cruz", "AC"), ("<>", "?"), ("", "?"), ("李 雷", "李雷")],
)
def test_author_has_initials_and_a_colour(name: str, letters: str) -> None:
    """Initials are the first letters of the first and the last word; a colour is the same for every spelling."""
    assert initials(name) == letters
    assert hue(name) == hue(name.upper()) in range(HUES)


def test_page_has_its_authors_and_categories_beside_it() -> None:
    """The most frequent authors and categories of the entries of a page come first, and lead to their entries."""
    one = note("a", "<author><name>Ann</name></author><category term='x'/>")
    two = note("b", "<author><name>Bob</name></author><category term='y z'/>")
    found = tree(page(item(two), item(one, 2), item(one, 3)))
    assert found.xpath("//aside//li/a/@href") == ["/feeds/notes/?author=Ann", "/feeds/notes/?author=Bob"]
    assert found.xpath("//aside//p/a/@href") == ["/feeds/notes/?category=x", "/feeds/notes/?category=y%20z"]
    assert tree(page(item(note("c")))).xpath("//aside") == []


def test_subscribe_menu_has_the_address_first_and_a_code() -> None:
    """The address for feed readers comes first, then XMPP with a QR code, then the formats."""
    found = tree(page(query="category=x"))
    assert found.xpath("//input[@id='address']/@value") == [f"{ORIGIN}/feeds/notes.atom?category=x"]
    assert found.xpath("//div[@class='offers']/h2//text()") == [
        "Address for feed readers",
        "XMPP",
        "Formats for programs",
    ]
    assert found.xpath("//figure/*[local-name()='svg']/@viewbox | //figure/*[local-name()='svg']/@viewBox")


@pytest.mark.parametrize("sync", [False, True])
def test_article_parses_its_payload_once(monkeypatch: pytest.MonkeyPatch, sync: bool) -> None:
    """Also where it reads the sync data beside the entry."""
    history = f"<sx:sync xmlns:sx='{FEEDSYNC_NS}' id='a' updates='2'><sx:history sequence='2' by='bob'/></sx:sync>"
    payload = f'<entry xmlns="{ATOM_NS}"><title>T</title><content>c</content>{history if sync else ""}</entry>'
    one = item()._replace(payload=payload.encode())
    with xml_work(monkeypatch) as work:
        text = article(FRAME, node(), one, sync=sync).html
    assert work.parses == 1 and ("bob" in text) is sync


def test_kept_articles_are_bounded_and_fresh() -> None:
    """An item that changed is made anew; what is kept has a bound."""
    pages = FeedPageWriter("feeds.example.org", LINKED, cache_bytes=3_000)
    place = PageAddress(ORIGIN, "notes", read_query(""))
    for number in range(20):
        one = item(note(f"text {number}"), modified_us=KEY_US + number, revision=number + 1)
        answer = FeedPage(node(), BARE, "v", True, Page("notes", (one,), ResultSet(1, "1", "1", 0), False))
        assert f"text {number}" in pages.feed(FRAME, answer, place).decode()
        assert pages.feed(FRAME, answer, place) == pages.feed(FRAME, answer, place)
    assert 0 < pages._articles.size_bytes <= 3_000 < CACHE_BYTES


def test_list_of_feeds_shows_each() -> None:
    """Title, description, number of entries, last change, and the ways on."""
    nodes = (
        node("a", title="A & B", description="<all>"),
        node("c", NodeKind.GENERIC),
        node("d", access_model="whitelist"),
    )
    shown = feed_list(FRAME, ListPage(nodes, 12_345, "/feeds/?after=d", "/feeds/?before=a"), {}, LINKED)
    found = tree(shown.decode())
    assert found.xpath("//h2/a/@href") == ["/feeds/a/", "/feeds/c/", "/feeds/d/"]
    assert found.xpath("//li[1]//h2/a/text()") == ["A & B"]
    assert found.xpath("string(//li[1]/p[1])") == "<all>"
    assert [text for text in found.xpath("//li[2]//a/text()") if text == "RSS"] == []
    assert found.xpath("string(//li[3]//span[@class='badge'])") == "not for everybody"
    assert found.xpath("//nav[@class='pager']/a/@href") == ["/feeds/?before=a", "/feeds/?after=d"]
    assert found.xpath("string(//*[@id='total'])") == "12\u202f345 feeds"


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/event-stream", False),
        ("application/atom+xml", False),
        ("text/html;q=0.5,application/json", False),
    ],
)
def test_problem_is_told_as_the_asker_likes(accept: str, html: bool) -> None:
    """A page for who likes pages better, JSON for everybody else; status and headers are the same."""
    reply = error_reply(HttpError(HTTPStatus.NOT_FOUND, "there is no <such> feed", Allow="GET"))
    told = for_reader(FRAME, accept, reply, navigates=False)
    assert (told.status, told.headers["Allow"]) == (HTTPStatus.NOT_FOUND, "GET")
    if not html:
        assert told == reply
        return
    assert told.media_type == "text/html; charset=utf-8"
    assert told.headers["Content-Security-Policy"] == PAGE_POLICY
    assert tree(told.body.decode()).xpath("string(//h1)") == "Not Found"
    assert "there is no &lt;such&gt; feed" in told.body.decode()


def test_page_of_a_problem_is_made_of_its_values() -> None:
    """Not of its JSON, which is never read again."""
    reply = replace(error_reply(HttpError(HTTPStatus.NOT_FOUND, "no such feed")), body=b"no JSON")
    assert "no such feed" in for_reader(FRAME, BROWSER, reply, navigates=False).body.decode()


def test_answers_that_are_no_problems_are_left() -> None:
    """Only problems are told in another way."""
    reply = Reply(b"{}", "application/json")
    assert for_reader(FRAME, BROWSER, reply, navigates=False) is reply
    assert error_reply(HttpError(HTTPStatus.NOT_FOUND)).media_type == PROBLEM


def test_policy_lets_in_our_own_alone() -> None:
    """Nothing inline, nothing of another host, no frames, no base, no markup made by script."""
    parts = dict(part.strip().split(" ", 1) for part in PAGE_POLICY.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == parts["style-src"] == parts["connect-src"] == parts["form-action"] == "'self'"
    assert parts["img-src"] == "'self' data:"
    assert parts["base-uri"] == parts["frame-ancestors"] == parts["trusted-types"] == "'none'"
    assert "unsafe" not in PAGE_POLICY


def test_pages_need_nothing_inline_and_nothing_of_others() -> None:
    """No page has a style or script in itself, or loads anything that is not ours."""
    shown = page(*(item(payload, number) for number, payload in enumerate(PROSE.values())))
    found = tree(shown)
    assert found.xpath("//@style | //@onclick | //@onload | //script[not(@src)] | //style") == []
    loaded = found.xpath("//script/@src | //img/@src | //link[@rel='stylesheet' or @rel='icon']/@href")
    assert all(re.fullmatch(r"/static/[a-z]+\.[0-9a-f]{16}\.[a-z]+", address) for address in loaded)
    assert len(loaded) == 5


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "pair",
    [
        ("ink", "sheet"),
        ("ink", "ground"),
        ("soft", "sheet"),
        ("soft", "ground"),
        ("accent", "sheet"),
        ("accent", "ground"),
        ("accent", "tint"),
        ("accent-ink", "accent"),
        ("warn", "warn-tint"),
        ("ink", "code"),
        ("soft", "code"),
    ],
    ids="-on-".join,
)
def test_letters_can_be_read(pair: tuple[str, str], dark: bool) -> None:
    """Every colour of letters on every ground has a contrast of 4.5 or more (WCAG 2.2, 1.4.3)."""
    style = (files("smartfeeds.features.pages") / "static" / "style.css").read_text("utf-8")
    themes = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", style)
    colours = {name: values[dark] for name, *values in themes}
    one, other = sorted(luminance(colours[name]) for name in pair)
    assert (other + 0.05) / (one + 0.05) >= 4.5

"""The page of an entry: what it shows, who may read it, and the documents beside it."""

import json

import pytest
from lxml import etree, html

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, DOMAIN
from support.prose import html_entry
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ATOM_NS = "http://www.w3.org/2005/Atom"
THREAD_NS = "http://purl.org/syndication/thread/1.0"
FULL = (
    f"<entry xmlns='{ATOM_NS}' xmlns:thr='{THREAD_NS}' xml:base='https://blog.example/posts/'>"
    "<title>Bread &amp; butter</title>"
    "<author><name>Ann</name><uri>https://ann.example/</uri></author><author><name>Ben</name></author>"
    "<published>2026-01-02T03:04:05Z</published>"
    "<content type='html'>"
    "&lt;p&gt;See &lt;a href='../about'&gt;this&lt;/a&gt; &lt;script&gt;x()&lt;/script&gt;&lt;/p&gt;</content>"
    "<link rel='alternate' href='bread'/>"
    "<link rel='enclosure' href='https://files.example/talk.mp3' type='audio/mpeg' length='1200'/>"
    "<link rel='replies' type='text/html' href='bread#comments' title='3 comments'/>"
    f"<link rel='replies' href='xmpp:{DOMAIN}?;node=comments%2Fbread'/>"
    "<category term='baking' label='Baking'/>"
    "<thr:in-reply-to ref='urn:x:1' href='https://other.example/q'/>"
    "</entry>"
)


async def page_of(web: Web, item_id: str, **headers: str) -> Got:
    return await web.get(f"/entries/notes/{item_id}", accept=BROWSER, **headers)


def tree(got: Got) -> etree._Element:
    assert got.header("Content-Type") == "text/html; charset=utf-8"
    return html.fromstring(got.body)


def meta(page: etree._Element) -> dict[str, str]:
    return {
        one.get("property", one.get("name", "")): one.get("content", "") for one in page.iterfind(".//meta[@content]")
    }


def links(page: etree._Element, rel: str) -> list[str]:
    return [one.get("href", "") for one in page.iterfind(f"head/link[@rel='{rel}']")]


async def test_page_shows_every_part_of_an_entry(notes: Web) -> None:
    """Title, authors, dates, content, files, categories, answers and comments; relative addresses are absolute."""
    await notes.component.publish(ALICE, "notes", "a", FULL)

    got = await page_of(notes, "a")

    page = tree(got)
    assert got.status == 200
    assert page.findtext(".//h1/a") == "Bread & butter"
    assert [one.text_content() for one in page.find_class("author")] == ["Ann", "Ben"]
    assert page.find(".//time").get("datetime") == "2026-01-02T03:04:05Z"
    hrefs = {one.text_content(): one.get("href") for one in page.iter("a")}
    assert hrefs["Bread & butter"] == "https://blog.example/posts/bread"
    assert hrefs["this"] == "https://blog.example/about"
    assert hrefs["talk.mp3"] == "https://files.example/talk.mp3"
    assert hrefs["3 comments"] == "https://blog.example/posts/bread#comments"
    assert hrefs["Comments"] == "/feeds/comments/bread/"
    assert hrefs["Baking"] == "/feeds/notes/?category=baking"
    assert hrefs["https://other.example/q"] == "https://other.example/q"
    assert hrefs["XMPP"] == f"xmpp:{DOMAIN}?;node=notes;item=a"
    assert "x()" not in got.text
    # A player of another host's file would load it from there.
    assert page.find(".//audio") is None


async def test_head_of_the_page_says_what_previews_need(notes: Web) -> None:
    """Canonical and alternate links, description and OpenGraph, with absolute addresses."""
    await notes.component.configure(ALICE, "notes", title="Notes")
    await notes.component.publish(ALICE, "notes", "a b", FULL)

    page = tree(await page_of(notes, "a%20b"))

    url = f"{notes.origin}/entries/notes/a%20b"
    assert page.findtext("head/title") == "Bread & butter - Notes"
    assert links(page, "canonical") == [url]
    assert links(page, "alternate") == ["/entries/notes/a%20b.atom", "/entries/notes/a%20b.json"]
    values = meta(page)
    assert {name: values[name] for name in values if name.startswith(("og:", "description"))} == {
        "description": "See this",
        "og:description": "See this",
        "og:type": "article",
        "og:title": "Bread & butter",
        "og:url": url,
        "og:site_name": "Smart Feeds",
    }


async def test_files_of_this_site_are_played_and_shown(notes: Web) -> None:
    """A player or picture is shown for files of this site only, and such a picture is og:image."""
    files = "".join(
        f"<link rel='enclosure' href='{notes.origin}/files/{name}' type='{media_type}'/>"
        for name, media_type in (("a.ogg", "audio/ogg"), ("b.webm", "video/webm"), ("c.png", "image/png"))
    )
    elsewhere = "<link rel='enclosure' href='https://x.example/d.png' type='image/png'/>"
    await notes.component.publish(ALICE, "notes", "a", html_entry("T", "<p>x</p>", files + elsewhere))

    page = tree(await page_of(notes, "a"))

    sources = [page.find(f".//{tag}").get("src") for tag in ("audio", "video", "figure/img")]
    assert sources == [f"{notes.origin}/files/{name}" for name in ("a.ogg", "b.webm", "c.png")]
    assert len(page.findall(".//figure")) == 3
    assert meta(page)["og:image"] == f"{notes.origin}/files/c.png"


@pytest.mark.parametrize(
    "path", ["/login-basic", "/account", "/files/../login-basic", "/files/a/%2e%2e/%2e%2e/login-basic"]
)
@pytest.mark.parametrize("media_type", ["audio/ogg", "video/webm", "image/png"])
async def test_only_files_of_this_site_are_loaded(notes: Web, path: str, media_type: str) -> None:
    """A browser would request another path with the cookies of the reader, or ask for a password."""
    files = f"<link rel='enclosure' href='{notes.origin}{path}' type='{media_type}'/>"
    await notes.component.publish(ALICE, "notes", "a", html_entry("T", "<p>x</p>", files))

    page = tree(await page_of(notes, "a"))

    loaded = [element.get("src") for tag in ("audio", "video", "img") for element in page.findall(f".//{tag}")]
    assert [source for source in loaded if path.rpartition("/")[2] in (source or "")] == []


async def test_entry_without_title_is_named_by_its_first_words(notes: Web) -> None:
    """The title of the window and the preview have the first words of the text, or the id if there is no text."""
    await notes.component.publish(ALICE, "notes", "a", html_entry("", f"<p>{'word ' * 50}</p>"))
    await notes.component.publish(ALICE, "notes", "b", f"<entry xmlns='{ATOM_NS}'><title/></entry>")
    assert meta(tree(await page_of(notes, "a")))["og:title"] == f"{'word ' * 15}word …"
    page = tree(await page_of(notes, "b"))
    assert meta(page)["og:title"] == "b"
    assert "description" not in meta(page)


async def test_page_shows_the_whole_content(notes: Web) -> None:
    """A text that the page of the feed cuts is whole in the page of the entry."""
    text = "<b>x</b>" * 2_500 + "the end"
    await notes.component.publish(ALICE, "notes", "a", html_entry("Long", text))
    feed = await notes.get("/feeds/notes/", accept=BROWSER)
    assert "the end" not in feed.text
    assert "the end" in (await page_of(notes, "a")).text


async def test_page_links_to_the_entries_beside_it(notes: Web) -> None:
    """In the order of creation, without deleted entries; an edit moves nothing."""
    for item_id in ("a", "b", "c", "d"):
        await notes.component.publish(ALICE, "notes", item_id, html_entry(f"Title {item_id}", "<p>x</p>"))
    await notes.component.retract(ALICE, "notes", "b")
    await notes.component.publish(ALICE, "notes", "a", html_entry("New title", "<p>y</p>"))

    beside = {}
    for item_id in ("a", "b", "c", "d"):
        page = tree(await page_of(notes, item_id))
        beside[item_id] = (*links(page, "prev"), "|", *links(page, "next"))
        assert [one.get("href") for one in page.iterfind(".//nav[@class='pager beside']/a")] == [
            one for one in beside[item_id] if one != "|"
        ]

    path = "/entries/notes/"
    assert beside == {
        "a": ("|", f"{path}c"),
        "b": (f"{path}a", "|", f"{path}c"),
        "c": (f"{path}a", "|", f"{path}d"),
        "d": (f"{path}c", "|"),
    }
    assert "New title" in (await page_of(notes, "c")).text


async def test_deleted_entry_is_gone_with_a_page(notes: Web) -> None:
    """[A-18] 410 with a page that shows nothing of the entry; an unknown entry is 404 with a page."""
    await notes.component.publish(ALICE, "notes", "a", html_entry("Secret title", "<p>Secret</p>"))
    await notes.component.retract(ALICE, "notes", "a")
    gone, unknown = await page_of(notes, "a"), await page_of(notes, "nothing")
    assert (gone.status, unknown.status) == (410, 404)
    assert tree(gone).findtext(".//h1") == "This entry was deleted"
    assert "Secret" not in gone.text
    assert tree(unknown).findtext(".//h1") == "Not Found"


async def test_page_is_sent_again_only_after_a_change(notes: Web) -> None:
    """The tag changes with the entry, its neighbours, the title of the feed, the language and the theme."""
    component = notes.component
    await component.publish(ALICE, "notes", "a", html_entry("A", "<p>x</p>"))
    tags = [(await page_of(notes, "a")).header("ETag")]
    assert (await page_of(notes, "a", If_None_Match=tags[0])).status == 304

    async def changed(**headers: str) -> None:
        got = await page_of(notes, "a", If_None_Match=", ".join(tags), **headers)
        assert got.status == 200
        tags.append(got.header("ETag"))

    await component.publish(ALICE, "notes", "b", html_entry("B", "<p>x</p>"))
    await changed()
    await component.publish(ALICE, "notes", "b", html_entry("C", "<p>x</p>"))
    await changed()
    await component.configure(ALICE, "notes", title="Other")
    await changed()
    await component.publish(ALICE, "notes", "a", html_entry("D", "<p>x</p>"))
    await changed()
    await changed(Accept_Language="de")
    await changed(Cookie="theme=dark")


async def test_address_is_an_atom_entry_and_json_too(notes: Web) -> None:
    """[SF-065] [SF-070] By Accept and by suffix; programs that state no preference get Atom."""
    await notes.component.publish(ALICE, "notes", "a", html_entry("A", "<p>x</p>"))
    for suffix, media_type in (("atom", "application/atom+xml"), ("json", "application/json")):
        by_suffix = await notes.get(f"/entries/notes/a.{suffix}", accept=BROWSER)
        by_accept = await notes.get("/entries/notes/a", accept=media_type)
        assert by_suffix.header("Content-Type") == f"{media_type}; charset=utf-8"
        assert (by_suffix.body, by_suffix.header("ETag")) == (by_accept.body, by_accept.header("ETag"))
    assert (await notes.get("/entries/notes/a", accept="*/*")).header("Content-Type").startswith("application/atom")


@pytest.mark.parametrize("name", ["a.json", "a.atom", ".json", "a.rss"])
async def test_id_that_ends_like_a_suffix_is_an_id(notes: Web, name: str) -> None:
    """The item with the whole id is found first; without it, only .atom and .json behind an id are suffixes."""
    await notes.component.publish(ALICE, "notes", "a", html_entry("Short", "<p>x</p>"))
    await notes.component.publish(ALICE, "notes", name, html_entry("Exact", "<p>x</p>"))
    assert meta(tree(await page_of(notes, name)))["og:title"] == "Exact"
    assert json.loads((await notes.get(f"/entries/notes/{name}.json")).body)["object"]["displayName"] == "Exact"
    await notes.component.retract(ALICE, "notes", name)
    assert (await page_of(notes, name)).status == 410
    for missing in (".atom", "none.json", "a.opml"):
        assert (await page_of(notes, missing)).status == 404


async def test_page_of_a_closed_feed_is_for_its_readers(web: Web) -> None:
    """The page has the access rules of the entry; its answers are private."""
    await web.component.create(ALICE, "inner", access_model="authorize")
    await web.component.publish(ALICE, "inner", "a", html_entry("Inner", "<p>x</p>"))
    closed = await web.get("/entries/inner/a", accept=BROWSER)
    assert closed.status == 401
    assert "Inner" not in closed.text
    stranger = await bearer(web, BOB, TokenScope.READ)
    assert (await web.get("/entries/inner/a", accept=BROWSER, Authorization=stranger)).status == 403
    token = await bearer(web, ALICE, TokenScope.READ)
    page = await web.get("/entries/inner/a", accept=BROWSER, Authorization=token)
    assert (page.status, page.header("Cache-Control")) == (200, "private, no-cache")
    assert "Inner" in page.text


async def test_page_has_the_policy_and_texts_of_strangers_are_text(notes: Web) -> None:
    """No markup of an entry reaches the page unescaped; the policy is that of all pages."""
    evil = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;"
    payload = (
        f"<entry xmlns='{ATOM_NS}'><title>{evil}</title><summary>{evil}</summary>"
        f"<author><name>{evil}</name><uri>javascript:alert(1)</uri></author>"
        f"<category term='{evil}'/><link rel='enclosure' href='javascript:alert(1)' title='{evil}'/>"
        f"<link rel='enclosure' href='https://x.example/' title='{evil}' type='{evil}'/></entry>"
    )
    await notes.component.publish(ALICE, "notes", "a", payload)
    await notes.component.publish(ALICE, "notes", "b", html_entry("B", "<p>x</p>"))
    for item_id in ("a", "b"):
        got = await page_of(notes, item_id)
        assert got.text.count("<script") == got.text.count("<script src=") > 0
        assert "javascript:" not in got.text
        assert "script-src 'self'" in got.header("Content-Security-Policy")


async def test_addresses_have_the_base_path(start_web: WebStarter) -> None:
    """Behind a path of http.base_url every own address has that path."""
    web = await start_web(http={"base_url": "https://h.example/under"})
    await web.component.create(ALICE, "notes")
    for item_id in ("a", "b"):
        await web.component.publish(ALICE, "notes", item_id, html_entry("T", "<p>x</p>"))
    got = await web.get("/under/entries/notes/a", accept=BROWSER)
    page = tree(got)
    own = [one.get("href") for one in page.iter("a", "link") if not one.get("href", "#").startswith(("#", "xmpp:"))]
    assert {address.removeprefix("https://h.example")[:7] for address in own} == {"/under/"}


@pytest.mark.needs("authoring")
async def test_page_has_the_links_that_its_reader_may_use(notes: Web) -> None:
    """Edit, delete and reply, as on the page of the feed. Answers go into the comments of the entry, which others than
    the publishers of the feed may be allowed to write."""
    component = notes.component
    await component.publish(ALICE, "notes", "a", FULL)
    alice, bob = await sign_in(notes, ALICE), await sign_in(notes, BOB)

    async def actions(browser: SignedIn, item_id: str = "a") -> list[str]:
        got = await browser.get(f"/entries/notes/{item_id}", BROWSER)
        return [one.get("href") for one in tree(got).iterfind(".//p[@class='edit-links']/a")]

    own = ["/write/notes/a", "/delete/notes/a"]
    assert await actions(alice) == ["/write/notes/?reply=a", *own]
    assert await actions(bob) == []
    await component.create(ALICE, "comments/bread", publish_model="open")
    assert await actions(alice) == ["/write/comments/bread/?reply=a&of=notes", *own]
    assert await actions(bob) == ["/write/comments/bread/?reply=a&of=notes"]
    assert "edit-links" not in (await page_of(notes, "a")).text
    await component.retract(ALICE, "notes", "a")
    assert await actions(alice) == []

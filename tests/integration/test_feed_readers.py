"""The documents of a feed as feed readers have them: feedparser, newsboat, feedsmith, and rss-parser, which ignores
namespaces.

The feed has an entry for each thing that readers get wrong. Each field that a reader has is compared with the entry.
"""

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import mktime, strptime
from typing import Any
from xml.sax.saxutils import escape

import feedparser
import pytest
from lxml import html

from smartfeeds.core.times import parse_datetime
from support.component import ALICE, DOMAIN
from support.web import Web

DEADLINE_S = 50.0
ATOM_NS = "http://www.w3.org/2005/Atom"
XHTML = "http://www.w3.org/1999/xhtml"
SCRIPT = Path(__file__).parent / "js" / "parse.js"
OWN = "tag:example.org,2026:own"
TITLE = "Notes & <i>more</i>"
PAGE = "https://x.example/page"
US = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """An entry as XML, and what a reader must make of it.

    `content` is HTML. An empty `link` stands for the page of the entry, an empty `published` for the time of creation.
    `authors` are names; without one the feed is the author in Atom.
    """

    inside: str
    title: str = ""
    content: str = ""
    link: str = ""
    published: str = ""
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    comments: str = ""
    id: str = ""
    attributes: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """An entry as a reader has it. None: the reader has no such field, or only a part of it."""

    id: str
    title: str
    link: str
    published_s: int
    content: str
    authors: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    comments: str | None = None


def text(title: str, body: str = "c", more: str = "") -> str:
    return f"<title>{escape(title)}</title><content>{escape(body)}</content>{more}"


def author(**parts: str) -> str:
    return f"<author>{''.join(f'<{name}>{value}</{name}>' for name, value in parts.items())}</author>"


def enclosure(name: str, media_type: str) -> str:
    return f"<link rel='enclosure' href='https://x.example/{name}' type='{media_type}' length='12'/>"


LONG = "<p>lorem ipsum</p>" * 2_000
RICH = "<p>Mixed <em>one</em> then <b>two</b> end</p><p>Second</p>"
CASES: Mapping[str, Case] = {
    "plain": Case(text("Plain", "one\ntwo <b> & three"), "Plain", "one<br>\ntwo &lt;b> &amp; three"),
    "bare": Case("<title>Bare</title>", "Bare"),
    "no-title": Case("<content type='html'>&lt;p&gt;Only text&lt;/p&gt;</content>", "", "<p>Only text</p>"),
    "nothing": Case("<title/><content/>"),
    "html-title": Case(
        "<title type='html'>&lt;b&gt;Bold&lt;/b&gt; &amp;amp; more</title><content>c</content>", "Bold & more", "c"
    ),
    "looks-like-html": Case(text("Use <b> tags, AT&T"), "Use <b> tags, AT&T", "c"),
    "xhtml": Case(
        f"<title type='xhtml'><div xmlns='{XHTML}'>A <em>title</em></div></title>"
        f"<content type='xhtml'><div xmlns='{XHTML}'>{RICH}</div></content>",
        "A title",
        RICH,
    ),
    "summary-only": Case("<title>S</title><summary>Short &lt; text</summary>", "S", "Short &lt; text"),
    "both": Case("<title>B</title><summary>Short</summary><content type='html'>&lt;p&gt;L</content>", "B", "<p>L</p>"),
    "empty-html": Case("<title>E</title><content type='html'></content>", "E"),
    "elsewhere": Case(
        "<title>E</title><content src='https://x.example/doc.pdf' type='application/pdf'/>",
        "E",
        "<a href='https://x.example/doc.pdf'>https://x.example/doc.pdf</a>",
    ),
    "authors": Case(
        text("A", more=author(name="Ann", email="ann@example.org", uri="https://ann.example/") + author(name="Ben")),
        "A",
        "c",
        authors=("Ann", "Ben"),
    ),
    "nameless": Case(text("N", more=author(uri="https://ann.example/")), "N", "c", authors=("https://ann.example/",)),
    "mail": Case(text("M", more=author(name="Ann", email="ann@example.org")), "M", "c", authors=("Ann",)),
    # The first link is no page, and the page has no rel.
    "files": Case(
        text("F", more=f"{enclosure('a.mp3', 'audio/mpeg')}{enclosure('b.png', 'image/png')}<link href='{PAGE}'/>"),
        "F",
        "c",
        PAGE,
        files=("https://x.example/a.mp3", "https://x.example/b.png"),
    ),
    "tags": Case(
        text("T", more="<category term='a' scheme='http://s.example/' label='A label'/><category term='b c'/>"),
        "T",
        "c",
        tags=("a", "b c"),
    ),
    "dates": Case(
        text("D", more="<published>2020-02-03T04:05:06+02:00</published><updated>2021-02-03T04:05:06Z</updated>"),
        "D",
        "c",
        published="2020-02-03T02:05:06Z",
    ),
    "edited": Case(text("E", more="<updated>2021-02-03T04:05:06Z</updated>"), "E", "c"),
    # The service writes such a date anew and stores the text of the publisher in an attribute.
    "other-date": Case(
        text("O", more="<published>Mon, 03 Feb 2020 04:05:06 GMT</published>"),
        "O",
        "c",
        published="2020-02-03T04:05:06Z",
    ),
    "twice": Case(text("First", "a", "<title>Second</title><content>b</content>"), "First", "a"),
    "unicode": Case(text("Žluťoučký 🐎 kůň", "𝒳 é"), "Žluťoučký 🐎 kůň", "𝒳 é"),
    "right-to-left": Case("<title xml:lang='ar'>مرحبا</title><content xml:lang='ar'>نص</content>", "مرحبا", "نص"),
    "relative": Case(
        "<title>R</title><link href='page?x=1&amp;y=2'/><link rel='enclosure' href='../a.ogg' type='audio/ogg'/>"
        "<content type='html' xml:base='deep/'>&lt;a href='a'&gt;l&lt;/a&gt;&lt;img src='/i.png'&gt;</content>",
        "R",
        "<a href='https://b.example/dir/deep/a'>l</a><img src='https://b.example/i.png'>",
        "https://b.example/dir/page?x=1&y=2",
        files=("https://b.example/a.ogg",),
        attributes=" xml:base='https://b.example/dir/'",
    ),
    # Nothing says what these are relative to.
    "no-base": Case(text("N", more="<link href='p'/><link rel='enclosure' href='a.ogg' type='audio/ogg'/>"), "N", "c"),
    "comments": Case(
        text(
            "C",
            more="<link rel='replies' type='text/html' href='https://x.example/c'/>"
            f"<link rel='replies' href='xmpp:s.example?;node=c'/><link rel='alternate' href='{PAGE}'/>",
        ),
        "C",
        "c",
        PAGE,
        comments="https://x.example/c",
    ),
    "own-id": Case(text("I", more=f"<id> {OWN} </id>"), "I", "c", id=OWN),
    "hostile": Case(
        text("H", more="<link href='javascript:alert(1)'/>" + author(name="Eve", uri="javascript:alert(1)")),
        "H",
        "c",
        authors=("Eve",),
    ),
    "long": Case(f"<title>L</title><content type='html'>{escape(LONG)}</content>", "L", LONG),
}


async def output_of(*command: str, data: bytes = b"") -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(data), DEADLINE_S)
    assert process.returncode == 0, (out + err).decode()
    return out


async def in_javascript(web: Web, path: str, parser: str) -> Any:
    node = shutil.which("node")
    assert node, "node is missing: apt-get install nodejs npm"
    assert (SCRIPT.parent / "node_modules").is_dir(), "tools/setup test-all installs the parsers"
    return json.loads(await output_of(node, str(SCRIPT), parser, data=(await web.get(path)).body))


def seconds(time: str) -> int:
    time_us = parse_datetime(time)
    assert time_us is not None, time
    return time_us // US


def rfc822_seconds(time: str) -> int:
    return int(mktime(strptime(time, "%a, %d %b %Y %H:%M:%S GMT")) - mktime(strptime("1970", "%Y")))


async def with_feedparser(web: Web, path: str, _folder: Path) -> tuple[str, str, list[Read]]:
    got = await web.get(path)
    feed = feedparser.parse(got.body, response_headers={"content-type": got.header("Content-Type")})
    assert not feed.bozo, feed.get("bozo_exception")
    entries = [
        Read(
            entry.id,
            entry.get("title", ""),
            entry.get("link", ""),
            int(mktime(entry.published_parsed) - mktime(strptime("1970", "%Y"))),
            entry.content[0].value if "content" in entry else entry.get("summary", ""),
            tuple(one.name for one in entry.get("authors", ())),
            tuple(tag.term for tag in entry.get("tags", ())),
            tuple(file.href for file in entry.enclosures),
            entry.get("comments", "") if path.endswith("rss") else None,
        )
        for entry in feed.entries
    ]
    return feed.feed.title, feed.feed.link, entries


async def with_rss_parser(web: Web, path: str, _folder: Path) -> tuple[str, str, list[Read]]:
    feed = await in_javascript(web, path, "rss-parser")
    entries = [
        Read(
            item.get("guid") or item["id"],
            item.get("title", ""),
            item["link"],
            seconds(item["isoDate"]),
            item.get("content:encoded") or item.get("content") or item.get("summary") or "",
        )
        for item in feed["items"]
    ]
    return feed["title"], feed["link"], entries


async def with_newsboat(web: Web, path: str, folder: Path) -> tuple[str, str, list[Read]]:
    program = shutil.which("newsboat")
    assert program, "newsboat is missing: apt-get install newsboat"
    urls, config, cache = folder / "urls", folder / "config", folder / "cache.db"
    urls.write_text(f"{web.origin}{path}\n")
    config.write_text("")
    await output_of(
        "env", f"HOME={folder}", f"PATH={os.environ['PATH']}", program,
        "-u", str(urls), "-c", str(cache), "-C", str(config), "-x", "reload",
    )  # fmt: skip
    with closing(sqlite3.connect(cache)) as database:
        ((title, link),) = database.execute("SELECT title, url FROM rss_feed").fetchall()
        rows = database.execute("SELECT guid, title, url, pubDate, content FROM rss_item ORDER BY id DESC").fetchall()
    return title, link, [Read(*row) for row in rows]


async def with_feedsmith(web: Web, path: str, _folder: Path) -> tuple[str, str, list[Read]]:
    parsed = await in_javascript(web, path, "feedsmith")
    feed = parsed["feed"]
    read = {"atom": smith_atom, "rss": smith_rss, "json": smith_json}[parsed["format"]]
    link = feed.get("link") or feed.get("home_page_url") or href(feed["links"], "alternate")[0]
    title = feed["title"] if isinstance(feed["title"], str) else feed["title"]["value"]
    return title, link, [read(item) for item in feed.get("items") or feed["entries"]]


def href(links: list[Any], rel: str, kind: str = "") -> tuple[str, ...]:
    return tuple(one["href"] for one in links if one.get("rel") == rel and kind in one.get("type", ""))


def smith_atom(entry: Any) -> Read:
    body = entry.get("content") or entry.get("summary") or {}
    return Read(
        entry["id"],
        entry.get("title", {}).get("value", ""),
        *href(entry["links"], "alternate"),
        seconds(entry["published"]),
        body.get("value", ""),
        tuple(one["name"] for one in entry["authors"]),
        tuple(one["term"] for one in entry.get("categories", ())),
        href(entry["links"], "enclosure"),
        "".join(href(entry["links"], "replies", "html")),
    )


def smith_rss(item: Any) -> Read:
    return Read(
        item["guid"]["value"],
        item.get("title", ""),
        item["link"],
        rfc822_seconds(item["pubDate"]),
        item.get("content", {}).get("encoded") or item.get("description", ""),
        tuple(item.get("dc", {}).get("creators", ())),
        tuple(one["name"] for one in item.get("categories", ())),
        tuple(one["url"] for one in item.get("enclosures", ())),
        item.get("comments", ""),
    )


def smith_json(item: Any) -> Read:
    plain = escape(item.get("content_text") or item.get("summary") or "").replace("\n", "<br>\n")
    return Read(
        item["id"],
        item.get("title", ""),
        item["url"],
        seconds(item["date_published"]),
        item.get("content_html") or plain,
        tuple(one["name"] for one in item.get("authors", ())),
        tuple(item.get("tags", ())),
        tuple(one["url"] for one in item.get("attachments", ())),
    )


def looks(markup: str) -> tuple[str, list[str]]:
    """The text of HTML, and its elements with the addresses in them: parsers write markup anew."""
    root = html.fragment_fromstring(markup, create_parent=True)
    elements = [f"{one.tag} {one.get('href', one.get('src', ''))}" for one in root.iterdescendants()]
    return re.sub(r"\s+", " ", root.text_content()).strip(), elements


Reader = Callable[[Web, str, Path], Awaitable[tuple[str, str, list[Read]]]]
READERS: tuple[tuple[Reader, str], ...] = (
    *((reader, form) for reader in (with_feedparser, with_rss_parser, with_newsboat) for form in ("atom", "rss")),
    *((with_feedsmith, form) for form in ("atom", "rss", "jsonfeed")),
)


@pytest.mark.parametrize(("reader", "form"), READERS)
async def test_readers_have_every_field_of_every_entry(web: Web, tmp_path: Path, reader: Reader, form: str) -> None:
    """[SF-058] [SF-070] [SF-071] [A-153] The newest first, each under its atom:id in all documents, with its own
    page or that of the service."""
    component = web.component
    await component.create(ALICE, "notes", title=TITLE)
    expected = []
    for item_id, case in CASES.items():
        created_s = component.clock.now_us // US
        payload = f"<entry xmlns='{ATOM_NS}'{case.attributes}>{case.inside}</entry>"
        await component.publish(ALICE, "notes", item_id, payload)
        expected.insert(0, (item_id, case, seconds(case.published) if case.published else created_s))
        component.clock.advance(60)
    await component.publish(ALICE, "notes", "deleted")
    await component.retract(ALICE, "notes", "deleted")

    title, link, entries = await reader(web, f"/feeds/notes.{form}?max=100", tmp_path)

    assert (title, link) == (TITLE, f"{web.origin}/feeds/notes/")
    assert len(entries) == len(expected)
    for entry, (item_id, case, published_s) in zip(entries, expected, strict=True):
        own_id = f"xmpp:{DOMAIN}?;node=notes;item={item_id}"
        assert entry.id == (case.id or own_id)
        # Newsboat makes a title from the address of an entry that has none.
        assert entry.title == case.title or (not case.title and reader is with_newsboat), item_id
        assert entry.link == (case.link or f"{web.origin}/entries/notes/{item_id}")
        assert entry.published_s == published_s, item_id
        assert looks(entry.content) == looks(case.content), item_id
        byline = (TITLE,) if form == "atom" else ()
        assert entry.authors in (None, case.authors or byline), item_id
        assert entry.tags in (None, case.tags)
        assert entry.files in (None, case.files)
        assert entry.comments in (None, case.comments)


async def test_ids_of_the_documents_are_the_same(web: Web) -> None:
    """[SF-071] The RSS guid of an entry is its atom:id, whether the entry came with one or not."""
    await web.component.create(ALICE, "notes")
    for item_id in ("plain", "own-id", "bare"):
        payload = f"<entry xmlns='{ATOM_NS}'>{CASES[item_id].inside}</entry>"
        await web.component.publish(ALICE, "notes", item_id, payload=payload)
    ids = []
    for form in ("atom", "rss"):
        feed = feedparser.parse((await web.get(f"/feeds/notes.{form}")).body)
        ids.append([entry.id for entry in feed.entries])
    assert ids[0] == ids[1]

"""Documents of sources: what is read from whatever a server sends."""

import html
import re
from dataclasses import replace
from pathlib import Path

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.times import US_PER_S, format_datetime, parse_datetime
from smartfeeds.errors import FeedError
from smartfeeds.features.documents.ess import write_ess
from smartfeeds.features.polling.reading import MAX_READ_ITEMS, read_source
from smartfeeds.features.polling.source import SourceProgress, SourceSettings, new_source
from smartfeeds.features.polling.source_items import MAX_ITEM_BYTES, MAX_ITEMS, content_digest, fitted
from smartfeeds.features.polling.source_lists import feeds_of
from smartfeeds.formats import atom
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.opml import read_outline
from smartfeeds.formats.xml import parse_stored

URL = "https://blog.example/posts/feed"
T0_US = parse_datetime("2026-05-01T00:00:00Z")


def read(body, charset="", url=URL, *, was_feed=False, **settings):
    source = new_source("blog", URL, T0_US, SourceSettings(**settings))
    source = replace(source, progress=SourceProgress(full_us=T0_US if was_feed else None))
    return read_source(body.encode() if isinstance(body, str) else body, charset, url, source)


def rss(*items, head=""):
    inner = "".join(f"<item>{item}</item>" for item in items)
    return f'<rss version="2.0"><channel><title>A blog</title>{head}{inner}</channel></rss>'


def titles(document):
    return [parse_stored(entry.item.payload).findtext(atom.TITLE) for entry in document.items]


def entry_of(document, place=0):
    return parse_stored(document.items[place].item.payload)


FORMATS = {
    "RSS 2.0": rss("<guid>1</guid><title>a</title>"),
    "RSS 0.91": '<rss version="0.91"><channel><title>t</title><item><title>a</title></item></channel></rss>',
    "RSS 1.0": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
    '<channel><title>t</title></channel><item rdf:about="urn:x:1"><title>a</title></item></rdf:RDF>',
    "Atom 1.0": '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:x:1</id><title>a</title></entry></feed>',
    "JSON Feed 1.1": '{"version": "https://jsonfeed.org/version/1.1", "title": "t",'
    ' "items": [{"id": 1, "title": "a"}]}',
    "h-feed": '<html><body class="h-feed"><p class="h-entry"><a class="u-url p-name" href="/1">a</a></p></body></html>',
}


@pytest.mark.parametrize("name", FORMATS)
def test_content_decides_the_format(name):
    """[SRC-049] No Content-Type is asked."""
    document = read(FORMATS[name])

    assert (document.feed.format, titles(document)) == (name, ["a"])


def charset_feed(encoding, declaration):
    return f'<?xml version="1.0"{declaration}?>{rss("<title>Ünïcödé – “x” €</title>")}'.encode(encoding)


@pytest.mark.parametrize(
    ("encoding", "declaration", "charset", "noted"),
    [
        ("utf-8-sig", ' encoding="iso-8859-1"', "iso-8859-1", False),
        ("cp1252", ' encoding="utf-8"', "windows-1252", False),
        ("cp1252", ' encoding="windows-1252"', "", False),
        ("utf-8", "", "", False),
        ("cp1252", "", "", True),
        ("cp1252", ' encoding="UTF-8"', "utf-8", True),
        ("utf-16", "", "", False),
    ],
    ids=["mark", "header", "declaration", "utf-8", "windows-1252", "lying header and declaration", "utf-16"],
)
def test_charset_is_that_of_mark_header_declaration_or_utf_8(encoding, declaration, charset, noted):
    """[SRC-050]"""
    document = read(charset_feed(encoding, declaration), charset)

    assert titles(document) == ["Ünïcödé – “x” €"]
    assert any("not UTF-8" in note for note in document.notes) is noted


def test_single_wrong_bytes_leave_the_rest_of_the_document_alone():
    """[SRC-050] A cut text, as in feeds that mix sources."""
    body = rss("<title>Ünïcödé</title>").encode().replace("é".encode(), "é".encode()[:1])

    assert titles(read(body)) == ["ÜnïcödÃ"]


def test_entities_are_never_expanded_or_fetched():
    """[SRC-051] HTML's names are read."""
    bomb = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    for dtd in (f'<!ENTITY a0 "lol">{bomb}', '<!ENTITY a9 SYSTEM "file:///etc/passwd">'):
        with pytest.raises(FeedError, match="entit"):
            read(f"<!DOCTYPE rss [{dtd}]>{rss('<title>&a9;</title>')}")
    assert titles(read(rss("<title>caf&eacute;&nbsp;&amp; bar</title>"))) == ["café\xa0& bar"]


def test_bad_items_lose_no_others():
    """[SRC-052] Each is counted and said."""
    large = "x" * (MAX_ITEM_BYTES + 1)
    document = read(
        rss(
            "<guid>4</guid><title>no date</title><pubDate>tomorrow</pubDate>",
            "",
            f"<guid>3</guid><title>large</title><description>{large}</description>",
            "<title>no id</title>",
            "<guid>1</guid><title>good</title><pubDate>Fri, 01 May 2026 00:00:00 GMT</pubDate>",
        )
    )

    assert titles(document) == ["good", "no id", "no date"]
    assert document.left_out == 2
    assert any("is empty" in note for note in document.notes) and any("bytes; the limit" in n for n in document.notes)


def test_document_has_a_thousand_items_at_most():
    """[SRC-053] The newest ones win, dated or not."""
    dated = [
        f"<guid>{n}</guid><title>{n}</title><a:updated>{format_datetime(T0_US + n * US_PER_S)}</a:updated>"
        for n in range(5_000)
    ]
    body = rss(*dated).replace("<rss ", '<rss xmlns:a="http://www.w3.org/2005/Atom" ')
    document = read(body)
    assert titles(document) == [str(n) for n in range(4_000, 5_000)]
    assert any("4000 items" in note for note in document.notes)

    undated = read(rss(*(f"<guid>{n}</guid><title>{n}</title>" for n in range(MAX_ITEMS + 2))))
    assert titles(undated) == [str(n) for n in range(MAX_ITEMS - 1, -1, -1)], "feeds have their newest on top"


@pytest.mark.parametrize(
    ("base", "address"),
    [("", "https://blog.example/posts/1"), (' xml:base="https://cdn.example/x/"', "https://cdn.example/x/1")],
)
def test_relative_addresses_are_those_of_the_base_or_of_the_document(base, address):
    """[SRC-054] The document's address is the last one after redirects."""
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"{base}><entry><id>urn:x:1</id><link href="1"/></entry></feed>'

    assert entry_of(read(body)).find(atom.LINK).get("href") == address


def test_content_is_kept_as_it_came():
    """[SRC-055] Pages clean it."""
    text = '<script>alert(1)</script><p onclick="x()">hello</p>'
    document = read(rss(f"<title>t</title><description><![CDATA[{text}]]></description>"))

    assert entry_of(document).findtext(atom.CONTENT) == text


def test_identity_is_the_id_else_the_link_else_the_content():
    """[SRC-069] White space around it does not count, and an empty id is none."""
    link = "<link>https://blog.example/1</link>"
    a, b = (read(rss(f"<guid> {guid}\n</guid>{link}<title>x</title>")).items[0] for guid in ("1", ""))
    assert a.item.id == digest_id(URL, "1")
    assert (b.item.id, b.link) == (digest_id(URL, "https://blog.example/1"), "blog.example/1")

    json = '{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": " ", "url": "https://blog.example/1"}]}'
    assert read(json).items[0].item.id == b.item.id
    texts = [read(rss(f"<title>{title}</title><description>d</description>")).items[0].item.id for title in "xxy"]
    assert texts[0] == texts[1] != texts[2]


def test_one_id_twice_is_one_item_unless_link_and_content_differ():
    """[SRC-070]"""

    def item(text, link, day):
        date = f"<pubDate>0{day} May 2026 00:00:00 GMT</pubDate>"
        return f"<guid isPermaLink='false'>x</guid><title>{text}</title><link>https://blog.example/{link}</link>{date}"

    assert titles(read(rss(item("b", "2", 2), item("a", "1", 1)))) == ["a", "b"]
    assert titles(read(rss(item("b", "1", 1), item("a", "1", 2)))) == ["a"], "the newest of one link"
    assert titles(read(rss(item("a", "2", 2), item("a", "1", 1)))) == ["a"], "the same content"


@pytest.mark.parametrize(
    ("ignore", "changed", "equal"),
    [
        ((), '<category term="b"/><category term="a"/>', True),
        ((), '<category term="b"/><category term="c"/>', False),
        (("category",), '<category term="z"/>', True),
        (("?n",), '<category term="a"/><category term="b"/><link href="https://a.example/?n=2&amp;p=1"/>', True),
        (("?*",), '<category term="a"/><category term="b"/><link href="https://a.example/?n=2&amp;p=1"/>', True),
        (("?p",), '<category term="a"/><category term="b"/><link href="https://a.example/?n=2&amp;p=1"/>', False),
    ],
)
def test_digest_has_what_counts_as_a_change(ignore, changed, equal):
    """[SRC-071] [SRC-072] The order of elements does not count; names and parameters can be left out."""
    head = '<entry xmlns="http://www.w3.org/2005/Atom"><title>t</title>'
    link = '<link href="https://a.example/?n=1&amp;p=1"/>'
    before = parse_stored(f'{head}<category term="a"/><category term="b"/>{link}</entry>'.encode())
    after = parse_stored(f"{head}{changed if 'link' in changed else changed + link}<id>x</id></entry>".encode())

    assert (content_digest(before, ignore) == content_digest(after, ignore)) is equal


def test_dates_that_cannot_be_true_are_left_out():
    """[SRC-056] More than a day ahead of the time of first sight, also at later polls."""
    ahead = format_datetime(T0_US + 2 * 86_400 * US_PER_S)
    date = f"<pubDate>{ahead}</pubDate>"
    item = read(rss(f"<guid>1</guid><title>t</title>{date}")).items[0].item
    assert item.made_us is not None
    for now_us, created_us in ((T0_US, None), (T0_US + 9 * 86_400 * US_PER_S, T0_US)):
        result = fitted(item, now_us, created_us, "")
        entry = parse_stored(result.payload)
        assert (result.published_us, result.updated_us) == (None, None)
        assert entry.find(atom.PUBLISHED) is None
        assert entry.findtext(atom.UPDATED) == (None if created_us is None else format_datetime(now_us))
    near = fitted(item, T0_US + 86_400 * US_PER_S, None, "")
    assert near == item


PAGE = """<!DOCTYPE html><html><head><title>Site</title></head><body><nav>hello</nav>
<main class="h-feed"><h1 class="p-name">Notes</h1>
<article class="h-entry"><h2><a class="u-url p-name" href="2">Second</a></h2>
<time class="dt-published" datetime="2026-05-02T00:00:00Z"></time><a class="p-author h-card" href="/me">Ann</a>
<div class="e-content"><p>Hello <b>world</b><a href="x">x</a></p></div><a class="p-category">tag</a>
<div class="u-comment h-cite"><a class="u-url" href="/c">c</a><p class="p-name">No entry</p></div></article>
<article class="h-entry"><a class="u-url" href="1">.</a><p class="p-name">First</p>
<time class="dt-published" datetime="someday">x</time><img class="u-photo" src="/i.jpg"></article>
</main><a rel="next" href="?page=2">older</a></body></html>"""


def test_page_with_entries_is_a_feed():
    """[SRC-048] [SRC-054] h-feed; a comment in an entry is no entry."""
    document = read(PAGE)
    second = entry_of(document, titles(document).index("Second"))
    first = entry_of(document, titles(document).index("First"))

    assert (document.feed.title, document.feed.paging.older) == ("Notes", "https://blog.example/posts/feed?page=2")
    assert second.find(atom.LINK).get("href") == "https://blog.example/posts/2"
    assert "Hello <b>world</b>" in second.findtext(atom.CONTENT)
    assert second.find(atom.AUTHOR).findtext("{*}name") == "Ann"
    assert second.findtext(atom.PUBLISHED).startswith("2026-05-02")
    assert [link.get("href") for link in first.iterchildren(atom.LINK)][-1] == "https://blog.example/i.jpg"
    assert len(document.items) == 2


def test_ess_file_names_its_feed():
    """[ESS-001] It has no texts, so it is no source."""
    file = write_ess("https://blog.example/feed", [("Hello", T0_US)], T0_US).data
    with pytest.raises(FeedError, match=r"; it links to https://blog\.example/feed$"):
        read(file)


def test_page_is_no_feed_where_a_feed_was():
    """[SRC-043] [SRC-048] A site that shows its home page instead of the feed. The feeds of the page are named."""
    links = '<link rel="alternate" type="application/rss+xml" href="/rss">'
    with pytest.raises(FeedError, match=r"links to https://blog.example/rss"):
        read(PAGE.replace("<head>", f"<head>{links}"), was_feed=True)
    with pytest.raises(FeedError, match="web page, not a feed"):
        read("<html><body><p>Sign in to the hotel</p></body></html>")
    with pytest.raises(FeedError, match=r"the root element is \{urn:x\}foo; feeds have"):
        read('<foo xmlns="urn:x"/>')


@pytest.mark.parametrize(
    ("body", "paging"),
    [
        (FORMATS["Atom 1.0"].replace("<entry>", '<link rel="next" href="?p=2"/><entry>'), ("?p=2", False, False)),
        (
            rss("<title>a</title>", head='<a:link rel="prev-archive" href="old"/><a:link rel="next" href="?p=2"/>'),
            ("old", True, False),
        ),
        (rss("<title>a</title>", head="<fh:complete/>"), ("", False, True)),
        (rss("<title>a</title>", head="<fh:complete/><fh:archive/>"), ("", False, False)),
        (FORMATS["JSON Feed 1.1"].replace('"title": "t"', '"next_url": "?p=2"'), ("?p=2", False, False)),
    ],
)
def test_links_to_older_pages(body, paging):
    """[SRC-059] [SRC-064] In Atom, RSS and JSON Feed."""
    names = 'xmlns:a="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"'
    found = read(body.replace("<rss ", f"<rss {names} ")).feed.paging
    older = {"?p=2": f"{URL}?p=2", "old": "https://blog.example/posts/old", "": ""}[paging[0]]

    assert (found.older, found.older_is_archive, found.complete) == (older, *paging[1:])


@pytest.mark.parametrize(
    "unit", ["<div class='h-entry'>", "<a class='u-url h-entry' href=x>", "<p", "&", "<!--", "\x00"]
)
def test_broken_and_deep_pages_are_read_or_refused(unit):
    """[SRC-051] [SRC-052] Nothing but FeedError is raised."""
    try:
        document = read(("<html><body>" + unit * 5_000).encode())
    except FeedError:
        return
    assert len(document.items) <= MAX_ITEMS


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "idna", "no-such", "utf-16"]))
def test_anything_is_read_or_refused(body, charset):
    """[SRC-052]"""
    for start in (b"", b"<html>", b"<rss><channel><item>", b'{"version":"https://jsonfeed.org/version/1","items":['):
        try:
            read(start + body, charset)
        except FeedError:
            continue


CORPUS = Path(__file__).parents[2] / "corpus"
OUTLINE = "outlines are lists of items here; feedparser reads no items from them"
DAMAGED = "what is whole is read here; feedparser reads what is before the damage"
DIFFERENT = {
    "fp__illformed__chardet__gb2312.xml": "no encoding is named; some bytes are UTF-8 by chance",
    "fp__illformed__rss_incomplete_cdata.xml": DAMAGED,
    "sm_control_char_0b.xml": DAMAGED,
    "sm_truncated_mid_item.xml": DAMAGED,
    "sm_xml11_document.xml": DAMAGED,
    "fv__ext__feedsync__spec-example-atom-2.xml": "the entry has its conflict inside",
    "sm_atom_deleted_entry_rfc6721.xml": "deletions count here",
    "changelog-atom.xml": "deletions count here",
    "sm_bomb_billion_laughs_rss20.xml": "refused (SRC-051)",
    "sm_xxe_file_rss20.xml": "refused (SRC-051)",
    "sm_deep_nesting_2000_rss20.xml": "refused (SRC-051)",
    "sm_utf7_declared.xml": "refused (SRC-051)",
    "sm_entity_benign_internal.xml": "short entities are read here",
    "sm_duplicate_guids.xml": "the newest of an id is kept (SRC-070)",
    "sm_huge_text_1500k_rss20.xml": "over the limit of an item (SRC-053)",
    "sm_many_items_4000_rss20.xml": "over the limit of items (SRC-053)",
    "sm_opml_include_self.opml": OUTLINE,
    "sm_sse_opml_ordered.opml": OUTLINE,
}


def plain(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


@pytest.mark.parametrize("path", sorted(CORPUS.glob("data*/*.*")), ids=lambda path: path.name)
def test_feedparser_reads_the_same_items(path):
    """[SRC-049] [SRC-050] [SRC-052] feedparser is an independent reader. The exceptions have their reason."""
    if path.suffix in (".tsv", ".txt") or path.name.startswith("."):
        return
    body = path.read_bytes()
    theirs = sorted(plain(entry.get("title", "")) for entry in feedparser.parse(body).entries)
    try:
        document = read(body)
        ours = sorted(
            plain(atom.text_of(entry_of(document, place), atom.TITLE)) for place in range(len(document.items))
        )
    except FeedError:
        ours = []
    is_known = path.name in DIFFERENT or path.name.startswith("fv__opml__")
    assert (ours == theirs) is not is_known or (ours == theirs == [] and path.name.startswith("fv__opml__"))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<feed>" + b"<a/>" * 2_500_000, "the document has more than 400000 tags, which is the limit"),
        (b"<feed>" + b"<a>" * 100_000, "the document is nested too deeply (line 1)"),
        (
            b'<!DOCTYPE f [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><feed>&b;</feed>',
            "the document defines an entity that is more than a short text",
        ),
        (
            b'<!DOCTYPE f [<!ENTITY a "' + b"a" * 1_000 + b'">]><feed>' + b"&a;" * 100_000 + b"</feed>",
            "the document has entities that contain themselves or grow without bound (line 1)",
        ),
        (
            b'<!DOCTYPE f [<!ENTITY a SYSTEM "file:///etc/passwd">]><feed>&a;</feed>',
            "the document defines an external entity, which is never opened",
        ),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": ' + b"[" * 1_000_000, "deeper than 64 levels"),
        (b"<feed " + b" ".join(b'a%d=""' % number for number in range(500)) + b"/>", "more than 256 attributes"),
    ],
    ids=["elements", "depth", "entities", "repeated entity", "external entity", "JSON", "attributes"],
)
def test_bombs_are_refused(body, error):
    """[SRC-051] Small documents that would take much memory or time."""
    with pytest.raises(FeedError, match=re.escape(error)):
        read(body)


def test_one_huge_attribute_is_read_as_it_is():
    """[SRC-051] It takes no more memory than the document, and the item is too large to be stored."""
    inner = '<entry><id>urn:x:1</id><title>t</title><link href="http://x.example/' + "a" * 9_000_000 + '"/></entry>'
    document = read(f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title>{inner}</feed>')
    assert len(document.items) + document.left_out == 1
    assert sum(len(entry.item.payload) for entry in document.items) <= MAX_ITEM_BYTES


def test_reading_ends_after_ten_thousand_items():
    """[SRC-051] Reading takes some 80 us an item, and a document has room for 300,000."""
    items = b",".join(b'{"id": "%d", "content_text": "x"}' % number for number in range(MAX_READ_ITEMS + 5))
    body = b'{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [' + items + b"]}"
    document = read(body)
    assert len(document.items) == MAX_ITEMS
    assert f"the document has more than {MAX_READ_ITEMS} items, of which the first ones were read" in document.notes


@pytest.mark.parametrize(
    ("attributes", "feed"),
    [
        ("type='rss' url='/a'", "/a"),
        ("type='atom' url='/a' htmlUrl='/p'", "/a"),
        ("xmlUrl=' ' type='rss' url='/a'", "/a"),
        ("type='link' url='/p'", ""),
        ("type='rss' htmlUrl='/p'", ""),
    ],
)
def test_list_has_the_feeds_of_its_items(attributes, feed):
    """[SRC-083] tests/unit/formats/test_opml_reader.py has more outlines, and the items made of them."""
    document = read_outline(f"<opml version='2.0'><head/><body><outline text='a' {attributes}/></body></opml>".encode())
    assert [listed.url for listed in feeds_of(document, "")] == [feed] * bool(feed)

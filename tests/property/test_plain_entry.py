"""Plain entries and simple HTML are read without a tree, and the tree says the same of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smartfeeds.core.filters import EntryMeta
from smartfeeds.core.model import Item
from smartfeeds.errors import FeedError
from smartfeeds.formats import additions, atom, atom_feed, plain, plain_activity, xml
from smartfeeds.formats.atom_feed import FeedHead, entry_of_feed
from support.effort import runs

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6).filter(
    lambda text: "\ufffe" not in text and "\uffff" not in text
)
TAGS = ["<p>", "</p>", "<br>", "<b>", "</b>", "<i>", "</i>", '<a href="x&amp;y">', "</a>", "<P>", "<div>", "</div>"]
TEXT = ["<", ">", "&", "&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&ampx", "&#60;", "\t", "\r", " "]
PIECES = st.sampled_from([*TAGS, *TEXT, "<br/>", "<script>"])
PAIRS = st.sampled_from(["<p>%s</p>", "<b>%s</b>", "<em>%s</em>", '<a href="x">%s</a>', "<p>%s", "%s<br />"])
HTML = st.recursive(
    st.lists(WORDS | PIECES, max_size=4).map("".join) | WORDS,
    lambda inner: st.lists(st.tuples(PAIRS, inner).map(lambda row: row[0] % row[1]), max_size=4).map("".join),
    max_leaves=6,
)
TYPES = st.sampled_from(["", ' type="html"', ' type="text"', ' type="TEXT/html "', ' type="xhtml"', ' type="a/b"'])
TEXTS = st.tuples(st.sampled_from(["title", "summary", "content", "rights"]), TYPES, HTML).map(
    lambda row: f"<{row[0]}{row[1]}>{escape(row[2])}</{row[0]}>"
)
PERSONS = st.tuples(
    st.sampled_from(["author", "contributor"]), st.lists(st.sampled_from(["name", "uri", "email"]), max_size=2), WORDS
).map(lambda row: f"<{row[0]}>{''.join(f'<{part}>{escape(row[2])}</{part}>' for part in row[1])}</{row[0]}>")
CATEGORIES = WORDS.map(lambda term: f'<category label="a>b" term={quoteattr(term)}></category>')
OTHERS = [
    '<category scheme="term"></category>',
    '<category x:term="a" xmlns:x="urn:x"></category>',
    '<category xml:term="a"></category>',
    '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<p>b</p></div></content>',
    "<source><author><name>S</name></author><category term='s'></category></source>",
    "<author><name>A<b></b></name></author>",
    "<author>x<name>A</name></author>",
    "<author xml:lang='en'><name>A</name></author>",
    "<title>a<b>c</b></title>",
    "<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='r'></thr:in-reply-to>",
    "<title>xmlns</title>",
    "<title xml:lang='en' type='html' foo='a>b'>&lt;p>first&lt;/p></title><title>second</title>",
    "<title><name>A</name></title>",
    "<title xmlns='urn:x'>a</title>",
    "<x:title xmlns:x='urn:x'>a</x:title>",
    "<content>a&#13;b</content>",
    "<content>a\u2028b</content>",
    "<content>a\u2029b</content>",
    "<link href='http://b.example/?c&amp;d'/>",
    "<title x='&lt;name>' type=' html'>&#9;a&#10;b&#13;&amp;amp;#13;</title>",
    "<summary/><summary type='html'>a&lt;br>b</summary>",
    "<content src='http://b.example/' type='html'/>",
    "<content type='html' xml:base='http://b.example/'>&lt;a href='c'>d&lt;/a></content>",
    "<category term=' &quot;a=&#10;b&quot; ' scheme='x>y' xml:lang='de' label='&amp;lt;'>c</category>",
    "<author><name>A</name><uri>http://b.example/</uri><name>B</name></author><author><email>c@d</email></author>",
    "<author><author><name>A</name></author></author>",
    "<author><name> </name></author><author/>",
    "<contributor><name>A</name></contributor>",
    "<link rel='alternate' href='a'/><link href=' http://b.example/&#9;c ' title='>'/>",
    "<link href='a' xml:base='http://b.example/'/><link xml:base='http://b.example/' href='c' rel='self'/>",
    "<link href='javascript:x'/><link/><link rel='' href='d'/>",
    "<updated>2026-01-02T08:00:00Z</updated><updated>x</updated><published> </published>",
    "<id>&#13;urn:x-smartfeeds:a</id>",
    "<!-- <title>a</title> --><?x y?><![CDATA[<title>b</title>]]>",
    "<x xmlns=''></x>",
    "text",
    "\n  ",
]
ROOTS = st.sampled_from(["", "", "", " xml:lang='de'"])
ENTRIES = st.tuples(ROOTS, st.lists(TEXTS | PERSONS | CATEGORIES | st.sampled_from(OTHERS), max_size=5)).map(
    lambda row: f"<entry xmlns='http://www.w3.org/2005/Atom'{row[0]}>{''.join(row[1])}</entry>"
)
DAMAGE = st.sampled_from(
    [
        b"",
        b"\xff",
        b"<",
        b">",
        b'"',
        b"&",
        b"&#",
        b"&lt;",
        b' x="y"',
        b"<!--a-->",
        b"</entry>",
        b"<title>",
        b"</title>",
        b"a",
    ]
)


@contextmanager
def trees() -> Iterator[None]:
    """Everything is read with a tree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atom, "plain_children", lambda _payload: None)
        patch.setattr(plain_activity, "_ENTRY", lambda _text: None)
        patch.setattr(plain, "_simple_text", lambda _source: None)
        yield


def readings(payload: bytes) -> tuple[EntryMeta, bytes]:
    return atom.read_meta(payload), plain_activity.write_item(Item(1, "a", 1, 2, payload, "ann@a.example"))


def is_canonical(payload: bytes) -> bool:
    try:
        return xml.canonical(xml.parse_stored(payload)) == payload
    except FeedError:
        return False


@pytest.mark.parametrize("child", OTHERS)
def test_child_is_read_as_its_tree(child: str) -> None:
    payload = xml.canonical(xml.parse_payload(f"<entry xmlns='http://www.w3.org/2005/Atom'>{child}</entry>".encode()))
    with trees():
        expected = readings(payload)
    assert readings(payload) == expected


@settings(max_examples=runs(300, 5_000))
@given(ENTRIES)
def test_plain_entry_is_read_as_its_tree(entry: str) -> None:
    payload = xml.canonical(xml.parse_payload(entry.encode()))
    with trees():
        expected = readings(payload)
    assert readings(payload) == expected


@settings(max_examples=runs(300, 5_000))
@given(ENTRIES)
def test_entry_of_an_atom_page_is_that_of_a_tree(entry: str) -> None:
    item = Item(1, "a&b", 1, 2, xml.canonical(xml.parse_payload(entry.encode())), "ann@a.example")
    head = FeedHead("tag:a.example,2026:feed", "Feed", 0, entry_prefix="http://a.example/entries/feed/")
    written = entry_of_feed(head, item)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atom_feed, "is_complete", lambda _payload: False)
        patch.setattr(additions, "_has_text", lambda _payload: False)
        assert written == entry_of_feed(head, item)


@settings(max_examples=runs(300, 5_000))
@given(ENTRIES, st.integers(0, 400), st.integers(0, 40), DAMAGE)
@example("<entry xmlns='http://www.w3.org/2005/Atom'><title>a</title></entry>", 50, 0, b"\xff")
def test_damaged_bytes_are_no_plain_entry_or_that_of_their_tree(
    entry: str, position: int, length: int, damage: bytes
) -> None:
    payload = xml.canonical(xml.parse_payload(entry.encode()))
    payload = payload[:position] + damage + payload[position + length :]
    meta, activity = readings(payload)
    assert json.loads(activity)["id"] == "a"
    if is_canonical(payload):
        with trees():
            assert readings(payload) == (meta, activity)


@settings(max_examples=runs(300, 5_000))
@given(HTML)
@example("a</p>b")
@example("<p>a<b>b</p>c</b>d")
@example("<b>x<p>y</b></p>z")
@example("&amp;lt;b&amp;gt;")
def test_simple_html_has_the_text_of_its_tree(source: str) -> None:
    with trees():
        expected = plain.html_text(source)
    assert plain.html_text(source) == expected


@pytest.mark.parametrize("root", ["", " xml:lang='x'"], ids=["plain", "tree"])
def test_first_text_counts_and_blanks_are_no_names(root: str) -> None:
    entry = (
        f"<entry xmlns='http://www.w3.org/2005/Atom'{root}><summary>a</summary><title/><title>b</title>"
        "<author><name> </name></author><category term=' '/></entry>"
    )
    meta = atom.read_meta(xml.canonical(xml.parse_payload(entry.encode())))
    assert meta == EntryMeta(text="a", body="a", language="x" if root else "")


def test_usual_entry_needs_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = xml.canonical(
        xml.parse_payload(
            b"<entry xmlns='http://www.w3.org/2005/Atom'><id>i</id><title>Rain &amp; sun</title>"
            b"<author><name>Ann</name>"
            b"<uri>xmpp:ann@example.org</uri></author><updated>2026-01-02T08:00:00Z</updated><category term='a&lt;b'/>"
            b"<link href='x'/><content type='html'>&lt;p&gt;In the &lt;b&gt;west&lt;/b&gt; &amp;amp;&lt;br&gt;more"
            b"&lt;/p&gt;</content></entry>"
        )
    )
    monkeypatch.setattr(atom, "_stored", None)
    assert atom.read_meta(payload) == EntryMeta(
        authors=frozenset({"Ann", "xmpp:ann@example.org"}),
        categories=frozenset({"a<b"}),
        text="Rain & sun\nIn the west & more",
        body="Rain & sun",
    )

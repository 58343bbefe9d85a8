"""Plain entries and simple HTML are read without a tree, and the tree says the same of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smartfeeds.core.filters import EntryMeta
from smartfeeds.formats import atom, plain, xml
from smartfeeds.formats.plain_entry import read_plain_entry
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
OTHERS = st.sampled_from(
    [
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
        "<x xmlns=''></x>",
        "text",
        "\n  ",
    ]
)
ROOTS = st.sampled_from(["", "", "", " xml:lang='de'"])
ENTRIES = st.tuples(ROOTS, st.lists(TEXTS | PERSONS | CATEGORIES | OTHERS, max_size=5)).map(
    lambda row: f"<entry xmlns='http://www.w3.org/2005/Atom'{row[0]}>{''.join(row[1])}</entry>"
)


@contextmanager
def trees() -> Iterator[None]:
    """Everything is read with a tree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atom, "read_plain_entry", lambda _payload: None)
        patch.setattr(plain, "_simple_text", lambda _source: None)
        yield


@settings(max_examples=runs(300, 5_000))
@given(ENTRIES)
def test_plain_entry_is_read_as_its_tree(entry: str) -> None:
    payload = xml.canonical(xml.parse_payload(entry.encode()))
    with trees():
        expected = atom.read_meta(payload)
    assert atom.read_meta(payload) == expected


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


def test_usual_entry_needs_no_tree() -> None:
    payload = xml.canonical(
        xml.parse_payload(
            b"<entry xmlns='http://www.w3.org/2005/Atom'><id>i</id><title>Rain &amp; sun</title>"
            b"<author><name>Ann</name>"
            b"<uri>xmpp:ann@example.org</uri></author><updated>2026-01-02T08:00:00Z</updated><category term='a&lt;b'/>"
            b"<link href='x'/><content type='html'>&lt;p&gt;In the &lt;b&gt;west&lt;/b&gt; &amp;amp;&lt;br&gt;more"
            b"&lt;/p&gt;</content></entry>"
        )
    )
    assert read_plain_entry(payload) == EntryMeta(
        authors=frozenset({"Ann", "xmpp:ann@example.org"}),
        categories=frozenset({"a<b"}),
        text="Rain & sun\nIn the west & more",
        body="Rain & sun",
    )


def test_damaged_bytes_are_no_plain_entry() -> None:
    assert read_plain_entry(b'<entry xmlns="http://www.w3.org/2005/Atom"><title>\xff</title></entry>') is None

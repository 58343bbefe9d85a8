"""Relative references in HTML."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.formats import html_links
from smartfeeds.formats.html_links import absolute_html, has_relative
from smartfeeds.formats.links import MAX_BASE_CHARACTERS, rebase

BASE = "http://e.example/a/b?c#d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<a href="x">', '<a href="http://e.example/a/x">'),
        ("<IMG alt='a > b' SRC = /i.png class=c>", "<IMG alt='a > b' SRC = \"http://e.example/i.png\" class=c>"),
        (
            '<a title="<b" href=\'?q=1&amp;r="2"\'>',
            '<a title="<b" href="http://e.example/a/b?q=1&amp;r=&quot;2&quot;">',
        ),
        ('<a href="//k.example/x">', '<a href="http://k.example/x">'),
        ('<a href="">', '<a href="">'),
        (
            '<img srcset="a.png 1x, /b.png 2x,http://x/c 3x">',
            '<img srcset="http://e.example/a/a.png 1x, http://e.example/b.png 2x,http://x/c 3x">',
        ),
        (
            '<video poster="p"><blockquote cite="q">',
            '<video poster="http://e.example/a/p"><blockquote cite="http://e.example/a/q">',
        ),
        # A value without quotes may hold quotes, a quoted one may stand right before the next name.
        ("<a title=it's href=x>", '<a title=it\'s href="http://e.example/a/x">'),
        ("<a title='t'href=x>", "<a title='t'href=\"http://e.example/a/x\">"),
        ('<!-- <a title=" --><a href="x">', '<!-- <a title=" --><a href="http://e.example/a/x">'),
        # These stay.
        ('<a title="x href=y z">', '<a title="x href=y z">'),
        ('<!-- <a href="x"> -->', '<!-- <a href="x"> -->'),
        ("</a href=x>", "</a href=x>"),
        ("<script>'<a href=x>'</script>", "<script>'<a href=x>'</script>"),
        ("<a title=href=x>", "<a title=href=x>"),
        ('<a href="#n">', '<a href="#n">'),
        ('<a href="http://x.example/?a=1&b">', '<a href="http://x.example/?a=1&b">'),
        ('<a href="mailto:a@b"> <a href=javascript:x>', '<a href="mailto:a@b"> <a href=javascript:x>'),
        ('href="x" <!-- href="x" --> a < b href="x">', 'href="x" <!-- href="x" --> a < b href="x">'),
        ('<a data-href="x" hreflang="de">', '<a data-href="x" hreflang="de">'),
        ('<a href="x', '<a href="x'),
    ],
)
def test_references_are_resolved(text, expected):
    """RFC 3986 5. Nothing else of the text changes."""
    assert absolute_html(text, BASE) == expected


@pytest.mark.parametrize(
    ("base", "step", "expected"),
    [
        ("http://e.example/a/", "b/c", "http://e.example/a/b/c"),
        ("http://e.example/a/", None, "http://e.example/a/"),
        ("", "b/", "b/"),
        ("http://e.example/", "file:///etc/", "http://e.example/"),
        ("http://e.example/", "javascript:alert(1)", "http://e.example/"),
        ("http://e.example/", "https://", "http://e.example/"),
        ("", "data:text/html,x", ""),
        ("http://e.example/", "http://k.example/" + "a" * MAX_BASE_CHARACTERS, "http://e.example/"),
    ],
)
def test_base_that_is_unusable_counts_for_nothing(base, step, expected):
    """RFC 3986 5.1"""
    assert rebase(base, step) == expected


def test_without_a_base_references_stay():
    assert absolute_html('<a href="x">', "") == '<a href="x">'


@pytest.mark.parametrize("text", ['<a href="x">', "<img src=x>", "<a href='?x'>", '<a href="/&#58;">'])
def test_relative_references_are_noticed(text):
    assert has_relative(text)
    assert not has_relative(absolute_html(text, BASE))


@pytest.mark.parametrize("text", ['<a href="#x">', '<a href="http://x/">', "a", '<a href="mailto:a">', '<a class="b">'])
def test_other_references_are_not_taken_for_relative_ones(text):
    assert not has_relative(text)


def test_only_the_attribute_itself_is_resolved():
    text = '<img alt="see src=pic.png" src="a.png">'
    assert absolute_html(text, BASE) == '<img alt="see src=pic.png" src="http://e.example/a/a.png">'
    assert not has_relative('<img alt="see src=pic.png" src="http://e.example/a.png">')


class Reader(HTMLParser):
    """Records the start tags and the text of a document; the values of address attributes are left out."""

    def __init__(self):
        super().__init__()
        self.events = []

    def handle_starttag(self, tag, attrs):
        self.events.append(
            (tag, [(name, None if name in ("href", "src", "srcset") else value) for name, value in attrs])
        )

    def handle_data(self, data):
        self.events.append(data)


def events_of(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader.events


WORDS = st.lists(st.sampled_from(["x", " ", "href=y", " src='p'", "<b>", " > ", "&amp;", "=", "/", ","]), max_size=6)
TEXTS = WORDS.map("".join)
QUOTED = TEXTS.flatmap(
    lambda text: st.just(f'"{text}"') if "'" in text else st.sampled_from([f'"{text}"', f"'{text}'"])
)
VALUES = st.one_of(QUOTED, st.sampled_from(["x", "a/b", "x=y", "it's", "#x", "http://k/"]))
ATTRIBUTES = st.one_of(
    st.tuples(st.sampled_from(["href", "SRC", "srcset", "title", "alt"]), st.sampled_from(["=", " = "]), VALUES),
    st.tuples(st.sampled_from(["checked", "href"])),
).map("".join)
TAGS = st.lists(ATTRIBUTES, max_size=4).map(lambda attributes: f"<a {' '.join(attributes)} >")
DOCUMENTS = st.lists(
    st.one_of(TAGS, st.sampled_from(["text href=x ", "</a>", "<!-- <a href=x> -->", "a < b"])), max_size=6
)


@given(DOCUMENTS.map("".join))
def test_filter_lets_every_relative_reference_pass(text):
    """`absolute_html` and `has_relative` do the same without it."""
    results = absolute_html(text, BASE), has_relative(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_links, "_SUSPECT", re.compile(""))
        assert (absolute_html(text, BASE), has_relative(text)) == results


@given(DOCUMENTS.map("".join))
def test_a_parser_reads_the_same_but_for_the_addresses(text):
    assert events_of(absolute_html(text, BASE)) == events_of(text)


PIECES = ["<a ", "<", ">", '"', "'", " href=", "x", "/", "&amp;", " ", "srcset=", ",", "=", "http://k/", "#"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_text_that_is_resolved_once_stays(text):
    once = absolute_html(text, BASE)
    assert absolute_html(once, BASE) == once


def test_text_does_not_outgrow_its_size():
    """A long base is not repeated for each of thousands of references."""
    for n in (10_000, 20_000):
        text = "<a href=x>" * n
        assert len(absolute_html(text, f"http://e.example/{'b' * 2_000}/")) <= 18 * len(text) + 65_536

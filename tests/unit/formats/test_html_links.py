"""Relative references in HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        # These stay.
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

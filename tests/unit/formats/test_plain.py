"""Plain text out of markup."""

import pytest
from lxml import etree

from smartfeeds.formats import plain
from smartfeeds.formats.plain import html_text, markup_text, squeeze


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        (" a \n b ", "a b"),
        ("<p>one</p><p>two</p>", "one two"),
        ("un<b>believ</b>able", "unbelievable"),
        ("a<br>b<BR/>c", "a b c"),
        ("x &amp; y &lt;z&gt; &eacute;", "x & y <z> \u00e9"),
        ("a<script>evil()</script>b<style>p{}</style>c", "a b c"),
        ("<p>open <b>never closed", "open never closed"),
        ("a < b", "a < b"),
        ("<!-- c -->a", "a"),
        ("<div><p>x</div></p>y", "x y"),
        ("<title>x y", "x y"),
        ("x<textarea>y", "x y"),
        ("<img alt='x' src='y'>", ""),
        ("", ""),
        ("<", "<"),
    ],
)
def test_html_text_is_what_a_reader_reads(source, text):
    assert html_text(source) == text


def test_html_text_of_deep_markup_ends():
    assert "x" in html_text("<b>" * 20_000 + "x")


def test_markup_text_remembers_no_long_names():
    """The effects of elements are remembered, and authors choose their names."""
    names = [f"b{number:03}{'x' * 40_000}" for number in range(20)]
    plain._effect_of.cache_clear()

    assert markup_text(etree.fromstring(f"<p>a{''.join(f'<{name}/>' for name in names)}<b>b</b></p>")) == "a b"
    assert plain._effect_of.cache_info().currsize == len({"p", "b"})


WORDS = "word " * 2_000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (f"<p>a < b {WORDS}", f"a < b {WORDS}"),
        (f"<p>a < b {WORDS}</p>", f"a < b {WORDS}"),
        (f"<p>a <3 {WORDS} > b", f"a <3 {WORDS} > b"),
        (f"a <b {WORDS}", f"a <b {WORDS}"),
        (f"a <b {WORDS}>c</b>", "a c"),
        (f"a<script>if (b<c) {{ {WORDS} }}</script>d", "a d"),
        (f"a<!-- <b {WORDS} -->d", "ad"),
    ],
    ids=range(7),
)
def test_html_text_of_long_texts_is_complete(source, text):
    assert html_text(source) == squeeze(text)

"""Plain text out of markup."""

import pytest

from smartfeeds.formats.plain import html_text


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
        ("<img alt='x' src='y'>", ""),
        ("", ""),
        ("<", "<"),
    ],
)
def test_html_text_is_what_a_reader_reads(source, text):
    assert html_text(source) == text


def test_html_text_of_deep_markup_ends():
    assert "x" in html_text("<b>" * 20_000 + "x")

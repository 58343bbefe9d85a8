"""The marks of a search, and the initials and colours of authors."""

import re

import pytest

from smartfeeds.features.pages.faces import HUES, hue, initials
from smartfeeds.features.pages.highlight import EXCERPT_CHARACTERS, mark_html, mark_text, snippet

MILL = frozenset({"mill"})


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("The Mill, the mills & <mill>", "The <mark>Mill</mark>, the mills &amp; &lt;<mark>mill</mark>&gt;"),
        ("nothing", "nothing"),
        ('"mill"', "&quot;<mark>mill</mark>&quot;"),
    ],
)
def test_words_of_a_plain_text_are_marked(text: str, html: str) -> None:
    assert mark_text(text, MILL) == html


def test_tags_and_attributes_have_no_marks() -> None:
    html = '<a href="/mill" title="the mill &lt;mill">mill</a> &lt;mill&gt; <code>mill</code>'
    marked = mark_html(html, MILL)
    assert re.findall("<[^m/][^>]*>", marked) == re.findall("<[^m/][^>]*>", html)
    assert marked.count("<mark>mill</mark>") == 3
    assert marked.replace("<mark>", "").replace("</mark>", "") == html


def test_snippet_is_the_part_around_the_first_word() -> None:
    text = "water " * 200 + "the <mill> " + "flour " * 200
    part = snippet(text, MILL)
    assert "the &lt;<mark>mill</mark>&gt; flour" in part
    assert part.startswith("…")
    assert part.endswith("…")
    assert len(part) < EXCERPT_CHARACTERS + 60
    assert snippet("The mill", MILL) == "The <mark>mill</mark>"
    assert snippet("nothing", MILL) == ""


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Ann Miller", "AM"), ("Bob", "B"), ("ana maria de la cruz", "AC"), ("(Zoë) É.", "ZÉ"), ("ليلى", "ل"), ("—", "?")],
)
def test_initials(name: str, letters: str) -> None:
    assert initials(name) == letters


def test_colour_of_a_name_is_stable() -> None:
    assert hue("Ann") == hue("ANN") == 3
    assert {hue(f"name {number}") for number in range(200)} == set(range(HUES))

"""Pages with crowds of attributes are not parsed, whatever the attributes look like (xep-map 246)."""

import re

import pytest

from smartfeeds.errors import FormatError
from smartfeeds.formats import html_page
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.crowds import TAG_ATTRIBUTES
from smartfeeds.formats.html_page import parse_page
from smartfeeds.formats.web_page import read_page

URL = "https://a.example/"
# One attribute; its name is unique.
SPELLINGS = {
    "name": " a{}",
    "empty": ' a{}=""',
    "double": ' a{}="v"',
    "single": " a{}='v'",
    "bare": " a{}=v",
    "quote inside": " a{}=v'w\"",
    "markup inside": " a{}='<b c=\"d\">'",
    "blanks": "\n\ta{} \n=\f 'v'",
    "slashes": "/a{}",
    "colon": " x:a{}='v'",
    "tag as name": " <a{}",
    "beyond ASCII": " \u00e4{}='v'",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("end", [">", "/>", ""])
def test_crowd_of_attributes_is_found(monkeypatch: pytest.MonkeyPatch, spelling: str, end: str) -> None:
    crowd = "".join(spelling.format(number) for number in range(TAG_ATTRIBUTES + 2))
    page = f"<html><head><link rel=alternate href=x><meta{crowd}{end}".encode()
    monkeypatch.setattr(html_page, "parse_xml", lambda *_: pytest.fail("it was parsed"))
    assert parse_page(page) is None
    assert links_of(page, URL) == ()
    with pytest.raises(FormatError):
        read_page(page, "utf-8", URL)


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_page_below_the_limit_is_read(spelling: str) -> None:
    attributes = "".join(spelling.format(number) for number in range(TAG_ATTRIBUTES - 2))
    assert parse_page(f"<html><body{attributes}><p>x".encode()) is not None


@pytest.mark.parametrize(
    "page",
    [
        "<p>" + "word a='b' " * 1_000,
        "<img src='data:" + "a b=c " * 1_000 + "'>",
        "<script>" + "var a='b'; " * 1_000 + "</script>",
        "<a b='c'>" * 1_000,
    ],
    ids=["text", "value", "script", "tags"],
)
def test_ordinary_page_is_no_crowd(page: str) -> None:
    assert parse_page(f"<html><body>{page}".encode()) is not None


def test_search_looks_at_each_byte_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags inside a tag are attributes of it: the next search begins behind them."""
    tag = b"<a" + b" <a" * (TAG_ATTRIBUTES - 1) + b">"
    found = [match.span() for match in re.finditer(html_page._TAG, tag * 3)]
    assert len(found) == 3

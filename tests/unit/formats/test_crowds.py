"""Elements with very many attributes are refused before the document is parsed (xep-map 246)."""

from typing import Any

import pytest

from smartfeeds.errors import FeedError
from smartfeeds.formats import loader
from smartfeeds.formats.crowds import TAG_ATTRIBUTES, CrowdCheck, crowd_fault
from smartfeeds.sync import document_reader
from smartfeeds.sync.document_reader import FeedReader, form_of

ATTRIBUTES = TAG_ATTRIBUTES + 1


def feed(count: int, quote: str = '"', attribute: str = "a") -> str:
    crowd = "".join(f" {attribute}{number}\n= {quote}v>{quote}" for number in range(count))
    return f"<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><x{crowd}/></feed>"


def no_parser(*_args: Any, **_options: Any) -> Any:
    raise AssertionError("the document reached libxml2")


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize(
    ("codec", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16"),
        ("utf-16-be", "utf-16"),
        ("utf-32", "utf-32"),
        ("iso2022_jp", "iso-2022-jp"),
    ],
)
def test_a_crowded_element_of_a_whole_document_is_never_parsed(
    monkeypatch: pytest.MonkeyPatch, quote: str, codec: str, declared: str
) -> None:
    """Import, convert and nno read by `load`. The names hold bytes that look like markup in UTF-16."""
    name = "a" if codec == "iso2022_jp" else "\u4e3d\u4e22"
    text = (f"<?xml version='1.0' encoding='{declared}'?>" if declared else "") + feed(ATTRIBUTES, quote, name)
    data = text.encode(codec)
    monkeypatch.setattr(loader, "strict_parser", no_parser)
    with pytest.raises(FeedError, match="more than 256 attributes"):
        loader.load(data)


def test_a_crowded_root_does_not_reach_the_parser_that_tells_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """`form_of` parses the first bytes of a document."""
    monkeypatch.setattr(document_reader, "PullParser", no_parser)
    with pytest.raises(FeedError, match="more than 256 attributes"):
        form_of(feed(ATTRIBUTES).encode())


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
def test_a_crowded_element_is_found_in_pieces(step: int) -> None:
    """Mirrors read a document as it comes; the parser never gets more attributes than allowed."""
    data = feed(20 * ATTRIBUTES).encode()
    reader = FeedReader()
    with pytest.raises(FeedError, match="more than 256 attributes"):
        list(reader.read(data[start : start + step] for start in range(0, len(data), step)))


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        feed(TAG_ATTRIBUTES),
        "<a><![CDATA[" + '{"a": "b"}, ' * ATTRIBUTES + "]]></a>",
        "<a><!-- " + "it's 'a' = \"b\" " * ATTRIBUTES + "--></a>",
        "<a>" + "<b c='d'/>" * (2 * ATTRIBUTES) + "</a>",
        "<a>" + " b='c'" * ATTRIBUTES + "</a>",
        f"<a b='{'c = ' * ATTRIBUTES}'/>",
    ],
)
def test_quotes_in_texts_and_many_small_elements_are_no_crowd(text: str, step: int) -> None:
    """Only a start tag has attributes."""
    data = text.encode()
    check = CrowdCheck()
    for start in range(0, len(data), step):
        check.feed(data[start : start + step])


def test_the_check_keeps_nothing_but_an_unfinished_start_tag() -> None:
    """Linear cost: what a piece has closed is not looked at again, and a tag without an end is bounded."""
    check = CrowdCheck()
    for piece in (b"<a b='c'>" + b"text" * 1000, b"<![CDATA[" + b"x" * 1000, b"]]>", b"<!-- '", b"-->", b"<b "):
        check.feed(piece)
        assert len(check._unfinished) < 16
    piece = b"e='" + b"x" * (1 << 20) + b"' "
    for _ in range(3):
        check.feed(piece)
    with pytest.raises(FeedError, match="a start tag is larger than"):
        check.feed(piece)


def test_the_search_is_linear() -> None:
    """What almost is a crowd, many times, is passed over at once: this would never end with a quadratic search."""
    almost = b"<a" + b" b='c'" * TAG_ATTRIBUTES
    for data in (almost * 1000, b"<a " + b" " * 2_000_000 + b"=" * 300, b"<" * 2_000_000 + b"=" * 300):
        assert crowd_fault(data) == ""


@pytest.mark.parametrize("gap", [0, 1, 2, 640, 1_284, 1_285, 1_286, 1_287, 3_000])
@pytest.mark.parametrize("tags", [0, 1, 2, 40])
def test_shortest_crowd_is_found_behind_tags_and_text_of_any_length(tags: int, gap: int) -> None:
    """The search skips tags that are too short. It must not skip the shortest tag with too many attributes."""
    before = b"<r>" + b"<i></i>" * tags + b"x" * gap
    crowd = b"<a" + b' a=""' * ATTRIBUTES
    most = b"<a" + b' a=""' * TAG_ATTRIBUTES

    assert crowd_fault(before + crowd + b"/><b/></r>")
    assert crowd_fault(before + crowd + b"<b/></r>")
    assert not crowd_fault(before + most + b"/>" + b"=" * TAG_ATTRIBUTES + b"<b/></r>")

"""Text that may travel in XML, and the words of a search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.core.text import (
    ForbiddenCharacterError,
    attribute,
    cut,
    escape,
    is_nss,
    is_xml_text,
    to_nss,
    wire_bytes,
    words,
)

FORBIDDEN = ["\0", "\x08", "\x0b", "\x1f", "\ud800", "\udfff", "\ufffe", "\uffff"]
ALLOWED = "\t\n\r \x7f\x85é東😀\ufffd\ue000"


@pytest.mark.parametrize("bad", FORBIDDEN)
def test_escape_of_a_forbidden_character_raises(bad: str) -> None:
    assert not is_xml_text(f"a{bad}b")
    with pytest.raises(ForbiddenCharacterError):
        escape(f"a{bad}b")
    with pytest.raises(ForbiddenCharacterError):
        attribute(f"a{bad}b")


@pytest.mark.parametrize("text", ["", "plain", ALLOWED, "<a href='x' q=\"y\">&amp;]]></a>", "a\r\nb\tc"])
def test_escaped_text_comes_back_from_a_parser(text: str) -> None:
    """[xep-map 55]"""
    assert is_xml_text(text)
    for quote in "'\"":
        element = etree.fromstring(f"<a b={quote}{attribute(text)}{quote}>{escape(text)}</a>")
        assert (element.text or "", element.get("b")) == (text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("Hello, hello WORLD", {"hello", "world"}),
        ("Straße ﬁne ＡＢＣ", {"strasse", "fine", "abc"}),
        ("snake_case, don't; x2", {"snake", "case", "don", "t", "x2"}),
        ("東京 Ёлка", {"東京", "ёлка"}),
    ],
)
def test_words_are_folded_letters_and_digits(text: str, expected: set[str]) -> None:
    assert words(text) == expected


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_words_of_ascii_are_those_of_any_text(text: str) -> None:
    """They are found in another way. The letter in front, which is not ASCII, makes a text any text."""
    assert words(f"\u00e9 {text}") - {"\u00e9"} == words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alice@example.org", "alice@example.org"),
        ("()+,-.:=@;$_!*'", "()+,-.:=@;$_!*'"),
        ("a~b/c d%", "a%7Eb%2Fc%20d%25"),
        ("\u00e9", "%C3%A9"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_to_nss_encodes_what_rfc_2141_does_not_allow(text: str, expected: str) -> None:
    """[A-51] RFC 2141 2.2 leaves out the tilde; a lone surrogate must not raise."""
    assert to_nss(text) == expected
    assert is_nss(expected)


def test_forbidden_character_error_shows_the_text() -> None:
    with pytest.raises(ForbiddenCharacterError) as caught:
        attribute("a\x00b")

    assert caught.value.args == ("a\x00b",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a b", "a b"), ("a b ", "a b"), ("a b c", "a …"), ("a      c", "a…"), ("a\n\n\n\n", "a"), ("abcd", "ab…")],
)
def test_cut_text_ends_with_an_ellipsis_if_something_is_missing(text: str, shown: str) -> None:
    assert cut(text, 3) == shown


@pytest.mark.parametrize(
    ("xml", "size_bytes"),
    [(b"", 0), (b"<a></a>", 7), (b'<a b="c"></a>', 23), (b'<a>it\'s "it"</a>', 31), (b"\"'" * 1_000, 12_000)],
)
def test_size_on_the_wire_has_every_quotation_mark_escaped(xml: bytes, size_bytes: int) -> None:
    """`&quot;` and `&apos;` have six bytes."""
    assert wire_bytes(xml) == size_bytes == len(xml.replace(b'"', b"&quot;").replace(b"'", b"&apos;"))

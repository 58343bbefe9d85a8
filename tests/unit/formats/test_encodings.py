"""The encoding of documents from the web: the same for polls, imports and `convert` [SRC-050]."""

import codecs

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.encodings import codec_of, in_utf8, utf8_page
from smartfeeds.formats.feed_reader import document_bytes
from smartfeeds.formats.loader import load
from support.encodings import CASES, RUSSIAN, WESTERN, feed


@pytest.mark.parametrize(("body", "charset", "text", "noted"), CASES.values(), ids=CASES.keys())
def test_encoding_is_found(body: bytes, charset: str, text: str, noted: bool) -> None:
    document = read_document(body, "", charset)
    assert (document.title, document.items[0].payload.root.findtext(atom.TITLE)) == (
        text if "\ufffd" not in text else document.title,
        text,
    )
    assert bool(document.repairs) is noted, document.repairs


@pytest.mark.parametrize(("body", "charset", "text", "noted"), CASES.values(), ids=CASES.keys())
def test_utf8_stays_what_it_is(body: bytes, charset: str, text: str, noted: bool) -> None:
    """`load` may get what was recoded before."""
    data = in_utf8(body, charset).data
    assert in_utf8(data, charset) == (data, [], False)
    assert load(data).root.findtext(".//item/title") == text


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *[(name, "utf-8") for name in ("utf8", "UTF_8", "Utf-8", '"utf-8"', "'utf-8'", " utf-8 ", "utf-8,utf-8")],
        *[(name, "cp1251") for name in ("windows1251", "Windows_1251", "win-1251", "cp-1251", "x-cp1251", "CP1251")],
        *[(name, "cp1252") for name in ("latin1", "ISO_8859-1", "us-ascii", "ANSI", "windows-1252")],
        *[(name, "koi8-r") for name in ("KOI8-R", "koi8r", "koi8_r")],
        *[(name, "cp949") for name in ("ks_c_5601", "EUC-KR", "ksc5601")],
        *[(name, "cp932") for name in ("sjis", "Shift-JIS", "Windows-31J")],
        *[(name, "gb18030") for name in ("gb2312", "GB_2312", "x-gbk", "cp936")],
        *[(name, "") for name in ("", "none", "utf-7", "hex", "rot13", "base64", "idna", "x" * 10_000, "é", "\0")],
    ],
)  # fmt: skip
def test_names_are_known_however_they_are_spelt(name: str, codec: str) -> None:
    assert codec_of(name) == (codec and codecs.lookup(codec).name)


@pytest.mark.parametrize("label", ["utf-7", "UTF_7", "unicode-1-1-utf-7"])
def test_utf7_is_refused(label: str) -> None:
    """[SRC-051]"""
    with pytest.raises(FeedError, match="UTF-7"):
        read_document(feed("+ADw-script+AD4-", label).encode())
    assert read_document(feed("+ADw-b+AD4-").encode(), "", label).title == "+ADw-b+AD4-"


def test_ebcdic_is_refused() -> None:
    with pytest.raises(FeedError, match="EBCDIC"):
        read_document(feed("x", "cp037").encode("cp037"))


@pytest.mark.needs("documents")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_json_feed_is_read_in_the_encoding_that_its_bytes_show(encoding: str) -> None:
    """RFC 8259 8.1 allows UTF-8 only; a mark must not be an error."""
    body = '{"version": "https://jsonfeed.org/version/1.1", "title": "Café – €", "items": []}'.encode(encoding)
    document = read_document(body)
    assert document.title == "Café – €"
    assert bool(document.repairs) is (encoding == "cp1252")


def test_sync_documents_are_not_guessed() -> None:
    """Two services that merge versions must read the same text of the same bytes."""
    right = feed(RUSSIAN, "windows-1251", "\n").encode("cp1251")
    assert RUSSIAN in document_bytes(right, "").decode()
    guess = feed(WESTERN, "utf-8").encode("cp1252")
    assert document_bytes(guess, "") == guess


def test_page_declares_its_encoding_in_its_meta_element() -> None:
    page = f'<html><head><meta charset="windows-1251"><title>{RUSSIAN}</title>'
    assert RUSSIAN in utf8_page(page.encode("cp1251"), "").decode()
    assert RUSSIAN in utf8_page(page.encode(), "").decode()

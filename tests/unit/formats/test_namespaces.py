"""Feeds in misspelt namespaces are read as the format that they are, with a note [SRC-051]."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.loader import load
from smartfeeds.formats.xml import parse_stored

ATOM = (
    "<feed {}><title>T</title><entry><id>urn:x-test:1</id><title>one</title><updated>2024-03-05T10:15:00Z</updated>"
    "<summary>text</summary></entry></feed>"
)
RSS = (
    "<rss version='2.0' {}><channel><title>T</title><item><guid>urn:x-test:1</guid><title>one</title>"
    "<description>text</description></item></channel></rss>"
)
RDF = (
    "<rdf:RDF xmlns:rdf='{}' xmlns='{}'><channel><title>T</title></channel><item rdf:about='urn:x-test:1'>"
    "<title>one</title><description>text</description></item></rdf:RDF>"
)
RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS10_NS = "http://purl.org/rss/1.0/"


def xmlns(name: str) -> str:
    return f"xmlns='{name}'"


MISSPELT = {
    "Atom with https": ATOM.format(xmlns("https://www.w3.org/2005/Atom")),
    "Atom with a slash": ATOM.format(xmlns("http://www.w3.org/2005/Atom/")),
    "Atom with a number sign": ATOM.format(xmlns("http://www.w3.org/2005/Atom#")),
    "Atom in lower case": ATOM.format(xmlns("http://www.w3.org/2005/atom")),
    "Atom without www": ATOM.format(xmlns("http://w3.org/2005/Atom")),
    "Atom with blanks": ATOM.format(xmlns(" http://www.w3.org/2005/Atom ")),
    "Atom without a namespace": ATOM.format(""),
    "Atom 0.3 without the number sign": ATOM.format(xmlns("http://purl.org/atom/ns") + " version='0.3'"),
    "draft of Atom": ATOM.format(xmlns("http://purl.org/atom/ns#draft-ietf-atompub-format-08")),
    "Atom with a prefix": ATOM.replace("<", "<a:").replace("<a:/", "</a:").format("xmlns:a='https://w3.org/2005/Atom'"),
    "RSS in the namespace of Atom": RSS.format(xmlns("http://www.w3.org/2005/Atom")),
    "RSS in an unknown namespace": RSS.format(xmlns("https://blog.example/rss")),
    "RSS in RSS 1.0 with https": RSS.format(xmlns("https://purl.org/rss/1.0/")),
    "RDF without a slash": RDF.format(RDF_NS, RSS10_NS.rstrip("/")),
    "RDF with https": RDF.format(RDF_NS, RSS10_NS.replace("http", "https")),
    "RDF without its number sign": RDF.format(RDF_NS.rstrip("#"), RSS10_NS),
    "RSS 0.90 without a slash": RDF.format(RDF_NS, "http://my.netscape.com/rdf/simple/0.9"),
    "content with https": RSS.format("xmlns:c='https://purl.org/rss/1.0/modules/content/'").replace(
        "description>", "c:encoded>"
    ),
}


@pytest.mark.parametrize("document", MISSPELT.values(), ids=MISSPELT.keys())
def test_misspelt_namespace_costs_no_item(document: str) -> None:
    read = read_document(document.encode())
    assert [item.id for item in read.items] == ["urn:x-test:1"]
    assert read.title == "T"
    assert not read.partial, read.repairs
    entry = parse_stored(read.items[0].payload)
    assert [atom.text_of(entry, name) for name in (atom.TITLE, atom.SUMMARY, atom.CONTENT)].count("text") == 1
    assert atom.text_of(entry, atom.TITLE) == "one"
    assert b"ns0" not in read.items[0].payload
    assert read.repairs


@pytest.mark.parametrize(
    "document",
    [
        ATOM.format(xmlns("http://www.w3.org/2005/Atom")),
        ATOM.format(xmlns("http://purl.org/atom/ns#")),
        RSS.format(""),
        RSS.format(xmlns("http://backend.userland.com/RSS2")),
        RDF.format(RDF_NS, RSS10_NS),
    ],
)
def test_right_namespace_has_no_note(document: str) -> None:
    assert read_document(document.encode()).repairs == ()


def test_namespace_in_a_text_stays_as_it_is() -> None:
    text = 'xmlns="https://www.w3.org/2005/Atom"'
    document = ATOM.format(xmlns("https://www.w3.org/2005/Atom")).replace("text<", f"&lt;a {text}> {text}<")
    assert f"&lt;a {text}&gt; {text}" in read_document(document.encode()).items[0].payload.decode()


@pytest.mark.parametrize("document", [ATOM.format(xmlns("urn:x-test:x")), "<feed><title>T</title></feed>"])
def test_other_feeds_are_no_atom(document: str) -> None:
    with pytest.raises(FeedError, match=r"Atom has http://www\.w3\.org/2005/Atom"):
        read_document(document.encode())


def test_strict_reader_renames_nothing() -> None:
    document = ATOM.format(xmlns("https://www.w3.org/2005/Atom"))
    assert load(document.encode(), repair=False).root.tag == "{https://www.w3.org/2005/Atom}feed"


def test_attribute_in_two_spellings_of_a_namespace_is_no_crash() -> None:
    two = "xmlns:a='http://purl.org/dc/terms/' xmlns:b='https://purl.org/dc/terms/'"
    item = "<item><guid>2</guid><b:x a:y='1' b:y='2'/></item>"
    document = RSS.format(two).replace("</channel>", f"{item}</channel>")
    assert [item.id for item in read_document(document.encode()).items] == ["urn:x-test:1", "2"]

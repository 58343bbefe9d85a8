"""What reading a document costs grows with its size, whatever stands in it: bytes and steps are counted, not time."""

import json

import pytest
from lxml import etree

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, feed_reader, html_tags, plain, rss, xml
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.growth import ITEM_BYTES, MAX_FACTOR
from smartfeeds.formats.html_links import absolute_html
from smartfeeds.formats.links import MAX_BASE_CHARACTERS
from smartfeeds.formats.losses import losses_of, lost_of
from smartfeeds.formats.xhtml import XHTML_NS
from smartfeeds.sync.document_reader import FeedReader

ATOM = f'xmlns="{atom.ATOM_NS}"'
AUTHOR = "<author><name>x</name></author>"
LONG_BASE = f' xml:base="http://e/{"a" * 1_900}/"'
VERSION = "https://jsonfeed.org/version/1.1"


def atom_feed(head, entry, count, attributes=""):
    entries = "".join(entry.format(number) for number in range(count))
    return f"<feed {ATOM}{attributes}>{head}{entries}</feed>".encode()


def rss_feed(item, count, attributes=""):
    items = "".join(item.format(number) for number in range(count))
    return f"<rss version='2.0'{attributes}><channel>{items}</channel></rss>".encode()


def json_feed(count, **members):
    items = [{"id": str(number)} for number in range(count)]
    return json.dumps({"version": VERSION, "title": "t", "items": items, **members}).encode()


ENTRY = "<entry><id>urn:x:{}</id></entry>"
NAMED = "<entry><id>urn:x:{}</id><x:a/></entry>"
LINKED = '<entry><id>urn:x:{}</id><link href="b"/><link href="c"/></entry>'
# Each becomes larger with the square of n unless it is bounded.
HOSTILE = {
    "atom authors": lambda n: atom_feed(AUTHOR * n, ENTRY, n),
    "atom language": lambda n: atom_feed("", ENTRY, n, f' xml:lang="en{"-abcdefgh" * n}"'),
    "atom base": lambda n: atom_feed("", LINKED, n, f' xml:base="http://e/{"a" * 20 * n}/"'),
    "atom namespace": lambda n: atom_feed("", NAMED, n, f' xmlns:x="urn:{"a" * 20 * n}"'),
    "atom prefixes": lambda n: atom_feed("", ENTRY, n, "".join(f' xmlns:p{i}="urn:{i}"' for i in range(n))),
    "rss language": lambda n: rss_feed("<item><guid>{}</guid></item>", n, f' xml:lang="{"a" * 20 * n}"'),
    "rss base": lambda n: rss_feed("<item><link>{}</link></item>", n, f' xml:base="http://e/{"a" * 20 * n}/"'),
    "json authors": lambda n: json_feed(n, authors=[{"name": f"a{i}"} for i in range(n)]),
    "json language": lambda n: json_feed(n, language="en" + "-abcdefgh" * n),
}
REFUSED = {
    "atom authors": Condition.PAYLOAD_TOO_BIG,
    "json authors": Condition.PAYLOAD_TOO_BIG,
    "atom namespace": Condition.INVALID_PAYLOAD,
    "atom prefixes": Condition.INVALID_PAYLOAD,
}


def size_of(read):
    """How many bytes a reading gave, and why it ended before its end."""
    size = 0
    try:
        for item_bytes in read():
            size += len(item_bytes)
    except FeedError as error:
        return size, error.condition
    return size, None


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs("documents")) if name.startswith("json") else name for name in HOSTILE],
)
@pytest.mark.parametrize("n", [400, 800])
def test_items_of_a_document_are_bounded_by_its_size(name, n):
    """Either the items are in proportion to the document, or it is refused."""
    data = HOSTILE[name](n)
    size, condition = size_of(lambda: [item.payload for item in read_document(data).items])
    assert condition is REFUSED.get(name)
    assert size <= MAX_FACTOR * len(data) + ITEM_BYTES * n


@pytest.mark.parametrize("name", sorted(name for name in HOSTILE if not name.startswith("json")))
@pytest.mark.parametrize("n", [400, 800])
def test_pieces_of_a_sync_document_are_bounded_by_its_size(name, n):
    """A mirror holds all of them in memory."""
    data = HOSTILE[name](n)
    reader = FeedReader(lenient=True)
    chunks = (data[at : at + 1000] for at in range(0, len(data), 1000))
    size, condition = size_of(lambda: (piece.raw for piece in reader.read(chunks)))
    assert condition is REFUSED.get(name)
    assert size <= MAX_FACTOR * len(data) + ITEM_BYTES * n


def test_authors_of_an_ordinary_feed_are_repeated():
    document = read_document(atom_feed(AUTHOR * 20, ENTRY, 100))
    assert all(item.payload.count(b"<author>") == 20 for item in document.items)


def test_authors_that_are_too_long_are_left_out_and_told():
    document = read_document(atom_feed(AUTHOR * 3_000, ENTRY, 1))
    assert b"<author>" not in document.items[0].payload
    assert "the authors of the feed are too long to be repeated in each entry and were left out" in document.warnings


@pytest.mark.parametrize(
    "data",
    [
        atom_feed(
            "",
            "<entry><id>{}</id>" + '<link href="b"/>' * 3_000 + "</entry>",
            1,
            f' xml:base="http://e/{"a" * 1_900}/"',
        ),
        rss_feed(
            "<item><guid>{}</guid>" + "<enclosure url='b'/>" * 3_000 + "</item>",
            1,
            f' xml:base="http://e/{"a" * 1_900}/"',
        ),
    ],
    ids=["atom", "rss"],
)
def test_item_whose_addresses_grow_too_long_is_skipped(data):
    document = read_document(data)
    assert [one.reason for one in document.skipped] == ["the item is larger than 4194304 bytes"]


def test_base_address_that_no_server_accepts_counts_for_nothing():
    base = f' xml:base="http://e/{"a" * MAX_BASE_CHARACTERS}/"'
    (item,) = read_document(atom_feed("", LINKED, 1, base)).items
    assert b'href="b"' in item.payload


def test_long_namespace_name_does_not_multiply():
    """Exclusive C14N writes it anew for each element that uses it: such a payload is refused before."""
    root = etree.fromstring(f'<a xmlns:x="urn:{"n" * xml.MAX_NAME_BYTES}">{"<x:b/>" * 1_000}</a>')
    with pytest.raises(FeedError, match="a namespace name is longer than 256 bytes"):
        xml.canonical(root)
    assert xml.canonical(etree.fromstring(f'<x:a xmlns:x="urn:{"n" * (xml.MAX_NAME_BYTES - 4)}"/>'))


def test_warnings_of_an_id_do_not_grow_with_its_items(monkeypatch):
    """Every item of one id was copied with the warnings of all before it."""
    for n in (500, 1_000):
        copies = []
        monkeypatch.setattr(feed_reader, "replace", lambda item, _n=copies, **changes: _n.append(changes) or item)
        document = read_document(atom_feed("", ENTRY.format("same"), n))
        assert (len(document.items), len(document.skipped), len(copies)) == (1, n - 1, 1)


def test_links_of_an_item_are_resolved_once(monkeypatch):
    """Each enclosure was compared with each atom:link, and both were resolved for it."""
    resolve = rss.EntryBuilder.resolve
    addresses = []
    monkeypatch.setattr(rss.EntryBuilder, "resolve", lambda self, text: addresses.append(text) or resolve(self, text))
    counts = []
    for n in (100, 200):
        addresses.clear()
        links = "".join(f"<enclosure url='{i}'/><a:link rel='enclosure' href='x{i}'/>" for i in range(n))
        assert read_document(rss_feed(f"<item><guid>1</guid>{links}</item>", 1, f' xmlns:a="{atom.ATOM_NS}"')).items
        counts.append(len(addresses))
    assert counts[1] == 2 * counts[0]


def test_author_is_read_in_one_pass():
    """No part of the patterns can match a "@" in more than one way: a text of 100,000 took hours."""
    for text in ("@" * 100_000, "<" + "@" * 100_000, "a@b " + "(" * 100_000):
        assert rss.name_and_mail(text) == (text, "")


@pytest.mark.parametrize(
    "form",
    ["one <b {}>two", "one <b x='>' {}>two", "one <b x='<' {}>two", "one <b <i {}>two", "one <!-- <b --> <b {}>two"],
)
def test_tag_with_many_attributes_is_not_parsed(form):
    """libxml2 compares each attribute of a tag in HTML with all others."""
    parsed = []
    for n in (2_000, 4_000):
        source = form.format(" ".join(f"a{i}" for i in range(n)))
        parsed.append(len(plain.without_long_tags(source)))
        assert plain.html_text(source) == "one two"
    assert parsed[0] == parsed[1] < 30


def test_tag_without_an_end_is_not_parsed():
    for n in (2_000, 4_000):
        source = "one <b " + " <b ".join(f"a{i}" for i in range(n))
        assert plain.without_long_tags(source).count("<") == 0
        assert plain.html_text(source) == source


@pytest.mark.parametrize(
    "part", ["<a ", '<a x="', "<!--", "<a x= ", "<a" + " " * 50, "<a \"'", "<a href=x ", "<!-- <a>"]
)
def test_tags_of_html_are_looked_for_once(monkeypatch, part):
    """A tag, a quote or a comment without an end reaches to the end of the text: no part is looked at twice."""
    for n in (1_000, 2_000):
        text = part * n
        places = []
        for name in ("_OPENING", "_ATTRIBUTE"):
            monkeypatch.setattr(html_tags, name, Recorder(ORIGINALS[name], places))
        absolute_html(text, "http://e.example/")
        assert sum(end - start for start, end in places) <= len(text)


class Recorder:
    """A pattern that records which parts of a text its matches cover."""

    def __init__(self, pattern, places):
        self.pattern = pattern
        self.places = places

    def __getattr__(self, method):
        def call(text, at):
            match = getattr(self.pattern, method)(text, at)
            # A search that finds nothing has looked at the rest.
            self.places.append(match.span() if match else (at, len(text) if method == "search" else at))
            return match

        return call


ORIGINALS = {name: getattr(html_tags, name) for name in ("_OPENING", "_ATTRIBUTE")}


@pytest.mark.parametrize(
    "content",
    [
        ("<content type='html'>", "&lt;a href=&quot;b&quot;>&lt;/a>", "</content>"),
        (f"<content type='xhtml'><div xmlns='{XHTML_NS}'>", '<a href="b"></a>', "</div></content>"),
    ],
    ids=["html", "xhtml"],
)
def test_addresses_in_content_are_bounded_by_its_size(content):
    """The first references are resolved; those that would make it too long stay as they are, which is a loss."""
    start, link, end = content
    for n in (20, 8_000):
        payload = f"<entry {ATOM}{LONG_BASE}><id>urn:x:1</id><title/>{start}{link * n}{end}</entry>".encode()
        entry = read_entry(Item(1, "a", 0, 0, xml.canonical(etree.fromstring(payload)), ""))
        assert entry.content is not None
        assert len(entry.content.value) <= 17 * len(payload) + 65_536
        assert entry.content.value.count('href="http://e/') >= 20
        is_cut = n > 20
        assert ('href="b"' in entry.content.value) == is_cut
        assert any("base address" in loss.what for loss in losses_of(entry, lost_of(set()))) == is_cut

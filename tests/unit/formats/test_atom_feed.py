"""A feed as one Atom document."""

from itertools import count, islice

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.text import ForbiddenCharacterError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.additions import completion
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.payload import complete_entry
from smartfeeds.formats.rss_channel import Channel
from support.golden import GOLDEN
from support.validity import atom_faults

HEAD = FeedHead("urn:x-test:f", 'A "feed" & more', 1304942400_000_000, "xmpp:feeds.example.org?;node=a&b", "Sub")


def item(payload, item_id="a", deleted=False):
    return Item(1, item_id, 1304942400_000_001, 1304942401_500_000, payload, "alice@example.org", deleted)


def entry(text=""):
    return complete_entry(f'<entry xmlns="{atom.ATOM_NS}">{text}</entry>'.encode(), "a", 0)


def test_document_says_what_the_feed_is():
    root = xml.parse_payload(b"".join(write_feed(HEAD, [])))
    assert root.tag == atom.FEED
    assert [(child.tag.rpartition("}")[2], child.text) for child in root] == [
        ("id", "urn:x-test:f"),
        ("title", 'A "feed" & more'),
        ("updated", "2011-05-09T12:00:00Z"),
        ("link", None),
        ("subtitle", "Sub"),
    ]
    assert dict(root.find(atom.LINK).attrib) == {
        "rel": "self",
        "type": "application/atom+xml",
        "href": "xmpp:feeds.example.org?;node=a&b",
    }


def test_entries_are_written_as_they_are_stored():
    """[SF-009] [SF-070] the item id is fo:id"""
    payload = entry("<content>x</content>")
    text = b"".join(write_feed(HEAD, [item(payload, "a & b")]))
    assert payload.partition(b">")[2].removesuffix(b"</entry>") in text
    root = xml.parse_payload(text)
    assert root.find(atom.ENTRY).findtext("{http://fanout.org/protocol/atom}id") == "a & b"
    (read,) = read_document(text).items
    assert (read.id, read.payload) == ("a & b", payload)
    assert (read.published_us, read.updated_us) == (1304942400_000_001, 1304942401_500_000)


def test_deleted_items_are_marked_entries():
    """[A-18] RFC 6721 is not written"""
    text = b"".join(write_feed(HEAD, [item(atom.tombstone("a", 0, b""), deleted=True)]))
    assert b"deleted-entry" not in text
    assert [one.deleted for one in read_document(text).items] == [True]


@pytest.mark.parametrize(
    "payload",
    [
        b'<geoloc xmlns="http://jabber.org/protocol/geoloc"><country>Italy</country></geoloc>',
        f'<feed xmlns="{atom.ATOM_NS}"><title>T</title></feed>'.encode(),
        b'<entry xmlns="urn:x-test:x"></entry>',
        b"",
    ],
)
def test_payload_that_is_no_entry_is_the_content_of_one(payload):
    text = b"".join(write_feed(HEAD, [item(payload)]))
    (read,) = read_document(text).items
    content = xml.parse_payload(read.payload).find(atom.CONTENT)
    assert [xml.canonical(child) for child in content] == ([payload] if payload else [])
    assert read.id == "a"


def test_entry_under_a_prefix_is_written_whole():
    payload = f'<x:entry xmlns:x="{atom.ATOM_NS}"><x:id>urn:x-test:1</x:id><x:title></x:title></x:entry>'.encode()
    (read,) = read_document(b"".join(write_feed(HEAD, [item(payload)]))).items
    assert read.payload == payload


def test_document_is_written_piece_by_piece():
    """A feed of any size: items are asked for one at a time."""
    pieces = write_feed(HEAD, (item(entry(), str(n)) for n in count()))
    assert b">41</fo:id>" in list(islice(pieces, 43))[-1]


def test_title_that_xml_cannot_carry_is_refused():
    with pytest.raises(ForbiddenCharacterError):
        list(write_feed(FeedHead("urn:x-test:f", "\x00", 0), []))


def test_a_page_says_where_the_next_one_is_and_how_far_it_goes():
    """[SF-066] [SF-067] [SF-068] [SF-069] [SF-070] [SF-072] the golden page over HTTP, with its elements in order"""
    (page,) = GOLDEN["http"]["atom"]
    golden = xml.parse_payload(page["body"].encode())
    base = GOLDEN["http"]["base"]
    head = FeedHead(
        base,
        "comments",
        1304942400_000_000,
        self_link=base,
        next_link=golden.findall(atom.LINK)[1].get("href"),
        total=3,
        last_cursor="1304942400_1_b191b173",
    )
    root = xml.parse_payload(b"".join(write_feed(head, [item(entry("<content>first</content>"), "p")], keys=False)))
    said, expected = ([child for child in top if child.tag != atom.ENTRY] for top in (root, golden))
    assert [(child.tag, child.text, dict(child.attrib)) for child in said] == [
        (child.tag, child.text, dict(child.attrib)) for child in expected
    ]
    assert root.find(atom.ENTRY).findtext("{http://fanout.org/protocol/atom}id") == "p"
    assert root.find(atom.ENTRY).find("{urn:x-smartfeeds:export}keys") is None


def test_what_the_head_says_changes_no_entry():
    """[SF-009] a language, authors and prefixes of the head stay out of the entries"""
    head = FeedHead(
        "urn:x-test:f", "T", 0, "http://e.example/", "s", "http://e.example/p", "http://e.example/n",
        "ru", 2, "1_0_00000000", "2_0_00000000",
        Channel(hub="http://e.example/hub", icon="http://e.example/i.png", authors=("Ann",)),
    )  # fmt: skip
    payload = entry("<content>fo:x xmlns</content>")
    text = b"".join(write_feed(head, [item(payload)]))
    (read,) = read_document(text).items
    assert read.payload == payload
    root = xml.parse_payload(text)
    assert [link.get("rel") for link in root.iterchildren(atom.LINK)] == ["self", "next", "alternate", "hub"]
    assert root.find(atom.TITLE).get(xml.XML_LANG) == "ru"
    assert root.findtext(f"{{{atom.ATOM_NS}}}author/{{{atom.ATOM_NS}}}name") == "Ann"
    assert root.findtext(f"{{{atom.ATOM_NS}}}icon") == "http://e.example/i.png"
    assert root.findtext("{http://fanout.org/protocol/atom}prev_cursor") == "1_0_00000000"


SF = 'xmlns:sf="urn:x-smartfeeds:export" sf:added="true"'
AUTHOR = f"<author {SF}><name>By</name></author>"
LINK = f'<link {SF} href="http://x.example/1?a&amp;b" rel="alternate"></link>'


@pytest.mark.parametrize(
    ("inside", "added"),
    [
        ("", AUTHOR + LINK),
        ("<author><name>A</name></author><content>x</content>", ""),
        ("<author><name>A</name></author><summary>x</summary>", LINK),
        ("<source><author><name>A</name></author></source><link href='http://e.example/'/>", ""),
        ("<link rel='related' href='http://e.example/'/><content type='html'>x</content>", AUTHOR),
        ("<x xmlns='urn:x-test:x'><author>x</author><content>x</content></x>", AUTHOR + LINK),
        ("<author><name>A</name></author><content src='http://e.example/' type='a/b'/>", f"<summary {SF}></summary>"),
        ("<author><name>A</name></author><content type='image/png'>aA==</content><summary>s</summary>", ""),
        ("<author><name>A</name></author><content type='application/xml'><x xmlns='urn:x-test:x'/></content>", ""),
    ],
)
def test_an_entry_is_completed_where_it_lacks_what_atom_requires(inside, added):
    """RFC 4287 4.1.2: an author, content or an alternate link, a summary of content that is not text. Reading the
    document again gives the entry as it was stored."""
    root = xml.parse_payload(f'<entry xmlns="{atom.ATOM_NS}">{inside}</entry>'.encode())
    stored = complete_entry(xml.canonical(root), "a", 0)
    assert completion(stored, "By", "http://x.example/1?a&b").decode() == added
    (read,) = read_document(b"".join(write_feed(HEAD, [item(stored)]))).items
    assert read.payload == stored


@pytest.mark.parametrize("author", ["", "<author><name>Ann</name></author>"])
def test_an_entry_with_a_text_is_completed_without_being_parsed(monkeypatch, author):
    stored = entry(f"{author}<content>text</content>")
    added = "" if author else f"<author {SF}><name>By</name></author>"
    monkeypatch.delattr(xml, "parse_stored")
    assert completion(stored, "By", "http://x.example/1").decode() == added


def test_an_entry_under_a_prefix_is_completed_in_the_namespace_of_atom():
    payload = f'<x:entry xmlns:x="{atom.ATOM_NS}"><x:id>urn:x-test:1</x:id><x:title></x:title></x:entry>'.encode()
    assert atom_faults(b"".join(write_feed(HEAD, [item(complete_entry(payload, "a", 0))]))) == []


def test_without_an_address_an_empty_content_stands_for_the_link():
    assert completion(entry(), "", "").decode() == f"<content {SF}></content>"

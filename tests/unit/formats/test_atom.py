"""Atom entries as payloads."""

import pytest

from smartfeeds.core.filters import EntryMeta, category_names
from smartfeeds.formats import atom, xml
from smartfeeds.formats.payload import accept_payload, complete_entry, shape_of

NOON_US = 1304942400_000_000
HEAD = f'<entry xmlns="{atom.ATOM_NS}">'
SX = f'xmlns:sx="{atom.FEEDSYNC_NS}"'


def element(inside="", root="entry", namespace=atom.ATOM_NS):
    return xml.parse_payload(f'<{root} xmlns="{namespace}">{inside}</{root}>'.encode())


def accept(node, item_id="a"):
    return complete_entry(accept_payload(node), item_id, NOON_US).decode()


@pytest.mark.parametrize(
    ("inside", "deleted"),
    [
        (f'<sx:sync {SX} deleted="true"/>', True),
        (f'<sx:sync {SX} deleted="false"/>', False),
        (f'<sx:sync {SX} deleted="1"/>', False),
        (f"<sx:sync {SX}/>", False),
        (f'<source><sx:sync {SX} deleted="true"/></source>', False),
        ('<sync deleted="true"/>', False),
        ("", False),
    ],
)
def test_is_deletion_is_the_mark_and_nothing_else(inside, deleted):
    """[SF-013] [FS-030]"""
    assert atom.is_deletion(element(inside)) is deleted
    assert shape_of(element(inside)).deletion is deleted


@pytest.mark.parametrize(
    ("inside", "has"),
    [
        ('<link rel="enclosure" href="http://example.org/a.mp3"/>', True),
        ('<link rel="enclosure"/>', False),
        ('<link href="http://example.org/"/>', False),
        ("", False),
    ],
)
def test_enclosure_needs_an_address(inside, has):
    """[xep-map 237]"""
    assert shape_of(element(inside)).enclosure is has


def test_tombstone_keeps_the_id_and_nothing_else():
    """[SF-013] [xep-map 160]"""
    old = accept(
        element(
            "<id>urn:x-test:1</id><title>T</title><updated>2001-01-01T00:00:00Z</updated><author><name>A</name></author>"
            '<category term="c"/><link href="http://example.org/"/><summary>S</summary><content>C</content>'
        )
    ).encode()
    assert atom.tombstone("item", NOON_US, old).decode() == (
        f"{HEAD}<id>urn:x-test:1</id><title></title><updated>2011-05-09T12:00:00Z</updated>"
        f'<sx:sync {SX} deleted="true" id="item"></sx:sync></entry>'
    )


@pytest.mark.parametrize(
    ("item_id", "old", "sync_id"),
    [
        ("item", b"", "item"),
        ("a b", b"", None),
        ("a b", f'{HEAD}<sx:sync {SX} id="urn-like:1"/></entry>'.encode(), "urn-like:1"),
        ("item", f'{HEAD}<sx:sync {SX} id="not valid"/></entry>'.encode(), "item"),
        ("it's%41", b"", "it's%41"),
        ("it%4", b"", None),
    ],
)
def test_tombstone_has_a_sync_id_where_one_is_valid(item_id, old, sync_id):
    """[FS-028] [A-51]"""
    payload = atom.tombstone(item_id, NOON_US, old)
    assert xml.parse_payload(payload).find(atom.SYNC).get("id") == sync_id
    assert xml.canonical(xml.parse_payload(payload)) == payload


@pytest.mark.parametrize("old", [b"", b"no xml", b"<x/>", f"{HEAD}</entry>".encode()])
def test_tombstone_of_an_unreadable_payload_derives_the_id(old):
    assert b"<id>urn:x-smartfeeds:item</id>" in atom.tombstone("item", NOON_US, old)


def test_tombstone_takes_the_given_id():
    old = f"{HEAD}<id>urn:x-test:old</id></entry>".encode()
    assert b"<id>urn:x-test:new</id>" in atom.tombstone("item", NOON_US, old, atom_id="urn:x-test:new")
    assert b"<id>urn:x-smartfeeds:item</id>" in atom.tombstone("item", NOON_US, old, atom_id="\x00")


def test_read_meta_reads_what_filters_use():
    inside = (
        "<title>A  title</title><summary type='html'>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two "
        "&lt;b&gt;thr&lt;/b&gt;ee&lt;/p&gt;</summary><content type='xhtml'>"
        "<div xmlns='http://www.w3.org/1999/xhtml'><p>four</p><script>no()</script><p>five</p></div></content>"
        "<author><name> Al  Ice </name><uri>xmpp:alice@example.org</uri>"
        "<email>alice@example.org</email></author>"
        "<author><name/></author><category term='Cats'/><category term=''/><category/>"
        f"<thr:in-reply-to xmlns:thr='{atom.THREAD_NS}' ref='urn:x-test:0' href='xmpp:x'/>"
    )
    assert atom.read_meta(accept(element(inside)).encode()) == EntryMeta(
        authors=frozenset({"Al Ice", "xmpp:alice@example.org", "alice@example.org"}),
        categories=frozenset({"Cats"}),
        replies_to=frozenset({"urn:x-test:0", "xmpp:x"}),
        text="A title\nOne two three\nfour five",
        body="A title",
    )


@pytest.mark.parametrize(
    ("inside", "body"),
    [
        ("<title>T</title><summary>S</summary>", "T"),
        ("<title/><summary>S</summary>", "S"),
        ("<title type='html'>a &amp;lt; b&lt;br/&gt;c</title>", "a < b c"),
        ("<title/><content>C</content>", ""),
    ],
)
def test_read_meta_body_is_title_else_summary(inside, body):
    """[xep-map 180]"""
    assert atom.read_meta(accept(element(inside)).encode()).body == body


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("", "a b"),
        ("type='text/plain'", "a b"),
        ("type='image/png'", ""),
        ("type='TEXT'", "a b"),
        ("type='application/xml'", "a b"),
    ],
)
def test_read_meta_reads_content_that_is_text(kind, text):
    assert atom.read_meta(accept(element(f"<content {kind}>a\n b</content>")).encode()).text == text


@pytest.mark.parametrize("payload", [b"", b"x", b"<entry/>", b"\xff", b"<!DOCTYPE a><a/>"])
def test_read_meta_of_anything_else_is_empty(payload):
    assert atom.read_meta(payload) == EntryMeta()


def test_read_traits_feeds_the_index():
    inside = (
        "<title>Gr\u00fcne \u00c4pfel</title><author><uri>xmpp:Alice@example.org</uri></author><category term='Obst'/>"
    )
    facets, words = atom.read_traits(accept(element(inside)).encode())
    assert facets == {"a:alice@example.org", "p:alice@example.org", "c:obst"}
    assert words == {"gr\u00fcne", "\u00e4pfel"}


@pytest.mark.parametrize(
    ("term", "names"),
    [
        ("news", {"news"}),
        ("standards/xsl/x", {"standards/xsl/x", "standards", "standards/xsl", "xsl", "x"}),
        ("/a//b/", {"/a//b/", "a", "b", "a/b"}),
        (" / ", {" / "}),
        ("http://x.example/tags/a", {"http://x.example/tags/a"}),
        ("/".join("abcdefghi"), {"/".join("abcdefghi")}),
    ],
)
def test_category_is_found_by_the_parts_of_its_path(term, names):
    """[A-139] [RSS-013] Split at each slash for matching, empty parts dropped; the verbatim term matches too."""
    assert category_names(term) == names

"""Outlines as items: those that were written here, those of outliners, and lists of feeds."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import EntryLink, TextKind, read_entry
from smartfeeds.formats.opml import ListedFeed, write_list
from smartfeeds.formats.opml_items import write_items

NOON_US = parse_datetime("2011-05-09T12:00:00Z")
HOUR_US = 3_600_000_000


def read(inside, base=""):
    return read_document(
        f'<opml version="2.0"><head><title>T</title></head><body>{inside}</body></opml>'.encode(), base
    )


def entry_of(item):
    return read_entry(Item(1, item.id, item.published_us or 0, item.updated_us or 0, item.payload, ""))


def texts(document):
    return [entry_of(item).title.plain for item in document.items]


def entries(inside, base=""):
    return [entry_of(item) for item in read(inside, base).items]


def test_what_is_written_is_read():
    """[SF-008] id, title, page, dates, categories, plain text and elements of others."""
    inside = (
        "<title>A &lt;b> &amp;amp; c</title><link href='http://x.example/1'/><category term='a'/><category term='b c'/>"
        "<published>2011-05-09T12:00:00Z</published><updated>2011-05-09T13:00:00Z</updated><content>Some text</content>"
        "<x xmlns='urn:x-test:x' xmlns:p='urn:x-test:p' kind='p:q'/>"
    )
    payload = f"<entry xmlns='{atom.ATOM_NS}'><id>urn:x-test:1</id>{inside}</entry>".encode()
    before = read_entry(Item(1, " odd\n id", NOON_US, NOON_US + HOUR_US, payload, ""))
    item = Item(1, " odd\n id", NOON_US, NOON_US + HOUR_US, payload, "")
    (found,) = read_document(b"".join(write_items(FeedHead("urn:x-test:f", "T", 0), [item], []))).items

    assert (found.id, found.published_us, found.updated_us) == (item.id, NOON_US, NOON_US + HOUR_US)
    after = entry_of(found)
    for name in ("title", "content", "links", "categories", "published_us", "updated_us", "extensions"):
        assert getattr(after, name) == getattr(before, name), name
    assert found.warnings == ()


def test_lines_of_all_levels_are_items_in_their_order():
    """[SF-008] [A-153] a tree as a flat list, its first line the oldest; and it says so."""
    document = read("<outline text='A'><outline text='B'><outline text='C'/></outline></outline><outline text='D'/>")

    assert (document.format, document.title) == ("OPML 2.0", "T")
    assert texts(document) == ["A", "B", "C", "D"]
    assert document.oldest_first() == list(document.items)
    assert document.warnings == ("the outline has several levels; its lines were read as a flat list",)


def test_line_without_a_date_is_as_old_as_the_one_above():
    """[A-153] the date of one line does not tear the outline apart."""
    document = read(
        "<outline text='B' created='Mon, 09 May 2011 13:00:00 GMT'/><outline text='C'/>"
        "<outline text='A' created='Mon, 09 May 2011 12:00:00 GMT'/>"
    )
    by_id = dict(zip((item.id for item in document.items), texts(document), strict=True))
    assert [by_id[item.id] for item in document.oldest_first()] == ["A", "B", "C"]


def test_ids_of_lines_stay_when_other_lines_come():
    """[A-122] made of a line's text and the lines above it in the tree; equal lines are counted."""
    before = read("<outline text='A'><outline text='x'/><outline text='x'/></outline><outline text='x'/>")
    after = read("<outline text='New'/><outline text='A'><outline text='x'/><outline text='x'/></outline>")

    ids = [item.id for item in before.items]
    assert len(set(ids)) == 4
    assert [item.id for item in after.items][1:] == ids[:3]
    assert before.skipped == ()


def test_many_equal_lines_are_counted_once_each(monkeypatch):
    """[A-122] no line is compared with all those above it."""
    made = []
    digest_id = atom.digest_id
    monkeypatch.setattr(atom, "digest_id", lambda *parts: made.append(parts) or digest_id(*parts))
    assert len({item.id for item in read("<outline text='x'/>" * 500).items}) == 500
    assert len(made) <= 1_000


def test_ids_that_were_given_are_not_counted():
    """[A-124] two lines of one id of ours are one item."""
    line = "<outline text='{}' xmlns:sf='urn:x-smartfeeds:opml' sf:id='a' sf:updated='2011-05-09T1{}:00:00Z'/>"
    document = read(line.format("old", 2) + line.format("new", 3))
    assert (texts(document), [one.index for one in document.skipped]) == (["new"], [0])


def test_list_of_feeds_is_items_that_link_to_them():
    """The page, the feed and its address in chat; the same feed twice is two lines."""
    feed = ListedFeed("News", "http://x.example/f.rss", "http://x.example/", "xmpp:x.example?;node=n", "All of it")
    document = read_document(b"".join(write_list("Feeds", [feed, feed])))
    first, second = map(entry_of, document.items)

    assert (first.item_id, first.title.plain) == ("http://x.example/f.rss", "News")
    assert first.summary.plain == "All of it"
    assert first.links == [
        EntryLink("alternate", "http://x.example/"),
        EntryLink("related", "http://x.example/f.rss", "application/rss+xml"),
        EntryLink("related", "xmpp:x.example?;node=n"),
    ]
    assert second.item_id != first.item_id


def test_attributes_are_read_in_any_case_and_from_a_base():
    (entry,) = entries("<outline text='' XMLURL='/a.rss' HtmlUrl='b'/>", "http://x.example/l/x.opml")
    assert entry.item_id == "http://x.example/a.rss"
    assert entry.alternate == "http://x.example/l/b"


@pytest.mark.parametrize(
    ("attributes", "feed", "page"),
    [
        ("type='rss' url='/a'", "/a", ""),
        ("type='RSS' URL=' /a '", "/a", ""),
        ("type='atom' url='/a' htmlUrl='/p'", "/a", "/p"),
        ("type='rss' url='/p' xmlUrl='/a'", "/a", "/p"),
        ("type='rss' url='/a' xmlUrl='/a'", "/a", ""),
        ("xmlUrl='/a'", "/a", ""),
        ("xmlUrl=' ' type='rss' url='/a'", "/a", ""),
        ("type='link' url='/p'", "", "/p"),
        ("type='link' url='/p.opml'", "", "/p.opml"),
        ("type='include' url='/p.opml'", "", "/p.opml"),
        ("url='/p'", "", "/p"),
        ("type='rss' htmlUrl='/p'", "", "/p"),
    ],
)
def test_address_of_a_feed_may_be_in_url(attributes, feed, page):
    """[SF-008] Only the type tells it from a page."""
    [entry] = entries(f"<outline text='a' {attributes}/>", "http://x.example/")
    found = {link.rel: link.href.removeprefix("http://x.example") for link in entry.links}
    assert (found.get("related", ""), found.get("alternate", "")) == (feed, page)


def test_markup_in_a_text_is_html_unless_it_was_written_here():
    """OPML 2.0: text attributes may hold HTML; titles are written as plain text here."""
    own = "xmlns:sf='urn:x-smartfeeds:opml' sf:id='a'"
    line = "text='a &lt;b>c&lt;/b>'"
    other, written = entries(f"<outline {line}/><outline {line} {own}/>")
    assert (other.title.kind, other.title.plain) == (TextKind.HTML, "a c")
    assert (written.title.kind, written.title.plain) == (TextKind.TEXT, "a <b>c</b>")


@pytest.mark.parametrize(
    ("attributes", "warning"),
    [
        ("text='a' created='yesterday'", "the date 'yesterday' cannot be read and was left out"),
        ("text='a' isComment='true' x='1'", "attributes that an item has no place for were left out: iscomment, x"),
        ("text='a' type='include' url='http://x.example/'", "what the outline includes was not opened"),
    ],
)
def test_what_is_not_read_is_told(attributes, warning):
    (item,) = read(f"<outline {attributes}/>").items
    assert item.warnings == (warning,)


def test_line_that_says_nothing_is_skipped_and_those_below_it_are_not():
    """[A-123]"""
    document = read("<outline text=' '><outline text='a'/></outline>")
    assert (texts(document), [(one.index, one.reason) for one in document.skipped]) == (
        ["a"],
        [(0, "the outline has no text, address or id")],
    )


def test_sync_markup_gives_the_id_and_tells_of_a_deletion():
    """[A-18] as in RSS: SSE for OPML."""
    sync = "<s:sync xmlns:s='http://www.microsoft.com/schemas/rss/sse' id='{}' version='1' {}/>"
    document = read(
        f"<outline text='A'>{sync.format('a', '')}</outline>"
        f"<outline text='B'>{sync.format('b', 'deleted=' + repr('true'))}</outline>"
    )
    assert [(item.id, item.deleted) for item in document.items] == [("a", False), ("b", True)]

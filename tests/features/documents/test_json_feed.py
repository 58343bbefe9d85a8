"""JSON Feed 1.1, written and read, and JSON documents under their limits."""

import json

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.documents.json_feed import JSON_NS, write_json_feed
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import (
    EntryLink,
    EntryPerson,
    EntrySource,
    EntryText,
    ReplyReference,
    TextKind,
    read_entry,
)
from smartfeeds.formats.feed_document import FormatLoss
from smartfeeds.formats.json_text import MAX_JSON_DEPTH, load_json
from smartfeeds.formats.payload import complete_entry
from smartfeeds.formats.rss_channel import Channel
from support.entries import accept_entry

US = 1304942400_000_000
HEAD = FeedHead("urn:x-test:f", "T", US)
VERSION = "https://jsonfeed.org/version/1.1"


def item(payload, item_id="a", *, deleted=False):
    return Item(1, item_id, US, US + 500_000, payload, "alice@example.org", deleted)


def entry_of(inside, item_id="a", attributes=""):
    root = xml.parse_payload(
        f'<entry xmlns="{atom.ATOM_NS}" xmlns:thr="{atom.THREAD_NS}"{attributes}>{inside}</entry>'.encode()
    )
    return read_entry(item(accept_entry(root, item_id, US), item_id))


def written(*entries, head=HEAD):
    return json.loads(write_json_feed(head, entries).data)


def written_item(inside):
    (one,) = written(entry_of(inside))["items"]
    return one


def read(*items, **members):
    document = {"version": VERSION, "title": "T", **members, "items": items}
    return read_document(json.dumps(document).encode(), "http://e.example/feed.json")


def read_item(**members):
    """The one item of a feed as an entry."""
    (one,) = read({"id": "http://e.example/1", **members}).items
    return read_entry(item(one.payload, one.id, deleted=one.deleted))


def again(**members):
    """The members of an item after a way through an entry."""
    (one,) = written(read_item(**members))["items"]
    return one


def test_what_the_feed_says():
    """[SF-061] [SF-063] the head, with what JSON Feed has no member for in an object of its own"""
    head = FeedHead(
        "urn:x-test:f", "T", US, self_link="http://e.example/f", subtitle="S", link="http://e.example/",
        next_link="http://e.example/f?n", language="en", total=3, prev_cursor="1_0_00000000",
        last_cursor="2_0_00000000",
        channel=Channel(hub="http://e.example/hub", icon="http://e.example/i.png", authors=("Ann",)),
    )  # fmt: skip
    assert written(head=head) == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "T",
        "home_page_url": "http://e.example/",
        "feed_url": "http://e.example/f",
        "description": "S",
        "next_url": "http://e.example/f?n",
        "icon": "http://e.example/i.png",
        "authors": [{"name": "Ann"}],
        "language": "en",
        "hubs": [{"type": "WebSub", "url": "http://e.example/hub"}],
        "_smartfeeds": {
            "id": "urn:x-test:f",
            "updated": "2011-05-09T12:00:00Z",
            "total": 3,
            "prev_cursor": "1_0_00000000",
            "last_cursor": "2_0_00000000",
        },
        "items": [],
    }


def test_all_that_an_item_says():
    entry = entry_of(
        """<id>tag:e.example,2011:1</id><title type="html">A &amp;amp; B</title><summary>s</summary>
        <content type="html">&lt;p>c&lt;/p></content>
        <published>2011-05-09T12:00:00Z</published><updated>2011-05-09T12:00:01Z</updated>
        <author><name>Ann</name><email>a@e.example</email></author>
        <author><name>Bob</name><uri>http://e.example/bob</uri></author>
        <category term="t"/><category term="u"/><category term="t"/>
        <link href="http://e.example/1"/><link rel="related" href="http://e.example/r"/>
        <link rel="enclosure" href="http://e.example/f" type="audio/mpeg" title="F" length="12"/>
        <link rel="enclosure" href="http://e.example/g"/>
        <source><title>Other</title><link href="http://o.example/"/></source>
        <thr:in-reply-to ref="tag:e.example,2011:0" href="http://e.example/0"/>""",
        attributes=' xml:lang="en"',
    )
    assert written(entry)["items"] == [
        {
            "id": "tag:e.example,2011:1",
            "url": "http://e.example/1",
            "external_url": "http://e.example/r",
            "title": "A & B",
            "content_html": "<p>c</p>",
            "summary": "s",
            "date_published": "2011-05-09T12:00:00Z",
            "date_modified": "2011-05-09T12:00:01Z",
            "authors": [
                {"name": "Ann", "url": "mailto:a@e.example"},
                {"name": "Bob", "url": "http://e.example/bob"},
            ],
            "tags": ["t", "u"],
            "language": "en",
            "attachments": [
                {"url": "http://e.example/f", "mime_type": "audio/mpeg", "title": "F", "size_in_bytes": 12},
                {"url": "http://e.example/g", "mime_type": "application/octet-stream"},
            ],
            "_smartfeeds": {
                "id": "a",
                "replies_to": [{"id": "tag:e.example,2011:0", "url": "http://e.example/0"}],
                "source": {"title": "Other", "url": "http://o.example/"},
            },
        }
    ]
    assert write_json_feed(HEAD, [entry]).losses == ()


def test_an_item_without_anything():
    """An item has content and dates even so; its id is the item id."""
    assert written_item("") == {
        "id": "a",
        "content_text": "",
        "date_published": "2011-05-09T12:00:00Z",
        "date_modified": "2011-05-09T12:00:00Z",
        "_smartfeeds": {"id": "a"},
    }


def test_empty_html_is_no_content():
    assert written_item('<content type="html"/>') == written_item("")


def test_tombstones():
    """[A-18] [SF-013] nothing but ids, time and mark, there and back"""
    entry = read_entry(item(atom.tombstone("a", US + 1_500_000, b""), deleted=True))
    data = write_json_feed(HEAD, [entry]).data
    assert json.loads(data)["items"] == [
        {
            "id": "a",
            "content_text": "",
            "date_modified": "2011-05-09T12:00:01.5Z",
            "_smartfeeds": {"id": "a", "deleted": True},
        }
    ]
    (one,) = read_document(data).items
    assert (one.id, one.deleted, one.updated_us) == ("a", True, US + 1_500_000)
    assert one.payload == atom.marked("urn:x-smartfeeds:a", "2011-05-09T12:00:01.5Z", "")


def test_the_newest_item_is_on_top():
    """[A-153] and reading puts the oldest first again"""
    entries = [entry_of("", item_id) for item_id in "abc"]
    data = write_json_feed(HEAD, entries).data
    assert [one["_smartfeeds"]["id"] for one in json.loads(data)["items"]] == ["c", "b", "a"]
    assert [one.id for one in read_document(data).oldest_first()] == ["a", "b", "c"]


LINK_DETAILS = "the type, title or length of the link to the page, or what else is said of a link"


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("<category term='t' scheme='u:s'/>", "the schemes or labels of categories"),
        ('<title type="html">&lt;b>x</title>', "the markup of the title"),
        (
            "<author><uri>u:x</uri><email>a@b</email></author>",
            "the mail address of a person who has another address too",
        ),
        ('<link href="u:a"/><link href="u:b"/>', "the addresses of the page after the first"),
        ('<link href="u:a" type="text/html"/>', LINK_DETAILS),
        ('<link href="u:a" hreflang="de"/>', LINK_DETAILS),
        ('<link rel="enclosure" href="u:a"><x xmlns="urn:x-test:x"/></link>', LINK_DETAILS),
        ('<title xml:lang="de">x</title>', "the languages of single texts"),
        (
            '<author><name>x</name><x xmlns="urn:x-test:x"/></author>',
            "what is said of authors beside name and addresses",
        ),
        (
            '<category term="t"><x xmlns="urn:x-test:x"/></category>',
            "what is said of categories beside term, scheme and label",
        ),
        (
            '<title xmlns:x="urn:x-test:x" x:a="1">x</title>',
            "attributes of other namespaces, and elements that an Atom entry does not have",
        ),
        (
            '<link rel="related" href="u:a"/><link rel="related" href="u:b"/>',
            "the addresses of related pages after the first",
        ),
        ('<x xmlns="urn:x-test:x"/>', "elements of other namespaces"),
        (f'<members xmlns="{JSON_NS}">no JSON</members>', "elements of other namespaces"),
        (
            '<activity:verb xmlns:activity="http://activitystrea.ms/spec/1.0/">like</activity:verb>',
            "the kind of activity or object",
        ),
    ],
)
def test_what_is_dropped_is_said(inside, what):
    """What JSON Feed has no member for is a loss, of that item."""
    assert write_json_feed(HEAD, [entry_of(inside)]).losses == (FormatLoss("a", what),)


def test_a_feed_is_read():
    document = read(
        {
            "id": "http://e.example/1",
            "url": "1.html",
            "external_url": "http://x.example/",
            "title": "A & <B>",
            "content_html": "<a href='p'>c</a>",
            "summary": "s",
            "date_published": "2011-05-09T14:00:00+02:00",
            "date_modified": "2011-05-09T12:00:01Z",
            "authors": [{"name": "Ann", "url": "mailto:a@e.example"}, {"url": "http://e.example/b"}, {}],
            "tags": ["t", " ", "u"],
            "language": "de",
            "attachments": [{"url": "f.mp3", "mime_type": "audio/mpeg", "title": "F", "size_in_bytes": 12.0}],
            "_smartfeeds": {
                "replies_to": [{"id": "tag:e.example,2011:0"}],
                "source": {"title": "Other", "url": "http://o.example/"},
            },
        },
        home_page_url="/",
        description="D",
        feed_url="http://e.example/feed.json",
    )
    assert (document.format, document.id, document.title, document.link, document.description) == (
        "JSON Feed 1.1", "http://e.example/feed.json", "T", "http://e.example/", "D"
    )  # fmt: skip
    (one,) = document.items
    assert (one.id, one.published_us, one.updated_us, one.warnings) == ("http://e.example/1", US, US + 1_000_000, ())
    entry = read_entry(item(one.payload, one.id))
    assert (entry.atom_id, entry.alternate) == ("http://e.example/1", "http://e.example/1.html")
    assert (entry.title, entry.summary) == (EntryText(TextKind.TEXT, "A & <B>"), EntryText(TextKind.TEXT, "s"))
    assert entry.content == EntryText(TextKind.HTML, '<a href="http://e.example/p">c</a>')
    assert entry.authors == [
        EntryPerson("Ann", "a@e.example"),
        EntryPerson("http://e.example/b", "", "http://e.example/b"),
    ]
    assert [category.term for category in entry.categories] == ["t", "u"]
    assert entry.enclosures == [EntryLink("enclosure", "http://e.example/f.mp3", "audio/mpeg", "F", 12)]
    assert (entry.language, entry.source) == ("de", EntrySource("Other", "http://o.example/"))
    assert entry.replies_to == [ReplyReference("tag:e.example,2011:0")]
    assert (entry.published_us, entry.updated_us, entry.extensions) == (US, US + 1_000_000, [])


def test_version_1_is_read():
    """Version 1 has one author, and what the feed says goes for its items."""
    data = {
        "version": "https://jsonfeed.org/version/1",
        "title": "T",
        "author": {"name": "Feed"},
        "language": "fr",
        "items": [{"id": "1", "author": {"name": "Own"}}, {"id": 2, "language": "en"}, {"id": "3", "authors": []}],
    }
    document = read_document(json.dumps(data).encode())
    entries = [read_entry(item(one.payload, one.id)) for one in document.items]
    assert document.format == "JSON Feed 1"
    assert [(e.item_id, e.authors[0].name, e.language) for e in entries] == [
        ("1", "Own", "fr"), ("2", "Feed", "en"), ("3", "Feed", "fr")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("http://jsonfeed.org/version/1.1/", ()),
        (" https://www.jsonfeed.org/version/1 ", ()),
        ("https://jsonfeed.org/version/2", ("version 2 of JSON Feed is not known; it was read as 1.1",)),
    ],
)
def test_versions(version, says):
    data = json.dumps({"version": version, "title": "T", "items": [{"id": "1"}]}).encode()
    document = read_document(data)
    assert (len(document.items), document.warnings) == (1, says)


@pytest.mark.parametrize("version", ["1.1", "https://jsonfeed.org/", "https://jsonfeed.org.example/version/1", None, 1])
def test_what_is_no_version_of_json_feed(version):
    with pytest.raises(FeedError, match="neither a JSON Feed"):
        read_document(json.dumps({"version": version, "items": []}).encode())


def test_what_a_feed_lacks_is_told():
    document = read_document(json.dumps({"version": VERSION, "items": "x"}).encode())
    assert document.warnings == ("the feed has no title", "the feed has no items")


UNKNOWN = {
    "image": "http://e.example/i.png",
    "banner_image": "http://e.example/b.png",
    "_podcast": {"explicit": False, "n": [1, 2.5, -0.0, 1e300, None, "\u2028\ud800\u0000\ufffe<&"], "": {"é": {}}},
    "big": 12345678901234567890,
}


def test_unknown_members_come_back():
    """Members that Atom has no place for are kept over JSON Feed, item, JSON Feed."""
    members = again(content_text="c", **UNKNOWN)
    assert {name: members[name] for name in UNKNOWN} == UNKNOWN
    assert write_json_feed(HEAD, [read_item(**UNKNOWN)]).losses == ()


def test_unknown_members_of_authors_and_attachments_come_back():
    authors = [{"name": "Ann", "avatar": "http://e.example/a.png"}, {"name": "Bob"}, {"url": "u:c", "_x": 1}]
    attachments = [
        {"url": "http://e.example/f", "mime_type": "audio/mpeg", "duration_in_seconds": 60},
        {"url": "http://e.example/g", "mime_type": "audio/ogg"},
    ]
    members = again(authors=authors, attachments=attachments)
    assert members["authors"] == [*authors[:2], {"name": "u:c", "url": "u:c", "_x": 1}]
    assert members["attachments"] == attachments


def test_a_text_beside_html_is_kept():
    members = again(content_html="<p>c</p>", content_text="c")
    assert (members["content_html"], members["content_text"]) == ("<p>c</p>", "c")
    assert "content_text" not in again(content_html="<p>c</p>")


@pytest.mark.parametrize(
    "kept",
    [
        '{"id": "x", "_smartfeeds": {"id": "y", "deleted": true}, "title": "z", "content_html": "<x>", "url": "u:x"}',
        '{"attachments": [{"url": "u:x"}], "authors": 5, "content_text": "x"}',
        "[1]",
        "5",
        "",
        "NaN",
        '{"a": NaN}',
        "[" * 100_000,
        '{"a":' * (MAX_JSON_DEPTH - 3) + "1" + "}" * (MAX_JSON_DEPTH - 3),
        "[" + "1," * 20_000 + "1]",
    ],
)
def test_kept_members_cannot_lie(kept):
    """[SF-065] anybody may publish an element of ours: it changes no member of the item's own"""
    node = f'<members xmlns="{JSON_NS}">{kept.replace("<", "&lt;")}</members>'
    assert written_item(node) == written_item("")


def test_a_document_can_be_read_whatever_entries_keep():
    """A document that we write is one that we read."""
    deep = '{"a":' * (MAX_JSON_DEPTH - 4) + "1" + "}" * (MAX_JSON_DEPTH - 4)
    entry = entry_of(f'<members xmlns="{JSON_NS}">{deep}</members>')
    (one,) = read_document(write_json_feed(HEAD, [entry]).data).items
    assert one.id == "a"


def test_too_many_unknown_members_are_left_out():
    (one,) = read({"id": "1", "_many": [0] * 20_000}).items
    assert one.warnings == ("members that JSON Feed does not know are too many or too deep and were left out",)
    assert read_entry(item(one.payload)).extensions == []


@pytest.mark.parametrize(
    ("given", "item_id"),
    [
        (5, "5"),
        (1.5, "1.5"),
        ("a\u0000b", "urn:x-smartfeeds:a%00b"),
        ("\ud800", "urn:x-smartfeeds:%ED%A0%80"),
        ("x" * 2000, None),
        ("", None),
        (True, None),
        ({}, None),
    ],
)
def test_ids(given, item_id):
    """[SF-009] an id is a string that XML can carry, and stays apart from others"""
    (one,) = read({"id": given, "content_text": "c"}).items
    assert one.id == item_id or (item_id is None and one.id.startswith("urn:x-smartfeeds:sha256:"))


def test_characters_that_xml_cannot_carry_are_replaced():
    (one,) = read({"id": "1", "title": "a\u0000b", "content_text": "\ud800\u000b\ufffe", "tags": ["\u0001"]}).items
    entry = read_entry(item(one.payload))
    assert (entry.title.value, entry.content.value) == ("a\ufffdb", "\ufffd\ufffd\ufffd")
    assert "title holds characters that XML cannot carry" in one.warnings


@pytest.mark.parametrize("value", [None, True, 3, "text", [], [None, 1, "x", {}], {}, {"id": [], "url": 5}])
@pytest.mark.parametrize(
    "name",
    [
        "id",
        "url",
        "external_url",
        "title",
        "content_html",
        "content_text",
        "summary",
        "date_published",
        "date_modified",
        "author",
        "authors",
        "tags",
        "language",
        "attachments",
        "image",
        "_smartfeeds",
    ],
)
def test_members_of_any_type(name, value):
    """An odd member is left out or kept as it is; the item stays, and can be written again."""
    document = read({"id": "a", "content_text": "c", name: value})
    (one,) = document.items
    assert json.loads(write_json_feed(HEAD, [read_entry(item(one.payload, one.id))]).data)["items"]


@pytest.mark.parametrize("value", [None, True, 3, "text", []])
def test_items_that_are_no_objects_are_left_out(value):
    document = read({"id": "1"}, value)
    assert ([one.id for one in document.items], [one.index for one in document.skipped]) == (["1"], [1])


def test_dates_in_other_forms_are_read_or_told():
    document = read(
        {"id": "1", "date_published": "Mon, 09 May 2011 12:00:00 GMT"}, {"id": "2", "date_modified": "soon"}
    )
    first, second = document.items
    assert first.published_us == US
    assert second.warnings == ("the date 'soon' cannot be read and was left out",)


def test_what_json_feed_says_last_of_all_counts():
    """RFC 8259 4: a member that stands twice is read as JavaScript does, and told."""
    data = b'{"version":"' + VERSION.encode() + b'","title":"T","items":[{"id":"1","id":"2"}]}'
    document = read_document(data)
    assert [one.id for one in document.items] == ["2"]
    assert document.warnings == ("a member stands twice in an object; the last one was read",)


def test_a_byte_order_mark_is_no_part_of_json():
    data = b"\xef\xbb\xbf \r\n" + json.dumps({"version": VERSION, "title": "T", "items": []}).encode()
    assert read_document(data).format == "JSON Feed 1.1"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deeper than"),
        (b"[" * 100_000, "deeper than"),
        (b"[" * (MAX_JSON_DEPTH + 1) + b"]" * (MAX_JSON_DEPTH + 1), "deeper than"),
        (b"[" + b"1," * 1_000_001 + b"1]", "more than"),
        (b'{"a":1', "well-formed JSON"),
        (b"{'a':1}", "well-formed JSON"),
        (b'{"a', "well-formed JSON"),
        (b'{"a\\', "well-formed JSON"),
        (b'{"' + b'\\"' * 500_000, "well-formed JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_json_beyond_its_limits_is_refused(data, reason):
    """Refused before anything is built of it; a string without end is looked at once."""
    with pytest.raises(FeedError, match=reason) as caught:
        read_document(data)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b'{"a":1e999}', "too large"),
        (b'{"a":' + b"9" * 5000 + b"}", "too large"),
    ],
)
def test_numbers_that_json_does_not_have_are_refused_in_requests(data, reason):
    with pytest.raises(FeedError, match=reason) as caught:
        load_json(data)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


JSON_FEED = '{"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [%s]}'


@pytest.mark.parametrize(
    ("document", "note"),
    [
        (JSON_FEED % '{"id": "1", "content_text": "a\nb\x08c"}', "control characters"),
        (JSON_FEED % '{"id": "1", "content_text": "a b c",},', "commas"),
        (JSON_FEED % '{"id": "1", "content_text": "a b c"}' + "<!-- 0.1 s -->", "after the end"),
        (JSON_FEED % '{"id": "1", "content_text": "a b c"}' * 2, "after the end"),
        ("\ufeff" + JSON_FEED % '{"id": "1", "content_text": "a\tb,] c",}', "control characters"),
        (JSON_FEED % '{"id": "1", "_x": NaN}', "read as null"),
        (JSON_FEED % '{"id": "1", "_x": [-Infinity, undefined, 1e999, %s]}' % ("9" * 5_000), "read as null"),
        (JSON_FEED % ',{"id": "1"},,', "commas without"),
        (JSON_FEED % '/* "[{ */ {"id": "1", // NaN\n"url": "http://e.example/"}', "comments"),
        (JSON_FEED % r'{"id": "1", "content_text": "it\'s \x41\u00e9 \d"}', "escapes"),
    ],
)
def test_faults_of_json_cost_no_item(document, note):
    """And requests stay strict."""
    feed = read_document(document.encode())
    assert [item.id for item in feed.items] == ["1"]
    assert note in "; ".join(feed.repairs)
    with pytest.raises(FeedError, match=r"well-formed JSON|does not have"):
        load_json(document.encode())


def test_faults_of_json_leave_texts_alone():
    """A repair outside of strings changes nothing in them, and an escape means what it means in JavaScript."""
    text = r"// NaN, ,] }{ /* 1e999 */ \"\\"
    item = '{"id": "%s", "content_text": "' + text + '", "_n": NaN}'
    feed = read_document((JSON_FEED % f"{item % 1} {item % 2}").encode())
    assert [item.id for item in feed.items] == ["1", "2"]
    assert [atom.text_of(xml.parse_stored(item.payload), atom.CONTENT) for item in feed.items] == [
        json.loads(f'"{text}"')
    ] * 2
    (item,) = read_document((JSON_FEED % r'{"id": "1", "title": "it\'s \x41\u00e9 \d\/"}').encode()).items
    assert atom.text_of(xml.parse_stored(item.payload), atom.TITLE) == "it's Aé d/"


def test_comment_hides_no_depth():
    """The limits hold for the document as it is read."""
    with pytest.raises(FeedError, match="deeper"):
        read_document((JSON_FEED % ('{"id": "1", /* " */ "_x": ' + "[" * 100_000)).encode())


@pytest.mark.parametrize(
    ("members", "values"),
    [
        ({"title": 404}, {"title": "404"}),
        ({"date_published": 1_709_633_700}, {"date_published": "2024-03-05T10:15:00Z"}),
        ({"date_published": 1_709_633_700_000}, {"date_published": "2024-03-05T10:15:00Z"}),
        ({"author": "Ann"}, {"authors": [{"name": "Ann"}]}),
        ({"authors": "Ann"}, {"authors": [{"name": "Ann"}]}),
        ({"authors": {"name": "Ann"}}, {"authors": [{"name": "Ann"}]}),
        ({"authors": ["Ann", {"name": "Bo"}, 7]}, {"authors": [{"name": "Ann"}, {"name": "Bo"}]}),
        ({"tags": "news"}, {"tags": ["news"]}),
        (
            {"attachments": {"url": "http://e.example/a.mp3", "mime_type": "audio/mpeg"}},
            {"attachments": [{"url": "http://e.example/a.mp3", "mime_type": "audio/mpeg"}]},
        ),
    ],
)
def test_member_of_another_type_that_can_be_meant(members, values):
    assert again(**members).items() >= values.items()


def test_items_in_an_object_are_read():
    """PHP writes an array whose keys have a gap as an object."""
    document = {"version": VERSION, "title": "T", "items": {"0": {"id": "1"}, "2": {"id": "3"}}}
    assert [item.id for item in read_document(json.dumps(document).encode()).items] == ["1", "3"]


ONE = JSON_FEED % '{"id": "1", "content_text": "a b c"}'
CUT = JSON_FEED % '{"id": "1", "content_html": "<p>,]}"}, {"id": "2", "tags": [{}], "authors": [{"name": "x"}]}'


@pytest.mark.parametrize(
    "document",
    [
        "<br />\n<b>Warning</b>: Undefined $x in <b>/var/www/x.php</b> on line <b>3</b><br />\n" + ONE,
        "PHP Notice: Undefined index [x] {y} in x.php\n" + ONE,
        f"callback({ONE});",
        f"/**/ callback && callback({ONE})",
        "// feed of the blog\n" + ONE,
        ")]}',\n" + ONE,
        "while(1);" + ONE,
        "\u00a0" + ONE,
        ONE.replace('"items"', '\ufeff\u00a0"items"'),
    ],
)
def test_what_stands_around_a_json_feed_costs_no_item(document):
    """[SRC-051]"""
    feed = read_document(document.encode())
    assert [item.id for item in feed.items] == ["1"]
    assert feed.repairs


@pytest.mark.parametrize(
    "document",
    [
        f"<!DOCTYPE html><title>How to write a JSON Feed</title><pre>{ONE}</pre>",
        f"<html><script>{ONE}</script></html>",
        f"<h1>Example</h1><pre>{ONE}</pre>",
    ],
)
def test_page_about_json_feed_is_a_page(document):
    with pytest.raises(FeedError, match="web page"):
        read_document(document.encode())


@pytest.mark.parametrize("place", range(CUT.index('"2"'), len(CUT)))
def test_json_feed_that_is_cut_has_the_items_that_are_whole(place):
    """Wherever the end is missing. The document is partial, so nothing is retracted."""
    feed = read_document(CUT[:place].encode())
    assert feed.items[0].id == "1"
    assert (feed.partial, feed.repairs[-1].startswith("the document ends in the middle")) == (True, True)


@pytest.mark.parametrize("place", range(CUT.index('"items"') + 10, CUT.index(', {"id": "2"'), 5))
def test_json_feed_that_is_cut_before_its_first_item_is_refused(place):
    with pytest.raises(FeedError, match=r"well-formed JSON|no item is whole: the document ends in the middle$"):
        read_document(CUT[:place].encode())


def test_json_within_its_limits_is_read():
    """Brackets and commas in strings are no structure."""
    text = json.dumps({"a": '[{,\\"' * 400_000, "b": 10**31, "c": 10**40}).encode()
    value, warnings, _ = load_json(text)
    assert (value["a"], value["b"], value["c"], warnings) == ('[{,\\"' * 400_000, 10**31, 1e40, [])
    depth = b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH
    assert load_json(depth).value == json.loads(depth)


def test_a_huge_document_is_refused(monkeypatch):
    monkeypatch.setattr("smartfeeds.formats.json_text.MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(FeedError) as caught:
        read_document(b'{"version": 1}')
    assert caught.value.condition is Condition.PAYLOAD_TOO_BIG


def test_an_item_without_id_gets_one_that_stays():
    """[A-122] the address of its page, else what it says"""
    first, second = read({"url": "http://e.example/1"}, {"content_text": "c"}).items
    assert first.id == "http://e.example/1"
    assert second.id == read({"content_text": "c"}).items[0].id


def test_times_survive():
    entry = read_item(date_published="2011-05-09T12:00:00.123456Z", date_modified="2011-05-09T12:00:01.5Z")
    (one,) = written(entry)["items"]
    assert (one["date_published"], one["date_modified"]) == ("2011-05-09T12:00:00.123456Z", "2011-05-09T12:00:01.5Z")
    assert parse_datetime(one["date_published"]) == US + 123_456


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("own", [{}, {"_smartfeeds": {"id": "item"}}])
@pytest.mark.parametrize("given", ["a b", "7", "http://e.example/1", "urn:x-test:1", "tag:e.example,2011:1"])
def test_a_json_feed_written_again_keeps_its_ids(given, own, deleted):
    """[SF-011] [A-35] Whoever follows the feed meets no item anew, whether its id is an address or not."""
    members = {"id": given, "content_text": "c", "_smartfeeds": {**own.get("_smartfeeds", {}), "deleted": deleted}}
    feed = {"version": VERSION, "title": "T", "items": [members]}
    for _ in range(2):
        (read_item,) = read_document(json.dumps(feed).encode()).items
        feed = json.loads(write_json_feed(HEAD, [read_entry(stored(read_item))]).data)
        assert [one["id"] for one in feed["items"]] == [given]
        assert feed["items"][0]["_smartfeeds"]["id"] == read_item.id == ("item" if own else given)


def stored(read_item):
    payload = complete_entry(read_item.payload, read_item.id, 0)
    return Item(1, read_item.id, 0, 0, payload, "", read_item.deleted)


def test_addresses_of_the_feed_are_written_as_uris():
    """RFC 3986: an icon and a hub may come from a feed that has raw addresses."""
    channel = Channel(icon="https://e.example/i con.png", hub="https://e.example/h\u00fcb")
    document = written(head=FeedHead("urn:x-test:f", "T", US, channel=channel))
    assert document["icon"] == "https://e.example/i%20con.png"
    assert document["hubs"] == [{"type": "WebSub", "url": "https://e.example/h%C3%BCb"}]

"""Items as ActivityStreams 1.0 in JSON."""

import copy
import json

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.activity import activity_losses, write_activities, write_activity
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.feed_document import FormatLoss
from support.entries import accept_entry
from support.golden import GOLDEN

US = 1304942400_000_000
HTTP = GOLDEN["http"]
HEAD = FeedHead("urn:x-test:f", "T", US)


def item(payload, item_id="a", at_us=US, *, deleted=False):
    return Item(1, item_id, at_us, at_us, payload, "alice@example.org", deleted)


def entry_of(inside, item_id="a", attributes=""):
    namespaces = (
        f'xmlns="{atom.ATOM_NS}" xmlns:thr="{atom.THREAD_NS}" xmlns:activity="http://activitystrea.ms/spec/1.0/"'
    )
    root = xml.parse_payload(f"<entry {namespaces}{attributes}>{inside}</entry>".encode())
    return read_entry(item(accept_entry(root, item_id, US), item_id))


def activity(inside, **options):
    return json.loads(write_activity(entry_of(inside), **options))


def golden_entries():
    """The entries of the golden Atom pages, by their item id."""
    documents = [HTTP["atom"][0]["body"], HTTP["push"][0]["body"]]
    found = {}
    for document in documents:
        for one in read_document(document.encode()).items:
            found[one.id] = read_entry(item(one.payload, one.id, one.published_us))
    return found


def pages():
    return [row for row in HTTP["json"] if row["status"] == 200]


@pytest.mark.parametrize("row", pages(), ids=lambda row: row["request"])
def test_golden_pages(row):
    """[A-35] [SF-060] [SF-061] [SF-062] [SF-063] [SF-064] [SF-065] the golden bodies, member by member, in order"""
    body = copy.deepcopy(row["body"])
    entries = golden_entries()
    head = FeedHead(
        body["url"], "comments", US, body["url"], next_link=body.get("next", ""), total=body["totalItems"],
        last_cursor=body.get("last_cursor", ""),
    )  # fmt: skip
    written = write_activities(head, [entries[one["id"]] for one in body["items"]])
    # The golden feed is one of comments; who writes a feed as a document does not know that of any.
    for one in (guessed for guessed in body["items"] if not entries[guessed["id"]].replies_to and "object" in guessed):
        one["object"]["objectType"] = entries[one["id"]].object_type
    assert json.loads(written.data) == body
    assert written.data.decode() == json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    assert written.losses == ()


def test_golden_items_one_by_one():
    """[SF-065] the pages are made of what `write_activity` gives"""
    entries = golden_entries()
    for one in (one for row in pages() for one in row["body"]["items"]):
        assert json.loads(write_activity(entries[one["id"]], comments=True)) == one


def test_golden_json_p():
    """[SF-055] what stands in a JSON-P answer is what stands in a JSON one"""
    entry = golden_entries()["r"]
    assert write_activity(entry, comments=True).decode() in HTTP["jsonp"][0]["body"]


def test_tombstones():
    """[A-18] [SF-013] exactly id, time and mark"""
    tombstone = atom.tombstone("a", US + 1_500_000, b"")
    data = write_activity(read_entry(item(tombstone, deleted=True)), comments=True)
    assert data == b'{"id":"a","updated":"2011-05-09T12:00:01.5Z","deleted":true}'


def test_all_members_in_their_order():
    """[A-35] the mapping of an entry that says everything"""
    entry = entry_of(
        """<id>tag:e.example,2011:1</id><title type="html">A &lt;b>&amp;amp;&lt;/b> B</title><summary>s</summary>
        <content type="html">&lt;p>c&lt;/p></content>
        <published>2011-05-09T12:00:00Z</published><updated>2011-05-09T12:00:01Z</updated>
        <author><name>Ann</name><email>a@e.example</email><uri>http://e.example/ann</uri></author>
        <category term="t" scheme="http://e.example/s" label="T"/><link href="http://e.example/1"/>
        <link rel="enclosure" href="http://e.example/f" type="audio/mpeg" title="F" length="12"/>
        <link rel="enclosure" href="http://e.example/g"/>
        <source><title>Other</title><link href="http://o.example/"/></source>
        <thr:in-reply-to ref="tag:e.example,2011:0" href="http://e.example/0"/>
        <activity:verb>share</activity:verb>""",
        attributes=' xml:lang="en"',
    )
    expected = {
        "id": "a",
        "published": "2011-05-09T12:00:00Z",
        "updated": "2011-05-09T12:00:01Z",
        "title": "A & B",
        "verb": "share",
        "actor": {
            "objectType": "person",
            "displayName": "Ann",
            "url": "http://e.example/ann",
            "id": "mailto:a@e.example",
        },
        "object": {
            "objectType": "comment",
            "id": "tag:e.example,2011:1",
            "url": "http://e.example/1",
            "displayName": "A & B",
            "summary": "s",
            "content": "<p>c</p>",
            "contentType": "text/html",
            "language": "en",
            "attachments": [
                {
                    "objectType": "audio",
                    "displayName": "F",
                    "url": "http://e.example/f",
                    "mimeType": "audio/mpeg",
                    "length": 12,
                },
                {"objectType": "file", "url": "http://e.example/g"},
            ],
            "tags": [{"objectType": "category", "displayName": "t", "scheme": "http://e.example/s", "label": "T"}],
            "inReplyTo": [{"id": "tag:e.example,2011:0", "url": "http://e.example/0"}],
            "source": {"displayName": "Other", "url": "http://o.example/"},
        },
    }
    assert json.dumps(json.loads(write_activity(entry))) == json.dumps(expected)
    assert activity_losses(entry) == [FormatLoss("a", "the markup of the title")]


def test_an_entry_without_anything():
    """What is not said is left out; the times are those of the item."""
    assert activity("") == {
        "id": "a",
        "published": "2011-05-09T12:00:00Z",
        "updated": "2011-05-09T12:00:00Z",
        "verb": "post",
        "object": {"objectType": "note"},
    }


@pytest.mark.parametrize(
    ("inside", "plain", "comment"),
    [
        ("", "note", "comment"),
        ("<title>t</title>", "article", "comment"),
        ("<activity:object-type>note</activity:object-type>", "note", "note"),
        ("<activity:object-type>photo</activity:object-type>", "photo", "photo"),
        ("<thr:in-reply-to ref='urn:x-test:1'/>", "comment", "comment"),
    ],
)
def test_object_types(inside, plain, comment):
    """[A-35] in a feed of comments an item is one, unless it says what it is"""
    assert activity(inside)["object"]["objectType"] == plain
    assert activity(inside, comments=True)["object"]["objectType"] == comment


@pytest.mark.parametrize(
    ("content", "members"),
    [
        ("<content>a &lt;b></content>", {"content": "a <b>"}),
        ('<content type="html">a &lt;b></content>', {"content": "a <b>", "contentType": "text/html"}),
        (
            '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<br/></div></content>',
            {"content": "a<br>", "contentType": "text/html"},
        ),
        ('<content type="html"></content>', {}),
    ],
)
def test_content_says_whether_it_is_html(content, members):
    """[A-35] text is given as it is; HTML is marked"""
    assert activity(content)["object"] == {"objectType": "note", **members}


@pytest.mark.parametrize(
    ("person", "actor"),
    [
        ("<name>n</name><uri>xmpp:n@e.example</uri>", {"displayName": "n", "id": "xmpp:n@e.example"}),
        ("<email>n@e.example</email>", {"displayName": "n@e.example", "id": "mailto:n@e.example"}),
        ("<uri>https://e.example/n</uri>", {"displayName": "https://e.example/n", "url": "https://e.example/n"}),
    ],
)
def test_actors(person, actor):
    """[A-35] the author is the actor"""
    assert activity(f"<author>{person}</author>")["actor"] == {"objectType": "person", **actor}


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("<author><name>a</name></author><author><name>b</name></author>", "the authors after the first"),
        (
            "<author><uri>xmpp:a@b</uri><email>a@b</email></author>",
            "the mail address of a person who has another address too",
        ),
        ("<contributor><name>a</name></contributor>", "the contributors"),
        ("<rights>r</rights>", "the rights"),
        ('<link rel="via" href="u:v"/>', "links other than to the page and to enclosures"),
        ('<link rel="related" href="u:v"/>', "the addresses of related pages"),
        ('<summary type="html">&lt;b>x</summary>', "the markup of the summary"),
        ('<content src="u:v"/>', "the address of content that is elsewhere"),
        ('<content type="image/png">AAAA</content>', "the media type of the content, or the content itself"),
        ('<x xmlns="urn:x-test:x"/>', "elements of other namespaces"),
        (
            """<content type="html">&lt;img src='a.png'></content>""",
            "where relative addresses in its HTML lead: it says no base address",
        ),
    ],
)
def test_what_is_dropped_is_said(inside, what):
    """What ActivityStreams has no member for is a loss, of that item."""
    assert write_activities(HEAD, [entry_of(inside)]).losses == (FormatLoss("a", what),)


@pytest.mark.parametrize(
    "inside",
    [
        '<title type="html">a &amp;amp; b</title>',
        '<content type="html">&lt;a href="http://x.example/">&lt;a href="#q"></content>',
        '<content type="html" xml:base="http://e.example/">&lt;a href="q"></content>',
    ],
)
def test_nothing_is_said_to_be_dropped_that_is_there(inside):
    assert write_activities(HEAD, [entry_of(inside)]).losses == ()


def test_what_is_written_is_javascript_too():
    """[SF-055] U+2028 and U+2029 end lines in JavaScript"""
    data = write_activity(entry_of("<content>a\u2028b\u2029 &lt;/script>&lt;!--</content>"))
    assert "\u2028".encode() not in data
    assert "\u2029".encode() not in data
    assert json.loads(data)["object"]["content"] == "a\u2028b\u2029 </script><!--"


def test_an_item_id_may_hold_anything():
    """[SF-065] ids come out as they are, also those that JSON must escape"""
    entry = read_entry(item(b"", '"\\\t é\U0001f600\ud800'))
    data = write_activity(entry)
    assert json.loads(data)["id"] == '"\\\t é\U0001f600\ud800'


def read(*items):
    return read_document(json.dumps({"count": len(items), "totalItems": len(items), "items": items}).encode())


def test_golden_pages_are_read():
    """[A-35] what is written is read: ids, times, authors, contents"""
    body = pages()[0]["body"]
    document = read_document(json.dumps(body).encode())
    assert (document.format, document.link, document.warnings, document.skipped) == (
        "ActivityStreams 1.0", body["url"], (), ()
    )  # fmt: skip
    again = [read_entry(item(one.payload, one.id, one.published_us)) for one in document.items]
    assert [json.loads(write_activity(one, comments=True)) for one in again] == body["items"]
    assert [one.content.value for one in again] == ["first", "second & <b>bold</b>"]


def test_deletions_are_read():
    """[A-18] with their time; one that names no item is left out"""
    document = read({"id": "a", "updated": "2011-05-09T12:00:01Z", "deleted": True}, {"deleted": True})
    (one,) = document.items
    assert (one.id, one.deleted, one.updated_us) == ("a", True, parse_datetime("2011-05-09T12:00:01Z"))
    assert atom.is_deletion(xml.parse_payload(one.payload))
    assert [skipped.index for skipped in document.skipped] == [1]


def test_collections_of_others_hold_html():
    """ActivityStreams 1.0 has content for HTML; a Smart Feed, which has a count, says what it is."""
    one = {"id": "http://e.example/1", "verb": "post", "object": {"content": "a &amp; b", "displayName": "T"}}
    smart, other = read(one), read_document(json.dumps({"items": [one]}).encode())
    kinds = [xml.parse_payload(document.items[0].payload).find(atom.CONTENT).get("type") for document in (smart, other)]
    assert kinds == [None, "html"]
    assert read_entry(item(other.items[0].payload)).atom_id == "http://e.example/1"


ODD = [
    None,
    True,
    3,
    "text",
    [],
    [None, 1, "x", {}],
    {},
    {"id": {}, "displayName": 1, "url": [], "content": {}, "published": 5},
]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "name", ["id", "published", "updated", "title", "verb", "actor", "object", "url", "deleted", "more"]
)
def test_members_of_any_type(name, value):
    """An odd member is left out; the item stays."""
    document = read({"id": "a", "object": {"content": "c"}, name: value})
    assert len(document.items) == 1


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "name",
    [
        "id",
        "url",
        "displayName",
        "summary",
        "contentType",
        "language",
        "objectType",
        "attachments",
        "tags",
        "inReplyTo",
        "source",
    ],
)
def test_members_of_an_object_of_any_type(name, value):
    """The same inside of an object."""
    (one,) = read({"id": "a", "object": {"content": "c", name: value}}).items
    assert read_entry(item(one.payload)).content.value == "c"


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b"[]",
        b'{"items":[]}',
        b'{"items":[{"id":"a"}]}',
        b'{"@context":"https://www.w3.org/ns/activitystreams","type":"OrderedCollection","orderedItems":[]}',
        b'{"items":{"verb":"post"},"totalItems":1}',
    ],
)
def test_other_json_is_refused(document):
    with pytest.raises(FeedError, match="neither a JSON Feed nor ActivityStreams") as caught:
        read_document(document)
    assert caught.value.condition is Condition.INVALID_PAYLOAD

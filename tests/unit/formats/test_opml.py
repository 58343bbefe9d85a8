"""Outlines: read from OPML 1.0 and 2.0, written as 2.0, and the list of feeds as one."""

from pathlib import Path

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.text import ForbiddenCharacterError
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, opml, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.opml import (
    CHANGED,
    ListedFeed,
    Outline,
    OutlineDocument,
    read_outline,
    write_list,
    write_outline,
)
from smartfeeds.formats.opml_items import write_items
from smartfeeds.formats.rss_channel import Channel
from support.entries import accept_entry
from support.outlines import listed_feeds

NOON_US = 1304942400_000_000
CORPUS = Path(__file__).parents[2] / "corpus" / "data"
OUTLINES = {
    "fv__opml__clean__outlineDocument.opml": ("1.0", "outlineDocument top-level element", 1),
    "fv__opml__clean__presentation.opml": ("1.0", "presentation.xml", 91),
    "fv__opml__clean__simpleScript.opml": ("1.1", "workspace.userlandsamples.doSomeUpstreaming", 11),
    "fv__opml__clean__subscriptionList.opml": ("1.1", "mySubscriptions.opml", 13),
    "fv__opml__errors__badlyFormedDateModified.opml": ("1.1", "Badly Formed Dates", 1),
    "fv__opml__errors__invalidCharacters.opml": ("1.1", "Badly \u201cQuoted\u201d Text", 1),
    "fv__opml__errors__notwellformed.opml": ("1.1", "This & That", 2),
    "fv__opml__errors__missingHead.opml": ("1.1", "", 1),
    "fv__opml__errors__missingOutline.opml": ("1.1", "Missing Outline Element", 0),
    "fv__opml__errors__subscriptionListErrors1.opml": ("1.1", "mySubscriptions.opml", 5),
    "fv__opml__errors__subscriptionListErrors4.opml": ("1.1", "mySubscriptions.opml", 5),
    "sm_opml_include_self.opml": ("2.0", "Test outline", 2),
    "sm_sse_opml_ordered.opml": ("1.0", "Test outline", 4),
}
REFUSED = {
    "fv__opml__errors__missingBody.opml": "has no body",
}


def read(name):
    return read_outline((CORPUS / name).read_bytes())


def written(document):
    return b"".join(write_outline(document))


def outline(inside, version="2.0", head="<title>T</title>"):
    return f'<opml version="{version}"><head>{head}</head><body>{inside}</body></opml>'.encode()


def test_every_outline_of_the_corpus_is_in_a_table():
    assert {path.name for path in CORPUS.glob("*.opml")} == set(OUTLINES) | set(REFUSED)


@pytest.mark.parametrize("name", OUTLINES)
def test_outline_is_read_whole(name):
    document = read(name)
    found = (document.version, document.title, len(list(opml.flattened(document.outlines))))
    assert found == OUTLINES[name]


@pytest.mark.parametrize("name", OUTLINES)
def test_outline_written_and_read_again_is_the_same(name):
    """[A-153] OPML keeps document order, nesting, attributes and what it does not know."""
    before = read(name)
    after = read_outline(written(before))
    assert (after.head, after.outlines, after.head_extensions) == (
        before.head,
        before.outlines,
        before.head_extensions,
    )
    assert after.version == "2.0"


@pytest.mark.parametrize("name", REFUSED)
def test_broken_outline_is_refused_with_its_reason(name):
    with pytest.raises(FeedError, match=REFUSED[name]) as caught:
        read(name)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


def test_tree_appears_as_a_flat_list():
    """[SF-008] every outline once, in document order, with its level."""
    document = read("sm_sse_opml_ordered.opml")
    assert [(level, one.text) for level, one in opml.flattened(document.outlines)] == [
        (0, "A"),
        (1, "B"),
        (0, "C"),
        (0, "no sync"),
    ]


def test_sync_markup_stays_with_its_outline():
    """Other programs' elements are still where they were when the outline is written again."""
    document = read_outline(written(read("sm_sse_opml_ordered.opml")))
    syncs = {one.text: one.extensions for _, one in opml.flattened(document.outlines)}
    ids = {text: [xml.parse_payload(sync).get("id") for sync in found] for text, found in syncs.items()}
    assert ids == {"A": ["a"], "B": ["b"], "C": ["c"], "no sync": []}


def test_inclusion_is_kept_and_never_followed():
    """An outline that includes itself is two lines; the addresses are attributes like any other."""
    include, link = read("sm_opml_include_self.opml").outlines
    assert include == Outline("me", {"type": "include", "url": "http://example.org/me.opml"})
    assert link.attributes["url"] == "javascript:alert(1)"


def test_subscription_list_names_its_feeds():
    feeds = list(listed_feeds(read("fv__opml__clean__subscriptionList.opml")))
    assert len(feeds) == 13
    assert feeds[11] == ListedFeed(
        "Scripting News",
        "http://www.scripting.com/rss.xml",
        "http://www.scripting.com/",
        description="It's even worse than it appears.",
        language="unknown",
    )


def test_outline_without_text_takes_the_title_and_says_so():
    document = read_outline(outline('<outline title="x"/><outline><bogus/></outline>'))
    assert [one.text for one in document.outlines] == ["x", ""]
    assert document.warnings == (
        "outline 1 has no text",
        "an element in outline 2 that OPML does not have was left out",
        "outline 2 has no text",
    )


def test_outline_full_of_faults_is_told_of_a_few_times():
    warnings = read_outline(outline("<outline/>" * 500)).warnings
    assert len(warnings) == opml.MAX_WARNINGS + 1
    assert warnings[-1] == "there is more of that kind"


@pytest.mark.parametrize("namespace", ["http://opml.org/spec2", "http://www.opml.org/spec2"])
def test_outline_in_the_namespaces_of_opml_is_one(namespace):
    text = outline('<outline text="a"/>').replace(b"<opml ", f'<opml xmlns="{namespace}" '.encode())
    assert read_outline(text).outlines == (Outline("a"),)


@pytest.mark.parametrize("text", [b"<rss/>", b"<opml xmlns='urn:x-test:o'><body/></opml>", b"{}", b""])
def test_what_is_no_outline_is_refused(text):
    with pytest.raises(FeedError) as caught:
        read_outline(text)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


@pytest.mark.parametrize(
    ("inside", "condition"),
    [
        ("<outline text='a'>" * (opml.MAX_LEVELS + 1) + "</outline>" * (opml.MAX_LEVELS + 1), "INVALID_PAYLOAD"),
        ("<outline text='a'>" * 3000 + "</outline>" * 3000, "INVALID_PAYLOAD"),
        ("<outline text='a'/>" * (opml.MAX_OUTLINES + 1), "PAYLOAD_TOO_BIG"),
        ("<outline " + " ".join(f"a{n}='x'" for n in range(129)) + "/>", "INVALID_PAYLOAD"),
    ],
    ids=["levels", "parser", "outlines", "attributes"],
)
def test_outline_beyond_the_limits_is_refused(inside, condition):
    with pytest.raises(FeedError) as caught:
        read_outline(outline(inside))
    assert caught.value.condition is Condition[condition]


def test_deepest_outline_is_read_and_written():
    inside = "<outline text='a'>" * opml.MAX_LEVELS + "</outline>" * opml.MAX_LEVELS
    document = read_outline(outline(inside))
    assert read_outline(written(document)).outlines == document.outlines


def test_list_of_feeds_is_a_subscription_list_with_the_chat_address_in_a_namespace():
    feed = ListedFeed(
        "News & more",
        "https://feeds.example/feeds/news.atom",
        "https://feeds.example/feeds/news/",
        "xmpp:feeds.example?;node=news",
        'All the "news"',
        "en",
        1304942400_000_000,
    )
    data = b"".join(write_list("Feeds", [feed, ListedFeed("b", "http://x.example/")], now_us=1304942400_000_000))
    root = xml.parse_payload(data)
    assert (root.tag, root.get("version")) == ("opml", "2.0")
    assert [(node.tag, node.text) for node in root.find("head")] == [
        ("title", "Feeds"),
        ("dateCreated", "Mon, 09 May 2011 12:00:00 GMT"),
    ]
    first, second = root.iterfind("body/outline")
    assert dict(first.attrib) == {
        "text": "News & more",
        "title": "News & more",
        "type": "rss",
        "xmlUrl": "https://feeds.example/feeds/news.atom",
        "htmlUrl": "https://feeds.example/feeds/news/",
        "description": 'All the "news"',
        "language": "en",
        "created": "Mon, 09 May 2011 12:00:00 GMT",
        "{urn:x-smartfeeds:opml}xmpp": "xmpp:feeds.example?;node=news",
    }
    assert dict(second.attrib) == {"text": "b", "title": "b", "type": "rss", "xmlUrl": "http://x.example/"}
    read_back = next(listed_feeds(read_outline(data)))
    assert (read_back.title, read_back.xml_url, read_back.xmpp) == (feed.title, feed.xml_url, feed.xmpp)


def test_list_is_written_in_pieces():
    """A long list need not be in memory."""
    pieces = write_list("T", (ListedFeed(str(n), "http://x.example/") for n in iter(int, 1)))
    assert next(pieces).startswith(b"<?xml")
    assert b"http://x.example/" in next(pieces)


def test_attributes_of_other_namespaces_and_difficult_characters_survive():
    attributes = {"{urn:x-test:a}b": 'q"\t\n&<', "{urn:x-test:c}b": "2", f"{{{xml.XML_NS}}}lang": "de", "_note": "n"}
    document = OutlineDocument({"title": "a & b"}, (Outline("<x>\r", attributes, extensions=(b"<y xmlns='urn:y'/>",)),))
    after = read_outline(written(document))
    assert after.outlines[0].attributes == attributes
    assert (after.outlines[0].text, after.title) == ("<x>\r", "a & b")
    assert [xml.parse_payload(one).tag for one in after.outlines[0].extensions] == ["{urn:y}y"]


def test_text_that_xml_cannot_carry_is_refused():
    with pytest.raises(ForbiddenCharacterError):
        list(write_list("\x00", []))


def item(inside, item_id="a", deleted=False):
    root = xml.parse_payload(f'<entry xmlns="{atom.ATOM_NS}">{inside}</entry>'.encode())
    return Item(1, item_id, NOON_US, NOON_US, accept_entry(root, item_id, NOON_US), "", deleted)


def outlines_of(*items):
    """The outlines of items, and what they lack."""
    losses = []
    head = FeedHead("urn:x-test:f", "T", NOON_US, subtitle="S", channel=Channel(authors=("Ann", "Bob")))
    document = read_outline(b"".join(write_items(head, items, losses)))
    assert document.head == {"title": "T", "dateModified": "Mon, 09 May 2011 12:00:00 GMT", "ownerName": "Ann, Bob"}
    return document.outlines, [(loss.item_id, loss.what) for loss in losses]


def test_item_is_an_outline_with_what_outliners_show():
    """[A-153] in the order of the feed."""
    extension = '<x xmlns="urn:x-test:x">y</x>'
    inside = (
        '<title>One</title><content>a  b</content><link href="http://x.example/1"/><category term="a/b"/>'
        f'<category term="c"/><updated>2011-05-09T13:00:00Z</updated>{extension}'
    )
    (one, two), losses = outlines_of(item(inside), item("<title>Two</title>", "b"))
    assert one == Outline(
        "One",
        {
            "type": "link",
            "url": "http://x.example/1",
            "created": "Mon, 09 May 2011 12:00:00 GMT",
            "category": "a/b,c",
            opml.NOTE: "a  b",
            opml.ITEM_ID: "a",
            CHANGED: "2011-05-09T13:00:00Z",
        },
        extensions=(extension.encode(),),
    )
    assert (two.text, two.attributes[opml.ITEM_ID], losses) == ("Two", "b", [])


@pytest.mark.parametrize(
    ("inside", "text", "note"),
    [
        ("<content>short</content>", "short", None),
        ("<summary>s</summary>", "s", None),
        (f"<content>{'word ' * 40}</content>", ("word " * 40)[:79].rstrip() + "\u2026", ("word " * 40).strip()),
        ("", "", None),
    ],
)
def test_item_without_title_takes_the_beginning_of_its_text(inside, text, note):
    (one,), _ = outlines_of(item(inside))
    assert (one.text, one.attributes.get(opml.NOTE)) == (text, note)


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("<author><name>Ann</name></author>", "the authors"),
        ('<link rel="enclosure" href="http://x.example/a"/>', "the enclosures"),
        ('<content type="html">&lt;b>x</content>', "the markup of the text"),
        ('<category term="a, b"/>', "categories with a comma in them"),
        ('<x xmlns="">y</x>', "elements without a namespace"),
        ('<title type="html">&lt;b>x</title>', "the markup of the title"),
        ('<link rel="related" href="http://x.example/a"/>', "the addresses of related pages"),
        ("<rights>mine</rights>", "the rights"),
    ],
)
def test_what_an_outline_cannot_say_is_told(inside, what):
    (_one,), losses = outlines_of(item(inside))
    assert losses == [("a", what)]


RELATED = "the addresses of related pages"
DETAILS = "the type, title or length of the link to the page, or what else is said of a link"


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ("", []),
        ("title='t'", [RELATED, DETAILS]),
        ("/><link rel='related' href='http://x.example/b'", [RELATED]),
        ("/><link rel='related' type='application/rss+xml' href='http://x.example/b'", [RELATED, DETAILS]),
    ],
)
def test_link_to_a_feed_is_no_loss(more, lost):
    """`xmlUrl` has all of it: the export of a subscription list is complete."""
    link = f"<link rel='related' type='application/rss+xml' href='http://x.example/a' {more}/>"
    (one,), losses = outlines_of(item(f"<title>x</title>{link}"))
    assert (one.attributes["xmlUrl"], [what for _item, what in losses]) == ("http://x.example/a", lost)


def test_deleted_item_is_no_outline_and_told():
    """[A-18] OPML 2.0 requires a body to have an outline: a comment, which is no item when it is read."""
    gone = Item(1, "a", 0, 0, atom.tombstone("a", 0, b""), "", deleted=True)
    (placeholder,), losses = outlines_of(gone)
    assert losses == [("a", "a deleted item: OPML has no form for it")]
    assert (placeholder.text, placeholder.attributes["isComment"]) == ("no entries", "true")
    assert read_document(b"".join(write_items(FeedHead("urn:x-test:f", "T", 0), [gone], []))).items == ()
    assert [one.attributes["isComment"] for one in read_outline(b"".join(write_list("T", []))).outlines] == ["true"]

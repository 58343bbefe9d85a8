"""Stored payloads as values."""

import pytest

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.entry import (
    Category,
    Entry,
    EntryLink,
    EntryPerson,
    EntrySource,
    EntryText,
    ReplyReference,
    TextKind,
    read_entry,
)
from support.entries import accept_entry

US = 1304942400_000_000


def item(payload, item_id="a", *, deleted=False):
    return Item(1, item_id, US, US + 500_000, payload, "alice@example.org", deleted)


def stored(inside, attributes=""):
    """The payload as publishing stores it."""
    namespaces = (
        f'xmlns="{atom.ATOM_NS}" xmlns:thr="{atom.THREAD_NS}" xmlns:x="urn:x-test:x"'
        ' xmlns:activity="http://activitystrea.ms/spec/1.0/"'
    )
    return accept_entry(xml.parse_payload(f"<entry {namespaces}{attributes}>{inside}</entry>".encode()), "a", US)


def read(inside, attributes="") -> Entry:
    return read_entry(item(stored(inside, attributes)))


def xhtml(inside, attributes=""):
    div = f'<div xmlns="http://www.w3.org/1999/xhtml"{attributes}>{inside}</div>'
    return read(f'<content type="xhtml">{div}</content>').content


def test_all_that_an_entry_says():
    entry = read(
        """<id>tag:e.example,2011:1</id><title>A &amp; B</title><summary type="html">s &lt;b&gt;x&lt;/b&gt;</summary>
        <content>c &lt; d</content><published>2011-05-09T12:00:00Z</published>
        <updated>2011-05-09T14:00:01+02:00</updated>
        <author><name>Ann  Lee</name><email>a@e.example</email><uri>xmpp:a@e.example</uri></author>
        <author><name>Bob</name></author><contributor><name>Cem</name></contributor>
        <category term="t" scheme="http://e.example/s" label="T"/><category term=" "/>
        <link href="http://e.example/1"/>
        <link rel="enclosure" href="http://e.example/f" type="audio/mpeg" title="F" length="12"/>
        <link rel="http://www.iana.org/assignments/relation/related" href="http://e.example/r"/>
        <rights>all mine</rights>
        <source><title>Other</title><link href="http://o.example/"/><link rel="self" href="http://o.example/f"/></source>
        <thr:in-reply-to ref="tag:e.example,2011:0" href="http://e.example/0"/><x:geo a="1">5</x:geo>""",
        ' xml:lang="en"',
    )
    assert entry == Entry(
        item_id="a",
        atom_id="tag:e.example,2011:1",
        title=EntryText(TextKind.TEXT, "A & B"),
        summary=EntryText(TextKind.HTML, "s <b>x</b>"),
        content=EntryText(TextKind.TEXT, "c < d"),
        authors=[EntryPerson("Ann Lee", "a@e.example", "xmpp:a@e.example"), EntryPerson("Bob")],
        categories=[Category("t", "http://e.example/s", "T")],
        links=[
            EntryLink("alternate", "http://e.example/1"),
            EntryLink("enclosure", "http://e.example/f", "audio/mpeg", "F", 12),
            EntryLink("related", "http://e.example/r"),
        ],
        published_us=US,
        updated_us=US + 1_000_000,
        source=EntrySource("Other", "http://o.example/f"),
        replies_to=[ReplyReference("tag:e.example,2011:0", "http://e.example/0")],
        language="en",
        object_type="comment",
        extensions=[b'<x:geo xmlns:x="urn:x-test:x" a="1">5</x:geo>'],
        created_us=US,
        modified_us=US + 500_000,
        contributors=[EntryPerson("Cem")],
        rights=EntryText(TextKind.TEXT, "all mine"),
    )
    assert (entry.alternate, [link.href for link in entry.enclosures]) == ("http://e.example/1", ["http://e.example/f"])
    assert (entry.issued_us, entry.changed_us, entry.has_own_id) == (US, US + 1_000_000, True)


@pytest.mark.parametrize("payload", [b"", b"<geoloc><lat>1</lat></geoloc>", b"no xml", b"<a><b></a>"])
def test_what_is_no_entry_gives_what_the_item_says(payload):
    """Generic nodes keep any payload, or none."""
    entry = read_entry(item(payload, "a b"))
    assert (entry.item_id, entry.atom_id, entry.has_own_id) == ("a b", "urn:x-smartfeeds:a%20b", False)
    assert (entry.issued_us, entry.changed_us, entry.title.value, entry.content) == (US, US + 500_000, "", None)
    assert entry.extensions == ([payload] if payload.startswith(b"<geoloc") else [])


def test_a_feed_as_payload_is_read_like_an_entry():
    """Item "0" of a microblog holds an atom:feed (XEP-0277)."""
    payload = f'<feed xmlns="{atom.ATOM_NS}"><id>urn:x-test:f</id><title>T</title><subtitle>S</subtitle></feed>'
    entry = read_entry(item(payload.encode(), "0"))
    assert (entry.atom_id, entry.title.plain, entry.summary) == ("urn:x-test:f", "T", EntryText(TextKind.TEXT, "S"))


def test_a_tombstone_says_that_it_is_one():
    """[SF-013] [A-18] id and time are left; the mark itself is no extension"""
    entry = read_entry(item(atom.tombstone("a", US + 7_000_000, stored("<content>x</content>")), deleted=True))
    assert (entry.deleted, entry.atom_id, entry.changed_us) == (True, "urn:x-smartfeeds:a", US + 7_000_000)
    assert (entry.title.value, entry.content, entry.extensions) == ("", None, [])


def test_sync_data_of_a_live_entry_is_kept():
    """[SF-009] FeedSync's element is an extension as any other"""
    (kept,) = read(f'<sx:sync xmlns:sx="{atom.FEEDSYNC_NS}" id="1" updates="3"/>').extensions
    assert b'updates="3"' in kept


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ("", "note"),
        ("<title> </title>", "note"),
        ("<title>t</title>", "article"),
        ("<title>t</title><thr:in-reply-to ref='urn:x-test:1'/>", "comment"),
        ("<title>t</title><thr:in-reply-to/>", "article"),
        ("<activity:object-type>http://activitystrea.ms/schema/1.0/photo</activity:object-type>", "photo"),
        ("<activity:object-type> note </activity:object-type><title>t</title>", "note"),
        (
            "<activity:object><activity:object-type>http://x.example/y/place/</activity:object-type></activity:object>",
            "place",
        ),
    ],
)
def test_object_type(inside, kind):
    """[A-35] what an entry is, said or guessed"""
    entry = read(inside)
    assert entry.object_type == kind
    assert entry.typed is ("activity" in inside)


def test_verb():
    """[A-35] the verb is post unless it is said"""
    verb = "<activity:verb>http://activitystrea.ms/schema/1.0/share</activity:verb>"
    assert (read("").verb, read(verb).verb, read(verb).extensions) == ("post", "share", [])


def test_relative_references_are_resolved():
    """[RFC 3986] each by the xml:base in force where it stands"""
    entry = read(
        """<link href="../1" xml:base="x/"/><link rel="self" href=""/><author><name>n</name><uri>me</uri></author>
        <thr:in-reply-to ref="../kept" href="p"/><content src="c.png" type="image/png"/>
        <source xml:base="http://o.example/"><link href="page"/></source>
        <summary type="html" xml:base="s/">&lt;a href="q"></summary>""",
        ' xml:base="http://e.example/a/"',
    )
    assert entry.links == [EntryLink("alternate", "http://e.example/a/1")]
    assert entry.authors[0].uri == "http://e.example/a/me"
    assert entry.replies_to == [ReplyReference("../kept", "http://e.example/a/p")]
    assert entry.content_link == EntryLink("content", "http://e.example/a/c.png", "image/png")
    assert entry.source == EntrySource("", "http://o.example/page")
    assert entry.summary == EntryText(TextKind.HTML, '<a href="http://e.example/a/s/q">')


@pytest.mark.parametrize(
    ("inside", "html"),
    [
        ("a<br/>b", "a<br>b"),
        ("<p/>", "<p></p>"),
        ("a &lt; b &amp; c", "a &lt; b &amp; c"),
        ('<a href="q" title="&quot;&lt;">x</a>', '<a href="q" title="&quot;&lt;">x</a>'),
        ("<br>inside</br>", "<br>inside"),
        ('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>', "<svg><g></g></svg>"),
        ('<h:b xmlns:h="http://www.w3.org/1999/xhtml">x</h:b>', "<b>x</b>"),
        ('<y:script xmlns:y="urn:x-test:y">x</y:script>', "<y:script>x</y:script>"),
        ('<script xmlns="urn:x-test:y">&lt;x</script>', "&lt;x"),
        ("<script>a &lt; b &amp;&amp; c</script>", "<script>a < b && c</script>"),
        ("<script>&lt;/script>&lt;img></script>", "<script>&lt;/script&gt;&lt;img&gt;</script>"),
        ("<style>&lt;!-- a</style>", "<style>&lt;!-- a</style>"),
        ('<b xml:lang="de" x:y="1">x</b>', '<b lang="de" x:y="1">x</b>'),
    ],
)
def test_xhtml_is_written_as_html(inside, html):
    """RFC 4287 3.1.1.3: what is in the div; no text becomes markup on the way."""
    assert xhtml(inside) == EntryText(TextKind.XHTML, html)


def test_xhtml_as_deep_as_a_payload_may_be():
    """[xep-map 246] the limit of payloads is that of the reading too"""
    depth = xml.MAX_DEPTH - 3
    assert xhtml("<b>" * depth + "x" + "</b>" * depth).value == "<b>" * depth + "x" + "</b>" * depth


def test_addresses_in_xhtml_are_resolved():
    text = xhtml(
        '<a href="q"><img src="i.png" alt="q"/></a><b xml:base="y/"><a href="z">z</a></b>',
        ' xml:base="http://e.example/"',
    )
    assert text.value == (
        '<a href="http://e.example/q"><img alt="q" src="http://e.example/i.png"></a>'
        '<b><a href="http://e.example/y/z">z</a></b>'
    )


def test_xhtml_without_a_div_is_read_all_the_same():
    entry = read('<content type="xhtml">a<b xmlns="http://www.w3.org/1999/xhtml">c</b>d</content>')
    assert entry.content == EntryText(TextKind.XHTML, "a<b>c</b>d")
    entry = read('<content type="xhtml">a<div xmlns="http://www.w3.org/1999/xhtml">c</div> d</content>')
    assert entry.content == EntryText(TextKind.XHTML, "a<div>c</div> d")


@pytest.mark.parametrize(
    ("attributes", "inside", "text", "left"),
    [
        ('type="text/plain"', "a", EntryText(TextKind.TEXT, "a"), ""),
        ('type="TEXT/HTML"', "&lt;b>", EntryText(TextKind.HTML, "<b>"), ""),
        ('type="text/markdown"', "*a*", EntryText(TextKind.TEXT, "*a*"), "text/markdown"),
        ('type="image/svg+xml"', "<g>a<h>b</h></g>", EntryText(TextKind.TEXT, "a b"), "image/svg+xml"),
        ('type="application/xml"', "<g/>", None, "application/xml"),
        ('type="image/png"', "AAAA", None, "image/png"),
    ],
)
def test_content_of_other_media_types(attributes, inside, text, left):
    """RFC 4287 4.1.3: text is given, and what is left out is told by its type."""
    entry = read(f"<content {attributes}>{inside}</content><content>second</content>")
    assert (entry.content, entry.content_type) == (text, left)


@pytest.mark.parametrize(
    ("text", "html", "plain"),
    [
        (EntryText(TextKind.TEXT, " a\n<b> & "), "a<br/>\n&lt;b&gt; &amp;", "a <b> &"),
        (EntryText(TextKind.HTML, "a<br>b <i>c</i>d &amp;"), "a<br>b <i>c</i>d &amp;", "a b cd &"),
        (EntryText(TextKind.XHTML, "<p>x</p>y"), "<p>x</p>y", "x y"),
    ],
)
def test_a_text_is_given_as_html_and_plain(text, html, plain):
    assert (text.html, text.plain) == (html, plain)


@pytest.mark.parametrize(
    "said", ["yesterday", "2011-05-09", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", ""]
)
def test_a_time_that_cannot_be_written_is_none(said):
    """A page with one odd entry in it is still a page."""
    entry = read(f"<published>{said}</published><updated>{said}</updated>")
    assert (entry.published_us, entry.updated_us) == (None, None)
    assert format_datetime(entry.issued_us) == "2011-05-09T12:00:00Z"
    assert entry.changed_us == US + 500_000


@pytest.mark.parametrize("length", ["", "-1", "1.5", "1e3", "x", "٣", "1" * 19, "+1"])
def test_a_length_that_is_none_is_unknown(length):
    """[A-127] [RSS-011]"""
    assert read(f'<link rel="enclosure" href="u:x" length="{length}"/>').enclosures == [EntryLink("enclosure", "u:x")]


def test_the_authors_of_the_source_are_those_of_a_copy_without_any():
    """RFC 4287 4.2.1"""
    source = "<source><author><name>Orig</name></author></source>"
    assert read(source).authors == [EntryPerson("Orig")]
    assert read(source + "<author><name>Own</name></author>").authors == [EntryPerson("Own")]


def test_nothing_is_made_of_empty_elements():
    entry = read("<author/><author><name> </name></author><link/><link href=' '/><category/><source/><id/><content/>")
    assert (entry.authors, entry.links, entry.categories) == ([], [], [])
    assert (entry.source, entry.atom_id, entry.content) == (
        EntrySource(),
        "urn:x-smartfeeds:a",
        EntryText(TextKind.TEXT, ""),
    )


@pytest.mark.parametrize(
    ("title", "summary", "content", "label"),
    [
        ("A title", "x", "y", "A title"),
        ("", "A summary", "y", "A summary"),
        ("", "", "One  and\ntwo", "One and two"),
        ("", "", "", "i"),
        ("T" * 90, "", "", "T" * 19 + "…"),
    ],
)
def test_label_of_an_entry(title, summary, content, label):
    """Chats and pages name an entry in the same way."""
    texts = [EntryText(TextKind.TEXT, text) for text in (title, summary, content)]
    assert Entry("i", "urn:i", *texts).label(20) == label

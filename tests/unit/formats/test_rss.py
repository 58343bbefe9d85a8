"""RSS items as Atom entries, where the corpus has no example."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom, xml

ATOM = f"{{{atom.ATOM_NS}}}"


def document(inside, attributes="", base=""):
    text = f"<rss version='2.0' {attributes}><channel><title>T</title>{inside}</channel></rss>"
    return read_document(text.encode(), base)


def entry(inside, attributes="", base=""):
    (item,) = document(f"<item>{inside}</item>", attributes, base).items
    return xml.parse_payload(item.payload)


def links(node):
    return {link.get("rel"): link.get("href") for link in node.iterchildren(atom.LINK)}


@pytest.mark.parametrize(
    ("guid", "item_id", "atom_id", "link"),
    [
        ("<guid>http://example.org/1</guid>", "http://example.org/1", "http://example.org/1", "http://example.org/1"),
        ("<guid isPermaLink='false'>http://example.org/1</guid>", "http://example.org/1", "http://example.org/1", None),
        ("<guid> 42 </guid>", "42", None, None),
        (
            "<guid/><link>http://example.org/1</link>",
            "http://example.org/1",
            "http://example.org/1",
            "http://example.org/1",
        ),
        ("<guid>a b</guid><link>/1</link>", "a b", None, "http://example.org/1"),
    ],
)
def test_item_id_is_guid_else_link(guid, item_id, atom_id, link):
    """[A-154] [A-122] [SF-092] The atom:id of a guid that is no URI is left to the node or the conversion."""
    (item,) = document(f"<item>{guid}</item>", base="http://example.org/feed").items
    node = xml.parse_payload(item.payload)
    assert (item.id, node.findtext(atom.ID), links(node).get("alternate")) == (item_id, atom_id, link)


def test_item_without_any_id_gets_one_of_its_content():
    """[A-122] other content, other id; another feed, another id"""
    one = document("<link>http://example.org/</link><item><title>A</title></item>").items[0].id
    assert one == document("<link>http://example.org/</link><item><title>A</title></item>").items[0].id
    assert one != document("<link>http://example.org/</link><item><title>B</title></item>").items[0].id
    assert one != document("<link>http://example.net/</link><item><title>A</title></item>").items[0].id
    assert one.startswith("urn:x-smartfeeds:sha256:")


def test_empty_item_is_left_out_and_reported():
    """[A-123] [RSS-005]"""
    read = document("<item/><item><title>A</title></item><item> </item>")
    assert [item.id.partition("sha256")[0] for item in read.items] == ["urn:x-smartfeeds:"]
    assert [(one.index, one.reason) for one in read.skipped] == [(0, "the item is empty"), (2, "the item is empty")]


@pytest.mark.parametrize(
    ("author", "name", "email"),
    [
        ("<author>lawyer@boyer.net (Lawyer Boyer)</author>", "Lawyer Boyer", "lawyer@boyer.net"),
        ("<author>Lawyer Boyer &lt;lawyer@boyer.net></author>", "Lawyer Boyer", "lawyer@boyer.net"),
        ("<author>Lawyer Boyer (lawyer@boyer.net)</author>", "Lawyer Boyer", "lawyer@boyer.net"),
        ("<author>Lawyer Boyer (of Boyer)</author>", "Lawyer Boyer (of Boyer)", None),
        ("<author>lawyer@boyer.net</author>", "lawyer@boyer.net", "lawyer@boyer.net"),
        ("<author>Lawyer  Boyer</author>", "Lawyer Boyer", None),
        ("<author>lawyer@boyer.net ()</author>", "lawyer@boyer.net", "lawyer@boyer.net"),
        ("<dc:creator>Lawyer Boyer</dc:creator>", "Lawyer Boyer", None),
        ("<author>lawyer@boyer.net (L B)</author><dc:creator>l b</dc:creator>", "L B", "lawyer@boyer.net"),
    ],
)
def test_author_in_its_customary_forms(author, name, email):
    """[RSS-031]"""
    node = entry(author, "xmlns:dc='http://purl.org/dc/elements/1.1/'")
    people = [(who.findtext(f"{ATOM}name"), who.findtext(f"{ATOM}email")) for who in node.iterchildren(atom.AUTHOR)]
    assert people == [(name, email)]


def test_each_author_of_an_item_is_kept_once():
    """RSS 2.0 has one author an item, and feeds have several. A name that comes again is the same person."""
    authors = ("a@e.example (Ann)", "Bob (b@e.example)", "Cid", "ann")
    node = entry("".join(f"<author>{author}</author>" for author in authors))
    people = [(who.findtext(f"{ATOM}name"), who.findtext(f"{ATOM}email")) for who in node.iterchildren(atom.AUTHOR)]
    assert people == [("Ann", "a@e.example"), ("Bob", "b@e.example"), ("Cid", None)]


@pytest.mark.parametrize(
    ("link", "base", "address"),
    [
        ("http://e.example/", "", "http://e.example/"),
        ("/news", "https://e.example/feed", "https://e.example/news"),
        ("xmpp:feeds.example?;node=news", "", "xmpp:feeds.example?;node=news"),
        ("javascript:alert(1)", "https://e.example/feed", ""),
        ("file:///etc/passwd", "https://e.example/feed", ""),
        ("/news", "", ""),
        ("News of the day", "", ""),
    ],
)
def test_link_of_the_channel_is_a_web_address_or_left_out(link, base, address):
    """[RSS-003] The page of the feed: browsers open it."""
    text = f"<rss><channel><title>T</title><description>D</description><link>{link}</link></channel></rss>"
    read = read_document(text.encode(), base)
    assert read.link == address
    warning = f"the link of the channel is no web address and was left out: {link}"
    assert read.warnings == (() if address else (warning,))


def test_content_encoded_is_content_and_description_the_summary():
    """[A-125]"""
    node = entry(
        "<content:encoded><![CDATA[<p>long</p>]]></content:encoded><description>short &amp;amp; sweet</description>",
        "xmlns:content='http://purl.org/rss/1.0/modules/content/'",
    )
    assert [(part.tag, part.get("type"), part.text) for part in (node.find(atom.CONTENT), node.find(atom.SUMMARY))] == [
        (atom.CONTENT, "html", "<p>long</p>"),
        (atom.SUMMARY, "html", "short &amp; sweet"),
    ]


def test_first_of_several_descriptions_is_kept_and_the_reader_is_told():
    """[A-125] Neither is added to the other."""
    texts = "<description>one</description><description>two</description>"
    (item,) = document(f"<item><guid>1</guid>{texts}</item>").items
    assert [part.text for part in xml.parse_payload(item.payload).iterchildren(atom.CONTENT, atom.SUMMARY)] == ["one"]
    assert item.warnings == ("only the first of several descriptions was kept",)


def test_markup_that_was_not_escaped_is_taken_as_it_stands():
    assert entry("<description>a <b>c</b> d</description>").findtext(atom.CONTENT) == "a <b>c</b> d"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("List&lt;String&gt; in Java", "List<String> in Java"),
        ("Map&lt;K, V&gt; &lt;b&gt;now&lt;/b&gt; &amp;amp; then", "Map<K, V> now & then"),
        ("By &lt;joe@a.example&gt;", "By <joe@a.example>"),
        ("&lt;em&gt;New&lt;/em&gt;&lt;br/&gt;post", "New post"),
    ],
)
def test_title_keeps_what_is_no_tag_of_html(title, text):
    """A reader that ignores unknown tags would show "List in Java"."""
    assert atom.text_of(entry(f"<title>{title}</title>"), atom.TITLE) == text


@pytest.mark.parametrize(
    ("title", "kind"), [("A &amp;amp; B", "html"), ("&lt;b>x&lt;/b>", "html"), ("1 &lt; 2 &amp; 3", None), ("x", None)]
)
def test_title_is_html_where_it_looks_like_it(title, kind):
    assert entry(f"<title>{title}</title>").find(atom.TITLE).get("type") == kind


def test_dates_become_published_and_updated():
    """[RSS-031] dcterms:modified is the later one"""
    node = entry(
        "<pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate><m:modified>2011-05-10T12:00Z</m:modified>",
        "xmlns:m='http://purl.org/dc/terms/'",
    )
    assert (node.findtext(atom.PUBLISHED), node.findtext(atom.UPDATED)) == (
        "2011-05-09T12:00:00Z",
        "2011-05-10T12:00:00Z",
    )


def test_first_readable_date_counts():
    (item,) = document(
        "<item><guid>1</guid><pubDate>soon</pubDate><dc:date>2011-05-09</dc:date></item>",
        "xmlns:dc='http://purl.org/dc/elements/1.1/'",
    ).items
    assert item.published_us == parse_datetime("2011-05-09T00:00:00Z")
    assert item.warnings == ()


def test_date_beyond_the_calendar_is_left_out():
    (item,) = document("<item><guid>1</guid><pubDate>1 Jan 0001 00:00 +0900</pubDate></item>").items
    assert item.published_us is None
    assert item.warnings == ("the date '1 Jan 0001 00:00 +0900' cannot be read and was left out",)


def test_source_without_url_is_ignored():
    """[RSS-009]"""
    read = document("<item><guid>1</guid><source>S</source></item>")
    assert read.items[0].warnings == ("a source without url was left out",)
    assert xml.parse_payload(read.items[0].payload).find(atom.SOURCE) is None


def test_atom_elements_fit_in_where_rss_has_none():
    node = entry(
        "<title>T</title><a:title>other</a:title><a:link rel='related' href='x'/><a:summary>S</a:summary>"
        "<a:id>urn:x-test:1</a:id><a:updated>2011-05-09T12:00:00Z</a:updated><a:author><a:name>N</a:name></a:author>",
        f"xmlns:a='{atom.ATOM_NS}'",
        "http://example.org/feed",
    )
    assert [child.text for child in node.iterchildren(atom.TITLE)] == ["T"]
    assert links(node) == {"related": "http://example.org/x"}
    assert (node.findtext(atom.SUMMARY), node.findtext(atom.ID)) == ("S", "urn:x-test:1")
    assert node.findtext(atom.UPDATED) == "2011-05-09T12:00:00Z"
    assert node.findtext(f"{ATOM}author/{ATOM}name") == "N"


def test_entry_has_no_prefix_although_the_document_has_one_for_atom():
    (item,) = document("<item><guid>1</guid><a:link href='x'/></item>", f"xmlns:a='{atom.ATOM_NS}'").items
    assert item.payload.startswith(f'<entry xmlns="{atom.ATOM_NS}"><title>'.encode())
    assert xml.parse_payload(item.payload).find(atom.LINK).get("href") == "x"


def test_unknown_elements_stay_whole():
    """[RSS-014] namespaces, no namespace, prefixes in content"""
    node = entry(
        "<guid>1</guid><x:a k='1'>x:b<tags>one</tags></x:a><tags>two</tags><slash:comments>3</slash:comments>",
        "xmlns:x='urn:x-test:x' xmlns:slash='http://purl.org/rss/1.0/modules/slash/'",
    )
    kept = node.find("{urn:x-test:x}a")
    assert (kept.get("k"), kept.text, kept.findtext("tags"), node.findtext("tags")) == ("1", "x:b", "one", "two")
    assert kept.nsmap["x"] == "urn:x-test:x"
    assert node.findtext("{http://purl.org/rss/1.0/modules/slash/}comments") == "3"


def test_language_and_base_come_along():
    """Manifest: when an entry is cut out of its feed the base must travel with it."""
    read = document(
        "<language>de-AT</language><item><link>a</link></item><item xml:lang='fr' xml:base='b/'><link>c</link>"
        "<description xml:base='d/'>x</description></item>",
        "xml:base='http://example.org/'",
    )
    first, second = (xml.parse_payload(item.payload) for item in read.items)
    assert (first.get(xml.XML_LANG), first.get(xml.XML_BASE)) == ("de-AT", "http://example.org/")
    assert (second.get(xml.XML_LANG), second.get(xml.XML_BASE)) == ("fr", "http://example.org/b/")
    assert links(second) == {"alternate": "http://example.org/b/c"}
    assert second.find(atom.CONTENT).get(xml.XML_BASE) == "http://example.org/b/d/"


def test_sse_deletion_is_a_deletion():
    """[SSE-017] [A-18]"""
    sync = "<sx:sync xmlns:sx='https://www.microsoft.com/schemas/rss/sse' id='i1' version='2' deleted='true'/>"
    (item,) = document(f"<item><title>T</title>{sync}</item>").items
    assert (item.id, item.deleted) == ("i1", True)


def test_rss10_items_beside_the_channel():
    """RSS 1.0: rdf:about identifies, Dublin Core dates and authors."""
    text = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://example.org/"><title>T</title>
        <link>http://example.org/</link><description>D</description></channel>
        <item rdf:about="http://example.org/1"><title>A</title><link>http://example.org/1?x</link>
        <dc:date>2011-05-09T12:00:00Z</dc:date><dc:creator>N</dc:creator><dc:subject>S</dc:subject></item></rdf:RDF>"""
    read = read_document(text.encode())
    assert (read.format, read.title, read.link, read.description) == ("RSS 1.0", "T", "http://example.org/", "D")
    (item,) = read.items
    assert (item.id, item.published_us) == ("http://example.org/1", parse_datetime("2011-05-09T12:00:00Z"))
    node = xml.parse_payload(item.payload)
    assert (node.find(atom.CATEGORY).get("term"), links(node)) == ("S", {"alternate": "http://example.org/1?x"})
    assert read.warnings == ()


@pytest.mark.parametrize(
    ("inside", "day"),
    [
        ("<dcterms:issued>2024-03-05</dcterms:issued>", 5),
        ("<pubDate> </pubDate><dcterms:created>2024-03-05</dcterms:created>", 5),
        ("<pubDate>soon</pubDate><date>5. März 2024</date>", 5),
        ("<published>2024-03-05</published>", 5),
        ("<updated>2024-03-05</updated>", 5),
        ("<pubDate>&lt;time>Tue, 05 Mar 2024 00:00 GMT&lt;/time></pubDate>", 5),
        ("<pubDate>Mon, 04 Mar 2024 00:00:00 GMT</pubDate><dcterms:issued>2024-03-05</dcterms:issued>", 4),
        ("<date/>", None),
    ],
)
def test_date_is_found_where_feeds_have_it(inside, day):
    """The element of a date that stands in for pubDate stays in the entry."""
    feed = (
        "<rss version='2.0' xmlns:dcterms='http://purl.org/dc/terms/'><channel><title>T</title><item><guid>1</guid>"
        f"{inside}</item></channel></rss>"
    )
    (item,) = read_document(feed.encode()).items
    assert item.published_us == (None if day is None else parse_datetime(f"2024-03-0{day}T00:00:00Z"))
    assert ("dcterms:issued" in inside) == (b"dcterms:issued" in item.payload)

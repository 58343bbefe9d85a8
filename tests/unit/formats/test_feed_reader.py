"""Whole documents: encodings, DTDs, limits, duplicates, the order of an import."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.core.view import matches, parse_view
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, loader, xml
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem
from smartfeeds.formats.feed_reader import MAX_ID_BYTES
from smartfeeds.formats.payload import complete_entry

DOCUMENTS = pytest.mark.needs("documents")
RSS = "<rss version='2.0'><channel><title>{}</title><link>http://example.org/</link><description>D</description>{}</channel></rss>"


def error_of(data, condition=Condition.INVALID_PAYLOAD):
    with pytest.raises(FeedError) as caught:
        read_document(data)
    assert caught.value.condition is condition
    return caught.value.text


@pytest.mark.parametrize(
    ("label", "codec", "text", "warns"),
    [
        ("utf-8", "utf-8", "Caf\u00e9 \u6771\u4eac", False),
        ("utf-16", "utf-16", "Caf\u00e9", False),
        ("utf-16be", "utf-16be", "Caf\u00e9", False),
        ("iso-8859-1", "latin-1", "Caf\u00e9", False),
        ("iso-8859-1", "cp1252", "\u201cCaf\u00e9\u201d", True),
        ("us-ascii", "cp1252", "\u2013", True),
        ("gb2312", "gbk", "\u6771\u4eac", False),
        ("shift_jis", "cp932", "\u2460", False),
        ("euc-kr", "cp949", "\ub620", False),
        ("koi8-r", "koi8-r", "\u043c\u0438\u0440", False),
        ("windows-1251", "cp1251", "\u043c\u0438\u0440", False),
        ("x-nobody", "utf-8", "Caf\u00e9", True),
    ],
)
def test_encoding_is_what_the_document_declares(label, codec, text, warns):
    """Names are read as browsers read them (WHATWG Encoding)."""
    source = f"<?xml version='1.0' encoding='{label}'?>" + RSS.format(text, "")
    document = read_document(source.encode(codec))
    assert document.title == text
    assert bool(document.warnings) is warns


@pytest.mark.parametrize("label", ["utf-7", "UTF7", "unicode-1-1-utf-7"])
def test_utf7_is_never_read(label):
    assert "UTF-7" in error_of(f"<?xml version='1.0' encoding='{label}'?>".encode() + b"<rss>+ADw-script+AD4-</rss>")


def test_html_entities_are_read_without_a_declaration():
    item = (
        "<item><guid>1</guid><title>a&nbsp;&eacute;</title><description><![CDATA[&eacute; &lt;]]></description></item>"
    )
    document = read_document(RSS.format("&rarr;&NotEqualTilde;", item).encode())
    assert document.title == "\u2192\u2242\u0338"
    node = xml.parse_payload(document.items[0].payload)
    assert node.findtext(atom.TITLE) == "a\u00a0\u00e9"
    assert node.findtext(atom.CONTENT) == "&eacute; &lt;"
    assert len(document.warnings) == 1


def test_dtd_of_rss_091_is_accepted_and_not_loaded():
    """[RSS-002] the DTD that declares &eacute; stays where it is"""
    doctype = '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://127.0.0.1:9/rss-0.91.dtd">'
    assert read_document((doctype + RSS.format("Caf&eacute;", "")).encode()).title == "Caf\u00e9"
    assert read_document((doctype + RSS.format("&nobody;", "")).encode()).title == "&nobody;"


@pytest.mark.parametrize(
    ("subset", "reason"),
    [
        ("<!ENTITY a0 SYSTEM 'file:///etc/passwd'>", "external"),
        ("<!ENTITY % a SYSTEM 'http://127.0.0.1:9/x'> %a;", "external"),
        ("<!ENTITY a0 '<b/>'>", "short text"),
        ("<!ENTITY a 'x'><!ENTITY a0 '&a;&a;'>", "short text"),
        ("<!ENTITY a0 '" + "x" * 1025 + "'>", "short text"),
        ("".join(f"<!ENTITY a{n} 'x'>" for n in range(loader.MAX_ENTITIES + 1)), "more than"),
    ],
)
def test_dtd_that_could_harm_is_refused(subset, reason):
    """[xep-map 246]"""
    assert reason in error_of(f"<!DOCTYPE rss [{subset}]>{RSS.format('&a0;', '')}".encode())


def test_entity_uses_are_bounded():
    """[xep-map 246] one flat entity, used often"""
    head = "<!DOCTYPE rss [<!ENTITY a 'x'>]>"
    assert read_document((head + RSS.format("&a;" * loader.MAX_ENTITY_USES, "")).encode()).title == "x" * 10_000
    assert "times" in error_of((head + RSS.format("&a;" * (loader.MAX_ENTITY_USES + 1), "")).encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<!DOCTYPE html><html><body><br></body></html>", "web page"),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "web page"),
        (b'{"version": "1", "items": []}', "JSON"),
        (b"<opml version='2.0'/>", "the outline has no body"),
        (b"<opml xmlns='urn:x-test:x'/>", "a namespace that no OPML has"),
        pytest.param(b"1503411300, http://example.com/rss.xml, 0,92", "smartfeeds nno", marks=DOCUMENTS),
        pytest.param(b" 1503411300, http://a/, 0,92, http://b/, 1,3\n", "smartfeeds nno", marks=DOCUMENTS),
        pytest.param(b"1503411300", "smartfeeds nno", marks=DOCUMENTS),
        (b"<rss xmlns='urn:x-test:x'/>", "namespace"),
        (b"<feed/>", "namespace"),
        (b"<sitemap/>", "the root element is sitemap; feeds have rss, RDF, feed or opml"),
        (b"<x:foo xmlns:x='urn:x'/>", "the root element is {urn:x}foo; feeds have"),
        (b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>", "urlset (a sitemap)"),
        (b"<Error><Code>AccessDenied</Code><Message>No</Message></Error>", "Error (an error message: AccessDenied)"),
        (
            b"<feed xmlns='urn:x-test:x'/>",
            "the root element is {urn:x-test:x}feed; Atom has http://www.w3.org/2005/Atom",
        ),
        (b"<foo><bar></foo>", "do not match (line 1); its first element is foo"),
        (
            b"<!-- c --><html><head><title>Just a\nmoment</title><br>",
            "web page, not a feed; its title is 'Just a moment'",
        ),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'><title>Sign in</title></html>", "its title is 'Sign in'"),
        (b"<br>Not Found", "web page"),
        (
            b'{"error": 1, "message": 2}',
            "JSON with the members error, message: neither a JSON Feed nor ActivityStreams 1.0",
        ),
        (b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}', "members a, b, c, d, e and 1 more"),
        (b'{"version": "3.0", "items": []}', "JSON of the version '3.0'"),
        (b"{}", "JSON with no members"),
        (b"[1, 2]", "JSON, an array of 2 values"),
        (b'{"a', "not well-formed JSON (line 1)"),
        (b"Service\n unavailable", "neither XML nor JSON: it begins with 'Service unavailable'"),
        (b"\x00\x01\x02", "it begins with the bytes 00 01 02"),
        (b"%PDF-1.7", "a PDF file, not a feed"),
        (b"\x1f\x8b\x08\x00", "a compressed file (gzip), not a feed"),
        (b"\x89PNG\r\n", "a picture (PNG), not a feed"),
        (b"\xff\xfe\x00", "neither XML nor JSON"),
    ],
)
def test_what_is_no_feed_says_so(data, reason):
    assert reason in error_of(data)


def test_document_size_is_bounded():
    assert "larger" in error_of(b" " * (loader.MAX_DOCUMENT_BYTES + 1), Condition.PAYLOAD_TOO_BIG)


def test_item_beyond_the_limits_is_left_out_and_the_rest_is_kept():
    """[xep-map 246] one bad item does not cost the others"""
    deep = "<x>" * 130 + "</x>" * 130
    document = read_document(RSS.format("T", f"<item><guid>1</guid>{deep}</item><item><guid>2</guid></item>").encode())
    assert [item.id for item in document.items] == ["2"]
    assert [(one.index, one.reason) for one in document.skipped] == [
        (0, "the payload is nested deeper than 128 levels")
    ]


def test_long_id_is_replaced_by_a_digest():
    long, longer = "x" * (MAX_ID_BYTES + 1), "x" * (MAX_ID_BYTES + 2)
    items = "".join(f"<item><guid>{guid}</guid></item>" for guid in (long, longer, "x" * MAX_ID_BYTES))
    document = read_document(RSS.format("T", items).encode())
    assert [item.id.startswith("urn:x-smartfeeds:sha256:") for item in document.items] == [True, True, False]
    assert len({item.id for item in document.items}) == 3


def feed(inside, attributes=""):
    return f"<feed xmlns='{atom.ATOM_NS}' {attributes}><title>T</title>{inside}</feed>".encode()


def entry(number, updated, more=""):
    return f"<entry><id>urn:x-test:{number}</id><title>{updated}</title><updated>{updated}</updated>{more}</entry>"


@pytest.mark.parametrize(
    ("times", "winner"),
    [
        (["2011-05-09T12:00:00Z", "2011-05-09T13:00:00Z"], 1),
        (["2011-05-09T13:00:00Z", "2011-05-09T12:00:00Z"], 0),
        (["2011-05-09T12:00:00Z", "2011-05-09T12:00:00Z"], 0),
        (["never", "2011-05-09T12:00:00Z"], 1),
        (["never", "ever"], 0),
        (["2011-05-09T12:00:00Z", "2011-05-09T14:00:00Z", "2011-05-09T13:00:00Z"], 1),
    ],
)
def test_duplicate_id_keeps_the_newest(times, winner):
    """[A-124]"""
    document = read_document(feed("".join(entry(1, time) for time in times)))
    (item,) = document.items
    assert atom.read_meta(item.payload).body == times[winner]
    assert "the newest was kept" in item.warnings[-1]
    assert sorted(one.index for one in document.skipped) == [n for n in range(len(times)) if n != winner]


def rss(*items):
    inside = "".join(f"<item>{one}</item>" for one in items)
    return f"<rss version='2.0'><channel><title>T</title>{inside}</channel></rss>".encode()


PAGE = "<link>https://e.example/status</link>"
DAYS = [f"<pubDate>Tue, 0{day} Mar 2024 10:00:00 GMT</pubDate>" for day in range(1, 4)]


@pytest.mark.parametrize(
    "items",
    [
        [f"{PAGE}<title>Outage {n}</title>" for n in range(3)],
        [f"{PAGE}<title>Outage</title><description>{n}</description>" for n in range(3)],
        [f"{PAGE}<title>Outage</title>{day}" for day in DAYS],
        [f"{PAGE}<description>{n}</description>" for n in range(3)],
        [f"<guid> </guid>{PAGE}<title>Outage {n}</title>" for n in range(3)],
        [f"{PAGE}<enclosure url='https://e.example/{n}.mp3' type='audio/mpeg' length='1'/>" for n in range(3)],
        [f"<guid>0</guid><link>https://e.example/{n}</link><title>Outage {n}</title>" for n in range(3)],
        [f"<guid>https://e.example/</guid><title>Outage {n}</title><description>{n}</description>" for n in range(3)],
    ],
    ids=["titles", "texts", "dates", "texts alone", "blank guids", "enclosures", "one guid", "guid of the site"],
)
def test_entries_without_ids_are_told_apart(items):
    """[SRC-069] `convert` and `import` keep each of them, as polls do, under an id that stays."""
    read = read_document(rss(*items)).items
    assert len({item.id for item in read}) == len(items)
    assert len({xml.parse_stored(item.payload).findtext(atom.ID) for item in read}) == len(items)
    more = read_document(rss(f"{PAGE}<guid>other</guid>", *reversed(items))).items
    assert {item.id for item in read} < {item.id for item in more}


@pytest.mark.parametrize(
    "items",
    [[f"{PAGE}<title>Outage</title>"] * 3, [f"{PAGE}<title>Outage</title>", f"{PAGE}<title>Outage</title>{DAYS[0]}"]],
)
def test_equal_entries_without_ids_are_one_item(items):
    """[SRC-069]"""
    (item,) = read_document(rss(*items)).items
    assert item.id == "https://e.example/status"


def test_deletion_and_entry_of_one_id_the_newer_counts():
    """[A-18] RFC 6721: an entry that changed after it was deleted is there again"""
    gone = "<d:deleted-entry ref='urn:x-test:1' when='2011-05-09T13:00:00Z' xmlns:d='{}'/>".format(
        "http://purl.org/atompub/tombstones/1.0"
    )
    (item,) = read_document(feed(gone + entry(1, "2011-05-09T12:00:00Z"))).items
    assert item.deleted
    (item,) = read_document(feed(gone + entry(1, "2011-05-09T14:00:00Z"))).items
    assert not item.deleted


def test_deleted_entry_without_reference_is_left_out():
    document = read_document(feed("<d:deleted-entry xmlns:d='http://purl.org/atompub/tombstones/1.0'/>"))
    assert (document.items, len(document.skipped)) == ((), 1)


def test_entry_takes_the_feed_s_authors_where_it_has_none():
    """RFC 4287 4.2.1"""
    author = "<author><name>F</name></author>"
    own = entry(2, "2011-05-09T12:00:00Z", "<author><name>E</name></author>")
    source = entry(3, "2011-05-09T12:00:00Z", "<source><author><name>S</name></author></source>")
    document = read_document(feed(author + entry(1, "2011-05-09T12:00:00Z") + own + source))
    assert [atom.read_meta(item.payload).authors for item in document.items] == [{"F"}, {"E"}, set()]


def test_atom_entry_with_only_a_published_date_is_updated_then():
    text = "<entry><id>urn:x-test:1</id><published>2011-05-09T12:00:00Z</published></entry>"
    (item,) = read_document(feed(text)).items
    assert (item.published_us, item.updated_us) == (parse_datetime("2011-05-09T12:00:00Z"), None)
    assert xml.parse_payload(item.payload).findtext(atom.UPDATED) == "2011-05-09T12:00:00Z"


def test_entry_without_a_time_gets_that_of_first_sight():
    """[A-122]"""
    (item,) = read_document(feed("<entry><id>urn:x-test:1</id></entry>")).items
    assert b"updated" not in item.payload
    assert b"<updated>1970-01-01T00:00:01Z</updated>" in complete_entry(item.payload, item.id, 1_000_000)


def test_atom_feed_s_own_data_is_read():
    links = "<link rel='self' href='x'/><link href='/'/>"
    document = read_document(
        feed(f"<id>urn:x-test:f</id><subtitle type='html'>&lt;b>S</subtitle>{links}"), "http://example.org/f"
    )
    assert (document.format, document.id, document.title, document.link, document.description) == (
        "Atom 1.0",
        "urn:x-test:f",
        "T",
        "http://example.org/",
        "S",
    )


def test_atom_03_is_mapped():
    text = """<feed version='0.3' xmlns='http://purl.org/atom/ns#' xml:lang='en'><title>T</title><tagline>S</tagline>
        <entry><id>urn:x-test:1</id><issued>2004-05-09T12:00Z</issued><modified>2004-05-10T12:00:00Z</modified>
        <author><name>N</name><url>http://example.org/</url></author>
        <content type='application/xhtml+xml'>a <b xmlns='http://www.w3.org/1999/xhtml'>c</b></content></entry></feed>"""
    document = read_document(text.encode())
    assert (document.format, document.description) == ("Atom 0.3", "S")
    (item,) = document.items
    assert item.published_us == parse_datetime("2004-05-09T12:00:00Z")
    assert item.updated_us == parse_datetime("2004-05-10T12:00:00Z")
    meta = atom.read_meta(item.payload)
    assert (meta.text, meta.authors) == ("a c", {"N", "http://example.org/"})
    content = xml.parse_payload(item.payload).find(atom.CONTENT)
    assert (content.get("type"), [child.tag for child in content]) == ("xhtml", ["{http://www.w3.org/1999/xhtml}div"])


def imported(name, published_us=None, updated_us=None):
    return ImportedItem(name, published_us, updated_us, b"")


@pytest.mark.parametrize(
    ("items", "order"),
    [
        ([imported("c", 3), imported("b", 2), imported("a", 1)], "abc"),
        ([imported("a", 1), imported("b", 2), imported("c", 3)], "abc"),
        ([imported("c"), imported("b"), imported("a")], "abc"),
        ([imported("c", 5), imported("b"), imported("a", 1)], "abc"),
        ([imported("b", 2, 9), imported("a", None, 1)], "ab"),
        ([], ""),
    ],
)
def test_oldest_first_is_the_order_of_publishing(items, order):
    """[A-153]"""
    assert "".join(item.id for item in FeedDocument("x", items=tuple(items)).oldest_first()) == order


def test_empty_entry_is_left_out_and_reported():
    """[A-123] As an empty item of RSS."""
    entries = "<entry/><entry> </entry><entry><id>urn:x:a</id></entry>"
    document = read_document(f"<feed xmlns='{atom.ATOM_NS}'>{entries}</feed>".encode())
    assert [item.id for item in document.items] == ["urn:x:a"]
    assert [(one.index, one.reason) for one in document.skipped] == [
        (0, "the entry is empty"),
        (1, "the entry is empty"),
    ]


@pytest.mark.parametrize("namespace", ["http://www.w3.org/2007/app", "http://purl.org/atom/app#"])
def test_draft_is_not_published(namespace):
    """RFC 5023 13.1.1. The document says which entry was left out, and why."""
    entry = "<entry><id>urn:x:{0}</id><title>{0}</title><app:control><app:draft> {1} </app:draft></app:control></entry>"
    entries = entry.format("d", "yes") + entry.format("p", "no")
    document = read_document(f"<feed xmlns='{atom.ATOM_NS}' xmlns:app='{namespace}'>{entries}</feed>".encode())
    assert [item.id for item in document.items] == ["urn:x:p"]
    assert [(one.index, one.reason) for one in document.skipped] == [
        (0, "the entry is a draft (app:draft), which its author has not published")
    ]


def test_draft_in_an_export_of_ours_comes_back():
    """Somebody published it to a node, so it is in the feed."""
    item = Item(
        1,
        "d",
        5,
        6,
        f'<entry xmlns="{atom.ATOM_NS}"><id>urn:x:d</id><title></title><updated>2020-01-01T00:00:00Z</updated>'
        '<control xmlns="http://www.w3.org/2007/app"><draft>yes</draft></control></entry>'.encode(),
        "",
    )
    data = b"".join(write_feed(FeedHead("urn:x:f", "T", 0), [item]))
    assert [one.payload for one in read_document(data).items] == [item.payload]


@pytest.mark.parametrize("text", ["Thu, 02 Jan 2020 10:00:00 GMT", "2020-01-02 10:00:00", "2020-01-02T11:00+01:00"])
def test_atom_date_in_another_spelling_is_written_as_rfc3339(text):
    """RFC 4287 3.3. The other formats accept these dates, so Atom does too."""
    entry = f"<entry><id>urn:x:1</id><title>t</title><updated>{text}</updated></entry>"
    (item,) = read_document(f"<feed xmlns='{atom.ATOM_NS}'>{entry}</feed>".encode()).items
    assert item.updated_us == parse_datetime("2020-01-02T10:00:00Z")
    assert b"<updated>2020-01-02T10:00:00Z</updated>" in item.payload
    assert item.warnings == ("atom:updated is not in RFC 3339 format and was read as 2020-01-02T10:00:00Z",)


def test_entry_keeps_the_language_of_its_feed():
    """The nearest language counts; a text that is no language tag counts for nothing."""
    entries = "<entry><id>urn:x:1</id></entry><entry xml:lang='fr'><id>urn:x:2</id></entry>"
    for language, expected in (("de", ["de", "fr"]), ("a b", [None, "fr"])):
        feed = f"<feed xmlns='{atom.ATOM_NS}' xml:lang='{language}'>{entries}</feed>"
        payloads = [xml.parse_stored(item.payload) for item in read_document(feed.encode()).items]
        assert [entry.get(xml.XML_LANG) for entry in payloads] == expected


@pytest.mark.parametrize(
    ("language", "is_valid"),
    [
        ("de", True),
        ("en-GB", True),
        ("i-klingon", True),
        ("x-foo", True),
        ("de-" + "-".join(["abcdefgh"] * 3) + "-abcde", True),
        ("de-" + "-".join(["abcdefgh"] * 3) + "-abcdef", False),
        ("en_GB", False),
    ],
)
def test_filter_accepts_the_languages_that_are_indexed(language, is_valid):
    """[SF-015] The index and the filter `lang` have one notion of a language (RFC 5646 2.1, 4.4.1)."""
    document = f"<entry xmlns='{atom.ATOM_NS}' xml:lang='{language}'><id>urn:x:1</id></entry>"
    (item,) = read_document(document.encode()).items
    traits = atom.read_traits(item.payload)
    view = parse_view(f"lang={language}")

    assert any(facet.startswith("l:") for facet in traits.facets) is is_valid
    assert (view is not None and matches(view, traits, publishers=False)) is is_valid
    assert (view is not None) is is_valid


@pytest.mark.parametrize(
    "document",
    [
        f"<feed xmlns='{atom.ATOM_NS}' xml:lang='en-GB'><title>T</title><entry>{{}}</entry>"
        "<entry xml:lang='fr'><id>urn:x:2</id></entry></feed>",
        "<rss version='2.0'><channel><title>T</title><link>http://e.example/</link><language>en-GB</language>"
        "<item><guid>urn:x:1</guid></item><item xml:lang='fr'><guid>urn:x:2</guid></item></channel></rss>",
    ],
)
def test_language_of_a_feed_selects_its_imported_entries(document):
    """[SF-015] The filter `lang` compares the language that an entry had in its document."""
    items = read_document(document.format("<id>urn:x:1</id>").encode()).items
    languages = [{one for one in atom.read_traits(item.payload).facets if one.startswith("l:")} for item in items]
    assert sorted(languages, key=len) == [{"l:fr"}, {"l:en", "l:en-gb"}]


def test_date_with_elements_in_it_is_a_date():
    """An entry in a node has dates that readers can read."""
    entry = "<entry><id>urn:1</id><updated>2024-03-05T10:15:00Z<x/></updated></entry>"
    (item,) = read_document(f"<feed xmlns='{atom.ATOM_NS}'>{entry}</feed>".encode()).items
    assert item.payload.shape.valid_dates and b"<updated>2024-03-05T10:15:00Z</updated>" in item.payload

"""Properties of the formats: whatever comes in, a value or a FeedError; nothing that was understood is lost."""

from xml.sax.saxutils import escape, quoteattr

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smartfeeds.app.formats import read_document
from smartfeeds.core.filters import EntryMeta
from smartfeeds.core.model import Item
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.payload import accept_payload, complete_entry, repaired_entry, shape_of
from smartfeeds.formats.plain import html_text
from support.effort import runs
from support.entries import accept_entry

NAMESPACES = {"p": "urn:x-test:p", "q": "urn:x-test:q", "atom": atom.ATOM_NS}
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\t\n &<>\"'"), max_size=20).map(
    lambda text: text.replace("\ufffe", "").replace("\uffff", "")
) | st.sampled_from(["p:x", "a q:y b", "]]>", "http://e/"])
LOCAL_NAMES = st.sampled_from(["a", "b", "entry", "id", "title", "updated", "link", "content", "div"])
PREFIXES = st.sampled_from(["", "", "p:", "q:", "atom:"])
DECLARATIONS = st.sampled_from(
    [
        "",
        "",
        ' xmlns="urn:x-test:d"',
        f' xmlns="{atom.ATOM_NS}"',
        ' xmlns=""',
        ' xmlns:p="urn:x-test:p2"',
        ' xmlns="vcard-temp"',
        ' xmlns:p="a&amp;b"',
    ]
)


@st.composite
def attributes(draw):
    names = draw(st.sets(st.sampled_from(["k", "p:k", "q:l", "type", "xml:lang", "xml:space"]), max_size=3))
    return "".join(f" {name}={quoteattr(draw(TEXTS))}" for name in sorted(names))


@st.composite
def elements(draw, depth=2):
    name = draw(PREFIXES) + draw(LOCAL_NAMES)
    inside = escape(draw(TEXTS))
    if depth:
        for child in draw(st.lists(elements(depth=depth - 1), max_size=3)):
            inside += child + escape(draw(TEXTS))
    inside += draw(st.sampled_from(["", "<!-- c -->", "<?pi data?>", "<![CDATA[<x>]]>"]))
    return f"<{name}{draw(DECLARATIONS)}{draw(attributes())}>{inside}</{name}>"


@st.composite
def embedded(draw):
    """An element somewhere below others, as payloads are in stanzas, and its ancestors' declarations."""
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return (
        f"<outer xmlns='urn:x-test:outer'{declared}{draw(attributes())}><payload>{draw(elements())}</payload></outer>"
    )


def meaning(element):
    """What an element says, its namespaces resolved, comments and instructions left out."""
    children = list(element.iterchildren("*"))
    text = [element.text or ""]
    for node in element:
        if isinstance(node.tag, str):
            text.append("|")
        text.append(node.tail or "")
    return element.tag, dict(element.attrib), "".join(text), [meaning(child) for child in children]


def parsed(text):
    return xml.etree.fromstring(text, xml.etree.XMLParser(resolve_entities=False))


@given(embedded())
def test_canonical_read_again_is_the_same_bytes(text):
    """[xep-map 144] canonical form is stable."""
    once = xml.canonical(parsed(text)[0][0])
    assert xml.canonical(xml.parse_payload(once)) == once


@given(embedded())
def test_canonical_in_another_place_means_the_same(text):
    """[xep-map 144] the bytes mean the same wherever they are joined in; the element itself is not changed."""
    element = parsed(text)[0][0]
    before = xml.etree.tostring(element)
    payload = xml.canonical(element)
    assert xml.etree.tostring(element) == before
    joined = parsed(b"<item xmlns='urn:x-test:elsewhere' xmlns:q='urn:x-test:other'>" + payload + b"</item>")[0]
    assert meaning(joined) == meaning(element)
    for prefix in ("p", "q"):
        if any(f"{prefix}:" in value for value in (element.text or "", *element.attrib.values())):
            used = {value for value in (element.text or "", *element.attrib.values()) if f"{prefix}:" in value}
            if used & {"p:x", "a q:y b"}:
                assert joined.nsmap[prefix] == element.nsmap[prefix]


ENTRIES = elements() | elements(depth=1).map(lambda inside: f"<atom:entry>{inside}</atom:entry>")


@given(ENTRIES, st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12), st.integers(0, 2**52))
def test_repaired_entry_of_anything_is_complete(text, item_id, now_us):
    """[SF-091] [xep-map 139] a repaired entry has id, title, updated and valid dates, and loses nothing."""
    root = parsed(f"<o{''.join(f' xmlns:{p}={quoteattr(u)}' for p, u in NAMESPACES.items())}>{text}</o>")[0]
    assume(root.tag == atom.ENTRY)
    payload = repaired_entry(accept_payload(root), atom.derived_id(item_id), now_us, now_us)
    entry = xml.parse_payload(payload)
    assert all(entry.find(tag) is not None for tag in (atom.ID, atom.TITLE, atom.UPDATED))
    kept = [child.tag for child in root.iterchildren("*")]
    assert [child.tag for child in entry][len(entry) - len(kept) :] == kept
    assert xml.canonical(entry) == payload
    assert shape_of(entry).complete
    assert repaired_entry(payload, "urn:x", 0, 0) == payload
    tombstone = atom.tombstone(item_id, now_us, payload)
    assert xml.canonical(xml.parse_payload(tombstone)) == tombstone


def outcome(reader, *arguments):
    """What a reader gives, or the FeedError it raises, whose text must be fit to be shown."""
    try:
        return reader(*arguments)
    except FeedError as error:
        if not error.text or len(error.text) > 200 or error.condition is Condition.INTERNAL:
            raise AssertionError(f"poor error {error.condition} {error.text!r}") from error
        return error


@given(
    st.binary(max_size=200)
    | elements().map(str.encode)
    | st.text(max_size=80).map(lambda t: t.encode("utf-8", "ignore"))
)
def test_any_bytes_give_a_value_or_a_feed_error(data):
    for reader in (read_document, xml.parse_payload):
        value = outcome(reader, data)
        assert isinstance(value, FeedDocument | xml.Element | FeedError)
    assert isinstance(atom.read_meta(data), EntryMeta)
    tombstone = atom.tombstone("x", 0, data)
    assert xml.canonical(xml.parse_payload(tombstone)) == tombstone
    assert atom.is_deletion(xml.parse_payload(tombstone))


@st.composite
def broken(draw):
    """A small real feed with a cut, a swap or a flip somewhere."""
    feed = draw(st.sampled_from(FEEDS))
    at = draw(st.integers(0, len(feed)))
    what = draw(
        st.binary(max_size=6) | st.sampled_from([b"", b"<", b"&x;", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\x00", b"]]>"])
    )
    return feed[:at] + what + feed[at + draw(st.integers(0, 30)) :]


FEEDS = [
    b"""<?xml version="1.0" encoding="utf-8"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
    ><channel><title>T</title><link>http://example.org/</link><description>D</description><item><title>A &amp; B</title>
    <guid isPermaLink="false">one</guid><pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate>
    <description>&lt;p&gt;x</description>
    <content:encoded><![CDATA[<p>y</p>]]></content:encoded>
    <enclosure url="http://example.org/a.mp3" length="5" type="a/b"/>
    <category domain="d">c</category><source url="http://example.net/">S</source></item></channel></rss>""",
    b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/"><id>urn:x:f</id><title>F</title><author>
    <name>N</name></author><entry><id>urn:x:1</id><title type="html">&lt;b&gt;</title>
    <updated>2011-05-09T12:00:00Z</updated>
    <link href="a"/></entry><at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:x:2"
    when="2011-05-09T13:00:00Z"/></feed>""",
    b"""<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title mode="escaped" type="text/html">&lt;b&gt;</title>
    <entry><id>a</id><modified>2004-01-01T00:00Z</modified>
    <content type="application/xhtml+xml"><b>x</b></content></entry>
    </feed>""",
]


@given(broken())
@settings(max_examples=runs(150))
def test_broken_feeds_give_a_value_or_a_feed_error(data):
    document = outcome(read_document, data, "http://example.org/feed")
    if isinstance(document, FeedError):
        return
    ids = [item.id for item in document.items]
    assert len(ids) == len(set(ids))
    assert all(ids)
    assert sorted(item.id for item in document.oldest_first()) == sorted(ids)
    for item in document.items:
        assert shape_of(xml.parse_payload(complete_entry(item.payload, item.id, 0))).complete


@given(st.lists(elements(), max_size=4))
def test_unknown_extensions_survive_from_rss_to_atom(extensions):
    """[RSS-014] [xep-map 144] what has no counterpart in Atom stays in the entry, whole."""
    wrapped = [f'<x:keep xmlns:x="urn:x-test:x">{one}</x:keep>' for one in extensions]
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    rss = f"<rss version='2.0'{declared}><channel><item><guid>g</guid>{''.join(wrapped)}</item></channel></rss>"
    (item,) = read_document(rss.encode()).items
    keep = "{urn:x-test:x}keep"
    expected = [meaning(node) for node in parsed(rss).iter(keep)]
    assert [meaning(node) for node in xml.parse_payload(item.payload).iterchildren(keep)] == expected


IDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20).filter(
    lambda text: "\ufffe" not in text and "\uffff" not in text
)
TIMES = st.integers(0, 4 * 10**15)


@given(st.lists(st.tuples(IDS, TIMES, TIMES, elements(), st.booleans()), unique_by=lambda row: row[0], max_size=5), IDS)
@settings(max_examples=runs(50))
def test_an_export_read_back_gives_the_same_ids_times_and_payloads(rows, title):
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    items = []
    for number, (item_id, created_us, modified_us, inside, deleted) in enumerate(rows):
        entry = parsed(f"<atom:entry{declared}>{inside}</atom:entry>")
        payload = accept_entry(entry, item_id, created_us)
        if deleted:
            payload = atom.tombstone(item_id, modified_us, payload)
        items.append(Item(number, item_id, created_us, modified_us, payload, "a@example.org", deleted))
    document = read_document(b"".join(write_feed(FeedHead("urn:x-test:feed", title, 0, "http://example.org/"), items)))
    assert document.title == " ".join(title.split())
    assert not document.skipped
    read = [(item.id, item.published_us, item.updated_us, item.payload, item.deleted) for item in document.items]
    assert read == [(i.id, i.created_us, i.modified_us, i.payload, i.deleted) for i in items]


@given(
    st.text(max_size=60)
    | st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{2,4} \d{2}:\d{2}:\d{2} [A-Z+-]\w{1,4}")
)
def test_any_text_is_a_date_or_not(text):
    time_us = parse_date(text)
    assert time_us is None or isinstance(time_us, int)


@given(st.text(max_size=80) | elements())
def test_any_text_has_a_plain_form_on_one_line(text):
    plain = html_text(text)
    assert plain == " ".join(plain.split())

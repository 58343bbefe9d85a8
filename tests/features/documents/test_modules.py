"""The modules of RSS and Atom that feeds on the web use: what is read of them, what is kept, and what is reported."""

import json

import pytest
from lxml import etree

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.core.model import Item
from smartfeeds.features.polling.reading import read_source
from smartfeeds.features.polling.source import new_source
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.losses import EntryPart

NAMESPACES = {
    "media": "http://search.yahoo.com/mrss/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "thr": "http://purl.org/syndication/thread/1.0",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
}
# What has no place in Atom, as it stands in an item.
KEPT = {
    "Media RSS": "<media:group><media:content url='http://x.example/v.mp4' medium='video' duration='12'/>"
    "<media:thumbnail url='http://x.example/t.jpg' width='75'/><media:title type='plain'>V</media:title></media:group>",
    "iTunes": "<itunes:duration>1:02:03</itunes:duration><itunes:episode>7</itunes:episode><itunes:explicit>no"
    "</itunes:explicit><itunes:image href='http://x.example/e.jpg'/>",
    "Podcast 2.0": "<podcast:transcript url='http://x.example/t.vtt' type='text/vtt'/><podcast:chapters "
    "url='http://x.example/c.json' type='application/json+chapters'/><podcast:person role='guest'>Bo</podcast:person>",
    "slash and wfw": "<slash:comments>3</slash:comments><wfw:commentRss>http://x.example/1/comments</wfw:commentRss>",
    "GeoRSS": "<georss:point>45.256 -71.92</georss:point><georss:where><gml:Point><gml:pos>45 -71</gml:pos></gml:Point>"
    "</georss:where>",
    "Dublin Core": "<dc:rights>free</dc:rights><dc:publisher>P</dc:publisher><dc:identifier>x-1</dc:identifier>",
}
DECLARED = "".join(f" xmlns:{prefix}='{namespace}'" for prefix, namespace in NAMESPACES.items())


def rss(inside: str, channel: str = "") -> bytes:
    item = f"<item><title>T</title><guid isPermaLink='false'>a</guid>{inside}</item>"
    head = f"<title>F</title><link>http://x.example/</link><description>D</description>{channel}"
    return f"<rss version='2.0'{DECLARED}><channel>{head}{item}</channel></rss>".encode()


def atom(inside: str) -> bytes:
    entry = f"<entry><id>urn:x:a</id><title>T</title><updated>2011-05-09T12:00:00Z</updated>{inside}</entry>"
    return (
        f"<feed xmlns='http://www.w3.org/2005/Atom'{DECLARED}><id>urn:x:f</id><title>F</title>"
        f"<updated>2011-05-09T12:00:00Z</updated>{entry}</feed>"
    ).encode()


def item_of(data: bytes) -> Item:
    (one,) = read_document(data).items
    return Item(1, one.id, 0, 0, one.payload, "", deleted=False)


def canonical(elements: list[etree._Element]) -> list[bytes]:
    return sorted(etree.tostring(element, method="c14n", exclusive=True, with_tail=False) for element in elements)


def elements(text: str) -> list[bytes]:
    return canonical(list(etree.fromstring(f"<x{DECLARED}>{text}</x>")))


def foreign(parent: etree._Element) -> list[bytes]:
    """The elements of modules in an item."""
    own = {"", "http://www.w3.org/2005/Atom", "http://fanout.org/protocol/atom", "urn:x-smartfeeds:export"}
    return canonical([child for child in parent if (etree.QName(child).namespace or "") not in own])


@pytest.mark.parametrize("make", [rss, atom], ids=["RSS", "Atom"])
@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_modules_are_kept_by_rss_and_atom_and_reported_by_the_others(text, make):
    """[RSS-014] Every element comes out as it went in, where the format has a place for it."""
    item = item_of(make(text))
    for form in FORMATS:
        job = FeedExport(FeedHead("urn:x:f", "F", 0, "http://x.example/f", link="http://x.example/"), [item], 0)
        data = b"".join(FORMATS[form].write(job))
        if form in ("rss", "atom"):
            root = etree.fromstring(data)
            (node,) = root.iterfind("channel/item" if form == "rss" else "{*}entry")
            assert foreign(node) == elements(text), form
        elif form in ("json", "jsonfeed", "rss092"):
            assert EntryPart.EXTENSIONS.value.text in {loss.what for loss in job.losses}, form


def test_dublin_core_is_read_as_what_atom_has():
    """dc:creator is an author, dc:date the date and dc:subject a category; dcterms:modified is the last change."""
    entry = read_entry(
        item_of(
            rss(
                "<dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator><dc:date>2011-05-09T12:00:00Z</dc:date>"
                "<dc:subject>news/local</dc:subject><dcterms:modified>2011-05-10T12:00:00Z</dcterms:modified>"
            )
        )
    )
    assert [person.name for person in entry.authors] == ["Ann", "Bob"]
    assert [category.term for category in entry.categories] == ["news/local"]
    assert (entry.changed_us - entry.issued_us) == 24 * 60 * 60 * 1_000_000


def test_encoded_content_is_the_content_and_the_description_the_summary():
    """[A-125]"""
    entry = read_entry(
        item_of(rss("<description>short</description><content:encoded><![CDATA[<b>long</b>]]></content:encoded>"))
    )
    assert entry.content is not None and entry.summary is not None
    assert (entry.content.value, entry.summary.value) == ("<b>long</b>", "short")


def test_modules_of_the_channel_are_kept():
    """[RSS-014] [FS-012] What a podcast says of itself."""
    text = "<itunes:author>Ann</itunes:author><itunes:category text='News'/><podcast:guid>x</podcast:guid>"
    document = read_document(rss("", text + "<sy:updatePeriod>hourly</sy:updatePeriod>"))
    assert document.channel is not None
    kept = [etree.fromstring(data) for data in document.channel.extensions]
    assert canonical(kept) == elements(text + "<sy:updatePeriod>hourly</sy:updatePeriod>")


def test_attachments_of_json_feed_are_enclosures():
    """[RSS-010] Read with their type, title and length, and written again."""
    attachment = {"url": "http://x.example/1.mp3", "mime_type": "audio/mpeg", "title": "One", "size_in_bytes": 9}
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "F",
        "items": [{"id": "a", "content_text": "t", "attachments": [attachment]}],
    }
    item = item_of(json.dumps(feed).encode())
    (link,) = read_entry(item).enclosures
    assert (link.href, link.type, link.title, link.length) == tuple(attachment.values())
    job = FeedExport(FeedHead("urn:x:f", "F", 0, "http://x.example/f"), [item], 0)
    (written,) = json.loads(b"".join(FORMATS["jsonfeed"].write(job)))["items"]
    assert written["attachments"] == [attachment]


def test_item_of_a_source_credits_its_channel():
    """[RSS-008] [RSS-007] An aggregate names the channel of each item, also in RSS; a source that is there stays."""
    address = "http://x.example/feed.xml"
    credited = "<source url='http://y.example/f'>Other</source>"
    for inside, expected in (("", ("F", address)), (credited, ("Other", "http://y.example/f"))):
        (read,) = read_source(rss(inside), "", address, new_source("planet", address, 0)).items
        item = Item(1, read.item.id, 0, 0, read.item.payload, "", deleted=False)
        job = FeedExport(FeedHead("urn:x:f", "Planet", 0, "http://p.example/f"), [item], 0)
        for form in ("rss", "rss092"):
            root = etree.fromstring(b"".join(FORMATS[form].write(job)))
            (source,) = root.iterfind("channel/item/source")
            assert (source.text, source.get("url")) == expected, form

"""Title, text and picture from where the large publishers put them."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.features.documents.json_feed import write_json_feed
from smartfeeds.formats import atom
from smartfeeds.formats.atom import read_traits
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import read_entry

NAMESPACES = (
    'xmlns:media="http://search.yahoo.com/mrss/" xmlns:yt="http://www.youtube.com/xml/schemas/2015" '
    'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:dcterms="http://purl.org/dc/terms/" xmlns:googleplay="http://www.google.com/schemas/play-podcasts/1.0" '
    'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:yandex="http://news.yandex.ru" '
)
VIDEO = (
    "<yt:videoId>x</yt:videoId><media:group><media:title>Video</media:title>"
    '<media:content url="https://video.example/v/x" type="application/x-shockwave-flash" width="640"/>'
    '<media:thumbnail url="http://i/hq" width="480" height="360"/>'
    "<media:description>First line\nhttp://a/ second line</media:description>"
    "<media:community><media:statistics views='1'/></media:community></media:group>"
)


def atom_entry(inside: str) -> Item:
    return item_of(
        f'<feed xmlns="http://www.w3.org/2005/Atom" {NAMESPACES}><id>urn:f</id><title>F</title>'
        f"<updated>2024-03-05T10:15:00Z</updated><entry><id>urn:1</id><updated>2024-03-05T10:15:00Z</updated>"
        f'<link rel="alternate" href="https://video.example/watch"/>{inside}</entry></feed>'
    )


def rss_item(inside: str) -> Item:
    return item_of(
        f'<rss version="2.0" {NAMESPACES}><channel><title>F</title><item><guid>1</guid>{inside}</item></channel></rss>'
    )


def rdf_item(inside: str) -> Item:
    return item_of(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f"{NAMESPACES}>"
        f'<channel rdf:about="http://a/"><title>F</title></channel><item rdf:about="http://a/1">{inside}</item></rdf:RDF>'
    )


def item_of(document: str) -> Item:
    (item,) = read_document(document.encode(), "https://base.example/feed").items
    return Item(1, item.id, 0, 0, item.payload, "")


def shown(item: Item) -> tuple[str, str, str]:
    """Title, text and picture, as pages show them."""
    entry = read_entry(item)
    text = entry.content or entry.summary
    return entry.title.plain, "" if text is None else text.plain, entry.picture


MRSS = 'xmlns:m="{}"'
CASES = [
    # an Atom feed of a video channel, with and without the elements of Atom
    (atom_entry, f"<title>Video</title>{VIDEO}", "Video", "First line http://a/ second line", "http://i/hq"),
    (atom_entry, VIDEO, "Video", "First line http://a/ second line", "http://i/hq"),
    (atom_entry, f"<title/><content/><summary/>{VIDEO}", "Video", "First line http://a/ second line", "http://i/hq"),
    (atom_entry, f"<title>Own</title><content type='html'>&lt;p>own&lt;/p></content>{VIDEO}",
     "Own", "own", "http://i/hq"),
    (atom_entry, f"<title>Own</title><summary>short</summary>{VIDEO}", "Own", "short", "http://i/hq"),
    (atom_entry, "<title>T</title><summary>short</summary><content:encoded>&lt;p>long&lt;/p></content:encoded>",
     "T", "long", ""),
    (atom_entry, "<title>T</title><content src='https://a.example/x'/><media:description>d</media:description>",
     "T", "d", ""),
    # several groups and descriptions: the longest text, the widest picture
    (rss_item, "<title>T</title><media:group><media:description>a</media:description></media:group><media:group>"
     "<media:description>longer</media:description><media:thumbnail url='http://i/1' width='1'/>"
     "<media:thumbnail url='http://i/2' width='20'/></media:group>", "T", "longer", "http://i/2"),
    # Flickr and Vimeo
    (rss_item, "<media:title>T</media:title><media:description type='html'>&lt;b>d&lt;/b></media:description>"
     "<media:content url='https://i.example/b.jpg' type='image/jpeg'/><media:thumbnail url='https://i.example/s.jpg'/>",
     "T", "d", "https://i.example/b.jpg"),
    (rss_item, "<title>T</title><media:content width='1280'><media:player url='https://p.example/'/>"
     "<media:thumbnail url='https://i.example/t.jpg'/><media:description>d</media:description></media:content>",
     "T", "d", "https://i.example/t.jpg"),
    # news: a text and a picture of its own
    (rss_item, "<title>T</title><description>d</description><media:thumbnail width='240' url='/i.jpg'/>",
     "T", "d", "https://base.example/i.jpg"),
    (rss_item, "<title>T</title><description>d</description><media:content medium='image' url='http://i/x'>"
     "<media:title>a caption</media:title></media:content>", "T", "d", "http://i/x"),
    (rss_item, "<description>d</description><media:content medium='image' url='http://i/x'><media:title>a caption"
     "</media:title></media:content>", "", "d", "http://i/x"),
    (rss_item, "<title>T</title><description>&lt;img src='http://i/y'>d</description>"
     "<media:thumbnail url='http://i/x'/>",
     "T", "d", ""),
    (rss_item, "<title>T</title><media:content medium='image' url='https://0.gravatar.com/avatar/1'/>", "T", "", ""),
    (rss_item, "<title>T</title><enclosure url='http://i/e' type='image/png' length='1'/>"
     "<media:thumbnail url='http://i/x'/>",
     "T", "", ""),
    # podcasts
    (rss_item, "<itunes:title>T</itunes:title><itunes:summary>long</itunes:summary><itunes:subtitle>s</itunes:subtitle>"
     "<itunes:image href='http://i/x'/>", "T", "long", "http://i/x"),
    (rss_item, "<title>T</title><itunes:subtitle>s</itunes:subtitle>", "T", "s", ""),
    (rss_item, "<title>T</title><description> </description><itunes:summary>&lt;p>long&lt;/p></itunes:summary>",
     "T", "long", ""),
    (rss_item, "<title>T</title><googleplay:description>d</googleplay:description>"
     "<googleplay:image href='http://i/x'/>",
     "T", "d", "http://i/x"),
    # blogs and journals
    (rss_item, "<title>T</title><description>short</description>"
     "<body xmlns='http://www.w3.org/1999/xhtml'><p>long</p></body>",
     "T", "long", ""),
    (rss_item, "<title>T</title><body xmlns='http://www.w3.org/1999/xhtml'><p>a<br/>b</p></body>", "T", "a b", ""),
    (rss_item, "<title>T</title><div xmlns='http://www.w3.org/1999/xhtml'><img src='http://i/1'/>a</div>",
     "T", "a", ""),
    (rss_item, "<title>T</title><yandex:full-text>long</yandex:full-text>", "T", "long", ""),
    (rdf_item, "<dc:title>T</dc:title><dc:description>d</dc:description>", "T", "d", ""),
    (rdf_item, "<title>T</title><dcterms:abstract>d</dcterms:abstract>", "T", "d", ""),
    (rss_item, "<title>T</title><t:content xmlns:t='http://turbo.yandex.ru'>&lt;p>long&lt;/p></t:content>",
     "T", "long", ""),
    (rss_item, "<s:markdown xmlns:s='http://source.scripting.com/'>a note</s:markdown>", "", "a note", ""),
    # elements without a namespace, as in the feeds of newspapers
    (rss_item, "<title>T</title><description>d</description><image>http://i/x</image>", "T", "d", "http://i/x"),
    (rss_item, "<title>T</title><image><url>http://i/x</url><title>c</title></image>", "T", "", "http://i/x"),
    (rss_item, "<title>T</title><thumbnail url='/x.jpg'/>", "T", "", "https://base.example/x.jpg"),
    (rss_item, "<title>T</title><media:thumbnail>http://i/x</media:thumbnail>", "T", "", "http://i/x"),
    (rss_item, "<title>T</title><description>short</description><fulltext>long</fulltext>", "T", "long", ""),
    (rss_item, "<title>T</title><content>d</content>", "T", "d", ""),
    (rss_item, "<title>T</title><description>d</description><content>video</content>", "T", "d", ""),
    # a field with markup that shows nothing
    (rss_item, "<title>T</title><description>d</description><content:encoded>&lt;div>\n &lt;p>&amp;nbsp;&lt;/p>"
     "&lt;/div></content:encoded>", "T", "d", ""),
    (rss_item, "<title>T</title><description>d</description><content:encoded>&lt;p>&lt;img src='http://i/1'>&lt;/p>"
     "</content:encoded>", "T", "", ""),
    # other spellings of the namespace
    *[(rss_item, f"<title>T</title><m:group xmlns:m='{uri}'><m:description>d</m:description></m:group>", "T", "d", "")
      for uri in ("http://search.yahoo.com/mrss", "https://search.yahoo.com/mrss/", "http://www.search.yahoo.com/MRSS/")],
    # no address of the web
    (rss_item, "<title>T</title><media:thumbnail url='javascript:alert(1)'/>", "T", "", ""),
    (rss_item, "<title>T</title><media:thumbnail url=''/><media:thumbnail/>", "T", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("read", "inside", "title", "text", "picture"), CASES)
def test_title_text_and_picture_are_found(read, inside, title, text, picture):
    assert shown(read(inside)) == (title, text, picture)


@pytest.mark.parametrize("read", [atom_entry, rss_item, rdf_item])
def test_text_is_in_searches_and_json_feed_and_its_element_stays(read):
    item = read(VIDEO)
    assert "second" in read_traits(item.payload).words
    written = write_json_feed(FeedHead("urn:f", "F", 0), [read_entry(item)]).data.decode()
    assert "second line" in written and '"image":"http://i/hq"' in written
    assert b"<media:description" in item.payload and b"<media:statistics" in item.payload


def test_line_ends_of_a_plain_text_stay():
    entry = read_entry(atom_entry(VIDEO))
    assert entry.content is not None and "First line<br/>\nhttp" in entry.content.html


def test_entry_without_modules_is_not_touched():
    inside = "<title>T</title><summary>s</summary>"
    assert rss_item("<title>T</title><description>s</description>").payload.count(b"<link") == 0
    assert atom_entry(inside).payload.endswith(f"{inside}</entry>".encode())


def test_image_of_json_feed_is_the_picture():
    feed = (
        '{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items": ['
        '{"id": "1", "content_text": "a", "image": "/i.png"}, {"id": "2", "banner_image": "http://i/b"},'
        '{"id": "3", "image": "javascript:1"}]}'
    )
    items = read_document(feed.encode(), "https://base.example/feed").items
    entries = [read_entry(Item(1, item.id, 0, 0, item.payload, "")) for item in items]
    assert [entry.picture for entry in entries] == ["https://base.example/i.png", "http://i/b", ""]


def test_our_own_export_is_read_as_it_was_stored():
    """Its entries are complete, also where a publisher has put nothing but media into them."""
    exported = atom_entry(VIDEO).payload.decode()
    stored = exported.replace("<content>", "<gone>").replace("</content>", "</gone>")
    keys = '<sf:keys xmlns:sf="urn:x-smartfeeds:export" created="1" modified="1"></sf:keys>'
    (item,) = read_document(stored.replace("</entry>", f"{keys}</entry>").encode()).items
    assert item.payload.root.find(atom.CONTENT) is None

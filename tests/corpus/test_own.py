"""Feeds as people have them, written for this project: what a follower sees of each."""

from pathlib import Path

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.payload import complete_entry, shape_of

DATA = Path(__file__).parent / "data-own"
NAMES = sorted(path.name for path in DATA.iterdir())


def read(name):
    return read_document((DATA / name).read_bytes())


def metas(document):
    return [atom.read_meta(item.payload) for item in document.items]


@pytest.mark.parametrize(
    ("name", "kind", "title", "count"),
    [
        ("blog-rss20.xml", "RSS 2.0", "The Top Drawer", 40),
        ("podcast-rss20.xml", "RSS 2.0", "Walking Pace", 12),
        ("comments-atom.xml", "Atom 1.0", "Grafting for the impatient \u2014 the article and its comments", 5),
        ("multilingual-atom.xml", "Atom 1.0", "One door, twelve languages \u2014 \u5341\u4e8c", 12),
        ("news-rss10.rdf", "RSS 1.0", "Harbour Courier", 3),
        ("linkblog-rss092.xml", "RSS 0.92", "Caf\u00e9 Links", 4),
        ("changelog-atom.xml", "Atom 1.0", "Loom: changes", 4),
    ],
)
def test_feed_is_read_whole(name, kind, title, count):
    document = read(name)
    assert (document.format, document.title, len(document.items)) == (kind, title, count)
    assert (document.skipped, document.warnings) == ((), ())


def test_every_own_feed_is_tested():
    assert len(NAMES) == 7


@pytest.mark.parametrize("name", NAMES)
def test_feed_survives_an_export(name):
    """[SF-009] out as Atom and back: the same ids and payloads."""
    document = read(name)
    items = [
        Item(n, one.id, n, n, complete_entry(one.payload, one.id, n), "", one.deleted)
        for n, one in enumerate(document.items)
    ]
    again = read_document(b"".join(write_feed(FeedHead("urn:x-test:f", document.title, 0), items)))
    assert [(one.id, one.payload, one.deleted) for one in again.items] == [(i.id, i.payload, i.deleted) for i in items]


def test_blog_is_published_oldest_first():
    """[A-153] the newest is on top in the document and last in the feed."""
    document = read("blog-rss20.xml")
    order = document.oldest_first()
    assert [item.published_us for item in order] == sorted(item.published_us for item in document.items)
    assert atom.read_meta(order[0].payload).body == "The kettle that whistles in B flat"
    assert order[0].published_us == parse_datetime("2023-01-08T07:30:00Z")
    assert {one for meta in metas(document) for one in meta.authors} == {"Agnes Farrow", "Guest: L. Okoro"}


def test_blog_posts_have_summary_content_and_replies():
    """[A-125] [xep-map 235]"""
    entry = xml.parse_payload(read("blog-rss20.xml").items[0].payload)
    assert entry.get(xml.XML_LANG) == "en-GB"
    assert entry.find(atom.CONTENT).text.startswith("<p>")
    assert entry.find(atom.SUMMARY).text == "I wrote this standing up, because the chair is the subject."
    assert [link.get("rel") for link in entry.iterchildren(atom.LINK)] == ["alternate", "replies"]
    assert entry.findtext("{http://purl.org/rss/1.0/modules/slash/}comments") == "7"


def test_podcast_episodes_have_their_enclosure_and_extensions():
    """[RSS-010] [xep-map 237]"""
    for item in read("podcast-rss20.xml").items:
        entry = xml.parse_payload(item.payload)
        assert shape_of(entry).enclosure
        number = item.id.removeprefix("walkingpace:").lstrip("0")
        assert entry.findtext("{http://www.itunes.com/dtds/podcast-1.0.dtd}episode") == number
        assert atom.read_meta(item.payload).authors == {"Noor & Willem", "studio@walkingpace.example"}


def test_comments_know_what_they_answer():
    """[xep-map 235]"""
    base = "https://orchard.example/2025/grafting"
    assert [meta.replies_to for meta in metas(read("comments-atom.xml"))] == [
        set(),
        {base},
        {f"{base}#c1"},
        {base},
        {f"{base}#c2"},
    ]


def test_languages_come_along_and_can_be_searched():
    """[xep-map 144]"""
    document = read("multilingual-atom.xml")
    languages = [xml.parse_payload(item.payload).get(xml.XML_LANG) for item in document.items]
    assert languages == ["de", "fr", "el", "ru", "ar", "he", "ja", "zh-Hans", "hi", "tr", "en", "vi"]
    for item, word in zip(document.items, ["gr\u00f6sse", "mardi", "\u03c4\u03c1\u03af\u03c4\u03b7"], strict=False):
        assert word in atom.read_traits(item.payload).words


def test_links_are_resolved_and_deletions_told():
    """[A-18] both forms of a deletion"""
    document = read("changelog-atom.xml")
    links = [xml.parse_payload(item.payload).find(atom.LINK) for item in document.items]
    assert [None if link is None else link.get("href") for link in links] == [
        "https://loom.example/changes/1.4.0",
        "https://loom.example/changes/archive/1.3.0",
        None,
        None,
    ]
    assert [(item.id[-5:], item.deleted) for item in document.items] == [
        ("1.4.0", False),
        ("1.3.0", False),
        ("1.2.9", True),
        ("1.2.8", True),
    ]

"""What a feed says of itself, as the text that is stored with its node."""

import json
from dataclasses import replace
from typing import Any

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.formats.feed_details import MAX_DETAILS_BYTES, FeedDetails, dump_details, load_details
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.rss_channel import CHANNEL_PARTS, Channel, Cloud

PAGE = "http://e.example/"
FULL = Channel(
    language="de",
    copyright="R",
    managing_editor="a@e.example",
    web_master="b@e.example",
    generator="G",
    rating="P",
    published_us=86_400_000_000,
    ttl_min=60,
    skip_hours=(1, 2),
    skip_days=("Monday",),
    categories=(("A", ""), ("B", "d")),
    cloud=Cloud("e.example", 80, "/c", "r", "xml-rpc"),
    cloud_url="http://e.example/c",
    icon="http://e.example/i.png",
    logo="http://e.example/l.png",
    hub="http://e.example/hub",
    authors=("Ann", "Bob"),
    extensions=(b'<x:a xmlns:x="urn:x">1</x:a>',),
)


def of_feed(link: str = PAGE, **parts: Any) -> FeedDocument:
    return FeedDocument("RSS", link=link, channel=Channel(**parts))


@pytest.mark.parametrize("part", CHANNEL_PARTS)
def test_every_part_comes_back(part: str) -> None:
    document = of_feed(**{part: getattr(FULL, part)})
    stored = dump_details(document)
    assert load_details(stored.text) == FeedDetails(PAGE, document.channel or Channel())
    assert (stored.left_out, document.channel == Channel()) == ((), False)


def test_no_part_has_been_forgotten() -> None:
    """The time of the last change is the node's own."""
    assert set(Channel.__dataclass_fields__) - set(CHANNEL_PARTS) == {"changed_us", "left_out"}
    stored = dump_details(FeedDocument("RSS", link=PAGE, channel=replace(FULL, changed_us=1)))
    assert load_details(stored.text) == FeedDetails(PAGE, FULL)


def test_feed_that_says_nothing_takes_no_room() -> None:
    assert dump_details(FeedDocument("RSS", id="http://e.example/feed", title="T", description="D")) == ("", ())
    assert load_details("") == FeedDetails("", Channel())


def test_id_of_a_feed_is_not_its_page() -> None:
    stored = dump_details(FeedDocument("Atom", id="http://e.example/feed", channel=Channel(icon=PAGE)))
    assert load_details(stored.text).link == ""


def test_parts_that_do_not_fit_are_left_out_by_name() -> None:
    """The parts that a page shows come first, whatever stands first in the document."""
    long = "x" * MAX_DETAILS_BYTES
    categories = tuple((f"category {number}", "") for number in range(1_000))
    document = FeedDocument(
        "RSS",
        link=PAGE,
        channel=replace(
            FULL,
            copyright=long,
            categories=categories,
            authors=(long, "Bob"),
            extensions=(b"<a>%b</a>" % long.encode(),),
        ),
    )

    stored = dump_details(document)

    assert len(stored.text) <= MAX_DETAILS_BYTES
    found = load_details(stored.text)
    shown = ("language", "icon", "logo", "hub", "cloud")
    assert found.link == PAGE
    assert [getattr(found.channel, name) for name in shown] == [getattr(FULL, name) for name in shown]
    assert found.channel.categories == categories[: len(found.channel.categories)] != ()
    lost = 1_000 - len(found.channel.categories)
    assert stored.left_out[:2] == (f"{lost} of 1000 categories", "authors")
    assert {"rights", "elements of other namespaces"} <= set(stored.left_out)


def test_one_long_part_leaves_room_for_the_others() -> None:
    long = b'<x:a xmlns:x="urn:x">%b</x:a>' % (b"x" * MAX_DETAILS_BYTES)
    stored = dump_details(of_feed(authors=("Ann", "A" * MAX_DETAILS_BYTES, "Bob"), extensions=(long, *FULL.extensions)))
    found = load_details(stored.text).channel
    assert (found.authors, found.extensions) == (("Ann", "Bob"), FULL.extensions)
    assert stored.left_out == ("1 of 3 authors", "1 of 2 elements of other namespaces")


@pytest.mark.parametrize("link", ["tag:e.example,2026:page", PAGE + "a" * MAX_DETAILS_BYTES])
def test_link_that_cannot_be_kept_is_named(link: str) -> None:
    assert dump_details(of_feed(link)) == ("", ("link",))


ATOM_FEED = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><id>urn:x:f</id><title>T</title>
<link href="/p"/><link rel="hub" href="/hub"/><link rel="license" href="/l" title="L"/><link rel="self" href="/s"/>
<link rel="prev-archive" href="/old"/><icon>/i.png</icon><logo>l.png</logo>%b</feed>"""
LICENSE = (
    b'<atom:link xmlns:atom="http://www.w3.org/2005/Atom" '
    b'href="http://e.example/l" rel="license" title="L"></atom:link>'
)


def test_atom_feed_with_pictures_and_links_comes_back() -> None:
    """Addresses are resolved, and a link that RSS has no word for is Atom's."""
    document = read_document(ATOM_FEED % b"", "http://e.example/feeds/f")
    channel = Channel(
        language="de",
        icon="http://e.example/i.png",
        logo="http://e.example/feeds/l.png",
        hub="http://e.example/hub",
        extensions=(LICENSE,),
    )
    assert (document.link, document.channel) == ("http://e.example/p", channel)
    assert load_details(dump_details(document).text) == FeedDetails("http://e.example/p", channel)


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        (b"<author><name>A</name><email>a@e.example</email></author>", "addresses of authors"),
        (b"<author><name>A</name><uri>http://e.example/</uri></author>", "addresses of authors"),
        (b"<contributor><name>A</name></contributor>", "contributors"),
        (b"<category term='a' label='A'/>", "labels of categories"),
        (b"<link rel='hub' href='/hub2'/>", "hubs after the first"),
        (b"<generator uri='http://g.example/'>G</generator>", "address and version of the generator"),
    ],
)
def test_what_an_atom_feed_loses_is_named(inside: bytes, name: str) -> None:
    assert dump_details(read_document(ATOM_FEED % inside)).left_out[-1:] == (name,)


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        ("<textInput><title>Search</title></textInput>", "textInput"),
        ("<image><url>http://e.example/i</url><width>8</width></image>", "size and description of the image"),
        ("<a:link rel='hub' href='http://a.example/'/><a:link rel='hub' href='/b'/>", "hubs after the first"),
    ],
)
def test_what_an_rss_channel_loses_is_named(inside: str, name: str) -> None:
    text = f"<rss xmlns:a='http://www.w3.org/2005/Atom'><channel><title>T</title>{inside}</channel></rss>"
    assert dump_details(read_document(text.encode())).left_out == (name,)


def test_atom_feed_that_loses_nothing_names_nothing() -> None:
    inside = b"<author><name>A</name></author><category term='a' label='a'/><generator>G</generator>"
    document = read_document(ATOM_FEED % inside, "http://e.example/")
    assert dump_details(document).left_out == ()
    assert document.channel is not None and document.channel.categories == (("a", ""),)


@pytest.mark.needs("documents")
def test_json_feed_with_an_icon_comes_back_and_the_rest_is_named() -> None:
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "T", "home_page_url": PAGE, "icon": "i.png",
            "favicon": "f.png", "authors": [{"name": "A", "avatar": "a.png"}], "items": []}  # fmt: skip
    stored = dump_details(read_document(json.dumps(feed).encode(), "http://e.example/feed"))
    channel = Channel(icon="http://e.example/i.png", authors=("A",))
    assert load_details(stored.text) == FeedDetails(PAGE, channel)
    assert stored.left_out == ("favicon", "addresses and pictures of authors")

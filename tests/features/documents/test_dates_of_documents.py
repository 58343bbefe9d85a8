"""Dates in every spelling, at the ends of the calendar, in every reader: a time that all writers can write, or none."""

import json
from datetime import datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.core.times import TIME_RANGE_US, format_datetime, parse_datetime
from smartfeeds.features.documents.command import items_of
from smartfeeds.formats import atom, xml
from smartfeeds.formats.additions import EXPORT_NS
from smartfeeds.formats.atom import TOMBSTONES_NS
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_details import head_of
from smartfeeds.sync.document_reader import FeedReader

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
EPOCH = datetime.fromisoformat("1970-01-01")
ENDS = st.sampled_from([*map(datetime.fromisoformat, ("0001-01-01", "9999-12-31T23:59:59")), EPOCH])
MOMENTS = ENDS | st.datetimes() | st.builds(lambda end, s: clamped(end, s), ENDS, st.integers(-90_000, 90_000))
OFFSETS = st.sampled_from(["", "Z", "+00:00", "-00:01", "+14:00", "-12:00", "+23:59", "-23:59", "+99:99", "-0001"])
NAMES = st.sampled_from(["", "GMT", "UT", "EST", "PDT", "Z", "A", "y", "HST", "AEDT", "+1400", "-1200", "-1559", "x"])
SPELLINGS = (
    lambda d, offset, _: f"{d.isoformat()}{offset}",
    lambda d, offset, _: f"{d.isoformat(' ')}{offset}",
    lambda d, offset, _: f"{d.isoformat()}.999999999{offset or 'Z'}",
    lambda d, offset, _: f"{d:%Y-%m-%dT%H:%M}:60{offset}".rjust(20, "0"),
    lambda d, _, __: f"{d.isoformat()[:10]}",
    lambda d, _, __: f"{d.isoformat()[:7]}",
    lambda d, _, zone: f"Mon, {d.day:02d} {MONTHS[d.month - 1]} {d.year:04d} {d:%H:%M:%S} {zone}",
    lambda d, _, zone: f"{d.day} {MONTHS[d.month - 1]} {d.year % 100:02d} {d:%H:%M} {zone}",
    lambda d, _, zone: f"{MONTHS[d.month - 1]} {d.day}, {d.year:04d} {d:%H:%M:60} {zone}",
    lambda d, _, zone: f"Mon {MONTHS[d.month - 1]} {d.day} {d:%H:%M:%S} {zone} {d.year:04d}",
    lambda d, _, __: f"{(d - EPOCH) // timedelta(seconds=1)}000",
)
DATES = st.builds(lambda spell, d, o, z: spell(d, o, z), st.sampled_from(SPELLINGS), MOMENTS, OFFSETS, NAMES)


def clamped(end, seconds):
    try:
        return end + timedelta(seconds=seconds)
    except OverflowError:
        return end


def atom_feed(text):
    date, said = escape(text), quoteattr(text)
    return (
        f'<feed xmlns="{atom.ATOM_NS}"><updated>{date}</updated><entry><id>urn:x:1</id><published>{date}</published>'
        f"<updated>{date}</updated></entry><entry><id>urn:x:2</id><published>{date}</published></entry>"
        f'<entry><id>urn:x:3</id><keys xmlns="{EXPORT_NS}" created={said} modified={said}/></entry>'
        f'<deleted-entry xmlns="{TOMBSTONES_NS}" ref="urn:x:4" when={said}/></feed>'
    )


def atom03(text):
    names = ("modified", "issued", "created")
    dates = "".join(f"<{name}>{escape(text)}</{name}>" for name in names)
    return f'<feed xmlns="http://purl.org/atom/ns#" version="0.3">{dates}<entry><id>urn:x:1</id>{dates}</entry></feed>'


def rss(text):
    date = escape(text)
    return (
        f'<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/"><channel>'
        f"<pubDate>{date}</pubDate><lastBuildDate>{date}</lastBuildDate><item><guid>1</guid><pubDate>{date}</pubDate>"
        f"</item><item><guid>2</guid><dc:date>{date}</dc:date><t:modified>{date}</t:modified></item></channel></rss>"
    )


def opml(text):
    said = quoteattr(text)
    return (
        f'<opml version="2.0" xmlns:sf="urn:x-smartfeeds:opml"><head><dateModified>{escape(text)}</dateModified></head>'
        f'<body><outline text="a" created={said} sf:updated={said}/></body></opml>'
    )


def json_feed(text):
    item = {"id": "1", "date_published": text, "date_modified": text}
    gone = {"id": "2", "date_modified": text, "_smartfeeds": {"deleted": True}}
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [item, gone]})


def activities(text):
    item = {"id": "1", "verb": "post", "published": text, "updated": text}
    return json.dumps({"totalItems": 2, "items": [item, {"id": "2", "deleted": True, "updated": text}]})


READERS = {"atom": atom_feed, "atom03": atom03, "rss": rss, "opml": opml, "jsonfeed": json_feed, "json": activities}


@given(DATES)
def test_date_is_a_time_that_can_be_written_or_none(text):
    time_us = parse_date(text)
    assert time_us is None or parse_datetime(format_datetime(time_us)) == time_us


@pytest.mark.parametrize("name", READERS)
@given(text=DATES)
def test_reader_gives_times_that_every_writer_can_write(name, text):
    """A date whose offset leads out of the years 1 to 9999 counts as unreadable."""
    document = read_document(READERS[name](text).encode())
    assert document.items
    for item in document.items:
        for time_us in (item.published_us, item.updated_us):
            assert time_us is None or TIME_RANGE_US[0] <= time_us <= TIME_RANGE_US[1]
        entry = xml.parse_stored(item.payload)
        for tag in (atom.PUBLISHED, atom.UPDATED):
            assert all(parse_datetime(node.text or "") is not None for node in entry.iterchildren(tag))
    items = items_of(document)
    for form in FORMATS.values():
        b"".join(form.write(FeedExport(head_of(document, 0), items, 0)))


@given(DATES, st.sampled_from([atom_feed, rss]))
def test_sync_document_gives_times_that_can_be_written(text, form):
    reader = FeedReader()
    list(reader.read([form(text).encode()]))
    assert reader.updated_us is None or format_datetime(reader.updated_us)


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "31 Dec 9999 23:59:60 GMT", "1 Jan 0001 00:00 +0100"],
)
@pytest.mark.parametrize("name", READERS)
def test_date_outside_of_the_calendar_is_left_out(name, text):
    document = read_document(READERS[name](text).encode())
    assert {item.time_us for item in document.items} == {None}


@given(DATES)
def test_all_readers_accept_the_same_dates(text):
    times = {name: read_document(READERS[name](text).encode()).items[0].published_us for name in READERS}
    assert set(times.values()) == {parse_date(text)}

"""Every document of the corpus gives exactly the outcome that `outcomes.tsv` names for it.

The table was made from the `expected` column of `data/MANIFEST.tsv` and by looking at each file: format, number of
items and of those left out, title, item ids, and what the reader says (the error text, or the warnings). Ids that
are made of content are in it too: they must not change from version to version, or each item would come again.
What the manifest expects beyond that is in the tests below the table's.
"""

import csv
import hashlib
import re
import time
from pathlib import Path

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.payload import shape_of

HERE = Path(__file__).parent
DATA = HERE / "data"


def table(path):
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["file"]: row for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)}


MANIFEST = table(DATA / "MANIFEST.tsv")
OUTCOMES = table(HERE / "outcomes.tsv")


# Documents of formats that a feature brings.
OF_DOCUMENTS = {"sm_ess_good.ess", "sm_ess_ms_buildtime.ess", "sm_json_instead.xml"}


def params(names):
    """The names of documents, those that a feature reads with its mark."""
    needs = pytest.mark.needs("documents")
    return [pytest.param(name, marks=[needs] if name in OF_DOCUMENTS else []) for name in sorted(names)]


def read(name, base=""):
    return read_document((DATA / name).read_bytes(), base)


def entry(name, index=0, base=""):
    """The Atom entry that an item of a file became."""
    return xml.parse_payload(read(name, base).items[index].payload)


def test_corpus_is_the_one_of_the_manifest():
    """Every file is there, unchanged, and has an outcome."""
    files = {path.name for path in DATA.iterdir()} - {"MANIFEST.tsv", ".gitattributes"}
    assert files == set(MANIFEST) | {"LICENSE.feedparser.txt", "LICENSE.feedvalidator.txt"}
    assert set(OUTCOMES) == set(MANIFEST)
    assert len(MANIFEST) == 164
    for name, row in MANIFEST.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == row["sha256"], name


@pytest.mark.parametrize("name", params(MANIFEST))
def test_document_has_its_outcome(name):
    """[A-120] [RSS-001] [RSS-002] [RSS-003] [RSS-004] [RSS-005] [RSS-018] [A-122] [A-123] [A-124]"""
    expected = OUTCOMES[name]
    if expected["outcome"] == "error":
        with pytest.raises(FeedError) as caught:
            read(name)
        assert (caught.value.condition, caught.value.text) == (Condition.INVALID_PAYLOAD, expected["says"])
        return
    document = read(name)
    ids = [item.id for item in document.items]
    shown = " ".join(ids) if len(ids) <= 30 else f"{ids[0]} .. {ids[-1]}"
    says = {*document.warnings, *(text for item in document.items for text in item.warnings)}
    found = {
        "outcome": "feed",
        "format": document.format,
        "items": str(len(ids)),
        "skipped": str(len(document.skipped)),
        "title": document.title,
        "ids": shown,
        "says": "; ".join(sorted(says)),
    }
    assert found == {key: expected[key] for key in found}
    for item in document.items:
        assert shape_of(xml.parse_payload(item.payload)).entry
        assert xml.canonical(xml.parse_payload(item.payload)) == item.payload


@pytest.mark.parametrize("name", params(name for name, row in OUTCOMES.items() if row["outcome"] == "feed"))
def test_document_read_twice_is_the_same(name):
    """[A-122] ids and payloads are stable across polls."""
    assert read(name) == read(name)


@pytest.mark.parametrize("name", ["sm_bomb_billion_laughs_rss20.xml", "sm_deep_nesting_2000_rss20.xml"])
def test_bomb_is_refused_fast(name):
    """[xep-map 246] measured as processor time, far below what expanding would take."""
    before_s = time.process_time()
    with pytest.raises(FeedError):
        read(name)
    assert time.process_time() - before_s < 1.0


def test_external_entity_is_never_opened(tmp_path):
    """[xep-map 246] the file that an entity names leaves no trace."""
    secret = tmp_path / "secret"
    secret.write_text("do-not-read-me")
    text = (DATA / "sm_xxe_file_rss20.xml").read_text().replace("file:///etc/hostname", secret.as_uri())
    with pytest.raises(FeedError, match="external entity") as caught:
        read_document(text.encode())
    assert "do-not-read-me" not in caught.value.text


def test_harmless_entity_becomes_text():
    assert entry("sm_entity_benign_internal.xml").findtext(atom.TITLE) == "Made by Example Company"


def test_atom_dates():
    """Manifest: 1 and 3 = 12:00:00Z, 2 cut to microseconds, 4 and 5 spelled otherwise, 6 a leap second."""
    noon_us = parse_datetime("2011-05-09T12:00:00Z")
    leap_us = parse_datetime("2017-01-01T00:00:00Z")
    times = [item.updated_us for item in read("sm_dates_atom10.xml").items]
    day_us = parse_datetime("2011-05-09T00:00:00Z")
    assert times == [noon_us, noon_us + 123_456, noon_us, day_us, noon_us, leap_us]
    assert entry("sm_dates_atom10.xml", 3).findtext(atom.UPDATED) == "2011-05-09T00:00:00Z"


def test_rss_dates_that_are_wrong():
    """Manifest: all 14 items are kept; unreadable dates are left to the time of receipt."""
    times = {item.id: item.published_us for item in read("sm_dates_invalid_rss20.xml").items}
    noon = "2011-05-09T12:00:00Z"
    expected = {"d1": noon, "d2": noon, "d4": "2011-05-09T12:01:00Z", "d5": noon, "d6": "2011-05-09T17:00:00Z"}
    expected |= {"d7": noon, "d8": noon, "d11": noon, "d13": "1911-05-09T12:00:00Z"}
    assert {name: time_us for name, time_us in times.items() if time_us is not None} == {
        name: parse_datetime(text) for name, text in expected.items()
    }
    assert len(times) == 14


def test_rss_dates_that_are_right():
    """Each item's description names the time that its date means, or the two that it can mean."""
    for item in read("fv__rss20__data-types-datetime__everything.xml").items:
        text = atom.text_of(xml.parse_payload(item.payload), atom.CONTENT)
        meant = [
            parse_datetime(f"{year}-02-{int(day):02d}T{clock}Z")
            for day, year, clock in re.findall(r"February,? ([0-9]+)th,? ([0-9]{4}),? ([0-9:]{8}) GMT", text)
        ]
        assert item.published_us in meant, item.id


def test_duplicate_guid_keeps_the_newer():
    """[A-124]"""
    document = read("sm_duplicate_guids.xml")
    assert [entry("sm_duplicate_guids.xml", n).findtext(atom.TITLE) for n in (0, 1)] == ["Second, newer", "Other"]
    assert [(one.index, one.reason) for one in document.skipped] == [(0, "a newer item has the same id: same")]


def test_rss092_features():
    """[RSS-006] [RSS-007] [RSS-010] [RSS-013] [A-125]"""
    song, quoted = (entry("sm_rss092_all_features.xml", n) for n in (0, 1))
    link = song.find(atom.LINK)
    assert dict(link.attrib) == {
        "rel": "enclosure",
        "href": "http://example.org/song.mp3",
        "length": "12216320",
        "type": "audio/mpeg",
    }
    assert [dict(node.attrib) for node in song.iterchildren(atom.CATEGORY)] == [
        {"term": "standards/xsl/implementations", "scheme": "http://example.org/dir"},
        {"term": "MSFT"},
    ]
    assert (song.find(atom.CONTENT).get("type"), song.findtext(atom.CONTENT)) == ("html", "A <i>song</i>")
    source = quoted.find(atom.SOURCE)
    assert source.findtext(atom.TITLE) == "Other channel"
    assert source.find(atom.LINK).get("href") == "http://example.net/other.xml?a=1&b=2"


def test_nasty_enclosures():
    """[RSS-011] [RSS-012] [A-126] [A-127] [A-128]"""
    found = {}
    for item in read("sm_rss092_enclosures_nasty.xml").items:
        node = xml.parse_payload(item.payload)
        links = [(link.get("href"), link.get("length"), link.get("type")) for link in node.iterchildren(atom.LINK)]
        found[node.findtext(atom.TITLE)] = links
    assert found == {
        "neg": [("http://example.org/a", None, "audio/mpeg")],
        "huge": [("http://example.org/b", None, "audio/mpeg")],
        "nourl": [],
        "ftp": [("ftp://example.org/c", "1", "audio/mpeg")],
        "js": [("javascript:alert(1)", "1", "audio/mpeg")],
        "two": [("http://example.org/d", "1", "audio/mpeg"), ("http://example.org/e", "2", "video/mp4")],
        "zero": [("http://example.org/f", None, None)],
    }


def test_radio_item():
    """[RSS-031] guid is the link, comments are replies, upper-case HTML with bare attributes stays as it is."""
    node = entry("sm_rss20_sample_like_radio.xml")
    links = {link.get("rel"): link.get("href") for link in node.iterchildren(atom.LINK)}
    assert links == {
        "alternate": "http://example.org/2003/08/26.html#a1849",
        "replies": "http://example.org/comments?u=1&p=1849",
    }
    assert node.findtext(atom.CONTENT).startswith('<A href="http://example.org/p"><IMG height=58 ')
    assert node.find(atom.TITLE).text is None


def test_nested_base_travels_with_the_entry():
    """Manifest: links resolve; an entry cut out of its feed takes its base along."""
    first, second = (entry("sm_xml_base_nested.xml", n) for n in (0, 1))
    assert first.find(atom.LINK).get("href") == "http://example.org/root/b/a"
    assert first.get(xml.XML_BASE) == "http://example.org/root/b/"
    assert first.find(atom.CONTENT).get(xml.XML_BASE) == "c/"
    assert second.find(atom.LINK).get("href") == "http://example.org/abs"


def test_deleted_entry_of_rfc6721_is_a_deletion():
    """[A-18] RFC 6721 is read."""
    live, gone = read("sm_atom_deleted_entry_rfc6721.xml").items
    assert (live.deleted, gone.deleted) == (False, True)
    assert gone.updated_us == parse_datetime("2011-05-09T13:00:00Z")
    assert gone.payload == atom.tombstone("urn:x-test:0", gone.updated_us, b"", atom_id="urn:x-test:0").replace(
        b' id="urn:x-test:0"', b""
    )


@pytest.mark.parametrize(
    ("name", "deleted"),
    [
        ("fv__ext__feedsync__sync-deleted-true.xml", True),
        ("fv__ext__feedsync__sync-deleted-maybe.xml", False),
        ("fv__ext__feedsync__spec-example-atom.xml", False),
    ],
)
def test_feedsync_mark_is_a_deletion(name, deleted):
    """[A-18] [FS-030] only "true" is."""
    assert [item.deleted for item in read(name).items] == [deleted]


def test_unknown_sync_markup_is_kept():
    """Manifest: preserved when republished."""
    sync = entry("sm_fs_unknown_markup.xml").find(atom.SYNC)
    assert sync.get("{urn:x-test:ns}hint") == "h"
    assert sync.findtext("{urn:x-test:ns}ext") == "keep me"


def test_same_sync_item_has_the_same_id_in_both_documents():
    """[FS-025] the sync id is the same in all feeds that share an item."""
    one, other = (read(f"sm_sse_rss_{scheme}_ns.xml").items[0].id for scheme in ("http", "https"))
    assert one == other == "0a7903db47fb0ae8"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("sm_cdata_split.xml", "a ]]> b & c"),
        ("sm_declared_latin1_is_utf8.xml", "Caf\u00e9"),
        ("sm_utf8_bom_rss20.xml", "Caf\u00e9 \u2014 \u6771\u4eac \U0001f600"),
        ("fv__rss20__data-types-characterdata__recommendation-5.xml", "A < B"),
        ("fv__rss20__data-types-characterdata__recommendation-6.xml", "A<B"),
    ],
)
def test_title_is_read_as_written(name, title):
    assert entry(name).findtext(atom.TITLE) == title


@pytest.mark.parametrize("name", ["sm_cdata_html_script.xml", "sm_xhtml_content_script.xml"])
def test_script_is_stored_and_stays_out_of_plain_text(name):
    """Manifest: stored verbatim; what we make of it ourselves has no script."""
    (item,) = read(name).items
    assert b"alert(1)" in item.payload
    assert "alert" not in atom.read_meta(item.payload).text


def test_relative_link_is_seen_from_where_the_document_came_from():
    (item,) = read("fv__rss20__element-channel-item-enclosure__item_enclosure_url_with_port.xml").items
    assert item.id == "http://purl/org/rss/2.0/?item"
    text = b"<rss version='2.0'><channel><item><link>/a</link></item></channel></rss>"
    (item,) = read_document(text, "http://example.org/feeds/x").items
    assert xml.parse_payload(item.payload).find(atom.LINK).get("href") == "http://example.org/a"


def test_atom03_becomes_atom10():
    node = entry("fp__wellformed__sanitize__entry_title_onmousedown.xml")
    assert node.find(atom.TITLE).get("type") == "html"
    node = entry("fp__wellformed__base__entry_title_xml_base_inherit_3.xml")
    assert (node.find(atom.TITLE).get("type"), node.find(atom.TITLE).get(xml.XML_BASE)) == (
        "xhtml",
        "http://example.com/test/",
    )


def test_many_items_keep_their_order():
    """Manifest: all 4,000, in document order; the oldest first when they are to be published."""
    document = read("sm_many_items_4000_rss20.xml")
    assert [item.id for item in document.items] == [f"urn:x-test:{n}" for n in range(4000)]
    assert document.oldest_first() == list(document.items)

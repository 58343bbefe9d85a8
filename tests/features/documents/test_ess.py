"""ESS and NNO files: what is written, to the byte, and what is read of files that others wrote."""

import json
from pathlib import Path

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.documents import ess
from smartfeeds.features.documents.ess import (
    MAX_BYTES,
    EntryStamp,
    EssContent,
    NnoContent,
    NnoEntry,
    ascii_address,
    build_time,
    dumb_checksum,
    minutes_before,
    read_either,
    read_ess,
    read_nno,
    split_nno,
    write_ess,
    write_nno,
)

DATA = Path(__file__).parents[2] / "data" / "ess"
GOLDEN = json.loads((DATA / "golden.json").read_text("utf-8"))
FILES = {file["name"]: file for file in GOLDEN["ess_nno"]["files"]}
US = 1_000_000
BUILD = 1503411300
URL = "http://example.com/rss.xml"
LONG = "x" * 100_000


def stamps(read):
    return [tuple(entry) for entry in read.entries]


@pytest.mark.parametrize("example", GOLDEN["dumb_checksum"]["examples"], ids=lambda example: example["note"])
def test_dumb_checksum_is_that_of_the_examples(example):
    """[ESS-007] [ESS-008] [A-104] [A-105] [A-106] [A-114] The sum of the code units, 0 to 255."""
    title = LONG if example["title"] == '"x" 100000 times' else example["title"]

    assert dumb_checksum(title) == example["canonical_mod_256"]


def test_dumb_checksum_of_the_title_of_the_document_is_140():
    """[A-114] The quoted string, not the one of its heading."""
    assert dumb_checksum("Even Shorter Syndication [ess] and No Nonsense Outlines [nno]") == 140
    assert dumb_checksum("Even Shorter Syndication [ESS] AND No Nonsense Outline [NNO]") != 140


def test_dumb_checksum_adds_both_units_of_a_pair_and_takes_half_a_pair():
    """[A-105] U+1F603 is D83D DE03: 64."""
    assert dumb_checksum("\U0001f603") == (0xD83D + 0xDE03) % 256 == 64
    assert dumb_checksum("\ud83d") == 0x3D


@pytest.mark.parametrize("title", ["", " ", "hello", " hello", "é"])
def test_dumb_checksum_neither_trims_nor_normalises(title):
    """[A-106] The title as it is; none is 0."""
    assert dumb_checksum(title) == sum(map(ord, title)) % 256


@pytest.mark.parametrize("now_s", [1503411300, 1503411304, 1503411359])
def test_build_time_is_floored_to_the_minute(now_s):
    """[A-152] [ESS-003] Divisible by 60."""
    assert build_time(now_s * US) == build_time(now_s * US + 999_999) == BUILD


@pytest.mark.parametrize("row", GOLDEN["ess_nno"]["boundary"], ids=lambda row: row["why"])
def test_minutes_before_counts_minutes_that_changed(row):
    """[ESS-004] [ESS-005] [A-102] Both times floored, then the difference; negative behind the build."""
    assert minutes_before(build_time(row["now"] * US), row["t"] * US) == row["minutes"]


@pytest.mark.parametrize("name", ["ess-1.ess", "ess-2.ess"])
def test_write_ess_gives_the_golden_bytes_from_entries_in_any_order(name):
    """[ESS-001] [ESS-005] [ESS-009] [A-101] [A-103] [A-108] Newest first, whole minutes, negative ones too."""
    file = FILES[name]
    url = file["text"].split(", ")[1]
    entries = [(one["title"], one["time"] * US) for one in file["input"]]

    assert write_ess(url, entries, file["now"] * US).data == file["text"].encode()
    assert write_ess(url, reversed(entries), file["now"] * US).data == file["text"].encode()
    assert file["content_type"] == ess.ESS_TYPE


def test_write_nno_gives_the_golden_bytes():
    """[ESS-002] [ESS-025] Triples of address, minutes and checksum."""
    file = FILES["nno-1.nno"]
    entries = [NnoEntry(one["url"], one["time"], dumb_checksum(one["title"])) for one in file["input"]]

    assert write_nno(reversed(entries), file["now"] * US).data == file["text"].encode()
    assert file["content_type"] == ess.NNO_TYPE


def test_write_ess_lists_no_entry_without_a_date():
    """[A-112] Undated entries are left out."""
    assert write_ess(URL, [("a", None), ("hello world", BUILD * US), ("b", None)], BUILD * US).data.endswith(b", 0,92")


def test_write_ess_of_a_feed_without_entries_can_be_read():
    """[ESS-001] The build time and the address."""
    data = write_ess(URL, [], BUILD * US).data

    assert data == b"1503411300, http://example.com/rss.xml"
    assert read_ess(data) == EssContent(BUILD, URL)


def test_write_ess_lists_a_hundred_entries_in_a_kilobyte():
    """[ESS-010] 100 entries of the golden form take less than 1.2 kB."""
    entries = [(f"Entry number {n}", (BUILD - 60 * 15 * n) * US) for n in range(100)]

    assert len(write_ess(URL, entries, BUILD * US).data) < 1_200


def test_write_ess_and_nno_stop_at_the_size_that_readers_take():
    """[A-113] 1 MB: the oldest entries are left out."""
    entries = [("t", (BUILD - 60 * n) * US) for n in range(200_000)]
    data = write_ess(URL, entries, BUILD * US).data
    outline = write_nno((NnoEntry(URL, BUILD - 60 * n, 5) for n in range(40_000)), BUILD * US).data

    assert MAX_BYTES - 20 < len(data) <= MAX_BYTES
    assert write_ess(URL, entries, BUILD * US).count == len(read_ess(data).entries) < 200_000
    assert write_nno(read_nno(outline).entries, BUILD * US).count == len(read_nno(outline).entries) < 40_000
    assert MAX_BYTES - 60 < len(outline) <= MAX_BYTES
    assert read_ess(data).entries[0].time_s == read_nno(outline).entries[0].time_s == BUILD


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("http://example.com/a,b.xml", "http://example.com/a%2Cb.xml"),
        ("http://example.com/a%2Cb.xml", "http://example.com/a%2Cb.xml"),
        ("http://example.org/feed?a=1&b=2", "http://example.org/feed?a=1&b=2"),
        ("https://bücher.example/straße?q=é", "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%A9"),
        ("http://example.com/a b", "http://example.com/a%20b"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ],
)
def test_written_address_is_ascii_and_has_no_comma(url, written):
    """[A-107] [A-113] A comma is %2C; what is not ASCII is escaped."""
    assert ascii_address(url) == written
    assert write_ess(url, [], BUILD * US).data == f"{BUILD}, {written}".encode()
    assert read_ess(write_ess(url, [("t", BUILD * US)], BUILD * US).data).feed_url == written
    assert read_nno(write_nno([NnoEntry(url, BUILD, 3)], BUILD * US).data).entries == (NnoEntry(written, BUILD, 3),)


@pytest.mark.parametrize("url", ["", "feed.xml", "//example.org/x", "http://[x", "\ud800:", "ä:"])
def test_address_that_is_none_is_not_written(url):
    with pytest.raises(FeedError) as caught:
        write_ess(url, [], 0)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


@pytest.mark.parametrize("example", GOLDEN["ess_nno"]["reading"], ids=["ess", "nno"])
def test_read_examples_of_the_document(example):
    """[A-100] [A-101] [ESS-001] [ESS-002] Milliseconds are floored to the minute, numbers are minutes."""
    is_ess = len(example["entries"][0]) == 2
    found = (read_ess if is_ess else read_nno)(example["text"].encode())

    assert found.build_s == example["build_time"]
    assert stamps(found) == [tuple(entry) for entry in example["entries"]]


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("sm_ess_good.ess", [1503411300, 1503407700, 1503324900]),
        ("sm_ess_ms_buildtime.ess", [1503411300, 1503195300, 1502937900, 1502006040]),
    ],
)
def test_read_corpus(name, times):
    """[A-100] Seconds and milliseconds."""
    found = read_ess((DATA / name).read_bytes())

    assert (found.build_s, found.feed_url) == (BUILD, URL)
    assert [entry.time_s for entry in found.entries] == times


@pytest.mark.parametrize("name", list(FILES))
def test_read_what_was_written(name):
    """[ESS-001] [ESS-002] Times come back floored to their minute."""
    file = FILES[name]
    found = (read_ess if name.endswith(".ess") else read_nno)(file["text"].encode())

    assert [(e.time_s, e.checksum) for e in found.entries] == [
        (one["time"] // 60 * 60, dumb_checksum(one["title"])) for one in file["input"]
    ]


def test_item_time_is_compared_in_minutes_of_the_build():
    """[ESS-006] [A-102] An item of 1503407704 and a build of 1503411300: 60 minutes."""
    assert minutes_before(BUILD, 1503407704 * US) == 60
    assert read_ess(b"1503411300,http://e/,60,7").entries == (EntryStamp(1503407704 // 60 * 60, 7),)


@pytest.mark.parametrize(
    ("text", "build_s"),
    [
        ("99999999999,http://e/", 99999999999 // 60 * 60),
        ("100000000000,http://e/", 99_999_960),
        ("1503411304,http://e/", BUILD),
        ("0,http://e/", 0),
        ("0001503411300,http://e/", BUILD),
    ],
)
def test_read_build_time_of_ten_to_the_eleven_and_more_is_milliseconds(text, build_s):
    """[A-100] The border is 10^11; seconds are floored too."""
    assert read_ess(text.encode()).build_s == build_s


def test_read_sorts_newest_first_and_takes_later_entries():
    """[A-108] [A-103] [ESS-005] [ESS-009] Whatever the order of the file."""
    assert stamps(read_ess(b"1503411300, http://e/, 60,1, -5,2, 0,3, 0,4")) == [
        (BUILD + 300, 2),
        (BUILD, 3),
        (BUILD, 4),
        (BUILD - 3600, 1),
    ]
    assert [e.feed_url for e in read_nno(b"1503411300, http://a/,9,1, http://b/,-2,2").entries] == [
        "http://b/",
        "http://a/",
    ]


def test_read_takes_256_for_0():
    """[ESS-008] [A-104] Compared modulo 256."""
    assert read_ess(b"60,http://e/,0,256,0,0,0,255").entries == (
        EntryStamp(60, 0),
        EntryStamp(60, 0),
        EntryStamp(60, 255),
    )


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("60, http://e/a,b.xml, 0,1", "http://e/a,b.xml"),
        ("60,http://e/a,b,c?d=1,2x,0,1", "http://e/a,b,c?d=1,2x"),
        ("60,http://e/,,x,0,1", "http://e/,,x"),
    ],
)
def test_read_field_that_is_no_number_continues_the_address(text, url):
    """[A-107] Commas in addresses are read."""
    assert read_ess(text.encode()) == EssContent(60, url, (EntryStamp(60, 1),))
    assert read_nno(text.encode()) == NnoContent(60, (NnoEntry(url, 60, 1),))


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " \n", "\n\n"])
@pytest.mark.parametrize("comma", [",", ", ", " , ", ",\t"])
def test_read_takes_blanks_and_one_line_end(end, comma):
    """[ESS-001] [A-113] Blanks are optional, so is a final newline."""
    text = comma.join(["1503411300", "http://e/", "0", "92", "1", "9"]) + end

    assert stamps(read_ess(text.encode())) == [(BUILD, 92), (BUILD - 60, 9)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        ("1503411300, http://é/, 0,1".encode(), "ASCII"),
        (b"\xef\xbb\xbf60, http://e/", "ASCII"),
        (b"60, http://e/\n60, http://f/", "one line"),
        (b"60", "address"),
        (b"60,", "address"),
        (b"60, 5,7", "address"),
        (b"60, not an address, 5,7", "address"),
        (b"60, example.org, 5,7", "address"),
        (b"60, http://e/a b, 5,7", "address"),
        (b"x, http://e/", "build time"),
        (b"-60, http://e/", "1970"),
        (b"6e3, http://e/", "build time"),
        (b"9999999999999999, http://e/", "9999"),
        (b"1" * 5_000 + b", http://e/", "out of range"),
        (b"60, http://e/, 1", "left over"),
        (b"60, http://e/, 1,2,3", "left over"),
        (b"60, http://e/, 1,2,", "left over"),
        (b"60, http://e/, 1,2,,", "checksum"),
        (b"60, http://e/, 1,x", "checksum"),
        (b"60, http://e/, 1,2, x,3", "minutes"),
        (b"60, http://e/, 1.5,2", "address"),
        (b"60, http://e/, 1,257", "0 to 256"),
        (b"60, http://e/, 1,-1", "0 to 256"),
        (b"60, http://e/, 99999999999999,1", "years"),
        (b"60, http://e/, -99999999999999,1", "years"),
        (b"60, http://e/, 1," + b"9" * 5_000, "out of range"),
        (b"<html></html>", "build time"),
        (b"\x00" * 10, "build time"),
    ],
)
def test_read_ess_says_what_is_wrong(data, reason):
    """[A-104] [A-107] [A-113] Leftovers, texts, numbers out of range, other alphabets."""
    with pytest.raises(FeedError) as caught:
        read_ess(data)

    assert caught.value.condition is Condition.INVALID_PAYLOAD
    assert reason in caught.value.text
    assert len(caught.value.text) < 200


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"60,http://e/", "not whole"),
        (b"60,http://e/,1", "not whole"),
        (b"60,http://e/,1,2,http://f/,1", "not whole"),
        (b"60,http://e/,1,2,3,4", "address"),
        (b"60,http://e/,1,2,", "address"),
        (b"60,http://e/,1,b,5,9", "checksum"),
        (b"60,1,2", "address"),
    ],
)
def test_read_nno_says_what_is_wrong(data, reason):
    """[ESS-002] [A-107] Entries that are not whole, numbers without an address."""
    with pytest.raises(FeedError, match=reason) as caught:
        read_nno(data)
    assert caught.value.condition is Condition.INVALID_PAYLOAD


def test_read_nno_without_entries():
    """[ESS-002] Nothing is new."""
    assert read_nno(b"1503411300\n") == NnoContent(BUILD)


@pytest.mark.parametrize("read", [read_ess, read_nno])
def test_read_refuses_more_than_a_megabyte(read):
    """[A-113] And takes exactly that."""
    head = b"60, http://e/, 1,2"
    assert read(head + b" " * (MAX_BYTES - len(head))).entries
    with pytest.raises(FeedError) as caught:
        read(head + b" " * (MAX_BYTES - len(head) + 1))
    assert caught.value.condition is Condition.PAYLOAD_TOO_BIG


def test_split_nno_gives_one_file_a_feed():
    """[ESS-016] [A-110] Entries of one feed stay together, newest first."""
    nno = read_nno(b"600,http://a/,1,1,http://b/,2,2,http://a/,3,3")

    assert split_nno(nno) == [
        EssContent(600, "http://a/", (EntryStamp(540, 1), EntryStamp(420, 3))),
        EssContent(600, "http://b/", (EntryStamp(480, 2),)),
    ]


def test_read_either_takes_both_kinds_of_file():
    """[ESS-001] [ESS-002] One feed and many; what could be both means the same."""
    one = b"600,http://a/,1,1"
    assert read_either(one) == [read_ess(one)] == split_nno(read_nno(one))
    assert [file.feed_url for file in read_either(b"600,http://a/,1,1,http://b/,2,2")] == ["http://a/", "http://b/"]
    assert read_either(b"600") == []


def test_read_either_says_what_is_wrong_with_the_ess_file():
    """[A-107] The reason is that of the likelier kind."""
    with pytest.raises(FeedError, match="left over"):
        read_either(b"600,http://a/,1,1,2")

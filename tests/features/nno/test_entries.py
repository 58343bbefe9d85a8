"""The N newest entries of many feeds, and which items of the feeds they are."""

import json
from pathlib import Path

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.errors import FeedError
from smartfeeds.features.documents.ess import EntryStamp, EssContent, NnoEntry, dumb_checksum, read_nno, write_nno
from smartfeeds.features.nno.entries import (
    Aggregator,
    Candidate,
    EntryRequest,
    ItemMatch,
    candidate_of,
    match,
    raw_titles,
    requests_of,
    title_checksums,
    to_download,
)
from smartfeeds.features.polling.source_items import with_source

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "ess" / "golden.json").read_text("utf-8"))["ess_aggregator"]
BUILD = 60_000_000


def ess(url, *minutes, build_s=BUILD):
    return EssContent(
        build_s, url, tuple(EntryStamp(build_s - 60 * minute, place) for place, minute in enumerate(minutes))
    )


def minutes_of(entries):
    return [((BUILD - entry.time_s) // 60, entry.feed_url) for entry in entries]


def filled(wanted, feeds):
    aggregator = Aggregator(wanted)
    for url, minutes in feeds.items():
        aggregator.add(ess(url, *minutes))
    return aggregator


@pytest.fixture
def golden():
    return filled(GOLDEN["wanted"], GOLDEN["minutes_before_build"])


def test_aggregator_keeps_the_feeds_with_the_youngest_first_entries(golden):
    """[ESS-011] [ESS-012] golden step 1 and 2: C is too old."""
    assert golden.feeds == ["A", "D", "B"]


def test_aggregator_purges_splits_and_builds_the_outline(golden):
    """[ESS-015] [ESS-016] [ESS-017] golden step 3 and 4: entries behind the oldest first one go."""
    golden.purge()
    assert minutes_of(golden.split()) == [(0, "A"), (2, "A"), (3, "D"), (5, "B")]
    assert [list(pair) for pair in minutes_of(golden.result())] == GOLDEN["result"]

    outline = write_nno(
        (entry._replace(feed_url=f"http://{entry.feed_url}/") for entry in golden.result()), BUILD * 10**6
    ).data
    assert [(e.feed_url, e.time_s) for e in read_nno(outline).entries] == [
        (f"http://{url}/", BUILD - 60 * minute) for minute, url in GOLDEN["result"]
    ]


def test_aggregator_takes_a_younger_feed_in_for_the_oldest(golden):
    """[ESS-013] [ESS-014] golden second step: E comes in, B leaves."""
    golden.result()
    assert golden.add(ess("E", *GOLDEN["then_new_ess"]["E"]))

    assert golden.feeds == ["A", "E", "D"]
    golden.purge()
    assert minutes_of(golden.split()) == [(0, "A"), (1, "E"), (2, "A"), (3, "D")]
    assert [list(pair) for pair in minutes_of(golden.result())] == GOLDEN["result2"]


def test_aggregator_refuses_an_older_feed(golden):
    """[ESS-013] Compared with the oldest that is left, which is B's 5 minutes."""
    assert not golden.add(ess("E", 6))
    assert golden.feeds == ["A", "D", "B"]


def test_aggregator_purges_nothing_while_there_are_fewer_feeds_than_wanted_entries():
    """[ESS-015] [A-109] Six wanted of two feeds: the literal rule would leave two."""
    aggregator = filled(6, {"X": [1, 24, 53, 57], "Y": [0, 38, 48, 49]})

    assert aggregator.oldest_s is None
    assert [minute for minute, _url in minutes_of(aggregator.result())] == [0, 1, 24, 38, 48, 49]


def test_aggregator_replaces_a_feed_that_is_there_before_it_compares():
    """[A-110] B's new file is older than all others, and still has the place of the former one."""
    aggregator = filled(3, {"A": [0], "B": [1], "C": [2]})

    assert aggregator.add(ess("B", 50, 60))
    assert minutes_of(aggregator.split()) == [(0, "A"), (2, "C"), (50, "B")]
    assert aggregator.add(ess("D", 40))
    assert aggregator.feeds == ["A", "C", "D"]


def test_aggregator_takes_out_a_feed_whose_file_has_no_entries_any_more():
    """[A-110] And makes room for another one."""
    aggregator = filled(2, {"A": [0], "B": [1]})

    assert not aggregator.add(EssContent(BUILD, "A"))
    assert aggregator.feeds == ["B"]
    assert aggregator.add(ess("C", 99))


def test_aggregator_compares_absolute_times():
    """[A-111] 5 minutes before a later build are younger than 1 before an earlier one."""
    aggregator = Aggregator(1)
    aggregator.add(ess("A", 1))

    assert aggregator.add(ess("B", 5, build_s=BUILD + 600))
    assert aggregator.feeds == ["B"]


def test_aggregator_keeps_the_present_one_of_a_tie():
    """[A-112] The same first time does not push anybody out; the one that came last leaves first."""
    aggregator = filled(2, {"A": [5], "B": [5]})

    assert not aggregator.add(ess("C", 5))
    assert aggregator.add(ess("D", 4))
    assert aggregator.feeds == ["D", "A"]
    assert not aggregator.add(EssContent(BUILD, "E"))


def test_aggregator_forgets_what_was_replaced():
    """[A-110] Ten thousand new files of few feeds leave no more behind than a few lines."""
    aggregator = Aggregator(3)
    for step in range(10_000):
        aggregator.add(ess(f"f{step % 5}", 20_000 - step))

    assert aggregator.feeds == ["f4", "f3", "f2"]
    assert len(aggregator._oldest) <= 10


def test_aggregator_wants_something():
    """[ESS-011] The number is the user's."""
    with pytest.raises(ValueError, match="at least one"):
        Aggregator(0)


# Recycling and matching.


def entry(minute=0, checksum=0, url="http://a/"):
    return NnoEntry(url, BUILD - 60 * minute, checksum)


def candidate(title, *minutes):
    return Candidate(tuple(BUILD - 60 * minute for minute in minutes), title_checksums(title))


def found(entries, candidates):
    return match(requests_of(entries), candidates)


def test_to_download_nothing_where_the_same_entries_came_before():
    """[ESS-018] [ESS-019] A second outline with the same entries: no feed."""
    wanted = requests_of([entry(0), entry(1), entry(2, url="http://b/")])

    assert to_download(wanted, {}) == {"http://a/": wanted[:2], "http://b/": wanted[2:]}
    assert to_download(wanted, set(wanted)) == {}


def test_to_download_one_feed_for_one_younger_entry():
    """[ESS-019] Only the feed with the entry that is new, whatever else it had."""
    former = requests_of([entry(1), entry(2, url="http://b/")])
    now = requests_of([entry(0), entry(1), entry(2, url="http://b/")])

    assert to_download(now, set(former)) == {"http://a/": [now[0]]}


def test_to_download_tells_entries_apart_that_are_equal_in_everything():
    """[ESS-022] The second of two equal entries is new."""
    (first,) = requests_of([entry(1, 5)])
    both = requests_of([entry(1, 5), entry(1, 5)])

    assert both == [first, EntryRequest(entry(1, 5), 1)]
    assert to_download(both, {first}) == {"http://a/": [both[1]]}


def test_match_time_that_one_item_has_decides_alone():
    """[ESS-006] [ESS-020] Whatever the title's checksum says."""
    assert found([entry(5, 99)], [candidate("a", 4), candidate("b", 5)]) == [ItemMatch(1)]


def test_match_of_several_items_of_one_minute_the_checksum_picks():
    """[ESS-020] Checksums 9 and 92."""
    candidates = [candidate("The Grateful Dead", 5), candidate("hello world", 5)]

    assert found([entry(5, 92)], candidates) == [ItemMatch(1)]
    assert found([entry(5, 9)], candidates) == [ItemMatch(0)]
    assert found([entry(5, 92), entry(5, 9)], candidates) == [ItemMatch(1), ItemMatch(0)]


def test_match_of_time_that_nobody_has_the_checksum_picks_and_it_is_updated():
    """[ESS-020] [ESS-021] The item has a new time; of several titles of one checksum the nearest in time."""
    candidates = [candidate("hello world", 500), candidate("hello world", 20), candidate("other", 6), candidate("x")]

    assert found([entry(5, 92)], candidates) == [ItemMatch(1, updated=True)]


def test_match_uses_both_times_of_an_item():
    """[ESS-006] Published and updated."""
    assert found([entry(5, 0), entry(9, 0)], [candidate("a", 5, 3), candidate("b", 11, 9)]) == [
        ItemMatch(0),
        ItemMatch(1),
    ]


def test_match_tries_the_trimmed_title_second():
    """[A-106] A foreign file may have been made of either."""
    padded = candidate(" hello world ", 5)
    plain = candidate("hello world", 5)

    assert padded.checksums == (156, 92)
    assert found([entry(5, 92)], [padded, candidate("x", 5)]) == [ItemMatch(0)]
    assert found([entry(5, 156)], [plain, padded, candidate("x", 5)]) == [ItemMatch(1)]
    assert found([entry(5, 92)], [padded, plain]) == [ItemMatch(1)]
    assert found([entry(7, 92)], [padded]) == [ItemMatch(0, updated=True)]


def test_match_leaves_the_last_item_of_a_minute_to_an_entry_whose_title_changed():
    """[ESS-020] Two entries in a minute, one of them renamed since."""
    assert found([entry(5, 1), entry(5, 92)], [candidate("hello world", 5), candidate("new", 5)]) == [
        ItemMatch(1),
        ItemMatch(0),
    ]


def test_match_gives_equal_entries_an_item_each():
    """[ESS-022] Same time and title: each is included, and no more than there are."""
    twins = [candidate("hello world", 5), candidate("hello world", 5)]

    assert found([entry(5, 92)] * 2, twins) == [ItemMatch(0), ItemMatch(1)]
    assert found([entry(5, 92)] * 3, [*twins, candidate("hello world", 50)]) == [ItemMatch(0), ItemMatch(1), None]


def test_match_of_nothing_like_it_is_none():
    """[ESS-020] Neither time nor checksum."""
    assert found([entry(5, 1), entry(6, 7)], [candidate("hello world", 50)]) == [None, None]
    assert found([entry(5, 1)], []) == [None]


@pytest.mark.parametrize(
    "document",
    [
        "<rss><channel><title> no </title><item><title> hello </title></item><item><title>x</title></item>"
        "<item><title>hello</title><image><title> y </title></image></item></channel></rss>",
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="urn:m"><title> no </title><entry><title> hello </title>'
        "<m:title> y </m:title></entry><entry><title>x</title></entry><entry><title>hello</title></entry></feed>",
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><item>'
        "<title> hello </title></item><item><title>x</title></item><item><title>hello</title></item></r:RDF>",
    ],
    ids=["rss", "atom", "rdf"],
)
def test_raw_titles_are_those_of_items_before_they_were_trimmed(document):
    """[A-106] Readers of feeds trim titles; checksums are of what stands in the document."""
    assert raw_titles(document.encode()) == {"hello": (" hello ", "hello"), "x": ("x",)}


def test_raw_titles_are_decoded_once():
    """[A-106] XML's references are, HTML's are not."""
    (title,) = raw_titles(b"<rss><channel><item><title>Tom &amp;amp; Jerry</title></item></channel></rss>")

    assert dumb_checksum(title) == 27
    with pytest.raises(FeedError):
        raw_titles(b"<html>")


def test_candidate_has_both_times_floored_and_the_titles_as_they_may_stand():
    """[ESS-006] [A-106] Trimmed by the reader of RSS, so the raw title comes first."""
    data = (
        b"<rss><channel><item><title> hello world </title><pubDate>Mon, 09 May 2011 12:00:59 GMT</pubDate>"
        b"<dcterms:modified xmlns:dcterms='http://purl.org/dc/terms/'>2011-05-09T12:05:01Z</dcterms:modified></item>"
        b"<item><guid>2</guid></item></channel></rss>"
    )
    first, second = (candidate_of(item, raw_titles(data)) for item in read_document(data).items)

    assert first == Candidate((1_304_942_400, 1_304_942_700), (156, 92))
    assert second == Candidate((), (0,))


ATOM = 'xmlns="http://www.w3.org/2005/Atom"'


def test_source_is_added_with_what_is_known_of_the_feed():
    """The id only where it is a URI; whatever prefix the entry uses."""
    payload = f"<entry {ATOM}><id>urn:1</id></entry>".encode()
    assert (
        with_source(payload, "urn:feed", "A & B", "http://e/a?b&c")
        == (
            f"<entry {ATOM}><id>urn:1</id><source><id>urn:feed</id><title>A &amp; B</title>"
            '<link href="http://e/a?b&amp;c" rel="self"></link></source></entry>'
        ).encode()
    )
    assert b"<source><title></title>" in with_source(payload, "no uri", "", "http://e/")

    prefixed = b'<a:entry xmlns:a="http://www.w3.org/2005/Atom"><a:id>urn:1</a:id></a:entry>'
    assert b"<a:source><a:title>T</a:title><a:link " in with_source(prefixed, "", "T", "http://e/")


def test_source_that_an_entry_has_stays():
    """RFC 4287 4.2.11: it names the feed the entry was in first."""
    payload = f"<entry {ATOM}><source><title>first</title></source></entry>".encode()

    assert with_source(payload, "urn:feed", "second", "http://e/") == payload

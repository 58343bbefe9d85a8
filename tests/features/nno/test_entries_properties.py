"""Properties of ESS and NNO: what is written is read again, the steps of the aggregator are a full sort."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.documents.ess import (
    EntryStamp,
    EssContent,
    NnoEntry,
    build_time,
    dumb_checksum,
    minutes_before,
    read_ess,
    read_nno,
    write_ess,
    write_nno,
)
from smartfeeds.features.nno.entries import Aggregator, Candidate, ItemMatch, match, requests_of, title_checksums
from smartfeeds.formats.autodiscovery import links_of

TIMES_US = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
NOW_US = st.integers(0, 99_999_999_999_000_000)
ADDRESSES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), max_size=20).map(
    lambda text: "http://example.org/" + text
)
FEEDS = st.lists(st.lists(st.integers(0, 60), max_size=8), max_size=12)


@given(st.text(st.characters()))
def test_dumb_checksum_is_that_of_the_first_code_of_the_document(title):
    """[ESS-007] [A-104] [A-105] Modulo 256, over UTF-16 code units."""
    units = title.encode("utf-16-be", "surrogatepass")
    total = sum(units[at] * 256 + units[at + 1] for at in range(0, len(units), 2))
    while total > 256:
        total -= 256

    assert dumb_checksum(title) == total % 256


@given(ADDRESSES, st.lists(st.tuples(st.text(), st.none() | TIMES_US)), NOW_US)
def test_ess_is_read_as_it_was_written(url, entries, now_us):
    """[ESS-001] [ESS-003] [ESS-004] [ESS-009] [A-107] [A-112] Any address, any title, any time, to the minute."""
    found = read_ess(write_ess(url, entries, now_us).data)

    dated = [(time_us // 60_000_000 * 60, dumb_checksum(title)) for title, time_us in entries if time_us is not None]
    assert sorted(found.entries) == sorted(dated)
    assert list(found.entries) == sorted(found.entries, key=lambda stamp: -stamp.time_s)
    assert found.build_s == build_time(now_us) and found.build_s % 60 == 0
    assert "," not in found.feed_url and found.feed_url.isascii()
    assert write_ess(found.feed_url, [], now_us).data == f"{found.build_s}, {found.feed_url}".encode()


@given(st.lists(st.builds(NnoEntry, ADDRESSES, TIMES_US.map(lambda us: us // 10**6), st.integers(0, 256))), NOW_US)
def test_nno_is_read_as_it_was_written(entries, now_us):
    """[ESS-002] [A-104] Any entries, to the minute."""
    found = read_nno(write_nno(entries, now_us).data)

    assert sorted((e.time_s, e.checksum) for e in found.entries) == sorted(
        (e.time_s // 60 * 60, e.checksum % 256) for e in entries
    )


@given(TIMES_US, NOW_US)
def test_minutes_lead_back_to_the_minute(time_us, now_us):
    """[ESS-004] [ESS-006] [A-102] Any time, any build: exact to the minute."""
    build_s = build_time(now_us)

    assert build_s - 60 * minutes_before(build_s, time_us) == time_us // 60_000_000 * 60


@pytest.mark.parametrize("read", [read_ess, read_nno])
@given(st.binary(max_size=60) | st.text("0123456789,- http://e\n", max_size=60).map(str.encode))
def test_read_gives_a_value_or_says_what_is_wrong(read, data):
    """[A-113] Whatever comes."""
    try:
        entries, condition = read(data).entries, Condition.INVALID_PAYLOAD
    except FeedError as error:
        entries, condition = (), error.condition

    assert condition is Condition.INVALID_PAYLOAD
    assert all(0 <= entry.checksum < 256 and entry.time_s % 60 == 0 for entry in entries)


def ess(number, minutes, step=0):
    return EssContent(
        0, f"http://{number}/", tuple(EntryStamp(60 * (step - minute), number) for minute in sorted(minutes))
    )


@given(FEEDS, st.integers(1, 15), st.booleans())
def test_steps_of_the_aggregator_are_a_full_sort(feeds, wanted, often):
    """[ESS-012] [ESS-013] [ESS-014] [ESS-015] [ESS-016] [ESS-017] [A-109] [A-112]

    The same entries in the same order, however often it is purged.
    """
    aggregator = Aggregator(wanted)
    files = [ess(number, minutes) for number, minutes in enumerate(feeds)]
    for file in files:
        aggregator.add(file)
        if often:
            aggregator.result()

    everything = [NnoEntry(file.feed_url, *stamp) for file in files for stamp in file.entries]
    assert aggregator.result() == sorted(everything, key=lambda entry: -entry.time_s)[:wanted]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 60), min_size=1, max_size=6)), max_size=30),
    st.integers(1, 8),
)
def test_aggregator_with_new_files_is_a_full_sort_of_the_newest_of_each(updates, wanted):
    """[ESS-013] [ESS-014] [A-110] As long as feeds only grow younger, whatever was thrown away is not missed."""
    aggregator, last = Aggregator(wanted), {}
    for number, minutes in updates:
        former = last[number].entries[0].time_s if number in last else -(10**9)
        file = ess(number, minutes)
        shift = max(0, former - file.entries[0].time_s)
        file = EssContent(0, file.feed_url, tuple(EntryStamp(stamp.time_s + shift, number) for stamp in file.entries))
        last[number] = file
        aggregator.add(file)

    times = sorted(-stamp.time_s for file in last.values() for stamp in file.entries)
    assert [-entry.time_s for entry in aggregator.result()] == times[:wanted]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", " a ", "b", ""])), max_size=8),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 255)), max_size=8),
)
def test_match_gives_no_item_twice_and_never_misses_what_fits_exactly(items, entries):
    """[ESS-020] [ESS-022] One to one; an item of the same time and title is found."""
    wanted = requests_of([NnoEntry("http://e/", 60 * t, c) for t, c in entries])
    candidates = [Candidate((60 * t,), title_checksums(title)) for t, title in items]
    places = [found.place for found in match(wanted, candidates) if found is not None]
    assert len(places) == len(set(places))

    own = requests_of([NnoEntry("http://e/", 60 * t, dumb_checksum(title)) for t, title in items])
    for one, found in zip(own, match(own, candidates), strict=True):
        assert found is not None and not found.updated
        assert candidates[found.place].times_s == (one.entry.time_s,)


@given(
    st.binary(max_size=200)
    | st.text("<link rel=alternate type=application/ess href=/x>'\"", max_size=200).map(str.encode)
)
def test_links_of_anything_are_links_of_the_web(html):
    """[ESS-024] Whatever the page is."""
    for link in links_of(html, "https://example.org/"):
        assert link.href.startswith(("http://", "https://"))


TIMES_S = st.lists(st.integers(0, 4).map(lambda minute: minute * 60), max_size=2)
CANDIDATES = st.lists(
    st.builds(Candidate, TIMES_S.map(tuple), st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)), max_size=7
)
WANTED = st.lists(
    st.builds(NnoEntry, st.just("http://a/"), st.integers(0, 5).map(lambda minute: minute * 60), st.integers(0, 4)),
    max_size=7,
).map(requests_of)


def plain_match(wanted, candidates):
    """The rules of `match` as they are written down, in as many steps as that takes."""
    free = set(range(len(candidates)))
    found = [None] * len(wanted)

    def fits(rule, one, place):
        times_s, checksums = candidates[place]
        at_time = one.entry.time_s in times_s
        return {
            "time and title": at_time and checksums[0] == one.entry.checksum,
            "time and trimmed": at_time and one.entry.checksum in checksums,
            "time alone": at_time and sum(one.entry.time_s in candidates[other].times_s for other in free) == 1,
            "title": not one.turn and checksums[0] == one.entry.checksum,
            "trimmed": not one.turn and one.entry.checksum in checksums,
        }[rule]

    def distance(one, place):
        return min((abs(time_s - one.entry.time_s) for time_s in candidates[place].times_s), default=float("inf"))

    for rule in ("time and title", "time and trimmed", "time alone", "title", "trimmed"):
        for index, one in enumerate(wanted):
            places = [place for place in sorted(free) if fits(rule, one, place)] if found[index] is None else []
            if places:
                place = min(places, key=lambda place: distance(one, place))
                free.discard(place)
                found[index] = ItemMatch(place, rule in ("title", "trimmed"))
    return found


@given(WANTED, CANDIDATES)
def test_match_is_that_of_its_rules(wanted, candidates):
    """[ESS-020] [ESS-021] [ESS-022] [A-106]"""
    assert match(wanted, candidates) == plain_match(wanted, candidates)

"""Partial and complete feeds: bounds, followers, publishers."""

import pytest
from lxml import etree

from smartfeeds.core.position import AtTime, parse_position
from smartfeeds.core.times import parse_datetime
from smartfeeds.core.view import SMART
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS, SSE_NAMESPACES
from smartfeeds.sync.sharing import (
    DAY_US,
    FeedWindow,
    FollowStep,
    MirroredItem,
    PartialFeedFollower,
    RelatedFeed,
    RelatedKind,
    Sharing,
    format_bound,
    is_out_of_sync,
    to_drop,
)
from smartfeeds.sync.sharing_markup import read_sharing, write_sharing
from support.sync import GOLDEN

PARTIAL = "http://a.example/partial.xml"
COMPLETE = "http://a.example/all.xml"
LINK = (RelatedFeed(COMPLETE, RelatedKind.COMPLETE),)


@pytest.mark.parametrize("row", GOLDEN["feedsync"]["partial"], ids=lambda row: f"{row['cached_until']}<{row['since']}")
def test_bounds_compare_as_texts(row):
    """[FS-079] [FS-086] by code point; "9" and "10" show why they need a fixed width."""
    assert is_out_of_sync(row["cached_until"], row["since"]) is row["out_of_sync"]


def test_our_bounds_have_a_fixed_width():
    """[FS-086] [FS-087] [A-45] a text that grows, a date for old readers, exact to the microsecond."""
    bounds = [format_bound(us) for us in (0, 1, 999_999, 1_000_000, 10**15)]

    assert bounds == sorted(bounds)
    assert {len(one) for one in bounds} == {27}
    assert [parse_datetime(one) for one in bounds] == [0, 1, 999_999, 1_000_000, 10**15]


@pytest.mark.parametrize(
    ("text", "feedsync", "sse", "position"),
    [
        pytest.param("7", "7", None, False, id="any text"),
        pytest.param(
            "Sat, 21 May 2005 09:43:33 GMT",
            "Sat, 21 May 2005 09:43:33 GMT",
            "2005-05-21T09:43:33.000000Z",
            False,
            id="date",
        ),
        pytest.param("time:2005-05-21T09:43:33Z", "time:2005-05-21T09:43:33Z", None, True, id="position"),
    ],
)
def test_bounds_and_positions_are_read_by_their_own_document(
    text: str, feedsync: str, sse: str | None, position: bool
) -> None:
    """[A-37] FeedSync 2.1 compares any text, SSE 2.1 reads a date, Smart Feeds reads `type:value`."""
    bounds = f'since="{text}" until="{text}"'
    read = [
        read_sharing(etree.fromstring(f'<sharing xmlns="{namespace}" {bounds}/>'))[0].since
        for namespace in (FEEDSYNC_NS, min(SSE_NAMESPACES))
    ]

    assert read == [feedsync, sse]
    if position:
        assert parse_position(text, SMART) == AtTime(parse_datetime("2005-05-21T09:43:33Z"))
    else:
        with pytest.raises(FeedError, match="position"):
            parse_position(text, SMART)


def test_first_read_follows_the_complete_link_once():
    """[FS-078] [FS-077] [SSE-014] [A-41] one address is enough for a new subscriber."""
    first = PartialFeedFollower().read(PARTIAL, Sharing("1", "5", related=LINK))

    assert (first.step, first.link) == (FollowStep.FETCH, COMPLETE)
    second = first.state.read(COMPLETE, Sharing("0", "6"))
    assert (second.step, second.state.until) == (FollowStep.MERGE, "6")


def test_first_read_without_a_link_merges_what_is_there():
    """[FS-078] [FS-076] [A-47] a feed without bounds is complete."""
    decision = PartialFeedFollower().read(PARTIAL, Sharing())

    assert (decision.step, decision.state.until, decision.note) == (FollowStep.MERGE, None, "")


def test_later_read_within_the_window_merges():
    """[FS-079] [A-48] since equal to the cached until is no gap."""
    decision = PartialFeedFollower("5").read(PARTIAL, Sharing("5", "8", related=LINK))

    assert (decision.step, decision.state.until) == (FollowStep.MERGE, "8")


def test_out_of_sync_reads_the_complete_feed_before_anything_is_told_as_dropped():
    """[FS-080] [A-46] [A-41] the cached bound is forgotten, the complete feed is read, then the rest is known."""
    first = PartialFeedFollower("5").read(PARTIAL, Sharing("6", "8", related=LINK))

    assert (first.step, first.link, first.state.until) == (FollowStep.FETCH, COMPLETE, None)
    second = first.state.read(COMPLETE, Sharing("0", "9"))
    assert (second.step, second.state) == (FollowStep.REPLACE, PartialFeedFollower("9"))


@pytest.mark.parametrize("link", [PARTIAL, COMPLETE, "http://a.example/other.xml"])
def test_complete_feed_that_refers_on_ends_after_one_hop(link):
    """[A-46] no loop, wherever its own link leads."""
    first = PartialFeedFollower().read(PARTIAL, Sharing("1", "5", related=LINK))

    second = first.state.read(COMPLETE, Sharing("9", "9", related=(RelatedFeed(link, RelatedKind.COMPLETE),)))

    assert second.step is FollowStep.MERGE
    assert bool(second.note) is (link != COMPLETE)


def test_feed_that_is_its_own_complete_feed_is_not_read_twice():
    """[A-46] a link to itself leads nowhere."""
    assert PartialFeedFollower().read(COMPLETE, Sharing("1", "5", related=LINK)).step is FollowStep.MERGE


def test_gap_without_a_complete_feed_is_told():
    """[FS-080] nothing is dropped for want of a complete feed."""
    decision = PartialFeedFollower("5").read(PARTIAL, Sharing("6", "8"))

    assert decision.step is FollowStep.MERGE
    assert "missing" in decision.note


def test_dropped_items_exclude_own_and_present_items():
    """[FS-080] [A-46] only items of this subscription that nobody here made or changed last."""
    mirror = {
        "a": MirroredItem("A", "A"),
        "b": MirroredItem("me", "A"),
        "c": MirroredItem("A", "me"),
        "d": MirroredItem("A", "B"),
    }

    assert to_drop(mirror, {"d"}, "me") == ["a"]


def test_aggregated_feeds_are_hints():
    """[FS-021] [SSE-015] never where anything is fetched."""
    other = RelatedFeed("http://b.example/", RelatedKind.AGGREGATED, "B")
    sharing = Sharing("1", "5", related=(other,))

    assert (sharing.aggregated, sharing.complete_link) == ((other,), "")
    assert PartialFeedFollower().read(PARTIAL, sharing).step is FollowStep.MERGE


def test_link_to_a_part_is_no_complete_feed():
    """[SSE-013] a related feed with a beginning is none."""
    sharing = Sharing(related=(RelatedFeed(COMPLETE, RelatedKind.COMPLETE, partial=True),))

    assert sharing.complete_link == ""


def test_next_read_is_before_something_expires():
    """[FS-017] [SSE-010] and at most the window of the history later; what has expired changes nothing."""
    assert Sharing().next_read_us(100, 50) == 150
    assert Sharing(expires_us=140).next_read_us(100, 50) == 120
    assert Sharing(expires_us=90).next_read_us(100, 50) == 150
    assert Sharing(window_days=14).next_read_us(0, 99 * DAY_US) == 14 * DAY_US


SECOND = 1_000_000


@pytest.mark.parametrize("sse", [False, True], ids=["feedsync", "sse"])
@pytest.mark.parametrize("created_us", [0, 1, SECOND // 2, SECOND - 1, SECOND, 7 * SECOND + 1])
def test_bounds_of_an_empty_feed_are_below_those_of_any_later_window(created_us, sse):
    """[FS-081] [FS-083] [SSE-008] The first item may have the time of the creation. `until` grows with it, and once it
    has left the window, a reader of the empty feed is out of sync."""
    unit_us = SECOND if sse else 1
    first_us = -(-created_us // unit_us) * unit_us
    empty = FeedWindow.of_all(created_us, -1, sse=sse).sharing(sse=sse)
    whole = FeedWindow.of_all(created_us, first_us, sse=sse).sharing(sse=sse)
    later = FeedWindow(first_us, first_us + unit_us).sharing(sse=sse)

    assert empty.since <= empty.until < whole.until < later.until
    assert [is_out_of_sync(one.until, whole.since) for one in (empty, whole)] == [False, False]
    assert is_out_of_sync(empty.until, later.since)


def test_reader_of_a_former_feed_of_this_name_is_out_of_sync():
    """[FS-079] [FS-080] Its items are gone, also while the new feed fits into one window."""
    former = FeedWindow(5, 10).sharing()

    assert is_out_of_sync(former.until, FeedWindow.of_all(20, -1, sse=False).sharing().since)
    assert is_out_of_sync(former.until, FeedWindow.of_all(20, 30, sse=False).sharing().since)


def test_items_older_than_their_feed_are_below_its_bounds():
    """[FS-081] A feed that was moved here has its items with the keys of the other service, which are older."""
    moved = FeedWindow.of_all(100, 50, sse=False).sharing()

    assert moved.since < format_bound(50) == moved.until


@pytest.mark.parametrize("sse", [False, True], ids=["feedsync", "sse"])
def test_complete_feed_has_the_bound_for_the_next_reading_and_leads_nowhere(sse):
    """[FS-078] [FS-081] [A-46] [A-47] 4.1.1 step 4 needs `until`; a link to itself would be followed for ever."""
    window = FeedWindow.of_all(5 * SECOND, 9 * SECOND, sse=sse)
    complete = window.complete_sharing(sse=sse)

    assert (complete.until, complete.related) == (window.sharing(sse=sse).until, ())
    assert complete.since is not None
    assert (complete.is_partial, window.sharing(sse=sse).is_partial) == (False, True)
    assert read_sharing(etree.fromstring(write_sharing(complete))) == (complete, [])


def test_reader_of_a_feed_without_bounds_reads_the_complete_one_each_time_and_says_so():
    """[FS-079] By 4.1.2 it would merge the window alone, and lose what left it."""
    first = PartialFeedFollower().read(PARTIAL, Sharing(related=LINK))
    later = PartialFeedFollower(begun=True).read(PARTIAL, Sharing("1", "5", related=LINK))

    assert (first.step, first.note) == (FollowStep.FETCH, "")
    assert later.step is FollowStep.FETCH and "no bounds" in later.note


def test_partial_feed_says_its_bounds_and_where_the_complete_one_is():
    """[FS-081] [FS-077] [A-47] and nothing of an end: nothing in a feed expires."""
    sharing = FeedWindow(0, 1).sharing(COMPLETE)

    assert (sharing.since, sharing.until) == ("1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000001Z")
    assert (sharing.complete_link, sharing.expires_us) == (COMPLETE, None)

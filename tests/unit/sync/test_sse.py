"""SSE 0.91: comparing, conflict lists, local changes."""

import pytest

from smartfeeds.errors import FeedError
from smartfeeds.sync.merging import Outcome, merge
from smartfeeds.sync.record import MAX_NUMBER, Edit, Flag
from smartfeeds.sync.sse import KEPT_RECORDS, SSE, one_per_endpoint, stepped_on
from support.sync import GOLDEN, at, sse_golden, version

MERGES = [one for one in GOLDEN["sse"]["merges"] if one["incoming"] is not None]
LITERAL = "equal in all keys, incoming carries a conflict mark"


@pytest.mark.parametrize(
    "row",
    [one for one in MERGES if one["what"] != LITERAL],
    ids=[one["what"] for one in MERGES if one["what"] != LITERAL],
)
def test_merge_gives_the_golden_result(row):
    """[SSE-026] [SSE-037 to SSE-042] [SSE-048] [SSE-049] [A-71] in both directions the same."""
    local, incoming, expected = (sse_golden(row[name]) for name in ("local", "incoming", "result"))

    assert merge(SSE, local, incoming).version == expected
    assert merge(SSE, incoming, local).version == expected


def test_equal_keys_take_over_marks_and_lists():
    """[A-77] [SSE-039] "no action required" would leave endpoints with different marks for ever."""
    row = next(one for one in MERGES if one["what"] == LITERAL)
    local, incoming = sse_golden(row["local"]), sse_golden(row["incoming"])

    merged = merge(SSE, local, incoming)

    assert (merged.version, merged.outcome) == (incoming, Outcome.CONFLICT)
    assert merge(SSE, incoming, local).version == incoming


def test_equal_in_all_keys_is_no_change():
    """[SSE-039] the same version again; and the longer history stays at either end."""
    row = next(one for one in MERGES if one["what"] == "equal in all keys")
    local, incoming = sse_golden(row["local"]), sse_golden(row["incoming"])

    assert merge(SSE, local, incoming).outcome is Outcome.UNCHANGED
    assert merge(SSE, incoming, local).version == local


def test_unknown_item_is_added():
    """[SSE-026] [SSE-032] as it came."""
    item = version(1, "1 09:00 A")

    assert merge(SSE, None, item).version is item


def test_absent_time_is_below_every_date():
    """[A-76] [SSE-022] [SSE-038] also below one before the epoch; absent endpoint below every other."""
    for higher, lower in (("2 1901-01-01T00:00:00Z A", "2 - Z"), ("2 10:00 A", "2 10:00 -")):
        winner, loser = version(2, higher), version(2, lower)
        assert merge(SSE, loser, winner).version.top == winner.top


@pytest.mark.parametrize(
    ("winner", "loser", "found"),
    [
        (version(4, "4 12:00 A", "3 11:00 A", "2 10:00 B"), version(2, "2 10:00 B"), False),
        (version(4, "4 12:00 A", "3 11:00 A", "2 10:00 B"), version(2, "2 10:01 B"), True),
        (version(4, "4 12:00 A", "3 11:00 A"), version(2, "2 10:01 B"), False),
        (version(4, "4 12:00 A"), version(4, "4 11:00 B"), True),
    ],
    ids=["n = 2, the same", "n = 2, another", "cut off", "n = 0"],
)
def test_conflict_test_looks_at_the_nth_record(winner, loser, found):
    """[SSE-040] [SSE-041] [A-78] and what is cut off shows nothing."""
    assert stepped_on(winner, loser) is found


def test_linear_change_keeps_the_winner_s_mark():
    """[SSE-042] without a conflict the value stays as it is."""
    old, new = version(1, "1 09:00 A"), version(2, "2 10:00 A", "1 09:00 A", conflict=Flag.TRUE)

    assert merge(SSE, old, new).version.conflict is Flag.TRUE
    assert merge(SSE, old, new._replace(conflict=Flag.FALSE)).version.conflict is Flag.FALSE


def test_loser_s_list_is_kept_where_it_is_news_to_the_winner():
    """[SSE-049] what the winner was made from is no conflict of it."""
    rival, ancestor = version(2, "2 10:30 C"), version(3, "3 11:00 W")
    loser = version(3, "3 11:30 L", "2 10:00 A", conflict=Flag.TRUE, conflicts=(rival, ancestor))
    winner = version(4, "4 12:00 W", "3 11:00 W", "2 10:00 A")

    merged = merge(SSE, winner, loser).version

    assert {one.top.by for one in merged.conflicts} == {"L", "C"}


def test_list_has_one_conflict_per_endpoint():
    """[SSE-049] [SSE-050] [A-82] the latest version, then the latest time; one without endpoint likewise."""
    listed = [
        version(3, "3 10:00 A"), version(4, "4 09:00 A"), version(4, "4 09:30 A"),
        version(3, "3 10:00 -"), version(3, "3 10:01 -"), version(2, "2 - B"),
    ]  # fmt: skip

    kept = one_per_endpoint(listed)

    assert set(kept) == {listed[2], listed[4], listed[5]}
    assert one_per_endpoint(reversed(listed)) == kept


def test_created_item_of_the_document():
    """[SSE-031] [A-72] version 1 and one record."""
    item = SSE.create("0a7903db47fb0ae8", b"<item/>", Edit(at("09:43"), "REO1750"))

    assert (item.counter, len(item.history), item.top.by) == (1, 1, "REO1750")
    assert SSE.create("x", b"", Edit(0), deleted=True).deleted.on


def test_chain_of_the_document():
    """[SSE-033] three more changes: version 4, and each former history is an update."""
    item = SSE.create("i1", b"", Edit(at("09:43"), "REO1750"))
    for hour in (10, 11, 12):
        item = SSE.update(item, Edit(at(f"{hour}:43"), "REO1750"))

    assert item == version(4, "4 12:43 REO1750", "3 11:43 REO1750", "2 10:43 REO1750", "1 09:43 REO1750")


def test_own_history_is_cut_at_a_documented_length():
    """[SSE-034] [A-78] and not below it."""
    item = SSE.create("i1", b"", Edit(0, "A"))
    for n in range(KEPT_RECORDS + 20):
        item = SSE.update(item, Edit(n * 1_000_000, "A"))

    assert KEPT_RECORDS >= 100
    assert len(item.history) == KEPT_RECORDS
    assert item.counter == KEPT_RECORDS + 21


def test_every_change_but_a_deletion_makes_it_live():
    """[SSE-035] other than in FeedSync."""
    gone = SSE.update(version(1, "1 09:00 A"), Edit(0, "A"), deleted=True)

    assert gone.deleted is Flag.TRUE
    assert SSE.update(gone, Edit(0, "A")).deleted is Flag.ABSENT


def test_change_clears_the_mark_and_the_list():
    """[SSE-036] [SSE-044] which is also how a conflict is resolved."""
    row = next(one for one in GOLDEN["sse"]["merges"] if one["what"].startswith("local update clears"))
    local, edit = sse_golden(row["local"]), Edit(at("2005-05-26T09:43:33Z"), "REO1750")

    expected = sse_golden(row["result"])

    assert SSE.update(local, edit, b"resolved") == expected
    assert SSE.resolve(local, edit, local.conflicts, b"resolved") == expected


def test_decision_on_what_is_no_conflict_is_refused():
    with pytest.raises(FeedError, match="no longer has this conflict"):
        SSE.resolve(version(1, "1 09:00 A"), Edit(0, "A"), [version(1, "1 08:00 B")])


def test_last_number_refuses_further_updates():
    """[A-63] [SSE-038] numbers have the bounds of FeedSync's."""
    with pytest.raises(FeedError, match="at its maximum"):
        SSE.update(version(MAX_NUMBER, "1 09:00 A"), Edit(0, "A"))


def test_order_of_items_does_not_matter():
    """[SSE-025] each is compared with its own local state: no two share anything."""
    items = [version(1, "1 09:00 A")._replace(sync_id=name) for name in "abc"]
    local = {one.sync_id: one for one in items[:2]}
    changed = [SSE.update(one, Edit(at("10:00"), "B")) for one in items]

    results = [
        {one.sync_id: merge(SSE, local.get(one.sync_id), one).version for one in order}
        for order in (changed, changed[::-1])
    ]

    assert results[0] == results[1]


def test_mapping_of_records_to_sequences():
    """[SSE-024] the k-th record has the sequence version - k."""
    item = sse_golden(MERGES[0]["incoming"])

    assert [one.sequence for one in item.history] == [
        one["sequence"] for one in GOLDEN["sse"]["mapping_to_feedsync"]["feedsync"]["history"]
    ]

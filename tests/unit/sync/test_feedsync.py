"""FeedSync: merging, local changes, resolution, clean-up."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.sync.feedsync import CLEAN_ABOVE, FEEDSYNC, clean_history, is_subsumed
from smartfeeds.sync.merging import Outcome, merge
from smartfeeds.sync.record import MAX_CONFLICTS, MAX_HISTORY, MAX_NUMBER, Edit, Flag, Version
from support.sync import GOLDEN, at, feedsync_golden, stamp, version

MERGES = [one for one in GOLDEN["feedsync"]["merges"] if one["incoming"] is not None]


def golden(start):
    return next(one for one in GOLDEN["feedsync"]["merges"] if one["what"].startswith(start))


def same(found, expected):
    """Equal but for the order of conflicts, which means nothing [FS-063]."""
    assert found._replace(conflicts=()) == expected._replace(conflicts=())
    assert set(found.conflicts) == set(expected.conflicts)


@pytest.mark.parametrize("row", MERGES, ids=[one["what"] for one in MERGES])
def test_merge_gives_the_golden_result(row):
    """[FS-057 to FS-068] [FS-031] [A-40] [A-43] and in both directions the same."""
    local, incoming, expected = (feedsync_golden(row[name]) for name in ("local", "incoming", "result"))

    same(merge(FEEDSYNC, local, incoming).version, expected)
    if local is not None:
        same(merge(FEEDSYNC, incoming, local).version, expected)


def test_identical_versions_are_no_change():
    """[A-43] [A-59] nothing is stored, told or counted."""
    row = golden("identical")

    assert merge(FEEDSYNC, feedsync_golden(row["local"]), feedsync_golden(row["incoming"])).outcome is Outcome.UNCHANGED


def test_new_item_comes_with_its_conflicts_and_as_a_tombstone():
    """[FS-057] as it is."""
    item = version(2, "2 10:00 A", deleted=Flag.TRUE, conflicts=(version(2, "2 09:00 B"),))

    merged = merge(FEEDSYNC, None, item)

    assert (merged.version, merged.outcome) == (item, Outcome.ADDED)


def test_new_conflict_is_a_change_though_the_winner_stays():
    """[A-157] [A-59] the item changed."""
    winner, loser = version(2, "2 10:00 A", data="w"), version(2, "2 09:00 B", data="l")

    merged = merge(FEEDSYNC, winner, loser)

    assert merged.outcome is Outcome.CONFLICT
    assert merged.version._replace(conflicts=()) == winner


def test_order_of_conflicts_is_no_change():
    """[FS-063] a list in another order is the same list."""
    one, two = version(2, "2 09:00 B"), version(2, "2 08:00 C")
    here = version(2, "2 10:00 A", conflicts=(two, one))

    assert merge(FEEDSYNC, here, here._replace(conflicts=(one, two))).outcome is Outcome.UNCHANGED


def test_versions_of_different_items_do_not_merge():
    with pytest.raises(FeedError):
        merge(FEEDSYNC, version(1, "1 09:00 A"), version(1, "1 09:00 A")._replace(sync_id="i2"))


def test_winner_is_picked_by_code_points():
    """[FS-008] no culture, no UTF-16: U+10000 is above U+FFFD, small letters above capitals; never by length [A-64]."""
    for higher, lower in (("alpha", "Zed"), ("\U00010000", "\ufffd"), ("b", "aaaaaa"), ("bb", "ba")):
        pair = [Version("i1", 2, (stamp("2 10:00 X"),)) for _ in range(2)]
        pair = [one._replace(history=(one.top._replace(by=by),)) for one, by in zip(pair, (higher, lower), strict=True)]
        for local, incoming in (pair, pair[::-1]):
            assert merge(FEEDSYNC, local, incoming).version.top.by == higher


class TestOldDefects:
    """The four known defects of an old implementation (mesh4x) [A-64]."""

    def test_tie_is_broken_by_order_not_by_length(self):
        """[A-64] [FS-067] a longer `by` is not a greater one."""
        short, long = version(2, "2 10:00 Z"), version(2, "2 10:00 AAAA")

        assert merge(FEEDSYNC, long, short).version.top.by == "Z"

    def test_endpoints_of_equal_length_have_a_winner_and_a_conflict(self):
        """[A-64] [FS-062] there it was neither: the incoming conflict was dropped without a word."""
        merged = merge(FEEDSYNC, version(2, "2 10:00 AAA"), version(2, "2 10:00 BBB")).version

        assert merged.top.by == "BBB"
        assert [one.top.by for one in merged.conflicts] == ["AAA"]

    def test_resolution_goes_on_after_the_first_subsumed_record(self):
        """[A-64] [A-42] [FS-072] the rest of the loser's history is merged in all the same."""
        loser = version(4, "4 12:00 B", "3 11:00 C", "2 10:00 A")
        item = version(4, "4 12:30 D", "2 10:00 A", conflicts=(loser,))

        resolved = FEEDSYNC.resolve(item, Edit(at("13:00"), "D"), [loser])

        assert [(one.sequence, one.by) for one in resolved.history] == [
            (5, "D"),
            (4, "B"),
            (3, "C"),
            (4, "D"),
            (2, "A"),
        ]

    def test_clean_up_keeps_what_subsumes_others(self):
        """[A-64] [FS-054] not the last record alone, or every older version would become a conflict."""
        history = clean_history(version(4, "4 12:00 A", "3 11:00 B", "2 10:00 A", "1 09:00 C").history)

        assert [(one.sequence, one.by) for one in history] == [(4, "A"), (3, "B"), (1, "C")]
        cleaned = Version("i1", 4, history)
        assert merge(FEEDSYNC, cleaned, version(3, "3 11:00 B", "2 10:00 A")).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("record", "other", "subsumed"),
    [
        ("3 10:00 A", "3 11:00 A", True),
        ("3 10:00 A", "4 09:00 A", True),
        ("3 10:00 A", "2 10:00 A", False),
        ("3 10:00 A", "3 10:00 B", False),
        ("3 10:00 A", "3 10:00 -", False),
        ("3 10:00 -", "3 10:00 -", True),
        ("3 10:00 -", "4 10:00 -", False),
        ("3 10:00 -", "3 10:01 -", False),
        ("3 10:00 -", "3 10:00 A", False),
    ],
)
def test_record_is_subsumed(record, other, subsumed):
    """[FS-065] [FS-066] by an equal or greater sequence of the same endpoint; without endpoint by the same alone."""
    assert is_subsumed(stamp(record), [stamp(other)]) is subsumed
    here, there = version(3, record), version(9, "9 23:00 Q", other)
    assert (len(merge(FEEDSYNC, here, there).version.conflicts) == 0) is subsumed


def test_twins_are_settled_the_same_way_at_both_ends():
    """[A-43] [FS-068] a restored backup: the same record over other content; the greater wins, and both keep it."""
    one, two = version(3, "3 11:00 A", "2 10:00 B", data="aaa"), version(3, "3 11:00 A", "2 10:00 B", data="bbb")

    assert merge(FEEDSYNC, one, two).version == merge(FEEDSYNC, two, one).version == two
    assert merge(FEEDSYNC, two, one).outcome is Outcome.UNCHANGED


def test_versions_that_tie_in_every_key_have_one_winner():
    """[A-43] [FS-068] Their histories decide, whichever is local."""
    one, other = version(2, "2 10:00 -", data="one"), version(2, "1 10:00 -", data="other")

    assert one.key == other.key
    for pair in [(one, other), (other, one)]:
        assert merge(FEEDSYNC, *pair).version == one._replace(conflicts=(other,))


def test_made_up_histories_lose_no_item():
    """[FS-068] three versions that claim to have seen each other in a circle: one of them stays."""
    ring = [
        version(3, "3 10:00 A", "3 10:00 B"),
        version(3, "3 10:00 B", "3 10:00 C"),
        version(3, "3 10:00 C", "3 10:00 A"),
    ]
    both = merge(FEEDSYNC, ring[0], ring[1]._replace(conflicts=(ring[2],)))

    assert both.version.top.by in "ABC"


def test_differing_noconflicts_is_told_and_the_winner_s_counts():
    """[A-44] [FS-061] it must never differ."""
    winner = version(2, "2 11:00 A", noconflicts=Flag.TRUE)

    merged = merge(FEEDSYNC, winner, version(2, "2 10:00 B"))

    assert merged.version == winner
    assert "noconflicts" in merged.notes[0]


def test_more_conflicts_than_the_bound_leave_the_item_as_it_was():
    """[A-55] [FS-007] refused with the reason."""
    rivals = tuple(version(2, f"2 10:00 R{n:03d}") for n in range(MAX_CONFLICTS))
    here = version(2, "2 12:00 Z", conflicts=rivals)

    with pytest.raises(FeedError, match=f"the limit is {MAX_CONFLICTS}") as refused:
        merge(FEEDSYNC, here, version(2, "2 11:00 more"))

    assert refused.value.condition is Condition.POLICY_VIOLATION


def test_created_item():
    """[FS-041] [FS-043] [FS-044] one record with sequence 1, time and endpoint; content as given."""
    item = FEEDSYNC.create("item_1", b"<entry/>", Edit(at("09:43"), "REO1750"))

    assert (item.counter, item.payload, item.history) == (1, b"<entry/>", (stamp("1 09:43 REO1750"),))


def test_item_may_be_created_as_a_tombstone_and_without_conflicts():
    """[FS-042] both are said at birth."""
    item = FEEDSYNC.create("item_1", b"", Edit(at("09:43")), deleted=True, noconflicts=True)

    assert item.deleted.on and item.noconflicts.on


def test_id_that_is_none_is_refused_when_made():
    """[FS-028] [A-51] the id has to be encoded by who makes it."""
    with pytest.raises(FeedError, match="Namespace Specific String"):
        FEEDSYNC.create("a b", b"", Edit(0, "A"))


def test_change_needs_a_time_or_an_endpoint():
    """[FS-037] [FS-004] [FS-038] and an endpoint has to be one; times are whole seconds [A-152]."""
    with pytest.raises(FeedError, match="a time, an endpoint, or both"):
        Edit()
    with pytest.raises(FeedError, match="Namespace Specific String"):
        Edit(0, "John Smith")
    assert Edit(1_999_999, "A").when_us == 1_000_000


def test_update_example_of_the_document():
    """[FS-046] [FS-047] [FS-048] [A-60] the chain of section 3.2, with and without endpoints."""
    item = FEEDSYNC.create("i1", b"1", Edit(at("09:43"), "REO1750"))
    item = FEEDSYNC.update(item, Edit(at("10:43"), "REO1750"), b"2")
    item = FEEDSYNC.update(item, Edit(at("11:43"), "JEO2000"), b"3")
    item = FEEDSYNC.update(item, Edit(at("12:43")))

    assert item == version(4, "4 12:43 -", "3 11:43 JEO2000", "2 10:43 REO1750", "1 09:43 REO1750", data="3")


def test_update_by_one_whose_sequence_is_ahead():
    """[FS-049] [FS-050] one more than its own highest in this item."""
    row = golden("local update by A")

    found = FEEDSYNC.update(feedsync_golden(row["local"]), Edit(at("11:43"), "A"), b"y")

    assert found == feedsync_golden(row["result"])


def test_update_merges_the_endpoint_s_own_conflict():
    """[FS-051] it has seen what it made itself."""
    row = golden("update by an endpoint")

    found = FEEDSYNC.update(feedsync_golden(row["local"]), Edit(at("13:43"), "JEO2000"), b"again")

    assert found == feedsync_golden(row["result"])


def test_update_keeps_the_conflicts_of_others():
    """[FS-051] only deciding on them settles them."""
    item = version(2, "2 10:00 A", conflicts=(version(2, "2 09:00 B"),))

    assert FEEDSYNC.update(item, Edit(at("11:00"), "A")).conflicts == item.conflicts
    assert FEEDSYNC.update(item, Edit(at("11:00"))).conflicts == item.conflicts


def test_update_counts_above_the_endpoint_s_records_in_conflicts():
    """[FS-049] Else a conflict of somebody who goes on from a later edit of ours would subsume the new version."""
    conflict = version(4, "4 09:00 B", "12 08:00 A")
    item = version(5, "5 10:00 C", "3 07:00 A", conflicts=(conflict,))

    updated = FEEDSYNC.update(item, Edit(0, "A"), b"new")

    assert updated.top.sequence == 13
    assert merge(FEEDSYNC, conflict, updated).version == updated


def test_edit_under_a_shared_name_takes_the_first_branch_without_a_conflict():
    """[FS-049] [FS-064] A record of the same endpoint would subsume the conflict at the next merge."""
    lost = tuple(version(2, f"2 09:0{n} {by}") for n, by in enumerate(["A", "A%2F@2", "A%2F@4", "B"]))
    item = version(5, "5 10:00 C", "1 07:00 A", conflicts=lost)
    shared = Edit(at("11:00"), "A", shared=True)

    updated = FEEDSYNC.update(item, shared)
    decided = FEEDSYNC.resolve(item, shared, lost[1:2])

    assert updated.top == stamp("6 11:00 A%2F@3") and updated.conflicts == lost
    assert decided.top == stamp("6 11:00 A%2F@2") and decided.conflicts == (lost[0], *lost[2:])
    assert FEEDSYNC.resolve(item, shared, lost).top == stamp("6 11:00 A")
    for one in (updated, decided):
        assert set(merge(FEEDSYNC, item, one).version.conflicts) == set(one.conflicts)
    assert FEEDSYNC.update(item, Edit(at("11:00"), shared=True)).top == stamp("6 11:00 -")


def test_delete_edit_and_undelete():
    """[FS-052] [FS-053] [A-49] [A-50] [FS-055] a tombstone keeps its history, and stays one until it is made live."""
    item = FEEDSYNC.create("i1", b"text", Edit(at("09:43"), "A"))
    gone = FEEDSYNC.update(item, Edit(at("10:43"), "A"), b"", deleted=True)
    edited = FEEDSYNC.update(gone, Edit(at("11:43"), "A"), b"x")
    back = FEEDSYNC.update(edited, Edit(at("12:43"), "A"), b"y", deleted=False)

    assert [one.deleted for one in (gone, edited, back)] == [Flag.TRUE, Flag.TRUE, Flag.FALSE]
    assert [one.counter for one in (gone, edited, back)] == [2, 3, 4]
    assert len(back.history) == 4


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (version(MAX_NUMBER, "1 09:00 A"), "counter is at its maximum"),
        (version(3, f"{MAX_NUMBER} 09:00 A"), "endpoint A has no sequence number left"),
    ],
)
def test_last_number_refuses_further_updates(item, reason):
    """[A-63] [FS-029] [FS-046] and the item stays."""
    with pytest.raises(FeedError, match=reason):
        FEEDSYNC.update(item, Edit(0, "A"))


def test_noconflicts_never_changes():
    """[FS-032] it is carried as it came, and an attempt is an error."""
    item = FEEDSYNC.create("i1", b"", Edit(0, "A"), noconflicts=True)

    assert FEEDSYNC.update(item, Edit(0, "A"), noconflicts=True).noconflicts is Flag.TRUE
    assert FEEDSYNC.update(item._replace(noconflicts=Flag.FALSE), Edit(0, "A")).noconflicts is Flag.FALSE
    with pytest.raises(FeedError, match="noconflicts"):
        FEEDSYNC.update(item, Edit(0, "A"), noconflicts=False)


def test_resolution_of_the_document():
    """[FS-070] [FS-071] [FS-072] [A-42] history order 5, 4, 4, 3, 2, 1; the loser raises no conflict again."""
    row = golden("resolution of the conflict")
    winner = feedsync_golden(golden("independent updates")["result"])
    loser = winner.conflicts[0]

    found = FEEDSYNC.resolve(winner, Edit(at("12:53"), "GPM7383"), [loser])

    same(found, feedsync_golden(row["result"]))
    assert found.conflicts == ()  # [FS-073]
    assert merge(FEEDSYNC, found, loser).outcome is Outcome.UNCHANGED
    assert merge(FEEDSYNC, found, winner).outcome is Outcome.UNCHANGED


def test_resolution_may_be_selective():
    """[FS-069] what nobody decided on stays; programmes decide nothing by themselves [FS-074]."""
    one, two = version(2, "2 09:00 B"), version(2, "2 08:00 C")
    item = version(2, "2 10:00 A", conflicts=(one, two))

    found = FEEDSYNC.resolve(item, Edit(at("11:00"), "D"), [two], b"combined")

    assert (found.conflicts, found.payload, found.counter) == ((one,), b"combined", 3)


def test_decision_on_what_is_no_conflict_is_refused():
    """[FS-070] somebody else has decided meanwhile."""
    with pytest.raises(FeedError, match="no longer has this conflict"):
        FEEDSYNC.resolve(version(2, "2 10:00 A"), Edit(0, "A"), [version(2, "2 09:00 B")])


def long_version():
    history = tuple(stamp(f"{n} 10:00 E{n % 50}") for n in range(5_000, 0, -1))
    return Version("i1", 5_000, (*history, stamp("1 09:00 -")))


def test_long_history_is_cleaned_in_local_changes_only():
    """[FS-054] [A-58] 5,000 records of 50 endpoints become 50, and those without endpoint stay."""
    item = long_version()

    assert merge(FEEDSYNC, None, item).version.history == item.history
    found = FEEDSYNC.update(item, Edit(at("11:00"), "E7"))

    assert len(found.history) == 51
    assert found.top == stamp("5001 11:00 E7")
    assert found.history[-1] == stamp("1 09:00 -")


def test_long_history_is_cleaned_in_a_resolution():
    """[FS-075] [A-58] The records of the loser, too: of each endpoint the newest record stays."""
    loser = version(5_000, *(f"{n} 09:30 E{n % 50}" for n in range(5_000, 4_000, -1)), data="l")
    item = long_version()._replace(conflicts=(loser,))

    found = FEEDSYNC.resolve(item, Edit(at("11:00"), "D"), [loser])

    assert found.top == stamp("5001 11:00 D")
    names = [record.by for record in found.history]
    assert len(set(names)) == 52  # 50 endpoints, the one that resolves, and the record without one
    assert len(found.history) <= 2 * 50 + 2
    assert found.history[-1] == stamp("1 09:00 -")
    assert merge(FEEDSYNC, found, loser).outcome is Outcome.UNCHANGED


def test_short_history_stays_whole():
    """[FS-054] [A-50] clean-up is for long ones."""
    item = version(3, *(f"{n} 10:00 A" for n in range(CLEAN_ABOVE - 1, 0, -1)))

    assert len(FEEDSYNC.update(item, Edit(0, "A")).history) == CLEAN_ABOVE


def test_history_that_cannot_be_cleaned_is_bounded():
    """[A-55] records without an endpoint are never dropped, so there is an end to them."""
    item = version(3, *(f"{n} 10:00 -" for n in range(MAX_HISTORY, 0, -1)))

    with pytest.raises(FeedError, match="history"):
        FEEDSYNC.update(item, Edit(0))


def test_clocks_that_are_far_off_break_nothing():
    """[FS-035] [FS-036] A time decides nothing but a tie, and an endpoint is not parsed as a name."""
    old, new = (
        version(1, "1 2099-01-01T00:00:00Z A"),
        version(2, "2 1971-01-01T00:00:00Z B", "1 2099-01-01T00:00:00Z A"),
    )
    slow, fast = version(3, "3 1971-01-01T00:00:00Z C"), version(2, "2 2099-01-01T00:00:00Z D")
    tie = version(3, "3 2099-01-01T00:00:00Z //:@")

    for one, other in [(old, new), (new, old)]:
        assert merge(FEEDSYNC, one, other).version == new, "what has seen the other needs no time"
    for one, other in [(slow, fast), (fast, slow)]:
        assert merge(FEEDSYNC, one, other).version == slow._replace(conflicts=(fast,)), "no time beats a counter"
    for one, other in [(slow, tie), (tie, slow)]:
        assert merge(FEEDSYNC, one, other).version == tie._replace(conflicts=(slow,))

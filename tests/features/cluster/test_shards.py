"""The division of shards between processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.delivery.shards import ALL_SHARDS, SHARDS
from smartfeeds.features.cluster.shards import FALSE_DROP, Members, pings_for, plan_shards, shards_text


@pytest.mark.parametrize(
    ("members", "is_linked", "share"),
    [
        (Members(1, 0), True, 64),
        (Members(3, 0), True, 22),
        (Members(2, 5), True, 32),
        (Members(2, 5), False, 0),
        (Members(0, 4), False, 16),
    ],
)
def test_share_goes_to_processes_with_a_link(members: Members, is_linked: bool, share: int) -> None:
    """[TOP-040] [TOP-024] Without any link, HTTP processes do the work that needs none."""
    assert members.share(is_linked=is_linked) == share


def test_member_moves_when_its_link_comes_or_goes() -> None:
    assert Members(1, 2).moved(is_linked=True) == Members(2, 1)
    assert Members(1, 2).moved(is_linked=False) == Members(0, 3)


def test_plan_releases_what_is_above_the_share_and_takes_what_is_free() -> None:
    """[TOP-040]"""
    plan = plan_shards(owned=ALL_SHARDS, held=ALL_SHARDS, share=32, start=0)
    assert (plan.release, plan.take) == (frozenset(range(32, 64)), ())
    plan = plan_shards(owned=[0, 1], held=range(10), share=4, start=60)
    assert (plan.release, plan.take) == (frozenset(), (60, 61))


@given(st.lists(st.integers(0, SHARDS - 1), min_size=1, max_size=7, unique=True), st.data())
def test_shares_become_equal_and_cover_everything(starts: list[int], data: st.DataObject) -> None:
    """[TOP-040] [TOP-045] Whatever the order of the looks of the processes, and whoever ends in between."""
    owners: dict[int, set[int]] = {start: set() for start in starts}
    for _ in range(3):
        if len(owners) > 1 and data.draw(st.booleans()):
            del owners[data.draw(st.sampled_from(sorted(owners)))]
        for _ in range(2):
            for start in data.draw(st.permutations(sorted(owners))):
                held = set().union(*owners.values())
                plan = plan_shards(owners[start], held, Members(len(owners), 0).share(is_linked=True), start)
                owners[start] -= plan.release
                owners[start] |= set(plan.take)
    counts = [len(shards) for shards in owners.values()]
    assert sum(counts) == SHARDS and set().union(*owners.values()) == ALL_SHARDS
    assert max(counts) <= -(-SHARDS // len(owners))


@pytest.mark.parametrize(("processes", "pings"), [(0, 1), (1, 1), (2, 20), (4, 49)])
def test_burst_of_pings_finds_a_sound_link(processes: int, pings: int) -> None:
    """[TOP-032] [TOP-011] The server sends each ping to a random link."""
    assert pings_for(processes) == pings
    assert processes < 2 or (1 - 1 / processes) ** pings <= FALSE_DROP


def test_shards_are_written_as_ranges() -> None:
    assert shards_text([7, 0, 1, 2, 63]) == "0-2, 7, 63"

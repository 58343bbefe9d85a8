"""Places in outlines: merged orders and trees, cycles."""

from itertools import permutations

import pytest

from smartfeeds.sync.trees import WinnerSide, break_cycles, merge_trees, parents_of, walk
from support.sync import GOLDEN


def won(**sides):
    return lambda one: WinnerSide[sides.get(one, "BOTH").upper()]


def swapped(choice):
    other = {
        WinnerSide.LOCAL: WinnerSide.INCOMING,
        WinnerSide.INCOMING: WinnerSide.LOCAL,
        WinnerSide.BOTH: WinnerSide.BOTH,
    }
    return lambda one: other[choice(one)]


def merged(local, incoming, choice):
    """The merged tree, which is the same from either side."""
    tree, repaired = merge_trees(local, incoming, choice)
    assert merge_trees(incoming, local, swapped(choice)) == (tree, repaired)
    return tree, repaired


def order(local, incoming, **sides):
    return "".join(merged({"": list(local)}, {"": list(incoming)}, won(**sides))[0][""])


@pytest.mark.parametrize(
    ("local", "incoming", "sides", "expected"),
    [
        ("xyz", "xyz", {}, "xyz"),
        ("xb", "xa", {}, "xab"),
        ("xby", "xay", {}, "xaby"),
        ("bx", "ax", {}, "abx"),
        ("xbcy", "xay", {}, "xabcy"),
        ("xyz", "xzy", {"y": "incoming"}, "xzy"),
        ("xyz", "xzy", {"y": "local"}, "xyz"),
        ("pquv", "pquv", {"q": "incoming", "u": "local"}, "pquv"),
        ("puav", "puv", {"v": "incoming", "u": "incoming"}, "puav"),
        ("abc", "", {}, "abc"),
        ("", "cab", {}, "cab"),
        ("xab", "xba", {}, "xab"),
    ],
)
def test_order_of_siblings(local, incoming, sides, expected):
    """[SSE-027] [SSE-029] [A-79] unmoved items keep their order; several in one place stand by ascending id."""
    assert order(local, incoming, **sides) == expected


def test_three_additions_in_one_place_converge():
    """[SSE-029] whoever merges first, exchange goes on until all have the same order."""
    for a, b, c in permutations(("xa", "xb", "xc")):
        ends = [a, b, c]
        for _ in range(3):
            for one, two in ((0, 1), (1, 2), (2, 0)):
                ends[one] = ends[two] = order(ends[one], ends[two])
        assert set(ends) == {"xabc"}


def test_moved_item_goes_where_its_winner_has_it():
    """[SSE-028] the subscriber takes over the new parent."""
    tree, _ = merged({"": ["a", "b"], "a": ["c"]}, {"": ["a", "b"], "b": ["c"]}, won(c="incoming"))

    assert parents_of(tree)["c"] == "b"


def test_winner_stays_with_its_parent_wherever_that_goes():
    """[SSE-030] the parent was moved there, the child was edited here."""
    local = {"": ["p", "q"], "p": ["child"]}
    incoming = {"": ["q"], "q": ["p"], "p": ["child"]}

    tree, _ = merged(local, incoming, won(child="local", p="incoming"))

    assert list(walk(tree)) == [(0, "q"), (1, "p"), (2, "child")]


def test_item_whose_parent_is_nowhere_goes_to_the_root():
    """[SSE-030] a partial feed may lack the parent."""
    assert merged({"": ["a"]}, {"gone": ["b"]}, won())[0] == {"": ["a", "b"]}


def test_cycle_of_the_golden_row():
    """[SSE-043] the lowest id of the circle is moved to the root."""
    cycle = GOLDEN["sse"]["cycle"]
    parents = dict(cycle["parents_after_merge"])

    assert break_cycles(parents) == cycle["conflict"]
    assert parents == {one: "" if parent == "(root)" else parent for one, parent in cycle["result"].items()}


def test_cycle_made_by_a_merge_is_cut_and_stands_at_the_end():
    """[SSE-043] [A-80] a moved under b here, b under a there."""
    local, incoming = {"": ["b", "z"], "b": ["a"]}, {"": ["a", "z"], "a": ["b"]}

    tree, repaired = merged(local, incoming, won(a="local", b="incoming"))

    assert repaired == ["a"]
    assert tree == {"": ["z", "a"], "a": ["b"]}


def test_long_circles_are_cut_in_good_time():
    """[SSE-043] a circle of 100,000 items and as many items that hang on it: one of them is moved."""
    count = 100_000
    parents = {f"c{n:06d}": f"c{(n + 1) % count:06d}" for n in range(count)}
    parents |= {f"a{n:06d}": f"a{n + 1:06d}" for n in range(count - 1)} | {f"a{count - 1:06d}": "c000007"}

    assert break_cycles(parents) == ["c000000"]


def test_same_version_in_two_places_is_settled_alike():
    """[A-80] one side has repaired a cycle, the other not yet: the root, at both."""
    tree, _ = merged({"": ["a", "b"]}, {"": ["b"], "b": ["a"]}, won())

    assert tree == {"": ["a", "b"]}


class Counted(str):
    """An id that counts how often ids are compared or hashed."""

    __slots__ = ()
    work = 0

    def __eq__(self, other):
        Counted.work += 1
        return str.__eq__(self, other)

    def __lt__(self, other):
        Counted.work += 1
        return str.__lt__(self, other)

    def __hash__(self):
        Counted.work += 1
        return str.__hash__(self)


@pytest.mark.parametrize("side", [WinnerSide.INCOMING, WinnerSide.BOTH])
def test_large_lists_in_another_order_take_no_quadratic_time(side):
    """[SSE-029] Twice as many siblings, one side reversed, cost about twice the comparisons."""
    costs = []
    for count in (1_000, 2_000):
        ids = [Counted(f"i{n:06d}") for n in range(count)]
        Counted.work = 0
        tree, _ = merge_trees({"": ids}, {"": ids[::-1]}, lambda _one: side)
        costs.append(Counted.work)
        assert sorted(tree[""]) == ids

    assert costs[1] < 2.5 * costs[0]

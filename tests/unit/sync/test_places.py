"""The place of an item in an outline: stored with its version, and a tree made of the places of all items."""

import pytest

from smartfeeds.formats.opml import MAX_LEVELS
from smartfeeds.sync.places import Place, place_of, places_in, tree_of, with_place
from smartfeeds.sync.record import ForeignMarkup, HistoryRecord, Version
from smartfeeds.sync.trees import walk

VERSION = Version("a", 1, (HistoryRecord(1, None, "me"),), extra=ForeignMarkup((("{urn:x}y", "z"),)))


def shape(tree):
    return ["-" * level + one for level, one in walk(tree)]


def test_place_belongs_to_the_version():
    """[FS-012] [SSE-028] It is an attribute of sx:sync like those of other programs, which stay."""
    assert place_of(VERSION) is None
    placed = with_place(with_place(VERSION, Place("p", "q")), Place("p", "r"))
    assert place_of(placed) == Place("p", "r")
    assert ("{urn:x}y", "z") in placed.extra.attributes and len(placed.extra.attributes) == 3
    assert with_place(placed, None) == VERSION


@pytest.mark.parametrize(
    "tree", [{}, {"": ["a"]}, {"": ["c", "a", "b"]}, {"": ["b", "a"], "b": ["d", "c"], "c": ["f", "e"]}]
)
def test_tree_is_made_of_its_places_again(tree):
    """[SSE-027] In the order in which an outline is read."""
    places = places_in(tree)
    assert tree_of((one, places[one]) for _, one in walk(tree)) == tree


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([("a", None), ("b", None)], ["a", "b"], id="no places: the order of creation"),
        pytest.param([("a", None), ("b", Place())], ["b", "a"], id="first place"),
        pytest.param(
            [("a", Place()), ("b", Place("", "a")), ("c", Place("", "a"))], ["a", "c", "b"], id="later one first"
        ),
        pytest.param(
            [("a", Place("", "gone")), ("b", Place("gone"))], ["a", "b"], id="sibling and parent that are gone"
        ),
        pytest.param([("b", Place("a")), ("a", Place())], ["a", "-b"], id="child before its parent"),
        pytest.param([("a", Place("b")), ("b", Place("a"))], ["a", "-b"], id="cycle: the lowest id goes to the root"),
    ],
)
def test_items_go_behind_the_sibling_that_they_followed(places, expected):
    """[SSE-028] [SSE-030] [SSE-043] [A-79] [A-80]"""
    assert shape(tree_of(places)) == expected


def test_tree_is_never_too_deep_to_be_written():
    """Peers may move items below each other at will."""
    places = [("0", Place())] + [(str(number), Place(str(number - 1))) for number in range(1, 3 * MAX_LEVELS)]
    tree = tree_of(places)
    levels = [level for level, _ in walk(tree)]
    assert len(levels) == len(places) and max(levels) == MAX_LEVELS - 1


def test_large_flat_outline_takes_no_quadratic_time():
    """[SSE-029] Places are a linked list: 20,000 items at the head of the root."""
    count = 20_000
    tree = tree_of((str(number), Place()) for number in range(count))
    assert tree[""] == [str(number) for number in reversed(range(count))]

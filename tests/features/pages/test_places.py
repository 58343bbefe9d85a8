"""The texts of places in the river and in the list of feeds by last change."""

import pytest

from smartfeeds.core.node_place import NodePlace, parse_node_place
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.pages.river import EntryPlace, parse_entry_place

NAMES = ["a", "a\nb", "a\r\nb", "a_b", "_", "1_2", "feed?order=created", "\N{SNOWMAN}", "x" * 1_023]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("time_us", [-1, 0, 1_304_942_400_500_000])
def test_places_are_read_as_they_are_written(name: str, time_us: int) -> None:
    assert parse_node_place(str(NodePlace(time_us, name))) == NodePlace(time_us, name)
    assert parse_entry_place(str(EntryPlace(time_us, name, 12))) == EntryPlace(time_us, name, 12)


@pytest.mark.parametrize("text", ["", "_", "1", "1_", "x_a", "1.0000000_a", f"1_{'x' * 2_000}"])
def test_other_texts_are_rejected(text: str) -> None:
    for parse in (parse_node_place, parse_entry_place):
        with pytest.raises(FeedError) as refused:
            parse(text)
        assert refused.value.condition is Condition.BAD_REQUEST


@pytest.mark.parametrize(
    "text", ["1_a", "1_2", "1_2_", "1_-1_a", "1_\N{SUPERSCRIPT TWO}_a", f"1_{'9' * 10}_a", "1_ 1_a"]
)
def test_place_of_an_entry_needs_a_number(text: str) -> None:
    with pytest.raises(FeedError, match="is no place in this list"):
        parse_entry_place(text)

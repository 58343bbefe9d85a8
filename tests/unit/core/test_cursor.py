"""T+O+C cursors (Smart Feeds, Cursors)."""

from typing import Any

import pytest

from smartfeeds.core.position import (
    Cursor,
    canonical_cursor,
    checksum,
    format_cursor,
    is_canonical,
    matches,
    parse_cursor,
)
from smartfeeds.core.times import format_t, parse_t
from smartfeeds.core.view import Order
from support.golden import GOLDEN, group_of

EXAMPLES = GOLDEN["toc_cursors"]["examples"]
T_US = 1_304_942_400_000_000


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["what"])
def test_format_cursor_golden_row_gives_its_text(example: dict[str, Any]) -> None:
    """[SF-103] [SF-104] [SF-105] [SF-106] [xep-map 213]"""
    ids = group_of(example)[: example["offset"] + 1]

    assert checksum(ids) == example["crc32_hex"]
    assert format_t(example["t_us"]) == example["t"]
    assert format_cursor(Order.MODIFIED, example["t_us"], ids) == example["cursor"]
    assert format_cursor(Order.CREATED, example["t_us"], ids) == "c" + example["cursor"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["what"])
def test_parse_cursor_golden_row_is_read_back_and_matches_its_group(example: dict[str, Any]) -> None:
    """[SF-108] [xep-map 213] [xep-map 214]"""
    group = group_of(example)
    for prefix, order in (("", Order.MODIFIED), ("c", Order.CREATED)):
        text = prefix + example["cursor"]
        cursor = parse_cursor(text)

        assert cursor == Cursor(order, example["t_us"], example["offset"], example["crc32_hex"])
        assert is_canonical(text)
        assert matches(cursor, group)
        assert matches(cursor, [*group, "later"])
        assert not matches(cursor, ["earlier", *group])


def test_checksum_of_the_published_check_value() -> None:
    """[A-06] [SF-106]"""
    assert checksum(["123456789"]) == "cbf43926"


@pytest.mark.parametrize("row", GOLDEN["toc_malformed"], ids=lambda row: row["cursor"] or "empty")
def test_parse_cursor_golden_malformed_row_is_a_time_or_nothing(row: dict[str, str]) -> None:
    """[SF-029] [xep-map 217] A readable time is kept; without one there is no cursor."""
    cursor = parse_cursor(row["cursor"])

    assert not is_canonical(row["cursor"])
    if row["treat_as"].startswith("error"):
        assert cursor is None
    else:
        t = row["treat_as"].rpartition("time:")[2]
        assert cursor == Cursor(Order.MODIFIED, parse_t(t) or 0)
        assert not matches(cursor, ["a"])


@pytest.mark.parametrize(
    "text",
    [
        "c",
        "cc1_0_e8b7be43",
        "C1_0_e8b7be43",
        "1_0_e8b7be43_",
        "1_0",
        " 1_0_e8b7be43",
        "١_0_e8b7be43",
    ],
)
def test_parse_cursor_nearly_a_cursor_gives_none(text: str) -> None:
    """[xep-map 217]"""
    assert parse_cursor(text) is None
    assert not is_canonical(text)


def test_is_canonical_of_a_zero_with_a_sign_is_false() -> None:
    """[SF-029] It is read as its time."""
    text = "-0_0_b191b173"
    assert not is_canonical(text) and is_canonical("-0.5_0_b191b173")
    assert parse_cursor(text) == Cursor(Order.MODIFIED, 0)


def test_parse_cursor_of_the_created_order_with_an_unknown_checksum_keeps_order_and_time() -> None:
    """[SF-029] [xep-map 218]"""
    assert parse_cursor("c1304942400_x_y") == Cursor(Order.CREATED, T_US)


@pytest.mark.parametrize(("group", "expected"), [(["a"], False), (["a", "b"], True), (["b", "b"], False), ([], False)])
def test_matches_needs_the_offset_and_the_ids_up_to_it(group: list[str], expected: bool) -> None:
    """[SF-108] [xep-map 215]"""
    assert matches(Cursor(Order.MODIFIED, T_US, 1, "28cb39ea"), group) is expected


def test_format_cursor_alphabet_is_safe_for_urls_and_xml() -> None:
    """[xep-map 212]"""
    text = format_cursor(Order.CREATED, -250_000, ['<x>&"', "東京"])

    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_~.-")


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("1304942400.50_0_e8b7be43", "1304942400.5_0_e8b7be43"),
        ("c1304942400.0_0_e8b7be43", "c1304942400_0_e8b7be43"),
        ("1304942400_0_e8b7be43", "1304942400_0_e8b7be43"),
        ("1304942400.50_x_e8b7be43", "1304942400.50_x_e8b7be43"),
        ("1304942400.50", "1304942400.50"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_canonical_cursor_changes_the_time_of_a_cursor_only(text: str, spelling: str) -> None:
    assert canonical_cursor(text) == spelling

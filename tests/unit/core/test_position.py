"""Position specs: the table of what a UID may be, for the bare view and for Smart views."""

import pytest

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.position import (
    MAX_UID_BYTES,
    AtCursor,
    AtItem,
    AtTime,
    Cursor,
    PagePosition,
    cursors_in,
    kinds_of_positions,
    parse_position,
)
from smartfeeds.core.view import BARE, CREATED, SMART, Order, View
from smartfeeds.errors import Condition, FeedError

T_US = 1_304_942_400_000_000
C0 = Cursor(Order.MODIFIED, T_US, 0, "e8b7be43")
C1 = Cursor(Order.MODIFIED, T_US, 1, "28cb39ea")
LATER = Cursor(Order.MODIFIED, T_US + 1_000_000, 0, "98dd4acc")
CREATED_C0 = Cursor(Order.CREATED, T_US, 0, "e8b7be43")
BARE_CREATED = View(order=Order.CREATED)
TEXT0, TEXT1, TEXT_LATER = "1304942400_0_e8b7be43", "1304942400_1_28cb39ea", "1304942401_0_98dd4acc"


def at(cursor: Cursor) -> AtCursor:
    return AtCursor(cursor, cursor)


@pytest.mark.parametrize(
    ("view", "text", "position"),
    [
        (SMART, f"cursor:{TEXT0}", at(C0)),
        (SMART, TEXT0, at(C0)),
        (BARE, TEXT0, at(C0)),
        (CREATED, f"cursor:c{TEXT0}", at(CREATED_C0)),
        (CREATED, f"c{TEXT0}", at(CREATED_C0)),
        (BARE_CREATED, f"cursor:c{TEXT0}", at(CREATED_C0)),
        (SMART, "cursor:1304942400_x_y", at(Cursor(Order.MODIFIED, T_US))),
        (BARE, f"cursor:{TEXT0}~{TEXT_LATER}", AtCursor(C0, LATER)),
        (BARE, f"cursor:{TEXT_LATER}~{TEXT0}", AtCursor(C0, LATER)),
        (BARE, f"cursor:{TEXT1}~{TEXT0}", AtCursor(C0, C1)),
        (BARE, f"{TEXT_LATER}~{TEXT0}", AtCursor(C0, LATER)),
        (CREATED, "id:q", AtItem("q")),
        (CREATED, "id:a:b", AtItem("a:b")),
        (CREATED, "id:cursor:x", AtItem("cursor:x")),
        (BARE, "id:q", AtItem("q")),
        (BARE, "id:urn:uuid:1", AtItem("urn:uuid:1")),
        (BARE, "q", AtItem("q")),
        (BARE, "tag:example.org,2011:/1", AtItem("tag:example.org,2011:/1")),
        (BARE, "1304942400_x_y", AtItem("1304942400_x_y")),
        (BARE, "a~b", AtItem("a~b")),
        (SMART, "time:1304942400", AtTime(T_US)),
        (SMART, "time:2011-05-09T14:00:00+02:00", AtTime(T_US)),
        (BARE, "time:1304942400.0", AtTime(T_US)),
    ],
)
def test_parse_position_reads_what_the_table_allows(view: View, text: str, position: PagePosition) -> None:
    """[SF-025] [SF-088] [SF-090] [xep-map 216] [xep-map 222] [xep-map 223]"""
    assert parse_position(text, view) == position


@pytest.mark.parametrize(
    ("view", "text", "condition"),
    [
        (SMART, f"cursor:c{TEXT0}", Condition.ITEM_NOT_FOUND),
        (CREATED, f"cursor:{TEXT0}", Condition.ITEM_NOT_FOUND),
        (SMART, f"c{TEXT0}", Condition.ITEM_NOT_FOUND),
        (SMART, "cursor:", Condition.ITEM_NOT_FOUND),
        (SMART, "cursor:8f4a1546", Condition.ITEM_NOT_FOUND),
        (SMART, f"cursor:{TEXT0}~{TEXT_LATER}", Condition.ITEM_NOT_FOUND),
        (BARE, f"cursor:{TEXT0}~c{TEXT0}", Condition.ITEM_NOT_FOUND),
        (BARE, f"cursor:{TEXT0}~{TEXT1}~{TEXT_LATER}", Condition.ITEM_NOT_FOUND),
        (BARE, f"cursor:{TEXT0}~", Condition.ITEM_NOT_FOUND),
        (SMART, "id:q", Condition.FEATURE_NOT_IMPLEMENTED),
        (CREATED, "id:", Condition.BAD_REQUEST),
        (BARE, "id:", Condition.BAD_REQUEST),
        (SMART, "time:", Condition.BAD_REQUEST),
        (SMART, "time:yesterday", Condition.BAD_REQUEST),
        (SMART, "42", Condition.BAD_REQUEST),
        (SMART, "bogus:1", Condition.BAD_REQUEST),
        (BARE, "", Condition.BAD_REQUEST),
        (BARE, " \t", Condition.BAD_REQUEST),
        (BARE, "a\x07b", Condition.BAD_REQUEST),
        (BARE, "a" * (MAX_UID_BYTES + 1), Condition.BAD_REQUEST),
        (BARE, "é" * (MAX_UID_BYTES // 2 + 1), Condition.BAD_REQUEST),
    ],
)
def test_parse_position_refuses_what_the_table_refuses(view: View, text: str, condition: Condition) -> None:
    """[SF-052] [xep-map 217] [xep-map 218] [xep-map 219] [xep-map 221]"""
    with pytest.raises(FeedError) as caught:
        parse_position(text, view)

    assert caught.value.condition is condition


@pytest.mark.parametrize("view", [BARE, CREATED])
def test_parse_position_of_the_longest_id_is_read(view: View) -> None:
    item_id = "a" * MAX_ID_BYTES
    assert parse_position(f"id:{item_id}", view) == AtItem(item_id)


@pytest.mark.parametrize(
    ("view", "kinds"),
    [
        (SMART, ("cursor", "time")),
        (BARE, ("cursor", "id", "time")),
        (BARE_CREATED, ("cursor", "id", "time")),
        (CREATED, ("cursor", "id", "time")),
    ],
)
def test_kinds_of_positions_have_no_id_where_items_move(view: View, kinds: tuple[str, ...]) -> None:
    """[SF-025] [SF-031] What disco announces is what `parse_position` reads."""
    assert kinds_of_positions(view) == kinds


@pytest.mark.parametrize(
    ("text", "cursors"),
    [
        (f"cursor:{TEXT0}", (C0,)),
        (f"c{TEXT0}", (CREATED_C0,)),
        (f"{TEXT1}~{TEXT0}", (C1, C0)),
        (f"cursor:{TEXT0}~{TEXT_LATER}", (C0, LATER)),
        (f"{TEXT0}~x", ()),
        ("~".join([TEXT0] * 3), ()),
        (f"cursor:cursor:{TEXT0}", ()),
        ("time:1304942400", ()),
        ("id:a", ()),
        ("", ()),
    ],
)
def test_cursors_in_a_uid_are_read_without_a_view(text: str, cursors: tuple[Cursor, ...]) -> None:
    assert cursors_in(text) == cursors

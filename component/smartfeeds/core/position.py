"""Positions in a view: cursors, ids, times, and the UIDs of stock clients (SF-025 to SF-033; xep-map 210, 216 to 223).

A cursor is a text T+O+C that points to an item and detects when it no longer does (SF-101 to SF-109). T is the ordering
key of the item in the order of the view, O its position among the items with the same key, C the CRC-32 of their ids up
to and including its own. A cursor of the created order starts with `c`, so that it cannot be mistaken for a cursor of
the modified order.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import format_t, parse_t, parse_time
from smartfeeds.core.view import Order, View
from smartfeeds.errors import Condition, FeedError

PREFIX = {Order.MODIFIED: "", Order.CREATED: "c"}
SPAN = "~"
MAX_GROUP = 100_000  # items with one key; if there are more, only the time of a cursor is compared

_CANONICAL = re.compile(
    r"c?(?!-0_)-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{0,5}[1-9])?_(?:0|[1-9][0-9]{0,8})_[0-9a-f]{8}", re.ASCII
)
_CURSOR = "cursor:"
MAX_UID_BYTES = len("id:") + MAX_ID_BYTES
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A cursor as read. If only its time was readable, `checksum` is empty and the cursor means `time:T` (SF-029)."""

    order: Order
    key_us: int
    offset: int = 0
    checksum: str = ""


def checksum(ids: Sequence[str]) -> str:
    """Returns C, the checksum of the ids with one key, from the first up to and including the item itself (SF-106)."""
    return f"{crc32('_'.join(ids).encode()):08x}"


def format_cursor(order: Order, key_us: int, ids: Sequence[str]) -> str:
    """Returns the cursor of the last of `ids`, which are all ids with this key up to that item (SF-103)."""
    return f"{PREFIX[order]}{format_t(key_us)}_{len(ids) - 1}_{checksum(ids)}"


def parse_cursor(text: str) -> Cursor | None:
    """Reads a cursor without its prefix `cursor:`. Returns None if not even its time can be read."""
    order = Order.CREATED if text.startswith("c") else Order.MODIFIED
    parts = text.removeprefix(PREFIX[order]).split("_")
    key_us = parse_t(parts[0]) if len(parts) == 3 else None
    if key_us is None:
        return None
    if not is_canonical(text):
        return Cursor(order, key_us)
    return Cursor(order, key_us, int(parts[1]), parts[2])


def canonical_cursor(text: str) -> str:
    """Returns a cursor in the service's own spelling, without trailing zeros in its time. Other texts stay the same."""
    cursor = parse_cursor(text)
    if cursor is None:
        return text
    _, offset, check = text.split("_")
    spelling = f"{PREFIX[cursor.order]}{format_t(cursor.key_us)}_{offset}_{check}"
    return spelling if is_canonical(spelling) else text


def is_canonical(text: str) -> bool:
    """Returns whether a text is a cursor in the service's own spelling, which is recognised without its prefix."""
    return _CANONICAL.fullmatch(text) is not None


def matches(cursor: Cursor, group_ids: Sequence[str]) -> bool:
    """Returns whether the cursor still points to its item. `group_ids` are the current ids with its key (SF-108)."""
    return (
        bool(cursor.checksum)
        and cursor.offset < len(group_ids)
        and checksum(group_ids[: cursor.offset + 1]) == cursor.checksum
    )


@dataclass(frozen=True, slots=True)
class AtCursor:
    """A cursor, exclusive. A span has two cursors, at its earlier and its later edge; otherwise both are the same."""

    earlier: Cursor
    later: Cursor


@dataclass(frozen=True, slots=True)
class AtItem:
    """The item with this id, exclusive."""

    item_id: str


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time, inclusive on both sides (SF-032)."""

    key_us: int


PagePosition = AtCursor | AtItem | AtTime


def kinds_of_positions(view: View) -> tuple[str, ...]:
    """Returns the kinds of positions in a view.

    An id is a position only where items do not move, and in the bare view, because stock clients use ids there.
    """
    moving = view.smart and view.order is Order.MODIFIED
    return ("cursor", "time") if moving else ("cursor", "id", "time")


def parse_position(text: str, view: View) -> PagePosition:
    """Reads a UID as a position in this view.

    Raises FeedError: BAD_REQUEST, ITEM_NOT_FOUND for a cursor of another order, FEATURE_NOT_IMPLEMENTED for an id where
    items move.
    """
    if not text.strip() or len(text.encode("utf-8", "surrogatepass")) > MAX_UID_BYTES or _UNPRINTABLE.search(text):
        raise FeedError(Condition.BAD_REQUEST, f"a position must be 1 to {MAX_UID_BYTES} bytes of printable text")
    kind, colon, value = text.partition(":")
    if colon and kind in _READERS:
        return _READERS[kind](value, view)
    if is_canonical(text) or (SPAN in text and all(is_canonical(part) for part in text.split(SPAN))):
        return _read_cursor(text, view)
    if view.smart:
        raise FeedError(Condition.BAD_REQUEST, "a position must be written type:value, with type cursor, id or time")
    return AtItem(text)


def cursors_in(text: str) -> tuple[Cursor, ...]:
    """Returns the cursors of a UID in any view: one, two of a span, or none if the UID is another position."""
    return _cursors(text.removeprefix(_CURSOR))


def _cursors(value: str) -> tuple[Cursor, ...]:
    if SPAN not in value:
        cursor = parse_cursor(value)
        return () if cursor is None else (cursor,)
    parts = value.split(SPAN, maxsplit=2)
    cursors = tuple(cursor for cursor in map(parse_cursor, parts) if cursor is not None)
    return cursors if len(cursors) == len(parts) <= 2 else ()


def _read_cursor(value: str, view: View) -> PagePosition:
    cursors = _cursors(value)
    if not cursors or cursors[0].order is not view.order or cursors[-1].order is not view.order:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this cursor is not of this view")
    if len(cursors) == 1:
        return AtCursor(cursors[0], cursors[0])
    if view.smart:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this cursor is not of this view")
    edges = sorted(cursors, key=lambda cursor: (cursor.key_us, cursor.offset))
    return AtCursor(edges[0], edges[-1])


def _read_id(value: str, view: View) -> PagePosition:
    if "id" not in kinds_of_positions(view):
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, "items move in this order: use a cursor")
    if not value:
        raise FeedError(Condition.BAD_REQUEST, "id: needs an item id")
    return AtItem(value)


def _read_time(value: str, _view: View) -> PagePosition:
    key_us = parse_time(value)
    if key_us is None:
        raise FeedError(Condition.BAD_REQUEST, "time: takes a date-time with a zone, or Unix seconds")
    return AtTime(key_us)


_READERS = {"cursor": _read_cursor, "id": _read_id, "time": _read_time}

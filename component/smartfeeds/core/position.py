"""Position specs: `cursor:`, `id:`, `time:`, and whatever else a UID may hold.

Smart Feeds, Position Specs (SF-025 to SF-033); xep-map 3.2 (210, 216 to 223).
"""

import re
from dataclasses import dataclass

from smartfeeds.core.cursor import SPAN, Cursor, is_canonical, parse_cursor
from smartfeeds.core.times import parse_time
from smartfeeds.core.view import Order, View
from smartfeeds.errors import Condition, FeedError

MAX_UID_BYTES = 1024
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class AtCursor:
    """Exclusive. A span (xep-map 3.5) has two cursors, from its earlier to its later edge; else both are the same."""

    earlier: Cursor
    later: Cursor


@dataclass(frozen=True, slots=True)
class AtItem:
    """Exclusive: the item with this id."""

    item_id: str


@dataclass(frozen=True, slots=True)
class AtTime:
    """Inclusive on both sides (SF-032)."""

    key_us: int


Position = AtCursor | AtItem | AtTime


def kinds_of_positions(view: View) -> tuple[str, ...]:
    """An id is a place only where items do not move, and in the bare view for stock clients (xep-map 3.2)."""
    moving = view.smart and view.order is Order.MODIFIED
    return ("cursor", "time") if moving else ("cursor", "id", "time")


def parse_position(text: str, view: View) -> Position:
    """What a UID means in this view. Raises FeedError as the table in xep-map 3.2 says."""
    if not text.strip() or len(text.encode("utf-8", "surrogatepass")) > MAX_UID_BYTES or _UNPRINTABLE.search(text):
        raise FeedError(Condition.BAD_REQUEST, "a position is 1 to 1024 bytes of printable text")
    kind, colon, value = text.partition(":")
    if colon and kind in _READERS:
        return _READERS[kind](value, view)
    if is_canonical(text) or (SPAN in text and all(is_canonical(part) for part in text.split(SPAN))):
        return _read_cursor(text, view)
    if view.smart:
        raise FeedError(Condition.BAD_REQUEST, "a position is written type:value, with type cursor, id or time")
    return AtItem(text)


def _read_cursor(value: str, view: View) -> Position:
    parts = value.split(SPAN)
    cursors = [cursor for cursor in map(parse_cursor, parts) if cursor is not None and cursor.order is view.order]
    if len(cursors) != len(parts) or len(parts) > 2 or (len(parts) == 2 and view.smart):
        raise FeedError(Condition.ITEM_NOT_FOUND, "this cursor is not one of this view")
    cursors.sort(key=lambda cursor: (cursor.key_us, cursor.offset))
    return AtCursor(cursors[0], cursors[-1])


def _read_id(value: str, view: View) -> Position:
    if "id" not in kinds_of_positions(view):
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, "items move in this order: use a cursor")
    if not value:
        raise FeedError(Condition.BAD_REQUEST, "id: needs an item id")
    return AtItem(value)


def _read_time(value: str, _view: View) -> Position:
    key_us = parse_time(value)
    if key_us is None:
        raise FeedError(Condition.BAD_REQUEST, "time: takes a date-time with a zone, or Unix seconds")
    return AtTime(key_us)


_READERS = {"cursor": _read_cursor, "id": _read_id, "time": _read_time}

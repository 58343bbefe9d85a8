"""T+O+C cursors: texts that point to an item and detect when they no longer do (SF-101 to SF-109).

T is the ordering key of the item in the order of the view, O its position among the items with the same key, C the
CRC-32 of their ids up to and including its own. A cursor of the created order starts with `c`, so that it cannot be
mistaken for a cursor of the modified order.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from smartfeeds.core.times import format_t, parse_t
from smartfeeds.core.view import Order

PREFIX = {Order.MODIFIED: "", Order.CREATED: "c"}
SPAN = "~"
MAX_GROUP = 100_000  # items with one key; if there are more, only the time of a cursor is compared

_CANONICAL = re.compile(
    r"c?(?!-0_)-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{0,5}[1-9])?_(?:0|[1-9][0-9]{0,8})_[0-9a-f]{8}", re.ASCII
)


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

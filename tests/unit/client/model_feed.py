"""A Smart Feed in a list, in modified order, with tombstones: what the follower's tests follow.

It pages as xep-map 3.1 and 3.2 say (exclusive cursors, `time:T` after a failed checksum) and chains its pushes as
golden.json does. It keeps no log: a page shows what the items are now.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from smartfeeds.client.change import ReceivedItem
from smartfeeds.client.events import PageReceived, PageRequest, PushReceived
from smartfeeds.core.position import Cursor, format_cursor, parse_cursor
from smartfeeds.core.view import Order


class UnknownCursorError(Exception):
    """Nothing can be read from this cursor."""


@dataclass
class ModelFeed:
    """`rows` are (key in microseconds, entry), ascending, items of one key in the order they were written."""

    rows: list[tuple[int, ReceivedItem]] = field(default_factory=list)
    clock_us: int = 1_304_942_400_000_000

    def put(self, *entries: ReceivedItem, key_us: int | None = None) -> PushReceived:
        """Publishes or deletes items, all at one time, and returns the push that tells of it."""
        previous = self.newest_cursor()
        self.clock_us = max(self.clock_us + 1, key_us or 0)
        moved = {entry.item_id for entry in entries}
        self.rows = [row for row in self.rows if row[1].item_id not in moved]
        self.rows += [(self.clock_us, entry) for entry in entries]
        return PushReceived(entries, previous or None, self.newest_cursor(), len(self.rows))

    def publish(self, item_id: str, text: str = "") -> PushReceived:
        """Publishes one item with this content."""
        return self.put(ReceivedItem(item_id, f"<entry>{text}</entry>".encode()))

    def delete(self, item_id: str, text: str = "") -> PushReceived:
        """Leaves a tombstone."""
        return self.put(ReceivedItem(item_id, f"<entry>{text}</entry>".encode(), deleted=True))

    def newest_cursor(self) -> str:
        """L of somebody who has everything; empty for an empty feed."""
        return self.cursor(len(self.rows) - 1) if self.rows else ""

    def cursor(self, index: int) -> str:
        """The cursor of the item at this place."""
        key = self.rows[index][0]
        group = [entry.item_id for row_key, entry in self.rows[: index + 1] if row_key == key]
        return format_cursor(Order.MODIFIED, key, group)

    def state(self) -> dict[str, ReceivedItem]:
        """Every item as it is now, tombstones too."""
        return {entry.item_id: entry for _, entry in self.rows}

    def page(self, pull: PageRequest, *, cap: int = 500, indexed: bool = True) -> PageReceived:
        """Answers a pull. `cap` shortens pages below what was asked for. Raises UnknownCursorError."""
        first = self._first_after(pull.after)
        if pull.newest:
            first = max(len(self.rows) - 1, 0)
        rows = self.rows[first : first + min(pull.max_items, cap)]
        if not rows:
            return PageReceived(pull.request_no, count=len(self.rows))
        return PageReceived(
            pull.request_no,
            tuple(entry for _, entry in rows),
            self.cursor(first),
            self.cursor(first + len(rows) - 1),
            first if indexed else None,
            len(self.rows),
        )

    def _first_after(self, text: str) -> int:
        if not text:
            return 0
        cursor = parse_cursor(text)
        if cursor is None:
            raise UnknownCursorError(text)
        group = [index for index, (key, _) in enumerate(self.rows) if key == cursor.key_us]
        if cursor.offset < len(group) and self._checks(cursor, group[: cursor.offset + 1]):
            return group[cursor.offset] + 1
        return sum(key < cursor.key_us for key, _ in self.rows)

    def _checks(self, cursor: Cursor, group: Iterable[int]) -> bool:
        ids = [self.rows[index][1].item_id for index in group]
        return format_cursor(Order.MODIFIED, cursor.key_us, ids).endswith(f"_{cursor.checksum}")

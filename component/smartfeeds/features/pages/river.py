"""Places in the river of the entries of all feeds, by the rules of `core.node_place`."""

import re
from typing import NamedTuple

from smartfeeds.core.node_place import NAME_TEXT, TIME_TEXT, parts_of_place
from smartfeeds.core.times import format_t, parse_t

ENTRY_PLACE = f"{TIME_TEXT}_[0-9]{{1,9}}_{NAME_TEXT}"  # for schemas
_ENTRY = re.compile(f"({TIME_TEXT})_([0-9]{{1,9}})_({NAME_TEXT})", re.ASCII)


class EntryPlace(NamedTuple):
    """The place of an item in the river: its modified key, the name of its feed, and the number of items of this feed
    with the same key that are before it.

    The number of the item itself would show how many items there are, those of closed feeds included.
    """

    modified_us: int
    name: str
    offset: int

    def __str__(self) -> str:
        return f"{format_t(self.modified_us)}_{self.offset}_{self.name}"


def parse_entry_place(text: str) -> EntryPlace:
    """Reads the text of an EntryPlace. Raises FeedError(BAD_REQUEST)."""
    time, offset, name = parts_of_place(_ENTRY, text)
    return EntryPlace(parse_t(time) or 0, name, int(offset))

"""Places in what several feeds have together: in the list of feeds by last change, and in the river of all entries.

A page continues behind the place of its last row. A place is a time and names, so it stays valid when the feed or the
entry that it names is deleted. A feed or an entry that changes moves to the newest end, so no page behind a place lacks
one that has not been shown.
"""

from typing import NamedTuple

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import format_t, parse_t
from smartfeeds.errors import Condition, FeedError

_MAX_CHARACTERS = MAX_ID_BYTES + 40
_MAX_OFFSET_DIGITS = 9


class NodePlace(NamedTuple):
    """A place in the list of nodes by last change: microseconds, and the name of a node where several have this time.

    Places compare as the nodes are ordered, oldest first.
    """

    changed_us: int
    name: str

    def __str__(self) -> str:
        return f"{format_t(self.changed_us)}_{self.name}"


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


def parse_node_place(text: str) -> NodePlace:
    """Reads the text of a NodePlace. Raises FeedError(BAD_REQUEST)."""
    time, _, name = text.partition("_")
    changed_us = parse_t(time)
    if changed_us is None or not name or len(text) > _MAX_CHARACTERS:
        raise _invalid(text)
    return NodePlace(changed_us, name)


def parse_entry_place(text: str) -> EntryPlace:
    """Reads the text of an EntryPlace. Raises FeedError(BAD_REQUEST)."""
    time, _, rest = text.partition("_")
    offset, _, name = rest.partition("_")
    modified_us = parse_t(time)
    numeric = offset.isascii() and offset.isdecimal() and len(offset) <= _MAX_OFFSET_DIGITS
    if modified_us is None or not name or not numeric or len(text) > _MAX_CHARACTERS:
        raise _invalid(text)
    return EntryPlace(modified_us, name, int(offset))


def _invalid(text: str) -> FeedError:
    return FeedError(
        Condition.BAD_REQUEST, f"{text[:40]!r} is no place in this list; use the address of the next page as it is"
    )

"""Places in what several feeds have together: in the list of feeds by last change, and in the river of all entries.

A page continues behind the place of its last row. A place is a time and names, so it stays valid when the feed or the
entry that it names is deleted. A feed or an entry that changes moves to the newest end, so no page behind a place lacks
one that has not been shown.
"""

import re
from typing import NamedTuple

from smartfeeds.core.times import format_t, parse_t
from smartfeeds.errors import Condition, FeedError

_T = r"-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?"
_NAME = r"[^\r\n]{1,1023}"  # as long as a name can be (MAX_ID_BYTES)
NODE_PLACE = f"{_T}_{_NAME}"  # the texts of places as regular expressions, for schemas
ENTRY_PLACE = f"{_T}_[0-9]{{1,9}}_{_NAME}"
_NODE = re.compile(f"({_T})_({_NAME})", re.ASCII)
_ENTRY = re.compile(f"({_T})_([0-9]{{1,9}})_({_NAME})", re.ASCII)


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
    time, name = _parts(_NODE, text)
    return NodePlace(parse_t(time) or 0, name)


def parse_entry_place(text: str) -> EntryPlace:
    """Reads the text of an EntryPlace. Raises FeedError(BAD_REQUEST)."""
    time, offset, name = _parts(_ENTRY, text)
    return EntryPlace(parse_t(time) or 0, name, int(offset))


def _parts(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.fullmatch(text)
    if match is None:
        raise _invalid(text)
    return match.groups()


def _invalid(text: str) -> FeedError:
    return FeedError(
        Condition.BAD_REQUEST, f"{text[:40]!r} is no place in this list; use the address of the next page as it is"
    )

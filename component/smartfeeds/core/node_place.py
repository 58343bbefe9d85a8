"""Places in the list of nodes by last change.

A page continues behind the place of its last row. A place is a time and a name, so it stays valid when the node that it
names is deleted. A node that changes moves to the newest end, so no page behind a place lacks one that has not been
shown.
"""

import re
from typing import NamedTuple

from smartfeeds.core.times import format_t, parse_t
from smartfeeds.errors import Condition, FeedError

# Texts of a time and of a name as regular expressions. The name is as long as a name can be (MAX_ID_BYTES), and may
# have any characters, line feeds included. A schema has no flag that lets "." match those.
TIME_TEXT = r"-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?"
NAME_TEXT = r"[\s\S]{1,1023}"
NODE_PLACE = f"{TIME_TEXT}_{NAME_TEXT}"  # for schemas
_NODE = re.compile(f"({TIME_TEXT})_({NAME_TEXT})", re.ASCII)


class NodePlace(NamedTuple):
    """A place in the list of nodes by last change: microseconds, and the name of a node where several have this time.

    Places compare as the nodes are ordered, oldest first.
    """

    changed_us: int
    name: str

    def __str__(self) -> str:
        return f"{format_t(self.changed_us)}_{self.name}"


def parse_node_place(text: str) -> NodePlace:
    """Reads the text of a NodePlace. Raises FeedError(BAD_REQUEST)."""
    time, name = parts_of_place(_NODE, text)
    return NodePlace(parse_t(time) or 0, name)


def parts_of_place(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """Returns the groups of the text of a place. Raises FeedError(BAD_REQUEST)."""
    match = pattern.fullmatch(text)
    if match is None:
        raise FeedError(
            Condition.BAD_REQUEST, f"{text[:40]!r} is no place in this list; use the address of the next page as it is"
        )
    return match.groups()

"""Matches paths with the templates of routes, and reads the feed and the item that a path names (SF-057).

The templates are matched against the raw path, because `%2F` in a name or id is not a separator.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import Condition, FeedError

_VARIABLE = re.compile(r"{(\w+)}")
_SEGMENT = r"[^/]+"


class PathTemplate:
    """A path with variables, such as `/entries/{name}/{id}`. `suffixes` are the values that `{suffix}` may have.
    `fixed_length` is the number of characters outside its variables."""

    def __init__(self, text: str, suffixes: Iterable[str] = ()) -> None:
        self.text = text
        pieces = _VARIABLE.split(text)  # literal texts and names of variables alternate
        self.variables = tuple(pieces[1::2])
        self.fixed_length = sum(map(len, pieces[::2]))
        # The name of a feed may hold slashes; every other variable is one segment.
        patterns = {"name": r".+", "suffix": "|".join(map(re.escape, suffixes))}
        self._pattern = re.compile(
            "".join(
                f"(?P<{piece}>{patterns.get(piece, _SEGMENT)})" if number % 2 else re.escape(piece)
                for number, piece in enumerate(pieces)
            ),
            re.DOTALL,
        )

    def match(self, path: str) -> Mapping[str, str] | None:
        """The raw values of the variables in a path, None for a path that does not fit."""
        match = self._pattern.fullmatch(path)
        return None if match is None else match.groupdict()


def first_segment(path: str) -> str:
    """The text between the first two slashes of a path. In every template it is fixed."""
    return path.split("/", 2)[1] if path.startswith("/") else ""


def no_such_name() -> FeedError:
    """Returns the error for a name or id that no feed or item can have."""
    return FeedError(Condition.ITEM_NOT_FOUND, "no such feed or item")


def decode_value(raw: str) -> str:
    """A percent-encoded name or id. Raises FeedError(ITEM_NOT_FOUND) for a value that no feed or item can have."""
    try:
        text = unquote(raw, errors="strict")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or len(text.encode()) > MAX_ID_BYTES:
        raise no_such_name()
    return text

"""The document type in front of a payload."""

import re
from itertools import product

from smartfeeds.http.bodies import _DTD

PIECES = [b"<!--", b"-->", b"<?", b"?>", b" ", b"<!DOCTYPE", b"x", b"-", b"<", b"!"]
SKIPPED = re.compile(rb"\s+|<!--.*?-->|<\?.*?\?>", re.DOTALL)


def has_dtd(text: bytes) -> bool:
    at = 0
    while (match := SKIPPED.match(text, at)) is not None:
        at = match.end()
    return text.startswith(b"<!DOCTYPE", at)


def test_possessive_group_matches_what_its_parts_match() -> None:
    """Before Python 3.11.5 a possessive group that fails in the middle leaves the position there (gh-106052)."""
    texts = [b"".join(pieces) for count in range(5) for pieces in product(PIECES, repeat=count)]
    assert [text for text in texts if (_DTD.match(text) is not None) is not has_dtd(text)] == []

"""Result sets: the part of a list that a request asks for (XEP-0059, XEP-0413).

`plan` translates a request to a `PagePlan`, which is always ascending. Its positions are still texts; `service.pulls`
resolves them and reads the page.
"""

import re
from dataclasses import dataclass, replace

from smartfeeds.errors import Condition, FeedError

_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)  # fits into the 64 bits of a column


@dataclass(frozen=True, slots=True)
class ResultSetRequest:
    """A `<set/>` as written: None if an element is absent, "" if it is empty."""

    max: str | None = None
    after: str | None = None
    before: str | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The plan of a page: `limit` items of the view between two positions (texts, None is open).

    `newest` reads them from the newer end; `offset` items at that end are skipped. `descending` reverses the page
    (XEP-0413). `always_result_set` is false if the response needs no result set when the page is the whole view.
    `spans` allows span cursors in the bare view. `index`: a page of the bare view has its index.
    Pages of Smart views always have it.
    """

    limit: int
    after: str | None = None
    before: str | None = None
    newest: bool = False
    offset: int = 0
    descending: bool = False
    always_result_set: bool = True
    spans: bool = False
    index: bool = True


def parse_number(text: str, name: str) -> int:
    """Reads a whole number from 0. Raises FeedError(BAD_REQUEST)."""
    number = text.strip()  # `int` does not strip all characters that `strip` does
    if not _NUMBER.fullmatch(number):
        raise FeedError(Condition.BAD_REQUEST, f"{name} must be a whole number from 0")
    return int(number)


def plan(
    request: ResultSetRequest | None,
    max_items: str | None,
    *,
    page_default: int,
    page_max: int,
    descending: bool = False,
) -> PagePlan:
    """Returns the plan for a request with or without a result set. Raises FeedError(BAD_REQUEST)."""
    limit = _max_items(max_items)
    size = None if request is None or request.max is None else parse_number(request.max, "max")
    # XEP-0060 6.5.7 promises the newest items for `max_items`. StanzaJS adds a set with the same number to it. Only a
    # set that names a place in the list asks for other items.
    if request is None or (limit is not None and request.after is request.before is request.index is None):
        ascending = PagePlan(
            limit=min(number for number in (limit, size, page_max) if number is not None),
            newest=True,
            always_result_set=limit is not None,
            spans=True,
        )
        return replace(ascending, descending=descending)
    if size is not None:
        limit = size
    limit = min(page_default if limit is None else limit, page_max)
    after, before = request.after or None, request.before or None
    backwards = request.before is not None and (before is None or after is None)
    if request.index is not None and not (backwards and request.index == ""):
        return _indexed(request, limit, descending=descending)
    # The iterator of slixmpp reads backwards until index and count say that a page is the newest one, which is its
    # first page. An empty `<index/>` asks for the index.
    index = not backwards or request.index is not None
    if descending:
        return PagePlan(limit, before, after, newest=not backwards, descending=True, index=index)
    return PagePlan(limit, after, before, newest=backwards, spans=backwards and after is None, index=index)


def _max_items(text: str | None) -> int | None:
    if text is None:
        return None
    number = parse_number(text, "max_items")
    if number == 0:
        raise FeedError(Condition.BAD_REQUEST, "max_items must be a whole number from 1")
    return number


def _indexed(request: ResultSetRequest, limit: int, *, descending: bool) -> PagePlan:
    if request.after or request.before:
        raise FeedError(Condition.BAD_REQUEST, "index cannot be combined with after or before")
    offset = parse_number(request.index or "", "index")
    return PagePlan(limit, newest=descending, offset=offset, descending=descending)

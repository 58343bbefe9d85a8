"""The query string of a pull: five parameters of the pull interface, and those of the view (SF-054 to SF-057).

The parameters of the view belong to the base URL and are kept as they were written. Parameters of others are ignored:
they are in no address of a page, and make no other entry in a cache.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode

from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.view import PARAMETERS, RESERVED_PARAMETERS, SMART, View, canonical, parse_view
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.parameter_names import nearest_name, own_fields

ALL = "all"  # the value of `max` that asks for a document of the whole feed
MAX_QUERY_BYTES = 8_192  # of the query alone; the request line has a limit of its own (`server.MAX_LINE_BYTES`)
MAX_CALLBACK = 128  # characters; those of jQuery have about 45
CALLBACK_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*"

_OF_FEEDS = frozenset({*PARAMETERS, *RESERVED_PARAMETERS})
# Positions in lists too: a page that does not know one would show something else than what was asked for.
_OWN = _OF_FEEDS | {"after", "before"}


class FeedQuery(NamedTuple):
    """The query of a pull. `view` is the query string of the base URL, as written.

    `since`, `until`, `max` and `timeout_s` are None if they are missing. `whole`: `max` was "all".
    """

    view: str = ""
    since: str | None = None
    until: str | None = None
    max: str | None = None
    timeout_s: int | None = None
    callback: str = ""
    whole: bool = False

    @property
    def page(self) -> ResultSetRequest:
        """The same as a result set (SF-089): since is after, until is before."""
        return ResultSetRequest(self.max, self.since, self.until)

    @property
    def is_pull(self) -> bool:
        """Whether the request has more than a view and `max=all`: a position, a size, a timeout or a callback."""
        pull = (self.since, self.until, self.max, self.timeout_s)
        return any(value is not None for value in pull) or bool(self.callback)

    @property
    def sync(self) -> bool:
        """Whether the view shows sync data."""
        return "sync" in self.view and _view(self.view).sync

    @property
    def plain_view(self) -> str:
        """The view without sync data."""
        return canonical(replace(_view(self.view), sync=False)) if self.sync else self.view


def read_query(raw: str) -> FeedQuery:
    """The query of a raw query string. Raises FeedError(BAD_REQUEST) with what is wrong (SF-056, A-11, A-12, A-24)."""
    if len(raw) > MAX_QUERY_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"a query string is at most {MAX_QUERY_BYTES} bytes long")
    if not raw:
        return FeedQuery()
    own: dict[str, str] = {}
    rest: list[str] = []
    fields = raw.split("&")
    names = [field.partition("=")[0] for field in fields]
    # Most queries have only our names, written plainly.
    is_plain = "?" not in raw and _OWN.issuperset(names)
    for name, field in zip(names, fields, strict=True) if is_plain else own_fields(raw, _OWN):
        if name not in RESERVED_PARAMETERS:
            rest.append(field)
            continue
        _, value = _pair(field)
        if name in own:
            raise FeedError(Condition.BAD_REQUEST, f"{name} must not be repeated")
        own[name] = value
    view = "&".join(rest)
    if view and parse_view(view) is None:
        raise FeedError(Condition.BAD_REQUEST, _why_not(view))
    whole = own.get("max") == ALL
    if "max" in own and not whole:
        parse_number(own["max"], "max")
    return FeedQuery(
        view,
        own.get("since"),
        own.get("until"),
        None if whole else own.get("max"),
        parse_number(own["timeout"], "timeout") if "timeout" in own else None,
        _callback(own["callback"]) if "callback" in own else "",
        whole,
    )


@lru_cache(1_024)  # a request asks several times
def _view(text: str) -> View:
    """The view of a query string that is known to be valid."""
    return parse_view(text) or SMART


def read_fields(raw: str, most: int) -> list[tuple[str, str]]:
    """Names and values of a form or a query string. Raises FeedError if it is malformed or has more than `most`."""
    try:
        return parse_qsl(raw, keep_blank_values=True, strict_parsing=bool(raw), errors="strict", max_num_fields=most)
    except ValueError:
        raise FeedError(Condition.BAD_REQUEST, "the parameters are malformed, or too many") from None


def read_parameters(raw: str, names: Collection[str], elsewhere: Collection[str] = ()) -> dict[str, str]:
    """The parameters of a query string that may have these, each once. Raises FeedError(BAD_REQUEST).

    Parameters of others are ignored, but not those of feeds, lists and `elsewhere`, which mean nothing here.
    """
    pairs = read_pairs(raw, names, elsewhere)
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise FeedError(Condition.BAD_REQUEST, f"this takes one each of {', '.join(names)}")
    return parameters


def read_pairs(raw: str, names: Collection[str], elsewhere: Collection[str] = ()) -> list[tuple[str, str]]:
    """The same with parameters that may be repeated."""
    pairs = []
    for name, field in own_fields(raw, {*names, *elsewhere, *_OWN}):
        if name not in names:
            expected = ", ".join(names) or "no parameters"
            raise FeedError(Condition.BAD_REQUEST, f"this takes {expected}{_hint(_pair(field)[0], names)}")
        if "=" not in field:
            raise FeedError(Condition.BAD_REQUEST, f"{name} has no value")
        pairs.append((name, _pair(field)[1]))
    return pairs


def write_query(fields: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """A query string with these parameters, a space as %20."""
    return urlencode(fields, quote_via=quote, safe="")


def page_path(path: str, query: Mapping[str, str], **position: str) -> str:
    """The address of another page of a list, with as many entries as the query asks for."""
    size = {"max": query["max"]} if "max" in query else {}
    return f"{path}?{write_query(position | size)}"


def read_flag(raw: str, name: str) -> bool:
    """Whether a raw query string has `name=true`; other parameters are ignored. Raises FeedError for another value."""
    values = {_pair(field)[1] for key, field in own_fields(raw, (name,)) if key}
    if not values <= {"true"}:
        raise FeedError(Condition.BAD_REQUEST, f"{name} must be true or missing")
    return bool(values)


def read_value(raw: str, name: str) -> str:
    """The value of a parameter of a raw query string, "" without it; other parameters are ignored. Raises FeedError if
    it is repeated."""
    values = [_pair(field)[1] for key, field in own_fields(raw, (name,)) if key]
    if len(values) > 1:
        raise FeedError(Condition.BAD_REQUEST, f"{name} must not be repeated")
    return values[0] if values else ""


def _why_not(view: str) -> str:
    """The reason why the parameters of a view are not valid."""
    for field in view.split("&"):
        name, _ = _pair(field)
        if name not in PARAMETERS:
            known = ", ".join(sorted(_OF_FEEDS))
            return f"the parameter {name[:40]!r} is unknown: there are {known}{_hint(name, _OF_FEEDS)}"
        if parse_view(field) is None:
            return f"{name}: the value is not valid; /openapi.json has the schema"
    return "too many parameters, or a parameter with too many values"


def _hint(name: str, known: Collection[str]) -> str:
    nearest = nearest_name(name, known)
    return f"; did you mean {nearest}?" if nearest else ""


def _pair(field: str) -> tuple[str, str]:
    name, _, value = field.partition("=")
    if "%" not in field and "+" not in field:
        return name, value
    try:
        return unquote_plus(name, errors="strict"), unquote_plus(value, errors="strict")
    except UnicodeDecodeError:
        raise FeedError(Condition.BAD_REQUEST, "the query string is not UTF-8") from None


def _callback(text: str) -> str:
    """The name of a function, with nothing else that a script could run (A-12)."""
    if len(text) > MAX_CALLBACK or re.fullmatch(CALLBACK_NAME, text) is None:
        raise FeedError(Condition.BAD_REQUEST, "callback must be the name of a JavaScript function")
    return text

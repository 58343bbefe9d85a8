"""The spelling of numbers, booleans and times in each dialect (FeedSync 2.1, 2.4, 2.5; SSE 1.2, 2.3)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from smartfeeds.core.times import EPOCH, US_PER_S, parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.formats.dates import exact_date, format_rfc822
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import MAX_NUMBER, Flag, check_name
from smartfeeds.sync.sse import SSE

SSE_NS = "https://www.microsoft.com/schemas/rss/sse"  # as printed in the specification

_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_RFC3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}[Zz]")
# A year of four digits and GMT. The weekday is optional and not checked.
_RFC822 = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ?)?[0-9]{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"[0-9]{4} [0-9]{2}:[0-9]{2}(?::[0-9]{2})? GMT"
)
_YEAR = re.compile(r"\b[0-9]{4}\b")
# Texts per cache. Versions of an item share most of their records, so the same numbers, names and times recur.
_CACHED = 8192
_CACHED_CHARACTERS = 64
# The last second that can be written. A leap second at the end of the year 9999 would be in the year 10000.
_LAST_US = 253_402_300_799 * US_PER_S


def invalid(text: str) -> FeedError:
    """Returns the error for an item with unusable sync data (A-52)."""
    return FeedError(Condition.INVALID_PAYLOAD, text)


@lru_cache(_CACHED)
def read_number(text: str | None, name: str) -> int:
    """Returns a number from 1 to 2147483647 without sign or leading zeros (A-56). Raises FeedError(INVALID_PAYLOAD)."""
    if text is None:
        raise invalid(f"{name} is missing")
    if _NUMBER.fullmatch(text) is None or int(text) > MAX_NUMBER:
        raise invalid(f"{name} is {text[:20]!r}; it must be a number from 1 to {MAX_NUMBER}")
    return int(text)


def _remembered(read: Callable[[str], int | None]) -> Callable[[str], int | None]:
    """Caches the times in texts. No time is as long as the texts that are read each time: cached, they could fill the
    memory.
    """
    known = lru_cache(_CACHED)(read)
    return lambda text: known(text) if len(text) <= _CACHED_CHARACTERS else read(text)


@_remembered
def _feedsync_time(text: str) -> int | None:
    """Reads RFC 3339 in whole seconds of UTC. Lower-case letters and second 60 are accepted (A-57)."""
    return parse_datetime(text) if _RFC3339.fullmatch(text) is not None else None


@_remembered
def _sse_time(text: str) -> int | None:
    return exact_date(text) if _RFC822.fullmatch(text) is not None else None


@_remembered
def _lenient_time(text: str) -> int | None:
    """Reads a date in any zone, if its year has four digits (A-85)."""
    time_us = exact_date(text) if _YEAR.search(text) is not None else None
    return None if time_us is None else time_us // US_PER_S * US_PER_S


@lru_cache(_CACHED)
def write_feedsync_time(time_us: int) -> str:
    """Returns a time as RFC 3339 in whole seconds of UTC."""
    return (EPOCH + timedelta(seconds=time_us // US_PER_S)).isoformat()[:19] + "Z"


_BOOLEANS = {None: Flag.ABSENT, "true": Flag.TRUE, "false": Flag.FALSE}


@dataclass(frozen=True, slots=True, eq=False)
class DialectSyntax:
    """The syntax of a dialect. `empty` says whether an empty attribute counts as an absent one (A-84)."""

    dialect: Dialect
    namespace: str
    flags: Mapping[str | None, Flag]
    read_time: Callable[[str], int | None]
    write_time: Callable[[int], str]
    empty: bool

    def flag(self, text: str | None, name: str) -> Flag:
        """Reads a boolean (FS-030, SSE-019). Raises FeedError(INVALID_PAYLOAD)."""
        flag = self.flags.get(text)
        if flag is None:
            raise invalid(f"{name} is {text[:20]!r}; it must be true or false" if text else f"{name} is empty")
        return flag

    def time(self, text: str | None, name: str) -> int | None:
        """Reads a time, or returns None if it is absent. Raises FeedError(INVALID_PAYLOAD) for an invalid time."""
        if text is None or (self.empty and not text):
            return None
        time_us = self.read_time(text)
        if time_us is None or time_us > _LAST_US:
            raise invalid(f"{name} is {text[:40]!r}, not a time in the format of {self.dialect.name}")
        return time_us

    def endpoint(self, text: str | None) -> str:
        """Reads an endpoint, or returns an empty text if it is absent. Raises FeedError(INVALID_PAYLOAD)."""
        if text is None or (self.empty and not text):
            return ""
        return check_name(text, "an endpoint", Condition.INVALID_PAYLOAD)


FEEDSYNC_LEXIS = DialectSyntax(FEEDSYNC, FEEDSYNC_NS, _BOOLEANS, _feedsync_time, write_feedsync_time, empty=False)
SSE_LEXIS = DialectSyntax(SSE, SSE_NS, {**_BOOLEANS, "": Flag.EMPTY}, _sse_time, format_rfc822, empty=True)
LENIENT_SSE_LEXIS = replace(SSE_LEXIS, read_time=_lenient_time)

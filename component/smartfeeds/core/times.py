"""Times: integer microseconds since the Unix epoch, and the texts they are written in.

`T` is the spelling used in cursors and in `time:` positions (Smart Feeds, Cursors; golden.json): decimal Unix
seconds, at most six fraction digits, no trailing zeros. RFC 3339 / XEP-0082 date-times are the other form.
"""

import re
from datetime import UTC, datetime, timedelta

US_PER_S = 1_000_000
# The years 1 to 9999 in UTC, which a date-time can express. The offset of a date-time may lead out of this range.
TIME_RANGE_US = (-62_135_596_800_000_000, 253_402_300_799_999_999)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive arithmetic is faster, and all times are UTC
_T = re.compile(r"(-?)(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,6}))?")
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
# Regular expressions for dates of RFC 3339 as most programs write them, also for schemas. The days that not every month
# has are missing, because a pattern cannot know the month.
PLAIN_SECOND = (
    "(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
PLAIN_ZONE = "(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])"
DURATION = "[1-9][0-9]{0,3}[smhdw]"  # as a regular expression, for schemas
_DURATION = re.compile(DURATION)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FINE = re.compile(r"(\.[0-9]{6})[0-9]+")


def format_t(time_us: int) -> str:
    """Returns microseconds as `T`: `1304942400.5`, `-0.25`, `0`."""
    sign = "-" if time_us < 0 else ""
    seconds, fraction = divmod(abs(time_us), US_PER_S)
    if not fraction:
        return f"{sign}{seconds}"
    return f"{sign}{seconds}.{fraction:06d}".rstrip("0")


def parse_t(text: str) -> int | None:
    """Returns `T` in microseconds, or None for any other text. Trailing zeros are accepted."""
    match = _T.fullmatch(text)
    if match is None:
        return None
    sign, seconds, fraction = match.groups()
    time_us = int(seconds) * US_PER_S + int((fraction or "").ljust(6, "0"))
    return -time_us if sign else time_us


def format_datetime(time_us: int) -> str:
    """Returns a UTC date-time that ends in Z (XEP-0082). Raises OverflowError outside of TIME_RANGE_US."""
    moment = _NAIVE_EPOCH + timedelta(microseconds=time_us)
    text = moment.isoformat()
    return (text.rstrip("0") if moment.microsecond else text) + "Z"


def format_second(time_us: int) -> str:
    """Returns a UTC date-time in whole seconds, for tables. Raises OverflowError outside of TIME_RANGE_US."""
    return format_datetime(time_us // US_PER_S * US_PER_S)


def parse_datetime(text: str) -> int | None:
    """Returns an RFC 3339 date-time with a zone in microseconds, or None for other texts or outside TIME_RANGE_US."""
    if _DATETIME.fullmatch(text) is None:
        return None
    leap = text[17:19] == "60"
    clean = (text[:17] + "59" + text[19:] if leap else text).upper()
    if "." in clean:
        clean = _FINE.sub(r"\1", clean)
    try:
        moment = datetime.fromisoformat(clean)
        time_us = (moment - EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return within_years(time_us + (US_PER_S if leap else 0))


def within_years(time_us: int | None) -> int | None:
    """Returns the time, or None outside of TIME_RANGE_US."""
    return time_us if time_us is not None and TIME_RANGE_US[0] <= time_us <= TIME_RANGE_US[1] else None


def parse_time(text: str) -> int | None:
    """Returns the value of a `time:` position, a date-time or a `T`, in microseconds (A-05). None for other texts."""
    time_us = parse_t(text)
    return parse_datetime(text) if time_us is None else time_us


def parse_duration(text: str) -> int | None:
    """Returns a duration such as `90d` in seconds, or None for other texts. The units are s, m, h, d and w."""
    return int(text[:-1]) * _UNITS_S[text[-1]] if _DURATION.fullmatch(text) else None

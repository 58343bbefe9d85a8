"""Dates as feeds write them: RFC 822 with its customary slips, and the W3C date-time forms (RSS-031).

Readers of all formats use `parse_date`, so that a date is accepted in every format or in none. Times are microseconds
since the Unix epoch in the years 1 to 9999, so that every writer can write them. An ambiguous text gives None.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from smartfeeds.core.times import EPOCH, US_PER_S, parse_datetime, within_years

_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name[:3]: number for number, name in enumerate(_LONG_MONTHS, start=1)}
_MONTHS |= {name: number for number, name in enumerate(_LONG_MONTHS, start=1)} | {"sept": 9}
# Hours from UTC: RFC 822 with its letters, and names seen in feeds.
_NAMED_OFFSETS = {
    0: ("gmt", "ut", "utc", "z", "wet"),
    1: ("bst", "west", "cet", "met"),
    2: ("cest", "mest", "eet"),
    3: ("eest", "msk"),
    9: ("jst", "kst"),
    10: ("aest",),
    11: ("aedt",),
    -3: ("adt",),
    -4: ("edt", "ast"),
    -5: ("est", "cdt"),
    -6: ("cst", "mdt"),
    -7: ("mst", "pdt"),
    -8: ("pst", "akdt"),
    -9: ("akst",),
    -10: ("hst",),
}
_ZONES = {name: timedelta(hours=hours) for hours, names in _NAMED_OFFSETS.items() for name in names}
_ZONES |= {letter: timedelta(hours=-hours) for hours, letter in enumerate("abcdefghiklm", start=1)}
_ZONES |= {letter: timedelta(hours=hours) for hours, letter in enumerate("nopqrstuvwxy", start=1)}
_DAY = r"(?:[a-z]{3,9}\.?(?:\s?,\s?|\s))?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?"
_ZONE = r"(?:\s*(?P<zone>[a-z]{1,5}|(?:gmt|utc?)?\s?[+-]\d{1,2}:?\d{2}))?"
_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        rf"{_DAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+(?P<month>[a-z]{{3,9}})\.?,?[\s-]+(?P<year>\d{{4}}|\d{{2}}),?"
        rf"(?:\s+{_TIME}{_ZONE})?",
        rf"{_DAY}(?P<month>[a-z]{{3,9}})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}}),?"
        rf"(?:\s+{_TIME}{_ZONE})?",
        rf"{_DAY}(?P<month>[a-z]{{3}})\s+(?P<day>\d{{1,2}})\s+{_TIME}{_ZONE}\s+(?P<year>\d{{4}})",
    )
)
_W3C = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})(?:-(?P<day>\d{2}))?"
    rf"(?:[t\s]+{_TIME}(?:\s*(?P<zone>z|[+-]\d{{2}}:?\d{{2}}))?)?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET = re.compile(r"(?:gmt|utc?)?\s?([+-])(\d{1,2}):?(\d{2})", re.ASCII | re.IGNORECASE)
_MAX_LENGTH = 200


def parse_date(text: str) -> int | None:
    """The time that a date means, or None. A date without a time is midnight, a time without a zone is UTC."""
    if len(text) > _MAX_LENGTH:
        return None
    text = " ".join(_without_comments(text).split())
    exact_us = parse_datetime(text)
    if exact_us is not None:
        return exact_us
    for form in (*_FORMS, _W3C):
        match = form.fullmatch(text)
        if match is not None:
            return _time_us(match.groupdict())
    return None


def format_rfc822(time_us: int) -> str:
    """The time in GMT as RFC 822 has it, with four digits of the year, to the second below (RSS 2.0, OPML).

    Raises OverflowError outside the years 1 to 9999.
    """
    return format_datetime(EPOCH + timedelta(seconds=time_us // US_PER_S), usegmt=True)


def _without_comments(text: str) -> str:
    """RFC 822 comments: in parentheses, nested, a backslash takes the meaning of the next character."""
    if "(" not in text:
        return text
    parts: list[str] = []
    depth = 0
    characters = iter(text)
    for character in characters:
        if character == "\\" and depth:
            next(characters, None)
        elif character == "(":
            depth += 1
            parts.append(" ")
        elif character == ")" and depth:
            depth -= 1
        elif not depth:
            parts.append(character)
    return "".join(parts)


def _time_us(parts: dict[str, str | None]) -> int | None:
    month, offset = parts["month"] or "", _offset(parts.get("zone"))
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower())
    second = int(parts.get("second") or 0)
    if number is None or offset is None or second > 60:
        return None
    year = int(parts["year"] or 0)
    if len(parts["year"] or "") == 2:
        year += 2000 if year < 50 else 1900  # RFC 2822 4.3
    day, hour, minute = int(parts.get("day") or 1), int(parts.get("hour") or 0), int(parts.get("minute") or 0)
    try:
        # A leap second is the last second of its minute and one more, because `datetime` has none.
        moment = datetime(year, number, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    time_us = (moment - EPOCH - offset) // timedelta(microseconds=1)
    return within_years(time_us + US_PER_S if second == 60 else time_us)


def _offset(zone: str | None) -> timedelta | None:
    if zone is None:
        return timedelta()
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return _ZONES.get(zone.strip().lower())
    hours, minutes = int(match[2]), int(match[3])
    if hours > 15 or minutes > 59:
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if match[1] == "-" else offset

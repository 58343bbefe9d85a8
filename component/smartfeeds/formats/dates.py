"""Dates as feeds write them (RSS-031): RFC 822 and the W3C date-time forms, and what programs write in their place.

Readers of all formats use `read_date`, so that a date is accepted in every format or in none. Times are microseconds
since the Unix epoch in the years 1 to 9999, so that every writer can write them. The customary forms are read without
a note. Other spellings have a note with the time that they were read as, and an ambiguous text gives no time:

- an unknown or ambiguous name of a zone is -0000 (RFC 5322 4.3); letters are those of RFC 822; `GMT+2` is east;
- a date without a time is midnight, a time without a zone is UTC, a year of two digits is 1950 to 2049 (RFC 2822 4.3);
- `3/5/2024` is a date only with AM or PM, because only the United States write both, or if a number is more than 12;
  `5.3.2024` has its day in front;
- a number of 9 or 10 digits is Unix seconds, one of 12 or 13 digits milliseconds, one of 15 or 16 digits microseconds.

Of the 20 customary forms in the tests `email.utils` reads 11 and dateutil 14. Of the 128 other spellings dateutil reads
28, another 12 as a wrong time, and `5.3.2024` as the third of May.
"""

import html
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime as format_rfc2822
from typing import NamedTuple

from smartfeeds.core.times import EPOCH, US_PER_S, format_datetime, parse_datetime, within_years
from smartfeeds.formats.date_words import AFTERNOON, ENGLISH_MONTHS, FILLERS, MONTHS, MORNING, ZONE_WORDS, ZONES, fold

_DAY = r"(?:[a-z]{3,9}\.?(?:\s?,\s?|\s))?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
_ZONE = r"(?:\s*(?P<zone>[a-z]{1,5}|(?:gmt|utc?)?\s?[+-]\d{1,2}:?\d{2}))?"
_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        # Tue, 05 Mar 2024 10:15:00 +0100 (RFC 822); March 5th, 2024 10:15 GMT; Tue Mar 5 10:15:00 2024 (asctime)
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
_TAGS = re.compile("<[^<>]*>")
_NO_YEAR = "-0001"  # what PHP makes of the date 0000-00-00
_MAX_OFFSET_H = 15  # zones reach from -12:00 to +14:00; more is not an offset
_BUDDHIST_YEARS = 543

# Signs of Chinese, Japanese and Korean behind a number, and what stands for them in numeric dates.
_SIGN = re.compile(r"(?<=[0-9])\s*([年년月월日일時时點点시分분秒초])\s*(?=([0-9])?)")
_DATE_SIGNS = frozenset("年년月월")
_CLOCK_SIGNS = frozenset("時时點点시")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_MERIDIEM = re.compile(r"\b([ap])\.\s?m\.?(?!\w)")
_HALF = "|".join(sorted(AFTERNOON | MORNING))
_NOT_BEFORE = r"(?<![0-9+:/.-])"
_CLOCKS = (
    # 10:15, 10h15, 10:15:00.5 PM; 10 PM; 10.15 Uhr
    re.compile(
        rf"{_NOT_BEFORE}(?:(?P<before>{_HALF})\s*)?(?P<hour>[0-9]{{1,2}})(?:\s?h\s?|:)(?P<minute>[0-9]{{1,2}})"
        rf"(?::(?P<second>[0-9]{{1,2}})(?:[.,][0-9]+)?)?(?:\s*(?P<after>{_HALF})(?![a-z]))?"
    ),
    re.compile(rf"{_NOT_BEFORE}(?P<hour>[0-9]{{1,2}})\s*(?P<after>{_HALF})(?![a-z])"),
    re.compile(rf"{_NOT_BEFORE}(?P<hour>[0-9]{{1,2}})[.](?P<minute>[0-9]{{2}})(?=\s*uhr)"),
    # A dot or nothing between hour and minute is a time only behind a year, or a word such as "kl.".
    re.compile(
        r"(?:(?<=[0-9]{4}\s)|(?<=[0-9]{4},\s)|(?<=\bkl\s)|(?<=\bkl\.\s)|(?<=\b(?:klo|ore)\s)|(?<=\balle\s))"
        r"(?P<hour>[0-9]{1,2})[.](?P<minute>[0-9]{2})(?:[.](?P<second>[0-9]{2}))?(?![0-9.])"
    ),
    re.compile(r"(?<=[a-z] [0-9]{4} )(?P<hour>[0-2][0-9])(?P<minute>[0-5][0-9])(?P<second>[0-5][0-9])?(?![0-9.:/-])"),
)
_LOG_CLOCK = re.compile(r"([0-9]{4}):(?=[0-9]{2}:[0-9]{2})")  # 05/Mar/2024:10:15:00
_NUMERIC_ZONE = re.compile(
    r"(?:\b(?:gmt|utc?|z)\s?|:|-)?(?<![0-9])([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::[0-9]{2})?z?(?![0-9./:-])"
)
_ZONE_BEHIND_DATE = re.compile(r"(?<=\s)(?:[+-][0-9]{4}|[a-z]{1,5})\Z")
_SIGN_BEHIND_CLOCK = re.compile(r"(?<=:[0-9]{2} )([+-]) ?(?=[0-9]{4}\b)|(?<=:[0-9]{2} )0000\b")
_GO = re.compile(r" m=[+-][0-9.]+\Z")  # the reading of the monotonic clock, which Go writes behind a time
_PLACE = re.compile(r"\b[a-z]+/[a-z_]+(?:/[a-z_]+)?\b")  # of the tz database, America/New_York
# Vowel signs of India and Thailand are no letters for `re`.
_LETTERS = r"(?:[^\W0-9_]|[\u0900-\u0dff\u0e00-\u0e7f])+"
_KNOWN = MONTHS.keys() | FILLERS | AFTERNOON | MORNING | {"w"}
_WORD = re.compile(rf"{_LETTERS}(?:'{_LETTERS})?")
_TOKEN = re.compile(rf"[0-9]+|{_WORD.pattern}")
_ORDINAL_DAY = re.compile(r"(?<=[0-9])(?:st|nd|rd|th|er|e|o|a|°)(?!\w)")
_BASIC = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:[t ]?([0-9]{2})([0-9]{2})([0-9]{2})?(?:[.,][0-9]{1,9})?(z?))?")
_UNIX = re.compile(r"([0-9]{9,10})(?:[.][0-9]{1,9})?|([0-9]{12,13})|([0-9]{15,16})")
_ISO_DATE = re.compile(r"(?<![0-9])([0-9]{4})([-/.])\s?([0-9]{1,2})\2\s?([0-9]{1,2})(?![0-9])")
_BASIC_DATE = re.compile(r"(?<![0-9])([0-9]{4})()([0-9]{2})([0-9]{2})(?![0-9])")
_ISO_WEEK = re.compile(r"(?<![0-9])([0-9]{4})-?w([0-9]{2})(?:-?([1-7]))?(?![0-9])")
_ISO_DAY_OF_YEAR = re.compile(r"(?<![0-9])([0-9]{4})-?([0-9]{3})(?![0-9])")
_NUMERIC = re.compile(r"(?<![0-9])([0-9]{1,2})([-/.])\s?([0-9]{1,2})\2\s?([0-9]{4}|[0-9]{2})(?![0-9])")


class ReadDate(NamedTuple):
    """The time that a text means, None if it means none, and what was guessed or repaired."""

    time_us: int | None
    note: str = ""


NO_DATE = ReadDate(None)


def read_date(text: str) -> ReadDate:
    """The time that a text means. The note is empty for customary forms, for an empty text, and for no date at all."""
    if not text or len(text) > _MAX_LENGTH or _NO_YEAR in text:
        return NO_DATE
    clean = " ".join(_without_comments(html.unescape(text)).split())
    exact_us = parse_datetime(clean)
    if exact_us is not None:
        return ReadDate(exact_us)
    for form in (*_FORMS, _W3C):
        match = form.fullmatch(clean)
        if match is not None and (time_us := _time_us(match.groupdict())) is not None:
            return ReadDate(time_us)
    time_us, zone = _lenient(" ".join(_TAGS.sub(" ", _without_comments(fold(clean))).split()))
    if time_us is None:
        return NO_DATE
    why = f"; the zone {zone.upper()} is not known or has several meanings" if zone else ""
    return ReadDate(time_us, f"the date {clean[:40]!r} was read as {format_datetime(time_us)}{why}")


def unread_date(text: str) -> str:
    """The note about a text that is no date, or one with several meanings."""
    return f"the date {text[:40]!r} cannot be read and was left out"


def parse_date(text: str) -> int | None:
    """The time that a text means, also if it was guessed or repaired."""
    return read_date(text).time_us


def exact_date(text: str) -> int | None:
    """The time of a date in a customary form. Any other gives None: dates that decide between versions are no guess."""
    time_us, note = read_date(text)
    return None if note else time_us


def format_rfc822(time_us: int) -> str:
    """The time in GMT as RFC 822 has it, with four digits of the year, to the second below (RSS 2.0, OPML).

    Raises OverflowError outside the years 1 to 9999.
    """
    return format_rfc2822(EPOCH + timedelta(seconds=time_us // US_PER_S), usegmt=True)


def _without_comments(text: str) -> str:
    """Removes the comments of RFC 822: in parentheses, nested, a backslash takes the meaning of the next character."""
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
    """The time of a customary form."""
    month, offset = parts["month"] or "", _offset(parts.get("zone"))
    number = int(month) if month.isdigit() else ENGLISH_MONTHS.get(month.lower(), 0)
    day = _day_of(_year(parts["year"] or ""), number, int(parts.get("day") or 1))
    if day is None or offset is None:
        return None
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    return _moment(day, (hour, minute, second), offset)


def _year(text: str) -> int:
    year = int(text)
    return year if len(text) > 2 else year + (2000 if year < 50 else 1900)  # RFC 2822 4.3


def _offset(zone: str | None) -> timedelta | None:
    if zone is None:
        return timedelta()
    match = _OFFSET.fullmatch(zone)
    return ZONES.get(zone.strip().lower()) if match is None else _hours(match[1], match[2], match[3])


def _hours(sign: str, hours: str, minutes: str | None) -> timedelta | None:
    if int(hours) > _MAX_OFFSET_H or int(minutes or 0) > 59:
        return None
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if sign == "-" else offset


def _moment(day: date, clock: tuple[int, int, int], offset: timedelta) -> int | None:
    """The time of a day and a clock. 24:00 is the end of the day, and second 60 the last one of its minute and one
    more, because `datetime` has neither."""
    hour, minute, second = clock
    is_end = hour == 24 and not minute and not second
    if second > 60:
        return None
    try:
        moment = datetime(day.year, day.month, day.day, 0 if is_end else hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    time_us = (moment - EPOCH - offset) // timedelta(microseconds=1)
    return within_years(time_us + US_PER_S * (86_400 * is_end + (second == 60)))


def _day_of(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _lenient(text: str) -> tuple[int | None, str]:
    """The time of a folded text in another form, and the name of a zone that was read as UTC."""
    if (time_us := _number(text)) is not None:
        return time_us, ""
    text = _SIGN_BEHIND_CLOCK.sub(r"\1", _GO.sub("", text))
    text = _LOG_CLOCK.sub(r"\1 ", _MERIDIEM.sub(r"\1m", _SIGN.sub(_sign, text.translate(_DASHES))))
    match = next((match for clock in _CLOCKS if (match := clock.search(text)) is not None), None)
    if match is None:
        tail = _ZONE_BEHIND_DATE.search(text)
        is_zone = tail is not None and tail[0] not in MONTHS and tail[0] not in FILLERS
        before, after = (text[: tail.start()], tail[0]) if tail is not None and is_zone else (text, "")
        half, clock = "", (0, 0, 0)
    else:
        before, after = text[: match.start()], text[match.end() :]
        parts = match.groupdict()
        half = parts.get("before") or parts.get("after") or ""
        clock = _hour(int(parts["hour"]), half), int(parts.get("minute") or 0), int(parts.get("second") or 0)
    zone = _zone_in(after)
    if zone is None or not _are_known(before):
        return None, ""
    day = _day_in(f"{before} {zone.rest}", is_half=half in ("am", "pm"))
    return (None, "") if day is None else (_moment(day, clock, zone.offset), zone.unknown)


def _number(text: str) -> int | None:
    """A date in digits alone: the basic form of ISO 8601, or a Unix time."""
    # Twelve digits may be both. As milliseconds they would be in 1976 for each of these years, so they are a date.
    basic = _BASIC.fullmatch(text)
    if basic is not None:
        year, month, day, hour, minute, second, _ = (part or "0" for part in basic.groups())
        when = _day_of(int(year), int(month), int(day))
        if when is not None and 1900 <= when.year < 2100:
            return _moment(when, (int(hour), int(minute), int(second)), timedelta())
    unix = _UNIX.fullmatch(text)
    if unix is None:
        return None
    if unix[1]:
        return int(unix[1]) * US_PER_S
    return int(unix[2]) * (US_PER_S // 1000) if unix[2] else int(unix[3])


def _sign(match: re.Match[str]) -> str:
    sign, is_inside = match[1], match[2] is not None
    if sign in _DATE_SIGNS:
        return "-" if is_inside else " "
    if sign in _CLOCK_SIGNS:
        return ":" if is_inside else ":00 "
    return ":" if sign in "分분" and is_inside else " "


def _hour(hour: int, half: str) -> int:
    if half in AFTERNOON:
        return hour + 12 if hour < 12 else hour
    return 0 if half in MORNING and hour == 12 else hour


class _Zone(NamedTuple):
    """The offset, the name of a zone that is not known, and what else stands behind a clock."""

    offset: timedelta
    unknown: str
    rest: str


def _zone_in(text: str) -> _Zone | None:
    """The zone in what stands behind a clock. A number counts more than a name. None for what is no offset."""
    numeric = _NUMERIC_ZONE.search(text)
    offset: timedelta | None = timedelta()
    if numeric is not None:
        offset = _hours(numeric[1], numeric[2], numeric[3])
        text = f"{text[: numeric.start()]} {text[numeric.end() :]}"
    if offset is None:
        return None
    place = _PLACE.search(text)
    if place is not None:
        text = f"{text[: place.start()]} {text[place.end() :]}"
    unknown, is_named = place[0] if place is not None and numeric is None else "", place is not None
    rest = []
    for word in _TOKEN.findall(text):
        if word in FILLERS and len(word) > 1:
            continue
        if word[0].isdigit() or word in MONTHS:
            rest.append(word)
        elif word in FILLERS and (word not in ZONES or rest):
            continue
        elif word in ZONE_WORDS:
            unknown = unknown or ("" if numeric is not None else word)
        elif is_named or not word.isascii() or len(word) > 5:
            return None
        else:
            is_named = True
            if numeric is None:
                offset = ZONES.get(word, timedelta())
                unknown = "" if word in ZONES else word
    is_date = _NUMERIC.search(text) or _ISO_DATE.search(text)
    return _Zone(offset, unknown, text if is_date and not is_named else " ".join(rest))


def _are_known(text: str) -> bool:
    """Whether the words before a clock are known; before or behind the date there may be the name of a weekday."""
    first = re.search("[0-9]", text)
    begin = len(text) if first is None else first.start()
    if len(_WORD.findall(text[:begin])) > 3:
        return False
    words = _WORD.findall(_ORDINAL_DAY.sub("", text[begin:]))
    # Before "at" in "5 March 2024, Tuesday at 10:15", too.
    count = 2 if words[-1:] and words[-1] in FILLERS else 1
    return _KNOWN.issuperset(words[:-count])


def _day_in(text: str, *, is_half: bool) -> date | None:
    """The day in the rest of a text. `is_half`: its time has AM or PM."""
    for form, read in _DAY_FORMS:
        match = form.search(text)
        if match is not None:
            rest = text[: match.start()] + text[match.end() :]
            return None if re.search("[0-9]", rest) else read(match, is_half)
    tokens = _TOKEN.findall(_ORDINAL_DAY.sub("", text))
    numbers = [token for token in tokens if token[0].isdigit()]
    months = [MONTHS[token] for token in tokens if token in MONTHS]
    if not months or not 1 <= len(numbers) <= 2 or any(len(number) not in (1, 2, 4) for number in numbers):
        return None
    # The name of a weekday may be that of a month in another language: "mar. 5 mars".
    month = months[-1]
    if len(numbers) == 1:
        return _day_of(int(numbers[0]), month, 1) if len(numbers[0]) == 4 else None
    day, year = numbers if len(numbers[0]) <= 2 else numbers[::-1]
    years = _BUDDHIST_YEARS if any("\u0e00" <= token[0] < "\u0e80" for token in tokens) and int(year) > 2400 else 0
    return _day_of(_year(year) - years, month, int(day)) if len(day) <= 2 else None


def _numeric_day(match: re.Match[str], is_half: bool) -> date | None:
    first, separator, second, year = int(match[1]), match[2], int(match[3]), match[4]
    if (separator == "." and second <= 12) or first == second:
        return _day_of(_year(year), second, first)
    if is_half and first <= 12:
        return _day_of(_year(year), first, second)
    if len(year) == 2 or (first <= 12 and second <= 12):
        return None  # 3/5/2024, 24/03/05
    day, month = (first, second) if first > 12 else (second, first)
    return _day_of(_year(year), month, day)


def _week_day(match: re.Match[str], _is_half: bool) -> date | None:
    try:
        return date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1))
    except ValueError:
        return None


def _day_of_year(match: re.Match[str], _is_half: bool) -> date | None:
    first = _day_of(int(match[1]), 1, 1)
    day = None if first is None else first + timedelta(days=int(match[2]) - 1)
    return day if day is not None and day.year == int(match[1]) else None


def _iso_day(match: re.Match[str], _is_half: bool) -> date | None:
    return _day_of(int(match[1]), int(match[3]), int(match[4]))


_DAY_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], bool], date | None]], ...] = (
    (_ISO_DATE, _iso_day),
    (_BASIC_DATE, _iso_day),
    (_ISO_WEEK, _week_day),
    (_NUMERIC, _numeric_day),
    (_ISO_DAY_OF_YEAR, _day_of_year),
)

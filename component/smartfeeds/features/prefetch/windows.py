"""Windows of the day or night in which work may begin, in local time (RSS-033; PRE-002, PRE-003).

Times are microseconds since the Unix epoch. A zone of None is the local time of the machine.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError

ALWAYS: Final = "always"
_DAY_MIN: Final = 24 * 60
_MINUTE: Final = timedelta(minutes=1)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = r"([01]?[0-9]|2[0-4]):([0-5][0-9])"
_WINDOW: Final = re.compile(rf"(?:([a-z,-]+)\s+)?{_TIME}-{_TIME}")
_HELP: Final = "write it as 02:00-04:00, mon-fri 22:00-06:00 or always"


class Span(NamedTuple):
    """A window on one day: it is open from `open_us` on and before `close_us`."""

    open_us: int
    close_us: int


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """A window that begins on some days of the week (Monday is 0). Its ends are minutes since the midnight before it
    begins; the end may be on the next day."""

    days: frozenset[int]
    start_min: int
    end_min: int


def parse_window(text: str) -> DailyWindow:
    """Reads a window: `always`, or days and two times such as `sat,sun 22:00-06:00`. Raises ConfigError."""
    text = " ".join(text.lower().split())
    if text == ALWAYS:
        return DailyWindow(frozenset(range(7)), 0, _DAY_MIN)
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ConfigError(f"the window {text!r} cannot be read; {_HELP}")
    days, *numbers = match.groups()
    start_hour, start, end_hour, end = map(int, numbers)
    start_min, end_min = start_hour * 60 + start, end_hour * 60 + end
    if start_min >= _DAY_MIN or end_min > _DAY_MIN or start_min == end_min:
        raise ConfigError(f"the window {text!r} is empty or ends after 24:00; {_HELP}")
    return DailyWindow(_parse_days(days or "mon-sun"), start_min, end_min + _DAY_MIN * (end_min < start_min))


def _parse_days(text: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            begin, end = _DAYS.index(first), _DAYS.index(last or first)
        except ValueError:
            raise ConfigError(f"the days {text!r} cannot be read; use {', '.join(_DAYS)}, or mon-fri") from None
        days.update(range(begin, end + 1) if begin <= end else (*range(begin, 7), *range(end + 1)))
    return frozenset(days)


def current_span(windows: Sequence[DailyWindow], zone: tzinfo | None, now_us: int) -> Span | None:
    """The span that is open now, None if none is. Of several, the one that has been open for the longest time."""
    return min((span for span in _spans(windows, zone, now_us) if span.open_us <= now_us < span.close_us), default=None)


def next_open_us(windows: Sequence[DailyWindow], zone: tzinfo | None, now_us: int) -> int | None:
    """The time at which the next span opens, None without windows."""
    return min((span.open_us for span in _spans(windows, zone, now_us) if span.open_us > now_us), default=None)


def _spans(windows: Sequence[DailyWindow], zone: tzinfo | None, now_us: int) -> Iterator[Span]:
    """The spans that begin between yesterday and a week from now: a window of yesterday may last over midnight, and one
    of a single day of the week has its next span among them."""
    today = _wall(now_us // US_PER_S, zone).date()
    for offset in range(-1, 9):
        day = today + timedelta(days=offset)
        for window in windows:
            if day.weekday() in window.days:
                span = _span(window, day, zone)
                if span.close_us > span.open_us:
                    yield span


def _span(window: DailyWindow, day: date, zone: tzinfo | None) -> Span:
    """The span of a window that begins on a day.

    When the clocks go back an hour occurs twice. A window then is as long as on other days, so the hour counts once.
    Windows of a whole day follow each other without a gap.
    """
    open_s, close_s = (_instant_s(day, minute, zone) for minute in (window.start_min, window.end_min))
    length_min = window.end_min - window.start_min
    if length_min < _DAY_MIN:
        close_s = min(close_s, open_s + length_min * 60)
    return Span(open_s * US_PER_S, close_s * US_PER_S)


def _instant_s(day: date, minute: int, zone: tzinfo | None) -> int:
    """The first Unix time at which the clocks show a minute of a day, or a later one if no clock shows it."""
    wall = datetime.combine(day, time()) + minute * _MINUTE
    instant_s = int(wall.replace(tzinfo=zone).timestamp())
    if _wall(instant_s, zone) != wall:
        # The minute is left out when the clocks go forward. `timestamp` then has an instant behind the change.
        while _wall(instant_s - 60, zone) >= wall:
            instant_s -= 60
    return instant_s


def _wall(instant_s: int, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(instant_s, zone).replace(tzinfo=None, fold=0)

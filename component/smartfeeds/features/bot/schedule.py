"""The times of delivery: quiet hours and digests, in the time zone of the person.

A plan needs no memory: it follows from the settings, the age of the oldest item that waits, and the time now.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from smartfeeds.core.times import EPOCH
from smartfeeds.features.bot.chat import DAILY, ChatSettings, Digest, QuietHours

_DAY_MINUTES = 24 * 60
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?", re.ASCII)


def parse_minute(text: str) -> int | None:
    """Returns the minutes after midnight of a time such as `8`, `8:00` or `24`; None for other texts."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    minutes = int(match[1]) * 60 + int(match[2] or "0")
    return minutes % _DAY_MINUTES if int(match[2] or "0") < 60 and minutes <= _DAY_MINUTES else None


def parse_quiet(text: str) -> QuietHours | None:
    """Returns the hours of a text such as `22-7` or `22:30-7:00`; None for other texts and for an empty range."""
    first, dash, second = text.partition("-")
    begin, end = parse_minute(first), parse_minute(second)
    return None if not dash or begin is None or end is None or begin == end else QuietHours(begin, end)


def format_minute(minute: int) -> str:
    """Returns a time of day, such as `08:00`."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


# The standard library searches the folders of the time zones at each call. A new zone needs a restart.
@lru_cache(1)
def _zones() -> dict[str, str]:
    return {name.casefold(): name for name in available_timezones()}


def find_zone(text: str) -> str | None:
    """Returns the name of a time zone in its official spelling, or None."""
    return _zones().get(text.casefold())


def due_us(settings: ChatSettings, oldest_us: int, now_us: int) -> int:
    """Returns when items may be sent of which the oldest has waited since `oldest_us`; `now_us` or later."""
    zone = ZoneInfo(settings.zone)
    at_us = now_us
    if settings.digest is not None:
        at_us = max(now_us, _next_digest_us(settings.digest, zone, oldest_us))
    return at_us if settings.quiet is None else _end_of_quiet_us(settings.quiet, zone, at_us)


def _next_digest_us(digest: Digest, zone: ZoneInfo, after_us: int) -> int:
    """The first time of the digest after a time."""
    day = _local(after_us, zone).date()
    # A week and two days: the time of today may have passed, and a change of the clocks may move it behind midnight.
    for days in range(9):
        date = day + timedelta(days=days)
        time_us = _at(datetime(date.year, date.month, date.day, tzinfo=zone), digest.minute)
        if time_us > after_us and digest.weekday in (DAILY, date.weekday()):
            return time_us
    raise AssertionError("nine days have every weekday")


def _end_of_quiet_us(quiet: QuietHours, zone: ZoneInfo, time_us: int) -> int:
    """The end of the quiet hours that a time is in, or the time."""
    local = _local(time_us, zone)
    minute = local.hour * 60 + local.minute
    # The length of the hours and the minutes since their begin, both across midnight.
    length = (quiet.end - quiet.begin) % _DAY_MINUTES
    if (minute - quiet.begin) % _DAY_MINUTES >= length:
        return time_us
    date = local.date() + timedelta(days=int(quiet.end <= minute))
    return max(time_us, _at(datetime(date.year, date.month, date.day, tzinfo=zone), quiet.end))


def format_local(time_us: int, zone: str) -> str:
    """Returns a time by the clock on the wall of a time zone, such as `2026-01-01 08:00`."""
    return f"{_local(time_us, ZoneInfo(zone)):%Y-%m-%d %H:%M}"


def _local(time_us: int, zone: ZoneInfo) -> datetime:
    return (EPOCH + timedelta(microseconds=time_us)).astimezone(zone)


def _at(midnight: datetime, minute: int) -> int:
    """The time of day by the clock on the wall, which on two days of the year is not so long after midnight."""
    wall = midnight.replace(hour=minute // 60, minute=minute % 60)
    return (wall.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)

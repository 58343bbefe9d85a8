"""Quiet hours and digests."""

from datetime import datetime

import pytest

from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.features.bot.chat import DAILY, ChatSettings, Digest, QuietHours, dump_chat_settings, load_chat_settings
from smartfeeds.features.bot.schedule import due_us, find_zone, parse_minute, parse_quiet

NIGHT = QuietHours(22 * 60, 7 * 60)
LUNCH = QuietHours(12 * 60, 13 * 60)
BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    time_us = parse_datetime(text)
    assert time_us is not None
    return time_us


def due(settings: ChatSettings, oldest: str, now: str) -> str:
    return format_datetime(due_us(settings, at(oldest), at(now)))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-01-01T21:59:59Z", "2026-01-01T21:59:59Z"),
        ("2026-01-01T22:00:00Z", "2026-01-02T07:00:00Z"),
        ("2026-01-02T03:00:00Z", "2026-01-02T07:00:00Z"),
        ("2026-01-02T07:00:00Z", "2026-01-02T07:00:00Z"),
    ],
)
def test_quiet_hours_past_midnight(now: str, expected: str) -> None:
    assert due(ChatSettings(quiet=NIGHT), now, now) == expected


def test_quiet_hours_within_a_day() -> None:
    settings = ChatSettings(quiet=LUNCH)
    assert due(settings, "2026-01-01T12:30:00Z", "2026-01-01T12:30:00Z") == "2026-01-01T13:00:00Z"
    assert due(settings, "2026-01-01T13:00:00Z", "2026-01-01T13:00:00Z") == "2026-01-01T13:00:00Z"


def test_quiet_hours_follow_the_time_zone_and_the_change_of_clocks() -> None:
    """In the night to 29 March 2026 the clocks of Berlin go from two to three."""
    settings = ChatSettings(zone=BERLIN, quiet=NIGHT)
    assert due(settings, "2026-03-28T21:30:00Z", "2026-03-28T21:30:00Z") == "2026-03-29T05:00:00Z"
    assert due(settings, "2026-03-27T21:30:00Z", "2026-03-27T21:30:00Z") == "2026-03-28T06:00:00Z"


def test_digest_is_due_at_its_first_time_after_the_oldest_item() -> None:
    daily = ChatSettings(digest=Digest(DAILY, 8 * 60))
    assert due(daily, "2026-01-01T07:00:00Z", "2026-01-01T07:30:00Z") == "2026-01-01T08:00:00Z"
    assert due(daily, "2026-01-01T08:00:00Z", "2026-01-01T08:00:00Z") == "2026-01-02T08:00:00Z"
    assert due(daily, "2026-01-01T07:00:00Z", "2026-01-05T12:00:00Z") == "2026-01-05T12:00:00Z", "it was missed"


@pytest.mark.parametrize("weekday", range(7))
def test_weekly_digest(weekday: int) -> None:
    text = due(ChatSettings(digest=Digest(weekday, 0)), "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z")
    moment = datetime.fromisoformat(text)
    assert moment.weekday() == weekday
    assert 0 < (moment - datetime.fromisoformat("2026-01-01T10:00:00Z")).total_seconds() <= 7 * 86_400


def test_digest_within_quiet_hours_waits_for_their_end() -> None:
    settings = ChatSettings(digest=Digest(DAILY, 6 * 60), quiet=NIGHT)
    assert due(settings, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z") == "2026-01-02T07:00:00Z"


@pytest.mark.parametrize("text", ["", "22", "22-22", "25-7", "22-7:60", "a-b", "22--7", "-", "²2-7", "22-7-8", "0-24"])
def test_hours_that_are_refused(text: str) -> None:
    assert parse_quiet(text) is None


def test_hours_and_times() -> None:
    assert parse_quiet("22-7") == NIGHT
    assert parse_quiet("12:15-13:00") == QuietHours(735, 780)
    assert parse_quiet("22-24") == QuietHours(22 * 60, 0)
    assert [parse_minute(text) for text in ("8", "8:30", "24", "24:01", "8:5", "x")] == [480, 510, 0, None, None, None]


def test_zone_is_one_of_the_list() -> None:
    assert find_zone("europe/berlin") == BERLIN
    assert find_zone("../../etc/passwd") is None
    assert find_zone("Europe") is None


def test_settings_survive_the_store() -> None:
    for settings in (ChatSettings(), ChatSettings("de", BERLIN, NIGHT, Digest(3, 5))):
        assert load_chat_settings(dump_chat_settings(settings)) == settings

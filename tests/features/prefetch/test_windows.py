"""Windows of the day in local time."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from smartfeeds.errors import ConfigError
from smartfeeds.features.prefetch.windows import current_span, next_open_us, parse_window

PRAGUE, NEW_YORK = ZoneInfo("Europe/Prague"), ZoneInfo("America/New_York")


def us(text: str, zone: tzinfo = UTC, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()) * 1_000_000


def is_open(window: str, text: str, zone: tzinfo = UTC, fold: int = 0) -> bool:
    windows = tuple(map(parse_window, window.split(";")))
    return current_span(windows, zone, us(text, zone, fold)) is not None


@pytest.mark.parametrize(
    ("window", "text", "expected"),
    [
        ("02:00-04:00", "2026-06-01T01:59:59", False),
        ("02:00-04:00", "2026-06-01T02:00:00", True),
        ("02:00-04:00", "2026-06-01T03:59:59", True),
        ("02:00-04:00", "2026-06-01T04:00:00", False),
        ("22:00-06:00", "2026-06-01T21:59:00", False),
        ("22:00-06:00", "2026-06-01T23:00:00", True),
        ("22:00-06:00", "2026-06-02T05:59:00", True),
        ("22:00-06:00", "2026-06-02T06:00:00", False),
        ("02:00-04:00;12:00-13:00", "2026-06-01T12:30:00", True),
        ("02:00-04:00;12:00-13:00", "2026-06-01T11:30:00", False),
        ("sat,sun 02:00-04:00", "2026-06-05T03:00:00", False),
        ("sat,sun 02:00-04:00", "2026-06-06T03:00:00", True),
        ("fri-mon 02:00-04:00", "2026-06-01T03:00:00", True),
        ("fri-mon 02:00-04:00", "2026-06-02T03:00:00", False),
        ("fri 22:00-06:00", "2026-06-06T05:00:00", True),
        ("fri 22:00-06:00", "2026-06-05T05:00:00", False),
        ("always", "2026-06-01T00:00:00", True),
        ("always", "2026-06-01T23:59:59", True),
        ("00:00-24:00", "2026-06-01T23:59:59", True),
    ],
)
def test_window_is_open(window: str, text: str, expected: bool) -> None:
    """[PRE-001] [PRE-002] [RSS-033] Days are those on which a window begins."""
    assert is_open(window, text) is expected


def test_window_is_in_the_time_of_its_zone() -> None:
    """[PRE-002] 02:00 in Prague is 00:00 UTC in summer."""
    assert current_span((parse_window("02:00-04:00"),), PRAGUE, us("2026-06-01T00:00:00")) is not None
    assert current_span((parse_window("02:00-04:00"),), PRAGUE, us("2026-06-01T03:00:00")) is None


def test_window_without_a_zone_is_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """[PRE-002]"""
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        span = current_span((parse_window("02:00-04:00"),), None, us("2026-06-01T07:00:00"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert span == (us("2026-06-01T02:00:00", NEW_YORK), us("2026-06-01T04:00:00", NEW_YORK))


@pytest.mark.parametrize(("zone", "day"), [(PRAGUE, "2026-03-29"), (NEW_YORK, "2026-03-08")])
def test_window_whose_start_does_not_exist_begins_at_the_next_minute(zone: ZoneInfo, day: str) -> None:
    """[PRE-003] The clocks go from 02:00 to 03:00."""
    windows = (parse_window("02:30-04:00"),)
    opens_us = us(f"{day}T03:00:00", zone)
    assert next_open_us(windows, zone, us(f"{day}T00:00:00", zone)) == opens_us
    assert current_span(windows, zone, opens_us - 1) is None
    assert current_span(windows, zone, opens_us) == (opens_us, us(f"{day}T04:00:00", zone))
    # A window of which nothing is left on this day is next open on the following one.
    gone = (parse_window("02:00-03:00"),)
    assert current_span(gone, zone, opens_us) is None
    assert next_open_us(gone, zone, opens_us) > opens_us + 20 * 3_600_000_000


@pytest.mark.parametrize(("zone", "day", "hour"), [(PRAGUE, "2026-10-25", 2), (NEW_YORK, "2026-11-01", 1)])
def test_hour_that_occurs_twice_counts_once(zone: ZoneInfo, day: str, hour: int) -> None:
    """[PRE-003] The window is as long as on other days."""
    window = f"{hour:02}:00-{hour + 1:02}:00"
    assert is_open(window, f"{day}T{hour:02}:30:00", zone)
    assert not is_open(window, f"{day}T{hour:02}:30:00", zone, fold=1)
    span = current_span((parse_window(f"{hour:02}:00-{hour + 2:02}:00"),), zone, us(f"{day}T{hour:02}:30:00", zone))
    assert span is not None and span.close_us - span.open_us == 7_200_000_000


@pytest.mark.parametrize("day", ["2026-10-25", "2026-03-29"])
def test_always_has_no_gap_when_clocks_change(day: str) -> None:
    """[PRE-003]"""
    first_us = us(f"{day}T00:00:00", PRAGUE)
    windows = (parse_window("always"),)
    assert all(current_span(windows, PRAGUE, first_us + minute * 60_000_000) for minute in range(0, 26 * 60, 10))


@pytest.mark.parametrize(
    "text",
    ["", "2-4", "02:00", "02:00-02:00", "24:00-02:00", "02:00-24:30", "25:00-26:00", "xyz 02:00-04:00", "02:60-03:00"],
)
def test_window_that_cannot_be_read_is_refused(text: str) -> None:
    """[PRE-002]"""
    with pytest.raises(ConfigError, match=r"write it as|use mon"):
        parse_window(text)


def test_next_window_is_told() -> None:
    """[PRE-006]"""
    windows = (parse_window("mon 02:00-04:00"),)
    assert next_open_us(windows, UTC, us("2026-06-01T02:00:00")) == us("2026-06-08T02:00:00")
    assert next_open_us((), UTC, us("2026-06-01T02:00:00")) is None

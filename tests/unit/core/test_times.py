"""Times as microseconds, T, and date-times."""

import pytest

from smartfeeds.core.times import format_datetime, format_t, parse_datetime, parse_t, parse_time

T_US = 1_304_942_400_000_000


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (T_US, "1304942400"),
        (T_US + 500_000, "1304942400.5"),
        (T_US + 1, "1304942400.000001"),
        (0, "0"),
        (-250_000, "-0.25"),
        (-86_400_000_000, "-86400"),
        (10_000_000, "10"),
    ],
)
def test_format_t_and_parse_t_are_inverse(time_us: int, text: str) -> None:
    """[A-05] [SF-104]"""
    assert format_t(time_us) == text
    assert parse_t(text) == time_us


@pytest.mark.parametrize(
    ("text", "time_us"), [("1.50", 1_500_000), ("-0", 0), ("0.000000", 0), ("999999999999", 999_999_999_999_000_000)]
)
def test_parse_t_of_another_spelling_is_read(text: str, time_us: int) -> None:
    assert parse_t(text) == time_us


@pytest.mark.parametrize(
    "text", ["", "-", "1.", ".5", "01", "1e9", "+1", " 1", "1 ", "1,5", "1.1234567", "1000000000000", "١", "0x1", "nan"]
)
def test_parse_t_of_something_else_gives_none(text: str) -> None:
    assert parse_t(text) is None


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (T_US, "2011-05-09T12:00:00Z"),
        (T_US + 1_500_000, "2011-05-09T12:00:01.5Z"),
        (T_US + 1, "2011-05-09T12:00:00.000001Z"),
        (-1_000_000, "1969-12-31T23:59:59Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
    ],
)
def test_format_datetime_gives_utc_without_trailing_zeros(time_us: int, text: str) -> None:
    assert format_datetime(time_us) == text
    assert parse_datetime(text) == time_us


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("2011-05-09T14:00:01+02:00", T_US + 1_000_000),
        ("2011-05-09t12:00:00z", T_US),
        ("2011-05-09T12:00:00.123456789Z", T_US + 123_456),
        ("2011-05-09T12:00:00.1-00:00", T_US + 100_000),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
    ],
)
def test_parse_datetime_of_rfc_3339_is_read(text: str, time_us: int) -> None:
    assert parse_datetime(text) == time_us


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2011-05-09",
        "2011-05-09T12:00:00",
        "2011-05-09 12:00:00Z",
        "2011-05-09T12:00Z",
        "2011-02-30T12:00:00Z",
        "2011-05-09T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "2011-05-09T12:00:00+99:99",
        "2011-05-09T12:00:00.Z",
        "٢٠11-05-09T12:00:00Z",
        "2011-05-09T12:00:00Z ",
    ],
)
def test_parse_datetime_of_something_else_gives_none(text: str) -> None:
    assert parse_datetime(text) is None


@pytest.mark.parametrize("text", ["1304942400", "1304942400.0", "2011-05-09T12:00:00Z", "2011-05-09T14:00:00+02:00"])
def test_parse_time_takes_t_and_date_times(text: str) -> None:
    """[SF-031] [xep-map 219]"""
    assert parse_time(text) == T_US


@pytest.mark.parametrize("text", ["", "yesterday", "1_0_e8b7be43", "2011"])
def test_parse_time_of_something_else(text: str) -> None:
    """[xep-map 219]"""
    assert parse_time(text) == (2_011_000_000 if text == "2011" else None)


def test_parse_datetime_gives_whole_microseconds() -> None:
    """A float would lose microseconds and make two cursors of one key."""
    time_us = parse_datetime("2011-05-09T12:00:00.1234567Z")

    assert (time_us, type(time_us)) == (1_304_942_400_123_456, int)

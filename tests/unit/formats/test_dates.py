"""RSS dates beyond those of the corpus."""

import pytest

from smartfeeds.core.times import parse_datetime
from smartfeeds.formats.dates import parse_date

NOON_US = parse_datetime("2011-05-09T12:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 09 May 2011 12:00:00 GMT",
        "Monday, 9 May 2011 12:00:00 UTC",
        "Mon,9 May 2011 12:00:00 +0000",
        "Mon 9 May 2011 12:00 Z",
        "9 May 2011 14:00:00 +02:00",
        "9 May 2011 14:00:00 CEST",
        "9 May 2011 14:00:00 GMT+0200",
        "9 May 2011 14:00:00 UTC +0200",
        "09-May-2011 08:00:00 EDT",
        "Mon, 09 May 11 12:00:00 GMT",
        "May 9, 2011 12:00",
        "May 9th, 2011, 12:00:00 GMT",
        "Mon May  9 12:00:00 2011",
        "Mon May 9 05:00:00 PDT 2011",
        "2011-05-09 12:00:00",
        "2011-05-09T12:00Z",
        "2011-05-09T12:00:00.000+0000",
        "2011-05-09t14:00:00+02:00",
        "  Mon, 09 May 2011\n12:00:00 GMT ",
        "Mon, 09 May 2011 12:00:00 GMT (noon (of that day))",
    ],
)
def test_parse_date_reads_the_customary_forms(text):
    """[RSS-031]"""
    assert parse_date(text) == NOON_US


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("9 May 2011", "2011-05-09T00:00:00Z"),
        ("2011-05", "2011-05-01T00:00:00Z"),
        ("31 Dec 49 23:59:60 GMT", "2050-01-01T00:00:00Z"),
        ("1 Jan 50 00:00 GMT", "1950-01-01T00:00:00Z"),
        ("1 Jan 1900 00:00 GMT", "1900-01-01T00:00:00Z"),
    ],
)
def test_parse_date_fills_in_and_counts_on(text, meant):
    assert parse_date(text) == parse_datetime(meant)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "today",
        "9 Mai 2011 12:00 GMT",
        "30 Feb 2011 12:00 GMT",
        "9 May 2011 24:00 GMT",
        "9 May 2011 12:60 GMT",
        "9 May 2011 12:00:61 GMT",
        "9 May 2011 12:00 +1600",
        "9 May 2011 12:00 +0160",
        "9 May 2011 12:00 XYZ",
        "9 May 20111 12:00 GMT",
        "05/09/2011",
        "1304942400",
        "9 May 2011 12:00 GMT" + " " * 200 + "x",
        "\u0669 May 2011 12:00 GMT",
    ],
)
def test_parse_date_does_not_guess(text):
    assert parse_date(text) is None

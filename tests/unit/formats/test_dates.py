"""RSS dates beyond those of the corpus."""

import pytest

from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.formats.dates import exact_date, parse_date, read_date

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
        "30 Feb 2011 12:00 GMT",
        "9 May 2011 12:60 GMT",
        "9 May 2011 12:00:61 GMT",
        "9 May 2011 12:00 +1600",
        "9 May 2011 12:00 +0160",
        "9 May 20111 12:00 GMT",
        "05/09/2011",
        "5/9/2011 12:00",
        "09-05-2011 12:00",
        "24/03/05 12:00",
        "9 May 2011 24:01 GMT",
        "9 May 2011 25:00 GMT",
        "2011-13-09",
        "2011-W60-1",
        "2011-366",
        "0000-00-00 00:00:00",
        "Wed, 30 Nov -0001 00:00:00 +0000",
        "0",
        "-1",
        "99999",
        "12:00",
        "Mon,",
        "9 May",
        "9 May 2011 12:00 tomorrow",
        "2011-05-09 of long ago",
        "1 2 May 2011",
        "05/03/2024 22:15",
        "5/3/2024 10:15 πμ",
        "۱۵ اسفند ۱۴۰۲",
        "5 tháng 13 2024",
        "5 May 2011 2575 GMT",
        "9 May 2011 12:00 GMT" + " " * 200 + "x",
        "9 May " + "1" * 98,
        "9 May " + "1" * 99,
        "1" * 100 + " May 2011",
    ],
)
def test_parse_date_does_not_guess(text):
    assert parse_date(text) is None


# What programs write where RFC 822 or RFC 3339 is due: all of them mean 2024-03-05T10:15:00Z.
MEANT_US = parse_datetime("2024-03-05T10:15:00Z")
SPELLINGS = [
    # AM and PM
    *("Tue, 05 Mar 2024 10:15:00 AM", "Tue, 05 Mar 2024 10:15 am", "March 5, 2024 10:15 a.m."),
    "Mar. 5, 2024, 10:15 A.M.",
    *("Tue, 05 Mar 2024 02:15:00 PM +0400", "Tue, Mar 05 2024 10:15:00AM", "03/05/2024 10:15 AM"),
    "3/5/2024 10:15:00 AM",
    *("Tue, 05 Mar 2024 06:15 PM +0800", "Tue, 05 Mar 2024 18:15 PM +0800"),
    # zones
    *("5 Mar 2024 12:15 GMT+2", "5 Mar 2024 12:15 UTC +2", "Tue, 05 Mar 2024 11:15:00 +01"),
    "5 Mar 2024 11:15 GMT+1",
    *("Tue, 05 Mar 2024 03:15:00 MST-07:00", "Tue, 05 Mar 2024 05:15:00 -0500 EST"),
    "Tue, 5 Mar 2024 10:15:00 -0000 GMT",
    *("Tue, 05 Mar 2024 10:15:00 --0000", "2024-03-05T10:15:00-00:00Z", "2024-03-05T09:15:00:-0100"),
    "5 Mar 2024 3:15 -700",
    *("2024-03-05 10:15:00 UTC", "2024-03-05 11:15 CET", "5 Mar 2024 15:45 +05:30:00"),
    "Tue, 05 Mar 2024 11:15:00 MEZ",
    *("Tue, 05 Mar 2024 13:15:00 MSK", "2024-03-05 05:15:00 EST", "Tue Mar 05 2024 11:15 GMT+1 (CET)"),
    "5.3.2024 11:15 CET",
    # languages
    *("Di, 05 Mär 2024 11:15:00 +0100", "Dienstag, 5. März 2024 10:15 Uhr", "05.03.2024, 10.15 Uhr"),
    "5. Mrz 2024 10:15",
    *("mar., 05 mars 2024 10:15:00 +0000", "mardi 5 mars 2024 à 10h15", "5 mars 2024 10:15"),
    "mar, 05 mars 2024 10:15",
    *("5 de marzo de 2024 a las 10:15", "mar, 5 marzo 2024 10:15", "5 marzo 2024 10:15"),
    "martedì 5 marzo 2024, 10:15",
    *("terça-feira, 5 de março de 2024 10:15", "di, 05 mrt 2024 10:15:00 +0000", "dinsdag 5 maart 2024 10:15"),
    *("Вт, 05 мар 2024 10:15:00 +0000", "5 марта 2024 г. в 10:15", "вторник, 05 Марта 2024 10:15"),
    "5 марта 2024, 13:15 MSK",
    *("wt., 5 marca 2024 10:15", "wtorek, 5 marzec 2024 10:15", "Salı, 5 Mart 2024 10:15"),
    "tis, 05 mars 2024 kl. 10:15",
    *("5. března 2024 10:15", "5 березня 2024 10:15", "Τρί, 05 Μαρ 2024 10:15:00 GMT"),
    "ti, 5 maaliskuuta 2024 klo 10:15",
    *("2024年3月5日 10:15", "2024年03月05日 10時15分", "2024年3月5日（火）10時15分00秒", "2024年3月5日 上午10:15"),
    *("2024/3/5 10:15", "20240305 10:15", "1709633700000000"),
    *("2024년 3월 5일 오전 10:15", "2024. 3. 5. 오전 10:15", "2024년 03월 05일 10시 15분"),
    "2024년 3월 5일 화요일 오전 10:15",
    # months of other scripts, and other digits
    *("5 مارس 2024 10:15", "الثلاثاء، 5 مارس 2024 13:15:00 +0300", "٥ مارس ٢٠٢٤ ١٠:١٥", "5 آذار 2024 الساعة 10:15"),
    *("شنبه 5 مارس 2024 10:15", "5 مارچ 2024 10:15", "5 מרץ 2024 10:15", "יום שלישי, 5 במרץ 2024 בשעה 10:15"),
    *("मंगलवार, 5 मार्च 2024 10:15", "५ मार्च २०२४ १०:१५", "5 মার্চ 2024 10:15", "৫ মার্চ ২০২৪ ১০:১৫"),
    *("อังคาร, 05 มีนาคม 2024 17:15:00 +0700", "5 มี.ค. 2567 10:15 น.", "5 มีนาคม พ.ศ. 2567 เวลา 10:15 น."),
    *("Thứ ba, 5 tháng 3 2024 10:15", "ngày 5 tháng 3 năm 2024 lúc 10:15", "5 Tháng Ba, 2024 10:15"),
    *("5 kovo 2024 10:15", "5. märts 2024 10:15", "вторник, 5 март 2024 10:15", "5 Mac 2024 10:15"),
    # a weekday behind the date
    *("5 Mart 2024 Salı 10:15", "05 Mart 2024 Salı, 10:15", "2024. március 5., kedd 10:15"),
    # a dot in the time, or nothing
    *("5 marzo 2024 10.15", "Tue, 05 Mar 2024 10.15.00 GMT", "5. maaliskuuta 2024 klo 10.15", "5.3.2024 10.15"),
    *("5. mars 2024 kl. 10.15", "Tue, 05 Mar 2024 1015 GMT", "Tue, 05 Mar 2024 101500 +0000"),
    # a zone that is written out, or torn
    *("Tue, 05 Mar 2024 10:15:00 Coordinated Universal Time", "5 Mar 2024 10:15:00 Greenwich Mean Time"),
    *("Tue, 05 Mar 2024 11:15:00 + 0100", "Tue, 05 Mar 2024 10:15:00 0000"),
    # what other programs leave in it
    "2024-03-05 10:15:00.123456789 +0000 UTC m=+0.000000001",
    *("2024-03-05T11:15:00&#43;01:00", "Tue, 05 Mar 2024 10:15:00&nbsp;GMT", "2024-03-05T10:15:00.00000000000Z"),
    # numeric and ISO forms
    *("2024/03/05 10:15", "2024-3-5 10:15", "2024.03.05 10:15", "5.3.2024 10:15"),
    "05/Mar/2024:10:15:00 +0000",
    *("20240305T101500Z", "20240305101500", "20240305T1015", "2024-W10-2T10:15:00Z", "2024W102T10:15Z"),
    "2024-065T10:15Z",
    *("2024-03-05 at 10:15:00", "2024-03-05, 10:15", "2024-03-05 - 10:15", "10:15 05.03.2024"),
    "Tue, 2024-03-05 10:15",
    *("1709633700", "1709633700000", "1709633700.25", "Tue, 5 Mar 2024 10:15:0 GMT"),
    "Tue , 05 Mar 2024 10:15",
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_read_date_finds_the_moment_that_is_meant(text):
    """[RSS-031] The note has the text and the time."""
    time_us, note = read_date(text)
    assert time_us == MEANT_US
    assert note == "" or ((text[:30] in note or "(" in text) and "was read as 2024-03-05T10:15:00Z" in note)


@pytest.mark.parametrize("zone", ["IST", "XYZ", "ABCDE", "Europe/Berlin", "America/Argentina/Salta"])
@pytest.mark.parametrize("day", ["Tue, 05 Mar 2024", "2024-03-05", "5. März 2024"])
def test_zone_that_is_unknown_or_ambiguous_is_utc_and_said(day, zone):
    """RFC 5322 4.3"""
    time_us, note = read_date(f"{day} 10:15 {zone}")
    assert (time_us, zone.upper() in note) == (MEANT_US, True)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Tue, 05 Mar 2024 10:15:00 PM", "2024-03-05T22:15:00Z"),
        ("Tue, 05 Mar 2024 12:15 AM", "2024-03-05T00:15:00Z"),
        ("Tue, 05 Mar 2024 12:15 PM", "2024-03-05T12:15:00Z"),
        ("March 5, 2024 10 PM", "2024-03-05T22:00:00Z"),
        ("2024年3月5日 下午3:05", "2024-03-05T15:05:00Z"),
        ("13/05/2024 10:15", "2024-05-13T10:15:00Z"),
        ("05/13/2024 10:15", "2024-05-13T10:15:00Z"),
        ("Tue, 05 Mar 2024 24:00:00 GMT", "2024-03-06T00:00:00Z"),
        ("2024-12-31T24:00:00Z", "2025-01-01T00:00:00Z"),
        ("2024-12-31 23:59:60 UTC", "2025-01-01T00:00:00Z"),
        ("5.3.24", "2024-03-05T00:00:00Z"),
        ("mars 2024", "2024-03-01T00:00:00Z"),
        ("2024-366", "2024-12-31T00:00:00Z"),
        ("2 Jan 2006 MST", "2006-01-02T07:00:00Z"),
        ("02.01.2006 -0700", "2006-01-02T07:00:00Z"),
        ("كانون الثاني 5, 2024", "2024-01-05T00:00:00Z"),
        ("5 كانون الأول 2024", "2024-12-05T00:00:00Z"),
        ("5 ديسمبر 2024 3:05 م", "2024-12-05T15:05:00Z"),
        ("5 जून 2024", "2024-06-05T00:00:00Z"),
        ("5 मई 2024", "2024-05-05T00:00:00Z"),
        ("5 Tháng Mười Hai 2024", "2024-12-05T00:00:00Z"),
        ("5 tháng năm 2024", "2024-05-05T00:00:00Z"),
        ("12.31.2024", "2024-12-31T00:00:00Z"),
        ("Dec 31, 9999 11:59 PM", "9999-12-31T23:59:00Z"),
    ],
)
def test_read_date_knows_the_customs_of_clocks_and_countries(text, meant):
    time_us, _ = read_date(text)
    assert time_us is not None and format_datetime(time_us) == meant


@pytest.mark.parametrize("text", ["31.12.9999 24:00", "Dec 31, 9999 11:00 PM -0500", "1 Jan 0001 00:30 AM +0100"])
def test_time_beyond_the_years_that_can_be_written_is_none(text):
    assert read_date(text) == (None, "")


def test_dates_that_decide_between_versions_are_not_guessed():
    """A merge gives the same winner everywhere, so its dates are not read by custom."""
    assert exact_date("Tue, 05 Mar 2024 10:15:00 GMT") == MEANT_US
    assert {exact_date(text) for text in ("03/05/2024 10:15 AM", "5 Mar 2024 10:15 IST", "1709633700")} == {None}


@pytest.mark.parametrize("unit", ["5 ", "a", "mar ", "10:15 ", "+01 ", "(", "/", "年", "é"])
def test_no_text_takes_long(unit):
    assert parse_date((unit * 200)[:200]) is None

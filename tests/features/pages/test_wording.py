"""Values in the language of a page."""

import pytest

from smartfeeds.features.pages.wording import Wording
from smartfeeds.texts import Texts

MOMENT_US = 1_709_251_140_000_000  # 2024-02-29T23:59:00Z


@pytest.mark.parametrize(
    ("language", "time", "fraction", "size", "person"),
    [
        ("en", "29 Feb 2024, 23:59 UTC", "1\u202f234.5", "1.5 MB", "bob at feeds.example"),
        ("de", "29. Feb. 2024, 23:59 UTC", "1\u202f234,5", "1,5 MB", "bob auf feeds.example"),
    ],
)
def test_values_have_the_form_of_the_language(language: str, time: str, fraction: str, size: str, person: str) -> None:
    wording = Wording(Texts(language))
    assert wording.time(MOMENT_US) == time
    assert wording.number(1_234.5) == fraction
    assert wording.size(1_500_000) == size
    assert wording.person("feeds.example%2Fbob") == person


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345, "12 kB"), (5 * 10**15, "5\u202f000 TB")],
)
def test_size_has_a_unit_that_makes_it_short(size_bytes: int, text: str) -> None:
    assert Wording(Texts("en")).size(size_bytes) == text


def test_whole_number_has_no_fraction() -> None:
    assert Wording(Texts("de")).number(1_234_567) == "1\u202f234\u202f567"


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("feeds.a.example%2Falice@example.net", "alice@example.net at feeds.a.example"),
        ("feeds.a.example", "feeds.a.example"),
        ("JEO2000", "JEO2000"),
        ("", "somebody"),
        ("a%2F", "a/"),
        ("a%2Fb%2Fc", "b/c at a"),
        ("a%2F%E2%80%AEb", "a%2F%E2%80%AEb"),
        ("a%2F%00", "a%2F%00"),
        ("a%2F%FF", "a%2F%FF"),
        ("a%2Fm%C3%BCller@b.example", "müller@b.example at a"),
    ],
)
def test_endpoint_reads_as_a_person_at_a_service(by: str, expected: str) -> None:
    """[A-51] Where it can be read so; what would turn letters around or cannot be seen stays encoded."""
    assert Wording(Texts("en")).person(by) == expected

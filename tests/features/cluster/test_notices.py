"""The texts of notices between processes."""

import pytest

from smartfeeds.features.cluster.letter import ANY_PROCESS, EVERY_PROCESS
from smartfeeds.features.cluster.notices import (
    PAYLOAD_BYTES,
    ChangeNotice,
    JoinNotice,
    LetterNotice,
    change_text,
    join_text,
    letter_text,
    read_notice,
)


def test_notice_names_changed_nodes() -> None:
    """[PG-061]"""
    assert read_notice(change_text("a", [5, 3]), "b") == ChangeNotice((3, 5))


def test_process_that_starts_says_so() -> None:
    """[PG-062] [TOP-013]"""
    assert read_notice(join_text("a"), "b") == JoinNotice()
    assert read_notice(join_text("b"), "b") is None


def test_notice_fits_into_a_payload() -> None:
    """[PG-061]"""
    text = change_text("a", range(10**9, 10**9 + 1_000))
    assert len(text) <= PAYLOAD_BYTES and read_notice(text, "b") == ChangeNotice(None)


@pytest.mark.parametrize(
    ("recipient", "notice"),
    [
        ("b", LetterNotice(7)),
        (EVERY_PROCESS, LetterNotice(7)),
        (ANY_PROCESS, LetterNotice(7, is_claimed=True)),
        ("c", None),
    ],
)
def test_letter_is_for_its_recipient(recipient: str, notice: LetterNotice | None) -> None:
    """[TOP-030] [TOP-034]"""
    assert read_notice(letter_text("a", recipient, 7), "b") == notice


@pytest.mark.parametrize("number", ["9" * 19, "9" * 5_000, "\u0661"])
@pytest.mark.parametrize("text", ["a letter * {}", "a letter b {}", "a changed {}", "a changed 1,{}"])
def test_numbers_that_no_process_sends_mean_nothing(text: str, number: str) -> None:
    """[PG-062] Another role of the database may send any text: it must not end the thread of the lock session."""
    assert read_notice(text.format(number), "b") is None


@pytest.mark.parametrize(
    "text",
    ["b changed 1", "b letter * 1", "", "a", "a changed", "a changed x", "a changed 1,", "a letter b x", "a b c d e"],
)
def test_own_notices_and_other_texts_mean_nothing(text: str) -> None:
    """[PG-062]"""
    assert read_notice(text, "b") is None

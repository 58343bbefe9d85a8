"""Failures of sources in words for people."""

import pytest

from smartfeeds.features.polling.failures import (
    NEXT_NONE,
    NEXT_RARE,
    NEXT_TRY,
    next_step,
    words_of_failure,
    words_of_reason,
)
from smartfeeds.features.polling.polls import AnswerKind, PollAnswer, after_answer, paused, unlisted
from smartfeeds.features.polling.source import SourceState, new_source

DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("was not requested: its address is not public; the operator may allow it with --allow-private", "private"),
        ("answered 401", "does not let"),
        ("answered 403", "does not let"),
        ("answered 404", "nothing at this address"),
        ("answered 410", "ended"),
        ("answered 429", "fewer requests"),
        ("its server asked for a pause", "fewer requests"),
        ("answered 500", "fault"),
        ("answered 503", "fault"),
        ("answered 406", "refuses"),
        ("answered 206, which was not asked for", "refuses"),
        ("does not answer", "does not answer"),
        ("did not answer within 60 seconds", "does not answer"),
        ("cannot be reached over https; if the server has no https, use http://", "secure"),
        ("cannot be reached: Name or service not known", "cannot be reached"),
        ("has a certificate that is not valid: certificate has expired", "certificate"),
        ("the document is a web page, not a feed; it links to https://blog.example/feed", "web page"),
        ("redirects more than 5 times", "another one"),
        ("is larger than 10000000 bytes", "too large"),
        ("the document has more than 400000 tags, which is the limit", "too large"),
        ("reading the document took more than 512 MB of memory", "too large"),
        ("reading the document took more than 10 s of processor time", "too long"),
        ("reading the document took more than 30 s, or the system ended it", "too long"),
        ("ended early: more than 30 bytes are missing", "in part"),
        ("the document is a web page, not a feed; its title is 'Press pause: answered 404'", "web page"),
        ("gave no usable answer: the headers have more than 65536 bytes in all, which is the limit", "fault"),
        ("ended early: the rest of the document is missing", "in part"),
        ("the document is empty", "in part"),
    ],
)
def test_reason_has_words(reason: str, word: str) -> None:
    """[SRC-047] The texts are those of `net.fetch`, `formats.refusals` and `polls`."""
    words = words_of_reason(reason)
    assert words.is_known and word in words.what


def test_other_reason_is_shown_as_it_is() -> None:
    words = words_of_reason("the document is JSON, but no JSON Feed")
    assert not words.is_known and "cannot be read as a feed" in words.what


def test_source_that_works_has_no_failure() -> None:
    source = new_source("news", "https://blog.example/feed", 0)
    assert words_of_failure(source) is None
    assert words_of_failure(after_answer(source, PollAnswer(AnswerKind.READ), 0, 0.5)) is None


def test_next_step_says_when_and_whether() -> None:
    """[SRC-039] [SRC-047] A source that is slowed, one that is given up, and one that somebody has paused."""
    source = new_source("news", "https://blog.example/feed", 0)
    slowed = after_answer(source, PollAnswer(AnswerKind.REFUSED, "answered 404"), 0, 0.5)
    stopped = after_answer(slowed, PollAnswer(AnswerKind.REFUSED, "answered 404"), 31 * DAY_US, 0.5)
    assert (slowed.state, stopped.state) == (SourceState.SLOWED, SourceState.STOPPED)
    assert [next_step(each) for each in (slowed, stopped, paused(source, "a@b.example", 0))] == [
        NEXT_TRY,
        NEXT_RARE,
        NEXT_NONE,
    ]
    for each, word in (
        (slowed, "nothing at"),
        (paused(source, "a@b.example", 0), "paused"),
        (unlisted(source, 0), "list"),
    ):
        words = words_of_failure(each)
        assert words is not None and word in words.what

"""The text of a session's cookie, its end, and the token of its forms."""

import pytest

from smartfeeds.core.token import TokenScope
from smartfeeds.features.accounts.bearer import digest_of, parse_token, write_token
from smartfeeds.features.accounts.session import (
    IDLE_S,
    MOST_S,
    RENEWED_S,
    Session,
    begun,
    form_token,
    is_due,
    is_form_token,
    matches,
    parse_session,
    renewed,
    write_session,
)

SECRET = "s" * 43
SESSION = Session("0123456789ab", digest_of(SECRET), "a@x", TokenScope.PUBLISH, "*", "", "")
S = 1_000_000
T0 = 5_000 * S


def test_text_of_a_cookie_is_read_back() -> None:
    text = write_session(SESSION.session_id, SECRET)
    assert parse_session(text) == (SESSION.session_id, SECRET)
    assert matches(SESSION, SECRET) and not matches(SESSION, "t" * 43)


@pytest.mark.parametrize(
    "text", ["", "sfs_", f"sfs_{'g' * 12}_{SECRET}", f"sfs_{'0' * 12}_{SECRET}\n", write_token("0" * 12, SECRET)]
)
def test_other_texts_are_no_cookie(text: str) -> None:
    assert parse_session(text) is None


def test_cookie_is_no_bearer_token() -> None:
    assert parse_token(write_session(SESSION.session_id, SECRET)) is None


def test_session_ends_after_it_was_idle_and_after_the_longest_time() -> None:
    session = begun(SESSION, T0, None)
    assert (session.created_us, session.seen_us, session.expires_us) == (T0, T0, T0 + IDLE_S * S)
    moved = renewed(session, T0 + 9 * S)
    assert (moved.created_us, moved.expires_us) == (T0, T0 + (IDLE_S + 9) * S)
    late = renewed(session, T0 + (MOST_S - 1) * S)
    assert late.expires_us == T0 + MOST_S * S


def test_session_ends_with_its_token() -> None:
    assert begun(SESSION, T0, T0 + 7 * S).expires_us == T0 + 7 * S
    assert renewed(begun(SESSION, T0, T0 + 7 * S), T0 + 6 * S).expires_us == T0 + 7 * S


def test_session_is_renewed_once_an_hour() -> None:
    session = begun(SESSION, T0, None)
    assert not is_due(session, T0 + RENEWED_S * S - 1)
    assert is_due(session, T0 + RENEWED_S * S)


def test_form_token_belongs_to_one_cookie() -> None:
    token = form_token("cookie")
    assert is_form_token("cookie", token)
    assert not any(is_form_token("cookie", text) for text in ("", token[:-1], form_token("other"), "ü\ud800"))
    assert "cookie" not in token

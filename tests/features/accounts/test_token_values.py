"""Bearer tokens: their text, what they cover, when they end."""

import pytest

from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope, covers, ended
from smartfeeds.features.accounts.bearer import digest_of, matches, parse_token, write_token

ID, SECRET = "0123456789ab", "A-z_" + "x" * 39


def token(scope: TokenScope = TokenScope.READ, feed: str = "comments", expires_us: int | None = None) -> Token:
    return Token(ID, digest_of(SECRET), "alice@example.org", scope, feed, "", 5, expires_us)


def test_token_written_and_read_is_the_same() -> None:
    text = write_token(ID, SECRET)

    assert text == f"sf_{ID}_{SECRET}"
    assert parse_token(text) == (ID, SECRET)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sf_",
        f"sf_{ID}",
        f"sf_{ID}_",
        f"sf_{ID}_{SECRET}x",
        f"sf_{ID}_{SECRET[1:]}",
        f"sf_{ID}_{SECRET}\n",
        f" sf_{ID}_{SECRET}",
        f"SF_{ID}_{SECRET}",
        f"sf_{ID.upper()}_{SECRET}",
        f"sf_{ID}_{SECRET[1:]}é",
        f"sf_{ID}_{SECRET[1:]}\ud800",
        "sf_" + "0" * 100_000,
    ],
)
def test_what_is_no_token_is_none(text: str) -> None:
    assert parse_token(text) is None


def test_only_its_own_secret_matches() -> None:
    assert matches(token(), SECRET)
    assert not matches(token(), SECRET[:-1] + "y")
    assert not matches(token(), "")
    assert len(digest_of(SECRET)) == 32 and SECRET.encode() not in digest_of(SECRET)


@pytest.mark.parametrize("has", TokenScope)
@pytest.mark.parametrize("wanted", TokenScope)
def test_scope_includes_those_before_it(has: TokenScope, wanted: TokenScope) -> None:
    order = ["read", "publish", "admin"]

    assert covers(token(has), wanted, "comments") == (order.index(wanted.text) <= order.index(has.text))


def test_covers_its_feed_alone_or_all() -> None:
    assert covers(token(), TokenScope.READ, "comments")
    assert not covers(token(), TokenScope.READ, "comments2")
    assert not covers(token(), TokenScope.READ, ALL_FEEDS)
    assert covers(token(feed=ALL_FEEDS), TokenScope.READ, "anything")


def test_ends_at_its_time_and_not_before() -> None:
    assert [ended(token(expires_us=100), now_us) for now_us in (99, 100, 101)] == [False, True, True]
    assert not ended(token(), 2**62)

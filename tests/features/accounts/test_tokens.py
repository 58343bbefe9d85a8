"""Bearer tokens in the service: who one stands for, and how it is refused."""

import hmac
from collections.abc import Callable

import pytest

from smartfeeds.core.token import ALL_FEEDS, SCOPES, Token, TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token, authenticate, revoke_token
from support.world import ALICE, FEED, MODIFIED, T0_US, S, World, refusal

ID, SECRET = "0123456789ab", "s" * 43
TEXT = write_token(ID, SECRET)


async def add(world: World, *, feed: str = FEED, scope: str = "publish", lifetime_s: int | None = None) -> bool:
    token = Token(ID, digest_of(SECRET), ALICE, SCOPES[scope], feed, "mine", 0)
    return await world.service.write(lambda tx, context: add_token(tx, context, token, lifetime_s))


async def bearer(world: World, text: str = TEXT) -> Token:
    return await world.service.read(lambda tx, context: authenticate(tx, context, text))


async def test_token_stands_for_its_jid(feed: World) -> None:
    assert await add(feed)

    expected = Token(ID, digest_of(SECRET), ALICE, TokenScope.PUBLISH, FEED, "mine", T0_US)
    assert await bearer(feed) == expected


async def test_refusals_do_not_tell_what_is_wrong(feed: World) -> None:
    """An id that is not there, a wrong secret, a token that has ended, and no token at all hear the same."""
    await add(feed, lifetime_s=60)
    texts = set()
    for text in (write_token("f" * 12, SECRET), write_token(ID, "t" * 43), "Basic x", "", TEXT):
        if text == TEXT:
            feed.clock.move(60)
        with pytest.raises(FeedError) as caught:
            await bearer(feed, text)
        assert caught.value.condition is Condition.NOT_AUTHORIZED
        texts.add(caught.value.text)

    assert len(texts) == 1


async def test_token_that_is_not_there_is_compared_like_one_that_is(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In constant time, once, with a digest of the same length."""
    await add(feed)
    lengths: list[tuple[int, int]] = []
    compare: Callable[[bytes, bytes], bool] = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        lengths.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    await bearer(feed)
    for text in (write_token("f" * 12, SECRET), write_token(ID, "t" * 43), "no token"):
        assert await refusal(bearer(feed, text)) is Condition.NOT_AUTHORIZED

    assert lengths == [(32, 32)] * 4


async def test_token_lives_as_long_as_it_was_given(feed: World) -> None:
    await add(feed, lifetime_s=90)
    feed.clock.move(89)
    assert (await bearer(feed)).expires_us == T0_US + 90 * S
    feed.clock.move(1)

    assert await refusal(bearer(feed)) is Condition.NOT_AUTHORIZED


async def test_revoked_token_ends_at_once(feed: World) -> None:
    await add(feed)
    await bearer(feed)
    gone = await feed.service.write(lambda tx, context: revoke_token(tx, context, ID))

    assert gone.jid == ALICE
    assert await refusal(bearer(feed)) is Condition.NOT_AUTHORIZED
    assert await refusal(feed.service.write(lambda tx, context: revoke_token(tx, context, ID))) is (
        Condition.ITEM_NOT_FOUND
    )


async def test_token_may_come_before_its_node_but_not_for_a_view(feed: World) -> None:
    assert await refusal(add(feed, feed=MODIFIED)) is Condition.NOT_ALLOWED
    assert await refusal(bearer(feed)) is Condition.NOT_AUTHORIZED
    assert not await add(feed, feed="later")


async def test_token_for_all_feeds_needs_no_node(feed: World) -> None:
    assert await add(feed, feed=ALL_FEEDS)

"""Sessions in the service: who they stand for, and how they end."""

import hmac
from collections.abc import Callable

import pytest

from smartfeeds.core.token import ALL_FEEDS, SCOPES, Token, TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.bearer import digest_of
from smartfeeds.features.accounts.session import IDLE_S, RENEWED_S, SESSIONS_PER_TOKEN, Session, write_session
from smartfeeds.features.accounts.sessions import (
    SWEEP,
    BeginSession,
    EndSessions,
    GetSession,
    ListSessions,
    RenewSession,
    SessionList,
    SessionShown,
    new_session,
)
from smartfeeds.features.accounts.tokens import add_token, revoke_token
from support.world import ALICE, BOB, FEED, SERVICE, S, World, jid, refusal

TOKEN_ID = "f" * 12


async def begin(world: World, user: str = ALICE, *, scope: str = "publish", token_id: str = "") -> str:
    """The cookie of a new session."""
    session, cookie = new_session(Token(token_id, b"", user, SCOPES[scope], FEED, "", 0), "Firefox")
    await world.service.handle(BeginSession(jid(user), SERVICE, session))
    return cookie


async def shown(world: World, cookie: str) -> SessionShown:
    answer = await world.service.handle(GetSession(jid("anonymous.invalid"), SERVICE, cookie))
    assert isinstance(answer, SessionShown)
    return answer


async def listed(world: World, user: str = ALICE) -> tuple[Session, ...]:
    answer = await world.service.handle(ListSessions(jid(user), SERVICE))
    assert isinstance(answer, SessionList)
    return answer.sessions


async def end(world: World, user: str, session_id: str | None) -> None:
    await world.service.handle(EndSessions(jid(user), SERVICE, session_id))


async def test_session_stands_for_its_user(feed: World) -> None:
    token = (await shown(feed, await begin(feed))).session.token
    assert (token.jid, token.scope, token.feed) == (ALICE, TokenScope.PUBLISH, FEED)


async def test_refusals_do_not_tell_what_is_wrong(feed: World) -> None:
    cookie = await begin(feed)
    session_id = cookie.split("_")[1]
    texts = set()
    for text in (write_session("f" * 12, "s" * 43), write_session(session_id, "t" * 43), "", "x", cookie):
        if text == cookie:
            feed.clock.move(IDLE_S)
        with pytest.raises(FeedError) as caught:
            await shown(feed, text)
        assert caught.value.condition is Condition.NOT_AUTHORIZED
        texts.add(caught.value.text)
    assert len(texts) == 1


async def test_session_that_does_not_exist_is_compared_like_any_other(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(feed)
    lengths: list[tuple[int, int]] = []
    compare: Callable[[bytes, bytes], bool] = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        lengths.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    for text in (write_session("f" * 12, "s" * 43), "no session"):
        assert await refusal(shown(feed, text)) is Condition.NOT_AUTHORIZED
    assert lengths == [(32, 32)] * 2


async def test_requests_move_the_end_of_a_session(feed: World) -> None:
    cookie = await begin(feed)
    feed.clock.move(RENEWED_S)
    first = await shown(feed, cookie)
    assert first.due
    await feed.service.handle(RenewSession(jid(ALICE), SERVICE, first.session.session_id))
    second = await shown(feed, cookie)
    assert not second.due
    assert second.session.expires_us == first.session.expires_us + RENEWED_S * S


async def test_ended_session_is_not_renewed(feed: World) -> None:
    cookie = await begin(feed)
    session_id = (await shown(feed, cookie)).session.session_id
    feed.clock.move(IDLE_S)
    await feed.service.handle(RenewSession(jid(ALICE), SERVICE, session_id))
    assert await refusal(shown(feed, cookie)) is Condition.NOT_AUTHORIZED


async def test_user_has_a_bounded_number_of_sessions(feed: World) -> None:
    """The session that was unused for the longest time ends; other users keep theirs."""
    other = await begin(feed, BOB)
    cookies = []
    for _ in range(SESSIONS_PER_TOKEN + 1):
        feed.clock.move(1)
        cookies.append(await begin(feed))
    assert await refusal(shown(feed, cookies[0])) is Condition.NOT_AUTHORIZED
    assert [one.session_id for one in await listed(feed)] == [text.split("_")[1] for text in reversed(cookies[1:])]
    await shown(feed, other)


async def test_token_with_few_rights_ends_no_other_session(feed: World) -> None:
    """Whoever has a token for reading could otherwise sign its user out everywhere."""
    token = Token(TOKEN_ID, digest_of("s"), ALICE, TokenScope.READ, ALL_FEEDS, "", 0)
    await feed.service.write(lambda tx, ctx: add_token(tx, ctx, token, None))
    own = await begin(feed)
    cookies = []
    for _ in range(SESSIONS_PER_TOKEN + 1):
        feed.clock.move(1)
        cookies.append(await begin(feed, token_id=TOKEN_ID))
    await shown(feed, own)
    assert await refusal(shown(feed, cookies[0])) is Condition.NOT_AUTHORIZED
    assert len(await listed(feed)) == SESSIONS_PER_TOKEN + 1


async def test_user_ends_one_session_or_all_of_them(feed: World) -> None:
    first, second, other = await begin(feed), await begin(feed), await begin(feed, BOB)
    session_id = first.split("_")[1]
    assert await refusal(end(feed, BOB, session_id)) is Condition.ITEM_NOT_FOUND
    await end(feed, ALICE, session_id)
    assert await refusal(shown(feed, first)) is Condition.NOT_AUTHORIZED
    await shown(feed, second)
    await end(feed, ALICE, None)
    assert await refusal(shown(feed, second)) is Condition.NOT_AUTHORIZED
    await shown(feed, other)


async def test_session_ends_when_its_token_is_revoked_or_expires(feed: World) -> None:
    for lifetime_s in (None, 60):
        token = Token(TOKEN_ID, digest_of("s"), ALICE, TokenScope.READ, ALL_FEEDS, "", 0)
        await feed.service.write(lambda tx, ctx, token=token, s=lifetime_s: add_token(tx, ctx, token, s))
        cookie = await begin(feed, token_id=TOKEN_ID)
        await shown(feed, cookie)
        if lifetime_s is None:
            await feed.service.write(lambda tx, context: revoke_token(tx, context, TOKEN_ID))
        else:
            feed.clock.move(lifetime_s)
        assert await refusal(shown(feed, cookie)) is Condition.NOT_AUTHORIZED
    assert await listed(feed) == ()


async def test_session_does_not_begin_with_a_revoked_token(feed: World) -> None:
    assert await refusal(begin(feed, token_id=TOKEN_ID)) is Condition.NOT_AUTHORIZED


async def test_sweep_removes_ended_sessions(feed: World) -> None:
    await begin(feed)
    feed.clock.move(IDLE_S)
    await begin(feed)
    await SWEEP.sweep(feed.service)
    stored = await feed.service.read(lambda tx, _context: account_rows.sessions_of(tx, ALICE))
    assert tuple(stored) == await listed(feed) != ()


def test_secret_of_a_cookie_is_not_in_a_representation() -> None:
    assert "hidden" not in repr(GetSession(jid(ALICE), SERVICE, "hidden"))

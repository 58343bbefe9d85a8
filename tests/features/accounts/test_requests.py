"""Tokens by requests: the service checks the rights, whichever wire a request comes from."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition
from smartfeeds.features.accounts import rows
from smartfeeds.features.accounts.listing import AddToken, ListTokens, RevokeToken
from smartfeeds.features.accounts.tokens import new_token
from smartfeeds.service.resources import ListAnswer
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid, refusal


@pytest.fixture
async def administered(feed: World) -> World:
    """The service with an admin, BOB, and a feed of OWNER."""
    feed.service.policy = replace(feed.service.policy, admins=frozenset({BOB}), creators=frozenset({OWNER}))
    return feed


@pytest.mark.parametrize(("who", "of", "node"), [(OWNER, ALICE, FEED), (ALICE, ALICE, FEED), (OWNER, OWNER, "*")])
async def test_token_beyond_the_rights_of_the_actor_is_forbidden(
    administered: World, who: str, of: str, node: str
) -> None:
    token, _ = new_token(of, TokenScope.READ, node, "")

    assert await refusal(administered.service.handle(AddToken(jid(who), SERVICE, token, None))) is Condition.FORBIDDEN


async def test_token_of_another_user_does_not_exist(administered: World) -> None:
    token, _ = new_token(OWNER, TokenScope.READ, FEED, "")
    await administered.service.handle(AddToken(jid(OWNER), SERVICE, token, None))

    request = RevokeToken(jid(ALICE), SERVICE, token.token_id)
    assert await refusal(administered.service.handle(request)) is Condition.ITEM_NOT_FOUND
    await administered.service.handle(replace(request, actor=jid(OWNER)))
    assert await refusal(administered.service.handle(replace(request, actor=jid(BOB)))) is Condition.ITEM_NOT_FOUND


def record(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """The number of rows of each call of a statement, from now on."""
    counts: list[int] = []
    read: Callable[..., list[object]] = getattr(rows, name)

    def recorded(*args: object) -> list[object]:
        found = read(*args)
        counts.append(len(found))
        return found

    monkeypatch.setattr(rows, name, recorded)
    return counts


async def test_tokens_of_others_are_not_read(administered: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the list nor for the count of a new token."""
    for number in range(5):
        token, _ = new_token(f"u{number}@example.org", TokenScope.READ, FEED, "")
        await administered.service.handle(AddToken(jid(BOB), SERVICE, token, None))
    own, of_all = record(monkeypatch, "tokens_of"), record(monkeypatch, "tokens")

    token, _ = new_token(OWNER, TokenScope.READ, FEED, "")
    await administered.service.handle(AddToken(jid(OWNER), SERVICE, token, None))
    answer = await administered.service.handle(ListTokens(jid(OWNER), SERVICE))

    assert isinstance(answer, ListAnswer)
    assert [shown.token.token_id for shown in answer.entries] == [token.token_id]
    assert (own, of_all) == ([0, 1], [])

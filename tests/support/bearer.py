"""Bearer tokens for tests."""

import itertools

from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token
from support.component import bare
from support.web import Web

_NUMBERS = itertools.count(1)


async def bearer(web: Web, user: str, scope: TokenScope, feed: str = ALL_FEEDS, lifetime_s: int | None = None) -> str:
    """A new token of this user, as its Authorization header."""
    number = next(_NUMBERS)
    token_id, secret = f"{number:012x}", f"{number:043d}"
    token = Token(token_id, digest_of(secret), bare(user), scope, feed, "", 0)
    await web.component.app.service.write(lambda tx, context: add_token(tx, context, token, lifetime_s))
    return f"Bearer {write_token(token_id, secret)}"

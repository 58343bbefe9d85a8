"""Creates, checks and revokes bearer tokens.

Each request reads its token from the store, so a revoked token ends at once. A request with a token acts as the
JID of the token. The rules of the use cases apply, and the scope of the token limits them further (`token`).
"""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope, ended
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows
from smartfeeds.features.accounts.bearer import ID_CHARACTERS, digest_of, matches, parse_token, write_token
from smartfeeds.service.context import Context, check_admitted, find
from smartfeeds.store.base import ReadTx, WriteTx

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

SECRET_BYTES = 32  # 256 random bits, too many to guess
# Stands for an unknown token. Its secret is compared too: the response time must not reveal which tokens exist.
_NOBODY = Token("", digest_of(""), "", TokenScope.READ, "", "", 0, 0)


def authenticate(tx: ReadTx, context: Context, text: str) -> Token:
    """Returns the token with this text. Raises FeedError: NOT_AUTHORIZED, which does not reveal what is wrong, or
    FORBIDDEN if the JID of the token may not use the service.
    """
    token_id, secret = parse_token(text) or ("", "")
    token = tx.token(token_id) or _NOBODY
    right = matches(token, secret)
    if not right or token is _NOBODY or ended(token, context.now_us):
        raise FeedError(Condition.NOT_AUTHORIZED, "this token is not known, revoked or expired: ask for a new one")
    check_admitted(tx, context.policy, token.actor)
    return token


class BearerTokens:
    """Reads the bearer tokens of requests from the store."""

    def __init__(self, service: "FeedService") -> None:
        self._service = service

    async def read(self, text: str) -> Token:
        """Returns the token with this text. Raises FeedError, as `authenticate`."""
        return await self._service.read(lambda tx, context: authenticate(tx, context, text), turn="tokens")


def new_token(jid: str, scope: TokenScope, feed: str, label: str) -> tuple[Token, str]:
    """Returns a token for `add_token`, with a random id and secret, and the text for its bearer."""
    token_id, secret = secrets.token_hex(ID_CHARACTERS // 2), secrets.token_urlsafe(SECRET_BYTES)
    return Token(token_id, digest_of(secret), jid, scope, feed, label, 0), write_token(token_id, secret)


def tokens_by_age(tx: ReadTx) -> list[Token]:
    """Returns all tokens, oldest first. Their number is small."""
    return sorted(rows.tokens(tx, "", NO_LIMIT), key=lambda token: (token.created_us, token.token_id))


def add_token(tx: WriteTx, context: Context, token: Token, lifetime_s: int | None) -> bool:
    """Stores a new token that starts now and ends after its lifetime (None: never). The times of `token` are ignored.

    Returns whether the node of the token exists; it need not exist. Raises FeedError if the token names a view.
    """
    located = None if token.feed == ALL_FEEDS else find(tx, token.feed)
    if located is not None and located.view.smart:
        raise FeedError(
            Condition.NOT_ALLOWED, f"name the node itself, {located.node.name}: a token is for all its views"
        )
    expires_us = None if lifetime_s is None else context.now_us + lifetime_s * US_PER_S
    rows.add_token(tx, replace(token, created_us=context.now_us, expires_us=expires_us))
    return located is not None or token.feed == ALL_FEEDS


def revoke_token(tx: WriteTx, _context: Context, token_id: str) -> Token:
    """Removes a token and returns it. Raises FeedError(ITEM_NOT_FOUND)."""
    token = tx.token(token_id)
    if token is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "there is no such token: smartfeeds token list shows all")
    rows.remove_token(tx, token_id)
    return token

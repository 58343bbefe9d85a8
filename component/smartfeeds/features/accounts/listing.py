"""Administration of bearer tokens by requests: users manage the tokens for their own JID, admins all tokens."""

from dataclasses import dataclass
from typing import NamedTuple

from smartfeeds.core.times import format_datetime
from smartfeeds.core.token import ALL_FEEDS, Token, ended
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows, tokens
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.paged_lists import listed_bytes, listing_of, page_of
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.standing import manages
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx

TOKENS_PER_JID = 100  # tokens that a user without admin rights may have


class ListedToken(NamedTuple):
    """A token, and whether it has expired."""

    token: Token
    expired: bool

    @property
    def end(self) -> str:
        """Its end for forms."""
        if self.token.expires_us is None:
            return "never"
        return f"{format_datetime(self.token.expires_us)}{' (expired)' if self.expired else ''}"


def listed(tokens: tuple[Token, ...], now_us: int) -> list[ListedToken]:
    """Returns tokens for a list."""
    return [ListedToken(token, ended(token, now_us)) for token in tokens]


@dataclass(frozen=True, slots=True)
class AddToken(Request):
    """Stores a new token, whose times are ignored. `lifetime_s` None means that it does not expire."""

    token: Token
    lifetime_s: int | None


@dataclass(frozen=True, slots=True)
class TokenAdded(Answer):
    """`node_there` is false if the node of the token does not exist yet."""

    node_there: bool


@dataclass(frozen=True, slots=True)
class ListTokens(ListRequest):
    """The tokens that the actor may revoke, oldest first: all of them for an admin, else its own."""


@dataclass(frozen=True, slots=True)
class RevokeToken(Request):
    """Revokes a token of the actor, or any token for an admin."""

    token_id: str


@dataclass(frozen=True, slots=True)
class TokenRevoked(Answer):
    """The token that was revoked."""

    token: Token


def add_token(tx: WriteTx, context: Context, request: AddToken) -> TokenAdded:
    """Stores a token. Users who are not admins may only create tokens for themselves, for a node that they own.

    Raises FeedError: FORBIDDEN; POLICY_VIOLATION if the actor has `TOKENS_PER_JID` tokens.
    """
    actor, token = request.actor, request.token
    if not is_admin(context.policy, actor):
        owned = token.feed != ALL_FEEDS and manages(tx, context, actor, tx.node(token.feed))
        if token.jid != actor.bare_text or not owned:
            raise FeedError(Condition.FORBIDDEN, "you may create tokens for your own JID and a node that you own")
        tx.lock_quotas(token.jid)  # until the new row is stored: another process must count it
        if len(rows.tokens_of(tx, token.jid)) >= TOKENS_PER_JID:
            raise FeedError(Condition.POLICY_VIOLATION, f"you have {TOKENS_PER_JID} tokens; revoke one first")
    return TokenAdded(tokens.add_token(tx, context, token, request.lifetime_s))


def list_tokens(tx: ReadTx, context: Context, request: ListTokens) -> ListAnswer[ListedToken]:
    """The tokens that the actor may revoke."""
    actor = request.actor
    revocable = tokens.tokens_by_age(tx) if is_admin(context.policy, actor) else rows.tokens_of(tx, actor.bare_text)
    listing = listing_of(revocable, lambda token: listed_bytes(token.jid, token.feed))
    entries, result_set = page_of(listing, request.page, context.policy)
    return ListAnswer(listed(entries, context.now_us), result_set)


def revoke_token(tx: WriteTx, context: Context, request: RevokeToken) -> TokenRevoked:
    """Revokes a token. A token of somebody else does not exist for users who are not admins.

    Raises FeedError(ITEM_NOT_FOUND).
    """
    token = tx.token(request.token_id)
    foreign = token is not None and token.jid != request.actor.bare_text
    if foreign and not is_admin(context.policy, request.actor):
        raise FeedError(Condition.ITEM_NOT_FOUND, "you have no such token; the list of tokens shows yours")
    return TokenRevoked(tokens.revoke_token(tx, context, request.token_id))


USE_CASES = UseCases(
    reads={ListTokens: ("list_tokens", list_tokens)},
    writes={AddToken: ("add_token", add_token), RevokeToken: ("revoke_token", revoke_token)},
)

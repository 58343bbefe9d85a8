"""Administration of tokens, mirrors and consumers by requests: rights first, then the functions of the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from smartfeeds.core.access import RIGHTS
from smartfeeds.core.consumers import ConsumerRow
from smartfeeds.core.mirror import make_mirror
from smartfeeds.core.model import Affiliation, KeyRange, Node
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.tokens import ALL_FEEDS, Token
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.service.administration import check_admin
from smartfeeds.service.consumers import (
    FIRST,
    ConsumerState,
    ConsumerStatus,
    place_of,
    retry_consumers,
    status_of,
)
from smartfeeds.service.context import Context, affiliation_of, is_admin
from smartfeeds.service.lists import listed_bytes, listing_of, page_of
from smartfeeds.service.mirrors import MirrorStatus, add_mirror, mirror_statuses, remove_mirror, restart_mirror
from smartfeeds.service.requests import Answer, Request, ResultSet
from smartfeeds.service.tokens import add_token, revoke_token, tokens_by_age
from smartfeeds.store.base import ReadTx, WriteTx

T = TypeVar("T")

TOKENS_PER_JID = 100  # tokens that a user without admin rights may have
# Consumers, and nodes of an owner, that one request examines.
CONSUMERS_READ = 500
NODES_READ = 100


# Tokens.


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
class ListTokens(Request):
    """The tokens that the actor may revoke: all of them for an admin, else its own."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class TokenList(Answer):
    """Tokens, oldest first, and the time in microseconds, at which some of them may have expired."""

    tokens: tuple[Token, ...]
    result_set: ResultSet | None
    now_us: int


@dataclass(frozen=True, slots=True)
class RevokeToken(Request):
    """Revokes a token of the actor, or any token for an admin."""

    token_id: str


@dataclass(frozen=True, slots=True)
class TokenRevoked(Answer):
    """The token that was revoked."""

    token: Token


def create_token(tx: WriteTx, context: Context, request: AddToken) -> TokenAdded:
    """Stores a token. Users who are not admins may only create tokens for themselves, for a node that they own.

    Raises FeedError: FORBIDDEN; POLICY_VIOLATION if the actor has `TOKENS_PER_JID` tokens.
    """
    actor, token = request.actor, request.token
    if not is_admin(context.policy, actor):
        owned = token.feed != ALL_FEEDS and _manages(tx, context, request, tx.node(token.feed))
        if token.jid != str(actor.bare) or not owned:
            raise FeedError(Condition.FORBIDDEN, "you may create tokens for your own JID and a node that you own")
        if len(_tokens_of(tx, context, request)) >= TOKENS_PER_JID:
            raise FeedError(Condition.POLICY_VIOLATION, f"you have {TOKENS_PER_JID} tokens; revoke one first")
    return TokenAdded(add_token(tx, context, token, request.lifetime_s))


def list_tokens(tx: ReadTx, context: Context, request: ListTokens) -> TokenList:
    """The tokens that the actor may revoke."""
    listing = listing_of(_tokens_of(tx, context, request), lambda token: listed_bytes(token.jid, token.feed))
    tokens, result_set = page_of(listing, request.page, context.policy)
    return TokenList(tokens, result_set, context.now_us)


def remove_token(tx: WriteTx, context: Context, request: RevokeToken) -> TokenRevoked:
    """Revokes a token. A token of somebody else does not exist for users who are not admins.

    Raises FeedError(ITEM_NOT_FOUND).
    """
    token = tx.token(request.token_id)
    foreign = token is not None and token.jid != str(request.actor.bare)
    if foreign and not is_admin(context.policy, request.actor):
        raise FeedError(Condition.ITEM_NOT_FOUND, "you have no such token; the list of tokens shows yours")
    return TokenRevoked(revoke_token(tx, context, request.token_id))


def _tokens_of(tx: ReadTx, context: Context, request: Request) -> list[Token]:
    tokens = tokens_by_age(tx)
    if is_admin(context.policy, request.actor):
        return tokens
    bare = str(request.actor.bare)
    return [token for token in tokens if token.jid == bare]


# Mirrors.


@dataclass(frozen=True, slots=True)
class AddMirror(Request):
    """Adds a mirror with the settings of `core.mirror.make_mirror`."""

    address: str
    node: str
    name: str
    direction: str
    owner: str
    every_s: float
    own_edits: bool
    allow_private: bool


@dataclass(frozen=True, slots=True)
class MirrorNamed(Answer):
    """The name of a mirror, and its local node."""

    name: str
    node: str


@dataclass(frozen=True, slots=True)
class ListMirrors(Request):
    """The mirrors with their state; with `name` only this one."""

    name: str | None = None
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class MirrorList(Answer):
    """Mirrors by name."""

    statuses: tuple[MirrorStatus, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class RemoveMirror(Request):
    """Ends a mirror."""

    name: str


@dataclass(frozen=True, slots=True)
class RestartMirror(Request):
    """Makes a mirror read and send everything again."""

    name: str


def create_mirror(tx: WriteTx, context: Context, request: AddMirror) -> MirrorNamed:
    """Adds a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE with the reason."""
    check_admin(context.policy, request.actor)

    def add() -> MirrorNamed:
        mirror = make_mirror(
            node=request.node,
            address=request.address,
            name=request.name,
            direction=request.direction,
            owner=request.owner,
            every_s=request.every_s,
            own_edits=request.own_edits,
            allow_private=request.allow_private,
        )
        add_mirror(tx, context, mirror)
        return MirrorNamed(mirror.name, mirror.node)

    return _within(add)


def list_mirrors(tx: ReadTx, context: Context, request: ListMirrors) -> MirrorList:
    """The mirrors with their state, those of its nodes for an owner. The cost grows with the number of items that are
    still to be sent.
    """
    statuses = [
        status
        for status in mirror_statuses(tx, context)
        if request.name in (None, status.mirror.name) and _manages(tx, context, request, tx.node(status.mirror.node))
    ]
    if request.name is not None and not statuses:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"there is no mirror {request.name}")
    listing = listing_of(statuses, lambda status: listed_bytes(status.mirror.node, status.mirror.address))
    return MirrorList(*page_of(listing, request.page, context.policy))


def end_mirror(tx: WriteTx, context: Context, request: RemoveMirror) -> MirrorNamed:
    """Ends a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE if it is unknown or configured."""
    check_admin(context.policy, request.actor)
    mirror = _within(partial(remove_mirror, tx, context, request.name))
    return MirrorNamed(mirror.name, mirror.node)


def repeat_mirror(tx: WriteTx, context: Context, request: RestartMirror) -> MirrorNamed:
    """Restarts a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE if it is unknown."""
    check_admin(context.policy, request.actor)
    mirror = _within(partial(restart_mirror, tx, context, request.name))
    return MirrorNamed(mirror.name, mirror.node)


def _within(work: Callable[[], T]) -> T:
    """Returns the result of work that raises ConfigError for settings that a user may correct."""
    try:
        return work()
    except ConfigError as error:
        raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None


# Consumers.


@dataclass(frozen=True, slots=True)
class ListConsumers(Request):
    """The consumers behind a place, those of its nodes for an owner. `behind` excludes current ones."""

    behind: bool = False
    after: tuple[int, str, str] = FIRST
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ConsumerList(Answer):
    """Consumers, and the position after which the list continues; None at its end."""

    statuses: tuple[ConsumerStatus, ...]
    after: tuple[int, str, str] | None


@dataclass(frozen=True, slots=True)
class RetryConsumers(Request):
    """Retries the consumers of this name that fail, or all of them if it is None."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ConsumersRetried(Answer):
    """The number of consumers that will be retried."""

    count: int


def list_consumers(tx: ReadTx, context: Context, request: ListConsumers) -> ConsumerList:
    """Consumers with their lag and their last error, those of its nodes for an owner."""
    rows, after = _consumers_of(tx, context, request)
    statuses: list[ConsumerStatus] = []
    for row in rows:
        status = status_of(tx, context, row)
        if request.behind and status.state is ConsumerState.CURRENT:
            continue
        if len(statuses) == request.limit:
            last = statuses[-1]
            return ConsumerList(tuple(statuses), (last.consumer.node_no, last.order.value, last.consumer.name))
        statuses.append(status)
    return ConsumerList(tuple(statuses), after)


def _consumers_of(
    tx: ReadTx, context: Context, request: ListConsumers
) -> tuple[list[ConsumerRow], tuple[int, str, str] | None]:
    """Returns the next consumers of the nodes that the actor manages, and the place where the list continues."""
    limit = CONSUMERS_READ if request.behind else request.limit
    if is_admin(context.policy, request.actor):
        rows = tx.consumers(request.after, limit)
        return rows, place_of(rows[-1]) if len(rows) == limit else None
    # An owner has few of the nodes, so their consumers are sought instead of selected from all.
    part = KeyRange(NODES_READ, after=request.after[0] - 1)
    nodes = tx.affiliations_of(str(request.actor.bare), part, kind=Affiliation.OWNER)
    rows = []
    for node, _ in nodes:
        following = tx.consumers(max(request.after, (node.node_no, "", "")), limit)
        own = [row for row in following if row.consumer.node_no == node.node_no]
        rows += own
        if len(own) == limit:
            return rows, place_of(rows[-1])
    return rows, (nodes[-1][0].node_no + 1, "", "") if len(nodes) == NODES_READ else None


def _manages(tx: ReadTx, context: Context, request: Request, node: Node | None) -> bool:
    """Whether the actor may configure the node. An admin also manages the mirrors of nodes that do not exist yet."""
    if node is None:
        return is_admin(context.policy, request.actor)
    return RIGHTS[affiliation_of(tx, context, node, request.actor)].manage


def retry_failed(tx: WriteTx, context: Context, request: RetryConsumers) -> ConsumersRetried:
    """Retries consumers. Raises FeedError: FORBIDDEN, ITEM_NOT_FOUND if no consumer of this name fails."""
    check_admin(context.policy, request.actor)
    return ConsumersRetried(len(retry_consumers(tx, context, request.name)))

"""Begins, reads, renews and ends the sessions of browsers (`session`).

Each request reads its session from the store, so a session that its user ends, or whose token is revoked, ends at once.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope, covers
from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows
from smartfeeds.features.accounts.bearer import ID_CHARACTERS, digest_of
from smartfeeds.features.accounts.session import (
    MAX_LABEL_CHARACTERS,
    SESSIONS_PER_TOKEN,
    Session,
    begun,
    is_due,
    matches,
    parse_session,
    renewed,
    write_session,
)
from smartfeeds.features.accounts.tokens import SECRET_BYTES
from smartfeeds.service.context import Context, check_admitted, is_admin
from smartfeeds.service.requests import Answer, EmptyResult, Request
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx

STEP = 500  # sessions that one transaction removes: some 5 ms
# Stands for an unknown session. Its secret is compared too: the response time must not reveal which sessions exist.
_NOBODY = Session("", digest_of(""), "", TokenScope.READ, "", "", "")


@dataclass(frozen=True, slots=True)
class BeginSession(Request):
    """Stores a new session of the actor (`new_session`), whose times are ignored."""

    session: Session


@dataclass(frozen=True, slots=True)
class GetSession(Request):
    """The session of the browser that sends this cookie."""

    cookie: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionShown(Answer):
    """A session that has not ended. `due`: it is time to renew it. `admin`: it may administer the service."""

    session: Session
    due: bool
    admin: bool


@dataclass(frozen=True, slots=True)
class RenewSession(Request):
    """Moves the end of a session, because a request came from its browser."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ListSessions(Request):
    """The sessions of the actor; with a `token_id` only those that began with this token."""

    token_id: str = ""


@dataclass(frozen=True, slots=True)
class SessionList(Answer):
    """Sessions that have not ended, the one that was used last first."""

    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class EndSessions(Request):
    """Ends a session of the actor, or all of them if `session_id` is None; with a `token_id` only sessions that began
    with this token."""

    session_id: str | None
    token_id: str = ""


def new_session(token: Token, label: str) -> tuple[Session, str]:
    """Returns a session for `BeginSession` with the rights of a token, and the text of its cookie."""
    session_id, secret = secrets.token_hex(ID_CHARACTERS // 2), secrets.token_urlsafe(SECRET_BYTES)
    session = Session(
        session_id,
        digest_of(secret),
        token.jid,
        token.scope,
        token.feed,
        token.token_id,
        label[:MAX_LABEL_CHARACTERS],
    )
    return session, write_session(session_id, secret)


def begin_session(tx: WriteTx, context: Context, request: BeginSession) -> EmptyResult:
    """Stores a session. Ends the session that was unused for the longest time if too many began with the same token.
    The sign-ins through XMPP count together.

    Raises FeedError(NOT_AUTHORIZED) if the token of the session was revoked meanwhile.
    """
    session = request.session
    token = tx.token(session.token_id) if session.token_id else None
    if session.token_id and token is None:
        raise FeedError(Condition.NOT_AUTHORIZED, "this token was revoked: ask for a new one")
    tx.lock_quotas(session.jid)  # until the new row is stored: another process must count it
    former = [stored for stored in rows.sessions_of(tx, session.jid) if stored.token_id == session.token_id]
    for unused in former[: max(0, len(former) + 1 - SESSIONS_PER_TOKEN)]:
        rows.remove_session(tx, unused.session_id)
    rows.put_session(tx, begun(session, context.now_us, None if token is None else token.expires_us))
    return EmptyResult()


def get_session(tx: ReadTx, context: Context, request: GetSession) -> SessionShown:
    """Returns the session of a cookie. Raises FeedError: NOT_AUTHORIZED, which does not reveal what is wrong, or
    FORBIDDEN if its user may not use the service.
    """
    session_id, secret = parse_session(request.cookie) or ("", "")
    session = rows.session(tx, session_id) or _NOBODY
    right = matches(session, secret)
    if not right or session is _NOBODY or session.expires_us <= context.now_us:
        raise FeedError(Condition.NOT_AUTHORIZED, "this session has ended: sign in again")
    token = session.token
    check_admitted(tx, context.policy, token.actor)
    admin = is_admin(context.policy, token.actor) and covers(token, TokenScope.ADMIN, ALL_FEEDS)
    return SessionShown(session, is_due(session, context.now_us), admin)


def renew_session(tx: WriteTx, context: Context, request: RenewSession) -> EmptyResult:
    """Moves the end of a session, unless it has ended meanwhile."""
    session = rows.session(tx, request.session_id)
    if session is not None and session.expires_us > context.now_us:
        rows.put_session(tx, renewed(session, context.now_us))
    return EmptyResult()


def list_sessions(tx: ReadTx, context: Context, request: ListSessions) -> SessionList:
    """Returns the sessions of the actor. Their number is bounded by SESSIONS_PER_TOKEN and by the
    number of tokens (TOKENS_PER_JID)."""
    sessions = _sessions(tx, request)
    return SessionList(tuple(session for session in reversed(sessions) if session.expires_us > context.now_us))


def end_sessions(tx: WriteTx, _context: Context, request: EndSessions) -> EmptyResult:
    """Ends a session of the actor, or all. A session of somebody else does not exist for the actor.

    Raises FeedError(ITEM_NOT_FOUND).
    """
    own = [session.session_id for session in _sessions(tx, request)]
    if request.session_id is not None and request.session_id not in own:
        raise FeedError(Condition.ITEM_NOT_FOUND, "you have no such session; it may have ended already")
    for session_id in own if request.session_id is None else [request.session_id]:
        rows.remove_session(tx, session_id)
    return EmptyResult()


def _sessions(tx: ReadTx, request: ListSessions | EndSessions) -> list[Session]:
    sessions = rows.sessions_of(tx, request.actor.bare_text)
    return [session for session in sessions if request.token_id in ("", session.token_id)]


def due_sessions(tx: ReadTx, context: Context, _after: int) -> tuple[Sequence[WriteStep[None]], None]:
    """Returns `remove_ended` if a session has ended. A read costs less than an empty transaction."""
    return ([remove_ended] if rows.ended_sessions(tx, context.now_us, 1) else []), None


def remove_ended(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
    """Removes the sessions that have ended."""
    session_ids = rows.ended_sessions(tx, context.now_us, STEP)
    for session_id in session_ids:
        rows.remove_session(tx, session_id)
    return MoreSteps(remove_ended) if len(session_ids) == STEP else None


USE_CASES = UseCases(
    reads={GetSession: ("get_session", get_session), ListSessions: ("list_sessions", list_sessions)},
    writes={
        BeginSession: ("begin_session", begin_session),
        RenewSession: ("renew_session", renew_session),
        EndSessions: ("end_sessions", end_sessions),
    },
)
# The pause bounds only how long ended sessions use space: requests never see them.
SWEEP = Sweep("sessions", due_sessions, 600.0)

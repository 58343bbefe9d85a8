"""Bearer tokens and sessions in SQL. The kernel reads a token that it knows by its id (`ReadTx.token`)."""

from smartfeeds.core.token import SCOPES, Token
from smartfeeds.features.accounts.session import Session
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_records import to_token
from smartfeeds.store.sql_tables import TOKEN, Table

SESSION = Table(
    "session",
    "session_id",
    "digest, jid, scope, feed, token_id, label, created_us, seen_us, expires_us, limit_us",
)


def to_session(row: Row) -> Session:
    """A session from the columns of SESSION. Raises KeyError."""
    session_id, digest, jid, scope, *rest = row
    return Session(session_id, digest, jid, SCOPES[scope], *rest)


def tokens(tx: ReadTx, after: str, limit: int) -> list[Token]:
    """Returns bearer tokens by id."""
    statement = f"{TOKEN.select} WHERE token_id > ? ORDER BY token_id LIMIT ?"
    return tx.values(TOKEN, to_token, statement, (after,), limit)


def tokens_of(tx: ReadTx, jid: str) -> list[Token]:
    """Returns the bearer tokens of a bare JID, oldest first. The cost grows with the result."""
    rows = tx.db.rows(f"{TOKEN.select} WHERE jid = ? ORDER BY created_us, token_id", (jid,))
    return undamaged(TOKEN, to_token, rows)


def session(tx: ReadTx, session_id: str) -> Session | None:
    """Returns the session with this id, even if it has ended."""
    row = tx.db.row(f"{SESSION.select} WHERE session_id = ?", (session_id,))
    return to_session(row) if row else None


def sessions_of(tx: ReadTx, jid: str) -> list[Session]:
    """Returns the sessions of a bare JID, the one that was used last at the end. The cost grows with the result."""
    rows = tx.db.rows(f"{SESSION.select} WHERE jid = ? ORDER BY seen_us, session_id", (jid,))
    return undamaged(SESSION, to_session, rows)


def ended_sessions(tx: ReadTx, now_us: int, limit: int) -> list[str]:
    """Returns the ids of the first sessions that have ended by this time."""
    rows = tx.db.rows(
        "SELECT session_id FROM session WHERE expires_us <= ? ORDER BY expires_us LIMIT ?", (now_us, limit)
    )
    return [str(row[0]) for row in rows]


def add_token(tx: WriteTx, token: Token) -> None:
    """Stores a new bearer token. Raises StoreError if its id exists."""
    scope, ends = token.scope.text, token.expires_us
    values = (token.token_id, token.digest, token.jid, scope, token.feed, token.label, token.created_us, ends)
    tx.change(TOKEN.insert, values)


def remove_token(tx: WriteTx, token_id: str) -> None:
    """Removes a bearer token, and the sessions of users who signed in with it."""
    tx.change(TOKEN.delete, (token_id,))
    tx.change("DELETE FROM session WHERE token_id = ?", (token_id,))


def put_session(tx: WriteTx, session: Session) -> None:
    """Stores a session, or replaces it."""
    s = session
    scope, times = s.scope.text, (s.created_us, s.seen_us, s.expires_us, s.limit_us)
    values = (s.session_id, s.digest, s.jid, scope, s.feed, s.token_id, s.label, *times)
    tx.change(SESSION.replace, values)


def remove_session(tx: WriteTx, session_id: str) -> None:
    """Removes a session."""
    tx.change(SESSION.delete, (session_id,))

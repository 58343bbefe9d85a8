"""Errors of PostgreSQL as errors of the store, with advice for the operator.

The SQLSTATE decides (PostgreSQL 15 manual, appendix A). libpq gives none for a connection that could not be opened, so
the text of the server decides there.
"""

import psycopg

from smartfeeds.errors import StoreError
from smartfeeds.store.engine import TransientError

UNREACHABLE = "the server cannot be reached; check that it runs, its address and the network"
_STARTING = "the server is starting or stopping; the service tries again by itself"
_TOO_MANY = "the server has too many connections; raise max_connections or end other clients"

# SQLSTATE, or its first two characters -> advice.
_ADVICE = {
    "53100": "the disk is full; free disk space (no acknowledged write is lost)",
    "53200": "the server has too little memory; add memory or lower its settings",
    "53300": _TOO_MANY,
    "25006": "it is read-only, probably a standby; name all hosts with target_session_attrs=read-write",
    "57P01": "the server was shut down or has ended the connection; the service connects again by itself",
    "57P02": "the server has crashed and restarts; the service connects again by itself",
    "57P03": _STARTING,
    "57014": "a statement took too long and was cancelled; look for long transactions of other programs",
    "25P03": "the transaction was idle for too long and was ended; the machine may be overloaded",
    "55P03": "a row is locked for too long; look for long transactions of other programs",
    "28P01": "the password is missing or wrong; check it, its file (store.password_file, --password-file) and the user",
    "28000": "the server rejects the user; check store.url and pg_hba.conf of the server",
    "3D000": "it does not exist; create it with createdb, or check store.url",
    "42501": "the user may not do this; make it the owner of the database",
    "54000": "a value is too large",
    "22021": "a text contains a character that PostgreSQL cannot store",
    "40001": "another transaction has changed the same rows; try again",
    "40P01": "transactions waited for each other; try again",
    "23": "a write would have made the data inconsistent and was rejected; report this as a bug",
    "42": "its tables are not those of this program; check store.url, or report this as a bug",
    "XX": "it is damaged or the server has an error; look at the log of the server",
    "58": "the server cannot use its disk; look at the log of the server",
}
# Parts of the server's text -> SQLSTATE, for connections that could not be opened. The first match counts. A server
# that writes in another language matches none, and its errors get the advice `UNREACHABLE`.
_TEXTS = {
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    "pg_hba.conf rejects": "28000",
    "authentication failed": "28000",
    "too many clients": "53300",
    "too many connections": "53300",
    'role "': "28000",
    "does not exist": "3D000",
    "remaining connection slots": "53300",
    "the database system is": "57P03",
    "session is read-only": "25006",
    "session is not read-only": "25006",
    "server is in hot standby mode": "25006",
}
_LOST = "lost"
# What may be gone at the next attempt: works of the store run again after it. SQLSTATE -> the reason in metrics.
_TRANSIENT = {
    "40001": "serialization",
    "40P01": "deadlock",
    "23505": "unique",
    **dict.fromkeys(("57P01", "57P02", "57P03", "25P03", "53300"), _LOST),
}
# What a new attempt to connect may find gone; "": no server has answered. A server that was just promoted may still be
# read-only.
_PASSING = {"", "57P03", "57P01", "57P02", "53300", "25006"}


def sqlstate_of(error: Exception) -> str:
    """Returns the SQLSTATE of an error, "" if it has none."""
    state = getattr(error, "sqlstate", None)
    if state:
        return str(state)
    if isinstance(error, psycopg.OperationalError):
        return next((code for text, code in _TEXTS.items() if text in str(error)), "")
    return ""


def has_rolled_back(error: Exception) -> bool:
    """Returns whether a commit that raised this error has certainly not happened: the server has answered with an error
    of a statement, or the statement was not sent.

    The server may end a session right after a commit, and psycopg may then report the state of its pipeline while the
    connection still seems to be open.
    """
    return not isinstance(error, psycopg.OperationalError) or error.diag.severity_nonlocalized == "ERROR"


def may_connect_later(error: psycopg.Error) -> bool:
    """Returns whether a new attempt to open a connection may succeed after this error."""
    return sqlstate_of(error) in _PASSING


def postgres_error(error: Exception, name: str, *, lost: bool = False) -> StoreError:
    """Returns the StoreError for an error, with advice. It is a `TransientError` if the transaction may run again.

    `name` is the address of the database without a password. `lost`: the connection ended with this error.
    """
    state = sqlstate_of(error)
    advice = _ADVICE.get(state) or _ADVICE.get(state[:2])
    if advice is None:
        advice = UNREACHABLE if lost or isinstance(error, psycopg.OperationalError) else "it cannot be used"
    reason = " ".join(str(error).split())
    text = f"the database {name}: {advice} ({reason})"
    if lost or state in _TRANSIENT:
        return TransientError(text, _TRANSIENT.get(state, _LOST))
    return StoreError(text)

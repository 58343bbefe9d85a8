"""The statements of tokens and sessions, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts import rows
from smartfeeds.features.accounts.session import Session
from smartfeeds.store.base import WriteTx


def write(tx: WriteTx) -> None:
    rows.add_token(tx, Token("t", b"d" * 32, "a@x", TokenScope.READ, "*", "", 1))
    rows.put_session(tx, Session("s", b"d" * 32, "a@x", TokenScope.READ, "*", "t", "", 1, 1, 5, 5))
    rows.remove_session(tx, "s")
    rows.remove_token(tx, "t")

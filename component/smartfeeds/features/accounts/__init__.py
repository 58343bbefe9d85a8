"""Accounts: bearer tokens, sessions and the sign-in by XMPP."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.store.row_readers import RowReader


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_records import to_session, to_token
    from smartfeeds.store.sql_tables import SESSION, TOKEN

    return (
        RowReader(TOKEN, "token_id", TOKEN.columns, to_token),
        RowReader(SESSION, "session_id", SESSION.columns, to_session),
    )


ACCOUNTS = Feature("accounts", row_readers=_row_readers)

"""Whether the last commit of the service has happened, if the connection was lost during it (PG-006).

The writing connection has a row with the number of its last commit, and the commit itself changes this row. So the row
is always as old as the data, also on a standby that has taken over.
"""

from secrets import token_hex
from typing import Final

import psycopg

from smartfeeds.errors import StoreError
from smartfeeds.store.migrate_postgres import SCHEMA_LOCK
from smartfeeds.store.postgres_pipeline import Statement
from smartfeeds.store.postgres_session import PostgresSession

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS last_commit (
  writer TEXT COLLATE "C" PRIMARY KEY,
  number BIGINT NOT NULL,
  seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
)
"""
# Processes that were killed leave their rows.
_REMOVE_OLD: Final = "DELETE FROM last_commit WHERE seen < clock_timestamp() - interval '1 day'"
_ADD: Final = "INSERT INTO last_commit (writer, number) VALUES (?, 0)"
_SET: Final = "UPDATE last_commit SET number = ?, seen = clock_timestamp() WHERE writer = ?"
# The row is locked while the server still works on the commit, so this statement waits for the end of the commit. It
# is a commit itself: standbys that must confirm each commit have also confirmed the one before it.
_LOOK: Final = "UPDATE last_commit SET seen = clock_timestamp() WHERE writer = ? RETURNING number"
_REMOVE: Final = "DELETE FROM last_commit WHERE writer = ? RETURNING number"


class LastCommit:
    """The row of a writing connection. `create` comes first, `remove` last."""

    def __init__(self) -> None:
        self._writer = token_hex(8)
        self._number = 0

    def create(self, session: PostgresSession) -> None:
        """Adds the row, and the table if it is missing. Raises psycopg.Error."""
        with session.connection.transaction():
            # Processes that start together would both create the table, and one of them would fail.
            session.execute("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            session.execute_script(_CREATE)
            session.execute_script(_REMOVE_OLD)
            session.queue(_ADD, ((self._writer,),))
            session.flush()

    def next(self) -> Statement:
        """Returns the statement that the next commit includes, and its parameters."""
        self._number += 1
        return _SET, (self._number, self._writer)

    def has_happened(self, session: PostgresSession) -> bool | None:
        """Returns whether the commit with the statement that `next` has returned last has happened; None if the
        database cannot say it now.
        """
        session.close()  # psycopg may believe that the connection is still open
        try:
            session.renew()
            rows = session.execute(_LOOK, (self._writer,))
        except (psycopg.Error, StoreError):
            return None
        return bool(rows[0][0] == self._number) if rows else None

    def remove(self, session: PostgresSession) -> None:
        """Removes the row. Raises psycopg.Error."""
        session.drop()
        session.execute(_REMOVE, (self._writer,))

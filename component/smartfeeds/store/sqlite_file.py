"""Reads a SQLite file without opening it as a store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from smartfeeds.store import migrate
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, is_read_only, missing, store_error

BUSY_S = 5.0  # wait for another process that has locked the file


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields a connection that cannot write. Raises StoreError."""
    # Not mode=ro where it can be avoided: if such a connection is the last to close, it leaves the log files behind.
    mode = "ro" if is_read_only(path) else "rw"
    if not path.exists():
        raise missing(path)
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=BUSY_S)
        ) as connection:
            connection.execute("PRAGMA query_only = ON").fetchall()
            yield connection
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error


def schema_version(path: Path) -> str | None:
    """Returns the version of the schema, None for an empty database. Raises StoreError for another program's file."""
    with reading(path) as connection:
        return migrate.version(connection)

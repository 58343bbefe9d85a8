"""What an operator wants to know of a SQLite file without opening it as a store: its version, its health."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.store import migrate
from smartfeeds.store.sqlite_engine import missing, store_error

BUSY_S = 5.0


def schema_version(path: Path) -> str | None:
    """The version of the schema, None for an empty database. Raises StoreError where the file is not ours."""
    with _reading(path) as connection:
        return migrate.version(connection)


def is_sound(path: Path) -> bool:
    """Whether SQLite's quick check finds the file in order."""
    with _reading(path) as connection:
        rows: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
        return rows == [("ok",)]


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.exists():
        raise missing(path)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error


def check_writable(path: Path) -> None:
    """Whether the file can be written, or made where it is missing; nothing is changed. Raises StoreError."""
    folder = path.parent
    if not folder.is_dir():
        raise StoreError(f"the folder {folder} does not exist: make it, and give it to the user of the service")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"the folder {folder} may not be written: give this user the right to write in it")
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error

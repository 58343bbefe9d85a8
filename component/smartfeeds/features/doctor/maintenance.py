"""Facts about a SQLite file that an operator needs: the oldest program that can use it, damage, permissions."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.features.doctor.damage import CONTENT, DamagedItem, DamagedRow, damaged_items, damaged_rows
from smartfeeds.store import migrate
from smartfeeds.store.row_readers import RowReader
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, missing, restoring_path, store_error
from smartfeeds.store.sqlite_file import BUSY_S, reading


def oldest_program(path: Path) -> str | None:
    """Returns the oldest schema whose programs can work with the database, None if the database does not say it."""
    with reading(path) as connection:
        return migrate.oldest_program(connection)


def is_sound(path: Path) -> bool:
    """Returns whether SQLite's quick check finds no damage."""
    with reading(path) as connection:
        # More checks of each page as it is read (SQLite, PRAGMA cell_size_check).
        connection.execute("PRAGMA cell_size_check = ON")
        rows: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
        return rows == [("ok",)]


def read_damage(path: Path, readers: Iterable[RowReader]) -> tuple[list[DamagedItem], list[DamagedRow]]:
    """Returns the items whose content is damaged, and the damaged rows. Reads all of them."""
    with reading(path) as connection:
        # A damaged name must not end the search.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        items = damaged_items(connection.execute(CONTENT))
        # Lone surrogates show that a text is damaged.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        return items, list(damaged_rows(connection.execute, readers))


def check_writable(path: Path) -> None:
    """Checks that the file can be written or created, without changing anything. Raises StoreError."""
    folder = path.parent
    if not folder.is_dir():
        raise StoreError(f"the folder {folder} does not exist; create it and make the user of the service its owner")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"the folder {folder} is not writable; give this user write permission")
    if not path.exists():
        if restoring_path(path).exists():
            raise missing(path)
        return
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)) as connection:
            # The lock for writing needs the permissions of a write, and leaves the file unchanged.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error

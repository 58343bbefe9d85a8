"""What an operator does to a SQLite file from outside a running service: look at its version, copy it.

The copy is SQLite's online backup: it can be taken while a service writes, and is one consistent state.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.store import migrate
from smartfeeds.store.sqlite_engine import store_error

BUSY_S = 5.0
PAGES_A_STEP = 2_000


def schema_version(path: Path) -> str | None:
    """The version of the schema, None for an empty database. Raises StoreError where the file is not ours."""
    with _reading(path) as connection:
        return migrate.version(connection)


def is_sound(path: Path) -> bool:
    """Whether SQLite's quick check finds the file in order."""
    with _reading(path) as connection:
        rows: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
        return rows == [("ok",)]


def backup(source: Path, target: Path, on_progress: Callable[[int, int], None]) -> None:
    """Copies the database into a new file. `on_progress` hears pages done and pages in all. Raises StoreError.

    The copy appears under its name when it is complete and on the disk.
    """
    if target.exists():
        raise StoreError(f"{target} is there already: choose another name")
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with _reading(source) as reading:
            _copy(reading, partial, on_progress)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.rename(target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _copy(reading: sqlite3.Connection, path: Path, on_progress: Callable[[int, int], None]) -> None:
    try:
        with closing(sqlite3.connect(path)) as writing:
            reading.backup(
                writing, pages=PAGES_A_STEP, progress=lambda _status, left, total: on_progress(total - left, total)
            )
            # One file that can be copied and opened anywhere, also where it may not be written.
            writing.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.exists():
        raise StoreError(f"the database {path} does not exist: smartfeeds run or smartfeeds import makes it")
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

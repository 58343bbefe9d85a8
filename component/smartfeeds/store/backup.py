"""A copy of a SQLite database that is in use, as of one moment (SF-028)."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.store.sqlite_engine import make_private, store_error

PAGES_A_STEP = 2_000


def copy_database(source: Path, target: Path, on_progress: Callable[[int, int], None] | None = None) -> None:
    """Copies the database `source` to the new file `target`, which appears when it is whole and on the disk.

    `on_progress` hears the pages copied and the pages in all. Others may go on reading and writing. Raises StoreError,
    also where `target` exists.
    """
    part = target.with_name(target.name + ".part")
    if target.exists():
        raise StoreError(f"the backup {target} exists already; name a new file")
    make_private(part)
    try:
        with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(part)) as copy:
            # Held from here to the end: without one snapshot, every write of others would make the copy start anew.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
            original.backup(copy, pages=PAGES_A_STEP, progress=_told(on_progress))
        part.rename(target)
        _sync(target.parent)
    except sqlite3.Error as error:
        part.unlink(missing_ok=True)
        raise store_error(error, f"{source} (backup to {target})") from error
    except OSError as error:
        raise StoreError(f"the backup {target} cannot be written: {error.strerror}") from error


def _told(on_progress: Callable[[int, int], None] | None) -> Callable[[int, int, int], None] | None:
    return None if on_progress is None else lambda _status, left, total: on_progress(total - left, total)


def _sync(folder: Path) -> None:
    """Makes a new name in a directory survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

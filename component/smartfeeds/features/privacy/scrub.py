"""Removes the bytes of deleted rows from the files of a SQLite database (OPS-025).

SQLite leaves old bytes in free pages, in the free space of pages, in the segments of the full-text index, and in the
write-ahead log. VACUUM writes the database anew, and a truncating checkpoint empties the log.
"""

import sqlite3
import time
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Final

from smartfeeds.errors import StoreError
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, store_error

# VACUUM writes about 100 MB/s, and the writes of a running service fail after 5 s.
MAX_LIVE_BYTES: Final = 256 * 1024 * 1024
BUSY_S: Final = 30.0  # for readers of other processes: an export or a backup may take longer, then BUSY is the result
_PAUSE_S: Final = 0.05


class ScrubResult(Enum):
    """The state of the files after an attempt."""

    CLEAN = "clean"
    """No byte of a deleted row is left."""
    TOO_LARGE = "too-large"
    """The service runs and the database is large, so nothing was done."""
    BUSY = "busy"
    """A reader of another process kept the write-ahead log in use."""


def scrub(path: Path, *, served: bool, busy_s: float = BUSY_S) -> ScrubResult:
    """Removes the bytes of deleted rows. `served`: a process serves the database. Raises StoreError."""
    if served and path.stat().st_size > MAX_LIVE_BYTES:
        return ScrubResult.TOO_LARGE
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=busy_s)) as connection:
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            # Segments of the full-text index have the words of deleted documents until they are merged.
            connection.execute("INSERT INTO word (word) VALUES ('optimize')")
            connection.execute("VACUUM")
            return _truncate_log(connection, busy_s)
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error
    except OSError as error:
        raise StoreError(f"the database {path}: {error.strerror}") from error


def _truncate_log(connection: sqlite3.Connection, busy_s: float) -> ScrubResult:
    until_s = time.monotonic() + busy_s
    while True:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return ScrubResult.CLEAN
        if time.monotonic() > until_s:
            return ScrubResult.BUSY
        time.sleep(_PAUSE_S)

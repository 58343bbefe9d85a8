"""Copies a SQLite database that is in use; the copy is the state of one moment (SF-028)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from smartfeeds.errors import ConfigError, StoreError
from smartfeeds.store.file_folder import sync_folder
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, make_private, store_error

PAGES_A_STEP = 2_000  # between two steps the progress is reported


def copy_database(
    source: Path, target: Path, on_progress: Callable[[int, int], None] | None = None, *, mode: str = "mode=rw"
) -> None:
    """Copies the database `source` to the new file `target`, which appears only when it is complete and synced to disk.

    `on_progress` receives the number of copied pages and the number of all pages. `mode` is the parameter of the URI of
    `source`. Other processes may read and write meanwhile, except with `immutable=1`. Raises StoreError, also if
    `target` exists, and ConfigError if it cannot be written.
    """
    part = target.with_name(target.name + ".part")
    if target.exists():
        raise StoreError(f"the backup {target} exists already; name another file")
    try:
        for suffix in ("", "-journal"):  # of a copy that was killed
            part.with_name(part.name + suffix).unlink(missing_ok=True)
        make_private(part)  # before SQLite writes to it: the database has tokens and closed feeds
        part.open("ab").close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot write the backup {target}: {reason}; name another file") from None
    try:
        address = f"{source.absolute().as_uri()}?{mode}"
        with closing(sqlite3.connect(address, uri=True)) as original, closing(sqlite3.connect(part)) as copy:
            # The snapshot lasts to the end. Without it every write by another process would restart the copy. BEGIN
            # alone takes none: the first read does.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
            original.backup(copy, pages=PAGES_A_STEP, progress=_progress_call(on_progress))
        # After the copy is on disk, so that a file with the name of a backup is always whole.
        part.rename(target)
        sync_folder(target.parent)
    except DATABASE_ERRORS as error:
        part.unlink(missing_ok=True)
        raise store_error(error, f"{source} (backup to {target})") from error
    except OSError as error:
        raise StoreError(f"the backup {target} cannot be written: {error.strerror}") from error


def _progress_call(on_progress: Callable[[int, int], None] | None) -> Callable[[int, int, int], None] | None:
    return None if on_progress is None else lambda _status, left, total: on_progress(total - left, total)

"""Exclusive lock files (flock(2)): one process serves a database, one demonstration runs in a folder.

The kernel releases the lock when the process ends, however it ends, so a file that is left behind locks nothing. The
file has a line about its holder, for the error message of the second process.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from smartfeeds.errors import StoreError

Release = Callable[[], None]
_HOLDER_BYTES = 1_000


class LockHeldError(StoreError):
    """Another process holds the lock. The text names that process."""


def lock_file(path: Path, purpose: str) -> Release:
    """Locks the file `path`, which it makes, and returns the function that removes and releases it.

    `purpose` says what this process holds the lock for. Raises LockHeldError, and OSError when the file cannot be
    written.
    """
    handle = _acquire(path)

    def release() -> None:
        # Removed while it is still locked: a process that waits for this file sees that it has no name any more.
        path.unlink(missing_ok=True)
        os.close(handle)

    try:
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} ({purpose})".encode())
    except OSError:
        release()
        raise
    return release


def lock_database(database: Path, purpose: str) -> Release:
    """Makes this process the only one that serves the SQLite file `database`, until the returned function is called.

    Commands that work beside a running service do not take this lock. Raises StoreError.
    """
    path = database.resolve()  # as SQLite does: two names of one database have one lock
    try:
        return lock_file(path.with_name(f"{path.name}.lock"), purpose)
    except LockHeldError as error:
        raise StoreError(
            f"the database {path}: {error} is using it; stop that process or choose another store.url"
        ) from None
    except OSError as error:
        raise StoreError(
            f"the database {path}: cannot write its lock file, {str(error.strerror).lower()}; "
            "check that the directory exists, that its disk has room and that this user may write to it"
        ) from None


def _acquire(path: Path) -> int:
    """The locked file of this name. Raises LockHeldError, OSError."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, _HOLDER_BYTES, 0).decode("utf-8", "replace")
            os.close(handle)
            raise LockHeldError(holder or "another process") from None
        except OSError:
            os.close(handle)
            raise
        # The former holder may have removed the file between our open and our lock: such a lock excludes nobody.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)

"""Exclusive lock files (flock(2)): one process serves a database, one demonstration runs in a folder.

The kernel releases the lock when the process ends in any way, so a leftover file locks nothing. The file contains a
line about its holder for the error message of the second process.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from smartfeeds.errors import StoreError

Release = Callable[[], None]
_HOLDER_BYTES = 1_000  # of the line about the holder


class LockHeldError(StoreError):
    """Another process holds the lock. The text names that process."""


def lock_file(path: Path, purpose: str) -> Release:
    """Creates and locks the file `path`. Returns the function that removes and releases it.

    `purpose` says what the lock is for. Raises LockHeldError, or OSError if the file cannot be written.
    """
    handle = _acquire(path)

    def release() -> None:
        # Remove the file before releasing it: a process that has opened it can then see that it has no name any more.
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
    """Locks the SQLite file `database` for the one process that serves it. Returns the function that releases the lock.

    Commands that may run beside a service do not take this lock. Raises StoreError.
    """
    path = _lock_path(database)
    try:
        return lock_file(path, purpose)
    except LockHeldError as error:
        raise StoreError(
            f"the database {database.resolve()}: {error} is using it; stop that process or choose another store.url"
        ) from None
    except OSError as error:
        raise StoreError(
            f"the database {database.resolve()}: cannot write its lock file, {str(error.strerror).lower()}; "
            "check that the directory exists, that its disk has room and that this user may write to it"
        ) from None


def no_lock() -> None:
    """Releases nothing: the lock of a store that several processes may serve."""


def database_holder(database: Path) -> str:
    """Returns the line about the process that serves the SQLite file `database`, "" if there is none."""
    try:
        handle = os.open(_lock_path(database), os.O_RDONLY)
    except OSError:
        return ""
    try:
        # A shared lock, released at once: it fails while a process serves the database.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(handle)
    finally:
        os.close(handle)
    return ""


def _lock_path(database: Path) -> Path:
    path = database.resolve()  # SQLite resolves links too, so two names of a database share a lock
    return path.with_name(f"{path.name}.lock")


def _holder(handle: int) -> str:
    return os.pread(handle, _HOLDER_BYTES, 0).decode("utf-8", "replace") or "another process"


def _acquire(path: Path) -> int:
    """Returns a handle of the locked file. Raises LockHeldError, OSError."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise LockHeldError(holder) from None
        except OSError:
            os.close(handle)
            raise
        # The former holder may have removed the file between open and lock. Such a lock excludes no other process.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)

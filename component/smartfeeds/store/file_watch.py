"""Notices that the files of an open SQLite database are no longer those that its path names.

SQLite goes on with the files that it has open. Somebody who removes, replaces or moves the database of a running
service would lose everything that the service acknowledges afterwards.
"""

import os
from pathlib import Path

FileIdentity = tuple[int, int]  # device and inode


class FileWatch:
    """The database at `path` and its write-ahead log, from the time before it is opened. Methods may run in any thread.

    A link in the path that leads elsewhere counts as a replaced file. SQLite has resolved it, so the log is beside the
    file that the link led to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.resolve().with_name(f"{path.resolve().name}-wal")
        self._database = _identity(path)
        self._log_identity: FileIdentity | None = None

    def opened(self) -> None:
        """Notes the log, which SQLite creates when it opens the database."""
        if self._log.exists():
            self._log_identity = _identity(self._log)

    def fault(self) -> str:
        """Returns what has happened to the files, or an empty text."""
        return _change(self._path, self._database) or (
            _change(self._log, self._log_identity) if self._log_identity is not None else ""
        )


def _identity(path: Path) -> FileIdentity:
    status = path.stat()
    return status.st_dev, status.st_ino


def _change(path: Path, identity: FileIdentity) -> str:
    try:
        return "" if _identity(path) == identity else f"{path} was replaced by another file"
    except FileNotFoundError:
        return f"{path} was removed or moved"
    except OSError as error:
        return f"{path} cannot be reached ({os.strerror(error.errno or 0).lower()})"

"""Notices that the files of an open SQLite database are no longer those that its path names.

SQLite goes on with the files that it has open. Somebody who removes, replaces or moves the database of a running
service would lose everything that the service acknowledges afterwards.
"""

import os
from pathlib import Path

FileIdentity = tuple[int, int]  # device and inode


class FileWatch:
    """The database at `path`, its write-ahead log and the index of the log, from the time before they are opened.
    Methods may run in any thread.

    Processes that use the database find by the index what the others have written to the log. Once its file is gone,
    the next process makes another index, and the two overwrite what the other one has written.

    A link in the path that leads elsewhere counts as a replaced file. SQLite has resolved it, so the log is beside the
    file that the link led to.
    """

    def __init__(self, path: Path) -> None:
        target = path.resolve()
        self._others = [target.with_name(f"{target.name}{suffix}") for suffix in ("-wal", "-shm")]
        self._identities = {path: _identity(path)}

    def opened(self) -> None:
        """Notes the log and its index, which SQLite creates when it opens the database."""
        self._identities |= {path: _identity(path) for path in self._others if path.exists()}

    def fault(self) -> str:
        """Returns what has happened to the files, or an empty text."""
        changes = (_change(path, identity) for path, identity in self._identities.items())
        return next(filter(None, changes), "")


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

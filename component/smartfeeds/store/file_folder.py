"""A folder with files under the digests of their bytes, beside the database.

A file is written under a temporary name, synced to disk and renamed, so a name of a digest always has the whole file.
A file without a row in the database is removed by the next `remove_unknown`, whatever the reason for it. Several
processes may share the folder.
"""

import asyncio
import fcntl
import hashlib
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar, TypeVarTuple

from smartfeeds.core.feed_files import StoredFile
from smartfeeds.core.stores import FILES_SUFFIX
from smartfeeds.errors import StoreError

NEW = "new"  # the folder of files that are being written
LOCK = "lock"  # the file that processes lock
# A file that was not written to for so long belongs to a process that has ended: an upload without bytes ends earlier.
ABANDONED_S = 3_600.0
BUFFER_BYTES = 262_144  # a thread writes this much at a time: a body arrives in pieces of some kilobytes

# The name of a file. A database that somebody else has written may have another text, such as a path, in its place.
_DIGEST = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


def folder_of(database: Path) -> Path:
    """The folder for the files of a database."""
    return database.with_name(f"{database.name}{FILES_SUFFIX}")


def is_digest(text: str) -> bool:
    """Whether a text is the digest of a file, and therefore its name in a folder."""
    return _DIGEST.fullmatch(text) is not None


def copy_files(source: Path, target: Path) -> int:
    """Copies the files of a folder to a new folder, which appears when it is complete and synced to disk, and returns
    their number. Other processes may add and remove files meanwhile. Raises StoreError.

    A copy that begins after that of the database has every file that the database names.
    """
    part = target.with_name(f"{target.name}.part")
    count = 0
    try:
        if not source.is_dir():
            return 0
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        for folder in _folders(source):
            if folder.is_symlink():
                raise StoreError(f"{folder} is a link, and cannot have files of feeds; remove it")
            (part / folder.name).mkdir(mode=0o700)
            for name in names_in(folder):
                try:
                    _copy(folder / name, part / folder.name / name)
                    count += 1
                except FileNotFoundError:
                    continue  # no item used it any more
            sync_folder(part / folder.name)
        part.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise failure(error, "cannot be copied") from error
    return count


def _copy(source: Path, target: Path) -> None:
    """Copies a file. Raises OSError, and StoreError for another kind of file: a link in a backup could lead to any file
    of this machine, which the service would then show to readers."""
    if not stat.S_ISREG(source.lstat().st_mode):
        raise StoreError(f"{source} is no regular file, and cannot be one of a feed; remove it")
    shutil.copy2(source, target, follow_symlinks=False)
    with target.open("rb") as file:
        os.fsync(file.fileno())  # the service takes a file with the name of a digest for a whole one


class FolderLock:
    """Excludes all tasks of this process, and all other processes that use the folder, as an async context manager.

    The lock of the file is flock(2), which NFS supports between machines from version 4 on (nfs(5)). A process that
    ends loses it. Raises StoreError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # The tasks of this process take turns here, so that at most one thread waits in flock(2).
        self._tasks = asyncio.Lock()
        self._handle = -1

    def locked(self) -> bool:
        """Whether a task of this process has the lock."""
        return self._handle >= 0

    async def __aenter__(self) -> None:
        await self._tasks.acquire()
        try:
            await in_thread(self._lock)
        except BaseException:
            self._unlock()
            self._tasks.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()
        self._tasks.release()

    def _lock(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError as error:
            raise failure(error, "cannot be locked") from error

    def _unlock(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


class FileFolder:
    """The files under `path`, which is created with the first file.

    `lock` is held by everything that must not run between the removal of unknown files and its reading of the rows:
    a writer holds it from `PendingFile.keep` until the row of the file is stored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = FolderLock(path)

    def path_of(self, digest: str) -> Path:
        """The path of a stored file."""
        return self.path / digest[:2] / digest

    def receive(self) -> "PendingFile":
        """A new file to write, as an async context manager. It is removed at the end, unless it was kept."""
        return PendingFile(self)

    async def open(self, digest: str) -> IO[bytes] | None:
        """A stored file for reading, None if it is missing. Raises StoreError."""
        return await asyncio.to_thread(self._open, digest)

    def _open(self, digest: str) -> IO[bytes] | None:
        if not is_digest(digest):
            return None
        try:
            return self.path_of(digest).open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise failure(error, "cannot be read") from error

    async def clear_new(self) -> None:
        """Removes what former processes were writing when they ended, but not what another process writes now. Raises
        StoreError."""
        await asyncio.to_thread(_clear, self.path / NEW, time.time() - ABANDONED_S)

    async def remove_unknown(self, known: Callable[[Collection[str]], Awaitable[set[str]]]) -> int:
        """Removes the files whose digests are unknown, and returns their number. `known` returns those of some digests
        that have rows. Raises StoreError."""
        removed = 0
        for folder in await asyncio.to_thread(_folders, self.path):
            async with self.lock:
                digests = await asyncio.to_thread(names_in, folder)
                unknown = digests - await known(digests) if digests else set()
                await asyncio.to_thread(remove_files, [folder / digest for digest in unknown])
            removed += len(unknown)
        return removed


class PendingFile:
    """A file that is being written. Its methods raise StoreError."""

    def __init__(self, folder: FileFolder) -> None:
        self._folder = folder
        self._path = folder.path / NEW
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self.size_bytes = 0

    async def __aenter__(self) -> Self:
        try:
            await in_thread(self._create)
        except asyncio.CancelledError:
            self._discard()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._discard()

    def _discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)  # missing if it was kept under its digest

    async def write(self, data: bytes) -> None:
        """Appends bytes."""
        self.size_bytes += len(data)
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            await self._flush()

    async def keep(self) -> StoredFile:
        """Stores the file under its digest; it is on the disk when this returns. Call it with `FileFolder.lock`."""
        await self._flush()
        return await in_thread(self._keep)

    async def _flush(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        await in_thread(self._append, data)

    def _create(self) -> None:
        try:
            folder = self._folder.path / NEW
            for part in (self._folder.path, folder):
                part.mkdir(mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=folder)
            self._path = Path(name)
            self._file = os.fdopen(handle, "wb")
        except OSError as error:
            raise failure(error, "cannot be created") from error

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(data)
        except OSError as error:
            raise failure(error, "cannot be written") from error
        self._hash.update(data)

    def _keep(self) -> StoredFile:
        assert self._file is not None
        digest = self._hash.hexdigest()
        target = self._folder.path_of(digest)
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            target.parent.mkdir(mode=0o700, exist_ok=True)
            self._path.rename(target)
            for folder in (target.parent, self._folder.path):  # the first of them may be new
                sync_folder(folder)
        except OSError as error:
            raise failure(error, "cannot be written") from error
        return StoredFile(digest, self.size_bytes)


async def in_thread(function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Runs a function in a thread. A cancellation waits for its end, so that nobody closes or removes the file that the
    thread creates or writes."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # the cancellation is reported, not the failure of work that nobody waits for
        raise


def failure(error: OSError, what: str) -> StoreError:
    """The error for a file, with the reason of the operating system."""
    return StoreError(f"a file {what}: {error.strerror} ({error.filename})")


def sync_folder(folder: Path) -> None:
    """Writes the names in a folder to the disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(entry for entry in path.iterdir() if len(entry.name) == 2) if path.is_dir() else []
    except OSError as error:
        raise failure(error, "cannot be listed") from error


def names_in(folder: Path) -> set[str]:
    """The names in a folder. Raises StoreError."""
    try:
        return {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise failure(error, "cannot be listed") from error


def remove_files(paths: Collection[Path]) -> None:
    """Removes files that exist. Raises StoreError."""
    try:
        for path in paths:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise failure(error, "cannot be removed") from error


def _clear(folder: Path, before_s: float) -> None:
    if folder.is_dir():
        remove_files([path for name in names_in(folder) if _changed_s(path := folder / name) < before_s])


def _changed_s(path: Path) -> float:
    """The time of the last write in seconds since the Unix epoch; infinite if another process has removed the file."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf
    except OSError as error:
        raise failure(error, "cannot be read") from error

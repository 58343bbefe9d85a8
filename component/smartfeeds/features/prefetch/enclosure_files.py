"""The folder of enclosures that are loaded in advance (PRE-017, PRE-018, PRE-029).

A file is named by the digest of its address. Its bytes are appended to a partial file, which is synced and renamed once
it is complete. A partial file stays when a load ends, so that another load continues it.
"""

import os
import shutil
from collections.abc import Awaitable, Callable, Collection
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from smartfeeds.errors import StoreError
from smartfeeds.store.file_folder import (
    BUFFER_BYTES,
    FileFolder,
    failure,
    in_thread,
    names_in,
    remove_files,
    sync_folder,
)

PARTS: Final = "partial"  # the folder of partial files
KEPT: Final = "complete"


class DiskUsage(Protocol):
    """The total and free bytes of a disk, as shutil.disk_usage returns them."""

    @property
    def total(self) -> int:
        """The size of the disk."""

    @property
    def free(self) -> int:
        """The free bytes of the disk."""


class EnclosureFolder:
    """The files under `path`, which is created with the first file. `usage` returns the usage of its disk.

    `complete` has the complete files. Its lock is held from `PartialFile.complete` until the row of the file is stored.
    """

    def __init__(self, path: Path, usage: Callable[[Path], DiskUsage] = shutil.disk_usage) -> None:
        self.path = path
        self.complete = FileFolder(path / KEPT)
        self._usage = usage

    def part_path(self, digest: str) -> Path:
        """The path of a partial file."""
        return self.path / PARTS / digest

    def part_bytes(self, digest: str) -> int:
        """The size of a partial file now, 0 without one."""
        try:
            return self.part_path(digest).stat().st_size
        except OSError:
            return 0

    def part(self, digest: str) -> "PartialFile":
        """A partial file to continue, as an async context manager. It is created if it does not exist."""
        return PartialFile(self, digest)

    async def free_share(self) -> float:
        """The share of the disk that is free, 0 to 1. Raises StoreError."""
        return await in_thread(self._free_share)

    def _free_share(self) -> float:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            usage = self._usage(self.path)
        except OSError as error:
            raise failure(error, "cannot be created") from error
        return usage.free / usage.total

    async def remove_unknown(
        self,
        complete: Callable[[Collection[str]], Awaitable[set[str]]],
        partial: Callable[[Collection[str]], Awaitable[set[str]]],
    ) -> None:
        """Removes files without rows: `complete` and `partial` return those of some digests that have one. Raises
        StoreError."""
        await self.complete.remove_unknown(complete)
        folder = self.path / PARTS
        digests = await in_thread(lambda: names_in(folder) if folder.is_dir() else set())
        unknown = digests - await partial(digests) if digests else set()
        await in_thread(remove_files, [folder / digest for digest in unknown])


class PartialFile:
    """A partial file that is being written. Its methods raise StoreError."""

    def __init__(self, folder: EnclosureFolder, digest: str) -> None:
        self._folder = folder
        self._digest = digest
        self._path = folder.part_path(digest)
        self._file: FileIO | None = None
        self._buffer = bytearray()
        self.size_bytes = 0

    async def __aenter__(self) -> Self:
        await in_thread(self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not isinstance(error, StoreError):
                await self.flush()
        finally:
            await in_thread(self._close)

    async def write(self, data: bytes) -> bool:
        """Appends bytes. Returns whether they were handed to the disk, and not only to the buffer."""
        self.size_bytes += len(data)
        self._buffer += data
        if len(self._buffer) < BUFFER_BYTES:
            return False
        await self.flush()
        return True

    async def flush(self) -> None:
        """Hands the buffer to the disk."""
        data = bytes(self._buffer)
        self._buffer.clear()
        await in_thread(self._append, data)

    async def clear(self) -> None:
        """Begins the file anew. It is empty on the disk when this returns."""
        self._buffer.clear()
        await in_thread(self._truncate)
        self.size_bytes = 0

    async def complete(self) -> None:
        """Makes the file complete; it is on the disk when this returns. Call it with `FileFolder.lock`."""
        await self.flush()
        await in_thread(self._complete)

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Without a buffer of its own: one that cannot be written on a full disk would fail again at the end.
            self._file = FileIO(self._path, "a")
            self.size_bytes = self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise failure(error, "cannot be created") from error

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        try:
            _write_all(self._file, data)
        except OSError as error:
            raise failure(error, "cannot be written") from error

    def _truncate(self) -> None:
        assert self._file is not None
        try:
            self._file.truncate(0)
            os.fsync(self._file.fileno())
        except OSError as error:
            raise failure(error, "cannot be written") from error

    def _complete(self) -> None:
        assert self._file is not None
        target = self._folder.complete.path_of(self._digest)
        try:
            os.fsync(self._file.fileno())
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.rename(target)
            for folder in (target.parent, target.parent.parent, self._path.parent):
                sync_folder(folder)
        except OSError as error:
            raise failure(error, "cannot be written") from error

    def _close(self) -> None:
        if self._file is None:
            return
        self._file.close()
        try:
            if self._path.exists() and not self._path.stat().st_size:
                self._path.unlink()
        except OSError as error:
            raise failure(error, "cannot be written") from error


def _write_all(file: FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]

"""A file system in a file, whose power can be cut [CAM-003].

The image holds what the file system has written to its device. Data that was never synced is in the page cache above
the device, and a copy of the image lacks it. Needs root and a loop device.
"""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

SIZE_BYTES = 96 * 2**20
PAGE_BYTES = 4096
COPY_S = 20.0
COPY_TRIES = 50


class DiskImage:
    """An ext4 file system, mounted at `mount`. A context manager."""

    def __init__(self, folder: Path, size_bytes: int = SIZE_BYTES) -> None:
        self.mount = folder / "disk"
        self._folder = folder
        self._generation = 0
        self.mount.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(size_bytes)
        _run("mkfs.ext4", "-q", "-F", str(self._image))

    @property
    def _image(self) -> Path:
        return self._folder / f"image-{self._generation}"

    def __enter__(self) -> "DiskImage":
        self._attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._detach()
        self._image.unlink()

    def write_some(self, chance: random.Random, *files: Path) -> None:
        """Starts to write random ranges of unsynced pages to the device, as the kernel may at any time."""
        for path in files:
            if not path.exists():
                continue
            file = os.open(path, os.O_RDONLY)
            try:
                pages = os.fstat(file).st_size // PAGE_BYTES + 1
                for _ in range(chance.randrange(4)):
                    first, count = chance.randrange(pages), chance.randint(1, 16)
                    os.posix_fadvise(file, first * PAGE_BYTES, count * PAGE_BYTES, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)

    def copy(self) -> Path:
        """Copies the image as it is at one moment. Every writer must be stopped. Raises RuntimeError.

        The kernel may write at any time, so a copy during which the device was written is made again.
        """
        target = self._folder / f"image-{self._generation + 1}"
        for _ in range(COPY_TRIES):
            before = self._writes()
            _run("cp", "--sparse=always", str(self._image), str(target))
            if self._writes() == before:
                return target
            time.sleep(0.01)
        raise RuntimeError("the device is written all the time; is a writer not stopped?")

    def replace(self) -> None:
        """Mounts the copy instead of the image, as after a power cut. Nobody may have a file open."""
        self._detach()
        self._image.unlink()
        self._generation += 1
        self._attach()

    def _writes(self) -> str:
        """The number of sectors written to the device, and of writes under way (Documentation/block/stat)."""
        device = _run("findmnt", "-n", "-o", "SOURCE", str(self.mount)).strip().removeprefix("/dev/")
        fields = Path(f"/sys/block/{device}/stat").read_text("ascii").split()
        return f"{fields[6]} {fields[8]}"

    def _attach(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.mount))

    def _detach(self) -> None:
        _run("umount", str(self.mount))


def _run(*command: str) -> str:
    program = shutil.which(command[0], path="/usr/sbin:/sbin:/usr/bin:/bin")
    assert program is not None, f"{command[0]} is not installed: tools/setup test-all installs it"
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False, timeout=COPY_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout

"""Writes files that other programs may read at the same time."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from smartfeeds.errors import ConfigError


@contextmanager
def whole_file(path: Path, name: str = "", *, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` only when it is complete. A symbolic link is followed. A failure leaves no file
    behind.

    `name` is the name in error messages. Only the user of this process can read a `private` file. Raises ConfigError if
    the file cannot be written.
    """
    target = path.resolve()
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a process that was killed; its mode may be another one
        # From the start: other users could open the file before a later change of its mode.
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file
        partial.replace(target)
    except OSError as error:
        raise ConfigError(f"cannot write {name or path}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):  # the file may not exist
            partial.unlink()

"""Writes files that other programs may read at the same time."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from smartfeeds.errors import ConfigError


@contextmanager
def whole_file(path: Path, name: str = "") -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` only when it is complete. A symbolic link is followed. A failure leaves no file
    behind.

    `name` is the name in error messages. Raises ConfigError if the file cannot be written.
    """
    target = path.resolve()
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(target)
    except OSError as error:
        raise ConfigError(f"cannot write {name or path}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):  # the file may not exist
            partial.unlink()

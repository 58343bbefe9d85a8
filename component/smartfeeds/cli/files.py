"""Files that other programs read while they are written."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from smartfeeds.errors import ConfigError


@contextmanager
def whole_file(path: Path, name: str = "") -> Iterator[BinaryIO]:
    """A file that appears when it is whole, where a link to it leads; nothing is left of one that fails.

    `name` is what to call it. Raises ConfigError where it cannot be written.
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
        with contextlib.suppress(OSError):  # what could not be made need not be removed
            partial.unlink()

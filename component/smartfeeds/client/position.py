"""The position of a follower: a cursor and the changes delivered beyond it. Cursors are opaque (SF-027)."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smartfeeds.errors import StoreError

_PREFIX = "cursor:"


@dataclass(frozen=True, slots=True)
class FollowPosition:
    """A place in a feed. `cursor` has no type prefix and is empty before the first item.

    `total` is the number of items up to this place, or None if unknown. `delivered` are fingerprints of versions beyond
    the cursor that were delivered already: only the last item of a page has a cursor, so a position in the middle of a
    page needs them.
    """

    cursor: str = ""
    total: int | None = None
    delivered: tuple[str, ...] = ()

    def __str__(self) -> str:
        fields: dict[str, object] = {"cursor": self.cursor}
        if self.total is not None:
            fields["total"] = self.total
        if self.delivered:  # "handed" is the key in positions that are stored already
            fields["handed"] = self.delivered
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


BEGINNING = FollowPosition("", 0)


def bare(cursor: str) -> str:
    """Returns a cursor without its type prefix: SHIM headers omit the prefix, result sets have it (A-15)."""
    return cursor.removeprefix(_PREFIX)


def parse_position(text: str) -> FollowPosition:
    """Reads the text of a position as `str(position)` writes it. Any other text is taken as a cursor."""
    try:
        fields = json.loads(text)
    except ValueError:
        return FollowPosition(bare(text))
    if not isinstance(fields, dict) or not isinstance(fields.get("cursor"), str):
        return FollowPosition(bare(text))
    total, delivered = fields.get("total"), fields.get("handed", [])
    return FollowPosition(
        fields["cursor"],
        total if isinstance(total, int) else None,
        tuple(str(mark) for mark in delivered) if isinstance(delivered, list) else (),
    )


class PositionStore(Protocol):
    """Storage for the position of a follower. Both methods block the follower, so they should be quick."""

    def load(self) -> str | None:
        """Returns the text that was saved last, or None at the first start."""

    def save(self, position: str) -> None:
        """Saves the text. All changes before this position have been processed."""


class FileStore:
    """A position in a file, which is replaced atomically: after a crash it has the old text or the new text."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def load(self) -> str | None:
        """Returns the text of the file, or None if there is no file. Raises StoreError."""
        try:
            return self.path.read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"cannot read the position in {self.path}: {error}") from error

    def save(self, position: str) -> None:
        """Writes a temporary file in the same folder, syncs it to disk and renames it. Raises StoreError."""
        try:
            self._replace(position)
        except OSError as error:
            raise StoreError(f"cannot write the position to {self.path}: {error}") from error

    def _replace(self, position: str) -> None:
        # The rename would put a regular file in place of a device such as /dev/null.
        if self.path.exists() and not self.path.is_file():
            raise OSError("the path is not a regular file; choose another path")
        folder = self.path.parent
        handle, temporary = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(position + "\n")
                file.flush()
                # Before the rename: after a power failure the new name could otherwise have an empty file.
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except BaseException:  # Ctrl-C too must not leave the temporary file
            Path(temporary).unlink(missing_ok=True)
            raise
        # The rename is durable only after the folder is synced too.
        folder_handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_handle)
        finally:
            os.close(folder_handle)

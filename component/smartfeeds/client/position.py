"""Where a follower is: a cursor and what was handed over behind it (SF-027: the cursor itself is never read)."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smartfeeds.errors import StoreError

_PREFIX = "cursor:"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a feed. `cursor` is bare and empty before the first item.

    `total` is the number of items up to here, or None where it is not known. `handed` are fingerprints of versions
    that lie behind the cursor and were handed over: only the last item of a page has a cursor of its own.
    """

    cursor: str = ""
    total: int | None = None
    handed: tuple[str, ...] = ()

    def __str__(self) -> str:
        fields: dict[str, object] = {"cursor": self.cursor}
        if self.total is not None:
            fields["total"] = self.total
        if self.handed:
            fields["handed"] = self.handed
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


BEGINNING = Position("", 0)


def bare(cursor: str) -> str:
    """A cursor without its type: headers have none, result sets do (A-15)."""
    return cursor.removeprefix(_PREFIX)


def parse_position(text: str) -> Position:
    """Reads what `str(position)` wrote; any other text is a cursor."""
    try:
        fields = json.loads(text)
    except ValueError:
        return Position(bare(text))
    if not isinstance(fields, dict) or not isinstance(fields.get("cursor"), str):
        return Position(bare(text))
    total, handed = fields.get("total"), fields.get("handed", [])
    return Position(
        fields["cursor"],
        total if isinstance(total, int) else None,
        tuple(str(mark) for mark in handed) if isinstance(handed, list) else (),
    )


class PositionStore(Protocol):
    """Where a follower keeps its position. Both methods are called between changes and should be quick."""

    def load(self) -> str | None:
        """The text that was saved last, or None at the very first start."""

    def save(self, position: str) -> None:
        """Keeps the text. Everything before this position has been worked on when this is called."""


class MemoryStore:
    """A position that lasts as long as the object."""

    def __init__(self, position: str | None = None) -> None:
        self.position = position

    def load(self) -> str | None:
        """The text that was saved last."""
        return self.position

    def save(self, position: str) -> None:
        """Keeps the text."""
        self.position = position


class FileStore:
    """A position in a small file, replaced as a whole: after a crash it holds the old text or the new one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def load(self) -> str | None:
        """The text of the file, or None where there is no file. Raises StoreError."""
        try:
            return self.path.read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"cannot read the position in {self.path}: {error}") from error

    def save(self, position: str) -> None:
        """Writes a temporary file beside it, syncs it to disk and renames it. Raises StoreError."""
        try:
            self._replace(position)
        except OSError as error:
            raise StoreError(f"cannot write the position to {self.path}: {error}") from error

    def _replace(self, position: str) -> None:
        if self.path.exists() and not self.path.is_file():
            raise OSError("it is there already, and is no file")
        folder = self.path.parent
        handle, temporary = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(position + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        folder_handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_handle)
        finally:
            os.close(folder_handle)

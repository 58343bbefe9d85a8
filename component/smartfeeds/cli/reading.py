"""What `import`, `convert` and `merge` share: a document out of a file or standard input."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from smartfeeds.errors import ConfigError, DocumentError, FeedError
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.items import Document
from smartfeeds.formats.links import MAX_BASE_CHARACTERS, is_base
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.sync.documents import Form, form_of

# A path of a document; "-" is standard input.
DOCUMENT = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_CHUNK_BYTES = 256 * 1024


class BaseAddress(click.ParamType[str]):
    """The address that a document came from."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The address; ends the command where relative links cannot be resolved by it."""
        if value and not is_base(str(value)):
            self.fail(
                f"{str(value)[:100]!r} is no web address of at most {MAX_BASE_CHARACTERS} characters; "
                "give the http or https address that the document came from",
                param,
                ctx,
            )
        return str(value)


base_option = click.option(
    "--base", type=BaseAddress(), default="", help="The address the document came from, for relative links in it."
)


def name_of(file: Path) -> str:
    """What to call the file."""
    return "standard input" if str(file) == "-" else str(file)


def read_file(file: Path, base: str) -> Document:
    """The document in the file, of which no more is read than a document may have. Raises DocumentError."""
    name = name_of(file)
    try:
        with click.open_file(str(file), "rb") as opened:
            data = opened.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"cannot read {name}: {error.strerror}") from None
    with named(name):
        return read_document(data, base)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Names the document in an error that is due to it. Raises DocumentError instead of FeedError."""
    try:
        yield
    except FeedError as error:
        raise DocumentError(f"{name}: {error.text or error.condition.value}") from None


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A document that is being read: its name for people, its form, and its bytes from the beginning."""

    name: str
    form: Form
    chunks: Iterator[bytes]


@contextmanager
def open_source(file: Path) -> Iterator[OpenSource]:
    """A document that may have sync data, from a file. Raises DocumentError."""
    name = name_of(file)
    try:
        with click.open_file(str(file), "rb") as found:
            first = found.read(_CHUNK_BYTES)
            with named(name):
                form = form_of(first)
            yield OpenSource(name, form, _chunks(first, cast("BinaryIO", found)))
    except OSError as error:
        raise DocumentError(f"cannot read {name}: {error.strerror}") from None


@contextmanager
def open_bytes(data: bytes, name: str) -> Iterator[OpenSource]:
    """The same for a document that is here already."""
    with named(name):
        form = form_of(data[:_CHUNK_BYTES])
    yield OpenSource(name, form, (data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES)))


def _chunks(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield first
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


@dataclass(slots=True)
class FileSpool:
    """Items wait in a file without a name, which is gone when the command ends; the last ones in memory."""

    file: int
    written: int = 0
    waiting: bytearray = field(default_factory=bytearray)

    def append(self, data: bytes) -> int:
        """Keeps the bytes and says where they begin. Raises OSError."""
        at = self.written + len(self.waiting)
        self.waiting += data
        if len(self.waiting) >= _CHUNK_BYTES:
            left = memoryview(self.waiting)
            while left:
                left = left[os.write(self.file, left) :]
            self.written += len(self.waiting)
            self.waiting = bytearray()
        return at

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at a place. Raises OSError."""
        if offset >= self.written:
            return bytes(self.waiting[offset - self.written : offset - self.written + size])
        return os.pread(self.file, size, offset)


@contextmanager
def file_spool() -> Iterator[FileSpool]:
    """A spool on the disk. Raises ConfigError where items cannot be kept."""
    try:
        with tempfile.TemporaryFile(prefix="smartfeeds-") as file:
            yield FileSpool(file.fileno())
    except OSError as error:
        raise ConfigError(f"cannot keep the items in {tempfile.gettempdir()}: {error.strerror}") from None

"""Reads documents from files or standard input for `import`, `convert` and `merge`, and stores pieces on the disk."""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import click

from smartfeeds.app.formats import read_document
from smartfeeds.cli.common import name_of
from smartfeeds.errors import ConfigError, DocumentError, DocumentFormatError, FeedError, FormatError
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.links import MAX_BASE_CHARACTERS, is_base
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.sync.document_reader import HEAD_BYTES, FeedFormat, form_of

# The tree of a chunk fits in the cache of a processor: parsing 256 KiB at a time takes a quarter more of its time.
_CHUNK_BYTES = 64 * 1024
# Items of a feed are mostly read in the order in which they were written, so one call of the system reads several.
_BLOCK_BYTES = 16 * 1024


def base_address(text: str) -> str:
    """Return the address that a document came from, as the type of an option. Raises BadParameter."""
    if text and not is_base(text):
        raise click.BadParameter(
            f"{text[:100]!r} is not a web address of at most {MAX_BASE_CHARACTERS} characters; "
            "give the http or https address of the document"
        )
    return text


base_option = click.option(
    "--base",
    type=base_address,
    metavar="ADDRESS",
    default="",
    help="The address of the document, which resolves its relative links.",
)


def read_file(file: Path, base: str) -> FeedDocument:
    """Read the document in a file, up to the maximum size of a document. Raises DocumentError."""
    data = read_bytes(file, MAX_DOCUMENT_BYTES + 1)
    with named(name_of(file)):
        return read_document(data, base)


def read_bytes(file: Path, most: int) -> bytes:
    """Read at most so many bytes of a file. Raises DocumentError."""
    try:
        with click.open_file(str(file), "rb") as stream:
            return cast("bytes", stream.read(most))
    except OSError as error:
        raise DocumentError(f"cannot read {name_of(file)}: {error.strerror}") from None


@contextmanager
def named(name: str) -> Iterator[None]:
    """Add the name of the document to an error in it. Raises DocumentError in place of FeedError, and
    DocumentFormatError in place of FormatError.
    """
    try:
        yield
    except FeedError as error:
        kind = DocumentFormatError if isinstance(error, FormatError) else DocumentError
        raise kind(f"{name}: {error.text or error.condition.value}") from None


@dataclass(frozen=True, slots=True)
class OpenSource:
    """An open document: its name for messages, its format, and its bytes from the start."""

    name: str
    form: FeedFormat
    chunks: Iterator[bytes]


@contextmanager
def open_source(file: Path) -> Iterator[OpenSource]:
    """Open a document that may have sync data. Raises DocumentError."""
    name = name_of(file)
    try:
        with click.open_file(str(file), "rb") as stream:
            first = stream.read(HEAD_BYTES)
            with named(name):
                form = form_of(first)
            yield OpenSource(name, form, _chunks(first, cast("BinaryIO", stream)))
    except OSError as error:
        raise DocumentError(f"cannot read {name}: {error.strerror}") from None


@contextmanager
def open_bytes(data: bytes, name: str) -> Iterator[OpenSource]:
    """Open a document that is in memory."""
    with named(name):
        form = form_of(data[:HEAD_BYTES])
    yield OpenSource(name, form, (data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES)))


def _chunks(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield first
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def whole_document(source: OpenSource) -> bytes:
    """Return the bytes of a document, a few more than a document may have if it is larger."""
    data = bytearray()
    for chunk in source.chunks:
        data += chunk
        if len(data) > MAX_DOCUMENT_BYTES:
            break
    return bytes(data)


@dataclass(slots=True)
class FileSpool:
    """A spool in an unnamed temporary file, which the system removes when the command ends. The last items are in
    memory.
    """

    file: int
    written: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    block: bytes = b""
    block_at: int = 0

    def append(self, data: bytes) -> int:
        """Store the bytes and return their offset. Raises OSError."""
        # The bytes in memory are written all at once, so an item is in the file or in memory, never in both.
        at = self.written + len(self.waiting)
        self.waiting += data
        if len(self.waiting) >= _CHUNK_BYTES:
            rest = memoryview(self.waiting)
            while rest:
                rest = rest[os.write(self.file, rest) :]
            self.written += len(self.waiting)
            self.waiting = bytearray()
        return at

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at an offset. Raises OSError."""
        if offset >= self.written:
            return bytes(self.waiting[offset - self.written : offset - self.written + size])
        start = offset - self.block_at
        if start < 0 or start + size > len(self.block):
            self.block, self.block_at, start = os.pread(self.file, max(size, _BLOCK_BYTES), offset), offset, 0
        return self.block[start : start + size]


@contextmanager
def file_spool() -> Iterator[FileSpool]:
    """Yield a spool on the disk. Raises ConfigError if it cannot be written."""
    try:
        with tempfile.TemporaryFile(prefix="smartfeeds-") as file:
            yield FileSpool(file.fileno())
    except OSError as error:
        raise ConfigError(f"cannot write to the folder {tempfile.gettempdir()}: {error.strerror}; set TMPDIR") from None


@dataclass(slots=True)
class SpooledPieces:
    """Pieces of a document in a spool, in their order."""

    spool: FileSpool
    sizes: "array[int]" = field(default_factory=lambda: array("q"))

    def extend(self, pieces: Iterable[bytes]) -> None:
        """Store the pieces behind the others. Raises OSError."""
        for piece in pieces:
            self.spool.append(piece)
            self.sizes.append(len(piece))

    def __iter__(self) -> Iterator[bytes]:
        offset = 0
        for size in self.sizes:
            yield self.spool.read(offset, size)
            offset += size


@contextmanager
def spooled_pieces() -> Iterator[SpooledPieces]:
    """Yield an empty list of pieces on the disk. Raises ConfigError if it cannot be written."""
    with file_spool() as spool:
        yield SpooledPieces(spool)

"""Bodies of answers, no larger than somebody decided: what is compressed counts as large as it becomes (RFC 9110 8.4).

Compressed data is taken apart in steps that cannot grow beyond the limit, so a small answer cannot fill the memory.
"""

import zlib
from typing import Final, Protocol

ENCODINGS: Final = "gzip, deflate"
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, whichever is there
_NO_HEADER: Final = -zlib.MAX_WBITS


class BodyError(Exception):
    """The body is larger than allowed, or cannot be read; the text says which."""


class Body(Protocol):
    """A body that is being received."""

    def feed(self, data: bytes) -> None:
        """Takes what has come. Raises BodyError."""

    def whole(self) -> bytes:
        """The body, once everything has come. Raises BodyError where something is missing."""


def body_of(encoding: str, max_bytes: int) -> Body:
    """The reader for a Content-Encoding. Raises BodyError for one that was not asked for."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain(max_bytes)
    if name in ("gzip", "x-gzip", "deflate"):
        return _Compressed(max_bytes)
    raise BodyError(f"is compressed in a way that was not asked for ({name[:20]})")


class _Plain:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        if len(self._body) + len(data) > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        self._body += data

    def whole(self) -> bytes:
        return bytes(self._body)


class _Compressed(_Plain):
    """gzip of one or several members, zlib, or deflate without any header."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._taken_bytes = 0
        self._members = 0
        self._unpack = zlib.decompressobj(_ANY_HEADER)

    def feed(self, data: bytes) -> None:
        first = self._taken_bytes == 0
        self._taken_bytes += len(data)
        if self._taken_bytes > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        try:
            self._take(data)
        except zlib.error:
            if self._members:  # what stands behind a whole member belongs to nobody
                self._unpack = zlib.decompressobj(_ANY_HEADER)
                return
            if not first:
                raise BodyError("is not the compressed data it says it is") from None
            self._take_bare(data)

    def _take_bare(self, data: bytes) -> None:
        self._unpack = zlib.decompressobj(_NO_HEADER)
        self._body.clear()
        try:
            self._take(data)
        except zlib.error:
            raise BodyError("is not the compressed data it says it is") from None

    def _take(self, data: bytes) -> None:
        while data:
            if self._unpack.eof:
                self._unpack = zlib.decompressobj(_ANY_HEADER)
            room = self._max_bytes - len(self._body)
            super().feed(self._unpack.decompress(data, room + 1))
            data = self._unpack.unconsumed_tail
            if self._unpack.eof:
                self._members += 1
                data = self._unpack.unused_data

    def whole(self) -> bytes:
        if self._taken_bytes and not self._members:
            raise BodyError("is cut off")
        return super().whole()

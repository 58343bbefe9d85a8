"""Bodies of responses up to a limit, which counts the bytes after decompression (RFC 9110 section 8.4).

Decompression goes in steps that cannot grow beyond the limit, so a small response cannot fill the memory.
"""

import zlib
from typing import Final, Protocol

ENCODINGS: Final = "gzip, deflate"
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, whichever is there
_NO_HEADER: Final = -zlib.MAX_WBITS
# zlib copies the rest of the data behind each member, so many small members would stall the event loop. Programs that
# write several (bgzip) put 64 KiB into each.
_MAX_MEMBERS: Final = 1_000


class BodyError(Exception):
    """The body is larger than the limit, or cannot be read; the text says which."""


class Body(Protocol):
    """A body that is being received."""

    def feed(self, data: bytes) -> None:
        """Adds bytes as they arrive. Raises BodyError."""

    def whole(self) -> bytes:
        """The body, after the last byte. Raises BodyError if its end is missing."""


def body_of(encoding: str, max_bytes: int) -> Body:
    """The reader for a Content-Encoding. Raises BodyError for an encoding that the request did not accept."""
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
        self._packed_bytes = 0
        self._members = 0
        self._unpack = zlib.decompressobj(_ANY_HEADER)

    def feed(self, data: bytes) -> None:
        first = self._packed_bytes == 0
        self._packed_bytes += len(data)
        if self._packed_bytes > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        try:
            self._unpack_all(data)
        except zlib.error:
            if self._members:  # bytes behind a complete member are padding or junk: ignore them
                self._unpack = zlib.decompressobj(_ANY_HEADER)
                return
            if not first:
                raise BodyError("is not the compressed data it says it is") from None
            self._unpack_bare(data)

    def _unpack_bare(self, data: bytes) -> None:
        self._unpack = zlib.decompressobj(_NO_HEADER)
        self._body.clear()
        try:
            self._unpack_all(data)
        except zlib.error:
            raise BodyError("is not the compressed data it says it is") from None

    def _unpack_all(self, data: bytes) -> None:
        while data:
            if self._unpack.eof:
                self._unpack = zlib.decompressobj(_ANY_HEADER)
            room = self._max_bytes - len(self._body)
            super().feed(self._unpack.decompress(data, room + 1))
            data = self._unpack.unconsumed_tail
            if self._unpack.eof:
                self._members += 1
                if self._members > _MAX_MEMBERS:
                    raise BodyError(f"has more than {_MAX_MEMBERS} gzip members")
                data = self._unpack.unused_data

    def whole(self) -> bytes:
        if self._packed_bytes and not self._members:
            raise BodyError("is cut off")
        return super().whole()

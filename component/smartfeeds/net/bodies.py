"""Bodies of responses up to a limit, which counts the bytes after decompression (RFC 9110 section 8.4).

Decompression goes in steps that cannot grow beyond the limit, so a small response cannot fill the memory.
"""

import zlib
from typing import Final

ENCODINGS: Final = "gzip, deflate"
_PLAIN: Final = frozenset({"", "identity"})
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as the data begins
_NO_HEADER: Final = -zlib.MAX_WBITS
# zlib copies the rest of the data behind each member, so many small members would stall the event loop. Programs that
# write several (bgzip) put 64 KiB into each.
_MAX_MEMBERS: Final = 1_000


class BodyError(Exception):
    """The body is larger than the limit, or cannot be read; the text says which."""


class Body:
    """A body that is being received: as it is, gzip of one or several members, zlib, or deflate without any header.

    Raises BodyError for a Content-Encoding that the request did not accept.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        name = encoding.strip().lower()
        if name not in _PLAIN and name not in _COMPRESSED:
            raise BodyError(f"is compressed in a way that was not asked for ({name[:20]})")
        self._max_bytes = max_bytes
        self._received_bytes = 0
        self._body = bytearray()
        self._members = 0
        self._unpacker = None if name in _PLAIN else zlib.decompressobj(_ANY_HEADER)

    def feed(self, data: bytes) -> None:
        """Adds bytes as they arrive. Raises BodyError."""
        first = self._received_bytes == 0
        self._received_bytes += len(data)
        if self._received_bytes > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        if self._unpacker is None:
            self._body += data
            return
        try:
            try:
                self._unpack(data, self._unpacker)
            except zlib.error:
                if self._members:  # bytes behind a complete member are padding or junk: ignore them
                    self._unpacker = zlib.decompressobj(_ANY_HEADER)
                    return
                if not first:
                    raise
                self._body.clear()
                self._unpack(data, zlib.decompressobj(_NO_HEADER))
        except zlib.error:
            raise BodyError("is not the compressed data it says it is") from None

    def _unpack(self, data: bytes, unpacker: "zlib._Decompress") -> None:
        while data:
            if unpacker.eof:
                unpacker = zlib.decompressobj(_ANY_HEADER)
            # One byte more than there is room for shows that the body is too large.
            self._body += unpacker.decompress(data, self._max_bytes - len(self._body) + 1)
            if len(self._body) > self._max_bytes:
                raise BodyError(f"is larger than {self._max_bytes} bytes")
            data = unpacker.unconsumed_tail
            if unpacker.eof:
                self._members += 1
                if self._members > _MAX_MEMBERS:
                    raise BodyError(f"has more than {_MAX_MEMBERS} gzip members")
                data = unpacker.unused_data
        self._unpacker = unpacker

    def whole(self) -> bytes:
        """The body, after the last byte. Raises BodyError if its end is missing."""
        if self._unpacker is not None and self._received_bytes and not self._members:
            raise BodyError("is cut off")
        return bytes(self._body)

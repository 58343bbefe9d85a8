"""Bodies of responses up to a limit, which counts the bytes after decompression (RFC 9110 section 8.4).

Decompression goes in small steps, so a small response can neither fill the memory nor stall the event loop.
"""

import asyncio
import zlib
from io import BytesIO
from typing import Final

ENCODINGS: Final = "gzip, deflate"  # those of the standard library
# The other names of the HTTP Content Coding Registry, and older ones. Anything else is no coding: servers write the
# charset (`utf-8`), `none` or `binary` there.
_OTHERS: Final = frozenset(
    {
        *("br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip"),
        *("bzip2", "x-bzip2", "lzma", "xz", "sdch"),
    }
)
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_MAGIC: Final = b"\x1f\x8b"  # RFC 1952 section 2.3.1
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as the data begins
_NO_HEADER: Final = -zlib.MAX_WBITS
# The event loop waits for one step. 128 KiB of output take less than a millisecond. Input is cut as well, because zlib
# copies the input that is left after each step and each member.
_STEP_INPUT_BYTES: Final = 16 * 1024
_STEP_OUTPUT_BYTES: Final = 128 * 1024
# Programs that write several members (bgzip) put 64 KiB into each, so 1,000 have 62 MiB. An empty member takes 20 bytes
# and 7 us: without a limit 10 MB of them would take 4 s.
_MAX_MEMBERS: Final = 1_000


class BodyError(Exception):
    """The body is larger than the limit, or cannot be read; the text says which."""


class Body:
    """A body that is being received: as it is, gzip of one or several members, zlib, or deflate without any header.

    Raises BodyError for a Content-Encoding that the request did not accept. Names of no coding are ignored.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        codings = [name for name in names if name in _COMPRESSED or name in _OTHERS]
        if len(codings) > 1 or not _OTHERS.isdisjoint(codings):
            raise BodyError(f"is compressed in a way that was not asked for ({', '.join(codings)[:20]})")
        self._compressed = bool(codings)
        self._max_bytes = max_bytes
        self._received_bytes = 0
        self._body = BytesIO()  # hands its bytes over without a copy
        self._members = 0
        self._unpacker: zlib._Decompress | None = None  # None before and behind a member
        self._input = b""  # compressed bytes that wait for a step
        self._padded = False  # the last member has ended, and the rest is ignored

    async def feed(self, data: bytes) -> None:
        """Adds bytes as they arrive. Other tasks run between the steps of decompression. Raises BodyError."""
        self._received_bytes += len(data)
        if self._received_bytes > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        if not self._compressed:
            self._body.write(data)
            return
        for start in range(0, len(data), _STEP_INPUT_BYTES):
            self._input += data[start : start + _STEP_INPUT_BYTES]
            while self._step():  # noqa: ASYNC110 - a pause between steps, not a wait for an event
                await asyncio.sleep(0)

    def _step(self) -> bool:
        """Decompresses one step of the input. Returns whether another step may find something to do."""
        unpacker = self._unpacker or self._next_member()
        if unpacker is None:
            return False
        # One byte more than there is room for shows that the body is too large.
        step_bytes = min(_STEP_OUTPUT_BYTES, self._max_bytes - self._body.tell() + 1)
        try:
            output = unpacker.decompress(self._input, step_bytes)
        except zlib.error:
            raise BodyError("is not the compressed data it says it is") from None
        self._body.write(output)
        if self._body.tell() > self._max_bytes:
            raise BodyError(f"is larger than {self._max_bytes} bytes")
        self._unpacker, self._input = unpacker, unpacker.unconsumed_tail
        if unpacker.eof:
            self._unpacker, self._input = None, unpacker.unused_data
            self._members += 1
            if self._members > _MAX_MEMBERS:
                raise BodyError(f"has more than {_MAX_MEMBERS} gzip members")
        # After a full step zlib may hold output back although it has read all of the input.
        return bool(self._input) or len(output) == step_bytes

    def _next_member(self) -> "zlib._Decompress | None":
        """The decompressor for the member that begins with the input; None if none begins, or too few bytes are here
        to see how it begins."""
        if self._members:
            # Tapes and some programs pad a gzip file with zeros. Other bytes that begin no member are junk.
            self._input = self._input.lstrip(b"\0")
            self._padded = self._padded or not _GZIP_MAGIC.startswith(self._input[:2])
            if self._padded:
                self._input = b""
        if len(self._input) < 2:
            return None
        # Some servers take the name "deflate" literally and send no zlib header.
        has_header = self._input.startswith(_GZIP_MAGIC) or _is_zlib_header(self._input)
        return zlib.decompressobj(_ANY_HEADER if has_header else _NO_HEADER)

    def whole(self) -> bytes:
        """The body, after the last byte. Raises BodyError if its end is missing."""
        if self._unpacker is not None or self._input:
            raise BodyError("is cut off")
        return self._body.getvalue()


def _is_zlib_header(data: bytes) -> bool:
    """Whether data begin with a zlib header: method 8, and a check of two bytes (RFC 1950 section 2.2). Deflate data
    without a header do not, because method 8 would be a stored block with a padding that is not zero."""
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0

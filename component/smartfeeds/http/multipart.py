"""Bodies of several parts: fields as text, and files that go to a folder while they arrive (RFC 7578)."""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import BodyPartReader, MultipartReader
from aiohttp.http_exceptions import HttpProcessingError

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.uploads import UploadName, Uploads
from smartfeeds.formats.entry import EntryLink
from smartfeeds.http.bodies import content_too_large, invite, paced, within
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.post_fields import MAX_FIELDS

MAX_FILES = 20
_FIRST_FIELD_BYTES = 1_024  # of a field that is read before the request is accepted
_CHUNK_BYTES = 65_536
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary", "identity"})


class Parts(NamedTuple):
    """The fields and the files of a body, with their names, in their order."""

    fields: list[tuple[str, str]]
    files: list[tuple[str, EntryLink]]


class _Part(BodyPartReader):
    """A part whose header Content-Disposition was read without a fault."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # The library only warns of what it cannot read, and would store a file without its name.
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                _ = self.name, self.filename
            except (LookupError, RuntimeWarning) as error:
                raise ValueError(f"Content-Disposition: {error}") from None


class _Reader(MultipartReader):
    part_reader_cls = _Part


BeforeFile = Callable[[Sequence[tuple[str, str]]], Awaitable[None]]


async def read_parts(
    call: HttpCall, uploads: Uploads, limit_bytes: int, before_file: BeforeFile | None = None
) -> Parts:
    """The parts of a body. All fields together have at most `limit_bytes`. `before_file` is called with the fields that
    came before a file, and may reject the request.

    Raises HttpError, and FeedError(BAD_REQUEST) for a body that is malformed.
    """
    parts = Parts([], [])
    with _faults():
        reader = call.multipart or await _open(call)
        while (part := await _next_part(reader, uploads.timeout_s)) is not None:
            if part.filename is not None:
                if before_file is not None:
                    await before_file(parts.fields)
                await _read_file(call, uploads, part, parts)
            else:
                limit_bytes -= await _read_field(part, parts, limit_bytes, uploads.timeout_s)
    return parts


async def read_first_field(call: HttpCall, timeout_s: float) -> tuple[str, str]:
    """The name and the value of the first part, which `read_parts` leaves out then. Two empty texts if it is a file.

    Raises as `read_parts` does.
    """
    with _faults():
        reader = call.multipart = await _open(call)
        part = await _next_part(reader, timeout_s)
        if part is None or part.filename is not None:
            return "", ""
        parts = Parts([], [])
        await _read_field(part, parts, _FIRST_FIELD_BYTES, timeout_s)
    return parts.fields[0]


async def _open(call: HttpCall) -> MultipartReader:
    await invite(call)
    return _Reader(call.request.headers, call.request.content)


@contextmanager
def _faults() -> Iterator[None]:
    """Turns what the library raises for a missing boundary, a line that is too long or a malformed header into
    FeedError(BAD_REQUEST)."""
    try:
        yield
    except (ValueError, AssertionError, HttpProcessingError) as error:
        raise FeedError(Condition.BAD_REQUEST, f"the multipart body is malformed: {str(error)[:80]}") from error


async def _next_part(reader: MultipartReader, timeout_s: float) -> BodyPartReader | None:
    """The next part, None at the end."""
    part = await within(reader.next(), timeout_s)
    if part is None:
        return None
    if not isinstance(part, BodyPartReader):
        raise FeedError(Condition.BAD_REQUEST, "a part of the body is itself a multipart; send its parts")
    _check_encoding(part)
    return part


async def _read_file(call: HttpCall, uploads: Uploads, part: BodyPartReader, parts: Parts) -> None:
    if len(parts.files) == MAX_FILES:
        raise FeedError(Condition.BAD_REQUEST, f"an item has at most {MAX_FILES} files")
    declared_type = part.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    name = UploadName.of(part.filename or "", declared_type)
    # A form without a chosen file sends an empty part without a name.
    first = await within(part.read_chunk(_CHUNK_BYTES), uploads.timeout_s)
    if not name.name and not first:
        return
    link = await uploads.receive(call, name, _chunks(part, first), await uploads.space_bytes(call))
    parts.files.append((part.name or "", link))


async def _read_field(part: BodyPartReader, parts: Parts, limit_bytes: int, timeout_s: float) -> int:
    """Adds a field, and returns its size in bytes."""
    if len(parts.fields) == MAX_FIELDS:
        raise FeedError(Condition.BAD_REQUEST, f"a post has at most {MAX_FIELDS} fields")
    value = bytearray()
    async for chunk in paced(_chunks(part), timeout_s):
        value += chunk
        if len(value) > limit_bytes:
            raise content_too_large(f"the fields have more than {limit_bytes} bytes")
    try:
        parts.fields.append((part.name or "", value.decode()))
    except UnicodeDecodeError:
        raise FeedError(Condition.BAD_REQUEST, f"the field {(part.name or '')[:40]!r} is not UTF-8") from None
    return len(value)


def _check_encoding(part: BodyPartReader) -> None:
    """Raises FeedError for an encoded part (RFC 7578 4.7)."""
    for header in ("Content-Transfer-Encoding", "Content-Encoding"):
        if part.headers.get(header, "").strip().lower() not in _PLAIN_ENCODINGS:
            raise FeedError(Condition.BAD_REQUEST, f"a part of the body has a {header}; send its bytes as they are")


async def _chunks(part: BodyPartReader, first: bytes = b"") -> AsyncIterator[bytes]:
    if first:
        yield first
    while chunk := await part.read_chunk(_CHUNK_BYTES):
        yield chunk

"""Bodies of several parts (RFC 7578): how their parts are read, and the field that comes first."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from aiohttp import BodyPartReader, MultipartReader, content_disposition_filename
from aiohttp.http_exceptions import HttpProcessingError

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.bodies import content_too_large, invite, paced, within
from smartfeeds.http.calls import HttpCall

CHUNK_BYTES = 65_536  # of a part in memory
_FIRST_FIELD_BYTES = 1_024  # of a field that is read before the request is accepted
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_DISPOSITION = re.compile(rf"\s*{_WORD}\s*")
# Browsers write a backslash as it is, so the second pattern of a quoted value is for one at its end.
_PARAMETER = re.compile(rf""";\s*({_WORD})\s*=\s*(?:({_WORD})|"((?:[^"\\]|\\.)*)"|"([^"]*)")\s*(?=;|\Z)""", re.DOTALL)
_QUOTED_PAIR = re.compile(r"\\([\0-\x7f])")
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary", "identity"})


class _Part(BodyPartReader):
    """A part whose header Content-Disposition was read without a fault.

    The library only warns of a fault, and would store a file without its name. An error in place of the warning would
    need another filter of warnings in the whole process, where other threads run.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        parameters = _parameters(self.headers.get("Content-Disposition", ""))
        self._name, self._filename = (_named(parameters, name) for name in ("name", "filename"))

    @property
    def name(self) -> str | None:
        """The name of the field."""
        return self._name

    @property
    def filename(self) -> str | None:
        """The name of the file, None if the part is no file."""
        return self._filename


def _unreadable(error: str) -> ValueError:
    """Returns the error for a header with this text in it."""
    return ValueError(f"Content-Disposition: {error}")


def _parameters(header: str) -> dict[str, str]:
    """The parameters of Content-Disposition (RFC 6266 4.1). Raises ValueError."""
    parameters: dict[str, str] = {}
    if not header:
        return parameters
    fault = _unreadable(header)
    match = _DISPOSITION.match(header)
    if match is None:
        raise fault
    while match.end() < len(header):
        match = _PARAMETER.match(header, match.end())
        if match is None or (key := match[1].lower()) in parameters:
            raise fault
        quoted = match[3] or match[4] or ""
        value = match[2] or _QUOTED_PAIR.sub(r"\1", quoted.lstrip("\\/"))
        if key.endswith("*") and not key.partition("*")[2][:-1]:
            value = _decoded(value)
        parameters[key] = value
    return parameters


def _decoded(value: str) -> str:
    """A text with its charset and language (RFC 8187 3.2). Raises ValueError."""
    try:
        charset, _, text = value.split("'")
        return unquote(text, charset or "utf-8", "strict")
    except (LookupError, ValueError):
        raise _unreadable(value) from None


def _named(parameters: Mapping[str, str], name: str) -> str | None:
    """The value of a parameter, which may come in parts (RFC 2231 3). Raises ValueError."""
    value = content_disposition_filename(parameters, name)
    if value is None and any(key.startswith(f"{name}*") for key in parameters):
        raise _unreadable(name)
    return value


class _Reader(MultipartReader):
    part_reader_cls = _Part


async def read_first_field(call: HttpCall, timeout_s: float) -> tuple[str, str]:
    """The name and the value of the first part, which `open_parts` leaves out then. Two empty texts if it is a file.

    Raises HttpError, and FeedError(BAD_REQUEST) for a body that is malformed.
    """
    with part_faults():
        reader = call.multipart = await open_parts(call)
        part = await next_part(reader, timeout_s)
        if part is None or part.filename is not None:
            return "", ""
        return await read_field(part, _FIRST_FIELD_BYTES, timeout_s)


async def open_parts(call: HttpCall) -> MultipartReader:
    """The reader of the parts. Raises as the library does; see `part_faults`."""
    if call.multipart is not None:
        return call.multipart
    await invite(call)
    return _Reader(call.request.headers, call.request.content)


@contextmanager
def part_faults() -> Iterator[None]:
    """Turns what aiohttp raises into FeedError(BAD_REQUEST): AssertionError for a missing boundary, others for a line
    that is too long or a malformed header."""
    try:
        yield
    except (ValueError, AssertionError, HttpProcessingError) as error:
        raise FeedError(Condition.BAD_REQUEST, f"the multipart body is malformed: {str(error)[:80]}") from error


async def next_part(reader: MultipartReader, timeout_s: float) -> BodyPartReader | None:
    """The next part, None at the end. Raises FeedError, HttpError(408)."""
    part = await within(reader.next(), timeout_s)
    if part is None:
        return None
    if not isinstance(part, BodyPartReader):
        raise FeedError(Condition.BAD_REQUEST, "a part of the body is itself a multipart; send its parts")
    _check_encoding(part)
    return part


async def read_field(part: BodyPartReader, limit_bytes: int, timeout_s: float) -> tuple[str, str]:
    """The name and the value of a part that is no file. Raises FeedError, and HttpError: 408 or 413."""
    value = bytearray()
    async for chunk in paced(chunks_of(part), timeout_s):
        value += chunk
        if len(value) > limit_bytes:
            raise content_too_large(
                f"the fields have more than {limit_bytes:,} bytes, which is the limit; shorten the text"
            )
    try:
        return part.name or "", value.decode()
    except UnicodeDecodeError:
        raise FeedError(Condition.BAD_REQUEST, f"the field {(part.name or '')[:40]!r} is not UTF-8") from None


def _check_encoding(part: BodyPartReader) -> None:
    """Raises FeedError for an encoded part (RFC 7578 4.7)."""
    for header in ("Content-Transfer-Encoding", "Content-Encoding"):
        if part.headers.get(header, "").strip().lower() not in _PLAIN_ENCODINGS:
            raise FeedError(Condition.BAD_REQUEST, f"a part of the body has a {header}; send its bytes as they are")


async def chunks_of(part: BodyPartReader, first: bytes = b"") -> AsyncIterator[bytes]:
    """Yields the bytes of a part; `first` are those that were read before."""
    if first:
        yield first
    while chunk := await part.read_chunk(CHUNK_BYTES):
        yield chunk

"""Files of feeds as responses, whole and in parts, with the access rules of the feed (RFC 9110 13, 14; RFC 6266).

A browser shows pictures, sound and films of known types and saves everything else. No file can run as a page of this
site: its type is not guessed, and its sandbox allows nothing.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import IO, Protocol
from urllib.parse import quote

import structlog
from aiohttp import web

from smartfeeds.core.feed_files import OCTETS, SHOWN_TYPES, FeedFile, is_shown
from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.operations import IF_NONE_MATCH, Operation, Parameter
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.requests import FileShown, Request

_log = structlog.get_logger()

CHUNK_BYTES = 65_536  # of a file in memory for each client; each is read in a thread
_NO_BYTES = re.compile(r"bytes=\s*-0+\s*")  # the last 0 bytes; aiohttp reads this as the whole file
_BYTES = {"type": "string", "format": "binary"}
_RANGE = Parameter("Range", {"type": "string"}, "bytes=FIRST-LAST: a part of the file", "header")
_CONTENT = dict.fromkeys((*sorted(SHOWN_TYPES), OCTETS), _BYTES)


def file_operation(name: str, summary: str) -> Operation:
    """The operation that returns a file, or a part of it."""
    return Operation(
        name,
        summary,
        {200: _CONTENT, 206: _CONTENT},
        errors=(416,),
        parameters=(IF_NONE_MATCH, _RANGE),
        scope=TokenScope.READ,
        cors=True,
    )


class StoredFiles(Protocol):
    """A folder of files under their digests; see `store.file_folder.FileFolder`."""

    async def open(self, digest: str) -> IO[bytes] | None:
        """A stored file for reading, None if it is missing. Raises StoreError."""


class FileReplies:
    """Handles GET and HEAD of files in `files`, None if there are none. `service` is the address of the service,
    `request` makes the request for a file, from the actor, that address, the feed and the id of the file."""

    def __init__(
        self, handle: Handle, service: str, files: StoredFiles | None, request: Callable[[Jid, str, str, str], Request]
    ) -> None:
        self._handle = handle
        self._service = service
        self._files = files
        self._request = request

    async def get(self, call: HttpCall) -> Reply | web.StreamResponse:
        """A file, or a part of it. Raises FeedError."""
        answer = await ask(self._handle, self._request(call.actor, self._service, call.name, call.item_id), FileShown)
        file = answer.file
        headers = _headers(answer) | access_headers(public=answer.public and call.anonymous, bearer=call.bearer)
        # Ranges are parts of the bytes as stored, so no proxy may compress them.
        headers["Cache-Control"] += ", no-transform"
        known = unless_known(call.header("If-None-Match"), Reply(headers=headers))
        if known.status is HTTPStatus.NOT_MODIFIED:
            return known
        headers["Content-Type"] = file.media_type if is_shown(file.media_type) else OCTETS
        start, end = _range(call, file, (headers["ETag"], headers["Last-Modified"]))
        is_part = (start, end) != (0, file.size_bytes)
        if is_part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size_bytes}"
        content = await self._files.open(file.digest) if self._files is not None else None
        if content is None:
            _log.error("file_missing", digest=file.digest, feed=call.name)
            raise FeedError(Condition.ITEM_NOT_FOUND, "the file is missing on this service; tell its operator")
        try:
            return await _send(
                call, content, start, end, headers, HTTPStatus.PARTIAL_CONTENT if is_part else HTTPStatus.OK
            )
        finally:
            content.close()


async def _send(
    call: HttpCall, file: IO[bytes], start: int, end: int, headers: Mapping[str, str], status: HTTPStatus
) -> web.StreamResponse:
    """Writes a part of a file. Each piece waits until the client has read most of those before it; a client that does
    not read is disconnected (`HttpListener.watch`)."""
    # With the common headers of all responses: nosniff above all.
    response = web.StreamResponse(status=status, headers=Reply(headers=headers).all_headers())
    response.content_length = end - start
    await response.prepare(call.request)
    if call.method != "HEAD":
        file.seek(start)
        while start < end:
            chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, end - start))
            if not chunk:
                raise ConnectionResetError("the file is shorter than its row says")
            await response.write(chunk)
            start += len(chunk)
    await response.write_eof()
    return response


def _headers(answer: FileShown) -> dict[str, str]:
    file = answer.file
    kind = "inline" if is_shown(file.media_type) else "attachment"
    return {
        "Accept-Ranges": "bytes",
        "Content-Disposition": _disposition(kind, file.name or file.file_id),
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        "ETag": f'"{answer.tag}"',
        "Last-Modified": formatdate(file.created_us // US_PER_S, usegmt=True),
        "Vary": "Authorization",
    }


def _disposition(kind: str, name: str) -> str:
    """The header Content-Disposition (RFC 6266 4.3, appendix D)."""
    plain = "".join(char if " " <= char <= "~" and char not in '"\\%' else "_" for char in name)
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _range(call: HttpCall, file: FeedFile, validators: Collection[str]) -> tuple[int, int]:
    """The first byte to send and the one behind the last. Several ranges, or a range of another version, give the whole
    file (RFC 9110 13.1.5, 14.2). Raises HttpError(416)."""
    whole = (0, file.size_bytes)
    if_range = call.header("If-Range")
    if not call.header("Range") or (if_range and if_range not in validators):
        return whole
    if _NO_BYTES.fullmatch(call.header("Range")):
        raise _unsatisfiable(file)
    try:
        span = call.request.http_range
    except ValueError:
        return whole
    start, end, _ = span.indices(file.size_bytes)
    if start >= end:
        raise _unsatisfiable(file)
    return start, end


def _unsatisfiable(file: FeedFile) -> HttpError:
    return HttpError(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        f"the file has {file.size_bytes} bytes",
        Content_Range=f"bytes */{file.size_bytes}",
    )

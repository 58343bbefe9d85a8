"""Responses as values: a status, headers and bytes.

aiohttp's `web.Response` can be sent once, for one request. A `Reply` is cached, shared by held pulls, and written as
raw bytes: they bypass aiohttp's writer, so 10,000 held pulls get theirs in one pass before any of them ends.

Only this module and `server.HttpConnection` depend on aiohttp's internals; tests/protocol/test_aiohttp_contract.py
checks them. aiohttp counts the bytes that its writer sent in `output_size`, so a response that has begun can be
recognised.
"""

import gzip
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

GZIP_FROM_BYTES = 1_024  # a shorter body and its head are one packet in any case
# A JSON page of 57 KB takes 0.6 ms and has 12.9 KB then. At level 6 it takes 2.0 ms and has 11.2 KB.
GZIP_LEVEL = 4
# Memory of a response without its body and own headers: the objects, and the common headers in the bytes of the head.
REPLY_BYTES = 512
_NO_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_OK = "HTTP/1.1 200 OK"
# No browser may guess a media type, frame a page, or send its address to other hosts.
_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Server": "smartfeeds",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A response. `headers` are added to those of every response and replace headers of the same name."""

    body: bytes = b""
    media_type: str = ""
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    # Made once, because a response may be sent many times. Lists, because the value is frozen; empty until then.
    _head: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)
    _zipped: "list[Reply]" = field(default_factory=list, init=False, repr=False, compare=False)

    def zipped(self) -> "Reply":
        """The same with a compressed body, unless the body is too short to gain by it."""
        if len(self.body) < GZIP_FROM_BYTES or "Content-Encoding" in self.headers:
            return self
        if not self._zipped:
            body = gzip.compress(self.body, GZIP_LEVEL, mtime=0)  # equal bodies give equal bytes
            self._zipped.append(replace(self, body=body, headers={**self.headers, "Content-Encoding": "gzip"}))
        return self._zipped[0]

    @property
    def size_bytes(self) -> int:
        """The memory of the response: its body, and its headers as texts and as the bytes of the head."""
        return len(self.body) + REPLY_BYTES + 2 * sum(map(len, self.headers.values()))

    def with_headers(self, **headers: str) -> "Reply":
        """The same with more headers; an underscore stands for a hyphen."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **more})

    def with_status(self, status: HTTPStatus) -> "Reply":
        """The same with another status."""
        return replace(self, status=status)

    def all_headers(self) -> dict[str, str]:
        """Every header but those of the connection."""
        headers = {**_COMMON, **self.headers}
        if self.media_type:
            headers["Content-Type"] = self.media_type
        return headers

    def response(self) -> web.Response:
        """The response for aiohttp."""
        body = None if self.status in _NO_BODY else self.body
        return web.Response(status=self.status, body=body, headers=self.all_headers())

    def raw(self) -> bytes:
        """The whole response for a connection that stays open (HTTP/1.1). The head is made once."""
        if not self._head:
            # Two properties of an enumeration take as long as the other headers.
            head = [_OK if self.status is HTTPStatus.OK else f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
            head += [f"{name}: {value}" for name, value in self.all_headers().items()]
            if self.status not in _NO_BODY:
                head.append(f"Content-Length: {len(self.body)}")
            self._head.append("\r\n".join(head).encode())
        return b"%b\r\nDate: %b\r\n\r\n%b" % (self._head[0], _date(int(time.time())), self.body)


def access_headers(*, public: bool, bearer: bool, expose: str = "") -> dict[str, str]:
    """The headers that say who may store a representation of a feed, and whether other hosts' pages may read it (CORS).

    `public`: it is for everybody, and the request has no credentials. `bearer`: the request has a bearer token. A
    browser adds a password or a cookie by itself, so a response to these must not be readable elsewhere, not even later
    from the cache. `expose` names the headers that other pages may read.
    """
    headers = {"Cache-Control": "no-cache" if public else "private, no-cache"}
    if public or bearer:
        headers["Access-Control-Allow-Origin"] = "*"
        if expose:
            headers["Access-Control-Expose-Headers"] = expose
    return headers


async def begin_stream(request: web.BaseRequest, media_type: str, headers: Mapping[str, str]) -> web.StreamResponse:
    """Sends the head of a response whose body is written in pieces."""
    response = web.StreamResponse(headers=Reply(media_type=media_type, headers=headers).all_headers())
    # In HTTP/1.0 the end of the connection is the end of the body.
    if request.version >= HttpVersion11:
        response.enable_chunked_encoding()
    await response.prepare(request)
    return response


@lru_cache(1)  # held pulls get their responses by the thousand within a second
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


class AlreadySent(web.StreamResponse):
    """A placeholder for a response whose bytes were sent already."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002 - as in aiohttp
        """Sends nothing."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Sends nothing."""

    @property
    def keep_alive(self) -> bool | None:
        """True: `early_writer` accepts only connections that stay open."""
        return True


# One for all: aiohttp changes nothing of it.
ALREADY_SENT: Final = AlreadySent()


def early_writer(request: web.BaseRequest) -> Callable[[bytes], None] | None:
    """A function that writes a whole response at once; the handler then returns `ALREADY_SENT`.

    None if the connection is closed, or will be closed after the response and needs a header that says so (HTTP/1.0,
    `Connection: close`).
    """
    return partial(_write, request) if _stays_open(request) and request.transport is not None else None


def write_at_once(request: web.BaseRequest, reply: Reply) -> bool:
    """Writes a whole response, as `early_writer` does, and returns whether it could."""
    transport = request.transport if _stays_open(request) else None
    if transport is None:
        return False
    data = reply.raw()
    transport.write(data)
    request.writer.output_size += len(data)
    return True


def _stays_open(request: web.BaseRequest) -> bool:
    return request.keep_alive and request.version >= HttpVersion11


def _write(request: web.BaseRequest, data: bytes) -> None:
    if (transport := request.transport) is not None:
        transport.write(data)
        request.writer.output_size += len(data)


def has_begun(request: web.BaseRequest) -> bool:
    """Whether a part of the response was sent."""
    return request.writer.output_size > 0


async def invite_body(request: web.BaseRequest) -> None:
    """Tells a client that waits for 100 (Continue) to send its body (RFC 9110 10.1.1). The response has not begun."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # these bytes are no response (`has_begun`)

"""Responses that bypass aiohttp's writer: 10,000 held pulls get their bytes in one pass before any of them ends.

Only this module and `server.HttpConnection` depend on aiohttp's internals; tests/protocol/test_aiohttp_contract.py
checks them. aiohttp counts the bytes that its writer sent in `output_size`, so a response that has begun can be
recognised.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter


class AlreadySent(web.StreamResponse):
    """A placeholder for a response whose bytes were sent already."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002
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
    if request.transport is None or not request.keep_alive or request.version < HttpVersion11:
        return None
    return partial(_write, request)


def _write(request: web.BaseRequest, data: bytes) -> None:
    if request.transport is not None:
        request.transport.write(data)
        request.writer.output_size += len(data)


def has_begun(request: web.BaseRequest) -> bool:
    """Whether a part of the response was sent."""
    return request.writer.output_size > 0


async def invite_body(request: web.BaseRequest) -> None:
    """Tells a client that waits for 100 (Continue) to send its body (RFC 9110 10.1.1). The response has not begun."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0

"""What is written past aiohttp, and what of its inside that takes: known here and in `server.Connection` alone, and
held to by tests/protocol/test_aiohttp_contract.py.

aiohttp counts what its writer has sent in `output_size`; an answer that has begun cannot be replaced by another one.
"""

from collections.abc import Callable
from functools import partial

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter


class Written(web.StreamResponse):
    """Stands for an answer whose bytes were sent already."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002
        """Sends nothing."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Sends nothing."""

    @property
    def keep_alive(self) -> bool | None:
        """The connection stays open: only such ones are written to early."""
        return True


def early_writer(request: web.BaseRequest) -> Callable[[bytes], None] | None:
    """What takes a whole answer at once, `Written` is returned for it then; None where the connection has ended, or an
    answer needs a header for its connection because it does not stay open (HTTP/1.0, `Connection: close`)."""
    if request.transport is None or not request.keep_alive or request.version < HttpVersion11:
        return None
    return partial(_write, request)


def _write(request: web.BaseRequest, data: bytes) -> None:
    if request.transport is not None:
        request.transport.write(data)
        request.writer.output_size += len(data)


def has_begun(request: web.BaseRequest) -> bool:
    """Whether anything of an answer was sent."""
    return request.writer.output_size > 0


async def invite_body(request: web.BaseRequest) -> None:
    """Tells a client that waits for it to go on with its body (RFC 9110 10.1.1). No answer has begun by that."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0

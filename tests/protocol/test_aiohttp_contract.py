"""What the HTTP side relies on inside aiohttp: when one of these fails, read what aiohttp has changed."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from smartfeeds.http.replies import AlreadySent, Reply, early_writer, has_begun, invite_body
from smartfeeds.http.server import Handler, HttpListener
from smartfeeds.http.settings import HttpSettings
from support.raw import connected, request

HELLO = Reply(b"hello", "text/plain")


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[HttpListener]:
    listener = HttpListener(handler, HttpSettings(listen="127.0.0.1:0"))
    await listener.bind()
    await listener.start()
    try:
        yield listener
    finally:
        await listener.stop()


def parameters(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_aiohttp_methods_we_replace_exist_with_their_parameters() -> None:
    assert parameters(RequestHandler.handle_error) == ["self", "request", "status", "exc", "message"]
    assert parameters(RequestHandler.connection_made) == ["self", "transport"]
    assert parameters(RequestHandler.connection_lost) == ["self", "exc"]
    assert parameters(web.StreamResponse.prepare) == ["self", "request"]
    assert parameters(web.StreamResponse.write_eof) == ["self", "data"]


async def test_aiohttp_counts_the_requests_of_a_connection() -> None:
    """http.first_request_s is for connections whose count is still 0."""
    seen: list[list[int]] = []

    def counts() -> list[int]:
        return [connection._request_count for connection in listener._open]

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        seen.append(counts())
        return HELLO.response()

    async with listening(handler) as listener, connected(listener.port) as raw:
        raw.say(request("/")[:-2])
        async with connected(listener.port) as other:
            other.say(request("/"))
            await other.hear()
            assert sorted(seen.pop()) == [0, 1]
        raw.say(b"\r\n")
        await raw.hear()
        assert max(seen.pop()) == 1


async def test_aiohttp_sends_nothing_more_for_an_answer_that_was_written() -> None:
    """[SF-056] Each request has its one answer, and the connection goes on."""

    async def handler(asked: web.BaseRequest) -> web.StreamResponse:
        assert not has_begun(asked)
        write = early_writer(asked)
        assert write is not None
        write(HELLO.raw())
        assert has_begun(asked)
        return AlreadySent()

    async with listening(handler) as listener, connected(listener.port) as raw:
        raw.say(request("/") * 3)
        for _ in range(3):
            heard = await raw.hear()
            assert (heard.status, heard.body) == (200, b"hello")
        await listener.stop()
        assert await raw.ended() == b""


async def _early(asked: web.BaseRequest) -> None:
    write = early_writer(asked)
    assert write is not None
    write(HELLO.raw())


async def _by_aiohttp(asked: web.BaseRequest) -> None:
    response = web.StreamResponse(headers={"Content-Length": "5"})
    await response.prepare(asked)
    await response.write(b"hello")


@pytest.mark.parametrize("answer", [_early, _by_aiohttp])
async def test_aiohttp_adds_no_error_to_an_answer_that_has_begun(
    answer: Callable[[web.BaseRequest], Awaitable[None]],
) -> None:
    """A failure behind it ends the connection: a second answer would be taken for that of the next request."""

    async def handler(asked: web.BaseRequest) -> web.StreamResponse:
        await answer(asked)
        assert has_begun(asked)
        raise RuntimeError("behind the answer")

    async with listening(handler) as listener, connected(listener.port) as raw:
        raw.say(request("/"))
        assert (await raw.hear()).body == b"hello"
        assert await raw.ended() == b""


async def test_aiohttp_writes_a_whole_answer_behind_the_invitation() -> None:
    """RFC 9110 10.1.1: 100 is no answer, and the one behind it can still be any."""

    async def handler(asked: web.BaseRequest) -> web.StreamResponse:
        await invite_body(asked)
        assert not has_begun(asked)
        raise RuntimeError("before the answer")

    async with listening(handler) as listener, connected(listener.port) as raw:
        raw.say(request("/", "Expect: 100-continue"))
        assert (await raw.hear()).status == 100
        assert (await raw.hear()).status == 500


@pytest.mark.parametrize("line", ["Connection: close", "Connection: keep-alive, close"])
async def test_aiohttp_is_left_what_ends_the_connection(line: str) -> None:
    """Only aiohttp writes the header for that."""

    async def handler(asked: web.BaseRequest) -> web.StreamResponse:
        assert early_writer(asked) is None
        return HELLO.response()

    async with listening(handler) as listener, connected(listener.port) as raw:
        raw.say(request("/", line))
        heard = await raw.hear()
        assert (heard.status, heard.headers["connection"]) == (200, "close")
        assert await raw.ended() == b""

"""A gateway in front of a service: sees each request, loses or holds those that a test names, edits responses."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from yarl import URL

# Those of one connection, and the one that would make bodies unreadable here.
_LEFT_OUT = {"transfer-encoding", "content-length", "connection", "keep-alive", "accept-encoding"}
Edit = Callable[[bytes, "dict[str, str]"], bytes]


def unedited(body: bytes, _headers: dict[str, str]) -> bytes:
    """The response as it is."""
    return body


@dataclass
class Gateway:
    """Forwards requests to `target`. Notes them in `asked`, such as `GET /feed?x`, and the responses in `answers` and
    `bodies`.

    While `losing`, a POST is answered 202 and does not arrive; `lost` counts these. A request whose line contains
    `held` waits for `release` and then fails; `holding` is set when one comes. `edit` changes bodies and headers.
    """

    port: int = 0
    target: str = ""
    asked: list[str] = field(default_factory=list)
    answers: list[tuple[str, int]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    losing: bool = False
    lost: int = 0
    held: str = ""
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    edit: Edit = unedited
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _session: aiohttp.ClientSession | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def release(self) -> None:
        """Holds nothing more."""
        self.held = ""
        self._released.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        line = f"{request.method} {request.raw_path}"
        self.asked.append(line)
        body = await request.read()
        if self.losing and request.method == "POST":
            self.lost += 1
            return web.Response(status=202)
        if self.held and self.held in line:
            self.holding.set()
            await self._released.wait()
            return web.Response(status=503)
        assert self._session is not None
        url = URL(f"{self.target}{request.raw_path}", encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _LEFT_OUT}
        try:
            async with self._session.request(
                request.method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                sent = {name: value for name, value in answer.headers.items() if name.lower() not in _LEFT_OUT}
                content = self.edit(await answer.read(), sent)
                self.answers.append((line, answer.status))
                self.bodies.append(content)
                return web.Response(status=answer.status, body=content, headers=sent)
        except aiohttp.ClientConnectionError:
            self.answers.append((line, 502))
            return web.Response(status=502)


@asynccontextmanager
async def running_gateway(target: str = "") -> AsyncIterator[Gateway]:
    """A gateway on a free port of this machine."""
    gateway = Gateway(target=target)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", gateway.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    gateway.port = runner.addresses[0][1]
    async with aiohttp.ClientSession(
        auto_decompress=False, skip_auto_headers=("Accept-Encoding", "User-Agent")
    ) as session:
        gateway._session = session
        yield gateway
    gateway.release()
    await runner.cleanup()

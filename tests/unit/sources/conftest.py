"""A web server on this machine whose pages a test lays out, and a fetcher that may ask it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from smartfeeds.sources.addresses import EVERYWHERE
from smartfeeds.sources.fetch import Fetcher, FetchLimits

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """`pages` by path; `asked` are the requests in the order they came."""

    port: int = 0
    pages: dict[str, bytes | web.Response | Page] = field(default_factory=dict)
    asked: list[web.Request] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [request.path_qs for request in self.asked]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        page = self.pages.get(request.path)
        if page is None:
            raise web.HTTPNotFound
        if isinstance(page, bytes):
            return web.Response(body=page)
        if isinstance(page, web.Response):
            return web.Response(body=page.body, status=page.status, headers=page.headers.copy())
        return await page(request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()
    await asyncio.sleep(0)


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as made:
        yield made

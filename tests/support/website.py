"""A web server on this machine whose pages a test lays out."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from smartfeeds.core.times import format_datetime

US = 1_000_000
BUILD_S = 1_304_942_400  # the clock of `World` begins here
# Texts that readers of addresses refuse, each with an exception of its own, or read differently.
NO_ADDRESSES = (
    "http://[",
    "http://[]",
    "http://[]@",
    "http://[::1]@",
    "http://[::1]]@",
    "http://a@[::1]@",
    "http://[::1]x",
    "http://[:]",
    "http://[::1_]",
    "http://a:x",
    "http://a:-1",
    "http://a:99999",
    "http://a:+8080",
    "http://a:8_0_8_0",
    "http://xn--a",
    "http://a\\@b",
)
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

    def asked_for(self, suffix: str) -> list[str]:
        """The paths with this ending that were asked for since the last time."""
        paths = sorted(request.path for request in self.asked if request.path.endswith(suffix))
        self.asked = [request for request in self.asked if not request.path.endswith(suffix)]
        return paths

    def blog(self, name: str, *entries: tuple[str, str, int]) -> str:
        """Lays out an Atom feed of (id, title, minutes ago) and its ESS file; the address of the latter."""
        times = [BUILD_S - 60 * minutes for _id, _title, minutes in entries]
        written = "".join(
            f"<entry><id>{entry_id}</id><title>{title}</title><updated>{format_datetime(time_s * US)}</updated></entry>"
            for (entry_id, title, _minutes), time_s in zip(entries, times, strict=True)
        )
        from smartfeeds.features.documents.ess import write_ess  # only tests of sources with ESS files need it

        feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:{name}</id><title>{name}</title>{written}</feed>'
        self.pages[f"/{name}.xml"] = feed.encode()
        titles = [(title, time_s * US) for (_id, title, _minutes), time_s in zip(entries, times, strict=True)]
        self.pages[f"/{name}.ess"] = write_ess(self.url(f"/{name}.xml"), titles, BUILD_S * US).data
        return self.url(f"/{name}.ess")

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


class Names(AbstractResolver):
    """Names that lead where the test says, another place each time it is asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": kind,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def running_site(address: str = "127.0.0.1") -> AsyncIterator[Site]:
    """A server that listens on a free port of an address of this machine."""
    site = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    listening = web.TCPSite(runner, address, 0)
    await listening.start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()
    await asyncio.sleep(0)

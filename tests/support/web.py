"""The HTTP side of a running component, as a client sees it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from support.component import Component, Starter
from support.waiting import HANG_S, until


@dataclass(frozen=True, slots=True)
class Got:
    """An answer that was read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def header(self, name: str) -> str:
        """A header, "" where it is missing."""
        return self.headers.get(name, "")


@dataclass(frozen=True, slots=True, repr=False)
class Web:
    """A component with its HTTP side, and a client."""

    component: Component
    session: aiohttp.ClientSession

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        assert self.component.app.site is not None
        return self.component.app.site.listener.port

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    async def get(self, path: str, accept: str = "", **headers: str) -> Got:
        """GET of a path that is sent as it is written; an underscore in a header's name stands for a hyphen."""
        return await self.ask("GET", path, accept=accept, **headers)

    async def ask(self, method: str, path: str, data: bytes | None = None, accept: str = "", **headers: str) -> Got:
        """Any request. Redirects are not followed, gzip is asked for only by a header."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if accept:
            sent["Accept"] = accept
        url = URL(f"{self.origin}{path}", encoded=True)
        options: dict[str, Any] = {"headers": sent, "data": data, "allow_redirects": False}
        async with self.session.request(method, url, **options) as answer:
            return Got(answer.status, answer.headers, await answer.read())

    def wait_for_heads(self) -> None:
        """Lets `http.first_request_s` bound bodies alone: a slow machine does not send the head of a request in it."""
        assert self.component.app.site is not None
        listener = self.component.app.site.listener
        listener.settings = listener.settings.model_copy(update={"first_request_s": HANG_S})

    async def holding(self, count: int) -> None:
        """Returns when so many pulls and streams are held."""
        assert self.component.app.site is not None
        held = self.component.app.site.feeds.waiting
        await until(lambda: held.held >= count, f"{count} held requests")


WebStarter = Callable[..., Awaitable[Web]]


@asynccontextmanager
async def starting_web(start: Starter) -> AsyncIterator[WebStarter]:
    """A starter of components with HTTP, and with a client that decodes nothing."""
    timeout = aiohttp.ClientTimeout(total=HANG_S)
    session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, skip_auto_headers=("Accept-Encoding",))

    async def started(**sections: dict[str, Any]) -> Web:
        sections["http"] = {"listen": "127.0.0.1:0", **sections.get("http", {})}
        return Web(await start(**sections), session)

    yield started
    await session.close()

"""A component with its HTTP side, and a client for it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from support.component import Starter
from support.web import Web

WebStarter = Callable[..., Awaitable[Web]]


@pytest.fixture
async def start_web(start: Starter) -> AsyncIterator[WebStarter]:
    """`await start_web(http={...})` is a running component with HTTP on a port of its own."""
    timeout = aiohttp.ClientTimeout(total=30)
    session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, skip_auto_headers=("Accept-Encoding",))

    async def started(**sections: dict[str, Any]) -> Web:
        sections["http"] = {"listen": "127.0.0.1:0", **sections.get("http", {})}
        return Web(await start(**sections), session)

    yield started
    await session.close()


@pytest.fixture
async def web(start_web: WebStarter) -> Web:
    """A running component with HTTP."""
    return await start_web()

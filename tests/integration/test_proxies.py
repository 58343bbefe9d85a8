"""The service behind real proxies, with the configurations in `config/`: alone on a host name, and below a path."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from smartfeeds.app.config import SECTIONS
from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.component import ALICE
from support.proxies import BASE_PATH, CONFIG, NAME, Proxy
from support.pulls import publish_all
from support.waiting import wait_for
from support.web import Web, WebStarter

CLIENT = "127.0.0.2"  # not the address of the proxy
FORGED = "10.9.9.9"
ENTRY = "<entry xmlns='http://www.w3.org/2005/Atom'><title>{}</title></entry>"


class Loopback(AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """The address."""
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Public:
    """A service behind a proxy, and a client at `CLIENT` that knows its public address."""

    web: Web
    proxy: Proxy
    url: str
    session: aiohttp.ClientSession


@pytest.fixture(params=["", BASE_PATH], ids=["host", "path"])
def base_path(request: pytest.FixtureRequest) -> str:
    """The path of the public address."""
    return str(request.param)


@pytest.fixture(params=["nginx", "caddy"])
async def public(
    request: pytest.FixtureRequest, base_path: str, start_web: WebStarter, tmp_path: Path
) -> AsyncIterator[Public]:
    """A feed with three items in a service behind the proxy. Only `CLIENT` and a forged address may read metrics."""
    web = await start_web(
        http={
            "base_url": f"https://{NAME}{base_path}",
            "proxies": ["127.0.0.1"],
            "metrics_from": [CLIENT, FORGED],
        }
    )
    await web.component.create(ALICE, "news", access_model="open")
    await publish_all(web.component, "news", "a b c")
    async with Proxy(request.param, tmp_path, web.port, base_path) as proxy:
        connector = aiohttp.TCPConnector(resolver=Loopback(), local_addr=(CLIENT, 0), ssl=proxy.tls())
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:
            yield Public(web, proxy, f"{proxy.origin}{base_path}", session)


async def read(public: Public, path: str, **headers: str) -> tuple[int, bytes]:
    """Status and body of a GET."""
    async with public.session.get(f"{public.url}{path}", headers=headers) as answer:
        return answer.status, await answer.read()


async def test_links_have_the_public_address(public: Public, base_path: str) -> None:
    _, body = await read(public, "/feeds/news/?max=1")
    assert json.loads(body)["url"] == f"https://{NAME}{base_path}/feeds/news/"
    status, page = await read(public, "/feeds/news/", Accept="text/html")
    assert status == 200
    style = page.decode().partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert style.startswith(f"{base_path}/")
    async with public.session.get(f"{public.proxy.origin}{style}") as answer:
        assert (answer.status, answer.content_type) == (200, "text/css")


async def test_event_streams_arrive_at_once(public: Public) -> None:
    async with public.session.get(f"{public.url}/feeds/news/", headers={"Accept": "text/event-stream"}) as stream:
        await public.web.holding(1)
        await public.web.component.publish(ALICE, "news", "live")
        seen = b""
        while b'"id":"live"' not in seen:
            seen += await wait_for(stream.content.readany(), "the event of the item live")
        assert b"retry: " in seen


async def test_held_pulls_are_answered_by_the_next_item(public: Public) -> None:
    cursor = json.loads((await read(public, "/feeds/news/"))[1])["last_cursor"]
    pull = asyncio.create_task(read(public, f"/feeds/news/?since=cursor:{cursor}&timeout=60"))
    await public.web.holding(1)
    await public.web.component.publish(ALICE, "news", "next")
    status, body = await pull
    assert (status, [item["id"] for item in json.loads(body)["items"]]) == (200, ["next"])


async def test_uploads_reach_the_service(public: Public) -> None:
    """One that is too large is refused by the service, which reads what the proxy still sends, so that the proxy passes
    the response on.
    """
    headers = {
        "Authorization": await bearer(public.web, ALICE, TokenScope.PUBLISH),
        "Content-Type": "application/atom+xml",
    }

    async def put(text: str) -> tuple[int, str]:
        body = io.BytesIO(ENTRY.format(text).encode())
        async with public.session.put(f"{public.url}/entries/news/big", data=body, headers=headers) as answer:
            return answer.status, answer.content_type

    assert (await put("x" * 60_000))[0] == 201
    assert await put("y" * 3_000_000) == (413, "application/problem+json")
    assert b"yyy" not in (await read(public, "/entries/news/big"))[1]


async def test_address_of_the_client_is_believed_to_the_proxy_alone(public: Public, base_path: str) -> None:
    """The metrics are for `CLIENT`, and for an address that nobody has but that a client may write into a header."""
    assert (await read(public, "/metrics"))[0] == 200
    connector = aiohttp.TCPConnector(resolver=Loopback(), local_addr=("127.0.0.3", 0), ssl=public.proxy.tls())
    async with aiohttp.ClientSession(connector=connector) as other:
        for forged in ({}, {"X-Forwarded-For": FORGED}, {"Forwarded": f"for={FORGED}"}, {"X-Real-IP": FORGED}):
            async with other.get(f"{public.url}/metrics", headers=forged) as answer:
                assert answer.status == 403, forged


async def test_plain_http_is_redirected(public: Public) -> None:
    address = f"http://{NAME}:{public.proxy.ports.plain}/feeds/news/?max=1"
    async with public.session.get(address, allow_redirects=False) as answer:
        assert answer.status == 308
        assert answer.headers["Location"].startswith(f"https://{NAME}")
        assert answer.headers["Location"].endswith("/feeds/news/?max=1")


def test_guide_has_the_configurations(root: Path) -> None:
    guide = (root / "docs/operator.md").read_text().partition("## Reverse proxies\n")[2]
    for name in ("nginx.conf", "Caddyfile"):
        lines = (CONFIG / name).read_text().splitlines(keepends=True)
        assert "".join(line for line in lines if not line.startswith("#")) in guide, name


def test_nginx_waits_longer_than_any_pull() -> None:
    http: Any = SECTIONS["http"]()
    assert f"proxy_read_timeout {http.poll_max_s + 30}s;" in (CONFIG / "nginx.conf").read_text()

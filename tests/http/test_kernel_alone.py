"""HTTP without any feature: everybody is anonymous, feeds are JSON and Atom, and browsers get what programs get."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import aiohttp
import pytest

from smartfeeds.app.formats import KERNEL_FORMATS
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.health import Health
from smartfeeds.http.settings import HttpSettings
from smartfeeds.http.side import Backend
from smartfeeds.http.site import Site
from smartfeeds.parts import Parts
from support.waiting import HANG_S
from support.world import FEED, SERVICE, World

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass
class Client:
    """Asks the service."""

    session: aiohttp.ClientSession
    origin: str

    async def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
        """The status, the media type and the body of a response."""
        async with self.session.request(method, f"{self.origin}{path}", headers=headers) as response:
            return response.status, response.content_type, await response.read()


async def _no_reasons() -> Mapping[str, str]:
    return {}


@pytest.fixture
async def client(feed: World) -> AsyncIterator[Client]:
    """A client of a service with a feed that has two items."""
    await feed.publish_all("a b")
    bodies = BodyReader(100_000, HANG_S, lambda _data: "")
    site = Site(
        HttpSettings(listen="127.0.0.1:0"),
        Backend(feed.service.handle, SERVICE, feed.clock, bodies, Parts(), FeedForms.of(KERNEL_FORMATS, (), ())),
        Health(_no_reasons, lambda: b"", ()),
        lambda _operation, _outcome, _seconds: None,
        (),
    )
    await site.listener.bind()
    await site.listener.start()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG_S)) as session:
        yield Client(session, f"http://127.0.0.1:{site.listener.port}")
    await site.stop()
    site.listener.unbind()


@pytest.mark.parametrize("path", [f"/feeds/{FEED}/", "/feeds/", f"/entries/{FEED}/a"])
async def test_browser_gets_no_page(client: Client, path: str) -> None:
    status, media_type, _ = await client.ask(path, Accept=BROWSER)
    assert status == 200
    assert media_type in ("application/json", "application/atom+xml")

    assert (await client.ask(path, Accept="text/html"))[0] == 406


async def test_feed_can_be_pulled_as_json_and_atom(client: Client) -> None:
    for accept in ("application/json", "application/atom+xml"):
        status, media_type, body = await client.ask(f"/feeds/{FEED}/?since=", Accept=accept)
        assert (status, media_type) == (200, accept)
        assert body.count(b"urn:") >= 2 or body.count(b'"id"') >= 2


async def test_document_for_a_browser_has_no_style(client: Client) -> None:
    status, media_type, body = await client.ask(f"/feeds/{FEED}.atom", Accept=BROWSER)
    assert (status, media_type) == (200, "application/atom+xml")
    assert b"xml-stylesheet" not in body


async def test_error_is_no_page(client: Client) -> None:
    for path in ("/search", "/feeds/missing/"):
        status, media_type, _ = await client.ask(path, Accept=BROWSER)
        assert (status, media_type) == (404, "application/problem+json")


async def test_nobody_is_recognised(client: Client) -> None:
    """A sender with credentials expects rights that it would not get."""
    status, _, body = await client.ask(f"/feeds/{FEED}/", Authorization="Bearer x")
    assert status == 401
    assert b"no tokens" in body
    assert (await client.ask(f"/entries/{FEED}/a", method="DELETE"))[0] == 401


async def test_openapi_document_answers_without_html(client: Client) -> None:
    status, _, body = await client.ask("/openapi.json")
    assert status == 200
    paths = json.loads(body)["paths"]
    media_types = {
        media_type
        for item in paths.values()
        for operation in item.values()
        if isinstance(operation, dict)
        for response in operation["responses"].values()
        for media_type in response.get("content", ())
    }
    assert "application/atom+xml" in media_types
    assert "text/html" not in media_types


async def test_health_is_reported(client: Client) -> None:
    assert (await client.ask("/healthz"))[0] == 200
    assert (await client.ask("/readyz"))[0] == 200

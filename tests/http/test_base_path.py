"""A site under a path: `http.base_url` has one, and the proxy passes the path on unchanged."""

import pytest
from lxml import html

from support.component import ALICE
from support.web import Web, WebStarter

BASE_URL = "https://example.org/social/feeds"
BASE = "/social/feeds"
BROWSER = "text/html"


@pytest.fixture
async def site(start_web: WebStarter) -> Web:
    """A component under a path, with a feed of two entries."""
    web = await start_web(http={"base_url": BASE_URL})
    await web.component.create(ALICE, "notes")
    for number in range(2):
        await web.component.publish(ALICE, "notes", f"n{number}")
    return web


PAGES = ("/feeds/", "/feeds/notes/", "/feeds/notes/?max=1", "/feeds/notes/?order=modified", "/conflicts/notes/", "/x")


@pytest.mark.needs("pages", "conflicts")
@pytest.mark.parametrize("path", PAGES)
async def test_each_address_of_a_page_lies_under_the_path(site: Web, path: str) -> None:
    page = await site.get(f"{BASE}{path}", BROWSER)
    addresses = [str(value) for value in html.fromstring(page.body).xpath("//@href|//@src|//@action")]
    own = [address for address in addresses if not address.startswith(("#", "xmpp:"))]
    assert len(own) >= 3
    assert [address for address in own if not address.startswith((f"{BASE}/", f"{BASE_URL}/"))] == []


@pytest.mark.parametrize("path", ["/feeds", "/feeds/notes", "/feeds?max=1"])
async def test_redirects_stay_under_the_path(site: Web, path: str) -> None:
    answer = await site.get(f"{BASE}{path}", BROWSER)
    assert answer.status in (307, 308)
    assert answer.header("Location").startswith(f"{BASE}/feeds/")


async def test_path_without_its_last_slash_is_the_first_page(site: Web) -> None:
    assert (await site.get(BASE, BROWSER)).body == (await site.get(f"{BASE}/", BROWSER)).body
    assert (await site.get(f"{BASE}x", BROWSER)).status == 404


async def test_documents_name_the_public_address(site: Web) -> None:
    assert (await site.get(f"{BASE}/feeds/notes/")).json["url"] == f"{BASE_URL}/feeds/notes/"
    assert f"{BASE_URL}/feeds/notes/".encode() in (await site.get(f"{BASE}/feeds/notes.atom")).body


@pytest.mark.needs("pages")
async def test_style_is_served_under_the_path(site: Web) -> None:
    page = html.fromstring((await site.get(f"{BASE}/feeds/", BROWSER)).body)
    [style] = page.xpath("//link[@rel='stylesheet']/@href")
    assert (await site.get(str(style))).status == 200


async def test_health_is_served_without_the_path(site: Web) -> None:
    """A health check of the machine itself does not know the path."""
    assert (await site.get("/healthz")).status == 200

"""Pages of another host in a real browser: what they may read with and without a token, and never with a cookie."""

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browser import open_tab
from support.component import ALICE
from support.web import Web

# Fetches an address; returns the status and text of a response that the page may read, or the name of the error.
FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.status, await answer.text()];
  } catch (error) {
    return [error.name, ""];
  }
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def elsewhere(browser: Browser) -> AsyncIterator[Page]:
    """A page of another host. Its port makes its origin another one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):  # a connection that the browser opens in advance
            await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>elsewhere</title>")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tab = await open_tab(browser, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await tab.go("/")
    yield tab.page
    await tab.page.context.close()
    server.close()


async def fetch(page: Page, url: str, **options: object) -> tuple[int | str, str]:
    status, text = await page.evaluate(FETCH, [url, options])
    return status, text


@pytest_asyncio.fixture(loop_scope="session")
async def closed(web: Web) -> Web:
    await web.component.create(ALICE, "closed", access_model="authorize")
    await web.component.publish(ALICE, "closed", "a")
    return web


async def test_page_elsewhere_reads_a_closed_feed_with_a_token_and_every_error(closed: Web, elsewhere: Page) -> None:
    """The browser sends a preflight because of the header."""
    feed = f"{closed.origin}/feeds/closed/?timeout=0"
    token = await bearer(closed, ALICE, TokenScope.READ)

    status, text = await fetch(elsewhere, feed, headers={"Authorization": token})
    assert (status, '"id":"a"' in text) == (200, True)
    for url, headers, expected in (
        (feed, {}, 401),
        (feed, {"Authorization": "Bearer unknown"}, 401),
        (f"{closed.origin}/feeds/missing/", {}, 404),
        (f"{closed.origin}/nothing", {}, 404),
    ):
        status, text = await fetch(elsewhere, url, headers=headers)
        assert (status, '"title"' in text) == (expected, True)
    assert (await fetch(elsewhere, f"{closed.origin}/openapi.json"))[0] == 200


async def test_page_elsewhere_publishes_with_a_token(closed: Web, elsewhere: Page) -> None:
    token = await bearer(closed, ALICE, TokenScope.PUBLISH)
    entry = '<entry xmlns="http://www.w3.org/2005/Atom"><title>x</title></entry>'
    headers = {"Authorization": token, "Content-Type": "application/atom+xml"}
    status, _ = await fetch(elsewhere, f"{closed.origin}/entries/closed/b", method="PUT", body=entry, headers=headers)
    assert status == 201


async def test_page_elsewhere_reads_nothing_with_the_cookie_or_password_of_the_browser(
    closed: Web, elsewhere: Page
) -> None:
    """Not even what everybody may read; and not from the cache either."""
    token = (await bearer(closed, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    feed = f"{closed.origin}/feeds/closed/?timeout=0"
    await elsewhere.context.add_cookies([{"name": "session", "value": "x", "url": closed.origin}])
    await elsewhere.context.set_extra_http_headers(
        {"Authorization": f"Basic {b64encode(f'x:{token}'.encode()).decode()}"}
    )

    assert (await fetch(elsewhere, feed, credentials="include"))[0] == "TypeError"
    assert (await fetch(elsewhere, f"{closed.origin}/openapi.json", credentials="include"))[0] == "TypeError"
    await elsewhere.context.set_extra_http_headers({})
    status, _ = await fetch(elsewhere, feed, credentials="omit", cache="force-cache")
    assert status != 200

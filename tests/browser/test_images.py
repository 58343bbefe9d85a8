"""Images of entries in a browser: the service loads them, and their host does not see the reader."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.features.pages import setup
from smartfeeds.net.clients import Fetcher
from support.browser import Tab, open_tab
from support.component import ALICE
from support.prose import html_entry
from support.web import Web, WebStarter
from support.website import Names, Site, running_site

pytestmark = pytest.mark.needs("pages")

PICTURES = "pictures.example"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest_asyncio.fixture(loop_scope="session")
async def host() -> AsyncIterator[Site]:
    """A host with one image."""
    async with running_site() as site:
        site.pages["/cat.png"] = PNG
        yield site


@pytest.fixture(autouse=True)
def _public_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names lead to this machine, whose network counts as public here: the service requests no other one."""
    monkeypatch.setattr(setup, "IMAGE_LIMITS", replace(setup.IMAGE_LIMITS, allowed=parse_networks(("127.0.0.0/8",))))
    monkeypatch.setattr(setup, "Fetcher", partial(Fetcher, resolver=Names("127.0.0.1")))


async def open_feed(
    browser: Browser, start_web: WebStarter, host: Site, policy: str, *, script: bool = True
) -> tuple[Web, Tab]:
    """The page of a feed with an entry that has an image, and one whose image is missing."""
    web = await start_web(site={"images": policy})
    await web.component.create(ALICE, "cats")
    cat, dog = (host.url(path, PICTURES) for path in ("/cat.png", "/dog.png"))
    images = f'<img src="{cat}" alt="a cat"><img src="{dog}" alt="a dog">'
    await web.component.publish(ALICE, "cats", "cat", html_entry("Pets", f"<p>{images}</p>"))
    tab = await open_tab(browser, web.origin, java_script_enabled=script)
    await tab.go("/feeds/cats/")
    return web, tab


async def test_images_can_be_links(browser: Browser, start_web: WebStarter, host: Site) -> None:
    _, tab = await open_feed(browser, start_web, host, "off")
    await expect(tab.page.get_by_role("link", name="a cat")).to_have_attribute("href", host.url("/cat.png", PICTURES))
    assert await tab.page.locator(".entry img").count() == 0
    assert host.asked == []
    tab.check()


async def test_images_are_shown_through_the_service(browser: Browser, start_web: WebStarter, host: Site) -> None:
    _, tab = await open_feed(browser, start_web, host, "on")
    image = tab.page.get_by_role("img", name="a cat")
    await expect(image).to_be_visible()
    assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    assert tab.elsewhere == []
    [request] = [request for request in host.asked if request.path == "/cat.png"]
    assert request.headers["User-Agent"].startswith("smartfeeds/")


async def test_click_loads_an_image_in_its_place(browser: Browser, start_web: WebStarter, host: Site) -> None:
    """The label of an image that cannot be loaded stays."""
    _, tab = await open_feed(browser, start_web, host, "click")
    assert host.asked == []
    await tab.page.get_by_role("link", name="a cat").click()
    await expect(tab.page.get_by_role("img", name="a cat")).to_be_visible()
    dog = tab.page.get_by_role("link", name="a dog")
    await dog.click()
    await expect(dog).to_have_class("picture load failed")
    assert (tab.elsewhere, tab.errors) == ([], [])


async def test_click_opens_an_image_without_a_script(browser: Browser, start_web: WebStarter, host: Site) -> None:
    web, tab = await open_feed(browser, start_web, host, "click", script=False)
    await tab.page.get_by_role("link", name="a cat").click()
    await tab.page.wait_for_url(f"{web.origin}/images/**")
    assert tab.elsewhere == []

"""The river, the list of feeds and the search in a browser."""

import pytest
from playwright.async_api import expect

from support.browser import Opener
from support.component import ALICE
from support.prose import PROSE
from support.web import Web

pytestmark = pytest.mark.needs("pages")

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
PHONE = {"width": 360, "height": 740}
LOOKS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "device_scale_factor": 2, "has_touch": True, "is_mobile": True},
}
PAGES = {"river": "/", "by-change": "/feeds/?sort=changed", "search": "/search?q=the"}


async def filled(web: Web) -> None:
    """Feeds with something to read in them."""
    component = web.component
    feeds = {"town": "Town news", "harbour": "Ships and tides", "mill": "From the mill"}
    for name, title in feeds.items():
        await component.create(ALICE, name, title=title, description="What happens there.")
    for number, (item_id, payload) in enumerate(PROSE.items()):
        component.clock.advance(3_000)
        await component.publish(ALICE, list(feeds)[number % 3], item_id, payload)
    await component.create(ALICE, "quiet", title="w" * 200)
    await component.index()


@pytest.mark.parametrize("look", LOOKS)
async def test_pages_with_several_feeds_fit_the_screen(look: str, web: Web, open_page: Opener) -> None:
    """Nothing scrolls sideways, and the browser reports nothing."""
    await filled(web)
    for name, path in PAGES.items():
        tab = await open_page(path, **LOOKS[look])
        width = await tab.page.evaluate("document.scrollingElement.scrollWidth")
        assert width <= LOOKS[look]["viewport"]["width"]  # type: ignore[index]
        await tab.shot(f"{name}-{look}")
        tab.check()


@SCRIPT
async def test_river_is_read_page_by_page(script: bool, web: Web, open_page: Opener) -> None:
    for number in range(5):
        await web.component.create(ALICE, f"f{number}")
        web.component.clock.advance(60)
        await web.component.publish(ALICE, f"f{number}", "a", PROSE["bread"])
    tab = await open_page("/?max=2", java_script_enabled=script)
    seen = await tab.page.locator("article .from").all_inner_texts()
    while await (older := tab.page.get_by_role("link", name="More")).count():
        before = tab.page.url
        await older.click()
        await tab.page.wait_for_url(lambda url, before=before: url != before)
        seen += await tab.page.locator("article .from").all_inner_texts()
    assert seen == ["f4", "f3", "f2", "f1", "f0"]


@SCRIPT
async def test_search_from_the_river_leads_to_a_feed(script: bool, web: Web, open_page: Opener) -> None:
    await filled(web)
    tab = await open_page("/", java_script_enabled=script)
    await tab.page.get_by_role("searchbox").fill("bread")
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.wait_for_url("**/search?q=bread")
    await expect(tab.page.locator("mark").first).to_have_text("bread", ignore_case=True)
    await tab.page.locator(".hits h2 a").first.click()
    await tab.page.wait_for_url("**/feeds/*/")


@pytest.mark.parametrize("path", ["/feeds/", "/feeds/?sort=changed", "/", "/entries/town/a"])
async def test_times_are_those_of_the_reader(path: str, web: Web, open_page: Opener) -> None:
    """The entry was published at midnight in UTC. In Tokyo it is nine in the morning."""
    await web.component.create(ALICE, "town")
    await web.component.publish(ALICE, "town", "a")
    tab = await open_page(path, timezone_id="Asia/Tokyo")
    time = tab.page.locator("main time").first
    await expect(time).to_have_attribute("datetime", "2026-01-01T00:00:00Z")
    shown = f"{await time.text_content()} {await time.get_attribute('title')}"
    assert "9:00" in shown and "0:00:00Z" not in shown

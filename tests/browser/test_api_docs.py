"""The API browser in a real browser: without script, on a phone, in both colour schemes."""

import pytest
from playwright.async_api import expect

from smartfeeds.core.urls import DOCS
from support.browser import Opener

pytestmark = pytest.mark.needs("pages")

PHONE = {"width": 360, "height": 740}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_api_browser_works_without_script(scheme: str, open_page: Opener) -> None:
    tab = await open_page(DOCS, java_script_enabled=False, color_scheme=scheme)
    operation = tab.page.locator("details", has_text="PUT /entries/{name}/{id}")
    await expect(operation.get_by_text("curl -X PUT")).to_be_hidden()
    await operation.locator("> summary").click()
    await expect(operation.get_by_text("curl -X PUT")).to_be_visible()
    # A link opens what it leads to.
    await operation.get_by_role("link", name="Problem").first.click()
    await tab.page.locator("#schema-Problem summary").click()
    await expect(tab.page.locator("#schema-Problem pre")).to_be_visible()
    await tab.shot(f"api-{scheme}", whole=False)
    tab.check()


async def test_api_browser_fits_on_a_phone(open_page: Opener) -> None:
    tab = await open_page(DOCS, viewport=PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
    assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    await tab.shot("api-phone", whole=False)
    tab.check()


async def test_one_click_selects_the_command(open_page: Opener) -> None:
    tab = await open_page(DOCS)
    await tab.page.locator("details:has(> #pull) > summary").click()
    command = tab.page.locator("article#pull pre.curl")
    await command.click()
    assert await tab.page.evaluate("getSelection().toString().trim()") == (await command.inner_text()).strip()


async def test_api_browser_is_short_on_paper(open_page: Opener) -> None:
    """What is folded is not printed: a line for each operation and schema, on pages of the size of a book (A5)."""
    tab = await open_page(DOCS)
    paper = await tab.page.pdf(format="A5")
    assert paper.count(b"/Type /Page\n") <= 9
    await tab.page.emulate_media(media="print")
    await tab.page.set_viewport_size({"width": 559, "height": 794})  # A5 at 96 pixels for an inch
    await tab.page.locator("details:has(> #pull) > summary").click()
    await expect(tab.page.locator("#pull pre.curl")).to_be_visible()
    assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= 559
    cut = "one => one.checkVisibility() && !one.closest('thead') && one.scrollWidth > one.clientWidth + 1"
    parts = f"[...document.querySelectorAll('#pull *')].filter({cut}).map(one => one.outerHTML.slice(0, 200))"
    assert await tab.page.evaluate(parts) == []

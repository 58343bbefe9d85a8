"""The API browser in a real browser: without script, on a phone, in both colour schemes."""

import pytest

from smartfeeds.core.urls import DOCS
from support.browser import Opener

pytestmark = pytest.mark.needs("pages")

PHONE = {"width": 360, "height": 740}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_api_browser_works_without_script(scheme: str, open_page: Opener) -> None:
    tab = await open_page(DOCS, java_script_enabled=False, color_scheme=scheme)
    await tab.page.get_by_role("link", name="PUT /entries/{name}/{id}").click()
    await tab.page.locator("article#put_item, article:target").get_by_text("curl -X PUT").wait_for()
    await tab.page.locator("#schema-Problem summary").click()
    await tab.page.locator("#schema-Problem pre").wait_for()
    await tab.shot(f"api-{scheme}", whole=False)
    tab.check()


async def test_api_browser_fits_on_a_phone(open_page: Opener) -> None:
    tab = await open_page(DOCS, viewport=PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
    assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    await tab.shot("api-phone", whole=False)
    tab.check()


async def test_one_click_selects_the_command(open_page: Opener) -> None:
    tab = await open_page(DOCS)
    command = tab.page.locator("article#pull pre.curl")
    await command.click()
    assert await tab.page.evaluate("getSelection().toString().trim()") == (await command.inner_text()).strip()

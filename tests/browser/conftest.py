"""A real headless Chromium, beside a running component."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from support.browser import ARGUMENTS, CHROMIUM, Opener, Tab, open_tab
from support.web import Web


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser of its own for each test."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        await launched.close()


@pytest.fixture
def open_page(browser: Browser, web: Web) -> Opener:
    """`await open_page("/feeds/")` is a tab with this page; options are those of Playwright's contexts."""

    async def opened(path: str, **options: object) -> Tab:
        tab = await open_tab(browser, web.origin, **options)
        await tab.go(path)
        return tab

    return opened

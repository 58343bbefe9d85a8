"""A real headless Chromium, beside a running component."""

import re
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, async_playwright

from support.browser import ARGUMENTS, CHROMIUM, Opener, Tab, open_tab
from support.web import Web


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address at which a browser is steered; one process for all tests, which share nothing in it."""
    profile = f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"
    command = [CHROMIUM, "--remote-debugging-port=0", profile, *ARGUMENTS, "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                yield found[1]
                break
        else:
            raise AssertionError("".join(said))
        process.terminate()
        process.stderr.read()


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """The browser, as seen by one test."""
    async with async_playwright() as playwright:
        connected = await playwright.chromium.connect_over_cdp(chromium)
        yield connected
        await connected.close()


@pytest.fixture
def open_page(browser: Browser, web: Web) -> Opener:
    """`await open_page("/feeds/")` is a tab with this page; options are those of Playwright's contexts."""

    async def opened(path: str, **options: object) -> Tab:
        tab = await open_tab(browser, web.origin, **options)
        await tab.go(path)
        return tab

    return opened

"""A real headless Chromium, beside a running component."""

import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from support.browser import ARGUMENTS, CHROMIUM, Opener, Tab, close_tabs, open_tab
from support.component import starting
from support.web import Web, WebStarter, starting_web

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder run in one event loop, that of the browser."""
    for item in items:
        if FOLDER in item.path.parents:
            # First, because the mode auto has marked them already.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def connection(chromium: str) -> AsyncIterator[Browser]:
    """The browser; its driver is a process whose start takes a third of a second, so there is one for all tests."""
    async with async_playwright() as playwright:
        connected = await playwright.chromium.connect_over_cdp(chromium)
        yield connected
        await connected.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(connection: Browser) -> AsyncIterator[Browser]:
    """The browser, as seen by one test."""
    yield connection
    await close_tabs(connection)


@pytest_asyncio.fixture(loop_scope="session")
async def start_web(tmp_path: Path, blank_database: Path) -> AsyncIterator[WebStarter]:
    """As for the other tests, but in the event loop of the browser."""
    async with starting(tmp_path, blank_database) as start, starting_web(start) as start_web:
        yield start_web


@pytest_asyncio.fixture(loop_scope="session")
async def web(start_web: WebStarter) -> Web:
    """A running component with HTTP."""
    return await start_web()


@pytest.fixture
def open_page(browser: Browser, web: Web) -> Opener:
    """`await open_page("/feeds/")` is a tab with this page; options are those of Playwright's contexts."""

    async def opened(path: str, **options: object) -> Tab:
        tab = await open_tab(browser, web.origin, **options)
        await tab.go(path)
        return tab

    return opened

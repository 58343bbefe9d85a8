"""Every page of the site under axe-core, in both languages, colour schemes and window sizes, with and without script.

No rule is switched off. One component serves all tests of this module.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from smartfeeds.http.paths import PathTemplate
from support.accessibility import AXE, FEW_SETTINGS, SETTINGS, Reader, open_reader
from support.browser import close_tabs
from support.browsing import sign_in
from support.component import ALICE, BOB, starting
from support.pages import PAGES, SECTIONS, SitePage, fill
from support.routes import TABLE
from support.web import Web, starting_web

HTML = "text/html"


class Visit(NamedTuple):
    """A site, and the people who look at it."""

    web: Web
    readers: tuple[Reader, ...]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def visit(
    tmp_path_factory: pytest.TempPathFactory, blank_database: Path, connection: Browser
) -> AsyncIterator[Visit]:
    """A filled site and a tab for each setting."""
    assert AXE.exists(), "tools/setup test-all installs axe-core"
    folder = tmp_path_factory.mktemp("accessibility")
    async with starting(folder, blank_database) as start, starting_web(start) as start_web:
        web = await start_web(**SECTIONS)
        await fill(web)
        cookies = {user: (await sign_in(web, user)).text for user in (ALICE, BOB)}
        readers = [await open_reader(connection, web, setting, cookies) for setting in SETTINGS]
        yield Visit(web, tuple(readers))
        await close_tabs(connection)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_page_is_accessible(page: SitePage, visit: Visit) -> None:
    """axe-core finds nothing, and no page is wider than its window."""

    async def look(reader: Reader) -> list[str]:
        assert await reader.open(page, visit.web) == page.status
        facts = await reader.facts()
        assert facts == {"language": reader.setting.language, "overflow": 0}, reader.setting
        assert (reader.tab.elsewhere, reader.tab.dialogs, reader.tab.errors) == ([], [], [])
        return [f"{reader.setting}: {broken}" for broken in await reader.violations()]

    readers = [reader for reader in visit.readers if not page.is_long or reader.setting in FEW_SETTINGS]
    found = await asyncio.gather(*map(look, readers))
    assert not any(found), "\n".join(itertools.chain.from_iterable(found))


async def test_every_page_of_the_site_is_in_the_list() -> None:
    """A new page is a new line in `support.pages`."""
    paths = [page.path.partition("?")[0] for page in PAGES]
    missing = [
        route.path
        for route in TABLE
        if route.method == "GET" and (route.operation.for_people or HTML in route.operation.answers.get(200, {}))
        if not any(PathTemplate(route.path).match(path) is not None for path in paths)
    ]
    assert missing == []

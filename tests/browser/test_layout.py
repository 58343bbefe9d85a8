"""The layout of every page, on a phone, a tablet, a laptop and a large screen, in German, whose words are long.

A new page is a new line in `support.pages`, and is measured here by that.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from support.accessibility import DESKTOP, Reader, Setting, open_reader
from support.browser import close_tabs
from support.browsing import sign_in
from support.component import ALICE, BOB, starting
from support.layout import LINE_CHARACTERS, WINDOWS, measure
from support.pages import PAGES, SECTIONS, SitePage, fill
from support.web import Web, starting_web

pytestmark = pytest.mark.needs("pages", "accounts", "administration", "authoring", "conflicts")


class Visit(NamedTuple):
    """A site, a tab without script in German, and the bars that were seen in each window."""

    web: Web
    reader: Reader
    bars: dict[int, set[tuple[float, ...]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def visit(
    tmp_path_factory: pytest.TempPathFactory, blank_database: Path, connection: Browser
) -> AsyncIterator[Visit]:
    """A filled site."""
    folder = tmp_path_factory.mktemp("layout")
    async with starting(folder, blank_database) as start, starting_web(start) as start_web:
        web = await start_web(**SECTIONS)
        await fill(web)
        cookies = {user: (await sign_in(web, user)).text for user in (ALICE, BOB)}
        yield Visit(web, await open_reader(connection, web, Setting("de", "light", DESKTOP, False), cookies), {})
        await close_tabs(connection)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_page_can_be_read_and_used_in_every_window(page: SitePage, visit: Visit) -> None:
    """Nothing is cut or outside, lines have a length that can be read, targets are large, and the bar stays."""
    await visit.reader.open(page, visit.web)
    faults = []
    for window in WINDOWS:
        width = window["width"]
        layout = await measure(visit.reader.tab.page, window)
        faults += [f"{width}: {fault}" for fault in layout.faults]
        if layout.longest_line > LINE_CHARACTERS:
            faults.append(f"{width}: a line of text has {layout.longest_line} characters")
        if not layout.bar:
            continue
        # The bar may end with the name of a reader.
        bars = visit.bars.setdefault(width, set())
        bars.add((*(round(part) for part in layout.bar[:3]), round(layout.main)))
        if len(bars) > 1:
            faults.append(f"{width}: the bar or the width differs from those of other pages: {bars}")
            bars.pop()
    assert not faults, "\n".join(faults)


async def test_what_begins_a_line_on_a_phone_begins_at_the_edge_of_its_text(visit: Visit) -> None:
    """The icon of the theme below the links of the menu, and the keyboard shortcuts below the line of the footer."""
    page = visit.reader.tab.page
    await page.set_viewport_size(WINDOWS[0])
    await visit.reader.open(PAGES[0], visit.web)
    await page.evaluate("document.getElementById('show-keys').hidden = false")
    await page.locator(".site-menu > summary").click()
    lefts: dict[str, float] = await page.evaluate(
        """() => {
          const left = (one) => Math.round(one.getBoundingClientRect().left);
          const range = document.createRange();
          const words = (one) => { range.selectNodeContents(one); return left(range); };
          const [menu, keys] = [document.querySelector(".site-menu"), document.getElementById("show-keys")];
          keys.previousSibling.before(document.createElement("br"));
          return {
            link: words(menu.querySelector(".places a")), icon: left(menu.querySelector(".theme svg")),
            footer: words(keys.parentElement), keys: words(keys),
          };
        }"""
    )
    assert (lefts["icon"], lefts["keys"]) == (lefts["link"], lefts["footer"])

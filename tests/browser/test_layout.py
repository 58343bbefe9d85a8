"""The layout of every page, on phones, a tablet, a laptop and a large screen, in German, whose words are long.

A new page is a new line in `support.pages`, and is measured here by that.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ViewportSize

from support.accessibility import DESKTOP, PHONE, Reader, Setting, open_reader
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_row_of_tabs_that_scrolls_says_so_at_its_ends(visit: Visit, connection: Browser, scheme: str) -> None:
    """A shade is where more tabs are, and nowhere else. It is looked for above the letters."""
    reader = await open_reader(connection, visit.web, Setting("de", scheme, PHONE, False), {})
    page = reader.tab.page
    await page.goto(f"{visit.web.origin}/")
    row = page.locator(".head .views")

    async def shaded() -> set[str]:
        box = await row.bounding_box()
        assert box is not None
        places = {"start": box["x"] + 1, "middle": box["x"] + box["width"] / 2, "end": box["x"] + box["width"] - 3}
        pictures = {
            name: await page.screenshot(clip={"x": x, "y": box["y"] + 2, "width": 2, "height": 4})
            for name, x in places.items()
        }
        return {name for name, picture in pictures.items() if picture != pictures["middle"]}

    assert await shaded() == {"end"}
    await row.evaluate("row => { row.scrollLeft = 20 }")
    assert await shaded() == {"start", "end"}
    await row.evaluate("row => { row.scrollLeft = row.scrollWidth }")
    assert await shaded() == {"start"}
    await page.set_viewport_size({"width": 768, "height": 1024})
    assert await shaded() == set()
    await page.context.close()


@pytest.mark.parametrize("window", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_what_a_fragment_leads_to_is_below_the_bar(visit: Visit, window: ViewportSize) -> None:
    """The bar stays at the top of the window, and covers nothing of it."""
    page = visit.reader.tab.page
    await page.set_viewport_size(window)
    for name in ("api", "entry-replies", "feed-crowded", "outline"):
        (site_page,) = [each for each in PAGES if each.name == name]
        await visit.reader.open(site_page, visit.web)
        tops: dict[str, float] = await page.evaluate(
            """() => {
              const bar = document.querySelector(".bar"), tops = {};
              for (const one of document.querySelectorAll("main :is(h2, section, article, li)[id]")) {
                if (!one.checkVisibility()) continue;
                location.hash = `#${one.id}`;
                tops[one.id] = one.getBoundingClientRect().top - bar.getBoundingClientRect().bottom;
              }
              return tops;
            }"""
        )
        assert tops and min(tops.values()) > 4, tops

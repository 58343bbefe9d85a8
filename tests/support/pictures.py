"""Makes the pictures of docs/pages.md: `PYTHONPATH=component:tests .venv/bin/python -m support.pictures`.

Each page is shown in light and dark on a desktop and in light on a phone. Date and time are those of the site, so that
pictures differ only where pages do.
"""

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import async_playwright

from smartfeeds.store import migrate
from support.accessibility import DESKTOP, PHONE, Setting, open_reader
from support.browser import ARGUMENTS, CHROMIUM
from support.browsing import sign_in
from support.component import ALICE, starting
from support.pages import PAGES, SECTIONS, SitePage, fill
from support.web import starting_web

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pages"
NAMES: Final = (
    *("feed", "feed-subscribe", "document", "list", "river", "entry", "search", "editor-preview"),
    *("admin", "admin-feeds", "admin-members", "conflict"),
)
# A document of a feed, which is no page of HTML and thus not among the pages of the site.
DOCUMENT: Final = SitePage("document", "/feeds/town.rss")
LOOKS: Final = {
    "light": Setting("en", "light", DESKTOP, True),
    "dark": Setting("en", "dark", DESKTOP, True),
    "phone": Setting("en", "light", PHONE, True),
}


def files() -> list[str]:
    """The names of all pictures."""
    return [f"{name}-{look}.png" for name in NAMES for look in LOOKS]


async def take(folder: Path) -> None:
    """Writes all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else runs yet
    with tempfile.TemporaryDirectory() as data:
        blank = Path(data) / "blank.db"
        connection = sqlite3.connect(blank, isolation_level=None)
        migrate.prepare(connection, blank)
        connection.close()
        async with starting(Path(data), blank) as start, starting_web(start) as start_web, async_playwright() as player:
            # Some pages show their address, which must not differ from run to run.
            web = await start_web(http={"listen": "127.0.0.1:8280"}, **SECTIONS)
            await fill(web)
            cookies = {ALICE: (await sign_in(web, ALICE)).text}
            browser = await player.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            pages = {page.name: page for page in (*PAGES, DOCUMENT)}
            for look, setting in LOOKS.items():
                reader = await open_reader(browser, web, setting, cookies)
                await reader.tab.page.clock.set_fixed_time(web.component.clock.now_us / 1_000_000)
                for name in NAMES:
                    await reader.open(pages[name], web)
                    await reader.tab.page.screenshot(path=folder / f"{name}-{look}.png", animations="disabled")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(take(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))

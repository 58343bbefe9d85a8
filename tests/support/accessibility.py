"""Checks the accessibility of a page with axe-core.

The page is loaded without script or with it. axe-core needs timers, so the browser runs scripts again once the page
without script is complete; what the page contains does not change by that.
"""

from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.async_api import Browser, CDPSession, ViewportSize

from support.browser import Tab, open_tab
from support.browsing import SESSION_COOKIE
from support.pages import SitePage
from support.web import Web

AXE: Final = Path(__file__).parents[1] / "browser" / "js" / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
# All rules of axe-core that are on by default. Selectors and the nodes of passed rules are not needed, and make the run
# slower.
_RUN: Final = """axe.run({resultTypes: ["violations"], selectors: false}).then(results =>
    results.violations.flatMap(rule =>
        rule.nodes.map(node => [rule.id, node.html.slice(0, 200), node.failureSummary].join(" | "))))"""


class Setting(NamedTuple):
    """The circumstances in which a page is viewed."""

    language: str
    scheme: str
    viewport: ViewportSize
    script: bool


# Every two values meet in one of these, which all sixteen would take three times as long for.
SETTINGS: Final = tuple(
    starmap(
        Setting,
        (
            ("en", "light", DESKTOP, True),
            ("en", "dark", PHONE, False),
            ("de", "light", PHONE, False),
            ("de", "dark", DESKTOP, False),
            ("de", "dark", PHONE, True),
        ),
    )
)

# Every value occurs in these.
FEW_SETTINGS: Final = (SETTINGS[0], SETTINGS[2], SETTINGS[3])


@dataclass(frozen=True, slots=True)
class Reader:
    """A tab in which pages are looked at in one setting. `cookies` are the sessions of users by their JID."""

    setting: Setting
    tab: Tab
    devtools: CDPSession
    cookies: dict[str, str]

    async def open(self, page: SitePage, web: Web) -> int:
        """Opens a page and does its steps; the status of the first response."""
        context = self.tab.page.context
        await context.clear_cookies()
        if page.reader:
            session = self.cookies[page.reader]
            await context.add_cookies([{"name": SESSION_COOKIE, "value": session, "url": web.origin}])
        await self._run_scripts(self.setting.script)
        response = await self.tab.page.goto(f"{web.origin}{page.path}")
        assert response is not None
        if page.steps is not None:
            await page.steps(self.tab.page, web)
        await self._run_scripts(True)
        return response.status

    async def violations(self) -> list[str]:
        """The elements that break a rule of axe-core, each with the rule and its explanation."""
        await self.tab.page.evaluate(AXE.read_text(encoding="utf-8"))
        broken: list[str] = await self.tab.page.evaluate(_RUN)
        return broken

    async def facts(self) -> dict[str, Any]:
        """The language of the page, and how far it is wider than the window."""
        facts: dict[str, Any] = await self.tab.page.evaluate(
            "({language: document.documentElement.lang, "
            "overflow: Math.max(0, document.scrollingElement.scrollWidth - innerWidth)})"
        )
        return facts

    async def _run_scripts(self, on: bool) -> None:
        await self.devtools.send("Emulation.setScriptExecutionDisabled", {"value": not on})


async def open_reader(browser: Browser, web: Web, setting: Setting, cookies: dict[str, str]) -> Reader:
    """A tab in this setting."""
    locale = {"en": "en-GB", "de": "de-DE"}[setting.language]
    tab = await open_tab(browser, web.origin, locale=locale, color_scheme=setting.scheme, viewport=setting.viewport)
    return Reader(setting, tab, await tab.page.context.new_cdp_session(tab.page), cookies)

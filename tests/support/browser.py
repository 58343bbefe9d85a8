"""A page in a real browser, with everything noted that it asks for and complains about."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.async_api import Browser, ConsoleMessage, Dialog, Error, Locator, Page, Request, expect

from support.waiting import HANG_S

# The browser without windows takes half of the processor time. The script in /usr/bin does not pass signals on.
CHROMIUM = "/usr/lib/chromium/chromium-headless-shell"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A name leads nowhere, so that what a page asks of another host is seen and does not leave.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
PATIENCE_MS = HANG_S * 1_000  # nothing waits for it to pass
SHOTS = Path(__file__).parents[2] / ".run" / "screenshots"

expect.set_options(timeout=PATIENCE_MS)


@dataclass(eq=False)
class Tab:
    """A page, and what happened in it: addresses asked for, dialogs, complaints of the browser, uncaught errors."""

    page: Page
    origin: str
    asked: list[Request] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Begins to take notes."""
        self.page.on("request", lambda request: self.asked.append(request))
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.on("pageerror", self._error)

    async def _dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        await dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _error(self, error: Error) -> None:
        self.errors.append(str(error))

    @property
    def elsewhere(self) -> list[str]:
        """The requests for addresses outside of this site and of the page itself."""
        own = urlsplit(self.origin).netloc
        return [r.url for r in self.asked if urlsplit(r.url).netloc != own and not r.url.startswith(("data:", "blob:"))]

    def check(self) -> None:
        """Nothing ran, nothing was asked of another host, and the browser has nothing to say."""
        assert (self.elsewhere, self.dialogs, self.complaints, self.errors) == ([], [], [], [])

    async def go(self, path: str) -> None:
        """Opens a page of the service."""
        await self.page.goto(f"{self.origin}{path}")

    async def live(self) -> None:
        """Returns once the page listens to its stream."""
        await self.page.locator("#state[data-state=live]").wait_for()

    def entry(self, item_id: str) -> Locator:
        """The article of an item."""
        return self.page.locator(f'article[data-id="{item_id}"]')

    async def ids(self) -> list[str]:
        """The ids of the items on the page, from the top."""
        item_ids: list[str] = await self.page.locator("article").evaluate_all("all => all.map(one => one.dataset.id)")
        return item_ids

    async def shot(self, name: str, *, whole: bool = True) -> None:
        """Keeps a picture of the page as an artefact."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SHOTS / f"{name}.png", full_page=whole, animations="disabled")


Opener = Callable[..., Awaitable[Tab]]


async def open_tab(browser: Browser, origin: str, **options: object) -> Tab:
    """A tab of its own, with no cookies and no cache; options are those of Playwright's contexts."""
    options = {"locale": "en-GB", "timezone_id": "UTC", "viewport": {"width": 1100, "height": 800}, **options}
    context = await browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    tab = Tab(await context.new_page(), origin)
    tab.watch()
    return tab


async def close_tabs(browser: Browser) -> None:
    """Closes all tabs but the first one, without which the browser would end."""
    for context in browser.contexts[1:]:
        await context.close()


async def enter(open_page: Opener, token: str, path: str, **options: object) -> Tab:
    """A tab with a page, after a sign-in with a token by the form of the sign-in page."""
    tab = await open_page(f"/login?next={quote(path, safe='/')}", **options)
    await tab.page.get_by_label("Token").fill(token.removeprefix("Bearer "))
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(tab.page).to_have_url(f"{tab.origin}{path}")
    return tab

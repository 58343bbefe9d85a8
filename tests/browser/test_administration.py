"""The web administration in a real browser: its forms without a script, its looks, and that nothing is wider than a
phone."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.browser import Tab, open_tab
from support.browsing import SESSION_COOKIE, sign_in
from support.component import ALICE, BOB, bare
from support.web import Web, WebStarter

PAGES = {
    "overview": "/admin/",
    "feeds": "/admin/feeds/",
    "options": "/admin/feeds/town%2Fharbour/",
    "members": "/admin/members/town%2Fharbour/",
    "subscriptions": "/admin/subscriptions/town%2Fharbour/",
    "tokens": "/admin/tokens/",
    "consumers": "/admin/consumers/",
    "mirrors": "/admin/mirrors/",
    "enclosures": "/admin/enclosures/",
    "errors": "/admin/log/",
}
PHONE = {"width": 360, "height": 740}


@pytest_asyncio.fixture(loop_scope="session")
async def busy(start_web: WebStarter) -> Web:
    """A component with the admin Alice and a day of history."""
    web = await start_web(pubsub={"admins": [bare(ALICE)], "creators": ["example.org"]})
    component = web.component
    await component.create(ALICE, "town/harbour", title="Harbour news")
    await component.subscribe(BOB, "town/harbour")
    component.app.recent.take()
    for minute in range(24 * 60):
        component.clock.advance(60)
        if minute % 97 == 0:
            await component.publish(ALICE, "town/harbour", f"item{minute}")
        component.app.recent.take()
    return web


async def signed_in(browser: Browser, web: Web, **options: Any) -> Tab:
    """A tab of Alice, who has signed in."""
    session = await sign_in(web, ALICE)
    tab = await open_tab(browser, web.origin, **options)
    await tab.page.context.add_cookies([{"name": SESSION_COOKIE, "value": session.text, "url": web.origin}])
    return tab


async def test_a_feed_is_managed_without_script(busy: Web, browser: Browser) -> None:
    """Created, shared, and deleted with its name typed, by a browser that runs no script."""
    tab = await signed_in(browser, busy, java_script_enabled=False)
    page = tab.page
    await page.set_viewport_size({"width": 360, "height": 740})
    await tab.go("/feeds/")
    # A narrow bar has a menu for what it has no room for.
    await page.get_by_text("Menu", exact=True).click()
    await page.get_by_role("link", name="Administration").click()
    await page.set_viewport_size({"width": 1280, "height": 800})
    await expect(page.get_by_role("navigation", name="Site").get_by_role("link", name="Administration")).to_be_visible()
    await page.get_by_role("navigation", name="Administration").get_by_role("link", name="Feeds", exact=True).click()
    await page.get_by_label("Name", exact=True).fill("été & more")
    await page.get_by_label("Title").fill("Summer")
    await page.get_by_label("Who may subscribe and retrieve").select_option(label="Members only")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("status")).to_have_text("Created.")
    await expect(page.get_by_label("Title")).to_have_value("Summer")

    await page.get_by_label("Description").fill("Sun and sea")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    assert (await busy.component.config(ALICE, "été & more"))["description"] == ["Sun and sea"]

    await page.get_by_role("link", name="Members").click()
    await page.get_by_label("XMPP address").fill(bare(BOB))
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("button", name=f"Remove: {bare(BOB)}").click()
    await expect(page.get_by_role("status")).to_have_text("Removed.")

    await page.get_by_role("link", name="Options").click()
    await page.get_by_text("Delete this feed").click()
    await page.get_by_label("Type the name of the feed").fill("été & more")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_have_text("Deleted.")
    await expect(page.get_by_role("row")).to_have_count(2)
    tab.check()


async def test_a_token_is_copied_once(busy: Web, browser: Browser) -> None:
    tab = await signed_in(browser, busy)
    await tab.go("/admin/tokens/")
    await tab.page.get_by_role("button", name="Create").click()
    text = await tab.page.locator("code.secret").inner_text()
    assert (await busy.get("/feeds/", Authorization=f"Bearer {text}")).status == 200
    await tab.go("/admin/tokens/")
    await expect(tab.page.locator("code.secret")).to_have_count(0)
    tab.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
async def test_pages_fit_a_phone_and_a_desktop(busy: Web, browser: Browser, name: str, scheme: str) -> None:
    """No page scrolls sideways, in any colour scheme; wide tables scroll by themselves, also by the keyboard."""
    for viewport in (PHONE, {"width": 1280, "height": 900}):
        tab = await signed_in(browser, busy, color_scheme=scheme, viewport=viewport)
        await tab.go(PAGES[name])
        width = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert width <= viewport["width"]
        await tab.shot(f"admin-{name}-{scheme}-{viewport['width']}")
        tab.check()


@pytest.mark.parametrize("width", [360, 768, 1280])
async def test_every_action_of_a_table_is_on_the_screen(busy: Web, browser: Browser, width: int) -> None:
    """Also beside an error that is long and has no blank: a table becomes cards on a phone."""

    def fail(tx: WriteTx, context: Context) -> None:
        node = tx.node("town/harbour")
        assert node is not None
        tx.set_wait(Consumer(node.node_no, PUSH), Failure(17, context.now_us, None, f"https://h.example/{'x' * 400}"))

    await busy.component.app.service.write(fail)
    tab = await signed_in(browser, busy, viewport={"width": width, "height": 2_000})
    for path, button in (("consumers/", "Retry"), ("tokens/", "Create"), ("members/town%2Fharbour/", "Remove")):
        await tab.go(f"/admin/{path}")
        await expect(tab.page.get_by_role("button", name=button).first).to_be_in_viewport(ratio=1)
    await tab.go("/admin/consumers/")
    table = tab.page.locator(".wide")
    assert await table.evaluate("one => one.scrollWidth <= one.clientWidth"), "nothing of it must be scrolled"
    await tab.shot(f"consumers-{width}")


async def test_plots_have_names_and_their_numbers_as_a_table(busy: Web, browser: Browser) -> None:
    """For screen readers: each plot is an image with a name, and a table has the same numbers."""
    tab = await signed_in(browser, busy)
    await tab.go("/admin/")
    for name in ("Publishes", "Notifications", "Pulls", "Longest lag in seconds"):
        await expect(tab.page.get_by_role("img", name=name)).to_be_visible()
    await tab.page.get_by_text("The numbers of the plots").click()
    published = await tab.page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    # The first of the fifteen items was published before the half hour with which the plots begin.
    assert len(published) == 48 and sum(map(int, published)) == 14
    tab.check()

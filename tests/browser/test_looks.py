"""What the pages look like: pictures for people, and what of it a test can see."""

import pytest

from support.browser import Opener
from support.browsing import SESSION_COOKIE, sign_in
from support.component import ALICE
from support.prose import PROSE, html_entry, note
from support.web import Web

PHONE = {"width": 360, "height": 740}


async def town(web: Web) -> None:
    """A feed with something to read in it: one entry was edited, one is deleted."""
    component = web.component
    await component.create(
        ALICE, "town", title="Town news", description="What happens between the mill and the harbour."
    )
    for item_id, payload in PROSE.items():
        component.clock.advance(3_000)
        await component.publish(ALICE, "town", item_id, payload)
    await component.publish(ALICE, "town", "mistake")
    await component.retract(ALICE, "town", "mistake")
    component.clock.advance(3_000)
    await component.publish(ALICE, "town", "bread", PROSE["bread"].replace("Three", "Four"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_follows_the_colour_scheme(scheme: str, web: Web, open_page: Opener) -> None:
    """A dark scheme has light letters on dark ground, and a light one the opposite."""
    await town(web)
    tab = await open_page("/feeds/town/", color_scheme=scheme)
    await tab.live()
    ground, ink = await tab.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map("
        "text => text.match(/[0-9]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765)"
    )
    assert (ground > 0.9 and ink < 0.2) if scheme == "light" else (ground < 0.15 and ink > 0.85)
    await tab.shot(f"feed-{scheme}")
    tab.check()


async def test_subscribe_box_opens(web: Web, open_page: Opener) -> None:
    """The ways to subscribe are in a box that opens without script."""
    await town(web)
    tab = await open_page("/feeds/town/", java_script_enabled=False)
    await tab.page.get_by_text("Subscribe", exact=True).click()
    await tab.page.get_by_role("link", name="Subscribe in your XMPP client").wait_for()
    await tab.shot("subscribe", whole=False)


async def test_phone_needs_no_sideways_scrolling(web: Web, open_page: Opener) -> None:
    """Long words, wide tables and long lines stay within a narrow page."""
    await town(web)
    wide = "".join(f"<td>{'wide' * 20}" for _ in range(20))
    await web.component.publish(ALICE, "town", "w" * 400, html_entry("W" * 300, f"<table><tr>{wide}</table>"))
    await web.component.publish(ALICE, "town", "pre", html_entry("Pre", f"<pre>{'x' * 2_000}</pre>"))
    await web.component.publish(ALICE, "town", "word", note("y" * 2_000 + " https://h.example/" + "z" * 900))
    tab = await open_page("/feeds/town/", viewport=PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
    await tab.live()
    assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    await tab.shot("hostile-widths-phone")
    for item_id in ("w" * 400, "pre", "word"):
        await web.component.retract(ALICE, "town", item_id)
    await tab.page.reload()
    await tab.live()
    await tab.shot("feed-phone")


async def test_with_deleted_ones(web: Web, open_page: Opener) -> None:
    """[SF-013] The page of all changes says what was deleted and when."""
    await town(web)
    tab = await open_page("/feeds/town/?order=modified")
    await tab.entry("mistake").get_by_text("deleted", exact=True).wait_for()
    await tab.shot("with-deleted", whole=False)


async def test_an_error_is_a_page(web: Web, open_page: Opener) -> None:
    """Who comes with a browser is told so that it can be read."""
    tab = await open_page("/feeds/nowhere/")
    await tab.page.get_by_role("heading", name="Not Found").wait_for()
    await tab.shot("error", whole=False)


@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
@pytest.mark.parametrize("user", ["", ALICE], ids=["guest", "writer"])
async def test_first_entry_begins_in_the_first_third_of_a_phone(
    language: str, user: str, web: Web, open_page: Opener
) -> None:
    """The bar has one line, and the entry begins above a third of the height, also on a page that is live."""
    await town(web)
    await web.component.publish(ALICE, "town", "news")
    tab = await open_page("/", locale=language, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    if user:
        session = (await sign_in(web, user)).text
        await tab.page.context.add_cookies([{"name": SESSION_COOKIE, "value": session, "url": web.origin}])
    for path in ("/", "/feeds/town/"):
        await tab.go(path)
        if path != "/":
            await tab.live()
        for width in (390, 360):
            await tab.page.set_viewport_size({"width": width, "height": 844})
            top, bar, whole = await tab.page.evaluate(
                "[document.querySelector('article').getBoundingClientRect().top, "
                "document.querySelector('.bar').getBoundingClientRect().height, document.scrollingElement.scrollWidth]"
            )
            assert (top <= 844 / 3, bar <= 56, whole <= width) == (True, True, True), (path, width, top, bar, whole)
    await tab.shot(f"first-{language}-{'writer' if user else 'guest'}", whole=False)

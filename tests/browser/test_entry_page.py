"""The page of an entry in a browser."""

import pytest
from playwright.async_api import expect

from support.browser import Opener, Tab
from support.component import ALICE
from support.pages import fill_bakery
from support.prose import html_entry, tags
from support.web import Web

PHONE = {"width": 360, "height": 740}
RICH = (
    "<p>Flour, water and <em>three</em> hours.</p><h2>What you need</h2><ul><li>500 g of flour</li><li>salt</li></ul>"
    "<pre>bake --hot 230 --minutes 40</pre><p><img src='https://pictures.example/loaf.jpg' alt='The loaf'></p>"
    "<blockquote><p>Never trust a clock.</p></blockquote><table><tr><th>Step<th>Hour<tr><td>Knead<td>1</table>"
)


async def bakery(web: Web) -> None:
    """A feed of three entries. The one in the middle has every part, and was edited."""
    await web.component.create(ALICE, "bakery", title="The bakery")
    await fill_bakery(web, RICH)


@pytest.mark.parametrize("script", [True, False])
async def test_reader_goes_from_entry_to_entry(web: Web, open_page: Opener, script: bool) -> None:
    """Links lead to the entries beside it and to the feed, with and without a script. A player loads only our file."""
    await bakery(web)
    tab: Tab = await open_page("/entries/bakery/bread", java_script_enabled=script)
    await expect(tab.page.get_by_role("heading", name="Bread in four hours")).to_be_visible()
    await expect(tab.page.locator("audio")).to_have_attribute("src", f"{web.origin}/files/talk.ogg")
    tab.check()
    await tab.page.get_by_role("link", name="Newer: A note without a title").click()
    await expect(tab.page).to_have_url(f"{web.origin}/entries/bakery/note")
    await tab.page.get_by_role("link", name="Older: Bread in four hours").click()
    await expect(tab.page).to_have_url(f"{web.origin}/entries/bakery/bread")
    await tab.page.locator("main").get_by_role("link", name="The bakery").click()
    await expect(tab.page).to_have_url(f"{web.origin}/feeds/bakery/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_fits_desktop_and_phone(web: Web, open_page: Opener, scheme: str) -> None:
    """Long words and wide tables stay within a narrow page."""
    await bakery(web)
    wide = "".join(f"<td>{'wide' * 20}" for _ in range(20))
    await web.component.publish(
        ALICE,
        "bakery",
        "wide",
        html_entry("W" * 300, f"<table><tr>{wide}</table><pre>{'x' * 900}</pre>", tags("t" * 90)),
    )
    for item_id in ("wide", "bread"):
        tab = await open_page(f"/entries/bakery/{item_id}", color_scheme=scheme, viewport=PHONE, is_mobile=True)
        assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    await tab.shot(f"entry-phone-{scheme}")
    tab = await open_page("/entries/bakery/bread", color_scheme=scheme)
    await tab.shot(f"entry-{scheme}")
    tab.check()


async def test_deleted_entry_says_so(web: Web, open_page: Opener) -> None:
    """The page of a deleted entry leads to the entries beside it."""
    await bakery(web)
    await web.component.retract(ALICE, "bakery", "bread")
    tab = await open_page("/entries/bakery/bread")
    await expect(tab.page.get_by_role("heading", name="This entry was deleted")).to_be_visible()
    await expect(tab.page.get_by_role("link", name="Newer: A note")).to_be_visible()
    await tab.shot("entry-deleted", whole=False)

"""Reading with and without script: paging, searching, the list of feeds."""

import pytest
from playwright.async_api import expect

from support.browser import Opener, Tab
from support.component import ALICE
from support.prose import html_entry, note, tags
from support.web import Web

pytestmark = pytest.mark.needs("pages")

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])


async def turn(tab: Tab, link: str) -> bool:
    """Follows a link of the pager, if there is one."""
    found = tab.page.locator(f"a.{link}:visible").last
    if await found.count() == 0:
        return False
    address = await found.evaluate("link => link.href")
    await found.click()
    await tab.page.wait_for_url(address)
    return True


@SCRIPT
async def test_paging_leads_through_everything_once(script: bool, web: Web, open_page: Opener) -> None:
    """[SF-064] Older page after older page has every entry once, in order, and newer pages lead back the same way."""
    await web.component.create(ALICE, "notes")
    wanted = [f"n{number}" for number in range(23)]
    for item_id in [*wanted, "gone"]:
        await web.component.publish(ALICE, "notes", item_id)
    await web.component.retract(ALICE, "notes", "gone")
    newest_first = list(reversed(wanted))
    tab = await open_page("/feeds/notes/?max=5", java_script_enabled=script)
    pages = [await tab.ids()]
    while await turn(tab, "older"):
        assert "until=cursor" in tab.page.url
        pages.append(await tab.ids())
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    assert [one for page in pages for one in page] == newest_first
    back = [await tab.ids()]
    while await turn(tab, "newer"):
        back.insert(0, await tab.ids())
    assert [one for page in back for one in page] == newest_first
    # A browser may take the page out of its memory, and then loads nothing.
    await tab.page.go_back(wait_until="commit")
    await expect(tab.entry(back[1][0])).to_be_visible()
    assert await tab.ids() == back[1]
    await turn(tab, "newest")
    assert await tab.ids() == newest_first[: len(await tab.ids())]
    tab.check()


async def test_page_in_the_address_bar_stays_what_it_is(web: Web, open_page: Opener) -> None:
    """[SF-028] The address of an older page shows the same entries after new ones came."""
    await web.component.create(ALICE, "notes")
    for number in range(6):
        await web.component.publish(ALICE, "notes", f"n{number}")
    tab = await open_page("/feeds/notes/?max=2")
    await turn(tab, "older")
    assert await tab.ids() == ["n3", "n2"]
    await web.component.publish(ALICE, "notes", "n6")
    await tab.page.reload()
    assert await tab.ids() == ["n3", "n2"]


@SCRIPT
async def test_search_finds_words(script: bool, web: Web, open_page: Opener) -> None:
    """The box finds the entries that hold all words, says what was searched, and leads back."""
    await web.component.create(ALICE, "notes", title="Notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Bread", "<p>with butter & salt</p>", tags("kitchen")))
    await web.component.publish(ALICE, "notes", "b", note("Butter alone"))
    await web.component.publish(ALICE, "notes", "c", note("nothing of it"))
    tab = await open_page("/feeds/notes/", java_script_enabled=script)
    await tab.page.get_by_role("searchbox", name="Search this feed").fill("BUTTER bread")
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.wait_for_url("**?q=BUTTER+bread")
    assert await tab.ids() == ["a"]
    await expect(tab.page.locator("#total")).to_have_text("1 entry")
    await expect(tab.page.get_by_role("searchbox")).to_have_value("BUTTER bread")
    if script:
        await tab.shot("search", whole=False)
    await tab.page.get_by_role("link", name="Show all").click()
    await tab.page.wait_for_url("**/feeds/notes/")
    assert await tab.ids() == ["c", "b", "a"]
    tab.check()


async def test_search_keeps_the_filter_and_says_when_nothing_matches(web: Web, open_page: Opener) -> None:
    """A tag leads to its entries; a search within them stays within them; the filter can be taken away."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Bread", "<p>butter</p>", tags("rye & <wheat>")))
    await web.component.publish(ALICE, "notes", "b", note("butter"))
    tab = await open_page("/feeds/notes/")
    await tab.entry("a").get_by_role("link", name="rye & <wheat>").click()
    await tab.page.wait_for_url("**?category=**")
    assert await tab.ids() == ["a"]
    await tab.page.get_by_role("searchbox").fill("salt")
    await tab.page.get_by_role("button", name="Search").click()
    await expect(tab.page.locator(".empty")).to_have_text("Nothing matches.")
    await tab.page.get_by_role("link", name="category: rye & <wheat>").click()
    await tab.page.wait_for_url("**?q=salt")
    await tab.page.get_by_role("searchbox").fill("butter")
    await tab.page.get_by_role("button", name="Search").click()
    await tab.page.wait_for_url("**?q=butter")
    assert await tab.ids() == ["b", "a"]


@SCRIPT
async def test_list_leads_to_the_feeds(script: bool, web: Web, open_page: Opener) -> None:
    """The way in: the river, the list, a feed, and back; the list in pages has every feed once."""
    for number in range(7):
        await web.component.create(ALICE, f"f{number}", title=f"Feed {number}", description="Of this and that.")
        await web.component.publish(ALICE, f"f{number}", "a")
    tab = await open_page("/", java_script_enabled=script)
    await tab.page.get_by_role("link", name="Feeds by name").click()
    await tab.page.wait_for_url("**/feeds/")
    await expect(tab.page.locator("#total")).to_have_text("7 feeds")
    if script:
        await tab.shot("list", whole=False)
    await tab.page.get_by_role("link", name="Feed 3", exact=True).click()
    await tab.page.wait_for_url("**/feeds/f3/")
    assert await tab.ids() == ["a"]
    await tab.page.get_by_role("link", name="Smart Feeds").click()
    await tab.page.wait_for_url(f"{web.origin}/")
    await tab.go("/feeds/?max=3")
    names: list[str] = []
    while True:
        names += await tab.page.locator(".feeds h2").all_inner_texts()
        if not await turn(tab, "older"):
            break
    assert names == [f"Feed {number}" for number in range(7)]
    await turn(tab, "newer")
    assert await tab.page.locator(".feeds h2").all_inner_texts() == ["Feed 3", "Feed 4", "Feed 5"]
    tab.check()


async def test_keyboard_alone_is_enough(web: Web, open_page: Opener) -> None:
    """Tab reaches the link to the content, the title, Subscribe and the search; Enter searches and opens the menu."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", note("bread"))
    tab = await open_page("/feeds/notes/")
    keyboard = tab.page.keyboard
    await keyboard.press("Tab")
    await expect(tab.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await keyboard.press("Enter")
    await expect(tab.page.locator("main")).to_be_focused()
    for element in (
        tab.page.locator("h1 a"),
        tab.page.locator(".subscribe > summary"),
        tab.page.get_by_role("searchbox"),
    ):
        await keyboard.press("Tab")
        await expect(element).to_be_focused()
    await keyboard.type("bread")
    await keyboard.press("Enter")
    await tab.page.wait_for_url("**?q=bread")
    await tab.page.locator(".subscribe > summary").focus()
    await keyboard.press("Enter")
    await expect(tab.page.get_by_role("link", name="Subscribe in your XMPP client")).to_be_visible()


async def test_motion_and_print(web: Web, open_page: Opener) -> None:
    """Who wants no motion gets none; on paper there is text and no boxes to click."""
    await web.component.create(ALICE, "notes")
    tab = await open_page("/feeds/notes/", reduced_motion="reduce")
    await tab.live()
    await web.component.publish(ALICE, "notes", "a", note("bread"))
    assert await tab.entry("a").evaluate("one => getComputedStyle(one).animationName") == "none"
    await tab.page.emulate_media(media="print")
    await expect(tab.page.locator(".tools")).to_be_hidden()
    await expect(tab.entry("a")).to_be_visible()


@pytest.mark.parametrize("form", ["atom", "rss"])
async def test_document_explains_itself(form: str, web: Web, open_page: Opener) -> None:
    """A browser shows the document of a feed as a page: how to subscribe, the title, and the titles of the entries."""
    await web.component.create(ALICE, "notes", title="Notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Bread", "<p>butter</p>"))
    tab = await open_page(f"/feeds/notes.{form}")
    words = "getComputedStyle(document.querySelector('feed, channel'), '::after').content"
    assert "copy the address of this page" in await tab.page.evaluate(words)
    for selector in (":is(feed, channel) > title", ":is(entry, item) > title"):
        await expect(tab.page.locator(selector)).to_be_visible()
    await expect(tab.page.locator(":is(entry, item) > :is(id, guid)").first).to_be_hidden()
    tab.check()

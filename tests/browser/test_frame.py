"""What every page has: the theme, the keys, menus, and times in the zone of the reader."""

import datetime
from collections.abc import Awaitable, Callable

import pytest
import segno
from playwright.async_api import Browser, expect

from support.accessibility import DESKTOP, Reader, Setting
from support.browser import Opener, Tab, open_tab
from support.browsing import sign_in
from support.component import ALICE, BOB
from support.pages import PAGES, SECTIONS, fill
from support.prose import html_entry, note
from support.web import Web, WebStarter

THEME_NAMES = ["light", "dark", None]
NARROW = {"width": 360, "height": 740}


async def theme_of(tab: Tab) -> str | None:
    return await tab.page.locator("html").get_attribute("data-theme")


async def is_dark(tab: Tab) -> bool:
    ground = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0]")
    return int(ground) < 128


async def focus(tab: Tab) -> str | None:
    """The id of the entry that has the focus."""
    value: str | None = await tab.page.evaluate("document.activeElement.closest('article')?.dataset.id")
    return value


async def test_theme_is_chosen_without_script(web: Web, open_page: Opener) -> None:
    """The button leads through light, dark and that of the system; the cookie holds it on every page of the site."""
    tab = await open_page("/feeds/?max=3", java_script_enabled=False, color_scheme="dark")
    assert (await theme_of(tab), await is_dark(tab)) == (None, True)
    for theme in THEME_NAMES:
        await tab.page.get_by_role("button", name="Change the theme").click()
        await expect(tab.page).to_have_url(f"{web.origin}/feeds/?max=3")
        assert (await theme_of(tab), await is_dark(tab)) == (theme, theme != "light")
        await tab.go("/search")
        assert await theme_of(tab) == theme
        await tab.go("/feeds/?max=3")
    tab.check()


async def test_theme_changes_at_once_with_script(web: Web, open_page: Opener) -> None:
    """The page is not loaded again, and the next page has the theme."""
    tab = await open_page("/feeds/", color_scheme="light")
    await tab.page.evaluate("document.body.dataset.same = 'yes'")
    for theme in ("light", "dark"):
        async with tab.page.expect_response("**/theme"):
            await tab.page.get_by_role("button", name="Change the theme").click()
            assert await theme_of(tab) == theme
    assert await tab.page.evaluate("document.body.dataset.same") == "yes"
    assert await is_dark(tab)
    await tab.go("/")
    assert await theme_of(tab) == "dark"
    tab.check()


async def reading(web: Web, open_page: Opener) -> Tab:
    await web.component.create(ALICE, "notes", title="Notes")
    for item_id in ("a", "b", "c"):
        await web.component.publish(ALICE, "notes", item_id, html_entry(f"Entry {item_id}", "<p>text</p>"))
    tab = await open_page("/feeds/notes/")
    await tab.live()
    return tab


async def test_menu_of_a_phone_has_what_the_bar_has(web: Web, open_page: Opener) -> None:
    """Without a script, and by the keyboard: every place, the sign-in and the theme."""
    tab = await open_page("/feeds/", java_script_enabled=False, viewport=NARROW, color_scheme="light")
    bar = tab.page.get_by_role("banner")
    await expect(bar.get_by_role("link", name="Search")).to_be_hidden()
    await bar.locator("summary").focus()
    await tab.page.keyboard.press("Enter")
    for name in ("Feeds", "Search", "Sign in"):
        await expect(bar.get_by_role("link", name=name, exact=True)).to_be_in_viewport(ratio=1)
    await bar.get_by_role("button", name="Change the theme").click()
    assert await theme_of(tab) == "light"
    await bar.get_by_text("Menu", exact=True).click()
    await bar.get_by_role("link", name="Search", exact=True).click()
    await expect(tab.page).to_have_url(f"{web.origin}/search")
    tab.check()


async def test_menu_closes_on_escape_and_the_theme_changes_in_both_places(open_page: Opener) -> None:
    tab = await open_page("/feeds/", viewport=NARROW, color_scheme="light")
    bar = tab.page.get_by_role("banner")
    await bar.get_by_text("Menu", exact=True).click()
    async with tab.page.expect_response("**/theme"):
        await bar.get_by_role("button", name="Change the theme").click()
    await tab.page.keyboard.press("Escape")
    await expect(bar.get_by_role("link", name="Search")).to_be_hidden()
    await tab.page.set_viewport_size(DESKTOP)
    await expect(bar.get_by_role("link", name="Search")).to_be_visible()
    async with tab.page.expect_response("**/theme"):
        await bar.get_by_role("button", name="Change the theme").click()
    assert await theme_of(tab) == "dark", "light was the choice in the menu"
    tab.check()


async def test_keys_lead_from_entry_to_entry(web: Web, open_page: Opener) -> None:
    tab = await reading(web, open_page)
    press = tab.page.keyboard.press
    places = []
    for key in ("j", "j", "j", "j", "k"):
        await press(key)
        places.append(await focus(tab))
    assert places == ["c", "b", "a", "a", "b"]
    await press("o")
    await expect(tab.page).to_have_url(f"{web.origin}/entries/notes/b")
    tab.check()


@pytest.mark.parametrize("path", ["/feeds/notes/", "/"])
async def test_key_opens_an_entry_without_a_visible_title(web: Web, open_page: Opener, path: str) -> None:
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Entry a.", "<p>Entry a. And more.</p>"))
    tab = await open_page(path)
    for key in ("j", "o"):
        await tab.page.keyboard.press(key)
    await expect(tab.page).to_have_url(f"{web.origin}/entries/notes/a")
    tab.check()


async def test_keys_search_and_explain_themselves(web: Web, open_page: Opener) -> None:
    """/ leads to the search; ? opens the list of keys, which Escape closes; the button below the page opens it too."""
    tab = await reading(web, open_page)
    await tab.page.keyboard.press("/")
    await expect(tab.page.get_by_role("searchbox")).to_be_focused()
    await expect(tab.page.get_by_role("searchbox")).to_have_value("")
    await tab.page.get_by_role("searchbox").blur()
    dialog = tab.page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_hidden()
    await tab.page.keyboard.press("?")
    await expect(dialog).to_be_visible()
    await expect(dialog.locator("kbd")).to_have_text(["j", "k", "o", "/", "?"])
    await tab.page.keyboard.press("j")
    assert await focus(tab) is None
    await tab.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await tab.page.get_by_role("button", name="Keyboard shortcuts").click()
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_be_hidden()
    tab.check()


@pytest.mark.parametrize("key", ["Control+j", "Alt+j", "Meta+j", "x"])
async def test_keys_of_the_browser_stay_its_own(key: str, web: Web, open_page: Opener) -> None:
    tab = await reading(web, open_page)
    await tab.page.keyboard.press(key)
    assert await focus(tab) is None
    assert await tab.page.evaluate("document.activeElement === document.body")


async def test_keys_are_letters_while_somebody_types(web: Web, open_page: Opener) -> None:
    tab = await reading(web, open_page)
    await tab.page.get_by_role("searchbox").focus()
    await tab.page.keyboard.type("jok/?")
    await expect(tab.page.get_by_role("searchbox")).to_have_value("jok/?")
    await expect(tab.page.get_by_role("searchbox")).to_be_focused()
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)


async def escape(tab: Tab) -> None:
    await tab.page.get_by_role("button", name="Copy").focus()
    await tab.page.keyboard.press("Escape")
    await expect(tab.page.locator(".subscribe > summary")).to_be_focused()


async def click_outside(tab: Tab) -> None:
    await tab.page.mouse.click(5, 700)


@pytest.mark.parametrize("close", [escape, click_outside])
async def test_subscribe_menu_closes(close: Callable[[Tab], Awaitable[None]], web: Web, open_page: Opener) -> None:
    """A click inside leaves it open. Escape leads the focus back to its button."""
    tab = await reading(web, open_page)
    link = tab.page.get_by_role("link", name="Subscribe in your XMPP client")
    await tab.page.locator(".subscribe > summary").click()
    await tab.page.get_by_role("heading", name="XMPP").click()
    await expect(link).to_be_visible()
    await close(tab)
    await expect(link).to_be_hidden()


async def test_copy_button_copies_the_address_for_feed_readers(web: Web, open_page: Opener) -> None:
    tab = await reading(web, open_page)
    await tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.page.locator(".subscribe > summary").click()
    await tab.page.get_by_role("button", name="Copy").click()
    await expect(tab.page.get_by_role("button", name="Copied")).to_be_visible()
    assert await tab.page.evaluate("navigator.clipboard.readText()") == f"{web.origin}/feeds/notes.atom"


async def test_address_can_be_copied_by_hand_without_script(web: Web, open_page: Opener) -> None:
    await web.component.create(ALICE, "notes")
    tab = await open_page("/feeds/notes/", java_script_enabled=False)
    await tab.page.locator(".subscribe > summary").click()
    await expect(tab.page.get_by_label("Address for feed readers")).to_have_value(f"{web.origin}/feeds/notes.atom")
    await expect(tab.page.locator("[data-copy]")).to_be_hidden()


async def test_code_for_phones_is_the_address_of_the_chat(web: Web, open_page: Opener) -> None:
    """The modules of the QR code as the browser draws them. A phone shows none: it cannot scan its own screen."""
    tab = await reading(web, open_page)
    await tab.page.locator(".subscribe > summary").click()
    address = await tab.page.get_by_role("link", name="Get it by chat").get_attribute("href")
    assert address is not None
    await expect(tab.page.locator(".with-code svg")).to_be_visible()
    modules = [list(row) for row in segno.make_qr(address, error="m").matrix_iter(border=4)]
    drawn = await tab.page.locator(".with-code svg").evaluate(
        """(svg, size) => {
            const path = svg.querySelector('path[stroke]');
            const places = [...Array(size).keys()];
            const at = (x, y) => path.isPointInStroke(new DOMPoint(x + 0.5, y + 0.5)) ? 1 : 0;
            return places.map(y => places.map(x => at(x, y)));
        }""",
        len(modules),
    )
    assert drawn == modules
    await tab.page.set_viewport_size(NARROW)
    await expect(tab.page.locator(".with-code svg")).to_be_hidden()
    await expect(tab.page.get_by_role("link", name="Get it by chat")).to_be_visible()


async def test_long_entry_is_clamped_and_read_on_without_script(web: Web, open_page: Opener) -> None:
    """A feed shows about twelve lines of a long entry, and a link to the whole one; a short one has no link."""
    await web.component.create(ALICE, "notes", title="Notes")
    text = "".join(f"<p>Line {number} of the story.</p>" for number in range(40))
    await web.component.publish(ALICE, "notes", "long", html_entry("A story", text))
    await web.component.publish(ALICE, "notes", "short", note("Only this."))
    tab = await open_page("/feeds/notes/", java_script_enabled=False)
    lines = "one => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)"
    assert 11 <= await tab.entry("long").locator(".body").evaluate(lines) <= 13
    await expect(tab.entry("short").get_by_role("link", name="Read on")).to_have_count(0)
    await tab.entry("long").get_by_role("link", name="Read on: A story").click()
    await expect(tab.page).to_have_url(f"{web.origin}/entries/notes/long")
    await expect(tab.page.get_by_text("Line 39 of the story.")).to_be_visible()
    assert await tab.page.locator(".body").evaluate("one => one.scrollHeight <= one.clientHeight + 1")


async def test_search_marks_words_and_shows_where_they_are(web: Web, open_page: Opener) -> None:
    """Words are marked in the title and in the text, never in attributes. A snippet has a word that a page hides."""
    await web.component.create(ALICE, "notes", title="Notes")
    hidden = "<p>" + "Water and flour. " * 2_000 + "</p><p>At the end the miller speaks.</p>"
    link = "<p>The <b>Miller</b> has <a href='https://miller.example/miller' title='miller'>a page</a>.</p>"
    await web.component.publish(ALICE, "notes", "cut", html_entry("Flour", hidden))
    await web.component.publish(ALICE, "notes", "whole", html_entry("The miller's day", link))
    tab = await open_page("/feeds/notes/?q=MILLER")
    await expect(tab.entry("whole").locator("h2 mark")).to_have_text("miller")
    await expect(tab.entry("whole").locator(".body mark")).to_have_text("Miller")
    assert await tab.entry("whole").locator(".body a").get_attribute("href") == "https://miller.example/miller"
    await expect(tab.entry("cut").locator(".excerpt mark")).to_have_text("miller")
    await expect(tab.entry("cut").locator(".excerpt")).to_contain_text("At the end the miller speaks.")
    await expect(tab.page.locator("#total")).to_have_text("2 entries")
    tab.check()


async def test_times_are_relative_and_exact_on_hover(web: Web, open_page: Opener) -> None:
    """In the language of the page and the zone of the reader; after a week a time is a date."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", note("now"))
    published = datetime.datetime.fromtimestamp(web.component.clock.now_us / 1e6, datetime.UTC)
    for locale, zone, minutes, days in (
        ("en-GB", "Asia/Tokyo", "5 minutes ago", "3 days ago"),
        ("de-DE", "America/New_York", "vor 5 Minuten", "vor 3 Tagen"),
    ):
        tab = await open_page("/feeds/", locale=locale, timezone_id=zone)
        for age, words in ((datetime.timedelta(minutes=5), minutes), (datetime.timedelta(days=3), days)):
            await tab.page.clock.set_fixed_time(published + age)
            await tab.go("/feeds/notes/")
            await expect(tab.entry("a").locator("time")).to_have_text(words)
        await tab.page.clock.set_fixed_time(published + datetime.timedelta(days=30))
        await tab.go("/feeds/notes/")
        exact = await tab.page.evaluate(
            "([language, zone, ms]) => ['full', 'medium'].map(dateStyle => new Intl.DateTimeFormat(language, "
            "{dateStyle, timeStyle: 'short', timeZone: zone}).format(ms))",
            [locale, zone, published.timestamp() * 1000],
        )
        time = tab.entry("a").locator("time")
        assert [await time.get_attribute("title"), await time.inner_text()] == exact


async def test_no_page_shows_times_of_another_zone(start_web: WebStarter, browser: Browser) -> None:
    """With script every time of the site is in the zone of the reader: nothing says UTC."""
    web = await start_web(**SECTIONS)
    await fill(web)
    tab = await open_tab(browser, web.origin, timezone_id="Asia/Tokyo", viewport=DESKTOP)
    cookies = {user: (await sign_in(web, user)).text for user in (ALICE, BOB)}
    devtools = await tab.page.context.new_cdp_session(tab.page)
    reader = Reader(Setting("en", "light", DESKTOP, True), tab, devtools, cookies)
    times = 0
    for page in PAGES:
        await reader.open(page, web)
        own = "[...document.querySelectorAll('time, svg [data-time]')].filter(one => !one.closest('.body'))"
        texts = await tab.page.evaluate(f"{own}.map(one => one.textContent)")
        assert not [text for text in texts if "UTC" in text or not text], page.name
        times += len(texts)
    assert times > 50

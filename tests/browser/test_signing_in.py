"""Signing in, writing, editing, deleting and signing out in a browser, with and without script."""

import pytest
from playwright.async_api import expect

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browser import Opener, enter
from support.chat import write
from support.component import ALICE
from support.prose import html_entry
from support.web import Web

PHONE = {"width": 360, "height": 740}


async def token_of(web: Web) -> str:
    """A token of Alice, as people type it."""
    return (await bearer(web, ALICE, TokenScope.ADMIN)).removeprefix("Bearer ")


@pytest.mark.parametrize("script", [True, False])
async def test_closed_feed_opens_after_a_sign_in(web: Web, open_page: Opener, *, script: bool) -> None:
    """From the page that says 404 to the sign-in, back to the feed, and out again."""
    await web.component.create(ALICE, "plans", access_model="whitelist", title="Plans")
    tab = await open_page("/feeds/plans/", java_script_enabled=script)
    await tab.page.get_by_role("link", name="signing in").click()
    await tab.shot(f"sign-in-{'script' if script else 'plain'}")
    await tab.page.get_by_label("Token").fill(await token_of(web))
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(tab.page.get_by_role("heading", name="Plans")).to_be_visible()
    await expect(tab.page).to_have_url(f"{web.origin}/feeds/plans/")
    await tab.go("/feeds/")
    await expect(tab.page.get_by_role("link", name="Plans", exact=True)).to_be_visible()
    await tab.page.get_by_role("link", name="alice@example.org").click()
    await expect(tab.page.get_by_text("this browser")).to_be_visible()
    await tab.shot("account")
    await tab.page.get_by_role("button", name="Sign out everywhere").click()
    await tab.go("/feeds/plans/")
    await expect(tab.page.get_by_role("heading", name="Not Found")).to_be_visible()
    assert (tab.elsewhere, tab.dialogs, tab.errors) == ([], [], [])


@pytest.mark.parametrize("script", [True, False])
async def test_code_is_confirmed_in_the_chat(web: Web, open_page: Opener, *, script: bool) -> None:
    """With script the page continues by itself; without, it has a link to look again, and a button."""
    tab = await open_page("/login", java_script_enabled=script)
    await tab.page.get_by_role("button", name="Continue").click()
    code = await tab.page.locator(".code code").inner_text()
    await tab.shot("sign-in-code")
    link = await tab.page.get_by_role("link", name="Write the message").get_attribute("href")
    assert link == f"xmpp:feeds.example.org?message;type=chat;body=login%20{code}"
    await write(web.component, ALICE, f"login {code}")
    await write(web.component, ALICE, f"login {code} yes")
    if not script:
        await tab.page.get_by_role("link", name="Look again now").click()
        await expect(tab.page.get_by_role("heading", name="Confirmed")).to_be_visible()
        await tab.page.get_by_role("button", name="Continue").click()
    await expect(tab.page.get_by_role("link", name="alice@example.org")).to_be_visible()
    cookies = {one["name"]: one for one in await tab.page.context.cookies()}
    session = cookies["smartfeeds-session"]
    assert (session["httpOnly"], session["sameSite"], session["path"]) == (True, "Lax", "/")
    assert (tab.elsewhere, tab.dialogs, tab.errors) == ([], [], [])


@pytest.mark.parametrize("script", [True, False])
async def test_entry_is_written_edited_and_deleted(web: Web, open_page: Opener, *, script: bool) -> None:
    await web.component.create(ALICE, "notes", title="Notes")
    tab = await enter(open_page, await token_of(web), "/feeds/notes/", java_script_enabled=script)
    page = tab.page
    await page.get_by_role("link", name="Write", exact=True).click()
    await page.get_by_label("Title").fill("A fine day <b>")
    await page.get_by_label("Text", exact=True).fill("<p>It was <em>fine</em>.</p>")
    await page.get_by_label("The text is").select_option("html")
    await page.get_by_label("Tags").fill("weather, village")
    await page.get_by_label("Add files").set_input_files(
        {"name": "sun.txt", "mimeType": "text/plain", "buffer": b"22 degrees"}
    )
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("article.preview em")).to_have_text("fine")
    await expect(page.get_by_label("sun.txt")).to_be_checked()
    await tab.shot("editor")
    await page.get_by_role("button", name="Publish").click()
    entry = page.locator("article")
    await expect(entry.get_by_role("heading")).to_have_text("A fine day <b>")
    await expect(entry.get_by_role("link", name="sun.txt")).to_be_visible()
    await entry.get_by_role("link", name="Edit").click()
    await expect(page.get_by_label("Text", exact=True)).to_have_value("<p>It was <em>fine</em>.</p>")
    await page.get_by_label("Title").fill("A rainy day")
    await page.get_by_label("sun.txt").uncheck()
    await page.get_by_role("button", name="Publish").click()
    await expect(entry.get_by_role("heading")).to_have_text("A rainy day")
    await expect(entry.get_by_role("link", name="sun.txt")).to_have_count(0)
    await tab.shot("signed-in-feed", whole=False)
    await entry.get_by_role("link", name="Delete").click()
    await expect(page.get_by_text("A rainy day")).to_be_visible()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Nothing has been published here yet.")).to_be_visible()
    assert (tab.elsewhere, tab.dialogs, tab.errors) == ([], [], [])


@pytest.mark.parametrize("script", [True, False])
async def test_nothing_is_lost_if_somebody_else_was_faster(web: Web, open_page: Opener, *, script: bool) -> None:
    component = web.component
    await component.create(ALICE, "notes", title="Notes")
    await component.publish(ALICE, "notes", "a", html_entry("Boat trip", "<p>We meet at nine.</p>"))
    tab = await enter(open_page, await token_of(web), "/feeds/notes/", java_script_enabled=script)
    page = tab.page
    await page.locator("article").get_by_role("link", name="Edit").click()
    await page.get_by_label("Text", exact=True).fill("<p>We meet at nine, at the mill.</p>")
    await component.publish(ALICE, "notes", "a", html_entry("Boat trip", "<p>We meet at ten.</p>"))
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("heading", name="Somebody else was faster")).to_be_visible()
    await expect(page.locator("del").first).to_contain_text("ten")
    await expect(page.get_by_label("Text", exact=True)).to_have_value("<p>We meet at nine, at the mill.</p>")
    await tab.shot("editor-conflict")
    await page.get_by_label("Text", exact=True).fill("<p>We meet at ten, at the mill.</p>")
    await page.get_by_role("button", name="Publish").click()
    await expect(page.locator("article .body")).to_have_text("We meet at ten, at the mill.")
    assert (tab.elsewhere, tab.dialogs, tab.errors) == ([], [], [])


async def test_page_of_another_host_changes_nothing(web: Web, open_page: Opener) -> None:
    """The browser sends no cookie with the form of another site, and the form token is missing."""
    await web.component.create(ALICE, "notes", title="Notes")
    tab = await enter(open_page, await token_of(web), "/feeds/notes/")
    await expect(tab.page.get_by_role("heading", name="Notes")).to_be_visible()
    form = (
        f"<form method=post action='{web.origin}/write/notes/'><input name=title value=Spam>"
        "<input name=action value=publish><button>Win a prize</button></form>"
    )
    await tab.page.route("http://evil.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    await tab.page.goto("http://evil.example/")
    async with tab.page.expect_response("**/write/notes/") as told:
        await tab.page.get_by_role("button").click()
    assert (await told.value).status == 403
    assert (await web.get("/feeds/notes/?timeout=0")).json["count"] == 0


async def test_pages_fit_a_phone(web: Web, open_page: Opener) -> None:
    await web.component.create(ALICE, "notes", title="Notes")
    await web.component.publish(ALICE, "notes", "x" * 300, html_entry("W" * 300, "x"))
    tab = await enter(
        open_page,
        await token_of(web),
        "/feeds/notes/",
        viewport=PHONE,
        device_scale_factor=2,
        has_touch=True,
        is_mobile=True,
        color_scheme="dark",
    )
    for path in ("/feeds/notes/", "/write/notes/", "/account"):
        await tab.go(path)
        assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        await tab.shot(f"phone{path.replace('/', '-')}")
    tab.check()

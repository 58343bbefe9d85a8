"""Conflicts in a browser: seen, looked at side by side, decided on, without script; what is hostile does nothing."""

from xml.sax.saxutils import escape

import pytest
from playwright.async_api import Page, expect

from browser.test_hostile_entries import EVIL, HOSTILE
from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browser import Opener, enter
from support.component import ALICE
from support.prose import html_entry
from support.versions import B1, version
from support.web import Web

PHONE = {"width": 360, "height": 740}


async def secret(web: Web) -> str:
    """Alice's token, as somebody types it in as the password."""
    return (await bearer(web, ALICE, TokenScope.PUBLISH, "plans")).removeprefix("Bearer ")


async def bring(web: Web, password: str, payload: str, item_id: str) -> None:
    """Publishes a version of another service."""
    headers = {"Authorization": f"Bearer {password}", "Content_Type": "application/atom+xml"}
    assert (await web.ask("PUT", f"/entries/plans/{item_id}", payload.encode(), **headers)).status in (200, 201)


async def clash(web: Web, password: str) -> None:
    """A shared feed with an entry that was edited at two places, and one that was deleted at one of them."""
    component = web.component
    await component.create(ALICE, "plans", title="Plans for the summer")
    here = html_entry("Boat trip on Saturday", "<p>We meet at <strong>nine</strong> at the harbour.</p>")
    await component.publish(ALICE, "plans", "boat", here)
    there = "&lt;p&gt;We meet at &lt;strong&gt;ten&lt;/strong&gt;, at the mill: the harbour is closed.&lt;/p&gt;"
    await bring(web, password, version(B1, title="Boat trip on Sunday", sync_id="boat", content=there), "boat")
    component.clock.advance(600)
    await component.publish(ALICE, "plans", "cake", html_entry("Who brings cake?", "<p>I could bake one.</p>"))
    await bring(web, password, version(B1, B1, sync_id="cake", deleted=True), "cake")
    await component.publish(ALICE, "plans", "calm", html_entry("Nobody argues about this", "<p>Indeed.</p>"))


async def keep(page: Page, title: str) -> None:
    """Presses the button of a version."""
    card = page.locator("article", has_text=title)
    await card.get_by_role("button", name="Keep").click()


async def test_conflict_is_seen_and_decided_without_script(web: Web, open_page: Opener) -> None:
    """[FS-070] From the badge in the feed to the versions, to a decision, to what readers see then."""
    password = await secret(web)
    await clash(web, password)
    tab = await enter(open_page, password, "/feeds/plans/", java_script_enabled=False)
    await tab.shot("conflict-badge", whole=False)
    await tab.entry("boat").get_by_role("link", name="a conflict").click()
    await expect(tab.page).to_have_url(f"{web.origin}/conflicts/plans/boat")
    cards = tab.page.locator("article")
    await expect(cards).to_have_count(2)
    await expect(cards.nth(0)).to_contain_text("shown now")
    await tab.shot("conflict")
    await keep(tab.page, "Saturday")
    await expect(tab.page).to_have_url(f"{web.origin}/conflicts/plans/")
    await expect(tab.page.locator("section")).to_have_count(1)
    await keep(tab.page, "Deleted")
    await expect(tab.page.get_by_text("Nothing here is in conflict.")).to_be_visible()
    await tab.shot("conflicts-none", whole=False)
    await tab.go("/feeds/plans/?sync=true")
    await expect(tab.entry("boat")).to_contain_text("Boat trip on Saturday")
    await expect(tab.entry("boat")).to_contain_text("last by alice@example.org at feeds.example.org")
    await expect(tab.page.locator("a.conflicts")).to_have_count(0)
    await tab.shot("history", whole=False)
    sent = [await request.all_headers() for request in tab.asked if request.method == "POST"]
    assert len(sent) == 3
    # Who does not tell Sec-Fetch-Site, as to plain HTTP on another host, tells this.
    assert {headers["origin"] for headers in sent} == {web.origin}
    assert (tab.elsewhere, tab.dialogs, tab.errors) == ([], [], [])


async def test_who_saw_something_else_is_told(web: Web, open_page: Opener) -> None:
    """[A-62] Somebody else was faster: nothing is done, and the page says so."""
    password = await secret(web)
    await clash(web, password)
    tab = await enter(open_page, password, "/conflicts/plans/boat", java_script_enabled=False)
    await web.component.publish(ALICE, "plans", "boat", html_entry("Boat trip, really", "<p>On Monday.</p>"))
    await keep(tab.page, "Saturday")
    await expect(tab.page.get_by_role("heading", name="Conflict")).to_be_visible()
    await expect(tab.page.get_by_text("look at its conflicts again")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_of_conflicts_follows_the_colour_scheme(scheme: str, web: Web, open_page: Opener) -> None:
    """[FS-070] Readable in both, whole."""
    await clash(web, await secret(web))
    tab = await open_page("/conflicts/plans/", color_scheme=scheme)
    ground, ink = await tab.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map("
        "text => text.match(/[0-9]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765)"
    )
    assert (ground > 0.9 and ink < 0.2) if scheme == "light" else (ground < 0.15 and ink > 0.85)
    left, right = [await card.bounding_box() for card in await tab.page.locator("article").all()][:2]
    assert left is not None and right is not None
    assert left["y"] == right["y"] and left["x"] + left["width"] < right["x"], "side by side"
    await tab.shot(f"conflicts-{scheme}")
    tab.check()


@pytest.mark.parametrize("width", [360, 1280])
async def test_form_to_combine_stands_apart_from_the_versions(width: int, web: Web, open_page: Opener) -> None:
    """Its button does not touch a card, and its fields are as wide as the form."""
    password = await secret(web)
    await clash(web, password)
    window = {"width": width, "height": 900}
    tab = await enter(open_page, password, "/conflicts/plans/boat", java_script_enabled=False, viewport=window)
    await tab.page.get_by_text("Combine them").click()
    summary = await tab.page.locator(".combine > summary").bounding_box()
    field = await tab.page.get_by_label("Title").bounding_box()
    form = await tab.page.locator(".combine > form").bounding_box()
    cards = [await card.bounding_box() for card in await tab.page.locator("article").all()]
    assert summary is not None and field is not None and form is not None
    assert all(card is not None and card["y"] + card["height"] + 8 <= summary["y"] for card in cards)
    assert field["width"] >= 0.85 * form["width"]
    await tab.shot(f"conflict-combine-{width}", whole=False)


async def test_phone_shows_versions_one_below_the_other(web: Web, open_page: Opener) -> None:
    """[FS-070] Without sideways scrolling, whatever is in them."""
    password = await secret(web)
    await clash(web, password)
    await web.component.publish(ALICE, "plans", "w" * 300, html_entry("W" * 300, f"<pre>{'x' * 2_000}</pre>"))
    await bring(web, password, version("y" * 900, title="y" * 900, sync_id="w" * 300), "w" * 300)
    tab = await open_page("/conflicts/plans/", viewport=PHONE, device_scale_factor=2, has_touch=True, is_mobile=True)
    assert await tab.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    upper, lower = [await card.bounding_box() for card in await tab.page.locator("article").all()][:2]
    assert upper is not None and lower is not None
    assert upper["x"] == lower["x"] and upper["y"] + upper["height"] <= lower["y"]
    await tab.shot("conflicts-phone")
    tab.check()


async def test_hostile_versions_do_nothing(web: Web, open_page: Opener) -> None:
    """[A-62] Titles, content and endpoints of people who mean harm: no script, no request elsewhere, no form of
    theirs."""
    password = await secret(web)
    await web.component.create(ALICE, "plans", title="<script>alert(1)</script>")
    by = "x%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    count = 0
    for name, payload in HOSTILE.items():
        if len(payload) > 2_000:
            continue
        count += 1
        await web.component.publish(ALICE, "plans", name, html_entry(name, payload))
        text = escape(payload)
        await bring(web, password, version(by, title=text, sync_id=name, content=text), name)
    tab = await enter(open_page, password, "/conflicts/plans/?max=100")
    await expect(tab.page.locator("section")).to_have_count(count)
    await expect(tab.page.locator("article")).to_have_count(2 * count)
    assert (
        await tab.page.locator(
            "script:not([src^='/static/app.'], [src^='/static/images.']), iframe, object, embed, base, "
            "meta[http-equiv], [onerror], [onload]"
        ).count()
        == 0
    )
    assert (
        await tab.page.locator(".body").locator("form, input, button, [style], [id], img:not([src^='data:'])").count()
        == 0
    )
    assert await tab.page.locator("form").evaluate_all(
        "all => all.every(one => one.action.startsWith(location.origin))"
    )
    buttons = tab.page.locator("main button")
    assert set(await buttons.evaluate_all("all => all.map(one => one.name)")) == {"keep", "combine"}
    assert EVIL in HOSTILE["script-src"]
    await tab.shot("conflicts-hostile", whole=False)
    tab.check()


async def test_form_of_another_host_decides_nothing(web: Web, open_page: Opener) -> None:
    """[A-62] The browser is signed in, but the form of another page has neither the cookie nor the form token."""
    password = await secret(web)
    await clash(web, password)
    tab = await enter(open_page, password, "/conflicts/plans/")
    await keep(tab.page, "Deleted")
    await expect(tab.page.locator("section")).to_have_count(1)
    form = f"<form method=post action='{web.origin}/conflicts/plans/boat'><button>Win a prize</button></form>"
    await tab.page.route("http://evil.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    await tab.page.goto("http://evil.example/")
    async with tab.page.expect_response("**/conflicts/plans/boat") as told:
        await tab.page.get_by_role("button").click()
    assert (await told.value).status == 403
    assert (await web.get("/conflicts/plans/boat")).status == 200, "it is still in conflict"


async def test_differences_are_marked_and_rows_align(web: Web, open_page: Opener) -> None:
    """[FS-070] The words that differ; the parts of both versions at the same height; times in the zone of the reader;
    the title of the feed. Who may not decide has no buttons."""
    await clash(web, await secret(web))
    tab = await open_page("/conflicts/plans/boat", timezone_id="Asia/Tokyo")
    left, right = tab.page.locator("article").nth(0), tab.page.locator("article").nth(1)
    await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Conflicts in Plans for the summer")
    await expect(right.locator("h2 del")).to_contain_text("Sunday")
    await expect(right.locator("h2 ins")).to_contain_text("Saturday")
    await expect(right.locator(".changes ins").first).to_contain_text("nine")
    for part in range(5):
        boxes = [await one.locator(".part").nth(part).bounding_box() for one in (left, right)]
        assert boxes[0] is not None and boxes[1] is not None and boxes[0]["y"] == boxes[1]["y"]
    await expect(right.locator("time")).to_contain_text("09:00")
    assert await tab.page.locator("button[name=keep]").count() == 0
    await expect(tab.page.locator("main").get_by_role("link", name="Sign in")).to_be_visible()
    await tab.shot("conflict-differences")
    tab.check()


async def test_browser_asks_for_the_password_at_the_basic_login(web: Web, open_page: Opener) -> None:
    """[SF-111] A closed feed looks like one that does not exist; a browser that has the password opens it."""
    password = await secret(web)
    await web.component.create(ALICE, "plans", access_model="whitelist", title="Plans")
    tab = await open_page("/login-basic", http_credentials={"username": "alice", "password": password})
    await expect(tab.page.get_by_role("heading", name="Feeds")).to_be_visible()
    await tab.page.goto(f"{web.origin}/feeds/plans/")
    await expect(tab.page.get_by_role("heading", name="Plans")).to_be_visible()

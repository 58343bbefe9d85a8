"""A page that is open hears of every change, without being loaded again."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from support.browser import Opener, Tab
from support.component import ALICE
from support.prose import html_entry, note
from support.web import Web

pytestmark = pytest.mark.needs("pages")


async def feed(web: Web, *item_ids: str) -> None:
    """A feed called notes with these items."""
    await web.component.create(ALICE, "notes", title="Notes")
    for item_id in item_ids:
        web.component.clock.advance(60)
        await web.component.publish(ALICE, "notes", item_id)


async def stay(tab: Tab) -> None:
    """Marks the page, so that a page loaded anew would be seen."""
    await tab.page.evaluate("document.body.dataset.kept = 'yes'")


async def show_new(tab: Tab, words: str) -> None:
    """Presses the button with the number of entries that wait."""
    pill = tab.page.locator("#pill")
    await expect(pill).to_have_text(words)
    await pill.click()


async def check_stayed(tab: Tab) -> None:
    """The page was not loaded again, and nothing was wrong."""
    assert await tab.page.evaluate("document.body.dataset.kept") == "yes"
    tab.check()


async def test_new_entry_appears_on_top(web: Web, open_page: Opener) -> None:
    """[SF-004] A new entry is announced and counted at once, and shown on top when the reader wants it."""
    await feed(web, "a", "b")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await stay(tab)
    await web.component.publish(ALICE, "notes", "c", html_entry("Fresh", "<p>From the <b>oven</b></p>"))
    await expect(tab.page.locator("#total")).to_have_text("3 entries")
    assert await tab.ids() == ["b", "a"]
    await show_new(tab, "1 new")
    await expect(tab.entry("c").locator("b")).to_have_text("oven")
    await expect(tab.page.locator("#pill")).to_be_hidden()
    assert await tab.ids() == ["c", "b", "a"]
    await expect(tab.page.locator("#total")).to_have_text("3 entries")
    await expect(tab.page.locator("#news")).to_have_text("1 new")
    await check_stayed(tab)


async def test_first_entry_of_an_empty_feed_appears(web: Web, open_page: Opener) -> None:
    """An empty page listens as well, and stops saying that it is empty."""
    await feed(web)
    tab = await open_page("/feeds/notes/")
    await expect(tab.page.locator(".empty")).to_have_text("Nothing has been published here yet.")
    await tab.live()
    await web.component.publish(ALICE, "notes", "a")
    await expect(tab.entry("a")).to_be_visible()
    await expect(tab.page.locator(".empty")).to_have_count(0)
    tab.check()


async def test_edited_entry_changes_and_says_so(web: Web, open_page: Opener) -> None:
    """The new text stands in the place of the old one, marked as edited."""
    await feed(web, "a", "b")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await stay(tab)
    await web.component.publish(ALICE, "notes", "a", note("second thoughts"))
    await expect(tab.entry("a")).to_contain_text("second thoughts")
    await expect(tab.entry("a").get_by_text("edited", exact=True)).to_be_visible()
    assert await tab.ids() == ["b", "a"]
    await expect(tab.page.locator("#pill")).to_be_hidden()
    await expect(tab.page.locator("#news")).to_have_text("1 edited")
    await check_stayed(tab)


async def test_nothing_moves_while_somebody_reads(web: Web, open_page: Opener) -> None:
    """New and edited entries wait, and the entry on the screen stays where it is; a deleted entry waits no longer."""
    await feed(web, *(f"n{number}" for number in range(40)))
    tab = await open_page("/feeds/notes/?max=30")
    await tab.live()
    await tab.page.evaluate("scrollTo(0, 900)")
    where = "document.querySelector('article[data-id=n25]').getBoundingClientRect().top"
    before = await tab.page.evaluate(where)
    for item_id in ("new", "newer", "n1"):
        await web.component.publish(ALICE, "notes", item_id, note("second thoughts"))
    await expect(tab.page.locator("#pill")).to_have_text("2 new, 1 edited")
    await web.component.publish(ALICE, "notes", "n38", html_entry("Longer", "<p>than before</p>" * 5))
    await expect(tab.entry("n38")).to_contain_text("Longer")
    await web.component.publish(ALICE, "notes", "newer", note("third thoughts"))
    await web.component.retract(ALICE, "notes", "new")
    await expect(tab.page.locator("#pill")).to_have_text("1 edited, 1 new")
    # An entry above the screen grew; the browser scrolls by whole pixels.
    assert abs(await tab.page.evaluate(where) - before) < 1
    await show_new(tab, "1 edited, 1 new")
    await expect(tab.entry("newer")).to_be_focused()
    await expect(tab.entry("newer")).to_contain_text("third thoughts")
    assert (await tab.ids())[:3] == ["newer", "n1", "n39"]
    tab.check()


async def test_deleted_entry_is_struck_out(web: Web, open_page: Opener) -> None:
    """[SF-013] A deleted entry loses its text where it stands; only its title is left, struck out."""
    await feed(web, "a")
    await web.component.publish(ALICE, "notes", "b", html_entry("Secret plan", "<p>to be forgotten</p>"))
    await web.component.publish(ALICE, "notes", "c")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await stay(tab)
    await web.component.retract(ALICE, "notes", "b")
    await expect(tab.entry("b").locator("del")).to_have_text("Secret plan")
    await expect(tab.entry("b").get_by_text("deleted", exact=True)).to_be_visible()
    await expect(tab.page.get_by_text("to be forgotten")).to_have_count(0)
    assert await tab.ids() == ["c", "b", "a"]
    await expect(tab.page.locator("#total")).to_have_text("2 entries")
    await tab.shot("deleted-live", whole=False)
    await check_stayed(tab)
    await tab.page.reload()
    assert await tab.ids() == ["c", "a"]


async def test_deleted_entry_comes_back(web: Web, open_page: Opener) -> None:
    """What is published again under its old id is shown again."""
    await feed(web, "a")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await web.component.retract(ALICE, "notes", "a")
    await expect(tab.entry("a").locator("del")).to_have_text("a")
    await web.component.publish(ALICE, "notes", "a", note("here again"))
    await expect(tab.entry("a")).to_contain_text("here again")
    assert await tab.ids() == ["a"]
    tab.check()


async def test_deletion_of_what_is_not_shown_adds_nothing(web: Web, open_page: Opener) -> None:
    """A page that hides deleted entries shows none that it never had; the page of all changes does."""
    await feed(web, "a", "b", "c")
    plain = await open_page("/feeds/notes/?max=1")
    every = await open_page("/feeds/notes/?order=modified&max=1")
    await plain.live()
    await every.live()
    await web.component.retract(ALICE, "notes", "a")
    await show_new(every, "1 deleted")
    await expect(every.entry("a").get_by_text("deleted", exact=True)).to_be_visible()
    await expect(plain.page.locator("#total")).to_have_text("2 entries")
    assert (await plain.ids(), await every.ids()) == (["c"], ["a", "c"])


async def test_many_changes_at_once_all_arrive(web: Web, open_page: Opener) -> None:
    """More changes than one page holds are fetched page by page."""
    await feed(web, "first")
    tab = await open_page("/feeds/notes/?max=3")
    await tab.live()
    await web.component.ask_all(
        ALICE,
        [
            "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>"
            f"<item id='n{number}'>{note(f'number {number}')}</item></publish></pubsub>"
            for number in range(120)
        ],
        kind="set",
    )
    await show_new(tab, "120 new")
    await expect(tab.page.locator("article")).to_have_count(121)
    assert await tab.ids() == [f"n{number}" for number in range(119, -1, -1)] + ["first"]
    tab.check()


async def test_long_open_page_stays_short_and_leads_on(web: Web, open_page: Opener) -> None:
    """A page left open keeps its newest 300 entries, and its way to older ones begins right behind them."""
    await feed(web, "first")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    for start in (0, 160):
        await web.component.ask_all(
            ALICE,
            [
                "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>"
                f"<item id='n{number}'>{note(f'number {number}')}</item></publish></pubsub>"
                for number in range(start, start + 160)
            ],
            kind="set",
        )
        await show_new(tab, "160 new")
    await expect(tab.entry("n319")).to_be_visible()
    await expect(tab.page.locator("article")).to_have_count(300)
    assert (await tab.ids())[-1] == "n20"
    await tab.page.locator("a.older").click()
    await tab.page.wait_for_url("**until=*")
    assert (await tab.ids()) == [f"n{number}" for number in range(19, -1, -1)] + ["first"]


async def test_new_entries_order_is_live_too(web: Web, open_page: Opener) -> None:
    """In the order of creation an edited entry stays where it is, and an old one that is not shown does not come up."""
    await feed(web, "a", "b", "c")
    tab = await open_page("/feeds/notes/?order=created&max=2")
    await tab.live()
    await web.component.publish(ALICE, "notes", "a", note("an old one"))
    await web.component.publish(ALICE, "notes", "b", note("changed"))
    await web.component.publish(ALICE, "notes", "d")
    await show_new(tab, "1 new")
    await expect(tab.entry("d")).to_be_visible()
    await expect(tab.entry("b")).to_contain_text("changed")
    assert await tab.ids() == ["d", "c", "b"]


async def test_search_is_live(web: Web, open_page: Opener) -> None:
    """Only what matches appears on a page of found entries."""
    await feed(web)
    await web.component.publish(ALICE, "notes", "a", note("bread and butter"))
    tab = await open_page("/feeds/notes/?q=bread")
    await tab.live()
    await web.component.publish(ALICE, "notes", "b", note("butter"))
    await web.component.publish(ALICE, "notes", "c", note("more bread"))
    await show_new(tab, "1 new")
    await expect(tab.entry("c")).to_be_visible()
    assert await tab.ids() == ["c", "a"]


async def test_lost_stream_comes_back_where_it_was(
    web: Web, open_page: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-004] A broken connection is told, and taken up again by Last-Event-ID with what came meanwhile."""
    monkeypatch.setattr("smartfeeds.http.streams.RECONNECT_MS", 50)
    await feed(web, "a")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await web.component.publish(ALICE, "notes", "b")
    await show_new(tab, "1 new")
    await expect(tab.entry("b")).to_be_visible()
    await tab.page.evaluate(
        "{ window.told = []; const state = document.getElementById('state');"
        "new MutationObserver(() => told.push(state.dataset.state)).observe(state, {attributes: true}) }"
    )
    assert web.component.app.site is not None
    for connection in list(web.component.app.site.listener._open):
        assert connection.transport is not None
        connection.transport.abort()
    await web.component.publish(ALICE, "notes", "c")
    await show_new(tab, "1 new")
    await expect(tab.entry("c")).to_be_visible()
    await tab.page.wait_for_function("told.join() === 'lost,live'")
    streams = [await asked.all_headers() for asked in tab.asked if asked.resource_type == "eventsource"]
    assert len(streams) == 2
    assert streams[1]["last-event-id"]
    assert await tab.ids() == ["c", "b", "a"]
    assert tab.errors == []


async def test_deleted_feed_ends_the_stream(web: Web, open_page: Opener) -> None:
    """When the feed goes the page says that it is live no more, and does not ask again and again."""
    await feed(web, "a")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await web.component.owner_set(ALICE, "<delete node='notes'/>")
    await expect(tab.page.locator("#state")).to_have_text("no longer live")
    await tab.shot("ended", whole=False)
    assert len([asked for asked in tab.asked if asked.resource_type == "eventsource"]) == 1


async def test_page_of_the_past_is_not_live(web: Web, open_page: Opener) -> None:
    """A page with a position stays as it is, and holds no connection."""
    await feed(web, "a", "b")
    tab = await open_page("/feeds/notes/?max=1")
    await tab.live()
    await tab.page.locator("a.older").click()
    await expect(tab.entry("a")).to_be_visible()
    await expect(tab.page.locator("#state")).to_have_count(0)


async def test_refused_stream_is_asked_for_again(web: Web, open_page: Opener) -> None:
    """A service that refuses for a while is asked again later, and what came meanwhile is there."""
    await feed(web, "a")
    tab = await open_page("/feeds/")
    await tab.page.clock.install()

    async def refuse(route: Route) -> None:
        if route.request.resource_type == "eventsource":
            await route.fulfill(status=503)
        else:
            await route.continue_()

    await tab.page.route("**/feeds/notes/**", refuse)
    await tab.go("/feeds/notes/")
    await tab.page.locator("#state[data-state=lost]").wait_for()
    await web.component.publish(ALICE, "notes", "b")
    await tab.page.unroute("**/feeds/notes/**")
    await tab.page.clock.run_for(20_000)  # it is between 10 and 20 seconds
    await tab.live()
    await show_new(tab, "1 new")
    await expect(tab.entry("b")).to_be_visible()
    assert await tab.ids() == ["b", "a"]


async def test_page_that_nobody_sees_holds_no_connection(web: Web, open_page: Opener) -> None:
    """A hidden page lets go of its stream, and takes it up where it was once it is seen again."""
    await feed(web, "a")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await web.holding(1)
    hide = (
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange')) }"
    )
    await tab.page.evaluate(hide, True)
    assert web.component.app.site is not None
    while web.component.app.site.feeds.waiting.held:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    await web.component.publish(ALICE, "notes", "b")
    await tab.page.evaluate(hide, False)
    await show_new(tab, "1 new")
    await expect(tab.entry("b")).to_be_visible()
    await tab.live()
    tab.check()


async def test_page_that_is_gone_back_to_is_live_again(web: Web, open_page: Opener) -> None:
    """A page out of the browser's memory shows what came while another page was read."""
    await feed(web, "a")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    await tab.page.get_by_role("link", name="Smart Feeds").click()
    await tab.page.wait_for_url(f"{web.origin}/")
    await web.component.publish(ALICE, "notes", "b")
    await tab.page.go_back(wait_until="commit")
    await expect(tab.page.locator("#total")).to_have_text("2 entries")
    # Out of the browser's memory the page gets the entry by its stream, and the entry waits; loaded anew it has it.
    if await tab.page.locator("#pill").is_visible():
        await tab.page.locator("#pill").click()
    await expect(tab.entry("b")).to_be_visible()
    await tab.live()
    await web.component.publish(ALICE, "notes", "c")
    await show_new(tab, "1 new")
    await expect(tab.entry("c")).to_be_visible()
    assert await tab.ids() == ["c", "b", "a"]

"""Following a blog in a browser, with and without script, on a phone and on a desktop; axe-core finds nothing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from smartfeeds.features.following.waiting import NewsWaiters
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.net import addresses
from support.accessibility import SETTINGS, Reader, Setting, open_reader
from support.browsing import sign_in
from support.component import ALICE, BOB
from support.pages import SitePage
from support.polling import atom
from support.waiting import until
from support.web import Web
from support.website import Site, running_site

pytestmark = pytest.mark.needs("following")
PAGE = (
    b"<html><head><title>The mill and the harbour</title>"
    b"<link rel='alternate' type='application/atom+xml' href='/feed' title='Entries'>"
    b"<link rel='alternate' type='application/rss+xml' href='/comments' title='Comments'></head><body></body></html>"
)
LIST = (
    '<opml version="2.0"><body><outline text="Morning"><outline text="Elsewhere" xmlUrl="{url}"/></outline>'
    '<outline text="Old" xmlUrl="ftp://old.example/feed"/></body></opml>'
)


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    """A blog on 127.0.0.1 with two feeds, one of which is missing."""
    async with running_site() as site:
        site.pages |= {"/": PAGE, "/feed": atom("Low water", "High water", feed="News from the harbour")}
        yield site


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
async def test_blog_is_followed_and_read(
    browser: Browser, web: Web, site: Site, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SRC-047] [SRC-083] From the address to the list, a failure, a list of another reader, and My feeds."""
    # Users reach public addresses only, so 127.0.0.1 counts as one here.
    monkeypatch.setattr(addresses, "is_public", lambda _text: True)
    cookies = {ALICE: (await sign_in(web, ALICE)).text}
    reader = await open_reader(browser, web, setting, cookies)
    page = reader.tab.page

    async def check(name: str) -> None:
        assert await reader.violations() == [], name
        assert (await reader.facts())["overflow"] == 0, name
        await reader.tab.shot(f"follow-{name}-{setting.scheme}-{setting.viewport['width']}-{setting.language}")

    await web.component.create(ALICE, "mine", title="My planet")
    assert await reader.open(SitePage("follow", "/follow", reader=ALICE), web) == 200
    await check("empty")
    await page.locator("#url").fill(site.url("/"))
    await page.locator("form[method=get] button").last.click()
    await expect(page.locator("#found")).to_have_text("The mill and the harbour")
    await check("found")
    await page.locator("input[name=tell][value=nobody]").first.check()
    await page.locator("section button.main").click()
    await expect(page.get_by_role("status")).to_be_in_viewport()
    await expect(page.locator("li.feed")).to_have_count(1)
    await check("list")

    feed = site.pages.pop("/feed")
    await poll(web)
    await page.reload()
    await expect(page.locator("li.feed .failure")).to_be_visible()
    await check("failing")
    site.pages["/feed"] = feed
    web.component.clock.advance(61)
    await page.locator("button[value=retry]").click()
    await expect(page.get_by_role("status")).to_be_visible()
    await poll(web)

    document = LIST.format(url=site.url("/elsewhere")).encode()
    await page.locator("#list").set_input_files({"name": "my.opml", "mimeType": "text/x-opml", "buffer": document})
    await page.locator("form[enctype] button").click()
    await expect(page.locator("#imported")).to_be_visible()
    await check("imported")

    site.pages["/feed"] = atom("A ship", "Low water", "High water", feed="News from the harbour")
    await poll(web)
    await reader.open(SitePage("my-feeds", "/follow/entries", reader=ALICE), web)
    await expect(page.locator("article.card")).to_have_count(3)
    await expect(page.locator("article.card .meta > .badge")).to_have_count(3)
    await check("my-feeds")
    await page.locator("form[action='/follow/read'] button").click()
    await expect(page.locator("article.card .meta > .badge")).to_have_count(0)

    # Beside the button is one to write, because the feed is the reader's own.
    await reader.open(SitePage("feed", "/feeds/mine/", reader=ALICE), web)
    await check("button")
    await page.locator("form.follow button").click()
    await page.locator("details.follow summary").click()
    await expect(page.locator("details.follow button[value=unfollow]")).to_be_in_viewport(ratio=1)
    await check("menu")
    assert (reader.tab.elsewhere, reader.tab.dialogs, reader.tab.errors) == ([], [], [])


async def poll(web: Web) -> None:
    """Polls the first source, whether it is due or not."""
    row = (await web.component.app.service.store.read(lambda tx: rows.sources(tx, 0, 1)))[0]
    web.component.clock.advance(3_600)
    await web.component.app.parts.get(Poller).poll(row)


HIDE = (
    "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
    "document.dispatchEvent(new Event('visibilitychange')) }"
)


async def my_feeds(browser: Browser, web: Web) -> Reader:
    """A page of My feeds with one entry, whose request is held."""
    await web.component.create(BOB, "mine")
    await web.component.subscribe(ALICE, "mine")
    await web.component.publish(BOB, "mine", "first")
    reader = await open_reader(browser, web, SETTINGS[0], {ALICE: (await sign_in(web, ALICE)).text})
    await reader.open(SitePage("my-feeds", "/follow/entries", reader=ALICE), web)
    await holding(web, 1)
    await expect(reader.tab.page.locator("#fresh")).to_be_hidden()
    return reader


async def holding(web: Web, count: int) -> None:
    waiters = web.component.app.parts.get(NewsWaiters)
    await until(lambda: waiters.held == count, f"{count} held requests")


async def publish(web: Web, item_id: str) -> None:
    web.component.clock.advance(1)
    await web.component.publish(BOB, "mine", item_id)


async def test_new_entries_are_offered_at_once(browser: Browser, web: Web) -> None:
    """The time of the page stands still, so no timer can have asked. Nothing moves by itself."""
    reader = await my_feeds(browser, web)
    page = reader.tab.page
    await page.clock.install()
    await page.clock.pause_at("2100-01-01")
    await publish(web, "second")
    await expect(page.locator("#fresh")).to_be_visible()
    await expect(page.locator("#news")).to_have_text("Show the new entries")
    assert await page.locator("article.card").count() == 1
    await holding(web, 0)
    await page.locator("#fresh").click()
    await expect(page.locator("article.card")).to_have_count(2)
    await holding(web, 1)
    assert (reader.tab.elsewhere, reader.tab.dialogs, reader.tab.errors) == ([], [], [])


async def test_my_feeds_that_nobody_sees_hold_no_request(browser: Browser, web: Web) -> None:
    """The page takes up again where it was."""
    reader = await my_feeds(browser, web)
    page = reader.tab.page
    await page.evaluate(HIDE, True)
    await holding(web, 0)
    await publish(web, "second")
    await page.evaluate(HIDE, False)
    await expect(page.locator("#fresh")).to_be_visible()
    asked = [request.url for request in reader.tab.asked if "since=" in request.url]
    assert len(asked) == 2
    reader.tab.check()


async def test_refused_request_is_sent_again_at_a_random_time(browser: Browser, web: Web) -> None:
    """After 10 to 20 seconds: the pages of a service that was restarted do not return all at once."""
    reader = await my_feeds(browser, web)
    page = reader.tab.page
    await page.clock.install()
    refusals = 0

    async def refuse(route: Route) -> None:
        nonlocal refusals
        refusals += 1
        await route.fulfill(status=503)

    await page.route("**/follow/entries?since=*", refuse)
    await page.evaluate("Math.random = () => 0.5")
    await page.evaluate(HIDE, True)
    await page.evaluate(HIDE, False)
    await until(lambda: refusals == 1, "the refusal")
    await holding(web, 0)
    await page.clock.run_for(14_000)
    assert refusals == 1
    await page.unroute("**/follow/entries?since=*")
    await page.clock.run_for(2_000)
    await holding(web, 1)

"""Following a blog in a browser, with and without script, on a phone and on a desktop; axe-core finds nothing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from smartfeeds.features.polling import rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.net import addresses
from support.accessibility import SETTINGS, Setting, open_reader
from support.browsing import sign_in
from support.component import ALICE
from support.pages import SitePage
from support.polling import atom
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
    await expect(page.get_by_role("status")).to_be_visible()
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
    assert (reader.tab.elsewhere, reader.tab.dialogs, reader.tab.errors) == ([], [], [])


async def poll(web: Web) -> None:
    """Polls the first source, whether it is due or not."""
    row = (await web.component.app.service.store.read(lambda tx: rows.sources(tx, 0, 1)))[0]
    web.component.clock.advance(3_600)
    await web.component.app.parts.get(Poller).poll(row)


async def test_new_entries_are_offered_without_a_reload(browser: Browser, web: Web) -> None:
    """The script looks while the page is seen; nothing moves by itself."""
    await web.component.create(ALICE, "mine")
    await web.component.subscribe(ALICE, "mine")
    await web.component.publish(ALICE, "mine", "first")
    reader = await open_reader(browser, web, SETTINGS[0], {ALICE: (await sign_in(web, ALICE)).text})
    page = reader.tab.page
    await reader.open(SitePage("my-feeds", "/follow/entries", reader=ALICE), web)
    await expect(page.locator("#fresh")).to_be_hidden()
    web.component.clock.advance(1)
    await web.component.publish(ALICE, "mine", "second")
    # As when the reader comes back to the tab.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.locator("#fresh")).to_be_visible()
    assert await page.locator("article.card").count() == 1
    await page.locator("#fresh").click()
    await expect(page.locator("article.card")).to_have_count(2)
    assert (reader.tab.elsewhere, reader.tab.dialogs, reader.tab.errors) == ([], [], [])

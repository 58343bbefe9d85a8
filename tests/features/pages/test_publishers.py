"""Pages name the publisher of an entry whose author has the address of somebody else."""

import pytest
from lxml import html

from support.browsing import sign_in
from support.component import ALICE, BOB, bare, entry
from support.prose import author
from support.web import Web

pytestmark = [pytest.mark.shared, pytest.mark.needs("accounts", "following")]

BY_ALICE = entry("Words of alice", author("alice", f"xmpp:{bare(ALICE)}"))
PATHS = ("/", "/feeds/news/", "/entries/news/a", "/search?q=words", "/feeds/?sort=changed")
MINE = "/follow/entries"


async def published_by(web: Web, path: str) -> list[str]:
    """What a page says about the publisher of each of its entries, in English; `MINE` is read by alice."""
    if path.startswith("/search"):
        await web.component.index()  # a search does not wait for it
    got = await ((await sign_in(web, ALICE)).get(path, "text/html") if path == MINE else web.get(path, "text/html"))
    assert got.status == 200, got.text
    page = html.fromstring(got.text)
    assert page.xpath("//*[@class='author']")
    return [" ".join(each.text_content().split()) for each in page.xpath("//*[@class='publisher']")]


async def make(web: Web, **options: str) -> None:
    await web.component.create(ALICE, "news", publish_model="open", **options)
    await web.component.subscribe(ALICE, "news")


@pytest.mark.parametrize("path", [*PATHS, MINE])
async def test_page_names_the_publisher_beside_another_author(web: Web, path: str) -> None:
    await make(web)
    await web.component.publish(BOB, "news", "a", BY_ALICE)
    expected = [f"published by {bare(BOB)}"]
    assert await published_by(web, path) == (expected * 2 if path == "/" else expected)  # the river and the feeds


@pytest.mark.parametrize("path", [*PATHS, MINE])
async def test_page_does_not_repeat_the_author(web: Web, path: str) -> None:
    await make(web)
    await web.component.publish(ALICE, "news", "a", BY_ALICE)
    assert await published_by(web, path) == []


@pytest.mark.parametrize("path", [*PATHS, MINE])
async def test_page_names_who_replaced_the_entry_of_another_person(web: Web, path: str) -> None:
    """[XEP-0060 7.1.3.3] Appointed publishers may replace every item."""
    await make(web)
    await web.component.affiliate(ALICE, "news", BOB, "publisher")
    await web.component.publish(ALICE, "news", "a", BY_ALICE)
    assert await published_by(web, path) == []
    web.component.clock.advance(1)
    await web.component.publish(BOB, "news", "a", BY_ALICE.replace("Words", "Other words"))
    assert set(await published_by(web, path)) == {f"published by {bare(BOB)}"}


@pytest.mark.parametrize("path", [*PATHS, MINE])
async def test_feed_that_hides_its_publishers_names_none(web: Web, path: str) -> None:
    """Pages that are stored follow a change of the configuration."""
    await make(web)
    await web.component.publish(BOB, "news", "a", BY_ALICE)
    assert await published_by(web, path)
    await web.component.configure(ALICE, "news", itemreply="owner")
    assert await published_by(web, path) == []
    await web.component.configure(ALICE, "news", itemreply="publisher")
    assert await published_by(web, path)


async def test_answer_names_its_publisher(web: Web) -> None:
    await make(web)
    await web.component.publish(ALICE, "news", "a", entry("First"))
    reply = "<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='a'/>"
    await web.component.publish(BOB, "news", "b", BY_ALICE.replace("</entry>", f"{reply}</entry>"))
    assert await published_by(web, "/entries/news/a") == [f"published by {bare(BOB)}"]
    await web.component.configure(ALICE, "news", itemreply="owner")
    assert await published_by(web, "/entries/news/a") == []


async def test_text_is_translated(web: Web) -> None:
    await make(web)
    await web.component.publish(BOB, "news", "a", BY_ALICE)
    got = await web.get("/entries/news/a", "text/html", Accept_Language="de")
    assert f"veröffentlicht von <bdi>{bare(BOB)}</bdi>" in got.text

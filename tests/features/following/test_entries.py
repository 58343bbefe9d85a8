"""My feeds: the newest entries of what a person follows, and the marks of what was read."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest
from lxml import html

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import TokenScope
from smartfeeds.features.following import entries
from smartfeeds.service.answers import ask
from support.bearer import bearer
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, DOMAIN, bare, entry
from support.features import FEATURE_NAMES
from support.web import Web


async def follow(web: Web, *nodes: str) -> None:
    authorization = await bearer(web, ALICE, TokenScope.ADMIN)
    for node in nodes:
        sent = {"Authorization": authorization, "Content_Type": "application/json"}
        got = await web.ask("PUT", f"/following/{node}", json.dumps({"tell": "nobody"}).encode(), **sent)
        assert got.status == 204, got.text


async def shown(reader: SignedIn, path: str = "/follow/entries") -> tuple[list[tuple[str, bool]], html.HtmlElement]:
    """The feeds of the entries of a page with whether the entry is new, and the page."""
    got = await reader.get(path, "text/html")
    assert got.status == 200, got.text
    page = html.fromstring(got.text)
    cards = page.xpath("//section[@id='entries']/article")
    rows = [
        (card.xpath(".//a[@class='from']/text()")[0], bool(card.xpath(".//span[@class='badge']"))) for card in cards
    ]
    return rows, page


async def read_all(reader: SignedIn) -> None:
    _rows, page = await shown(reader)
    (until,) = page.xpath("//input[@name='until']/@value")
    got = await reader.post("/follow/read", f"until={until}")
    assert (got.status, got.header("Location")) == (303, "/follow/entries")


async def publish(web: Web, *pairs: tuple[str, str]) -> None:
    for node, item_id in pairs:
        web.component.clock.advance(1)
        await web.component.publish(BOB, node, item_id)


async def test_entries_of_what_is_followed_come_newest_first(own_web: Web) -> None:
    """Those that were there before count as read; other feeds are not shown."""
    for node in ("one", "two", "other"):
        await own_web.component.create(BOB, node)
    await publish(own_web, ("one", "old"), ("other", "x"))
    await follow(own_web, "one", "two")
    await publish(own_web, ("two", "a"), ("one", "b"), ("other", "y"))
    rows, page = await shown(await sign_in(own_web, ALICE))
    assert rows == [("one", True), ("two", True), ("one", False)]
    assert "2 new" in page.text_content()


async def test_marks_are_kept_for_the_person(own_web: Web) -> None:
    """In every browser; what comes later is new again, and nobody else's marks change."""
    for node in ("one", "two"):
        await own_web.component.create(BOB, node)
    await follow(own_web, "one", "two")
    await publish(own_web, ("one", "a"), ("two", "b"))
    first, second = await sign_in(own_web, ALICE), await sign_in(own_web, ALICE)
    await read_all(first)
    rows, page = await shown(second)
    assert [new for _, new in rows] == [False, False] and not page.xpath("//input[@name='until']")
    await publish(own_web, ("two", "c"), ("one", "a"))
    assert (await shown(second))[0] == [("one", True), ("two", True), ("two", False)]


async def test_entry_that_came_after_the_page_stays_new(own_web: Web) -> None:
    await own_web.component.create(BOB, "one")
    await follow(own_web, "one")
    await publish(own_web, ("one", "a"))
    reader = await sign_in(own_web, ALICE)
    _rows, page = await shown(reader)
    (until,) = page.xpath("//input[@name='until']/@value")
    await publish(own_web, ("one", "b"))
    await reader.post("/follow/read", f"until={until}")
    assert (await shown(reader))[0] == [("one", True), ("one", False)]
    assert (await reader.post("/follow/read", "until=999999999999999999")).status == 303
    await publish(own_web, ("one", "c"))
    assert [new for _, new in (await shown(reader))[0]] == [True, False, False]
    assert (await reader.post("/follow/read", "until=x")).status == 400


async def test_many_subscriptions_are_marked_in_parts(own_web: Web, monkeypatch) -> None:
    monkeypatch.setattr(entries, "MARKED_AT_ONCE", 2)
    nodes = [f"feed{number}" for number in range(5)]
    for node in nodes:
        await own_web.component.create(BOB, node)
    await follow(own_web, *nodes)
    await publish(own_web, *((node, "a") for node in nodes))
    reader = await sign_in(own_web, ALICE)
    await read_all(reader)
    assert not any(new for _, new in (await shown(reader))[0])


async def test_closed_feed_shows_nothing(own_web: Web) -> None:
    await own_web.component.create(BOB, "one")
    await follow(own_web, "one")
    await publish(own_web, ("one", "secret"))
    await own_web.component.configure(BOB, "one", access_model="whitelist")
    rows, page = await shown(await sign_in(own_web, ALICE))
    assert rows == [] and "secret" not in page.text_content()


async def test_own_entries_are_no_news(own_web: Web) -> None:
    """Neither as a badge, nor for the script of the page; not even if somebody else has an older one."""
    await own_web.component.create(BOB, "one", publish_model="open")
    await follow(own_web, "one")
    reader = await sign_in(own_web, ALICE)
    for item_id in ("a", "b"):
        own_web.component.clock.advance(1)
        await own_web.component.publish(ALICE, "one", item_id)
    rows, page = await shown(reader)
    assert [new for _, new in rows] == [False, False] and not page.xpath("//input[@name='until']")
    (newest,) = page.xpath("//section[@id='entries']/@data-newest")

    async def news() -> bool:
        request = entries.GetNewestKey(actor, DOMAIN, int(newest))
        answer = await ask(own_web.component.app.service.handle, request, entries.NewestKey)
        return answer.modified_us > int(newest)

    actor = parse_jid(bare(ALICE))
    assert actor is not None and not await news()
    own_web.component.clock.advance(1)
    await own_web.component.publish(ALICE, "one", "c")
    assert not await news()
    await publish(own_web, ("one", "theirs"))
    assert await news()
    own_web.component.clock.advance(1)
    await own_web.component.publish(ALICE, "one", "d")
    assert await news()
    assert [new for _, new in (await shown(reader))[0]] == [False, True, False, False, False]
    # It is edited by somebody else.
    await publish(own_web, ("one", "a"))
    assert (await shown(reader))[0][0] == ("one", True)


def reply(node: str, item_id: str) -> str:
    """An entry that answers another one."""
    return entry(
        "answer",
        f"<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='{item_id}'"
        f" href='xmpp:{DOMAIN}?;node={node};item={item_id}'/>",
    )


async def test_card_says_what_an_entry_answers(own_web: Web) -> None:
    """As in the river. An entry that the reader may not read is not named by its title."""
    for node, model, item_id in (("one", "open", "question"), ("closed", "whitelist", "plans")):
        await own_web.component.create(BOB, node, access_model=model)
        await own_web.component.publish(BOB, node, item_id, entry(f"The {item_id}"))
    await follow(own_web, "one")
    own_web.component.clock.advance(1)
    await own_web.component.publish(BOB, "one", "answer", reply("one", "question"))
    own_web.component.clock.advance(1)
    await own_web.component.publish(BOB, "one", "other", reply("closed", "plans"))
    reader = await sign_in(own_web, ALICE)
    _rows, page = await shown(reader)
    river = html.fromstring((await reader.get("/", "text/html")).text)
    for cards in (page, river):
        lines = cards.xpath("//section[@id='entries']//span[@class='reply']")
        assert [" ".join(line.text_content().split()) for line in lines] == [
            "In reply to an entry of closed",
            "In reply to The question",
        ]
        assert lines[1].xpath("a/@href") == ["/entries/one/question"]


async def test_card_leads_to_the_entry_here(own_web: Web) -> None:
    """The title of a blog's entry leads to the blog. The link says whether the reader may answer."""
    for node, model in (("one", "open"), ("two", "publishers")):
        await own_web.component.create(BOB, node, publish_model=model)
    await follow(own_web, "one", "two")
    link = "<link rel='alternate' href='https://blog.example/a'/>"
    for node in ("one", "two"):
        own_web.component.clock.advance(1)
        await own_web.component.publish(BOB, node, "a", entry("A title", link))
    reader = await sign_in(own_web, ALICE)
    _rows, page = await shown(reader)
    cards = page.xpath("//section[@id='entries']/article")
    assert [card.xpath("h2/a/@href") for card in cards] == [["https://blog.example/a"]] * 2
    links = [link for card in cards for link in card.xpath("p[@class='more']/a")]
    answers = "authoring" in FEATURE_NAMES
    assert [(link.text, link.get("href"), link.get("aria-label")) for link in links] == [
        ("Read here", "/entries/two/a", "Read here: A title"),
        ("Read and reply" if answers else "Read here", "/entries/one/a", ANY),
    ]
    river = html.fromstring((await reader.get("/", "text/html")).text)
    assert river.xpath("//section[@id='entries']//p[@class='more']/a/text()") == ["Read here"] * 2


async def test_page_has_a_next_one(own_web: Web) -> None:
    await own_web.component.create(BOB, "one")
    await follow(own_web, "one")
    await publish(own_web, *(("one", f"i{number}") for number in range(31)))
    reader = await sign_in(own_web, ALICE)
    rows, page = await shown(reader)
    (more,) = page.xpath("//a[@rel='next']/@href")
    assert len(rows) == 30 and len((await shown(reader, more))[0]) == 1


async def test_script_of_the_page_learns_of_newer_entries(own_web: Web) -> None:
    await own_web.component.create(BOB, "one")
    await follow(own_web, "one")
    reader = await sign_in(own_web, ALICE)
    numbers = []
    for item_id in ("a", "b"):
        await publish(own_web, ("one", item_id))
        numbers.append(int((await reader.get("/follow/entries", "application/json")).json["newest"]))
    (shown_newest,) = (await shown(reader))[1].xpath("//section[@id='entries']/@data-newest")
    assert numbers[0] < numbers[1] == int(shown_newest) < 2**53


async def test_look_for_newer_entries_reads_one_entry_only(own_web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each open page looks every 30 seconds. A feed that was closed, and a removed entry, are no news."""
    names = ("one", "two", "closed")
    for name in names:
        await own_web.component.create(BOB, name)
    await follow(own_web, *names)
    await publish(own_web, *((name, f"i{number}") for name in names for number in range(5)))
    await own_web.component.configure(BOB, "closed", access_model="whitelist")
    reader, read = await sign_in(own_web, ALICE), list[str]()
    merged = entries.merged_entries

    def count(*arguments: Any) -> Iterator[Any]:
        for newest in merged(*arguments):
            read.append(newest.node.name)
            yield newest

    (shown_newest,) = (await shown(reader))[1].xpath("//section[@id='entries']/@data-newest")
    monkeypatch.setattr(entries, "merged_entries", count)
    assert (await reader.get("/follow/entries", "application/json")).json == {"newest": shown_newest}
    assert read == ["two"]
    await own_web.component.retract(BOB, "one", "i4")
    assert (await reader.get("/follow/entries", "application/json")).json == {"newest": shown_newest}


async def test_marks_end_with_the_subscription_and_are_exported(own_web: Web) -> None:
    """They are options of the subscription, which the export has and the erasure removes."""
    await own_web.component.create(BOB, "one")
    await follow(own_web, "one")
    await publish(own_web, ("one", "a"))
    await read_all(await sign_in(own_web, ALICE))
    pairs = await own_web.component.app.service.store.read(lambda tx: tx.subscriptions_of(bare(ALICE), now_us=None))
    assert [set(row.options) for _node, row in pairs] == [{"deliver", entries.READ}]

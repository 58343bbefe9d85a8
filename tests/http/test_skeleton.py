"""The walking skeleton: an item published over XMPP is read over HTTP, and whoever waits hears of it."""

import asyncio

from support.component import ALICE, entry
from support.web import Web


async def publish(web: Web, item_id: str) -> None:
    await web.component.set(ALICE, f"<publish node='notes'><item id='{item_id}'>{entry(item_id)}</item></publish>")


async def test_what_is_published_over_xmpp_is_read_over_http(web: Web) -> None:
    """[SF-001] [SF-053] The same item, under its id, in the same place."""
    await web.component.set(ALICE, "<create node='notes'/>")
    await publish(web, "a")
    page = await web.get("/feeds/notes/")
    assert page.status == 200
    assert [item["id"] for item in page.json["items"]] == ["a"]


async def test_a_held_pull_hears_of_the_next_item(web: Web) -> None:
    """[SF-004] [SF-056] A pull with nothing in range waits, and has the item when it comes."""
    await web.component.set(ALICE, "<create node='notes'/>")
    await publish(web, "a")
    last = (await web.get("/feeds/notes/")).json["last_cursor"]
    held = asyncio.create_task(web.get(f"/feeds/notes/?since=cursor:{last}"))
    await web.holding(1)
    await publish(web, "b")
    assert [item["id"] for item in (await held).json["items"]] == ["b"]

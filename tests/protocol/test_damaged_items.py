"""Items whose bytes are damaged in the database: the link stays, the others are served, and the damage is named."""

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from smartfeeds.core.model import Item
from smartfeeds.core.urls import entry_path
from smartfeeds.store.base import WriteTx
from support.chat import body_of, write
from support.component import ALICE, BOB, NS, Component, Element, bare, entry, ok, text_of
from support.features import FEATURE_NAMES
from support.web import WebStarter

pytestmark = pytest.mark.both_engines
DAMAGES = {
    "control character": lambda data: data.replace(b"two", b"t\x01o"),
    "no utf-8": lambda data: data.replace(b"two", b"t\xffo"),
    "half a character": lambda data: data.replace(b"two", b"t\xc3"),
    "truncated": lambda data: data[:-7],
    "empty": lambda data: b"",
    "zeroed": lambda data: bytes(len(data)),
    "zeroed in the middle": lambda data: data[:40] + bytes(20) + data[60:],
    "tag": lambda data: data.replace(b"</title>", b"</tit|e>"),
    "end of the stream": lambda data: b"</item></items></event></message></stream:stream>",
    "ampersand": lambda data: data.replace(b"two", b"&wo"),
    "one bit": lambda data: data.replace(b"two", b"twn"),
    "longer": lambda data: data + b"<x/>",
    "payload of another item": lambda data: data.replace(b"two", b"one"),
}


async def spoil(component: Component, damage: str = "one bit", item: str = "two", column: str = "payload") -> None:
    """Changes the stored bytes of an item as a disk does."""

    def change(tx: WriteTx) -> None:
        (data,) = tx.db.row(f"SELECT {column} FROM item WHERE id = ?", (item,)) or ()
        changed = DAMAGES[damage](bytes(data)) if column == "payload" else bytes(data)[:-1] + b"\x01"
        assert changed != bytes(data)
        tx.db.run(f"UPDATE item SET {column} = ? WHERE id = ?", (changed, item))

    await component.app.service.store.write(change)


async def feed(component: Component) -> Component:
    await component.create(ALICE, "news")
    for item in ("one", "two", "three"):
        await component.publish(ALICE, "news", item)
    return component


async def page(component: Component, node: str = "news", inner: str = "") -> Element:
    return ok(await component.get(ALICE, f"<items node='{node}'/>{inner}"))


def contents(answer: Element) -> dict[str, int]:
    """The number of payloads of each item."""
    return {str(item.get("id")): len(item) for item in answer.iterfind(".//ps:item", NS)}


def result_set(answer: Element) -> list[tuple[str, str]]:
    return [(each.tag, each.text or "") for each in answer.iterfind(".//rsm:set/*", NS)]


async def refused(component: Component, inner: str) -> str:
    """The text of the internal error with which a request is answered."""
    answer = await component.get(ALICE, inner)
    assert answer.find("c:error[@type='cancel']/st:internal-server-error", NS) is not None, text_of(answer)
    component.faults[:] = [fault for fault in component.faults if not fault.startswith("an internal error")]
    return str(answer.findtext("c:error/st:text", namespaces=NS))


@pytest.mark.parametrize("damage", DAMAGES)
async def test_page_shows_a_damaged_item_by_its_id_and_keeps_its_cursors(component: Component, damage: str) -> None:
    await feed(component)
    await spoil(component, damage)
    with capture_logs() as logs:
        answer = await page(component)
        await page(component)
    assert contents(answer) == {"one": 1, "two": 0, "three": 1}
    assert [(log["event"], log["node"], log["item"]) for log in logs] == [("item_damaged", "news", "two")], "once"
    assert "is damaged" in await refused(component, "<items node='news'><item id='two'/></items>")
    assert contents(ok(await component.get(ALICE, "<items node='news'><item id='one'/></items>"))) == {"one": 1}
    assert len(component.server.sessions) == 1, "the link stays"


@pytest.mark.parametrize("node", ["news?order=modified", "news?order=created", "news?sync=true", "news?author=alice"])
async def test_views_go_on_beside_a_damaged_item(component: Component, node: str) -> None:
    await feed(component)
    await component.index()
    sets = "<set xmlns='http://jabber.org/protocol/rsm'><max>2</max></set>"
    first = result_set(await page(component, node, sets))
    await spoil(component)
    answer = await page(component, node, sets)
    assert result_set(answer) == first, "count, index and cursors are the same"
    if "author" not in node:
        assert contents(answer) == {"one": 1, "two": 0}


@pytest.mark.parametrize("column", ["payload", "sync"])
async def test_sync_data_is_checked_where_it_is_shown(component: Component, column: str) -> None:
    await feed(component)
    await component.publish(ALICE, "news", "two")
    await spoil(component, column=column)
    assert contents(await page(component, "news?sync=true"))["two"] == 0
    assert contents(await page(component))["two"] == (1 if column == "sync" else 0)


async def test_damaged_tombstone_is_still_a_deletion(component: Component) -> None:
    await feed(component)
    await component.retract(ALICE, "news", "two")
    await component.app.service.store.write(
        lambda tx: tx.db.run("UPDATE item SET payload = ? WHERE id = 'two'", (b"<",))
    )
    answer = await page(component, "news?order=modified")
    (mark,) = answer.iterfind(".//ps:item[@id='two']/a:entry/sx:sync", NS)
    assert mark.get("deleted") == "true"


async def test_notification_of_a_damaged_item_has_its_id(component: Component) -> None:
    """The service was away, and reads the item when the link is back."""
    await feed(component)
    await component.subscribe(BOB, "news")
    await component.cut()
    await component.publish_unseen("news", "four")
    await component.publish_unseen("news", "five")
    await spoil(component, "longer", "four")
    await component.link()
    (four, five) = await component.events(bare(BOB))
    assert [len(item) for item in four.iterfind(".//ev:item", NS)] == [0]
    assert [len(item) for item in five.iterfind(".//ev:item", NS)] == [1]


@pytest.mark.parametrize(
    ("column", "value"), [("publisher", "alice\x01@example.org"), ("id", "t\x01wo"), ("id", "twp")]
)
async def test_damaged_text_of_an_item_stops_nobody(component: Component, column: str, value: str) -> None:
    """A control character cannot be written, and the notifications of the feed would wait for ever."""
    await feed(component)
    await component.subscribe(BOB, "news")
    await component.cut()
    await component.publish_unseen("news", "four")
    await component.publish_unseen("news", "five")
    statement = f"UPDATE item SET {column} = ? WHERE id = 'four'"
    await component.app.service.store.write(lambda tx: tx.db.run(statement, (value,)))
    await component.link()
    assert [len(item) for event in await component.events(bare(BOB)) for item in event.iterfind(".//ev:item", NS)] == [
        0,
        1,
    ]
    assert list(contents(await page(component)).values()) == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("damage", ["truncated", "no utf-8", "empty"])
async def test_publishing_or_retracting_again_ends_the_damage(component: Component, damage: str) -> None:
    await feed(component)
    await spoil(component, damage)
    await component.publish(ALICE, "news", "two", entry("two again"))
    assert contents(await page(component))["two"] == 1
    await spoil(component, "truncated")
    await component.retract(ALICE, "news", "two")
    assert contents(await page(component)) == {"one": 1, "three": 1}


async def test_documents_leave_a_damaged_item_out(start_web: WebStarter) -> None:
    web = await start_web()
    await feed(web.component)
    await spoil(web.component, "no utf-8")
    for form in ("news.atom", "news.rss", "news.json", "news/", "news.atom?sync=true", "news.rss?sync=true"):
        got = await web.get(f"/feeds/{form}")
        assert got.status == 200, form
        assert "one" in got.text and "three" in got.text and "two" not in got.text, form
    got = await web.get(entry_path("news", "two"))
    assert got.status == 500 and "damaged" in got.text


async def test_pulls_over_http_go_on_behind_a_damaged_item(start_web: WebStarter) -> None:
    """The cursor of the page is that of the damaged item, so the next pull begins behind it."""
    web = await start_web()
    await feed(web.component)
    await spoil(web.component, "truncated", "three")
    for path in (
        "/feeds/news.json?since=time:2000-01-01T00:00:00Z",
        "/feeds/news.json?since=time:2000-01-01T00:00:00Z&sync=true",
        "/feeds/news.atom?since=time:2000-01-01T00:00:00Z",
        "/feeds/news/?since=time:2000-01-01T00:00:00Z",
        "/feeds/",
        "/feeds.opml",
        *(["/feeds.nno"] if "documents" in FEATURE_NAMES else []),
    ):
        got = await web.get(path)
        assert got.status == 200, (path, got.text[:200])
    (item,) = [item for item in await stored(web.component) if item.id == "three"]
    assert item.damaged
    got = await web.get("/feeds/news.json?since=time:2000-01-01T00:00:00Z")
    shown = got.json
    assert [one["id"] for one in shown["items"]] == ["one", "two"] and shown["totalItems"] == 3
    assert shown["last_cursor"].startswith("1767225600.000002_0_"), "the cursor of the third item"


async def stored(component: Component) -> list[Item]:
    return await component.app.service.store.read(lambda tx: tx.items(1, ["one", "two", "three"]))


@pytest.mark.needs("bot")
async def test_chat_bot_leaves_a_damaged_item_out(component: Component) -> None:
    await feed(component)
    await write(component, BOB, "subscribe news")
    await component.cut()
    await component.publish_unseen("news", "four")
    await component.publish_unseen("news", "five")
    await spoil(component, "longer", "four")
    await component.link()
    texts = [body_of(message) for message in await component.events(bare(BOB))]
    assert [text.partition("\n")[0] for text in texts if text] == ["five"]


@pytest.mark.needs("archive")
async def test_archive_shows_a_damaged_item_by_its_id(component: Component) -> None:
    await feed(component)
    await spoil(component, "truncated")
    ok(await component.ask(BOB, "set", "<query xmlns='urn:xmpp:mam:2' node='news'/>"))
    results = {
        str(item.get("id")): len(item)
        for message in await component.events(BOB)
        for item in message.iterfind(".//ev:item", NS)
    }
    assert results == {"one": 1, "two": 0, "three": 1}
    assert len(component.server.sessions) == 1


async def test_event_stream_goes_on_behind_a_damaged_item(start_web: WebStarter) -> None:
    """A stream that begins before the damaged item, and one that is open when an item comes."""
    web = await start_web()
    await feed(web.component)
    await spoil(web.component, "no utf-8")
    url = f"{web.origin}/feeds/news/?since=time:2000-01-01T00:00:00Z"
    ids: list[str] = []
    async with web.session.get(url, headers={"Accept": "text/event-stream"}) as answer:
        assert answer.status == 200
        while ids[-1:] != ["four"]:
            line = (await answer.content.readline()).decode()
            assert line, "the stream goes on"
            if line.startswith("data: "):
                ids += [item["id"] for item in json.loads(line.removeprefix("data: "))["items"]]
            if ids == ["one", "three"]:
                await web.component.publish(ALICE, "news", "four")
    assert ids == ["one", "three", "four"]


async def test_held_pull_ends_with_what_follows_a_damaged_item(start_web: WebStarter) -> None:
    web = await start_web()
    await feed(web.component)
    await spoil(web.component, "truncated", "three")
    last = (await web.get("/feeds/news.json?since=time:2000-01-01T00:00:00Z")).json["last_cursor"]
    held = asyncio.create_task(web.get(f"/feeds/news.json?since=cursor:{last}&timeout=120"))
    await web.holding(1)
    await web.component.publish(ALICE, "news", "four")
    got = await held
    assert (got.status, [item["id"] for item in got.json["items"]]) == (200, ["four"])

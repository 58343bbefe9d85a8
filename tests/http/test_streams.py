"""Event streams: a pull that goes on, and is taken up again where it was lost (`text/event-stream`)."""

import json
import random
from typing import Any

import pytest
import pytest_asyncio
from lxml import etree

from smartfeeds.delivery.changes import WatchedNodes
from smartfeeds.http import streams
from smartfeeds.store.base import WriteTx
from support.component import ALICE
from support.event_streams import listen
from support.features import FEATURE_NAMES
from support.pulls import publish_all
from support.web import Web

pytestmark = pytest.mark.shared


@pytest_asyncio.fixture(loop_scope="module")
async def feed(web: Web) -> Web:
    """A feed `news` with the items a, b, c."""
    await web.component.create(ALICE, "news")
    await publish_all(web.component, "news", "a b c")
    return web


async def test_stream_begins_now_and_says_what_comes(feed: Web) -> None:
    """[SF-004] [SF-046]: each event is the page that a pull since the last one gives, its id the cursor to go on."""
    stream = await listen(feed, "/feeds/news/?order=created")
    assert stream.answer.headers["Content-Type"] == "text/event-stream"
    assert stream.answer.headers["Cache-Control"] == "no-store"
    last = (await stream.block()).id
    assert last == (await feed.get("/feeds/news/?order=created")).json["last_cursor"]
    for item_id in "def":
        await feed.component.publish(ALICE, "news", item_id)
        event = await stream.event()
        assert event.ids == [item_id]
        pulled = await feed.get(f"/feeds/news/?order=created&since=cursor:{last}")
        assert json.loads(event.data) == pulled.json
        assert event.id == pulled.json["last_cursor"]
        last = event.id
    stream.answer.close()


async def test_lost_streams_come_back_at_different_times(feed: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-004] The readers of a service that was restarted do not return all at once."""
    monkeypatch.setattr(streams, "random", random.Random(7))
    lines = []
    for _ in range(2):
        async with feed.session.get(f"{feed.origin}/feeds/news/", headers={"Accept": "text/event-stream"}) as answer:
            lines.append((await answer.content.readline()).decode())
    assert lines == ["retry: 4326\n", "retry: 3617\n"]


ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom' xml:lang='{2}'><id>tag:example.org,2026:1</id><title>{0}</title>"
    "<updated>2026-01-01T00:00:00Z</updated><category term='{1}'/></entry>"
)


@pytest.mark.parametrize(
    ("view", "sync"), [("category=red", ""), ("category=red", "&sync=true"), ("lang=en&kind=new&kind=edited", "")]
)
async def test_item_that_leaves_a_view_is_the_same_in_json_atom_stream_and_page(
    feed: Web, view: str, sync: str
) -> None:
    """[A-20] [SF-015] [SF-061]: an id, a time and two marks, nothing of the version that does not match."""
    path = f"/feeds/news/?{view}{sync}"
    await feed.component.publish(ALICE, "news", "x", ENTRY.format("first", "red", "en-US"))
    stream = await listen(feed, path)
    await stream.block()
    await feed.component.publish(ALICE, "news", "x", ENTRY.format("secret", "blue", "fr"))

    event = await stream.event()
    stream.answer.close()
    page = (await feed.get(path)).json
    atom = await feed.get(path, "application/atom+xml")
    html = await feed.get(path, "text/html") if "pages" in FEATURE_NAMES else None

    (item,) = page["items"]
    assert item == {"id": "x", "updated": item["updated"], "deleted": True, "left": True}
    assert (json.loads(event.data)["items"], page["totalItems"]) == ([item], 1)
    (entry,) = etree.fromstring(atom.body).iterfind("{*}entry")
    assert entry.find("{urn:smartfeeds:0}left") is not None
    marks = [dict(mark.attrib) for mark in entry.iterfind("{http://feedsync.org/2007/feedsync}sync")]
    assert marks == ([] if sync else [{"deleted": "true"}])
    assert html is None or b"left this view" in html.body
    for body in (event.data.encode(), atom.body, html.body if html else b""):
        assert b"secret" not in body
    assert (await feed.get("/feeds/news/")).json["items"][-1]["title"] == "secret"


@pytest.mark.parametrize("view", ["", "?order=created"])
async def test_lost_stream_is_taken_up_where_it_was(feed: Web, view: str) -> None:
    """[SF-028]: `Last-Event-ID` is a cursor, whatever happened meanwhile, over a since in the address."""
    stream = await listen(feed, f"/feeds/news/{view}")
    last = (await stream.block()).id
    stream.answer.close()
    await publish_all(feed.component, "news", "d e")
    address = f"/feeds/news/{view}{'&' if view else '?'}since=time:0"
    again = await listen(feed, address, Last_Event_ID=last)
    assert (await again.event()).ids == ["d", "e"]
    again.answer.close()


async def test_stream_since_a_position_catches_up_in_pages(start_web: Any) -> None:
    """What there is comes at once, page by page, without waiting for a heartbeat; then what comes."""
    feed = await start_web(http={"heartbeat_s": 3_600})
    await feed.component.create(ALICE, "news")
    await publish_all(feed.component, "news", "a b c")
    stream = await listen(feed, "/feeds/news/?since=time:0&max=2")
    assert (await stream.event()).ids == ["a", "b"]
    assert (await stream.event()).ids == ["c"]
    await feed.component.publish(ALICE, "news", "d")
    assert (await stream.event()).ids == ["d"]
    stream.answer.close()


async def test_edits_and_deletions_come_too(feed: Web) -> None:
    """[SF-013]: in modified order."""
    stream = await listen(feed, "/feeds/news/")
    await stream.block()
    await feed.component.publish(ALICE, "news", "a")
    assert (await stream.event()).ids == ["a"]
    await feed.component.retract(ALICE, "news", "b")
    (gone,) = json.loads((await stream.event()).data)["items"]
    assert (gone["id"], gone["deleted"]) == ("b", True)
    stream.answer.close()


async def test_stream_of_an_empty_feed_begins_with_its_first_item(web: Web) -> None:
    """Nothing is lost between an empty feed and its first item."""
    await web.component.create(ALICE, "news")
    stream = await listen(web, "/feeds/news/")
    assert (await stream.block()).id == ""
    await web.component.publish(ALICE, "news", "a")
    assert (await stream.event()).ids == ["a"]
    stream.answer.close()


async def test_silent_stream_shows_that_it_is_alive(start_web: Any) -> None:
    """A heartbeat is a comment, with the cursor for who missed it; it is no event."""
    web = await start_web(http={"heartbeat_s": 0.02})
    await web.component.create(ALICE, "news")
    await web.component.publish(ALICE, "news", "a")
    stream = await listen(web, "/feeds/news/")
    first, second = await stream.block(), await stream.block()
    assert first.comment and second.comment
    assert first.id == second.id != ""
    stream.answer.close()


async def test_stream_ends_when_its_reader_may_read_no_more(feed: Web) -> None:
    """[xep-map 181] [SF-111]: the last event says why."""
    stream = await listen(feed, "/feeds/news/")
    await stream.block()
    await feed.component.configure(ALICE, "news", access_model="whitelist")
    await feed.component.publish(ALICE, "news", "secret")
    event = await stream.event()
    assert event.name == "error"
    assert json.loads(event.data)["status"] == 404
    assert await stream.answer.content.read() == b""


@pytest.mark.parametrize(
    ("path", "last", "pull", "status"),
    [
        ("/feeds/news/?since=bogus:1", "", "/feeds/news/?since=bogus:1", 400),
        ("/feeds/news/", "no cursor at all", "/feeds/news/?since=cursor:no%20cursor%20at%20all", 404),
        ("/feeds/news/?order=created", "1_0_e8b7be43", "/feeds/news/?order=created&since=cursor:1_0_e8b7be43", 404),
        ("/feeds/nobody/", "", "/feeds/nobody/", 404),
        ("/feeds/news/?catgory=red", "", "/feeds/news/?catgory=red", 400),
    ],
)
async def test_stream_that_cannot_begin_is_refused_like_a_pull(
    feed: Web, path: str, last: str, pull: str, status: int
) -> None:
    """[SF-030]: before anything is sent, with the problem that a pull from there has."""
    headers = {"Last_Event_ID": last} if last else {}
    got, pulled = await feed.get(path, "text/event-stream", **headers), await feed.get(pull)
    assert (got.status, got.header("Content-Type")) == (status, "application/problem+json")
    assert (got.status, got.json) == (pulled.status, pulled.json)


@pytest.mark.parametrize("query", ["until=time:0", "callback=f", "max=0"])
async def test_stream_takes_nothing_that_would_end_it(feed: Web, query: str) -> None:
    """A pull takes these parameters."""
    path = f"/feeds/news/?{query}"
    assert (await feed.get(path)).status == 200
    got = await feed.get(path, "text/event-stream")
    assert (got.status, got.header("Content-Type")) == (400, "application/problem+json")
    assert "a stream has no end" in got.json["detail"]


async def test_what_another_process_writes_is_heard_of(feed: Web) -> None:
    """Nobody tells this process of an import beside it: it looks by itself."""
    stream = await listen(feed, "/feeds/news/")
    await stream.block()
    site, service = feed.component.app.site, feed.component.app.service
    assert site is not None
    watched = WatchedNodes(service, site.feeds.waiting)
    await watched.look()

    def work(tx: WriteTx) -> None:
        node = tx.lock("news")
        assert node is not None
        item = tx.item(node.node_no, "a")
        assert item is not None
        key_us = node.last_modified_us + 1
        tx.put_item(node.node_no, item._replace(modified_us=key_us))
        tx.set_keys(node.node_no, key_us, node.last_created_us)

    await service.store.write(work)
    await watched.look()
    assert (await stream.event()).ids == ["a"]
    stream.answer.close()

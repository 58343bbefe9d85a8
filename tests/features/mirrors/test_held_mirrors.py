"""What publishers and the proxies before them do with a held pull of a mirror, over real HTTP, with a clock of our own
[SF-046, SF-056]."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from smartfeeds.core.model import Slice
from smartfeeds.core.view import SHARED
from smartfeeds.features.mirrors import mirror_http
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.held_pulls import LEAST_HOLD_S, HeldPullTiming
from smartfeeds.features.mirrors.mirror import HELD_PULL, POLLED, Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_http import WebMirrorReader
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.net.limiter import HostLimiter, HostLimits
from smartfeeds.service.context import Policy
from smartfeeds.store.base import ReadTx
from support.sqlite_memory import SqliteMemoryStore
from support.waiting import wait_for
from support.website import Site, running_site
from support.world import ATOM_NS, Clock, S, World, running_world

NODE = "plans"
Act = Callable[["Publisher", web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Publisher:
    """A server of one feed. It answers held pulls as the acts of `script` do, and holds the one after them for ever.

    `log` has the requests and the pauses of the mirror. `cursors`: it is a Smart Feed. `sharing`: it is a partial feed,
    whose complete one is at `/all`. `strict`: it refuses the parameter `timeout`. `moved`: its address redirects.
    `fails` are the statuses of the next reads, `ends_at` is the length of the log at which a pause does not end.
    """

    site: Site
    clock: Clock
    script: list[Act] = field(default_factory=list)
    entries: list[str] = field(default_factory=lambda: ["a"])
    cursors: bool = True
    sharing: bool = False
    strict: bool = False
    moved: bool = False
    fails: list[int] = field(default_factory=list)
    ends_at: int = 0
    shift: int = 0
    log: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.moved and request.path == "/feed":
            return web.Response(status=301, headers={"Location": f"/all?{request.query_string}"})
        timeout = request.query.get("timeout")
        if timeout and timeout != "0":
            self.log.append(f"hold {timeout}")
            if self.script:
                return await self.script.pop(0)(self, request)
            self.over.set()
            await self.released.wait()
            return web.Response()
        if self.fails:
            status = self.fails.pop(0)
            self.log.append(f"read {status}")
            return web.Response(status=status)
        if timeout and self.strict:
            self.log.append("read 400")
            return web.Response(status=400)
        self.log.append("read")
        return self.page(request)

    async def sleep(self, seconds: float) -> None:
        """The pauses of the mirror."""
        self.log.append(f"sleep {seconds:g}")
        self.clock.move(seconds)
        await asyncio.sleep(0)
        if len(self.log) == self.ends_at:
            self.over.set()
            await self.released.wait()

    def page(self, request: web.Request) -> web.Response:
        """The entries behind `since`."""
        since = request.query.get("since", "").removeprefix("cursor:")
        start = int(since.partition("_")[0]) - 1_000 - self.shift if since and self.cursors else 0
        cursor = f"{1_000 + self.shift + len(self.entries)}_0_abcdef12"
        shown = self.entries[max(0, start) :]
        entries = "".join(entry(name) for name in shown)
        head = f"<fo:last_cursor xmlns:fo='{FANOUT_NS}'>{cursor}</fo:last_cursor>" if shown or since else ""
        head = f"{head}<fo:total xmlns:fo='{FANOUT_NS}'>{len(self.entries)}</fo:total>" if self.cursors else ""
        if self.sharing:
            bounds = f"since='0001' until='{len(self.entries):04}'"
            complete = f"<sx:related type='complete' link='{self.site.url('/all')}'/>"
            head += f"<sx:sharing xmlns:sx='{FEEDSYNC_NS}' {bounds}>{complete}</sx:sharing>"
        title = f"<id>urn:x:feed</id><title>plans</title><updated>2011-05-01T10:00:00Z</updated>{head}"
        body = f"<feed xmlns='{ATOM_NS}'>{title}{entries}</feed>"
        response = web.Response(text=body, content_type="application/atom+xml")
        response.force_close()  # the client would repeat a request on a connection that it has used before
        return response


def entry(name: str) -> str:
    history = "<sx:history sequence='1' when='2011-05-01T10:00:00Z' by='ed'/>"
    return (
        f"<entry><id>urn:x:{name}</id><title>{name}</title><updated>2011-05-01T10:00:00Z</updated>"
        f"<sx:sync xmlns:sx='{FEEDSYNC_NS}' id='{name}' updates='1'>{history}</sx:sync></entry>"
    )


def nothing(after_s: float = 0.0) -> Act:
    """An answer without items."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        return publisher.page(request)

    return act


def news(after_s: float = 0.0) -> Act:
    """An item that was published meanwhile."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        publisher.entries.append(f"item-{len(publisher.entries)}")
        return publisher.page(request)

    return act


def status(code: int, after_s: float = 0.0, **headers: str) -> Act:
    """An error."""

    async def act(publisher: Publisher, _request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        return web.Response(status=code, headers={name.replace("_", "-"): text for name, text in headers.items()})

    return act


def cut(after_s: float = 0.0) -> Act:
    """The connection is closed without an answer. The client repeats such a request once."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    return act


def cut_body(after_s: float = 0.0) -> Act:
    """The connection is closed within the answer."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"<feed")
        return await cut(after_s)(publisher, request)

    return act


def restart(after_s: float) -> Act:
    """The connection is closed, and the proxy finds no server for two reads."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.fails = [502, 502]
        return await cut_body(after_s)(publisher, request)

    return act


def gone() -> Act:
    """The feed was deleted; at the second read another one is there."""

    async def act(publisher: Publisher, _request: web.Request) -> web.StreamResponse:
        publisher.fails = [404, 404]
        publisher.entries = ["other"]
        publisher.clock.move(20)
        return web.Response(status=404)

    return act


def new_cursor(*, items: bool) -> Act:
    """An answer at once with a new cursor: without items, or with all items again."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.shift += 1
        text = publisher.page(request.clone(rel_url=request.rel_url.without_query_params("since"))).text or ""
        text = text if items else text[: text.index("<entry")] + "</feed>"
        return web.Response(text=text, content_type="application/atom+xml")

    return act


def body(content: bytes, after_s: float = 10.0) -> Act:
    """Something else than a feed."""

    async def act(publisher: Publisher, _request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        return web.Response(body=content, content_type="text/html")

    return act


def whole(after_s: float = 0.0) -> Act:
    """The whole feed, because a redirect lost the parameters."""

    async def act(publisher: Publisher, request: web.Request) -> web.StreamResponse:
        publisher.clock.move(after_s)
        return publisher.page(request.clone(rel_url=request.rel_url.without_query_params("since")))

    return act


@dataclass(frozen=True)
class Row:
    """A row of the table: what the publisher does, the requests and pauses that follow, and what the status shows."""

    name: str
    script: list[Act]
    log: str
    means: str = HELD_PULL
    publisher: dict[str, object] = field(default_factory=dict)


TABLE = [
    Row("held", [nothing(45), news(10), nothing(45)], "read, hold 45, hold 45, hold 45, hold 45"),
    Row("poll between", [nothing(45)] * 7, "read" + ", hold 45" * 6 + ", hold 30, read, hold 45"),
    Row("many changes", [news(), news()], "read, hold 45, sleep 1, hold 45, sleep 1, hold 45"),
    Row("holds for 20 s at most", [nothing(20)] * 2, "read, hold 45, hold 45, hold 45"),
    Row(
        "proxy answers 504 after 30 s",
        [status(504, 30), status(504, 30), nothing(24)],
        "read, hold 45, read, hold 45, read, hold 24, hold 24",
    ),
    Row("proxy answers 408", [status(408, 30)] * 2, "read, hold 45, read, hold 45, read, hold 24"),
    Row(
        "proxy closes after 30 s",
        [cut(30)] * 8,
        "read, hold 45, hold 45, read, hold 45, hold 45, read, hold 36, hold 36, read, hold 36, hold 36, read, hold 28",
    ),
    Row("platform closes after 10 s", [cut_body(10)] * 2, "read, hold 45, read, hold 45, read, hold 8"),
    Row(
        "full time is tried again after an hour",
        [cut_body(10), cut_body(10), nothing(1_800), nothing(1_800)],
        "read, hold 45, read, hold 45, read, hold 8, read, hold 8, read, hold 45",
    ),
    Row("cut once, as by a restart", [cut_body(30), nothing(45)], "read, hold 45, read, hold 45, hold 45"),
    Row(
        "proxy closes after 5 s",
        [cut_body(5)] * 2 + [nothing(4)] * 3 + [news(2), nothing(3.2)],
        "read, hold 45, read, hold 45, read" + ", hold 4, sleep 1" * 3 + ", hold 4, hold 4, sleep 1.8, hold 4",
    ),
    Row(
        "proxy closes after 3 s",
        [cut_body(3)] * 2,
        "read, hold 45, read, sleep 1, hold 45, read, sleep 2, hold 45",
        POLLED,
    ),
    Row("holds for 4 s at most", [nothing(4)] * 2, "read, hold 45, sleep 1, hold 45, sleep 1, hold 45"),
    Row("closes at once", [cut_body()] * 2, "read, hold 45, read, sleep 1, hold 45, read, sleep 2, hold 45", POLLED),
    Row(
        "ignores timeout",
        [nothing()] * 4,
        "read, hold 45, sleep 1, hold 45, sleep 2, hold 45, sleep 4, hold 45, sleep 8, hold 45",
        POLLED,
    ),
    Row(
        "ignores timeout, is polled in the end",
        [nothing()] * 9,
        "sleep 128, hold 45, sleep 45, read, sleep 211, hold 45",
        POLLED,
        {"log_end": 6},
    ),
    Row(
        "refuses timeout above 20",
        [status(400)] * 2,
        "read, hold 45, read, sleep 1, hold 22, read, sleep 2, hold 11",
        POLLED,
    ),
    Row(
        "refuses timeout",
        [status(400)],
        "read, hold 45, read 400, read, sleep 300, read, sleep 300",
        POLLED,
        {"strict": True, "ends_at": 7},
    ),
    Row("401", [status(401)], "read, hold 45, read, sleep 1, hold 45", POLLED),
    Row("500", [status(500)], "read, hold 45, read, sleep 1, hold 45", POLLED),
    Row("429", [status(429)], "read, hold 45, sleep 1, hold 45", POLLED),
    Row("429 with Retry-After", [status(429, Retry_After="40")], "read, hold 45, sleep 40, hold 45", POLLED),
    Row("503 with Retry-After", [status(503, Retry_After="7")], "read, hold 45, sleep 7, hold 45", POLLED),
    Row("503", [status(503)], "read, hold 45, read, sleep 1, hold 45", POLLED),
    Row("restarts", [restart(20)], "read, hold 45, read 502, sleep 2, read 502, sleep 4, read, hold 45"),
    Row(
        "deleted and created again",
        [gone()],
        "read, hold 45, read 404, read 404, sleep 2, read, sleep 1, hold 45",
        POLLED,
    ),
    Row("redirect", [nothing(45), news(3)], "read, hold 45, hold 45, hold 45", publisher={"moved": True}),
    Row("redirect that loses the query", [whole()] * 2, "read, hold 45, sleep 1, hold 45, sleep 2, hold 45", POLLED),
    Row(
        "new cursors without items",
        [new_cursor(items=False)] * 3,
        "read, hold 45, sleep 1, hold 45, sleep 2, hold 45, sleep 4, hold 45",
        POLLED,
    ),
    Row(
        "new cursors with the same items",
        [new_cursor(items=True)] * 6,
        "read, hold 45, sleep 1, hold 45, sleep 2, hold 45, sleep 4, hold 45, sleep 8, hold 45, sleep 15, hold 45, "
        "sleep 15, hold 45",
        POLLED,
    ),
    Row("page of a captive portal", [body(b"<html>log in</html>")], "read, hold 45, read, hold 45"),
    Row("broken XML", [body(b"<feed xmlns='http://www.w3.org/2005/Atom'><")], "read, hold 45, read, hold 45"),
    Row("body beyond the limit", [body(b" " * 2_000)], "read, hold 45, read, hold 45"),
    Row(
        "feed without an item",
        [nothing(45), news(3)],
        "read, hold 45, hold 45, read, hold 45",
        publisher={"entries": []},
    ),
    Row(
        "partial document with a cursor",
        [nothing(45), news(10)],
        "read, read, hold 45, hold 45, read, hold 45",
        publisher={"sharing": True},
    ),
    Row("document without a cursor", [], "read, sleep 300, read, sleep 300", POLLED, {"cursors": False, "ends_at": 4}),
]


def item_ids(tx: ReadTx) -> list[str]:
    node = tx.node(NODE)
    return [] if node is None else [item.id for item in tx.slice(node.node_no, Slice(SHARED, 1_000))]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world(SqliteMemoryStore(), Policy("feeds.b.example")) as made:
        yield made


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_whatever_comes_of_a_held_pull_the_mirror_has_every_item_and_does_not_fail(
    world: World, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_http, "HELD_BYTES", 1_500)
    settings = dict(row.publisher)
    end = settings.pop("log_end", None)
    async with running_site() as site:
        publisher = Publisher(site, world.clock, list(row.script), **settings)  # type: ignore[arg-type]
        site.pages |= {"/feed": publisher.answer, "/all": publisher.answer}
        limiter = HostLimiter(HostLimits(1, 1, 1e6, 1_000_000), clock=lambda: world.clock() / S)
        async with Fetcher(FetchLimits(allowed=EVERYWHERE), limiter=limiter) as fetcher:
            tools = SourceTools(world.clock, publisher.sleep, lambda: 1.0)
            mirror = make_mirror(node=NODE, address=site.url("/feed"), allow_private=True)
            await world.store.write(lambda tx: stored_mirrors.put(tx, MirrorRow(mirror)))
            state_store = MirrorStateStore(world.service, mirror.name, Direction.IN, MirrorState(), tools)
            reader = WebMirrorReader(mirror, world.service, fetcher, state_store, tools)
            reader.begin()
            await wait_for(publisher.over.wait(), "the last request of the log")
            await reader.end()
            publisher.released.set()

    assert ", ".join(publisher.log if end is None else publisher.log[-end:]) == row.log
    assert (state_store.state.error, state_store.state.means) == ("", row.means)
    assert set(publisher.entries) <= set(await world.store.read(item_ids))


def test_proxy_that_cuts_sooner_than_a_pull_may_be_held_gets_pauses() -> None:
    """[SF-046] [SF-056] Without them each cut would be followed by a new pull at once."""
    timing = HeldPullTiming(lambda: 0, lambda: 1.0)
    for _ in range(2):
        assert timing.after_failure(4.0)
    assert (timing.works, timing.pause_s) == (True, 0.0), "a hold that is shorter than 4 s is tried"
    held_s = timing.timeout_s(100)
    assert held_s == LEAST_HOLD_S
    for _ in range(2):
        assert timing.after_failure(held_s - 1)
    assert not timing.works and timing.pause_s > 0
    assert timing.timeout_s(100) == LEAST_HOLD_S

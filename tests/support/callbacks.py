"""Subscribers of the hub as a server on this machine, and a hub whose clock and timers only a test moves."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web
from lxml import etree

from smartfeeds.core.consumers import Consumer, Failure
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.callbacks.registrations import NOBODY, CallbackReader
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.hub.hub import Hub
from smartfeeds.features.hub.requests import HUB
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import CallbackClient
from support.sqlite_memory import SqliteMemoryStore
from support.timers import Timers
from support.waiting import until
from support.world import World, running_world

SITE = "http://feeds.example"
ATOM = "{http://www.w3.org/2005/Atom}"
FANOUT = "{http://fanout.org/protocol/atom}"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Push:
    """A delivery as its callback received it."""

    path_qs: str
    headers: dict[str, str]
    body: bytes

    @property
    def root(self) -> etree._Element:
        return etree.fromstring(self.body)

    @property
    def ids(self) -> str:
        """The items in their order; a deleted one with a minus sign, one that left the view with a tilde."""
        return " ".join(map(_short, self.root.iterfind(f"{ATOM}entry")))

    def text(self, name: str) -> str | None:
        """The text of an element of the feed, such as `fo:total`."""
        return self.root.findtext(name.replace("fo:", FANOUT).replace("a:", ATOM))

    def links(self, rel: str) -> list[str]:
        """The addresses with a relation on the level of the feed."""
        return [node.get("href", "") for node in self.root.iterfind(f"{ATOM}link") if node.get("rel") == rel]


def _short(entry: etree._Element) -> str:
    tags = [(node.tag, dict(node.attrib)) for node in entry.iter()]
    deleted = any(str(tag).endswith("}sync") and attributes.get("deleted") == "true" for tag, attributes in tags)
    left = any(str(tag).endswith("}left") for tag, _ in tags)
    return ("~" if left else "-" if deleted else "") + (entry.findtext(f"{FANOUT}id") or "?")


@dataclass
class Subscribers:
    """Callbacks by name. `checks` are the queries of the GETs, `pushes` the POSTs, both by name.

    `confirm` and `receive` replace the usual answers; `statuses` are those of the next deliveries.
    """

    port: int = 0
    checks: dict[str, list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))
    raw_checks: list[str] = field(default_factory=list)
    pushes: dict[str, list[Push]] = field(default_factory=lambda: defaultdict(list))
    confirm: dict[str, Answer] = field(default_factory=dict)
    receive: dict[str, Answer] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    tries: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def silence(self, name: str, gate: asyncio.Event | None = None, status: int = 503) -> asyncio.Event:
        """A callback that answers its deliveries only when the event is set."""
        opened = gate or asyncio.Event()

        async def answer(_request: web.Request) -> web.Response:
            self.began.set()
            await opened.wait()
            return web.Response(status=status)

        self.receive[name] = answer
        return opened

    def url(self, name: str, query: str = "", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{name}{query}"

    def got(self, name: str) -> list[str]:
        """The items of each delivery since the last call."""
        return [push.ids for push in self.pushes.pop(name, [])]

    async def receive_push(self, name: str) -> None:
        """Returns when there is a delivery that was not taken yet."""
        await until(lambda: self.pushes.get(name), f"a delivery to {name}")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path.strip("/").split("/")[0]
        if request.method == "GET":
            self.checks[name].append(dict(request.query))
            self.raw_checks.append(request.raw_path)
            if name in self.confirm:
                return await self.confirm[name](request)
            return web.Response(text=request.query.get("hub.challenge", ""))
        self.tries[name] += 1
        body = await request.read()
        if name in self.receive:
            return await self.receive[name](request)
        statuses = self.statuses[name]
        status = statuses.pop(0) if statuses else 204
        if 200 <= status < 300:
            self.pushes[name].append(Push(request.raw_path, dict(request.headers), body))
        self.arrived.set()
        return web.Response(status=status)


def fixed(status: int = 200, text: str = "", **headers: str) -> Answer:
    """The same answer each time."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, text=text, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    return answer


@asynccontextmanager
async def running_subscribers() -> AsyncIterator[Subscribers]:
    """A server on a free port of this machine."""
    subscribers = Subscribers()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", subscribers.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    listening = web.TCPSite(runner, "0.0.0.0", 0)
    await listening.start()
    subscribers.port = runner.addresses[0][1]
    yield subscribers
    await runner.cleanup()


@dataclass
class HubBench:
    """A hub over a world with the feed news. `refused` has the text of the last refusal."""

    world: World
    subscribers: Subscribers
    client: CallbackClient
    settings: WebhooksSettings = field(default_factory=WebhooksSettings)
    timers: Timers = field(default_factory=Timers)
    refused: str = ""
    numbers: int = 0

    def __post_init__(self) -> None:
        self.make()

    def make(self) -> None:
        """A hub that begins with what is in the store; the one before it is forgotten."""
        self.dispatcher = Dispatcher(self.world.service, DeliveryTiming(self.world.clock, lambda: 0.5, self.timers))
        tools = CallbackTools(
            self.world.service, self.client, self.dispatcher, self.settings, SITE, self.world.clock, self.new_id
        )
        self.hub = Hub(tools, lambda: None)
        self.world.service._on_change = self.dispatcher.wake

    def new_id(self) -> str:
        self.numbers += 1
        return f"challenge{self.numbers}"

    async def restart(self, *, crash: bool = False) -> None:
        """Another process over the same store. After a crash, nothing of the last moments was stored."""
        if crash:
            await self.dispatcher.pause(HUB.name)
            saver = self.dispatcher._saver
            if saver is not None:
                saver.cancel()
                await asyncio.gather(saver, return_exceptions=True)
        else:
            await self.stop()
        self.timers.waiting.clear()
        self.make()
        await self.hub.start()

    async def stop(self) -> None:
        await self.dispatcher.stop()
        await self.hub.results.aclose()

    async def ask(
        self, fields: dict[str, str], *, feed: str = "", reader: CallbackReader = NOBODY, address: str = "192.0.2.1"
    ) -> int:
        """A request; its status, which is 400 and so on by the condition of the error."""
        return await self.ask_raw(urlencode(fields).encode(), feed=feed, reader=reader, address=address)

    async def ask_raw(
        self, body: bytes, *, feed: str = "", reader: CallbackReader = NOBODY, address: str = "192.0.2.1"
    ) -> int:
        from smartfeeds.errors import FeedError
        from smartfeeds.http.http_errors import STATUSES

        self.refused = ""
        try:
            return int(await self.hub.request(body, feed, reader, address))
        except FeedError as error:
            self.refused = error.text
            return int(STATUSES[error.condition])

    def fields(self, name: str, topic: str = "/feeds/news/", mode: str = "subscribe", **more: str) -> dict[str, str]:
        """The parameters of a request; an underscore in the name of another one stands for itself."""
        url = topic if topic.startswith("http") else f"{SITE}{topic}"
        callback = name if name.startswith("http") else self.subscribers.url(name)
        fields = {"hub.callback": callback, "hub.mode": mode, "hub.topic": url}
        return fields | {f"hub.{key}": value for key, value in more.items()}

    async def subscribe(
        self, name: str, topic: str = "/feeds/news/", *, reader: CallbackReader = NOBODY, **more: str
    ) -> None:
        """A subscription that is confirmed."""
        assert await self.ask(self.fields(name, topic, **more), reader=reader) == HTTPStatus.ACCEPTED, self.refused
        await self.check()

    async def check(self) -> None:
        """Asks the questions that are due."""
        await self.hub.questions.start_due()
        await self.hub.questions.idle()
        await self.quiet()

    async def quiet(self) -> None:
        await self.dispatcher.idle()

    async def publish(self, ids: str, **parts: str) -> None:
        for item_id in ids.split():
            await self.world.publish(item_id, node="news", **parts)
            self.world.clock.move(1)

    async def push(self, ids: str, **parts: str) -> None:
        """Publishes items and waits for the deliveries."""
        await self.publish(ids, **parts)
        await self.quiet()

    async def fire(self, seconds: float) -> None:
        """Lets a pause pass."""
        self.world.clock.move(seconds)
        self.timers.fire(longest=seconds)
        await self.quiet()

    async def rows(self) -> list[Callback]:
        return await self.world.store.read(lambda tx: callback_rows.callbacks(tx, HUB, 0, 1_000))

    async def row(self) -> Callback:
        (row,) = await self.rows()
        return row

    async def failure(self) -> Failure | None:
        """The failure of the only subscription."""
        consumer: Consumer = (await self.row()).consumer
        return self.dispatcher.failure(consumer)


@asynccontextmanager
async def running_hub(world: World | None = None) -> AsyncIterator[HubBench]:
    """A hub with the feed news, and subscribers that may be reached."""
    async with running_subscribers() as subscribers, CallbackClient(EVERYWHERE) as client:
        if world is not None:
            bench = HubBench(world, subscribers, client)
            await bench.hub.start()
            yield bench
            await bench.stop()
            return
        async with running_world(SqliteMemoryStore()) as made:
            await made.create("news")
            bench = HubBench(made, subscribers, client)
            await bench.hub.start()
            yield bench
            await bench.stop()

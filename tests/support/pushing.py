"""Sources that follow hubs and clouds: a poller, a subscriber and callback paths over a world, on real sockets.

The site of a test is the other server: feed, hub and cloud. Its clock is that of the world.
"""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web
from yarl import URL

from smartfeeds.core.urls import PUSH
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.clouds import Clouds
from smartfeeds.features.polling.http import CHECK_PUSH, RECEIVE_PUSH, SourcePushEndpoint
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.push_inbox import PushInbox
from smartfeeds.features.polling.push_states import OwnCallbacks, PushState, SourcePush
from smartfeeds.features.polling.source import Source
from smartfeeds.features.polling.subscriber import PushClients, Subscriber
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.http.authentication import NobodyKnown
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import CallReader
from smartfeeds.http.page_writer import NoPages
from smartfeeds.http.paths import PathTemplate
from smartfeeds.http.router import HttpRouter, PathResource
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import CallbackClient
from support.documents import at_once
from support.polling import PATH, Polling, running_polling
from support.website import Names, Site
from support.world import World

HUB = "/hub"
DAY_S = 86_400


@dataclass
class Got:
    """The response to a request of a hub."""

    status: int
    body: bytes
    headers: dict[str, str]


@dataclass
class Pushing:
    """`requests` are the forms that the hub of the site has received."""

    world: World
    site: Site
    polling: Polling
    subscriber: Subscriber
    inbox: PushInbox
    session: aiohttp.ClientSession
    port: int
    own_url: str
    slept: list[float] = field(default_factory=list)

    @property
    def requests(self) -> list[dict[str, str]]:
        return self.site_forms

    site_forms: list[dict[str, str]] = field(default_factory=list)
    hub_answer: web.Response | None = None

    async def hub(self, request: web.Request) -> web.StreamResponse:
        """The hub of the site: it notes the form, and answers 202 or what the test says."""
        self.site_forms.append(dict(parse_qsl((await request.read()).decode())))
        answer = self.hub_answer
        if answer is None:
            return web.Response(status=202)
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers.copy())

    async def look(self, later_s: float = 0.0) -> None:
        """Moves the clock, and sends the requests that are due."""
        self.world.clock.move(later_s)
        await self.subscriber.look()
        while await self.subscriber.settle():
            await self.subscriber.look()

    async def pushes(self) -> list[SourcePush]:
        return await self.world.store.read(lambda tx: source_push_rows.pushes(tx, 0, 100))

    async def push(self) -> SourcePush:
        """The newest subscription."""
        return (await self.pushes())[-1]

    async def change(self, **changes: object) -> SourcePush:
        row = replace(await self.push(), **changes)  # type: ignore[arg-type]
        await self.world.store.write(lambda tx: source_push_rows.put(tx, row))
        return row

    async def source(self) -> Source:
        rows = await self.world.store.read(lambda tx: source_rows.sources(tx, 0, 100))
        return rows[-1]

    def path(self, push: SourcePush) -> str:
        return f"{PUSH}{push.token}"

    async def get(self, path: str, raw_query: str = "", **query: str) -> Got:
        """A check or challenge, from the address of the test; an underscore of a name stands for a dot."""
        text = raw_query or urlencode({name.replace("_", ".", 1): value for name, value in query.items()})
        return await self._ask("GET", f"{path}?{text}")

    async def post(self, path: str, body: bytes, **headers: str) -> Got:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._ask("POST", path, body, {"Content-Type": "application/atom+xml", **sent})

    async def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Got:
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        async with self.session.request(
            method, url, data=None if body is None else BytesIO(body), headers=headers, allow_redirects=False
        ) as answer:
            return Got(answer.status, await answer.read(), dict(answer.headers))

    async def check(self, push: SourcePush, mode: str = "subscribe", lease: str = "864000", **query: str) -> Got:
        """The check of the hub."""
        fields = {"hub.mode": mode, "hub.topic": push.target.topic, "hub.challenge": "c1", "hub.lease_seconds": lease}
        fields |= {name.replace("_", ".", 1): value for name, value in query.items()}
        return await self._ask("GET", f"{self.path(push)}?{urlencode(fields)}")

    async def follow(self, page: bytes | web.Response, **settings: object) -> SourcePush:
        """Adds a source with this page, and lets its hub confirm the subscription."""
        self.site.pages[PATH] = page
        self.site.pages.setdefault(HUB, self.hub)
        await self.polling.poll(await self.polling.add(**settings))
        await self.look()
        await self.check(await self.push())
        row = await self.push()
        assert row.state is PushState.ACTIVE, row
        return row

    async def deliver(self, push: SourcePush, body: bytes, **headers: str) -> Got:
        """A signed push, which is stored."""
        if push.has_secret and "X_Hub_Signature" not in headers:
            headers["X_Hub_Signature"] = signature(push.secret, body)
        got = await self.post(self.path(push), body, **headers)
        await self.inbox.settle()
        return got

    async def titles(self) -> list[str]:
        return await self.polling.titles()


def signature(secret: str, body: bytes, method: str = "sha256") -> str:
    return f"{method}={hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()}"


@asynccontextmanager
async def running_pushing(
    world: World, site: Site, *, secret_over_http: bool = True, tls: bool = False
) -> AsyncIterator[Pushing]:
    """All parts. With `tls` the public address is https; a proxy would take that away before this service."""
    keys = iter(range(10_000))

    def new_key(size: int) -> str:
        return f"key{next(keys):06}".ljust(size + 6, "x")

    async with (
        running_polling(world, site) as polling,
        aiohttp.ClientSession(skip_auto_headers=("Content-Type",)) as session,
    ):
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        tools = SourceTools(world.clock, sleep, lambda: 0.5, aside=at_once)
        own_url = f"http{'s' if tls else ''}://reader.example"
        own = OwnCallbacks(own_url, new_key, secret_over_http)
        clients = polling.poller._clients
        polling.poller = Poller(world.service, clients, tools, own_url, new_key)
        inbox = PushInbox(world.service, clients, tools, own, new_key)
        endpoint = SourcePushEndpoint(inbox, BodyReader(1_000, 5.0, lambda _data: ""))
        template = PathTemplate(f"{PUSH}{{token}}", ())
        resource = PathResource(
            template, "push", {"GET": (CHECK_PUSH, endpoint.get), "POST": (RECEIVE_PUSH, endpoint.post)}
        )
        router = HttpRouter(CallReader((), own_url), [resource], NobodyKnown(), NoPages(), lambda *_: None)
        runner = web.ServerRunner(web.Server(router, auto_decompress=False), shutdown_timeout=0)
        await runner.setup()
        listening = web.TCPSite(runner, "127.0.0.1", 0)
        await listening.start()
        public = CallbackClient(EVERYWHERE, resolver=Names("127.0.0.1"), allowed_by="sources.allowed_networks")
        guarded = CallbackClient((), resolver=Names("127.0.0.1"), allowed_by="sources.allowed_networks")
        async with public, guarded:
            subscriber = Subscriber(world.service, PushClients(public, public, guarded), Clouds(own_url), tools, own)
            yield Pushing(
                *(world, site, polling, subscriber, inbox, session, runner.addresses[0][1], own_url), slept=slept
            )
        await runner.cleanup()

"""Several services in this process that reach each other over XMPP, without servers, sockets or time.

Stanzas are bytes from one component to the other: requests go through the router and are answered, events go to the
links of the followers. A test cuts links, loses pushes, and moves the clock; `Net.settle` waits until nothing is on
its way any more.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from lxml import etree

from smartfeeds.app.opening import all_use_cases
from smartfeeds.app.sides import xmpp_side
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.stanzas import STANZAS
from smartfeeds.core.consumers import PUSH
from smartfeeds.core.model import Item, Slice
from smartfeeds.core.text import escape
from smartfeeds.core.view import SHARED
from smartfeeds.delivery.deliverer import ConsumerKind
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.features.conflicts.requests import ResolveConflicts
from smartfeeds.features.mirrors.mirror import Direction, Mirror, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_out import ItemPublisher
from smartfeeds.features.mirrors.mirrors import MirrorConnections, Mirrors
from smartfeeds.features.mirrors.statuses import MirrorStatus, add_mirror, mirror_statuses
from smartfeeds.features.mirrors.stream_link import StreamLink
from smartfeeds.features.polling.push_states import OwnCallbacks
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.push.sender import PushForms, PushSender
from smartfeeds.push.side import PushSide
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import Configure, CreateNode, Publish, Retract, SetAffiliations
from smartfeeds.service.syncing import read_shared, sync_of
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.sync.record import Version
from smartfeeds.xmpp.authorization import authorization_form
from smartfeeds.xmpp.disco import ServiceInfo
from smartfeeds.xmpp.framer import TOO_LONG, cut_down
from smartfeeds.xmpp.router import RouterTools, StanzaRouter
from smartfeeds.xmpp.stanza_side import StanzaSide
from smartfeeds.xmpp.stream import STANZA_LIMIT_BYTES
from support.documents import at_once
from support.sqlite_memory import SqliteMemoryStore
from support.timers import Timers
from support.world import Clock, draft, entry, form, jid

COMPONENT = "jabber:component:accept"
NODE = "plans"
OWNER = "owner@people.example"
PUBLISHERS = ("feeds.a.example", "feeds.b.example", "feeds.c.example", "feeds.d.example")
_TURNS = 200  # of the event loop, in which nothing happens, before all is quiet


class Listener(NamedTuple):
    on_up: Callable[[], None]
    on_down: Callable[[], None]
    on_message: Callable[[etree._Element], None]


class Site:
    """One service with its mirrors, and the stream of its component."""

    def __init__(self, net: "Net", domain: str, store: Store) -> None:
        self.net = net
        self.domain = domain
        self.store = store
        self.clock = net.clock
        self.timers = Timers()
        self.up = True
        self.listeners: list[Listener] = []
        self.mirrors: Mirrors | None = None
        self.change = asyncio.Event()  # set at the next change
        self.numbers = itertools.count(1)
        self.waiting: dict[str, asyncio.Future[bytes]] = {}
        self.service = FeedService(
            store,
            Policy(domain),
            clock=net.clock,
            new_id=lambda: f"id-{next(self.numbers)}",
            on_change=self.changed,
            use_cases=all_use_cases(),
        )
        self.dispatcher = self._dispatcher()
        self.router = StanzaRouter(
            self.service,
            self.replied,
            ServiceInfo(domain=domain),
            self.service.use_cases,
            xmpp_side(),
            StanzaSide(follows=(lambda sender: self.mirrors is not None and self.mirrors.follows(sender),)),
            RouterTools(b"key"),
        )

    def _dispatcher(self) -> Dispatcher:
        dispatcher = Dispatcher(self.service, DeliveryTiming(self.clock, lambda: 0.0, self.timers))
        sender = PushSender(
            self.service,
            self,
            PushForms(lambda _node: b"", authorization_form),
            PushSide(),
            release=dispatcher.follow,
            clock=self.clock,
            max_age_s=3_600.0,
        )
        dispatcher.register(PUSH, ConsumerKind(sender, every_feed=True))
        return dispatcher

    def changed(self, node_nos: Any) -> None:
        self.change.set()
        self.change = asyncio.Event()
        self.dispatcher.wake(node_nos)
        if self.mirrors is not None:
            self.mirrors.wake(node_nos)

    # The wire.

    @property
    def online(self) -> bool:
        return True  # links between sites are cut, never the one to the server

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        """Sends events to other sites, in their order."""
        count = 0
        for stanza in stanzas:
            count += 1
            message = etree.fromstring(stanza)
            self.net.deliver(self.domain, message.get("to", ""), stanza)
        await asyncio.sleep(0)
        return count

    def replied(self, data: bytes) -> None:
        """An answer of our router goes to who asked, unless the link is cut by now."""
        reply = _in_stream(data)
        self.net.answer(self.domain, reply.get("to", ""), reply.get("id", ""), etree.tostring(reply))

    def listen(
        self, on_up: Callable[[], None], on_down: Callable[[], None], on_message: Callable[[etree._Element], None]
    ) -> Callable[[], None]:
        self.listeners.append(listener := Listener(on_up, on_down, on_message))
        if self.up:
            on_up()
        return lambda: self.listeners.remove(listener)

    async def call(self, kind: str, to: str, payload: bytes, _timeout_s: float) -> etree._Element:
        """A request to another site. Raises RequestTimeoutError where it gets no answer."""
        try:
            return etree.fromstring(await self._ask(kind, to, payload))
        except RequestError as error:
            text = f"<text xmlns='{STANZAS}'>{escape(error.text)}</text>"
            return etree.fromstring(
                f"<iq xmlns='{COMPONENT}' type='error'><error type='{error.kind}'>"
                f"<{error.condition} xmlns='{STANZAS}'/>{text}</error></iq>"
            )

    async def _ask(self, kind: str, to: str, payload: bytes) -> bytes:
        await asyncio.sleep(0)
        self.net.asked.append((self.domain, to, payload))
        if self.net.fault is not None and (error := self.net.fault(self.domain, to, payload)) is not None:
            raise error
        other = self.net.sites.get(to)
        if other is None or self.net.is_cut(self.domain, to):
            raise RequestError("remote-server-not-found", "cancel", "it cannot be reached")
        stanza_id = f"ask-{next(self.numbers)}"
        head = f"<iq xmlns='{COMPONENT}' type='{kind}' id='{stanza_id}' from='{self.domain}' to='{to}'>"
        answer = self.waiting[stanza_id] = asyncio.get_running_loop().create_future()
        try:
            assert other.router.on_stanza(etree.fromstring(head.encode() + payload + b"</iq>"))
            return await answer
        finally:
            del self.waiting[stanza_id]

    # Running.

    async def start(self) -> None:
        """Comes up, its mirrors with it."""
        await self.store.open()
        await self.dispatcher.resume(PUSH)
        tools = SourceTools(self.clock, self.timers.sleep, lambda: 0.0, self.timers, at_once)
        wires = MirrorConnections(
            lambda: StreamLink(self, 30.0),
            ItemPublisher(StreamLink(self, 30.0).publish, limit_bytes=200_000),
            self.net.fetch,
            self.net.fetch,
            hubs=self.net.hubs,
        )
        self.mirrors = Mirrors(self.service, self.net.configured.get(self.domain, ()), wires, tools, self.dispatcher)
        await self.mirrors.start()

    async def stop(self) -> None:
        """An orderly end; what others send meanwhile is lost."""
        if self.mirrors is not None:
            await self.mirrors.stop()
            self.mirrors = None
        await self.dispatcher.stop()
        self.dispatcher = self._dispatcher()
        await self.router.drain()
        await self.store.close()

    # What tests do and look at.

    async def create(self, *publishers: str, **options: str) -> None:
        """Makes the node, to which these sites may publish."""
        request = CreateNode(jid(OWNER), self.domain, NODE, form(kind="feed", **options))
        await self.service.handle(request)
        for name in publishers:
            request = SetAffiliations(jid(OWNER), self.domain, NODE, ((name, "publisher"),))
            await self.service.handle(request)

    async def publish(self, item_id: str, title: str = "", *, payload: str = "") -> None:
        """Publishes an entry here."""
        await self.service.handle(self.publish_request(item_id, payload or entry(title or item_id)))

    def publish_request(self, item_id: str, payload: str, actor: str = OWNER) -> Publish:
        """The request to publish an entry here."""
        return Publish(jid(actor), self.domain, NODE, item_id, draft(payload))

    async def retract(self, item_id: str) -> None:
        await self.service.handle(self.retract_request(item_id))

    def retract_request(self, item_id: str, actor: str = OWNER) -> Retract:
        return Retract(jid(actor), self.domain, NODE, item_id)

    async def configure(self, **options: str) -> None:
        """Changes options of the node."""
        await self.service.handle(Configure(jid(OWNER), self.domain, NODE, form(**options)))

    async def versions(self, item_id: str) -> list[Version]:
        """Every version of an item, the winner first."""
        return await self.service.read(partial(versions_of, item_id=item_id))

    async def edit(self, item_id: str, request: Publish | Retract | ResolveConflicts) -> list[list[Version]]:
        """Every version of an item just before a request and just after it."""

        def work(tx: Any, context: Any) -> list[list[Version]]:
            before = versions_of(tx, context, item_id)
            _, use_case = self.service.use_cases.writes[type(request)]
            use_case(tx, context, request)
            return [before, versions_of(tx, context, item_id)]

        return await self.service.write(work)

    async def mirror(self, other: "Site | str", direction: str = "in", **settings: Any) -> Mirror:
        """Adds a mirror of a node elsewhere, as the command line does."""
        address = other if isinstance(other, str) else f"xmpp:{other.domain}?;node={NODE}"
        mirror = make_mirror(node=NODE, address=address, direction=direction, owner=OWNER, **settings)
        await self.service.write(partial(add_mirror, mirror=mirror))
        if self.mirrors is not None:
            await self.mirrors.look()
        return mirror

    async def items(self) -> list[Item]:
        """All items of the node, tombstones too, with their sync data whole."""
        return await self.service.read(_items)

    async def shown(self) -> dict[str, tuple[bytes, bytes, bool, int]]:
        """The state that must be equal everywhere in the end: content, sync data, deleted, conflicts, by id."""
        return {item.id: (item.payload, item.sync, item.deleted, item.conflicts) for item in await self.items()}

    async def titles(self) -> dict[str, str]:
        """The titles of the items that are there, by id."""
        titles = {}
        for item in await self.items():
            if not item.deleted:
                titles[item.id] = etree.fromstring(item.payload).findtext("{http://www.w3.org/2005/Atom}title", "")
        return titles

    async def status(self) -> MirrorStatus:
        """The one mirror's, as the store has it."""
        (status,) = await self.statuses()
        return status

    async def statuses(self) -> list[MirrorStatus]:
        """All mirrors', as the store has them."""
        for run in self.mirrors.runs.values() if self.mirrors is not None else ():
            for part in run.directions:
                await part.state_store.settle()
        await self.dispatcher.save_marks()
        return await self.service.read(mirror_statuses)

    async def state(self, direction: Direction = Direction.IN) -> MirrorState:
        """The state of a direction of the one mirror."""
        return next(standing.state for standing in (await self.status()).standings if standing.direction is direction)


def twin(name: str, title: str, updates: int = 1) -> str:
    """A version that two databases have made under one endpoint, as after a restore of a backup."""
    history = "".join(
        f"<history sequence='{number}' when='2026-01-01T00:00:0{number}Z' by='urn:shared'/>"
        for number in range(updates, 0, -1)
    )
    data = f"<sync xmlns='http://feedsync.org/2007/feedsync' id='{name}' updates='{updates}'>{history}</sync>"
    return entry(title, inner=data)


def _items(tx: Any, context: Any) -> list[Item]:
    node = tx.node(NODE)
    items = tx.slice(node.node_no, Slice(SHARED, 100_000)) if node is not None else []
    return [item._replace(sync=sync_of(context, node, item)) for item in items]


def versions_of(tx: Any, context: Any, item_id: str) -> list[Version]:
    """Every version of an item, the winner first; none where there is no such item."""
    node = tx.node(NODE)
    item = tx.item(node.node_no, item_id)
    if item is None:
        return []
    version = read_shared(context, node, item).version
    return [version._replace(conflicts=()), *version.conflicts]


class Net:
    """The sites, and what is between them.

    `cut` holds pairs of domains that cannot reach each other; `lose` says of an event whether it is lost; `fault` may
    refuse a request. `asked` are the requests between sites, `events` counts what was delivered. A component's stream
    cuts down what is above `limit_bytes`, escaped as servers escape.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.sites: dict[str, Site] = {}
        self.cut: set[frozenset[str]] = set()
        self.lose: Callable[[str, str], bool] = lambda _sender, _to: False
        self.fault: Callable[[str, str, bytes], Exception | None] | None = None
        self.asked: list[tuple[str, str, bytes]] = []
        self.events = 0
        self.limit_bytes = STANZA_LIMIT_BYTES
        self.fetch: Any = None
        self.hubs = OwnCallbacks()
        self.configured: dict[str, list[Mirror]] = {}

    async def add(self, letter: str, store: Store | None = None) -> Site:
        """A running site feeds.LETTER.example."""
        domain = f"feeds.{letter}.example"
        site = self.sites[domain] = Site(self, domain, store or SqliteMemoryStore())
        await site.start()
        return site

    async def close(self) -> None:
        for site in list(self.sites.values()):
            await site.stop()

    def is_cut(self, one: str, other: str) -> bool:
        return frozenset({one, other}) in self.cut or not self.sites[other].up

    def part(self, one: Site, other: Site) -> None:
        """Cuts a link."""
        self.cut.add(frozenset({one.domain, other.domain}))

    def heal(self) -> None:
        """All links work again."""
        self.cut.clear()

    def deliver(self, sender: str, to: str, stanza: bytes) -> None:
        site = self.sites.get(to)
        if site is None or self.is_cut(sender, to) or self.lose(sender, to):
            return
        message = _in_stream(self._within_limit(stanza))
        # As the real stream does: what the router takes never reaches a follower.
        if site.router.on_stanza(message):
            return
        self.events += 1
        for listener in list(site.listeners):
            listener.on_message(message)

    def answer(self, sender: str, to: str, stanza_id: str, data: bytes) -> None:
        site = self.sites.get(to)
        future = site.waiting.get(stanza_id) if site is not None else None
        if future is None or future.done():
            return
        if self.is_cut(sender, to):
            future.set_exception(RequestTimeoutError(f"{sender} did not answer"))
        else:
            future.set_result(self._within_limit(data))

    def _within_limit(self, stanza: bytes) -> bytes:
        size_bytes = len(stanza) + stanza.count(b'"') * (len(b"&quot;") - 1)
        return stanza if size_bytes <= self.limit_bytes else cut_down(stanza, TOO_LONG)

    async def settle(self) -> None:
        """Waits until nothing moves any more: no request, no event, no write of a mirror's state."""
        quiet, before = 0, None
        stores = [site.service.store for site in self.sites.values()]
        threaded = [store for store in stores if not isinstance(store, SqliteMemoryStore)]
        while quiet < _TURNS:
            await asyncio.sleep(0)
            for store in threaded:  # a loop that only turns would keep the lock from the threads of a store
                await store.write(_nothing)
            busy = bool(threaded) and any(map(_works, asyncio.all_tasks()))
            works = [store.works for store in stores if isinstance(store, SqliteMemoryStore)]
            now = (len(self.asked), self.events, [len(site.waiting) for site in self.sites.values()], works)
            quiet = quiet + 1 if now == before and not busy and not any(now[2]) else 0
            before = now
        for site in self.sites.values():
            await site.dispatcher.idle()

    async def settle_all(self, rounds: int = 8) -> None:
        """Settles, and lets all that waits for a time have it, until nothing comes of it."""
        for _ in range(rounds):
            await self.settle()
            for site in self.sites.values():
                site.timers.fire()
        await self.settle()


def _in_stream(stanza: bytes) -> etree._Element:
    """A stanza as it stands in a component's stream, where its namespace is declared."""
    return etree.fromstring(f"<stream xmlns='{COMPONENT}'>".encode() + stanza + b"</stream>")[0]


def _nothing(tx: WriteTx) -> None:
    """A transaction behind all that wait in the store."""


def _works(task: "asyncio.Task[Any]") -> bool:
    """Whether a task waits for a thread, which no turn of the loop brings forward."""
    return task.get_name().endswith(" state")

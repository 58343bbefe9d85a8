"""The component below the wire: service and pushes over a store, a clock and ids of our own, and a wire that records.

A test says what happens in short words (`publish`, `retract`, `pull`, `subscribe`) and looks at pages and events.
"""

import asyncio
import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar
from xml.sax.saxutils import escape

from lxml import etree

from smartfeeds.app.opening import all_use_cases
from smartfeeds.core.consumers import PUSH
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import KIND, FormFields
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.position import SPAN
from smartfeeds.delivery.deliverer import ConsumerKind
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import Condition, FeedError, LinkError
from smartfeeds.formats.atom import FEEDSYNC_NS, OWN_NS, THREAD_NS, read_traits
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from smartfeeds.push.sender import PushForms, PushSender
from smartfeeds.push.side import PushSide
from smartfeeds.service.context import Context, Policy, check_admitted
from smartfeeds.service.drafts import PayloadDraft, draft_of
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import (
    Answer,
    Configure,
    CreateNode,
    DeleteNode,
    NodeCreated,
    OrderBy,
    Page,
    Publish,
    Published,
    Pull,
    Purge,
    Request,
    Retract,
    SetAffiliations,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from smartfeeds.service.steps import IndexFirst, MoreSteps, WriteStep
from smartfeeds.store import migrate
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.xmpp.authorization import authorization_form

T = TypeVar("T")
W = TypeVar("W", bound="World")

T0_US = 1_304_942_400_000_000
S = 1_000_000
SERVICE = "feeds.example.org"
OWNER, ALICE, BOB = "owner@example.org", "alice@example.org", "bob@example.org"
FEED = "comments"
MODIFIED, CREATED = "comments?order=modified", "comments?order=created"
ATOM_NS = "http://www.w3.org/2005/Atom"
_NS = {
    "e": "http://jabber.org/protocol/pubsub#event",
    "s": "http://jabber.org/protocol/shim",
    "sx": FEEDSYNC_NS,
    "a": ATOM_NS,
    "o": OWN_NS,
    "x": "jabber:x:data",
}


@dataclass(slots=True)
class Clock:
    """Microseconds that only a test moves."""

    now_us: int = T0_US

    def __call__(self) -> int:
        return self.now_us

    def move(self, seconds: float) -> None:
        """Forwards, or backwards where negative."""
        self.now_us += int(seconds * S)


@dataclass(slots=True)
class Wire:
    """Keeps what was sent. `up` False: there is no link. `gate` holds every write until it is set."""

    sent: list[bytes] = field(default_factory=list)
    writes: int = 0
    up: bool = True
    gate: asyncio.Event | None = None
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def online(self) -> bool:
        return self.up

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        stanzas = list(stanzas)
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        await asyncio.sleep(0)
        if not self.up:
            raise LinkError("down")
        self.sent += stanzas
        self.writes += 1
        return len(stanzas)


@dataclass(frozen=True, slots=True)
class Event:
    """One notification, read. `kind` is item, retract, purge, delete, configuration, subscription or request."""

    to: str
    node: str
    kind: str
    item_id: str
    total: int | None
    previous: str | None
    last: str | None
    deleted: bool
    text: str
    xml: etree._Element
    left: bool = False

    @property
    def short(self) -> str:
        """`+a` for an item, `-a` for a deletion however it is told, `~a` where it left the view, else the kind."""
        if self.kind not in ("item", "retract"):
            return self.kind
        if self.left:
            return f"~{self.item_id}"
        return ("-" if self.deleted or self.kind == "retract" else "+") + self.item_id


def read_event(stanza: bytes) -> Event:
    """The event in a stanza; asserts what holds for each of them."""
    message = etree.fromstring(stanza)
    field = message.find("x:x/x:field[@var='pubsub#node']/x:value", _NS)
    if field is not None:
        return Event(message.get("to", ""), field.text or "", "request", "", None, None, None, False, "", message)
    event = message.find("e:event", _NS)
    assert event is not None and len(event) == 1
    child = event[0]
    kind = etree.QName(child).localname
    item_id = ""
    if kind == "items":
        assert len(child) == 1, "one item a message"
        kind, item_id = etree.QName(child[0]).localname, child[0].get("id", "")
    headers = [(h.get("name", ""), h.text) for h in message.iterfind("s:headers/s:header", _NS)]
    assert len(dict(headers)) == len(headers)
    if headers:
        assert etree.QName(message[-1]).localname == "headers"
    fields = dict(headers)
    total = fields.get("TotalItems")
    return Event(
        to=message.get("to", ""),
        node=child.get("node", ""),
        kind=kind,
        item_id=item_id,
        total=None if total is None else int(total),
        previous=fields.get("PreviousCursor"),
        last=fields.get("LastCursor"),
        deleted=event.find(".//sx:sync[@deleted='true']", _NS) is not None,
        text=event.findtext(".//a:title", "", _NS),
        xml=message,
        left=event.find(".//o:left", _NS) is not None,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as a client sees it."""

    ids: str
    first: str | None
    last: str | None
    index: int | None
    count: int | None
    items: tuple[Item, ...]

    @property
    def short(self) -> str:
        """The items as `Event.short` has them."""
        return " ".join(("~" if item.left else "-" if item.deleted else "+") + item.id for item in self.items)

    @property
    def told(self) -> bool:
        """Whether there was a result set at all."""
        return self.count is not None


def entry(
    title: str = "",
    *,
    author: str = "",
    category: str = "",
    reply_to: str = "",
    content: str = "",
    deleted: bool = False,
    inner: str = "",
    lang: str = "",
) -> str:
    """An Atom entry."""
    parts = [f"<title>{escape(title)}</title>"]
    if author:
        parts.append(f"<author><name>{escape(author)}</name></author>")
    if category:
        parts.append(f"<category term='{escape(category)}'/>")
    if reply_to:
        parts.append(f"<in-reply-to xmlns='{THREAD_NS}' ref='{escape(reply_to)}'/>")
    if content:
        parts.append(f"<content>{escape(content)}</content>")
    if deleted:
        parts.append(f"<sync xmlns='{FEEDSYNC_NS}' deleted='true'/>")
    language = f" xml:lang='{lang}'" if lang else ""
    return f"<entry xmlns='{ATOM_NS}'{language}>{''.join(parts)}{inner}</entry>"


def draft(payload: str) -> PayloadDraft:
    """A payload as the border hands it over."""
    return draft_of(parse_payload(payload.encode()))


def jid(text: str) -> Jid:
    """An address that is known to be well formed."""
    address = parse_jid(text)
    assert address is not None
    return address


def form(**options: str | tuple[str, ...]) -> FormFields:
    """A form; underscores stay, `kind` is our own field."""
    return {
        KIND if name == "kind" else f"pubsub#{name}": (value,) if isinstance(value, str) else value
        for name, value in options.items()
    }


class World:
    """Everything below the wire. `wire.sent` fills while the dispatcher runs; `settle` waits until it is done."""

    kinds: tuple[str, ...] = (PUSH,)  # of consumers

    def __init__(self, store: Store, policy: Policy | None = None, *, max_age_s: float = 3_600.0) -> None:
        self.store = store
        self.clock = Clock()
        self.wire = Wire()
        self.max_age_s = max_age_s
        self.ids = 0
        self.versions: Counter[tuple[str, str | None]] = Counter()
        self.service = FeedService(
            store,
            policy or Policy(SERVICE),
            clock=self.clock,
            new_id=self._new_id,
            on_change=lambda node_nos: self.dispatcher.wake(node_nos),
            use_cases=all_use_cases(),
        )
        self.dispatcher = self._dispatcher()

    def _new_id(self) -> str:
        self.ids += 1
        return f"id-{self.ids}"

    def _dispatcher(self) -> Dispatcher:
        dispatcher = Dispatcher(self.service, DeliveryTiming(self.clock, lambda: 0.0))
        self.sender = PushSender(
            self.service,
            self.wire,
            PushForms(
                lambda node: f"<x xmlns='jabber:x:data' type='result'><!--{node.name}--></x>".encode(),
                authorization_form,
            ),
            self.push_side(dispatcher),
            release=dispatcher.follow,
            clock=self.clock,
            max_age_s=self.max_age_s,
        )
        dispatcher.register(PUSH, ConsumerKind(self.sender, every_feed=True))
        return dispatcher

    def push_side(self, _dispatcher: Dispatcher) -> PushSide:
        """Returns the presence of recipients: unknown."""
        return PushSide()

    def set_policy(self, **changes: object) -> None:
        """Changes what the operator decided."""
        self.service.policy = replace(self.service.policy, **changes)  # type: ignore[arg-type]

    # Running.

    async def start(self) -> None:
        """The link comes up."""
        self.wire.up = True
        for kind in self.kinds:
            await self.dispatcher.resume(kind)

    async def cut(self) -> None:
        """The link goes down."""
        for kind in self.kinds:
            await self.dispatcher.pause(kind)

    async def stop(self) -> None:
        """An orderly end."""
        await self.dispatcher.stop()

    async def settle(self) -> None:
        """Waits until everything known has been sent."""
        await self.dispatcher.idle()

    async def step(self, work: WriteStep[T]) -> T | MoreSteps[T] | IndexFirst:
        """Runs the first step of a use case and nothing more, as a process that dies after it."""
        context = self.service.new_context()
        result = await self.store.write(lambda tx: work(tx, context))
        self.service._on_change(context.changed)
        return result

    def run(self, tx: WriteTx, context: Context, request: Request) -> object:
        """Runs the first step of a request for a node of users in a transaction, as the service does."""
        check_admitted(tx, context.policy, request.actor)
        _, function = {**self.service.use_cases.reads, **self.service.use_cases.writes}[type(request)]
        return function(tx, context, request=request)

    async def in_one_transaction(self, *requests: Request) -> list[str]:
        """Runs requests as those of a group that is committed at once. Returns `ok` or a condition for each."""

        def work(tx: WriteTx, context: Context) -> list[str]:
            outcomes = []
            for request in requests:
                try:
                    self.run(tx, context, request)
                except FeedError as error:
                    outcomes.append(error.condition.value)
                else:
                    outcomes.append("ok")
            return outcomes

        return await self.service.write(work)

    async def crash(self) -> None:
        """The process dies: whatever was not written is lost. Another one starts over the same store."""
        await self.cut()
        saver = self.dispatcher._saver
        if saver is not None:
            saver.cancel()
            await asyncio.gather(saver, return_exceptions=True)
        self.dispatcher = self._dispatcher()

    async def events(self, to: str = "", node: str = "") -> list[Event]:
        """Returns the events since the last call, optionally to one address or for one node."""
        await self.settle()
        events = [read_event(stanza) for stanza in self.wire.sent]
        self.wire.sent.clear()
        return [event for event in events if to in ("", event.to) and node in ("", event.node)]

    async def told(self, to: str = "", node: str = "") -> str:
        """The events since the last look in one line."""
        return " ".join(event.short for event in await self.events(to, node))

    # Requests.

    async def create(self, node: str | None = FEED, actor: str = OWNER, **options: str) -> str:
        """Makes a node; returns its name."""
        answer = await self.service.handle(CreateNode(jid(actor), SERVICE, node, form(**options) or None))
        assert isinstance(answer, NodeCreated)
        return answer.node

    async def publish(
        self,
        item_id: str | None = None,
        payload: str | None = None,
        *,
        node: str = FEED,
        actor: str = OWNER,
        options: FormFields | None = None,
        **parts: str,
    ) -> str:
        """Publishes an entry made of `parts` (its title is the id where none is given); returns the id.

        Without a payload every publish of an item is another version of it: the same one again is no change.
        """
        if payload is None:
            version = self.versions[node, item_id]
            self.versions[node, item_id] += 1
            inner = f"<rights>version {version}</rights>" if version else ""
            payload = entry(**{"title": item_id or "", "inner": inner, **parts})  # type: ignore[arg-type]
        answer = await self.service.handle(Publish(jid(actor), SERVICE, node, item_id, draft(payload), options))
        assert isinstance(answer, Published) and answer.node == node
        return answer.item_id

    async def publish_all(self, ids: str, *, node: str = FEED) -> None:
        """Publishes items. After each, a second passes."""
        for item_id in ids.split():
            await self.publish(item_id, node=node)
            self.clock.move(1.0)

    async def retract(self, item_id: str, *, node: str = FEED, actor: str = OWNER, notify: bool = False) -> None:
        await self.service.handle(Retract(jid(actor), SERVICE, node, item_id, notify))

    async def purge(self, *, node: str = FEED, actor: str = OWNER) -> None:
        await self.service.handle(Purge(jid(actor), SERVICE, node))

    async def delete(self, *, node: str = FEED, actor: str = OWNER) -> None:
        await self.service.handle(DeleteNode(jid(actor), SERVICE, node))

    async def configure(self, *, node: str = FEED, actor: str = OWNER, **options: str) -> None:
        await self.service.handle(Configure(jid(actor), SERVICE, node, form(**options)))

    async def affiliate(self, who: str, affiliation: str, *, node: str = FEED, actor: str = OWNER) -> Answer:
        return await self.service.handle(SetAffiliations(jid(actor), SERVICE, node, ((who, affiliation),)))

    async def subscribe(
        self, who: str = ALICE, node: str = MODIFIED, *, service: str = SERVICE, **options: str
    ) -> Subscribed:
        answer = await self.service.handle(Subscribe(jid(who), service, node, who, form(**options) or None))
        assert isinstance(answer, Subscribed)
        return answer

    async def unsubscribe(self, who: str = ALICE, node: str = MODIFIED) -> None:
        await self.service.handle(Unsubscribe(jid(who), SERVICE, node, who))

    async def pull(
        self,
        node: str = MODIFIED,
        *,
        actor: str = ALICE,
        ids: str = "",
        max_items: int | str | None = None,
        order_by: str = "",
        **rsm: int | str,
    ) -> Shown:
        """One page. `rsm` holds max, after, before, index; `order_by` is `creation` or `modification desc`."""
        page = ResultSetRequest(**{name: str(value) for name, value in rsm.items()}) if rsm else None
        orders = tuple(OrderBy(*_split_order(order)) for order in order_by.split(",") if order)
        limit = None if max_items is None else str(max_items)
        request = Pull(jid(actor), SERVICE, node, tuple(ids.split()), limit, page, orders)
        answer = await self.service.handle(request)
        assert isinstance(answer, Page) and answer.node == node
        return _shown(answer)

    async def ids_of(self, node: str = MODIFIED, *, actor: str = ALICE) -> str:
        """All ids of a view, as an honest pager sees them."""
        ids, page = [], await self.pull(node, actor=actor, max=500)
        while page.items:
            ids.append(page.ids)
            page = await self.pull(node, actor=actor, max=500, after=page.last or "")
        return " ".join(ids)

    async def node(self, name: str = FEED) -> Node:
        """A node as stored."""
        row = await self.store.read(lambda tx: tx.node(name))
        assert row is not None
        return row

    async def put(self, *items: tuple[str, int] | tuple[str, int, int], node: str = FEED) -> None:
        """Puts items (id, modified key, created key) into the store as they are, ties and all."""
        made = await self.node(node)
        last_us = max(item[1] for item in items)

        def work(tx: WriteTx) -> None:
            counts = {"total": made.total + len(items), "live": made.live + len(items)}
            for item_id, modified_us, *created in items:
                self.versions[node, item_id] += 1
                payload = accept_payload(parse_payload(entry(item_id).encode()))
                created_us = created[0] if created else modified_us
                tx.put_item(made.node_no, Item(0, item_id, created_us, modified_us, payload, OWNER, **counts))
            tx.set_keys(made.node_no, last_us, last_us)

        await self.store.write(work)


def _split_order(text: str) -> tuple[str, bool]:
    by, _, direction = text.partition(" ")
    return by, direction == "desc"


def _shown(page: Page) -> Shown:
    result_set = page.result_set
    ids = " ".join(item.id for item in page.items)
    if result_set is None:
        return Shown(ids, None, None, None, None, page.items)
    assert (result_set.first is None) == (result_set.last is None) == (not page.items)
    for uid in (result_set.first, result_set.last):
        assert uid is None or uid.startswith("cursor:")
    return Shown(ids, result_set.first, result_set.last, result_set.index, result_set.count, page.items)


async def refusal(doing: Awaitable[object]) -> Condition:
    """The condition that a request was refused with."""
    try:
        await doing
    except FeedError as error:
        return error.condition
    raise AssertionError("this was not refused")


def bare(uid: str | None) -> str:
    """A UID without its type."""
    assert uid is not None and uid.startswith("cursor:")
    return uid.removeprefix("cursor:")


def is_span(uid: str | None) -> bool:
    """Whether a UID names two edges."""
    return uid is not None and SPAN in uid


@contextlib.asynccontextmanager
async def running_world(store: Store, policy: Policy | None = None) -> AsyncIterator[World]:
    """A world that is online, and comes to an orderly end."""
    async with running(World(store, policy)) as world:
        yield world


@contextlib.asynccontextmanager
async def running(world: W) -> AsyncIterator[W]:
    """Runs a world."""
    await world.store.open()
    await world.start()
    try:
        yield world
    finally:
        await world.stop()
        await world.store.close()


def blank_database(path: Path) -> Path:
    """A database without nodes, to be copied: cheaper than to be made anew."""
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.prepare(connection, path)
    connection.close()
    return path


def sqlite_store(blank: Path, folder: Path) -> SqliteStore:
    """A new SQLite store."""
    shutil.copy(blank, folder / "feeds.db")
    return SqliteStore(folder / "feeds.db", read_traits)

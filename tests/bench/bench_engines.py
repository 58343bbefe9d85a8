"""SQLite beside PostgreSQL: the use cases of the service without its wires, one engine after the other."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from bench import fill, stanzas, targets
from bench.grids import WORKS_IN_FLIGHT
from bench.parts import Meter, Part, tree_cpu_s
from bench.rows import PART_NAMES
from bench.runs import Collector, fresh
from bench.work import Number, Numbers, Scale
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.context import Policy
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import CreateNode, GetNodes, Publish, Pull, Request, Subscribe
from smartfeeds.system import new_id, now_us
from support.postgres import PostgresServer, running_postgres

OPEN = {"pubsub#publish_model": ("open",), "pubsub#access_model": ("open",)}
SERVICE = targets.FEEDS
PUBLISHED, SUBSCRIBED = "engines-published", "engines-subscribed"
PROCESS, DATABASE, *_ = PART_NAMES


def measure(collect: Collector, folder: Path) -> None:
    """Both engines in turn, in each run."""
    with running_postgres(durable=True) as postgres:
        measure_on(postgres, collect, folder)


def measure_on(postgres: PostgresServer, collect: Collector, folder: Path) -> None:
    """The same on a server that runs already."""
    parts = Part(PROCESS, time.process_time, 1), Part(DATABASE, lambda: tree_cpu_s(postgres.process.pid))
    for run in range(collect.scale.runs):
        place = fresh(folder / str(run))
        url = postgres.create_database()
        for engine, address in {"sqlite": targets.sqlite_url(place / "feeds.db"), "postgres": url}.items():
            collect.take("ours", asyncio.run(_measure(address, engine, collect.scale, parts)))
        postgres.drop_database(url)


async def _measure(url: str, engine: str, scale: Scale, parts: tuple[Part, ...]) -> list[Number]:
    measured: list[Number] = []
    await fill.fill(url, scale.web_items, 0)
    async with open_service(url) as service:
        for work in works(scale):
            await prepare(service, work, scale)
            meter = Meter(parts)
            pace = await ask_all(service, work, scale.slice_s)
            measured += _numbers(f"{work.name}_{work.in_flight}", engine, pace, meter)
    return measured


def _numbers(row: str, engine: str, pace: "ServicePace", meter: Meter) -> Numbers:
    usage = meter.read()
    yield Number(f"engines_{row}_{engine}", pace.per_s, usage.limit)
    for part, used_us in usage.cpu_us(len(pace.taken_s)).items():
        yield Number(f"engines_{row}_{PART_NAMES[part]}_{engine}", used_us)


@asynccontextmanager
async def open_service(url: str) -> AsyncIterator[FeedService]:
    """The service on a filled database, with open nodes to publish and subscribe to."""
    policy = Policy(SERVICE, default_kind=NodeKind.FEED, nodes_per_jid=10**9)
    service = FeedService(fill.store_at(url), policy, clock=now_us, new_id=new_id, on_change=lambda _nodes: None)
    await service.store.open()
    try:
        for node in (PUBLISHED, SUBSCRIBED):
            await service.handle(CreateNode(_USERS[0], SERVICE, node, OPEN))
        yield service
    finally:
        await service.store.close()


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """An endless source of requests of one kind, of which `in_flight` are sent at a time."""

    name: str
    in_flight: int
    requests: Iterator[Request]


def works(scale: Scale) -> tuple[ServiceWork, ...]:
    """The requests of the benchmark."""
    numbers = itertools.count()
    draft = draft_of(etree.fromstring(stanzas.ENTRY % (1, 1)))
    size = scale.web_items

    def publish(number: int) -> Request:
        return Publish(_user(number), SERVICE, PUBLISHED, f"i{number}", draft)

    def page(number: int) -> Request:
        after = fill.cursor(number * 7_919 % max(1, size - 60))
        return Pull(_user(number), SERVICE, fill.node_name(size), page=ResultSetRequest(max="50", after=after))

    def subscribe(number: int) -> Request:
        user = _parsed(f"s{number}@{stanzas.DOMAIN}")
        return Subscribe(user, SERVICE, SUBSCRIBED, str(user))

    def create(number: int) -> Request:
        return CreateNode(_user(number), SERVICE, f"made-{number}", OPEN)

    def list_nodes(number: int) -> Request:
        return GetNodes(_user(number), SERVICE, ResultSetRequest(max="50"))

    makers = {"page": page, "create": create, "list": list_nodes, "subscribe": subscribe, "publish": publish}
    return tuple(
        ServiceWork(name, count, map(makers[name], numbers))
        for name, counts in WORKS_IN_FLIGHT.items()
        for count in counts
    )


@dataclass(frozen=True, slots=True)
class ServicePace:
    """How long each request took, and all of them together."""

    taken_s: list[float]
    seconds: float

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return len(self.taken_s) / self.seconds


async def prepare(service: FeedService, work: ServiceWork, scale: Scale) -> None:
    """Sends some requests, so that the connections have prepared their statements."""
    await ask_all(service, work, scale.slice_s / 5)


async def ask_all(service: FeedService, work: ServiceWork, seconds: float) -> ServicePace:
    """Sends requests for this long."""
    taken_s: list[float] = []
    began_s = time.perf_counter()

    async def ask() -> None:
        sent_s = time.perf_counter()
        while sent_s - began_s < seconds:
            await service.handle(next(work.requests))
            answered_s = time.perf_counter()
            taken_s.append(answered_s - sent_s)
            sent_s = answered_s

    await asyncio.gather(*(ask() for _ in range(work.in_flight)))
    return ServicePace(taken_s, time.perf_counter() - began_s)


def _parsed(text: str) -> Jid:
    jid = parse_jid(text)
    assert jid is not None
    return jid


_USERS = [_parsed(f"u{number}@{stanzas.DOMAIN}") for number in range(stanzas.USERS)]


def _user(number: int) -> Jid:
    return _USERS[number % stanzas.USERS]

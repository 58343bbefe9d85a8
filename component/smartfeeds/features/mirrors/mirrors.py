"""All mirrors of a running service.

The mirrors are rows of a table in the store, which is read again and again because the command line changes it, too.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from smartfeeds.client import stanzas
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.transport import FollowerLink
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.feed_address import FeedAddress
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.web_address import is_web
from smartfeeds.delivery.changes import log_failures_of
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition, Gone, Outcome
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.shards import shard_of_name
from smartfeeds.errors import LinkError
from smartfeeds.features.mirrors import mirror_state
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.metrics import MirrorReading
from smartfeeds.features.mirrors.mirror import CONSUMER_KIND, Direction, Mirror, MirrorRow
from smartfeeds.features.mirrors.mirror_http import MAX_BYTES, NO_HUBS, WebMirrorReader
from smartfeeds.features.mirrors.mirror_in import IncomingMirror, XmppMirrorReader
from smartfeeds.features.mirrors.mirror_out import ItemPublisher, MirrorOutlet
from smartfeeds.features.mirrors.mirror_peer import Peer, PeerMemory
from smartfeeds.features.mirrors.mirror_push import leave_hub
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.mirrors.statuses import consumer_of_mirror, set_configured
from smartfeeds.features.polling.push_states import OwnCallbacks
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.fetch import FetchLimits, HttpClient
from smartfeeds.service.feeds import FeedService

CONFIGURED: Final = "configured mirrors"  # the work that stores the mirrors of the configuration
# A whole feed may be long, and its server may hold a pull for a minute.
MIRROR_LIMITS: Final = FetchLimits(idle_s=90.0, total_s=300.0, max_bytes=MAX_BYTES)
# Outgoing mirrors of one service that send at a time. Each has up to ten items on their way (`mirror_out`).
HOST_AT_ONCE: Final = 8

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MirrorConnections:
    """The connections of mirrors to other services: a link to follow over, a publisher, and two HTTP clients.
    `fetch_private` also reaches private networks, for mirrors that may."""

    make_link: Callable[[], FollowerLink]
    publisher: ItemPublisher
    fetch: HttpClient
    fetch_private: HttpClient
    hubs: OwnCallbacks = NO_HUBS


class MirrorRun:
    """One mirror that runs: a task for its incoming direction, and an outlet that the delivery mechanism calls."""

    def __init__(
        self,
        row: MirrorRow,
        service: FeedService,
        connections: MirrorConnections,
        tools: SourceTools,
        peers: PeerMemory,
        delivery: Dispatcher,
    ) -> None:
        self.mirror = mirror = row.mirror
        self.is_dropped = False  # another process may run the mirror
        self.incoming: IncomingMirror | None = None
        self.outlet: MirrorOutlet | None = None
        # The feed that it follows over XMPP.
        self.followed = _followed(mirror)
        self._begun_us = tools.now_us()
        self._tools = tools

        def may_store() -> bool:
            return not self.is_dropped and delivery.ownership.is_current

        stores = {
            way: MirrorStateStore(service, mirror.name, way, row.state(way), tools, may_store)
            for way in mirror.direction.ways
        }
        if is_web(mirror.address):
            fetch = connections.fetch_private if mirror.allow_private else connections.fetch
            self.incoming = WebMirrorReader(mirror, service, fetch, stores[Direction.IN], tools, connections.hubs)
            return
        peer, reader = Peer(peers), None
        if Direction.IN in stores:
            # What comes is remembered for what is sent.
            seen = peer if Direction.OUT in stores else None
            self.incoming = reader = XmppMirrorReader(
                mirror, service, connections.make_link, stores[Direction.IN], seen, tools, self._send
            )
        if Direction.OUT in stores:
            on_recovery = reader.check if reader is not None else lambda: None
            self.outlet = MirrorOutlet(
                mirror, service, delivery, connections.publisher, stores[Direction.OUT], peer, on_recovery
            )

    @property
    def directions(self) -> list[IncomingMirror | MirrorOutlet]:
        """The directions that the mirror has, the incoming one first."""
        return [direction for direction in (self.incoming, self.outlet) if direction is not None]

    def is_old(self, row: MirrorRow) -> bool:
        """Whether the mirror has other settings by now, or is to begin anew."""
        stores = [direction.state_store for direction in self.directions]
        return row.mirror != self.mirror or any(
            row.state(store.direction).epoch != store.state.epoch for store in stores
        )

    def begin(self) -> None:
        """Starts the incoming direction. The outgoing one starts when its consumer is followed."""
        if self.incoming is not None:
            self.incoming.begin()

    async def end(self) -> None:
        """Ends both directions; their state is stored. Raises StoreError."""
        # The outgoing one first: `Mirrors` does not list this run any more, so a delivery would find no mirror for its
        # consumer and remove the mark.
        try:
            if self.outlet is not None:
                await self.outlet.end()
        finally:
            if self.incoming is not None:
                await self.incoming.end()

    def readings(self) -> list[MirrorReading]:
        """The readings of its directions."""
        return [self._reading(direction) for direction in self.directions]

    def _reading(self, direction: IncomingMirror | MirrorOutlet) -> MirrorReading:
        state, current = direction.state_store.state, direction.is_current
        way = direction.state_store.direction
        since_us = self._begun_us if direction.since_us is None else direction.since_us
        lag_s = 0.0 if current else max(0.0, (self._tools.now_us() - since_us) / US_PER_S)
        in_step = current and not state.refused
        return MirrorReading(self.mirror.name, way.value, lag_s, in_step, state.items, state.refused, state.conflicts)

    def _send(self) -> None:
        """Sends now: the other side can be reached again, as the incoming direction has found."""
        if self.outlet is not None:
            self.outlet.check()


def _followed(mirror: Mirror) -> FeedAddress | None:
    """Returns the feed that a mirror follows over XMPP, or None."""
    return mirror.feed if Direction.IN in mirror.direction.ways else None


class Mirrors:
    """Runs the mirrors of the store, and is the deliverer of their outgoing directions. `configured` are the mirrors of
    the configuration."""

    def __init__(
        self,
        service: FeedService,
        configured: Sequence[Mirror],
        connections: MirrorConnections,
        tools: SourceTools,
        delivery: Dispatcher,
    ) -> None:
        self.runs: dict[str, MirrorRun] = {}
        self._outlets: dict[Consumer, MirrorOutlet] = {}  # those whose node exists
        self.peers = PeerMemory()
        self._service = service
        self._configured = configured
        self._connections = connections
        self._tools = tools
        self._delivery = delivery
        self._followed: frozenset[str] = frozenset()
        self._differs = False  # whether another process has stored other mirrors of its configuration
        self._tasks: set[asyncio.Task[None]] = set()
        self._attaching: asyncio.Task[None] | None = None
        self._started = False
        self._stopped = False
        delivery.ownership.register(self)
        # Both directions of a mirror share their memory, and the feed of the incoming one may not exist yet.
        kind = ConsumerKind(self, host_at_once=HOST_AT_ONCE, backoff=mirror_state.BACKOFF, by_name=True)
        delivery.register(CONSUMER_KIND, kind)

    async def start(self) -> None:
        """Brings the store in line with the configuration, and begins. Raises StoreError, and ConfigError
        where the configuration cannot be."""
        self._started = True
        if self._delivery.ownership.owns_name(CONFIGURED):
            await self._store_configured()
        await self.resume()
        await self.look()

    async def begin(self, shards: frozenset[int]) -> None:
        """Starts the mirrors of shards that this process owns now. Raises StoreError, ConfigError."""
        if not self._started:
            return  # `start` does it
        if shard_of_name(CONFIGURED) in shards:
            await self._store_configured()
        await self.look()

    async def end(self, shards: frozenset[int]) -> None:
        """Ends the mirrors of shards; their state is stored. Their subscriptions stay, for the next process."""
        await asyncio.gather(*(log_failures_of(run.end) for run in self._remove(shards)))

    def drop(self, shards: frozenset[int]) -> None:
        """Ends the mirrors of shards, and stores nothing: another process may run them already."""
        for run in self._remove(shards):
            run.is_dropped = True
            self._spawn(log_failures_of(run.end), f"mirror {run.mirror.name} dropped")

    def _remove(self, shards: frozenset[int]) -> list[MirrorRun]:
        """Returns the runs of shards, which are not listed any more."""
        runs = [run for run in self.runs.values() if shard_of_name(run.mirror.consumer_name) in shards]
        for run in runs:
            self._forget(run)
        return runs

    def _forget(self, run: MirrorRun) -> None:
        del self.runs[run.mirror.name]
        if run.outlet is not None and run.outlet.consumer is not None:
            self._outlets.pop(run.outlet.consumer, None)

    async def _store_configured(self) -> None:
        await self._service.write(lambda tx, context: set_configured(tx, context, self._configured))

    async def resume(self) -> None:
        """Starts the outgoing deliveries that the end of our link has interrupted. Raises StoreError."""
        if not self._stopped:
            await self._delivery.resume(CONSUMER_KIND)

    async def look(self) -> None:
        """Starts mirrors that are new in the store, ends those that were removed. Raises StoreError."""
        if self._stopped:
            return  # the end of a service takes seconds, in which the look at the store goes on
        rows = {
            row.mirror.name: row for row in await self._service.read(lambda tx, _context: stored_mirrors.mirrors(tx))
        }
        self._compare(rows.values())
        for run in self.runs.values():
            if isinstance(run.incoming, WebMirrorReader):
                await run.incoming.look_for_push()
        owns = self._delivery.ownership.owns_name
        ended: list[Mirror] = []
        for name, run in list(self.runs.items()):
            row = rows.get(name)
            if row is None or run.is_old(row):
                self._forget(run)
                ended.append(run.mirror)
                # The others must go on although this one fails.
                await log_failures_of(run.end)
        for name, row in rows.items():
            if name not in self.runs and owns(row.mirror.consumer_name):
                run = self.runs[name] = MirrorRun(
                    row, self._service, self._connections, self._tools, self.peers, self._delivery
                )
                run.begin()
        # Those of other processes, too: the server may send their events to this process.
        self._followed = frozenset(feed.service for row in rows.values() if (feed := _followed(row.mirror)) is not None)
        # After the new runs have begun: a mirror that begins anew keeps its subscription.
        for mirror in ended:
            self._leave(mirror)
        await self._attach()

    def _compare(self, rows: Iterable[MirrorRow]) -> None:
        """Logs once that another process has another configuration: only that of the owner of the shard is stored."""
        stored = {row.mirror for row in rows if row.configured}
        differs = stored != set(self._configured)
        if differs and not self._differs:
            names = [sorted(mirror.name for mirror in mirrors) for mirrors in (stored, self._configured)]
            _log.warning("mirrors_differ", stored=names[0], configured=names[1])
        self._differs = differs

    def wake(self, _node_nos: Collection[int]) -> None:
        """Nodes have changed: one of them may be new, and the node of a mirror."""
        if self._detached() and (self._attaching is None or self._attaching.done()):
            self._attaching = self._spawn(log_failures_of(self._attach), "mirrors attach")

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next items of the mirror that a consumer is of. Raises LinkError, StoreError."""
        if self._stopped:
            # The outlets are gone, but the mirrors are not: their marks must stay. `resume` may have come in between.
            raise LinkError("the service ends")
        outlet = self._outlets.get(consumer)
        if outlet is None and not self._delivery.owns(consumer):
            raise LinkError("another process runs the mirror")
        outcome = await outlet.deliver(consumer, position) if outlet is not None else Gone("the mirror was removed")
        if isinstance(outcome, Gone):
            self._outlets.pop(consumer, None)
        return outcome

    def host(self, consumer: Consumer) -> str:
        """The service that a mirror publishes to: `xmpp:SERVICE?;node=NODE`."""
        return consumer.target.removeprefix("xmpp:").partition("?")[0]

    def readings(self) -> tuple[MirrorReading, ...]:
        """The readings of all mirrors, for the metrics."""
        return tuple(reading for run in self.runs.values() for reading in run.readings())

    def follows(self, jid: str) -> bool:
        """Whether events of this bare JID may be for a mirror."""
        return jid in self._followed

    def _detached(self) -> list[MirrorOutlet]:
        """The outlets whose node was not there when it was last looked for."""
        return [run.outlet for run in self.runs.values() if run.outlet is not None and run.outlet.consumer is None]

    async def _attach(self) -> None:
        """Makes consumers of the outlets whose node exists by now. Raises StoreError."""
        detached = self._detached()
        names = {outlet.mirror.node for outlet in detached}
        there = await self._service.read(lambda tx, _context: {name for name in names if tx.node(name) is not None})
        for outlet in [outlet for outlet in detached if outlet.mirror.node in there]:
            consumer = await self._service.write(
                partial(consumer_of_mirror, mirror=outlet.mirror, epoch=outlet.state_store.state.epoch)
            )
            # `look` may have ended the mirror since the snapshot: nothing would end its deliveries then.
            if consumer is not None and any(run.outlet is outlet for run in self.runs.values()):
                outlet.consumer = consumer
                self._outlets[consumer] = outlet
                self._delivery.follow(consumer)

    def _leave(self, mirror: Mirror) -> None:
        """Ends the subscription of a mirror that is there no more, unless another one has the same."""
        feed = mirror.feed
        if feed is None:
            self._spawn(log_failures_of(partial(self._leave_hub, mirror)), f"mirror {mirror.name} leaves")
            return
        if Direction.IN not in mirror.direction.ways:
            return
        if all(run.followed != feed for run in self.runs.values()):
            self._spawn(self._unsubscribe(feed), f"mirror {mirror.name} leaves")

    async def _leave_hub(self, mirror: Mirror) -> None:
        if mirror.name not in self.runs:
            await self._service.write(partial(leave_hub, mirror=mirror.name))

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _unsubscribe(self, feed: FeedAddress) -> None:
        link = self._connections.make_link()
        try:
            await link.ask("set", feed.service, stanzas.request("unsubscribe", node=feed.node, jid=link.subscriber))
        except (RequestError, RequestTimeoutError) as error:
            _log.warning("mirror_not_unsubscribed", address=str(feed), reason=str(error))

    async def stop(self) -> None:
        """Ends all of them; their subscriptions stay, so that the next start finds pushes waiting."""
        self._stopped = True
        await self._delivery.pause(CONSUMER_KIND)
        runs = list(self.runs.values())
        self.runs.clear()
        self._outlets.clear()
        self._followed = frozenset()
        await asyncio.gather(*(log_failures_of(run.end) for run in runs))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

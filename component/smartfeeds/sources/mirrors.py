"""All mirrors of a running service: begun, ended, and told of what is written here.

The table in the store says which there are; it is looked at again and again, because the command line changes it too.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import structlog

from smartfeeds.client import stanzas
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.transport import FollowerLink
from smartfeeds.core.feed_address import FeedAddress
from smartfeeds.core.mirror import Direction, Mirror, MirrorRow, is_web
from smartfeeds.core.times import US_PER_S
from smartfeeds.net.fetch import HttpClient
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.mirrors import set_configured
from smartfeeds.sources.mirror_http import WebMirrorReader
from smartfeeds.sources.mirror_in import XmppMirrorReader
from smartfeeds.sources.mirror_out import Outlet, Publish
from smartfeeds.sources.mirror_peer import Peers
from smartfeeds.sources.mirror_state import Keeper, Tools
from smartfeeds.telemetry import MirrorReading

Part = XmppMirrorReader | Outlet | WebMirrorReader

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wires:
    """How mirrors reach others: a link to follow over, what publishes, and what fetches from anywhere or, for those
    that may, from private networks too. `limit_bytes` is the longest payload that may be published."""

    make_link: Callable[[], FollowerLink]
    publish: Publish
    fetch: HttpClient
    fetch_private: HttpClient
    limit_bytes: int


class Run:
    """One mirror that runs: a task for each of its directions."""

    def __init__(self, row: MirrorRow, service: FeedService, wires: Wires, tools: Tools, peers: Peers) -> None:
        self.mirror = mirror = row.mirror
        self.begun_us = tools.now_us()
        self._tools = tools
        self.parts: dict[Direction, Part] = {}
        # The feed that it follows over XMPP.
        self.followed = mirror.feed if Direction.IN in mirror.direction.halves else None
        peer = peers.new()
        # What comes is remembered for what is sent.
        seen = peer if mirror.direction is Direction.BOTH else None

        def keeper(way: Direction) -> Keeper:
            return Keeper(service, mirror.name, way, row.half(way), tools.now_us)

        for way in mirror.direction.halves:
            if is_web(mirror.address):
                fetch = wires.fetch_private if mirror.allow_private else wires.fetch
                self.parts[way] = WebMirrorReader(mirror, service, fetch, keeper(way), tools)
            elif way is Direction.IN:
                self.parts[way] = XmppMirrorReader(
                    mirror, service, wires.make_link, keeper(way), seen, tools, lambda: self._check(Direction.OUT)
                )
            else:
                self.parts[way] = Outlet(
                    mirror,
                    service,
                    wires.publish,
                    keeper(way),
                    peer,
                    tools,
                    wires.limit_bytes,
                    lambda: self._check(Direction.IN),
                )
        self._tasks: list[asyncio.Task[None]] = []

    def is_old(self, row: MirrorRow) -> bool:
        """Whether the mirror has other settings by now, or is to begin anew."""
        return row.mirror != self.mirror or any(
            row.half(way).epoch != part.keeper.half.epoch for way, part in self.parts.items()
        )

    def begin(self) -> None:
        """Starts the tasks."""
        loop = asyncio.get_running_loop()
        for way, part in self.parts.items():
            self._tasks.append(loop.create_task(part.run(), name=f"mirror {self.mirror.name} {way.value}"))

    async def end(self) -> None:
        """Ends them; what they came to is kept."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in self.parts.values():
            await part.keeper.settle()

    def wake(self, node_nos: Collection[int] | None) -> None:
        """Something was written to these nodes, or to any of them."""
        outlet = self.parts.get(Direction.OUT)
        if isinstance(outlet, Outlet) and (node_nos is None or outlet.node_no in (None, *node_nos)):
            outlet.wake()

    def readings(self) -> list[MirrorReading]:
        """How its directions are doing."""
        return [
            MirrorReading(
                self.mirror.name,
                way.value,
                self.lag_s(way),
                self.is_current(way) and not part.keeper.half.refused,
                part.keeper.half.items,
                part.keeper.half.refused,
                part.keeper.half.conflicts,
            )
            for way, part in self.parts.items()
        ]

    def is_current(self, way: Direction) -> bool:
        """Whether nothing waits, and nothing fails."""
        part = self.parts[way]
        return part.in_step and part.keeper.half.failed_us is None

    def lag_s(self, way: Direction) -> float:
        """For how long something has been waiting or failing, in seconds; 0 where nothing is."""
        if self.is_current(way):
            return 0.0
        part = self.parts[way]
        half = part.keeper.half
        since_us = (part.behind_since_us or half.failed_us) if isinstance(part, Outlet) else half.in_step_us
        return max(0.0, (self._tools.now_us() - (self.begun_us if since_us is None else since_us)) / US_PER_S)

    def _check(self, way: Direction) -> None:
        """The other side can be reached again, as the other direction has found."""
        part = self.parts.get(way)
        if part is not None:
            part.check()


class Mirrors:
    """Runs the mirrors of the store. `configured` are those of the configuration."""

    def __init__(self, service: FeedService, configured: Sequence[Mirror], wires: Wires, tools: Tools) -> None:
        self.runs: dict[str, Run] = {}
        self._service = service
        self._configured = configured
        self._wires = wires
        self._tools = tools
        self.peers = Peers()
        self._followed: frozenset[str] = frozenset()
        self._gone: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Brings the store in line with the configuration, and begins. Raises StoreError, and ConfigError
        where the configuration cannot be."""
        await self._service.write(lambda tx, context: set_configured(tx, context, self._configured))
        await self.look()

    async def look(self) -> None:
        """Begins what is new in the store, ends what is there no more. Raises StoreError."""
        rows = {row.mirror.name: row for row in await self._service.read(lambda tx, _context: tx.mirrors())}
        ended: list[Mirror] = []
        for name, run in list(self.runs.items()):
            row = rows.get(name)
            if row is None or run.is_old(row):
                del self.runs[name]
                await run.end()
                ended.append(run.mirror)
        for name, row in rows.items():
            if name not in self.runs:
                run = self.runs[name] = Run(row, self._service, self._wires, self._tools, self.peers)
                run.begin()
        self._followed = frozenset(run.followed.service for run in self.runs.values() if run.followed is not None)
        for mirror in ended:
            self._leave(mirror)
        self.wake(None)

    def wake(self, node_nos: Collection[int] | None) -> None:
        """Something was written to these nodes; None: perhaps, to any of them."""
        for run in self.runs.values():
            run.wake(node_nos)

    def readings(self) -> tuple[MirrorReading, ...]:
        """How all of them are doing, for the metrics."""
        return tuple(reading for run in self.runs.values() for reading in run.readings())

    def follows(self, jid: str) -> bool:
        """Whether events of this bare JID may be for a mirror."""
        return jid in self._followed

    def _leave(self, mirror: Mirror) -> None:
        """Ends the subscription of a mirror that is there no more, unless another one has the same."""
        feed = mirror.feed
        if feed is None or Direction.IN not in mirror.direction.halves:
            return
        if all(run.followed != feed for run in self.runs.values()):
            task = asyncio.get_running_loop().create_task(self._unsubscribe(feed), name=f"mirror {mirror.name} leaves")
            self._gone.add(task)
            task.add_done_callback(self._gone.discard)

    async def _unsubscribe(self, feed: FeedAddress) -> None:
        link = self._wires.make_link()
        try:
            await link.ask("set", feed.service, stanzas.unsubscribe(feed.node, link.subscriber))
        except (RequestError, RequestTimeoutError) as error:
            _log.warning("mirror_not_unsubscribed", address=str(feed), reason=str(error))

    async def stop(self) -> None:
        """Ends all of them; their subscriptions stay, so that the next start finds pushes waiting."""
        runs = list(self.runs.values())
        self.runs.clear()
        self._followed = frozenset()
        await asyncio.gather(*(run.end() for run in runs))
        for task in self._gone:
            task.cancel()
        await asyncio.gather(*self._gone, return_exceptions=True)

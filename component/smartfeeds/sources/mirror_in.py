"""The incoming direction of a mirror over XMPP: the public follower, whose changes are merged into the node.

The follower proves that nothing is missing: what was not pushed is pulled. Its position is kept in the transaction
that takes its changes over, so after a crash it goes on where the node is. An item that is refused is told in the
state and holds up nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

import structlog

from smartfeeds.client.change import Change
from smartfeeds.client.errors import NodeMissingError, RefusedError
from smartfeeds.client.follow import Follower, Proof, Timers
from smartfeeds.client.transport import Link
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.mirror import Half, Mirror, Refusal, refusal
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError, SmartfeedsError
from smartfeeds.formats.atom import FEED
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import Incoming, Result, merge_items
from smartfeeds.service.nodes import add_node
from smartfeeds.service.publishing import FEED_METADATA_ID
from smartfeeds.sources.mirror_state import Keeper, Peer, pause_of
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.writing import write_sync

T = TypeVar("T")

BATCH: Final = 100  # changes that one transaction takes over
PAGE_ITEMS: Final = 100
REMEMBER: Final = 2_000  # versions; one that comes again and is forgotten merges to what is there
_AT_ONCE: Final = 5  # changes that are read on the event loop; more take long enough to hold up others
NO_SYNC: Final = "it came without sync data: the other side is no smartfeeds that keeps them"
BROKEN: Final = "a fault of this program, which the log tells more about"

_log = structlog.get_logger()


class Aside(Protocol):
    """What runs a long function where it holds up nobody."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """The result of the function with these arguments."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What mirrors need of their surroundings.

    `now_us` gives microseconds since the Unix epoch, `spread` a random number in 0..1; `sleep` waits for seconds.
    `timers` are those of the event loop where they are None; `aside` runs a function beside the event loop.
    """

    now_us: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    spread: Callable[[], float]
    timers: Timers | None = None
    aside: Aside = asyncio.to_thread


@dataclass(frozen=True, slots=True)
class Taken:
    """Changes as they were read: what can be merged, and what is refused before that."""

    items: tuple[Incoming, ...]
    refused: tuple[Refusal, ...]


class Intake:
    """Follows the feed of a mirror for ever. `on_recovery` is called when it works again after a failure."""

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        make_link: Callable[[], Link],
        keeper: Keeper,
        peer: Peer,
        tools: Tools,
        on_recovery: Callable[[], None] = lambda: None,
    ) -> None:
        feed = mirror.feed
        assert feed is not None
        self.keeper = keeper
        self._mirror = mirror
        self._feed = feed
        self._service = service
        self._make_link = make_link
        self._peer = peer
        self._tools = tools
        self._on_recovery = on_recovery
        self._follower: Follower | None = None
        self._failures = 0

    @property
    def in_step(self) -> bool:
        """Whether everything that the other side is known to have is here."""
        follower = self._follower
        return follower is not None and follower.waiting == 0 and follower.proof().in_step

    def check(self) -> None:
        """The other side can be reached again: asks it now."""
        if self._follower is not None:
            self._follower.check()

    async def run(self) -> None:
        """Follows; after a failure again, after a growing pause."""
        while True:
            try:
                await self._follow()
            except SmartfeedsError as error:
                reason = self._told(error)
            except Exception:  # noqa: BLE001 - one mirror must not end the others
                _log.exception("mirror_failed", mirror=self._mirror.name)
                reason = BROKEN
            self._failures += 1
            self.keeper.fail(reason)
            await self._tools.sleep(pause_of(self._failures, self._tools.spread()))

    def _told(self, error: SmartfeedsError) -> str:
        """What the operator has to do."""
        if isinstance(error, NodeMissingError):
            return f"there is no node {self._mirror.remote_node} at {self._feed.service}: it has to be made there"
        if isinstance(error, RefusedError):
            return (
                f"{self._feed.service} does not let {self._service.policy.domain} read {self._mirror.remote_node} "
                f"({error.condition}): it needs to be a member, or a publisher, of that node"
            )
        return str(error)

    async def _follow(self) -> None:
        await ensure_node(self._service, self._mirror, self.keeper)
        self._follower = Follower(
            self._make_link(),
            self._feed,
            store=_Position(self.keeper),
            mirror=True,
            integrity_s=self._mirror.every_s,
            page_items=PAGE_ITEMS,
            remember=REMEMBER,
            on_caught_up=self._caught_up,
            on_connection=self._connection,
            on_trouble=self._trouble,
            timers=self._tools.timers,
            spread=self._tools.spread,
            wall_clock=lambda: self._tools.now_us() / US_PER_S,
        )
        try:
            async with self._follower as follower:
                while True:
                    await self._take(await follower.several(BATCH))
        finally:
            self._follower = None

    def _caught_up(self, _proof: Proof) -> None:
        recovered = bool(self.keeper.half.failure)
        self._failures = 0
        if self.in_step:
            self.keeper.in_step()
        if recovered:
            self._on_recovery()

    def _connection(self, there: bool) -> None:
        if not there:
            self.keeper.fail("there is no connection to our own XMPP server")

    def _trouble(self, error: Exception) -> None:
        self.keeper.fail(f"{self._feed.service} cannot be asked now: {error}")

    async def _take(self, changes: Sequence[Change]) -> None:
        """Merges changes in one transaction, with the position behind them. Raises FeedError, StoreError."""
        now_us = self._tools.now_us()
        few = len(changes) <= _AT_ONCE
        taken = read_changes(changes, now_us) if few else await self._tools.aside(read_changes, changes, now_us)
        caught_up = self.keeper.stepping() if self.in_step else None

        def work(tx: WriteTx, context: Context) -> tuple[tuple[Result, ...], Callable[[Half], Half]]:
            results = merge_items(
                tx, context, self._mirror.node, self._feed.service, taken.items, own=self._mirror.own_edits
            )

            def change(half: Half) -> Half:
                half = counted_results(half, results, taken.refused, now_us)
                half = replace(half, position=changes[-1].position)
                return caught_up(half) if caught_up is not None else half

            return results, change

        results = await self.keeper.write(work)
        for item, result in zip(taken.items, results, strict=True):
            if result.outcome is not None:
                found = item.found
                self._peer.note(result.sync_id, write_sync(found.version, found.dialect, found.namespace))


class _Position:
    """The follower's position, kept with the state of the mirror. What was taken over is kept with it already."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def load(self) -> str | None:
        """The text that was saved last."""
        return self._keeper.half.position or None

    def save(self, position: str) -> None:
        """Keeps the text."""
        if position != self._keeper.half.position:
            self._keeper.note(lambda half: replace(half, position=position))


def read_changes(changes: Sequence[Change], now_us: int) -> Taken:
    """The sync data and content of changes."""
    items: list[Incoming] = []
    refused: list[Refusal] = []
    for change in changes:
        try:
            root = parse_payload(change.payload) if change.payload else None
            if root is not None and root.tag == FEED and change.item_id == FEED_METADATA_ID:
                continue  # what a feed says of itself is each service's own
            found = None if root is None else read_item(root)
        except FeedError as error:
            refused.append(refusal(change.item_id, error.text, now_us))
            continue
        if found is None:
            refused.append(refusal(change.item_id, NO_SYNC, now_us))
        else:
            items.append(Incoming(change.item_id, found))
    return Taken(tuple(items), tuple(refused))


def counted_results(half: Half, results: Sequence[Result], refused: Sequence[Refusal], now_us: int) -> Half:
    """The state with what a merge did."""
    outcomes = [result.outcome for result in results]
    late = [refusal(one.item_id or one.sync_id, one.reason, now_us) for one in results if one.outcome is None]
    changed = sum(outcome not in (None, Outcome.UNCHANGED) for outcome in outcomes)
    conflicts = outcomes.count(Outcome.CONFLICT)
    half = replace(half, items=half.items + changed, conflicts=half.conflicts + conflicts)
    return half.refuse((*refused, *late))


async def ensure_node(service: FeedService, mirror: Mirror, keeper: Keeper) -> None:
    """Makes the node of a mirror where it is missing, which is then to be filled from the beginning.

    Raises FeedError, StoreError.
    """
    owner = parse_jid(mirror.owner) if mirror.owner else None

    def work(tx: WriteTx, context: Context) -> bool:
        if tx.node(mirror.node) is not None:
            return False
        actor = owner or Jid("", context.policy.domain)
        add_node(tx, context, actor, mirror.node, {KIND: (NodeKind.FEED.value,)}, trusted=True)
        return True

    if await service.write(work):
        keeper.note(lambda half: replace(half, position=""))

"""The incoming direction of a mirror over XMPP: the public follower, whose changes are merged into the node.

The follower proves that nothing is missing: what was not pushed is pulled. Its position is kept in the transaction
that takes its changes over, so after a crash it goes on where the node is. An item that is refused is told in the
state and holds up nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from smartfeeds.client.change import Change
from smartfeeds.client.errors import AnswerError, NodeMissingError, RefusedError
from smartfeeds.client.follow import Follower, Proof
from smartfeeds.client.transport import Link
from smartfeeds.core.mirror import Half, Mirror, Refusal, refusal
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError, SmartfeedsError
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import Incoming, Result, merge_items
from smartfeeds.sources.mirror_peer import Peer, digest, tells_of_feed
from smartfeeds.sources.mirror_state import Keeper, Tools, run_for_ever
from smartfeeds.sources.mirror_taking import BATCH, believes, counted_results, ensure_node
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.markup import read_item

PAGE_ITEMS: Final = 100
REMEMBER: Final = 2_000  # versions; one that comes again and is forgotten merges to what is there
_AT_ONCE_BYTES: Final = 16_384  # that are read on the event loop; more take long enough to hold up others
# What a member may do, and others may not (XEP-0060 6.1.3 and 6.5.9).
_NO_RIGHT: Final = frozenset({"forbidden", "not-allowed", "not-authorized", "registration-required"})
NO_SYNC: Final = "it came without sync data: the other side is no smartfeeds that keeps them"


@dataclass(frozen=True, slots=True)
class Taken:
    """Changes as they were read: what can be merged, and what is refused before that. `digests` are those of the
    items, where they are wanted."""

    items: tuple[Incoming, ...]
    refused: tuple[Refusal, ...]
    digests: tuple[bytes, ...] = ()


class Intake:
    """Follows the feed of a mirror for ever. `on_recovery` is called when it works again after a failure.

    `peer` remembers what comes, for a mirror that sends, too.
    """

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        make_link: Callable[[], Link],
        keeper: Keeper,
        peer: Peer | None,
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
        await run_for_ever(self.keeper, self._follow, self._tools.sleep, self._tools.spread, self._told)

    def _told(self, error: SmartfeedsError) -> str:
        """What the operator has to do."""
        if isinstance(error, NodeMissingError):
            return (
                f"there is no node {self._mirror.remote_node} at {self._feed.service}, or it is closed: its owner "
                f"makes it, or makes {self._service.policy.domain} a member"
            )
        if isinstance(error, RefusedError) and error.condition in _NO_RIGHT:
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
        self.keeper.failures = 0
        if self.in_step:
            self.keeper.in_step()
        if recovered:
            self._on_recovery()

    def _connection(self, there: bool) -> None:
        if not there:
            self.keeper.fail("there is no connection to our own XMPP server")

    def _trouble(self, error: Exception) -> None:
        there = self._feed.service
        useless = isinstance(error, AnswerError)
        self.keeper.fail(
            f"{there} sends what cannot be used: {error}" if useless else f"{there} cannot be asked now: {error}"
        )

    async def _take(self, changes: Sequence[Change]) -> None:
        """Merges changes in one transaction, with the position behind them. Raises FeedError, StoreError."""
        now_us = self._tools.now_us()
        read = partial(read_changes, changes, now_us, digests=self._peer is not None)
        little = sum(len(change.payload or b"") for change in changes) <= _AT_ONCE_BYTES
        taken = read() if little else await self._tools.aside(read)
        own = believes(self._mirror, self.keeper.half)
        caught_up = self.keeper.stepping() if self.in_step else None

        def work(tx: WriteTx, context: Context) -> tuple[tuple[Result, ...], Callable[[Half], Half]]:
            results = merge_items(tx, context, self._mirror.node, self._feed.service, taken.items, own=own)

            def change(half: Half) -> Half:
                half = counted_results(half, results, taken.refused, now_us)
                half = replace(half, position=changes[-1].position)
                return caught_up(half) if caught_up is not None else half

            return results, change

        results = await self.keeper.write(work)
        if self._peer is not None:
            for result, version in zip(results, taken.digests, strict=True):
                if result.outcome is not None:
                    self._peer.note(result.sync_id, version)


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


def read_changes(changes: Sequence[Change], now_us: int, *, digests: bool = False) -> Taken:
    """The sync data and content of changes."""
    items: list[Incoming] = []
    refused: list[Refusal] = []
    made: list[bytes] = []
    for change in changes:
        try:
            if change.payload and tells_of_feed(change.item_id, change.payload):
                continue
            root = parse_payload(change.payload) if change.payload else None
            # Reading takes the sync data out.
            version = digest(root) if digests and root is not None else b""
            found = None if root is None else read_item(root)
        except FeedError as error:
            refused.append(refusal(change.item_id, error.text, now_us))
            continue
        if found is None:
            refused.append(refusal(change.item_id, NO_SYNC, now_us))
            continue
        items.append(Incoming(change.item_id, found))
        made.append(version)
    return Taken(tuple(items), tuple(refused), tuple(made) if digests else ())

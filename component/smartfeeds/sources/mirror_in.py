"""The incoming direction of a mirror: what all kinds share, and the one over XMPP, which is the public follower.

The follower proves that no change is missing, because it pulls those that were not pushed. Its position is stored in
the transaction that merges its changes, so after a crash it continues where the node is. An item that is refused is
shown in the state of the mirror and delays no other item.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from smartfeeds.client.change import Change
from smartfeeds.client.errors import AnswerError, NodeMissingError, RefusedError
from smartfeeds.client.follow import Follower, Proof
from smartfeeds.client.transport import FollowerLink
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.mirror import ItemRefusal, Mirror, MirrorState, refusal
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError, SmartfeedsError
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import IncomingItem, MergeResult, merge_items
from smartfeeds.service.nodes import add_node
from smartfeeds.sources.mirror_peer import Peer, digest, tells_of_feed
from smartfeeds.sources.mirror_state import MirrorStateStore, MirrorTools, run_for_ever
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Outcome

BATCH: Final = 100  # changes that one transaction merges
PAGE_ITEMS: Final = 100
REMEMBER: Final = 2_000  # versions; one that comes again and is forgotten merges to what is there
_AT_ONCE_BYTES: Final = 16_384  # read on the event loop; more would delay everything else, so a thread reads them
# What a member may do, and others may not (XEP-0060 6.1.3 and 6.5.9).
_NO_RIGHT: Final = frozenset({"forbidden", "not-allowed", "not-authorized", "registration-required"})
NO_SYNC: Final = "it came without sync data: the other side is no smartfeeds that keeps them"


async def ensure_node(service: FeedService, mirror: Mirror, state_store: MirrorStateStore) -> None:
    """Makes the node of a mirror if it is missing; the mirror is then read from the beginning.

    Raises FeedError, StoreError.
    """
    if await service.read(lambda tx, _context: tx.node(mirror.node) is not None):
        return
    owner = parse_jid(mirror.owner) if mirror.owner else None

    def work(tx: WriteTx, context: Context) -> tuple[None, Callable[[MirrorState], MirrorState]]:
        if tx.node(mirror.node) is not None:
            return None, lambda state: state
        actor = owner or Jid("", context.policy.domain)
        add_node(tx, context, actor, mirror.node, {KIND: (NodeKind.FEED.value,)}, trusted=True)
        return None, lambda state: replace(state, position="", filling=True)

    await state_store.write(work)


def trusts_own_edits(mirror: Mirror, state: MirrorState) -> bool:
    """Whether histories may name edits of this service that its database does not have (A-61).

    A node that was deleted here has lost all of them when it is filled again.
    """
    return mirror.own_edits or state.filling


def count_results(
    state: MirrorState,
    results: Sequence[MergeResult],
    refused: Sequence[ItemRefusal],
    now_us: int,
    *,
    once: bool = False,
) -> MirrorState:
    """The state with the results of a merge added; `once` is that of `MirrorState.refuse`."""
    outcomes = [result.outcome for result in results]
    late = [refusal(one.item_id or one.sync_id, one.reason, now_us) for one in results if one.outcome is None]
    changed = sum(outcome not in (None, Outcome.UNCHANGED) for outcome in outcomes)
    conflicts = outcomes.count(Outcome.CONFLICT)
    state = replace(state, items=state.items + changed, conflicts=state.conflicts + conflicts)
    return state.refuse((*refused, *late), once=once)


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """Changes that were read: the items to merge, and those that are refused before. `digests` are those of the items,
    empty unless they were asked for."""

    items: tuple[IncomingItem, ...]
    refused: tuple[ItemRefusal, ...]
    digests: tuple[bytes, ...] = ()


class XmppMirrorReader:
    """Follows the XMPP feed of a mirror for ever. `on_recovery` is called when it works again after a failure.

    `peer` remembers the versions that come, if the mirror sends, too.
    """

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        make_link: Callable[[], FollowerLink],
        state_store: MirrorStateStore,
        peer: Peer | None,
        tools: MirrorTools,
        on_recovery: Callable[[], None] = lambda: None,
    ) -> None:
        feed = mirror.feed
        assert feed is not None
        self.state_store = state_store
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
        """Whether every change is here that the other side is known to have."""
        follower = self._follower
        return follower is not None and follower.waiting == 0 and follower.proof().in_step

    def check(self) -> None:
        """The other side can be reached again: asks it now."""
        if self._follower is not None:
            self._follower.check()

    async def run(self) -> None:
        """Follows; begins again after each failure, with growing pauses."""
        await run_for_ever(self.state_store, self._follow, self._tools.sleep, self._tools.spread, self._advice)

    def _advice(self, error: SmartfeedsError) -> str:
        """The failure for the operator, with what to do about it."""
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
        await ensure_node(self._service, self._mirror, self.state_store)
        self._follower = Follower(
            self._make_link(),
            self._feed,
            store=_MirrorPosition(self.state_store),
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
                    await self._merge(await follower.several(BATCH))
        finally:
            self._follower = None

    def _caught_up(self, _proof: Proof) -> None:
        recovered = bool(self.state_store.state.failure)
        self.state_store.failures = 0
        if self.in_step:
            self.state_store.in_step()
        if recovered:
            self._on_recovery()

    def _connection(self, there: bool) -> None:
        if not there:
            self.state_store.fail("there is no connection to our own XMPP server")

    def _trouble(self, error: Exception) -> None:
        there = self._feed.service
        useless = isinstance(error, AnswerError)
        self.state_store.fail(
            f"{there} sends what cannot be used: {error}" if useless else f"{there} cannot be asked now: {error}"
        )

    async def _merge(self, changes: Sequence[Change]) -> None:
        """Merges changes and stores the position behind them in one transaction. Raises FeedError, StoreError."""
        now_us = self._tools.now_us()
        read = partial(read_changes, changes, now_us, digests=self._peer is not None)
        little = sum(len(change.payload or b"") for change in changes) <= _AT_ONCE_BYTES
        batch = read() if little else await self._tools.aside(read)
        own = trusts_own_edits(self._mirror, self.state_store.state)
        caught_up = self.state_store.stepping() if self.in_step else None

        def work(tx: WriteTx, context: Context) -> tuple[tuple[MergeResult, ...], Callable[[MirrorState], MirrorState]]:
            results = merge_items(tx, context, self._mirror.node, self._feed.service, batch.items, own=own)

            def change(state: MirrorState) -> MirrorState:
                state = count_results(state, results, batch.refused, now_us)
                state = replace(state, position=changes[-1].position)
                return caught_up(state) if caught_up is not None else state

            return results, change

        results = await self.state_store.write(work)
        if self._peer is not None:
            for result, version in zip(results, batch.digests, strict=True):
                if result.outcome is not None:
                    self._peer.note(result.sync_id, version)


class _MirrorPosition:
    """The follower's position, which is a part of the mirror's state. A merge has stored it with its items already."""

    def __init__(self, state_store: MirrorStateStore) -> None:
        self._keeper = state_store

    def load(self) -> str | None:
        """The text that was saved last."""
        return self._keeper.state.position or None

    def save(self, position: str) -> None:
        """Keeps the text."""
        if position != self._keeper.state.position:
            self._keeper.note(lambda state: replace(state, position=position))


def read_changes(changes: Sequence[Change], now_us: int, *, digests: bool = False) -> IncomingBatch:
    """Reads the content and the sync data of changes."""
    items: list[IncomingItem] = []
    refused: list[ItemRefusal] = []
    versions: list[bytes] = []
    for change in changes:
        try:
            if change.payload and tells_of_feed(change.item_id, change.payload):
                continue
            root = parse_payload(change.payload) if change.payload else None
            # Before reading, which removes the sync data from the tree.
            version = digest(root) if digests and root is not None else b""
            found = None if root is None else read_item(root)
        except FeedError as error:
            refused.append(refusal(change.item_id, error.text, now_us))
            continue
        if found is None:
            refused.append(refusal(change.item_id, NO_SYNC, now_us))
            continue
        items.append(IncomingItem(change.item_id, found))
        versions.append(version)
    return IncomingBatch(tuple(items), tuple(refused), tuple(versions) if digests else ())

"""The incoming direction of a mirror: what all kinds share, and the one over XMPP, which is the public follower.

The follower proves that no change is missing, because it pulls those that were not pushed. Its position is stored in
the transaction that merges its changes, so after a crash it continues where the node is. An item that is refused is
shown in the state of the mirror and delays no other item.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from smartfeeds.client.change import Change
from smartfeeds.client.errors import AnswerError, NodeMissingError, RefusedError
from smartfeeds.client.follow import Follower, FollowerClock, Proof
from smartfeeds.client.transport import FollowerLink
from smartfeeds.core.consumers import BROKEN
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.options import KIND
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError, SmartfeedsError
from smartfeeds.features.mirrors.mirror import ItemRefusal, Mirror, MirrorState, refusal
from smartfeeds.features.mirrors.mirror_peer import Peer, digest, tells_of_feed
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore, StateChange
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.xml import parse_payload
from smartfeeds.net.fetch import FetchError
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import IncomingItem, MergeResult, merge_items
from smartfeeds.service.nodes import add_node
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Outcome

BATCH: Final = 100  # changes that one transaction merges
PAGE_ITEMS: Final = 100
REMEMBER: Final = 2_000  # versions; one that comes again and is forgotten merges to what is there
_AT_ONCE_BYTES: Final = 16_384  # read on the event loop; more would delay everything else, so a thread reads them
# What a member may do, and others may not (XEP-0060 6.1.3 and 6.5.9).
NO_RIGHT: Final = frozenset({"forbidden", "not-allowed", "not-authorized", "registration-required"})
NO_SYNC: Final = "it came without sync data: the other side is no smartfeeds that keeps them"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """Changes that were read: the items to merge, and those that are refused before. `digests` are those of the items,
    empty if the reader does not need them."""

    items: tuple[IncomingItem, ...]
    refused: tuple[ItemRefusal, ...]
    digests: tuple[bytes, ...] = ()


class IncomingMirror(ABC):
    """The incoming direction of a mirror: reads a feed for ever and merges its changes into the node.

    `publisher` is the publisher of the items that it brings.
    """

    def __init__(
        self, mirror: Mirror, service: FeedService, state_store: MirrorStateStore, tools: SourceTools, publisher: str
    ) -> None:
        self.state_store = state_store
        self._mirror = mirror
        self._service = service
        self._tools = tools
        self._publisher = publisher
        self._task: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def in_step(self) -> bool:
        """Whether every change is here that the other side is known to have."""

    @property
    def is_current(self) -> bool:
        """Whether nothing is known to be missing, and nothing fails."""
        return self.in_step and self.state_store.state.failure is None

    @property
    def since_us(self) -> int | None:
        """The time when nothing was missing, if that is known."""
        return self.state_store.state.in_step_us

    @abstractmethod
    async def _step(self) -> None:
        """Reads, once or until something fails. A success clears the failure in `state_store`."""

    async def _rest(self, pause_s: float) -> None:
        """Waits after a failure."""
        await self._tools.sleep(pause_s)

    def _advice(self, error: SmartfeedsError) -> str:
        """The failure for the operator, with what to do about it."""
        return str(error)

    def begin(self) -> None:
        """Starts to read in a task of its own."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"mirror {self._mirror.name} in")

    async def end(self) -> None:
        """Ends the task and stores the state."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.state_store.settle()

    async def _run(self) -> None:
        """Reads for ever. Each failure makes the pause before the next attempt longer, unless the server asks for
        another pause."""
        while True:
            pause_s = None
            try:
                await self._step()
            except SmartfeedsError as error:
                reason = self._advice(error)
                pause_s = error.retry_after_s if isinstance(error, FetchError) else None
            except Exception:  # noqa: BLE001 - one mirror must not end the others
                _log.exception("mirror_failed", mirror=self._mirror.name)
                reason = BROKEN
            else:
                continue
            await self._rest(self.state_store.fail(reason, self._tools.spread(), pause_s))

    async def _ensure_node(self) -> None:
        """Creates the node if it is missing. A node that is not the one of the last read is read from the beginning: it
        has none of the items behind the position.

        Raises FeedError, StoreError.
        """
        if await self._service.read(lambda tx, _context: self._is_same(tx.node(self._mirror.node))):
            return
        owner = parse_jid(self._mirror.owner) if self._mirror.owner else None

        def work(tx: WriteTx, context: Context) -> tuple[None, StateChange]:
            node, former_no = tx.node(self._mirror.node), self.state_store.state.node_no
            if node is None:
                actor, form = owner or Jid("", context.policy.domain), {KIND: (NodeKind.FEED.value,)}
                node = add_node(tx, context, actor, self._mirror.node, form, trusted=True)
            elif not former_no:
                # The node was there before the mirror, or the position is of a version that stored no number.
                return None, lambda state: replace(state, node_no=node.node_no)
            return None, lambda state: replace(state, node_no=node.node_no, position="", filling=True)

        await self.state_store.write(work)

    def _is_same(self, node: Node | None) -> bool:
        return node is not None and node.node_no == self.state_store.state.node_no

    async def _merge(
        self,
        batch: IncomingBatch,
        change: StateChange,
        *,
        anew: bool = False,
        once: bool = False,
        on_stored: Callable[[tuple[MergeResult, ...]], None] | None = None,
    ) -> tuple[MergeResult, ...]:
        """Merges changes and stores the state after them in one transaction. Raises FeedError, StoreError.

        `change` is applied to the state after the results are counted. With `anew` former refusals are dropped first;
        `once` is that of `MirrorState.refuse`, `on_stored` that of `MirrorStateStore.write`.
        """
        # Histories may name edits of this service that its database does not have if the operator says so. A
        # node that was deleted here has lost all of them when it is filled again.
        own = self._mirror.own_edits or self.state_store.state.filling

        def work(tx: WriteTx, context: Context) -> tuple[tuple[MergeResult, ...], StateChange]:
            if not self._is_same(tx.node(self._mirror.node)):
                raise FeedError(Condition.ITEM_NOT_FOUND, f"the node {self._mirror.node} was deleted: it is read anew")
            results = merge_items(tx, context, self._mirror.node, self._publisher, batch.items, own=own)

            def counted(state: MirrorState) -> MirrorState:
                state = replace(state, refused=0, reasons=()) if anew else state
                return change(_count_results(state, results, batch.refused, context.now_us, once=once))

            return results, counted

        return await self.state_store.write(work, on_stored)


def _count_results(
    state: MirrorState, results: Sequence[MergeResult], refused: Sequence[ItemRefusal], now_us: int, *, once: bool
) -> MirrorState:
    """The state with the results of a merge added."""
    outcomes = [result.outcome for result in results]
    late = [
        refusal(result.item_id or result.sync_id, result.reason, now_us) for result in results if result.outcome is None
    ]
    changed = sum(outcome not in (None, Outcome.UNCHANGED) for outcome in outcomes)
    conflicts = outcomes.count(Outcome.CONFLICT)
    state = replace(state, items=state.items + changed, conflicts=state.conflicts + conflicts)
    return state.refuse((*refused, *late), once=once)


class XmppMirrorReader(IncomingMirror):
    """Follows the XMPP feed of a mirror. `on_recovery` is called when it works again after a failure.

    `peer` remembers the versions that come, if the mirror sends, too.
    """

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        make_link: Callable[[], FollowerLink],
        state_store: MirrorStateStore,
        peer: Peer | None,
        tools: SourceTools,
        on_recovery: Callable[[], None] = lambda: None,
    ) -> None:
        feed = mirror.feed
        assert feed is not None
        super().__init__(mirror, service, state_store, tools, feed.service)
        self._feed = feed
        self._make_link = make_link
        self._peer = peer
        self._on_recovery = on_recovery
        self._follower: Follower | None = None

    @property
    def in_step(self) -> bool:
        """Whether every change is here that the other side is known to have."""
        follower = self._follower
        return follower is not None and follower.waiting == 0 and follower.proof().in_step

    def check(self) -> None:
        """Requests changes now, because the other side can be reached again."""
        if self._follower is not None:
            self._follower.check()

    def _advice(self, error: SmartfeedsError) -> str:
        """The failure for the operator, with what to do about it."""
        if isinstance(error, NodeMissingError):
            return (
                f"there is no node {self._mirror.remote_node} at {self._feed.service}, or it is closed: its owner "
                f"makes it, or makes {self._service.policy.domain} a member"
            )
        if isinstance(error, RefusedError) and error.condition in NO_RIGHT:
            return (
                f"{self._feed.service} does not let {self._service.policy.domain} read {self._mirror.remote_node} "
                f"({error.condition}): it needs to be a member of that node, or a "
                "publisher if the node hides its publishers"
            )
        return str(error)

    async def _step(self) -> None:
        await self._ensure_node()
        self._follower = Follower(
            self._make_link(),
            self._feed,
            store=self.state_store,
            mirror=True,
            integrity_s=self._mirror.every_s,
            page_items=PAGE_ITEMS,
            remember=REMEMBER,
            on_caught_up=self._caught_up,
            on_connection=self._connection,
            on_trouble=self._trouble,
            clock=FollowerClock(self._tools.timers, self._tools.spread, lambda: self._tools.now_us() / US_PER_S),
        )
        try:
            async with self._follower as follower:
                while True:
                    await self._merge_changes(await follower.several(BATCH))
        finally:
            self._follower = None

    def _caught_up(self, _proof: Proof) -> None:
        recovered = self.state_store.state.failure is not None
        if self.in_step:
            self.state_store.in_step()
        if recovered:
            self._on_recovery()

    def _connection(self, online: bool) -> None:
        if not online:
            self.state_store.interrupt("there is no connection to our own XMPP server")

    def _trouble(self, error: Exception) -> None:
        useless = isinstance(error, AnswerError)
        fault = f"sends what cannot be used: {error}" if useless else f"cannot be asked now: {error}"
        self.state_store.interrupt(f"{self._feed.service} {fault}")

    async def _merge_changes(self, changes: Sequence[Change]) -> None:
        """Merges changes and stores the position behind them."""
        read = partial(read_changes, changes, self._tools.now_us(), digests=self._peer is not None)
        little = sum(len(change.payload or b"") for change in changes) <= _AT_ONCE_BYTES
        batch = read() if little else await self._tools.aside(read, party=self._feed.service)
        caught_up = self.state_store.stepping() if self.in_step else None

        def change(state: MirrorState) -> MirrorState:
            state = replace(state, position=changes[-1].position)
            return caught_up(state) if caught_up is not None else state

        def note_versions(results: Sequence[MergeResult]) -> None:
            # Before the outgoing direction looks at these items: it does not send back what came from there.
            if self._peer is not None:
                for result, version in zip(results, batch.digests, strict=True):
                    if result.outcome is not None:
                        self._peer.note(result.sync_id, version)

        await self._merge(batch, change, on_stored=note_versions)


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
            sync_item = None if root is None else read_item(root)
        except FeedError as error:
            refused.append(refusal(change.item_id, error.text, now_us))
            continue
        if sync_item is None:
            refused.append(refusal(change.item_id, NO_SYNC, now_us))
            continue
        items.append(IncomingItem(change.item_id, sync_item, names=()))
        versions.append(version)
    return IncomingBatch(tuple(items), tuple(refused), tuple(versions) if digests else ())

"""The outgoing direction of a mirror: what changed here is published there, sync data with it, and merged there.

The node is read in modified order from where the last run came to. Several items are on their way at once; their order
means nothing to a merge. The position moves over what was taken, and over what was refused for its own sake, which the
state tells. Everything else that fails is tried again after growing pauses.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.core.mirror import Half, Mirror, Refusal, refusal
from smartfeeds.core.model import Edge, Item, Node, Slice
from smartfeeds.core.view import SHARED
from smartfeeds.errors import LinkError, SmartfeedsError
from smartfeeds.formats.xml import parse_stored
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.mirrors import format_edge, parse_edge
from smartfeeds.service.syncing import shown
from smartfeeds.sources.mirror_peer import Peer, digest, tells_of_feed
from smartfeeds.sources.mirror_state import Keeper, Tools, run_for_ever
from smartfeeds.store.base import ReadTx

PAGE: Final = 50
AT_ONCE: Final = 10  # items on their way
# Refused for what the item is: no other item is refused with it.
_OF_THE_ITEM: Final = frozenset({"bad-request", "conflict", "not-acceptable", "policy-violation"})
_NO_RIGHT: Final = frozenset({"forbidden", "not-authorized", "not-allowed", "registration-required"})

# (service, node, item id or "", payload): publishes an item. Raises RequestError, RequestTimeoutError, LinkError.
Publish = Callable[[str, str, str, bytes], Awaitable[None]]


class StuckError(SmartfeedsError):
    """Nothing can be sent now; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An item that is still to be sent: its place, the id it is shared under, its payload with its sync data, empty
    where it takes no part, and the digest of that."""

    item_id: str
    edge: Edge
    sync_id: str
    payload: bytes
    version: bytes


class Outlet:
    """Sends the changes of a node for ever. `limit_bytes` is the longest payload that may be sent.

    `on_recovery` is called when it works again after a failure.
    """

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        publish: Publish,
        keeper: Keeper,
        peer: Peer,
        tools: Tools,
        limit_bytes: int,
        on_recovery: Callable[[], None] = lambda: None,
    ) -> None:
        feed = mirror.feed
        assert feed is not None
        self.keeper = keeper
        self.node_no: int | None = None
        self.behind_since_us: int | None = None
        self._mirror = mirror
        self._there = feed.service
        self._service = service
        self._publish = publish
        self._peer = peer
        self._tools = tools
        self._limit_bytes = limit_bytes
        self._on_recovery = on_recovery
        self._woken = asyncio.Event()
        self._hurried = asyncio.Event()
        self._has_sent = False

    @property
    def in_step(self) -> bool:
        """Whether everything was sent."""
        return self.behind_since_us is None and not self._woken.is_set() and not self.keeper.half.failure

    def wake(self) -> None:
        """There may be something to send."""
        self._woken.set()

    def check(self) -> None:
        """The other side can be reached again: waits no longer."""
        self._hurried.set()

    async def run(self) -> None:
        """Sends what there is, and what comes."""
        await run_for_ever(self.keeper, self._step, self._rest, self._tools.spread)

    async def _step(self) -> None:
        self._woken.clear()
        more = await self.send_some()
        if self.keeper.failures:
            self.keeper.failures = 0
            self._on_recovery()
        if not more:
            await self._woken.wait()

    async def _rest(self, pause_s: float) -> None:
        """Waits, unless the other side shows that it is there again."""
        self._hurried.clear()
        tasks = [asyncio.ensure_future(self._tools.sleep(pause_s)), asyncio.ensure_future(self._hurried.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def send_some(self) -> bool:
        """Sends the next items; False where there was none left. Raises StuckError, StoreError."""
        waiting = await self._service.read(self._read, turn=f"mirror {self._mirror.name}")
        if not waiting:
            self.behind_since_us = None
            self.keeper.in_step(news=self._has_sent)
            self._has_sent = False
            return False
        self.behind_since_us = waiting[0].edge.key_us
        for start in range(0, len(waiting), AT_ONCE):
            await self._send(waiting[start : start + AT_ONCE])
        return True

    def _read(self, tx: ReadTx, context: Context) -> list[Waiting]:
        node = tx.node(self._mirror.node)
        if node is None:
            raise StuckError(f"there is no node {self._mirror.node} here: make it, or mend the mirror's node")
        self.node_no = node.node_no
        items = tx.slice(node.node_no, Slice(SHARED, PAGE, after=parse_edge(self.keeper.half.position)))
        return [_waiting(context, node, item) for item in items]

    async def _send(self, waiting: Sequence[Waiting]) -> None:
        """Sends some items at once, and keeps how far they came in their order. Raises StuckError, StoreError."""
        now_us = self._tools.now_us()
        results = await asyncio.gather(*(self._send_one(one) for one in waiting))
        stuck = next((number for number, result in enumerate(results) if isinstance(result, StuckError)), None)
        done = results[:stuck]
        if done:
            refused = tuple(
                refusal(one.item_id, result, now_us)
                for one, result in zip(waiting, done, strict=False)
                if isinstance(result, str)
            )
            sent = sum(result is True for result in done)
            self._has_sent = self._has_sent or sent > 0
            position = format_edge(waiting[len(done) - 1].edge)
            await self.keeper.write(lambda _tx, _context: (None, _moved(position, sent, refused)))
        if stuck is not None:
            failure = results[stuck]
            assert isinstance(failure, StuckError)
            raise failure

    async def _send_one(self, one: Waiting) -> bool | str | StuckError:
        """Whether it was sent; False where there was no need, the reason where it was refused."""
        if not one.payload or self._peer.has(one.sync_id, one.version):
            return False
        if len(one.payload) > self._limit_bytes:
            return (
                f"with its history and conflicts it has {len(one.payload)} bytes, and {self._limit_bytes} can be sent"
            )
        try:
            await self._publish_one(one)
        except RequestError as error:
            if error.kind != "wait" and error.condition in _OF_THE_ITEM:
                return f"{self._there} refuses it: {error}"
            return StuckError(self._told(error))
        except (RequestTimeoutError, LinkError) as error:
            return StuckError(f"{self._there} cannot be reached now: {error}")
        self._peer.note(one.sync_id, one.version)
        return True

    async def _publish_one(self, one: Waiting) -> None:
        """Under our id; where that is another item's there, they give it one of their own."""
        node = self._mirror.remote_node
        try:
            await self._publish(self._there, node, one.item_id, one.payload)
        except RequestError as error:
            if error.kind == "wait" or error.condition != "conflict":
                raise
            await self._publish(self._there, node, "", one.payload)

    def _told(self, error: RequestError) -> str:
        """What the operator has to do."""
        node, ours = self._mirror.remote_node, self._service.policy.domain
        if error.kind == "wait":
            return f"{self._there} wants us to wait: {error}"
        if error.condition == "item-not-found":
            return (
                f"there is no node {node} at {self._there}, or it is closed: its owner makes it, or makes {ours} "
                "a publisher"
            )
        if error.condition in _NO_RIGHT:
            return f"{self._there} does not let us publish ({error}): {ours} has to be a publisher of its node {node}"
        return f"{self._there} cannot take it now: {error}"


def _moved(position: str, sent: int, refused: tuple[Refusal, ...]) -> Callable[[Half], Half]:
    return lambda half: replace(half.refuse(refused), position=position, items=half.items + sent)


def _waiting(context: Context, node: Node, item: Item) -> Waiting:
    """An item as it is shown with its sync data; what a feed says of itself is each service's own."""
    edge, sync_id = Edge(item.modified_us, item.item_no), item.sync_id or item.id
    if tells_of_feed(item.id, item.payload):
        return Waiting(item.id, edge, sync_id, b"", b"")
    payload = shown(context, node, SHARED, item).payload
    return Waiting(item.id, edge, sync_id, payload, digest(parse_stored(payload)))

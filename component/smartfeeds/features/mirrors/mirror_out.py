"""The outgoing direction of a mirror: a deliverer that publishes changed items, with their sync data, to the other
service, which merges them.

Several items are on their way at once, because their order means nothing to a merge. An item that the other service
refuses for its content is passed over and listed in the state of the mirror; any other failure is tried again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Item, Mark, Node
from smartfeeds.core.view import SHARED, Order
from smartfeeds.delivery.deliverer import ConsumerPosition, Delivered, Gone, Outcome, RetryAfter
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.slices import mark_at, read_changes
from smartfeeds.errors import LinkError
from smartfeeds.features.mirrors.mirror import ItemRefusal, Mirror, MirrorState, refusal
from smartfeeds.features.mirrors.mirror_in import NO_RIGHT
from smartfeeds.features.mirrors.mirror_peer import Peer, digest, tells_of_feed
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.formats.xml import parse_stored
from smartfeeds.service.context import Context
from smartfeeds.service.damage import note_damaged
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx

PAGE: Final = 50
AT_ONCE: Final = 10  # items on their way
# Conditions that concern the content of one item; other items may still be accepted.
_OF_THE_ITEM: Final = frozenset({"bad-request", "conflict", "not-acceptable", "policy-violation"})

# (service, node, item id or "", payload): publishes an item. Raises RequestError, RequestTimeoutError, LinkError.
Publish = Callable[[str, str, str, bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ItemPublisher:
    """Publishes at other services. `limit_bytes` is the longest payload that the link carries."""

    publish: Publish
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class OutgoingItem:
    """An item to send, and the mark behind it. `sync_id` is the id that it is shared under. `payload` includes the sync
    data and is empty for an item that is never sent; `version` is its digest."""

    item_id: str
    mark: Mark
    sync_id: str
    payload: bytes
    version: bytes


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """The other service does not accept this item; it may accept others."""

    reason: str


@dataclass(frozen=True, slots=True)
class SendFailure:
    """Nothing can be sent now. The reason says what to do."""

    reason: str


class MirrorOutlet:
    """Sends the changes of a node.

    `consumer` is set while the node exists. `on_recovery` is called when sending works again after a failure.
    """

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        delivery: Dispatcher,
        publisher: ItemPublisher,
        state_store: MirrorStateStore,
        peer: Peer,
        on_recovery: Callable[[], None],
    ) -> None:
        feed = mirror.feed
        assert feed is not None
        self.state_store = state_store
        self.mirror = mirror
        self.consumer: Consumer | None = None
        self.since_us: int | None = None  # the age of the oldest item that waits
        self._delivery = delivery
        self._remote_service = feed.service
        self._service = service
        self._publisher = publisher
        self._peer = peer
        self._on_recovery = on_recovery
        self._failing = False
        self._has_sent = False

    @property
    def is_current(self) -> bool:
        """Whether nothing waits, and nothing fails."""
        return self.consumer is not None and self._delivery.is_current(self.consumer)

    def check(self) -> None:
        """Sends now, because the other side can be reached again."""
        if self.consumer is not None:
            self._delivery.hurry(self.consumer)

    async def end(self) -> None:
        """Ends the deliveries and stores the state. Raises StoreError if the mark cannot be stored."""
        try:
            if self.consumer is not None:
                await self._delivery.forget(self.consumer)
        finally:
            await self.state_store.settle()

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next items. Raises LinkError, StoreError."""
        batch = await self._service.read(
            partial(self._read, consumer=consumer, position=position), turn=f"mirror {self.mirror.name}"
        )
        if batch is None:
            self.consumer = None
            return Gone("the node was deleted, or the mirror begins anew")
        items, more = batch
        self.since_us = items[0].mark.key_us if items else None
        before = position
        for start in range(0, len(items), AT_ONCE):
            position, failure = await self._send(items[start : start + AT_ONCE], position)
            if isinstance(failure, LinkError):
                # Our own link is down, which is no failure of the other service. What was sent before counts.
                if position is before:
                    raise failure
                return Delivered(position, more=True)
            if failure is not None:
                self._failing = True
                return RetryAfter(failure.reason, position=position)
        if self._failing:
            self._failing = False
            self._on_recovery()
        if not more:
            self.since_us = None
            self.state_store.in_step(news=self._has_sent)
            self._has_sent = False
        return Delivered(position, more)

    def _read(
        self, tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition
    ) -> tuple[list[OutgoingItem], bool] | None:
        """The next items to send, and whether others follow; None if the consumer does not exist any more."""
        changes = read_changes(tx, context, consumer, position, SHARED, PAGE)
        if changes is None:
            return None
        return [_outgoing(tx, context, changes.node, item) for item in changes.items], changes.more

    async def _send(
        self, items: Sequence[OutgoingItem], position: ConsumerPosition
    ) -> tuple[ConsumerPosition, SendFailure | LinkError | None]:
        """Sends some items at once; the position behind those that need not be sent again, and why the next one could
        not be sent. Raises StoreError."""
        now_us = self.state_store.now_us()
        results = await asyncio.gather(*(self._send_one(item) for item in items))
        failures = [
            (number, result) for number, result in enumerate(results) if isinstance(result, SendFailure | LinkError)
        ]
        first, failure = failures[0] if failures else (len(items), None)
        refused = tuple(
            refusal(item.item_id, result.reason, now_us)
            for item, result in zip(items[:first], results, strict=False)
            if isinstance(result, RefusedItem)
        )
        sent = sum(result is True for result in results)
        self._has_sent = self._has_sent or sent > 0
        if sent or refused:
            # Before the mark moves over a refused item, the refusal is stored: else a crash could lose it.
            await self.state_store.write(lambda _tx, _context: (None, _counted(sent, refused)))
        # A mark is a key, so it cannot pass some of the items that share the key of the one that failed.
        done = [item for item in items[:first] if failure is None or item.mark.key_us < items[first].mark.key_us]
        if done:
            position = replace(position, marks={Order.MODIFIED: done[-1].mark})
        return position, failure

    async def _send_one(self, item: OutgoingItem) -> bool | RefusedItem | SendFailure | LinkError:
        """True if the item was sent, False if the other service has it already. A LinkError is about our own link."""
        if not item.payload or self._peer.has(item.sync_id, item.version):
            return False
        if len(item.payload) > self._publisher.limit_bytes:
            return RefusedItem(
                f"item too large: {len(item.payload)} bytes with its history and conflicts; "
                f"the limit is {self._publisher.limit_bytes}"
            )
        try:
            await self._publish_one(item)
        except RequestError as error:
            if error.kind != "wait" and error.condition in _OF_THE_ITEM:
                return RefusedItem(f"{self._remote_service} refuses it: {error}")
            return SendFailure(self._advice(error))
        except RequestTimeoutError as error:
            return SendFailure(f"{self._remote_service} cannot be reached now: {error}")
        except LinkError as error:
            return error
        self._peer.note(item.sync_id, item.version)
        return True

    async def _publish_one(self, item: OutgoingItem) -> None:
        """Publishes under our item id; if that id belongs to another item there, without an id."""
        node = self.mirror.remote_node
        try:
            await self._publisher.publish(self._remote_service, node, item.item_id, item.payload)
        except RequestError as error:
            if error.kind == "wait" or error.condition != "conflict":
                raise
            await self._publisher.publish(self._remote_service, node, "", item.payload)

    def _advice(self, error: RequestError) -> str:
        """Returns the advice to the operator for an error of the remote service."""
        node, ours = self.mirror.remote_node, self._service.policy.domain
        if error.kind == "wait":
            return f"{self._remote_service} wants us to wait: {error}"
        if error.condition == "item-not-found":
            return (
                f"there is no node {node} at {self._remote_service}, or it is closed: its owner makes it, "
                f"or makes {ours} a publisher"
            )
        if error.condition in NO_RIGHT:
            return (
                f"{self._remote_service} does not let us publish ({error}): "
                f"{ours} has to be a publisher of its node {node}"
            )
        return f"{self._remote_service} cannot take it now: {error}"


def _counted(sent: int, refused: tuple[ItemRefusal, ...]) -> Callable[[MirrorState], MirrorState]:
    return lambda state: replace(state.refuse(refused), items=state.items + sent)


def _outgoing(tx: ReadTx, context: Context, node: Node, item: Item) -> OutgoingItem:
    """An item with its sync data. The item that describes the feed itself is each service's own and is not sent, nor is
    a damaged item."""
    mark, sync_id = mark_at(tx, node.node_no, Order.MODIFIED, item), item.sync_id or item.id
    note_damaged(context, node, (item,))
    if item.damaged or tells_of_feed(item.id, item.payload):
        return OutgoingItem(item.id, mark, sync_id, b"", b"")
    payload = item_in_view(context, node, SHARED, item).payload
    return OutgoingItem(item.id, mark, sync_id, payload, digest(parse_stored(payload)))

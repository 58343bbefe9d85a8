"""The delivery mechanism: wakes consumers when feeds change, and stores marks and waits behind the deliveries.

A consumer has one delivery in flight at most, so its order holds. The feed is the outbox: what lies above the mark of
a consumer is still to be sent to it, and after a restart everything goes on from the stored marks (SF-007, SF-041). A
mark is never stored before its batch is delivered: a crash repeats a batch, and loses none.

The dispatcher has a `DeliveryLane` for each kind of consumers, and one task that stores the marks of all of them.
"""

import asyncio
import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import structlog

from smartfeeds.core.consumers import Consumer, Failure, Wait, failure_of, is_retry_request
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.delivery.changes import RETRY_S
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition
from smartfeeds.delivery.lane import DeliveryLane
from smartfeeds.delivery.letters import Letters, LetterTopic
from smartfeeds.delivery.ownership import Ownership, SoleOwnership
from smartfeeds.delivery.shards import shard_of_name, shard_of_node
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import StoreError
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.telemetry import DeliveryReading

# The time for which marks are collected: many deliveries share a write. After a crash at most this much is delivered
# twice.
MARKS_FLUSH_S = 0.25
# How long a stop waits for deliveries in flight. A recipient's server that answers within it spares the repetition of a
# batch after the restart.
GRACE_S = 1.0
ATTEMPT: Final = LetterTopic("attempt")  # of a delivery, to be made now
# Positions in memory beyond which those that the store has too are forgotten. A position, with the memory of its
# deliverer, spares the next delivery some look-ups.
POSITIONS = 10_000

# A consumer, its marks, and why it waits if it does.
_State = tuple[Consumer, Mapping[Order, Mark], Wait | None]

_log = structlog.get_logger()


class Dispatcher:
    """Delivers changes to consumers. `wake` may be called anywhere in the event loop, `stop` once.

    A kind of consumers is registered once and is paused until `resume`. `ownership` decides which consumers this
    process serves; None if it serves all of them. `letters` reach the processes that serve the others.
    """

    def __init__(
        self,
        service: FeedService,
        timing: DeliveryTiming,
        ownership: Ownership | None = None,
        letters: Letters | None = None,
    ) -> None:
        self._service = service
        self._letters = letters or Letters()
        self._letters.read(ATTEMPT, self._receive_attempt)
        self.ownership: Ownership = ownership or SoleOwnership(service)
        self.ownership.register(self)
        self._timing = timing
        self._lanes: dict[str, DeliveryLane] = {}
        self._by_name: set[str] = set()  # the kinds whose consumers belong to the shard of their name
        self._unsaved: set[Consumer] = set()
        self._waiting: set[Consumer] = set()  # consumers that may have a wait in the store
        self._requested: set[Consumer] = set()  # consumers whose stored request to retry is being served
        self._saver: asyncio.Task[None] | None = None

    def register(self, name: str, kind: ConsumerKind) -> None:
        """Adds a kind of consumers."""
        self._lanes[name] = DeliveryLane(name, kind, self._timing, self._moved, self._remove, self.owns)
        if kind.by_name:
            self._by_name.add(name)

    def shard_of(self, consumer: Consumer) -> int:
        """Returns the shard of a consumer: that of its feed, or that of its name."""
        if consumer.kind in self._by_name:
            return shard_of_name(consumer.name)
        return shard_of_node(consumer.node_no)

    def owns(self, consumer: Consumer) -> bool:
        """Whether this process delivers to a consumer."""
        return self.ownership.owns(self.shard_of(consumer))

    @property
    def busy(self) -> bool:
        """Whether any delivery runs."""
        return any(lane.tasks for lane in self._lanes.values())

    async def resume(self, name: str) -> None:
        """Starts the deliveries of a kind, from the mark of each consumer. Raises StoreError."""
        lane = self._lanes[name]
        lane.prepare_resume()
        behind, waits = await self._service.read(_read_states)
        for consumer, wait in waits:
            if consumer.kind == name:
                self._waiting.add(consumer)
                if is_retry_request(wait):
                    self._requested.add(consumer)
                # What this process knows already is newer than the store.
                if consumer not in lane.positions and self.owns(consumer):
                    lane.waits.setdefault(consumer, wait)
        lane.resume(behind.get(name, ()))

    async def begin(self, shards: frozenset[int]) -> None:
        """Starts the deliveries of shards that another process had, from the stored marks. Raises StoreError."""
        if all(lane.paused for lane in self._lanes.values()):
            return  # `resume` reads the marks
        behind, waits = await self._service.read(_read_states)
        for consumer, wait in waits:
            if consumer.kind in self._lanes and self.shard_of(consumer) in shards:
                self._waiting.add(consumer)
                self._lane(consumer).waits[consumer] = wait
        for name, lane in self._lanes.items():
            lane.resume_shards(behind.get(name, ()), lambda consumer: self.shard_of(consumer) in shards)

    async def end(self, shards: frozenset[int]) -> None:
        """Ends the deliveries of shards and stores their marks. Raises StoreError."""
        lanes = self._lanes.values()
        try:
            await asyncio.gather(*(lane.release(lambda each: self.shard_of(each) in shards, GRACE_S) for lane in lanes))
            await self.save_marks()
        finally:
            # Marks that were not stored are lost: later they would replace those of the next owner.
            self.drop(shards)

    def drop(self, shards: frozenset[int]) -> None:
        """Cancels the deliveries of shards. Their marks belong to another process now."""
        for lane in self._lanes.values():
            lane.cancel(lambda each: self.shard_of(each) in shards)
        self._forget(shards)

    def _forget(self, shards: frozenset[int]) -> None:
        for lane in self._lanes.values():
            lane.drop_positions(lambda each: self.shard_of(each) in shards)
        for consumers in (self._unsaved, self._waiting, self._requested):
            consumers -= {each for each in consumers if self.shard_of(each) in shards}

    async def pause(self, name: str) -> None:
        """Cancels the deliveries of a kind."""
        await self._lanes[name].pause()

    async def stop(self) -> None:
        """Ends all deliveries and stores the marks. Raises StoreError."""
        await asyncio.gather(*(lane.pause(GRACE_S) for lane in self._lanes.values()))
        # The task may be asleep for a while, or in the middle of a write, whose marks are then stored again below.
        if self._saver is not None:
            self._saver.cancel()
            await asyncio.gather(self._saver, return_exceptions=True)
        await self.save_marks()

    def wake(self, node_nos: Collection[int]) -> None:
        """Serves the consumers of these feeds, which have changed."""
        for lane in self._lanes.values():
            lane.wake(node_nos)

    async def look(self) -> None:
        """Wakes every consumer that is behind, including those behind changes by other processes. Raises StoreError."""
        behind, waits = await self._service.read(_read_states)
        for consumer, wait in waits:
            # The request comes from another process (`smartfeeds consumer retry`). The failure here may be newer than
            # the stored one, so only an explicit request may replace it.
            is_mine = consumer.kind in self._lanes and self.owns(consumer)
            if is_mine and is_retry_request(wait):
                self._waiting.add(consumer)
                self._requested.add(consumer)
                self._lane(consumer).waits[consumer] = wait
                self.hurry(consumer)
        for name, lane in self._lanes.items():
            lane.wake_stored(behind.get(name, ()))

    def follow(self, consumer: Consumer) -> None:
        """Delivers to a consumer until `forget`. The consumer has a mark in the store."""
        self._lane(consumer).follow(consumer)

    async def forget(self, consumer: Consumer) -> None:
        """Ends the deliveries to a consumer; its mark and its wait stay in the store.

        Raises StoreError. The mark stays in memory then, and is stored later.
        """
        lane = self._lane(consumer)
        await lane.stop(consumer)
        if consumer in self._unsaved:
            await self.save_marks()
        lane.forget(consumer)

    def add(self, consumer: Consumer) -> None:
        """Delivers to a consumer that this process has just stored, whichever process serves it."""
        self.follow(consumer)
        if not self.owns(consumer):
            self.hurry(consumer)

    def hurry(self, consumer: Consumer) -> None:
        """Makes the next attempt now: the receiver can be reached again, or a user has asked for it."""
        self._attempt(consumer, forgives=False)

    def forgive(self, consumer: Consumer) -> None:
        """Forgets the failures of a consumer, and makes the next attempt now: its receiver has just answered."""
        self._attempt(consumer, forgives=True)

    def _attempt(self, consumer: Consumer, *, forgives: bool) -> None:
        """Makes the next attempt now, here or in the process that serves the consumer. If none serves it yet, the next
        owner makes the attempt when it is due."""
        lane = self._lane(consumer)
        if not self.owns(consumer):
            self._letters.share(ATTEMPT, json.dumps([*consumer, forgives]).encode())
        elif forgives:
            lane.forgive(consumer)
        else:
            lane.hurry(consumer)

    def _receive_attempt(self, body: bytes) -> None:
        node_no, name, forgives = json.loads(body)
        consumer = Consumer(node_no, name)
        if consumer.kind in self._lanes and self.owns(consumer):
            self._lane(consumer).follow_stored(consumer)
            self._attempt(consumer, forgives=forgives)

    def failure(self, consumer: Consumer) -> Failure | None:
        """The failure of a consumer; None if its last delivery succeeded."""
        return failure_of(self._lane(consumer).waits.get(consumer))

    def is_current(self, consumer: Consumer) -> bool:
        """Whether a consumer has received everything that it was woken for."""
        return self._lane(consumer).is_current(consumer)

    def readings(self) -> tuple[DeliveryReading, ...]:
        """The metrics of each kind."""
        return tuple(lane.reading() for lane in self._lanes.values())

    def lag_s(self) -> float:
        """The longest time in seconds that a consumer has had something to receive."""
        return max((reading.lag_s for reading in self.readings()), default=0.0)

    async def idle(self) -> None:
        """Waits until no delivery runs and none is about to start."""
        while busy := [lane for lane in self._lanes.values() if lane.busy]:
            await asyncio.gather(*(lane.settle() for lane in busy))

    async def save_marks(self) -> None:
        """Stores the marks and waits that have changed. Raises StoreError; the next call stores them then."""
        unsaved, self._unsaved = self._unsaved, set()
        states = [self._state(consumer) for consumer in unsaved]
        if not states:
            return
        ended = {consumer for consumer, _, wait in states if wait is None} & self._waiting
        # Before the write: a consumer that has to wait during it is added again, by another call of this method.
        self._waiting -= ended
        requested = unsaved & self._requested
        self._requested -= requested
        try:
            # Fenced: a process that was asleep must not store an old mark over the mark of the next owner.
            await self.ownership.write_marks(
                [partial(_save, state=state, ended=ended, requested=requested) for state in states]
            )
        except BaseException:
            # BaseException, because `stop` cancels this task. Storing a mark twice does no harm.
            self._unsaved |= unsaved
            self._waiting |= ended
            self._requested |= requested
            raise

    def _lane(self, consumer: Consumer) -> DeliveryLane:
        return self._lanes[consumer.kind]

    def _state(self, consumer: Consumer) -> _State:
        lane = self._lane(consumer)
        position = lane.positions.get(consumer, ConsumerPosition())
        wait = lane.waits.get(consumer)
        if wait is not None:
            self._waiting.add(consumer)
        return consumer, position.marks, wait

    async def _remove(self, consumer: Consumer) -> None:
        self._unsaved.discard(consumer)
        self._waiting.discard(consumer)
        await self._service.write(lambda tx, _context: tx.remove_consumer(consumer))

    def _moved(self, consumer: Consumer) -> None:
        # A delivery that ends while its shard is handed over still counts: `end` stores its mark.
        if not self.owns(consumer) and consumer not in self._lane(consumer).tasks:
            return
        self._unsaved.add(consumer)
        if self._saver is None or self._saver.done():
            self._saver = asyncio.get_running_loop().create_task(self._save_later(), name="marks")

    async def _save_later(self) -> None:
        # A mark that moves while others are being stored starts no second task: this one runs until none is left.
        while self._unsaved:
            await asyncio.sleep(MARKS_FLUSH_S)
            try:
                await self.save_marks()
            except StoreError as error:
                _log.error("marks_not_saved", reason=str(error))
                await asyncio.sleep(RETRY_S)
            for lane in self._lanes.values():
                if len(lane.positions) > POSITIONS:
                    lane.trim_positions(self._unsaved)


def _read_states(tx: ReadTx, _context: Context) -> tuple[Mapping[str, list[Consumer]], list[tuple[Consumer, Wait]]]:
    """The consumers that are behind, by kind, and the stored waits."""
    behind: dict[str, list[Consumer]] = {}
    for consumer in tx.behind():
        behind.setdefault(consumer.kind, []).append(consumer)
    return behind, tx.waits()


def _save(tx: WriteTx, state: _State, ended: Collection[Consumer], requested: Collection[Consumer]) -> None:
    """Stores the marks and the wait of a consumer; a consumer that was removed meanwhile stays removed."""
    consumer, marks, wait = state
    # In the order in which a publish changes them, so that both do not wait for each other.
    for order, mark in sorted(marks.items(), key=lambda each: each[0].value):
        tx.move_mark(consumer, order, mark)
    if wait is None and consumer in ended:
        tx.set_wait(consumer, None)
    elif wait is not None and any(tx.mark(consumer.node_no, order, consumer.name) for order in Order):
        stored = tx.wait(consumer)
        # An operator may have requested a retry since the last look: that request must be served first.
        if not is_retry_request(stored) or consumer in requested:
            tx.set_wait(consumer, wait)

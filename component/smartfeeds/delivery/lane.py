"""The consumers of one kind: their queue, the deliveries that run, and the attempts that are planned.

Each kind has its own bound on deliveries that run, so slow receivers of one kind do not delay another kind.

A consumer that has something to receive is in a queue (`_turns`, `_failing_turns`), or a task delivers to it (`tasks`),
or it waits for its next attempt (`waits`, with a timer in `_retries` unless the service has given up). A wake-up during
a delivery is remembered (`_again`), so no change is forgotten and no two deliveries to one consumer overlap.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import replace
from functools import partial

import structlog

from smartfeeds.core.consumers import BROKEN, Consumer, Failure, Pause, Wait, failure_of, next_failure, seconds_until
from smartfeeds.core.limits import Quota
from smartfeeds.core.times import US_PER_S
from smartfeeds.delivery.changes import RETRY_S, repeat_until_stored
from smartfeeds.delivery.deliverer import (
    ConsumerKind,
    ConsumerPosition,
    Delivered,
    Gone,
    Idle,
    Outcome,
    Planned,
    RetryAfter,
    Skip,
    Unreachable,
)
from smartfeeds.delivery.timing import DeliveryTiming, PlannedCall
from smartfeeds.delivery.turns import DeliveryTurns
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.telemetry import DeliveryReading

SLOW_S = 0.5  # most deliveries to a callback take less; a silent one takes ten seconds, until its request times out

_log = structlog.get_logger()


class DeliveryLane:
    """The deliveries to one kind of consumers.

    `on_moved` is called when a position or a wait has changed and must be stored. `remove` removes a consumer from
    the store. `owns` returns whether this process delivers to a consumer.
    """

    def __init__(
        self,
        name: str,
        kind: ConsumerKind,
        timing: DeliveryTiming,
        on_moved: Callable[[Consumer], None],
        remove: Callable[[Consumer], Coroutine[None, None, None]],
        owns: Callable[[Consumer], bool],
    ) -> None:
        self.name = name
        self.paused = True
        self.positions: dict[Consumer, ConsumerPosition] = {}
        self.waits: dict[Consumer, Wait] = {}
        self.tasks: dict[Consumer, asyncio.Task[None]] = {}
        self._kind = kind
        self._timing = timing
        self._on_moved = on_moved
        self._remove = remove
        self._owns = owns
        self._followed: dict[int, set[Consumer]] = {}
        self._places = Quota(kind.host_at_once)
        self._turns = DeliveryTurns(kind.deliverer.host, self._places)
        # The consumers whose last delivery failed, and how many deliveries run to such consumers.
        self._failing_turns = DeliveryTurns(kind.deliverer.host, self._places)
        self._failing_tasks: set[Consumer] = set()
        self._slow: set[Consumer] = set()  # those that have left their place
        self._slow_timers: dict[Consumer, PlannedCall] = {}
        self._starts_later = False
        self._woken: set[int] = set()  # feeds that changed between the read of what is behind and the resumption
        self._again: set[Consumer] = set()  # woken while a delivery to them ran
        self._retries: dict[Consumer, PlannedCall] = {}
        # Since when each consumer has had something to receive; the oldest entry comes first.
        self._late_us: dict[Consumer, int] = {}
        self._outcomes: Counter[type[Outcome]] = Counter()

    # Consumers.

    def follow(self, consumer: Consumer) -> None:
        """Delivers to a consumer from its mark, unless its next attempt is due later."""
        self._followed.setdefault(consumer.node_no, set()).add(consumer)
        self.plan(consumer)

    def follow_stored(self, consumer: Consumer) -> None:
        """Follows a consumer that another process may have added, if the store lists the consumers of the kind."""
        if self._kind.stored:
            self._followed.setdefault(consumer.node_no, set()).add(consumer)

    def follows(self, consumer: Consumer) -> bool:
        """Whether deliveries go to this consumer."""
        return self._kind.every_feed or consumer in self._followed.get(consumer.node_no, ())

    async def stop(self, consumer: Consumer) -> None:
        """Ends the deliveries to a consumer; its position and its wait stay until it is forgotten."""
        self._unfollow(consumer)
        task = self.tasks.get(consumer)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def forget(self, consumer: Consumer) -> None:
        """Drops the position and the wait of a consumer; those in the store stay."""
        self.positions.pop(consumer, None)
        self.waits.pop(consumer, None)

    def _unfollow(self, consumer: Consumer) -> None:
        followed = self._followed.get(consumer.node_no, set())
        followed.discard(consumer)
        if not followed:
            self._followed.pop(consumer.node_no, None)
        self._turns.discard(consumer)
        self._failing_turns.discard(consumer)
        self._again.discard(consumer)
        self._late_us.pop(consumer, None)
        self._cancel_retry(consumer)

    # Turns.

    def wake(self, node_nos: Collection[int]) -> None:
        """Serves the consumers of these feeds, which have changed."""
        if self.paused:
            self._woken.update(node_nos)
            return
        # Most changes concern no consumer of most kinds.
        concerned = False
        for node_no in node_nos:
            if self._kind.every_feed:
                self._make_ready(Consumer(node_no, self.name))
                concerned = True
            else:
                for consumer in self._followed.get(node_no, ()):
                    self._make_ready(consumer)
                    concerned = True
        if concerned:
            self._start()

    def wake_stored(self, behind: Collection[Consumer]) -> None:
        """Serves the consumers that are behind according to the store."""
        for consumer in behind if self._kind.stored else ():
            self.follow_stored(consumer)
            # A stored wait stays, however the consumer was learnt of.
            if consumer in self.waits:
                self.plan(consumer)
        self.wake_consumers(behind)

    def wake_consumers(self, consumers: Iterable[Consumer]) -> None:
        """Serves these consumers, which may have something to receive."""
        if self.paused:
            return
        for consumer in consumers:
            if self.follows(consumer):
                self._make_ready(consumer)
        self._start()

    def is_current(self, consumer: Consumer) -> bool:
        """Whether a consumer has received everything."""
        return consumer not in self._late_us and consumer not in self.waits

    def hurry(self, consumer: Consumer) -> None:
        """Makes the next attempt now, even if the service had given up."""
        wait = self.waits.get(consumer)
        if wait is not None and wait.next_us is None:
            self.forgive(consumer)
            return
        self._cancel_retry(consumer)
        self.wake_consumers([consumer])

    def forgive(self, consumer: Consumer) -> None:
        """Forgets the failures of a consumer, and makes the next attempt now."""
        self._cancel_retry(consumer)
        if self.waits.pop(consumer, None) is not None:
            self._on_moved(consumer)
        self.wake_consumers([consumer])

    def plan(self, consumer: Consumer) -> None:
        """Makes the next attempt when it is due; at once if the consumer does not wait."""
        wait = self.waits.get(consumer)
        if wait is None:
            self.wake_consumers([consumer])
        elif wait.next_us is not None and not self.paused and consumer not in self._retries:
            timers = self._timing.timers or asyncio.get_running_loop()
            pause_s = seconds_until(wait.next_us, self._timing.clock())
            self._retries[consumer] = timers.call_later(pause_s, partial(self._retry, consumer))

    def prepare_resume(self) -> None:
        """Begins to collect the feeds that change. It is called before the store is read for `resume`."""
        self._woken.clear()

    def resume(self, behind: Collection[Consumer]) -> None:
        """Starts the deliveries, from the marks. `behind` are the consumers that have something to receive."""
        self.paused = False
        # Another process may have delivered meanwhile. Nothing would end the lag of such a consumer.
        waiting = {*behind, *self.waits, *self.tasks}
        self._late_us = {consumer: since_us for consumer, since_us in self._late_us.items() if consumer in waiting}
        for consumer in list(self.waits):
            if self.follows(consumer):
                self.plan(consumer)
        self.wake_stored(behind)
        # Feeds that changed after `behind` was read are not in it.
        self.wake(list(self._followed) if self._kind.on_demand else self._woken)
        self._woken.clear()

    async def pause(self, grace_s: float = 0.0) -> None:
        """Starts no more deliveries, and cancels those that still run after `grace_s`. Positions stay."""
        self.paused = True
        self._turns.clear()
        self._failing_turns.clear()
        self._again.clear()
        for consumer in list(self._retries):
            self._cancel_retry(consumer)
        tasks = list(self.tasks.values())
        if tasks and grace_s:
            await asyncio.wait(tasks, timeout=grace_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def release(self, is_released: Callable[[Consumer], bool], grace_s: float) -> None:
        """Ends the deliveries to consumers that go to another process. Those that run end within `grace_s`."""
        # The dispatcher stores their marks afterwards, so the next owner repeats no batch that ends in time.
        running = [task for consumer, task in self.tasks.items() if is_released(consumer)]
        if running:
            await asyncio.wait(running, timeout=grace_s)
        await asyncio.gather(*self.cancel(is_released), return_exceptions=True)

    def cancel(self, is_released: Callable[[Consumer], bool]) -> "list[asyncio.Task[None]]":
        """Cancels the deliveries to consumers that go to another process, and returns them."""
        tasks = [task for consumer, task in self.tasks.items() if is_released(consumer)]
        for task in tasks:
            task.cancel()
        for consumer in filter(is_released, {*self._retries, *self._late_us, *self._again}):
            self._cancel_retry(consumer)
            self._turns.discard(consumer)
            self._failing_turns.discard(consumer)
            self._late_us.pop(consumer, None)
            self._again.discard(consumer)
        return tasks

    def drop_positions(self, is_released: Callable[[Consumer], bool]) -> None:
        """Forgets the positions and waits of consumers: their next owner stores others."""
        for consumer in list(filter(is_released, {*self.positions, *self.waits})):
            self.forget(consumer)

    def resume_shards(self, behind: Collection[Consumer], is_gained: Callable[[Consumer], bool]) -> None:
        """Starts the deliveries to consumers that another process has served, from the stored marks."""
        if self.paused:
            return
        self.wake_stored(list(filter(is_gained, behind)))
        for consumers in list(self._followed.values()):
            for consumer in filter(is_gained, consumers):
                if consumer in self.waits or self._kind.on_demand:
                    self.plan(consumer)

    @property
    def busy(self) -> bool:
        """Whether deliveries run or are about to start."""
        return bool(self.tasks) or self._starts_later

    async def settle(self) -> None:
        """Waits for the deliveries that run, or else for the pause before the next ones."""
        if self.tasks:
            await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        else:
            await asyncio.sleep(self._kind.pause_s)

    def reading(self) -> DeliveryReading:
        """The metrics of the lane. The time grows only with the number of consumers that wait."""
        failures = [wait for wait in self.waits.values() if isinstance(wait, Failure)]
        stopped = sum(failure.next_us is None for failure in failures)
        since_us = next(iter(self._late_us.values()), None)
        lag_us = 0 if since_us is None else max(0, self._timing.clock() - since_us)
        return DeliveryReading(
            kind=self.name,
            running=len(self.tasks),
            retrying=len(failures) - stopped,
            stopped=stopped,
            lag_s=lag_us / US_PER_S,
            done=self._outcomes[Delivered],
            failed=self._outcomes[RetryAfter],
            skipped=self._outcomes[Skip],
            gone=self._outcomes[Gone],
        )

    def trim_positions(self, unsaved: Collection[Consumer]) -> None:
        """Forgets the positions that are in the store and that no delivery uses."""
        self.positions = {
            consumer: position
            for consumer, position in self.positions.items()
            if consumer in unsaved or consumer in self.tasks
        }

    def _make_ready(self, consumer: Consumer) -> None:
        """Puts a consumer into the queue, unless its next attempt is planned or the service has given up."""
        if not self._owns(consumer):
            return
        if consumer in self.waits and (consumer in self._retries or self.waits[consumer].next_us is None):
            return
        if consumer in self.tasks:
            self._again.add(consumer)
            return
        self._late_us.setdefault(consumer, self._timing.clock())
        failing = failure_of(self.waits.get(consumer)) is not None
        # A request of a user may have ended the failure since the consumer entered the other queue.
        (self._turns if failing else self._failing_turns).discard(consumer)
        (self._failing_turns if failing else self._turns).add(consumer)

    def _retry(self, consumer: Consumer) -> None:
        self._retries.pop(consumer, None)
        self.wake_consumers([consumer])

    def _cancel_retry(self, consumer: Consumer) -> None:
        timer = self._retries.pop(consumer, None)
        if timer is not None:
            timer.cancel()

    def _start(self) -> None:
        """Starts deliveries in the order of the queue until `at_once` of them run, some now and the others soon."""
        if self._starts_later:
            return
        loop = asyncio.get_running_loop()
        for _ in range(self._kind.starts):
            if len(self.tasks) - len(self._slow) >= self._kind.at_once or (turn := self._take()) is None:
                return
            consumer, host = turn
            name = f"{consumer.name} {consumer.node_no}"
            task = self.tasks[consumer] = loop.create_task(self._turn(consumer, host), name=name)
            task.add_done_callback(partial(self._ended, consumer, host))
            if self._kind.slow_at_once:
                timers = self._timing.timers or loop
                self._slow_timers[consumer] = timers.call_later(SLOW_S, partial(self._leave_place, consumer))
        # Other work of the event loop has its turn: a publish to a thousand subscribers must not delay the next one.
        # The pause belongs to the loop, not to the clock of the service: it is no time to wait for a receiver.
        self._starts_later = True
        loop.call_later(self._kind.pause_s, self._start_more)

    def _start_more(self) -> None:
        self._starts_later = False
        if not self.paused:
            self._start()

    def _leave_place(self, consumer: Consumer) -> None:
        """Starts another delivery beside a slow one."""
        if len(self._slow) < self._kind.slow_at_once and not self.paused:
            self._slow.add(consumer)
            self._start()

    def _take(self) -> tuple[Consumer, str] | None:
        """The consumer to serve now: one that works, or else one that fails if not too many of those are served."""
        turn = self._turns.take()
        if turn is None and len(self._failing_tasks) < self._kind.failing_at_once:
            turn = self._failing_turns.take()
            if turn is not None:
                self._failing_tasks.add(turn[0])
        return turn

    # One delivery.

    async def _turn(self, consumer: Consumer, host: str) -> None:
        """Delivers all batches for a consumer, or one batch if other consumers are waiting."""
        more = True
        while more:
            self._again.discard(consumer)
            if not self._owns(consumer):
                return
            outcome = await self._attempt(consumer)
            if outcome is None:
                # Its time in `_late_us` stays: the lag grows while the link is down.
                return
            more = await self._settle(consumer, outcome)
            if not more and consumer in self._again:
                # Everything up to the last batch is delivered, so what woke the consumer came after it.
                more = True
                self._late_us.pop(consumer, None)  # the new entry must be the last one
                self._late_us[consumer] = self._timing.clock()
            if self.paused:
                return
            if more and (self._turns.others_wait(host) or self._failing_turns.others_wait(host)):
                self._again.add(consumer)  # `_ended` puts it at the end of the queue
                return
        if consumer not in self.waits:
            self._late_us.pop(consumer, None)

    async def _attempt(self, consumer: Consumer) -> Outcome | None:
        """The outcome of one delivery. None if the link is down."""
        while True:
            position = self.positions.get(consumer) or ConsumerPosition()
            try:
                return await self._kind.deliverer.deliver(consumer, position)
            except LinkError:
                _log.debug("delivery_interrupted", consumer=consumer.name, node_no=consumer.node_no)
                return None
            except StoreError as error:
                # The receiver has not failed, so no attempt is counted. The delivery keeps its place, because the
                # others need the same store.
                _log.error("store_failed", consumer=consumer.name, node_no=consumer.node_no, reason=str(error))
                await asyncio.sleep(RETRY_S)
            except Exception:  # noqa: BLE001 - one consumer must not end the others
                _log.exception("delivery_failed", consumer=consumer.name, node_no=consumer.node_no)
                return RetryAfter(BROKEN)

    async def _settle(self, consumer: Consumer, outcome: Outcome) -> bool:
        """Records the outcome of a delivery. Returns whether the consumer has more to receive."""
        self._outcomes[type(outcome)] += 1
        match outcome:
            case Delivered(position, more):
                self._move(consumer, position)
                self._succeed(consumer)
                return more
            case Idle(position):
                if position is not None:
                    self._move(consumer, position)
                self._late_us.pop(consumer, None)
                return False
            case Unreachable(position):
                self._move(consumer, position)
                self._succeed(consumer)
                self._unfollow(consumer)
                return False
            case Skip(position, error, more):
                _log.warning("delivery_skipped", consumer=consumer.name, node_no=consumer.node_no, reason=error)
                self._move(consumer, position)
                self._succeed(consumer)
                return more
            case RetryAfter(error, pause_s, position):
                if position is not None:
                    self._move(consumer, position)
                self._fail(consumer, error, pause_s)
                return False
            case Planned(until_us):
                self._postpone(consumer, until_us)
                return False
            case Gone(reason, removed):
                _log.info("consumer_gone", consumer=consumer.name, node_no=consumer.node_no, reason=reason)
                self._unfollow(consumer)
                self.forget(consumer)
                # A consumer of this name may have been added again since its deliverer removed it.
                if not removed:
                    await repeat_until_stored(partial(self._remove, consumer))
                return False

    def _move(self, consumer: Consumer, position: ConsumerPosition) -> None:
        before = self.positions.get(consumer)
        self.positions[consumer] = position
        if before is None or before.marks != position.marks:
            self._on_moved(consumer)

    def _succeed(self, consumer: Consumer) -> None:
        wait = self.waits.pop(consumer, None)
        if isinstance(wait, Failure):
            _log.info("delivery_works_again", consumer=consumer.name, node_no=consumer.node_no)
        if wait is not None:
            self._on_moved(consumer)

    def _postpone(self, consumer: Consumer, until_us: int) -> None:
        """Plans the next attempt for a time that the receiver wants. The consumer is not late until then."""
        failure = failure_of(self.waits.get(consumer))
        # A pause says nothing about an earlier failure, which therefore keeps its count and its begin.
        self._wait(consumer, Pause(until_us) if failure is None else replace(failure, next_us=until_us))
        self._late_us.pop(consumer, None)

    def _fail(self, consumer: Consumer, error: str, pause_s: float | None) -> None:
        """Plans the next attempt, or gives up. The same error is logged once."""
        now_us, former = self._timing.clock(), failure_of(self.waits.get(consumer))
        failure = next_failure(former, error, now_us, self._kind.backoff, self._timing.spread(), pause_s)
        if self._gives_up(failure.count, now_us - failure.since_us):
            failure = replace(failure, next_us=None)
        if former is None or former.error != failure.error or failure.next_us is None:
            event = "delivery_given_up" if failure.next_us is None else "delivery_failing"
            _log.warning(event, consumer=consumer.name, node_no=consumer.node_no, reason=failure.error)
        self._wait(consumer, failure)
        if failure.next_us is None:
            self._late_us.pop(consumer, None)

    def _wait(self, consumer: Consumer, wait: Wait) -> None:
        self.waits[consumer] = wait
        self._again.discard(consumer)
        self._on_moved(consumer)
        self.plan(consumer)

    def _gives_up(self, count: int, failing_us: int) -> bool:
        kind = self._kind
        too_often = kind.give_up_failures is not None and count >= kind.give_up_failures
        return too_often or (kind.give_up_s is not None and failing_us >= kind.give_up_s * US_PER_S)

    def _ended(self, consumer: Consumer, host: str, task: "asyncio.Task[None]") -> None:
        del self.tasks[consumer]
        self._failing_tasks.discard(consumer)
        self._slow.discard(consumer)
        if (timer := self._slow_timers.pop(consumer, None)) is not None:
            timer.cancel()
        if host:
            self._places.release(host)
        self._turns.free(host)
        self._failing_turns.free(host)
        position = self.positions.get(consumer)
        # A position without marks is that of a feed that does not exist any more: there is nothing to remember.
        if position is not None and not position.marks:
            del self.positions[consumer]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("delivery_failed", consumer=consumer.name, node_no=consumer.node_no, reason=repr(error))
        if self.paused:
            return
        if consumer in self._again:
            self._again.discard(consumer)
            self._make_ready(consumer)
        self._start()

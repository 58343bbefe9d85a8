"""The delivery mechanism with a deliverer that a test controls, on a clock that only a test moves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S, Backoff
from smartfeeds.core.consumers import RETRY_REQUEST_US, Consumer, Failure, Pause, Wait, is_retry_request, next_failure
from smartfeeds.core.model import Mark
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import SMART, Order
from smartfeeds.delivery import dispatcher as dispatcher_module
from smartfeeds.delivery import lane as lane_module
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
)
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.shards import ALL_SHARDS
from smartfeeds.delivery.slices import read_changes
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.service.consumers import add_consumer, retry_consumers
from support.effort import runs
from support.faketime import settle
from support.sqlite_memory import SqliteMemoryStore
from support.timers import Timers
from support.waiting import wait_for
from support.world import T0_US, World, running_world

S = 1_000_000
HOOK = "hook"
BEGINNING = Mark(-1, "")


@dataclass
class Receivers:
    """A deliverer that reads items in batches of `batch` and keeps what it delivered, by consumer name.

    `answers` overrides the outcome of the next deliveries to a name, `gates` holds deliveries until they are set,
    and `late_gates` those that have read their batch.
    """

    world: World
    batch: int = 2
    delivered: dict[str, list[str]] = field(default_factory=dict)
    turns: list[Consumer] = field(default_factory=list)
    answers: dict[str, list[Outcome | Exception]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    late_gates: dict[str, asyncio.Event] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    running: dict[Consumer, int] = field(default_factory=dict)
    most_running: int = 0

    def host(self, consumer: Consumer) -> str:
        return self.hosts.get(consumer.name, "")

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        assert consumer not in self.running, "two deliveries in flight to one consumer"
        self.running[consumer] = 1
        self.most_running = max(self.most_running, len(self.running))
        try:
            return await self._deliver(consumer, position)
        finally:
            del self.running[consumer]

    async def _deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        self.turns.append(consumer)
        await asyncio.sleep(0)  # a store in memory answers at once
        if consumer.name in self.gates:
            await self.gates[consumer.name].wait()
        if self.answers.get(consumer.name):
            answer = self.answers[consumer.name].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        changes = await self.world.service.read(
            lambda tx, context: read_changes(tx, context, consumer, position, SMART, self.batch)
        )
        if consumer.name in self.late_gates:
            await self.late_gates[consumer.name].wait()
        if changes is None:
            return Gone("the feed does not exist any more")
        self.delivered.setdefault(consumer.name, []).extend(item.id for item in changes.items)
        return Delivered(changes.end, changes.more)


class Bench:
    """A world whose feeds are followed by hooks."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.timers = Timers()
        self.receivers = Receivers(world)
        self.rules: dict[str, object] = {}
        self.dispatcher = self.made()
        world.service._on_change = self.changed

    def changed(self, node_nos: object) -> None:
        self.dispatcher.wake(node_nos)  # type: ignore[arg-type]

    def made(self, **rules: object) -> Dispatcher:
        """A dispatcher with these rules; the one before it is forgotten."""
        self.rules = {"backoff": Backoff(2.0, 60.0), **rules}
        self.dispatcher = Dispatcher(self.world.service, DeliveryTiming(self.world.clock, lambda: 0.0, self.timers))
        self.dispatcher.register(HOOK, ConsumerKind(self.receivers, **self.rules))  # type: ignore[arg-type]
        return self.dispatcher

    async def follow(self, *names: str, node_no: int = 1) -> list[Consumer]:
        """Adds consumers that begin before the first item."""
        consumers = [Consumer(node_no, f"{HOOK}:{name}") for name in names]
        for consumer in consumers:
            await self.world.store.write(
                lambda tx, consumer=consumer: add_consumer(tx, consumer, Order.MODIFIED, BEGINNING)  # type: ignore[misc]
            )
            self.dispatcher.follow(consumer)
        return consumers

    async def restart(self, *consumers: Consumer, **rules: object) -> None:
        """An orderly end of the mechanism, and another one over the same store."""
        await self.dispatcher.stop()
        self.made(**rules)
        for consumer in consumers:
            self.dispatcher.follow(consumer)
        await self.dispatcher.resume(HOOK)

    async def crash(self, *consumers: Consumer) -> None:
        """The mechanism ends without storing anything more."""
        await self.dispatcher.pause(HOOK)
        saver = self.dispatcher._saver
        if saver is not None:
            saver.cancel()
            await asyncio.gather(saver, return_exceptions=True)
        self.made()
        for consumer in consumers:
            self.dispatcher.follow(consumer)
        await self.dispatcher.resume(HOOK)

    def got(self, name: str) -> str:
        """What a consumer has received since the last look."""
        return " ".join(self.receivers.delivered.pop(f"{HOOK}:{name}", []))

    async def fire(self, seconds: float) -> None:
        """Lets a pause pass: the clock moves, and the timers that wait no longer than it are run."""
        self.world.clock.move(seconds)
        self.timers.fire(longest=seconds)
        await self.quiet()

    async def quiet(self) -> None:
        await self.dispatcher.idle()
        await settle()

    async def wait(self, consumer: Consumer) -> Wait | None:
        """Why the consumer waits, as stored."""
        await self.dispatcher.save_marks()
        return await self.world.store.read(lambda tx: tx.wait(consumer))

    async def failure(self, consumer: Consumer) -> Failure | None:
        """The failure as stored."""
        wait = await self.wait(consumer)
        assert not isinstance(wait, Pause)
        return wait


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running_world(SqliteMemoryStore()) as world:
        await world.create("feed")
        made = Bench(world)
        await made.dispatcher.resume(HOOK)
        yield made
        # A write that a failed test holds back must not hold up the other tests.
        await wait_for(made.dispatcher.stop(), "the end of the dispatcher")


async def publish(bench: Bench, ids: str, node: str = "feed") -> None:
    for item_id in ids.split():
        await bench.world.publish(item_id, node=node)
        bench.world.clock.move(1)


async def test_each_consumer_of_a_feed_receives_every_item_in_order(bench: Bench) -> None:
    await bench.follow("a", "b")
    await publish(bench, "1 2 3 4 5")
    await bench.quiet()

    assert bench.got("a") == bench.got("b") == "1 2 3 4 5"


async def test_consumer_goes_on_from_its_stored_mark_after_a_restart(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await publish(bench, "1 2 3")
    await bench.quiet()
    assert bench.got("a") == "1 2 3"
    await bench.dispatcher.pause(HOOK)
    await publish(bench, "4 5")
    await bench.restart(consumer)
    await bench.quiet()

    assert bench.got("a") == "4 5"


async def test_marks_that_cannot_be_stored_in_a_hand_over_never_replace_those_of_the_next_owner(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-045]"""
    (consumer,) = await bench.follow("a")
    await publish(bench, "1 2")
    await bench.quiet()

    async def fail(_work: object) -> None:
        raise StoreError("a row is locked for too long")

    with monkeypatch.context() as patch:
        patch.setattr(bench.dispatcher.ownership, "write_marks", fail)
        with pytest.raises(StoreError):
            await bench.dispatcher.end(ALL_SHARDS)
    newer = Mark(T0_US + 3600 * S, "of the next owner")
    await bench.world.store.write(lambda tx: tx.set_mark(1, Order.MODIFIED, consumer.name, newer))
    await bench.dispatcher.save_marks()

    assert await bench.world.store.read(lambda tx: tx.mark(1, Order.MODIFIED, consumer.name)) == newer


async def test_crash_repeats_at_most_what_was_delivered_since_the_marks_were_stored(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await publish(bench, "1 2")
    await bench.quiet()
    await bench.dispatcher.save_marks()
    await publish(bench, "3 4")
    await bench.quiet()
    assert bench.got("a") == "1 2 3 4"
    await bench.crash(consumer)
    await bench.quiet()

    assert bench.got("a") == "3 4"


async def test_delivery_in_flight_when_the_service_stops_is_not_repeated_if_it_ends_in_time(bench: Bench) -> None:
    """The mark of a delivery that ends within the grace of a stop is stored; nothing more is begun."""
    begin = bench.receivers.gates[f"{HOOK}:a"] = asyncio.Event()
    gate = bench.receivers.late_gates[f"{HOOK}:a"] = asyncio.Event()
    (consumer,) = await bench.follow("a")
    await publish(bench, "1 2 3")
    begin.set()
    await settle()

    stop = asyncio.create_task(bench.dispatcher.stop())
    await settle()
    bench.receivers.late_gates.clear()
    gate.set()
    await stop
    assert bench.got("a") == "1 2"

    await bench.restart(consumer)
    await bench.quiet()
    assert bench.got("a") == "3"


async def test_slow_consumer_of_a_feed_does_not_delay_another_one(bench: Bench) -> None:
    gate = bench.receivers.gates["hook:slow"] = asyncio.Event()
    await bench.follow("slow", "quick")
    await publish(bench, "1 2 3 4 5")
    await settle()

    assert (bench.got("quick"), bench.got("slow")) == ("1 2 3 4 5", "")
    gate.set()
    await bench.quiet()
    assert bench.got("slow") == "1 2 3 4 5"


async def test_change_during_a_delivery_is_delivered_by_another_turn_of_the_same_consumer(bench: Bench) -> None:
    """No second delivery is in flight: `Receivers.deliver` asserts it."""
    gate = bench.receivers.gates["hook:a"] = asyncio.Event()
    await bench.follow("a")
    await publish(bench, "1")
    await settle()
    await publish(bench, "2 3")
    await settle()
    assert len(bench.receivers.running) == 1
    gate.set()
    await bench.quiet()

    assert bench.got("a") == "1 2 3"


async def test_change_behind_the_read_of_a_delivery_is_not_missed(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    gate = bench.receivers.late_gates[consumer.name] = asyncio.Event()
    await publish(bench, "1")
    await settle()
    await publish(bench, "2")
    await settle()
    gate.set()
    await bench.quiet()

    assert bench.got("a") == "1 2"


async def test_deliveries_of_a_kind_are_bounded(bench: Bench) -> None:
    bench.made(at_once=3)
    await bench.dispatcher.resume(HOOK)
    await bench.follow(*"abcdefgh")
    await publish(bench, "1 2 3")
    await bench.quiet()

    assert bench.receivers.most_running == 3
    assert {name: bench.got(name) for name in "abcdefgh"} == dict.fromkeys("abcdefgh", "1 2 3")


async def test_host_that_does_not_answer_takes_no_more_places_than_it_has(bench: Bench) -> None:
    bench.made(at_once=4, host_at_once=2)
    await bench.dispatcher.resume(HOOK)
    gate = asyncio.Event()
    for name in "abcde":
        bench.receivers.hosts[f"hook:{name}"] = "slow.example"
        bench.receivers.gates[f"hook:{name}"] = gate
    await bench.follow(*"abcde", "z")
    await publish(bench, "1")
    await settle()

    assert sorted(consumer.name for consumer in bench.receivers.running) == ["hook:a", "hook:b"]
    assert bench.got("z") == "1"
    gate.set()
    await bench.quiet()
    assert [bench.got(name) for name in "abcde"] == ["1"] * 5
    assert bench.receivers.most_running <= 3


async def test_feeds_take_turns_whatever_the_number_of_their_consumers(bench: Bench) -> None:
    bench.made(at_once=1)
    await bench.dispatcher.resume(HOOK)
    await bench.world.create("other")
    gate = bench.receivers.gates["hook:first"] = asyncio.Event()
    await bench.follow("first", *(f"c{number:02}" for number in range(20)))
    await bench.follow("alone", node_no=2)
    await publish(bench, "1")
    await settle()
    await publish(bench, "2", node="other")
    gate.set()
    await bench.quiet()

    names = [consumer.name for consumer in bench.receivers.turns]
    assert names.index("hook:alone") <= 22 + 2  # 22 looks when they were added, and one consumer of the other feed
    assert bench.got("alone") == "2"


async def test_consumers_with_a_long_backlog_take_turns(bench: Bench) -> None:
    await bench.dispatcher.pause(HOOK)
    bench.made(at_once=1)
    await publish(bench, "1 2 3 4 5 6")
    await bench.follow("a", "b")
    await bench.dispatcher.resume(HOOK)
    await bench.quiet()

    names = [consumer.name[-1] for consumer in bench.receivers.turns]
    assert "".join(names[:6]) == "ababab"
    assert bench.got("a") == bench.got("b") == "1 2 3 4 5 6"


async def test_failed_delivery_is_tried_again_after_growing_pauses(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter(f"error {number}") for number in range(8)]
    await publish(bench, "1")
    pauses = []
    for _ in range(8):
        await bench.quiet()
        (pause_s,) = bench.timers.planned
        pauses.append(pause_s)
        await bench.fire(pause_s)

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]  # half of the doubled value: the random part is 0
    assert bench.got("a") == "1"
    assert bench.dispatcher.failure(consumer) is None and await bench.failure(consumer) is None


async def test_change_during_a_pause_makes_no_attempt_and_is_delivered_after_it(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=100.0)]
    await publish(bench, "1")
    await bench.quiet()
    turns = len(bench.receivers.turns)
    await publish(bench, "2")
    await bench.dispatcher.look()
    await bench.quiet()
    assert len(bench.receivers.turns) == turns
    await bench.fire(100.0)

    assert bench.got("a") == "1 2"


async def test_schedule_of_a_failed_consumer_survives_a_restart(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=100.0)]
    await publish(bench, "1")
    await bench.quiet()
    bench.timers.waiting.clear()
    bench.world.clock.move(40)
    turns = len(bench.receivers.turns)
    await bench.restart(consumer)
    await bench.quiet()

    assert len(bench.receivers.turns) == turns
    assert bench.timers.planned == [60.0]
    failure = await bench.failure(consumer)
    assert failure is not None and (failure.count, failure.error) == (1, "away")
    bench.receivers.answers[consumer.name] = [RetryAfter("away")]
    await bench.fire(60)
    failure = await bench.failure(consumer)
    assert failure is not None and failure.count == 2
    await bench.fire(60)
    assert bench.got("a") == "1" and await bench.failure(consumer) is None


async def test_part_that_was_delivered_before_a_failure_is_not_delivered_again(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [
        RetryAfter("away", position=ConsumerPosition({Order.MODIFIED: Mark(T0_US, "first")}))
    ]
    await publish(bench, "1 2")
    await bench.quiet()
    await bench.dispatcher.save_marks()
    assert await bench.world.store.read(lambda tx: tx.mark(1, Order.MODIFIED, consumer.name)) == Mark(T0_US, "first")
    await bench.fire(60)

    assert bench.got("a") == "2"


@pytest.mark.parametrize(
    ("rules", "attempts"), [({"give_up_failures": 3}, 3), ({"give_up_s": 5.0}, 4)], ids=["count", "age"]
)
async def test_service_gives_up_by_count_or_age_and_keeps_the_mark(
    bench: Bench, rules: dict[str, object], attempts: int
) -> None:
    """Pauses of 1, 2 and 4 seconds: five seconds are over at the fourth attempt."""
    bench.made(**rules)
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away")] * 9
    bench.receivers.turns.clear()
    await publish(bench, "1")
    await bench.quiet()
    for _ in range(6):
        for pause_s in bench.timers.planned:
            await bench.fire(pause_s)
    assert len(bench.receivers.turns) == attempts
    failure = await bench.failure(consumer)
    assert failure is not None and failure.next_us is None
    assert bench.dispatcher.readings()[0].stopped == 1

    await bench.restart(consumer, **rules)
    await publish(bench, "2")
    await bench.quiet()
    assert len(bench.receivers.turns) == attempts
    bench.receivers.answers.clear()
    bench.dispatcher.hurry(consumer)
    await bench.quiet()
    assert bench.got("a") == "1 2" and await bench.failure(consumer) is None


@pytest.mark.parametrize("give_up", [1, 9])
async def test_request_of_an_operator_ends_the_pause_or_resumes_a_consumer_that_was_given_up(
    bench: Bench, give_up: int
) -> None:
    """`smartfeeds consumer retry` stores the request, and the running service finds it at its next look."""
    bench.made(give_up_failures=give_up)
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away")]
    await publish(bench, "1")
    await bench.quiet()
    await bench.failure(consumer)
    await bench.dispatcher.look()
    await bench.quiet()
    assert bench.got("a") == ""

    requested = await bench.world.service.write(lambda tx, context: retry_consumers(tx, context, consumer.name))
    await bench.dispatcher.look()
    await bench.quiet()
    assert requested == [consumer]
    assert bench.got("a") == "1" and await bench.failure(consumer) is None


async def test_requested_attempt_that_fails_counts_with_those_before_it(bench: Bench) -> None:
    """The operator sees since when the receiver has been away, and the pauses do not begin anew."""
    bench.made(give_up_failures=9)
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away"), RetryAfter("away")]
    await publish(bench, "1")
    await bench.quiet()
    first = await bench.failure(consumer)
    bench.world.clock.move(5)
    await bench.world.service.write(lambda tx, context: retry_consumers(tx, context, consumer.name))
    await bench.dispatcher.look()
    await bench.quiet()
    second = await bench.failure(consumer)

    assert first is not None and second is not None
    assert (first.count, second.count, second.since_us) == (1, 2, first.since_us)


def test_failure_without_a_pause_is_no_request_of_an_operator() -> None:
    """A look at the store would put an older failure in the place of this one."""
    failure = next_failure(None, "away", T0_US, Backoff(2.0, 60.0), 0.0, pause_s=0.0)
    assert not is_retry_request(failure)
    assert is_retry_request(replace(failure, next_us=RETRY_REQUEST_US))


async def test_request_of_an_operator_is_served_after_a_restart(bench: Bench) -> None:
    rules: dict[str, object] = {"give_up_failures": 1}
    bench.made(**rules)
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away")]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.stop()
    await bench.world.service.write(lambda tx, context: retry_consumers(tx, context, None))
    await bench.restart(consumer, **rules)
    await bench.fire(0)
    assert bench.got("a") == "1" and await bench.failure(consumer) is None


async def test_gone_receiver_is_removed_with_its_marks_and_others_go_on(bench: Bench) -> None:
    gone, stays = await bench.follow("gone", "stays")
    await bench.quiet()
    bench.receivers.answers[gone.name] = [Gone("410")]
    await publish(bench, "1")
    await bench.quiet()
    await publish(bench, "2")
    await bench.quiet()

    assert (bench.got("gone"), bench.got("stays")) == ("", "1 2")
    await bench.dispatcher.save_marks()
    rows = await bench.world.store.read(lambda tx: tx.consumers((0, "", ""), 9))
    assert [row.consumer for row in rows] == [stays]


async def test_deliverer_that_has_removed_its_consumer_may_add_it_again(bench: Bench) -> None:
    """The mark of the new consumer stays."""
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [Gone("done", removed=True)]
    await publish(bench, "1")
    await bench.quiet()
    await publish(bench, "2")
    await bench.quiet()

    assert bench.got("a") == ""
    rows = await bench.world.store.read(lambda tx: tx.consumers((0, "", ""), 9))
    assert [row.consumer for row in rows] == [consumer]


async def test_consumers_of_a_deleted_feed_are_gone(bench: Bench) -> None:
    await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    await bench.world.delete(node="feed")
    await bench.quiet()
    await bench.dispatcher.save_marks()

    assert await bench.world.store.read(lambda tx: tx.consumers((0, "", ""), 9)) == []
    assert bench.dispatcher.readings()[0].gone == 1


async def test_consumer_that_another_process_removed_is_not_stored_again(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    await bench.world.store.write(lambda tx: tx.remove_consumer(consumer))
    await bench.dispatcher.save_marks()

    assert await bench.world.store.read(lambda tx: tx.consumers((0, "", ""), 9)) == []


async def test_skipped_batch_is_passed_over(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    await bench.dispatcher.pause(HOOK)
    await publish(bench, "1 2 3")
    bench.receivers.answers[consumer.name] = [
        Skip(ConsumerPosition({Order.MODIFIED: Mark(T0_US + S, "2")}), "too large", more=True)
    ]
    await bench.dispatcher.resume(HOOK)
    await bench.quiet()

    assert bench.got("a") == "3"
    assert bench.dispatcher.readings()[0].skipped == 1


async def test_fault_of_the_program_counts_as_a_failed_delivery(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    consumer, _ = await bench.follow("bad", "good")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [ValueError("unforeseen")]
    await publish(bench, "1")
    await bench.quiet()

    assert bench.got("good") == "1" and "unforeseen" in capsys.readouterr().out
    failure = await bench.failure(consumer)
    assert failure is not None and "fault of this program" in failure.error
    await bench.fire(60)
    assert bench.got("bad") == "1"


async def test_consumer_that_was_forgotten_receives_nothing_and_keeps_its_mark(bench: Bench) -> None:
    """[SF-007] The delivery that runs is ended, and the mark that moved last is stored."""
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    gate = bench.receivers.gates["hook:a"] = asyncio.Event()
    await publish(bench, "2")
    await settle()
    await bench.dispatcher.forget(consumer)
    gate.set()
    await publish(bench, "3")
    await bench.quiet()
    assert bench.got("a") == "1" and not bench.receivers.running
    bench.dispatcher.follow(consumer)
    await bench.quiet()

    assert bench.got("a") == "2 3"


@dataclass
class HeldSaves:
    """Holds the transactions that store marks, and fails them with `errors`. Everything else is written at once."""

    bench: Bench
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    errors: list[StoreError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write = self.bench.world.service.write
        self.bench.world.service.write = self  # type: ignore[assignment, method-assign]

    async def __call__(self, work: Callable[..., object], *, turn: str = "", touch: Touch | None = None) -> object:
        if "write_marks" in getattr(work, "__qualname__", ""):
            await self.gate.wait()
            if self.errors:
                raise self.errors.pop()
        return await self.write(work, turn=turn, touch=touch)  # type: ignore[arg-type]


async def stored_key(bench: Bench, consumer: Consumer) -> int:
    mark = await bench.world.store.read(lambda tx: tx.mark(consumer.node_no, Order.MODIFIED, consumer.name))
    assert mark is not None
    return mark.key_us


async def test_mark_that_moves_while_others_are_stored_is_stored_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-007] Nothing else has to happen for it."""
    monkeypatch.setattr(dispatcher_module, "MARKS_FLUSH_S", 0)
    saves = HeldSaves(bench)
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    await publish(bench, "2")
    await bench.quiet()
    assert await stored_key(bench, consumer) == BEGINNING.key_us
    saves.gate.set()
    await settle()

    assert await stored_key(bench, consumer) == T0_US + S


async def test_marks_that_the_store_rejects_are_stored_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-007] Nothing else has to happen for it."""
    monkeypatch.setattr(dispatcher_module, "MARKS_FLUSH_S", 0)
    monkeypatch.setattr(dispatcher_module, "RETRY_S", 0)
    saves = HeldSaves(bench, errors=[StoreError("the disk is full")])
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    saves.gate.set()
    await settle()

    assert not saves.errors
    assert await stored_key(bench, consumer) == T0_US


async def test_marks_that_are_being_stored_at_the_end_are_stored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end cancels the task that stores them."""
    monkeypatch.setattr(dispatcher_module, "MARKS_FLUSH_S", 0)
    saves = HeldSaves(bench)
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    stop = asyncio.get_running_loop().create_task(bench.dispatcher.stop())
    await settle()
    saves.gate.set()
    await stop

    assert await stored_key(bench, consumer) == T0_US


async def test_failure_of_a_consumer_that_was_forgotten_is_stored(bench: Bench) -> None:
    """Mirrors are forgotten at the end of the service. The next start must not try a dead receiver at once."""
    (consumer,) = await bench.follow("a")
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=100.0)]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.forget(consumer)

    failure = await bench.failure(consumer)
    assert failure is not None and (failure.count, failure.error) == (1, "away")
    assert bench.dispatcher.failure(consumer) is None


async def test_receiver_that_asks_for_an_endless_pause_gets_a_week(bench: Bench) -> None:
    """A time beyond 64 bits would keep the marks of all consumers from being stored."""
    asks, other = await bench.follow("asks", "other")
    await bench.quiet()
    bench.receivers.answers[asks.name] = [RetryAfter("away", pause_s=1e300)]
    await publish(bench, "1")
    await bench.quiet()

    assert bench.timers.planned == [MAX_REQUESTED_PAUSE_S]
    failure = await bench.failure(asks)
    assert failure is not None and failure.next_us == failure.since_us + int(MAX_REQUESTED_PAUSE_S) * S
    assert await stored_key(bench, other) == T0_US


async def test_attempt_that_a_wrong_clock_put_far_away_comes_within_a_week(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=100.0)]
    bench.world.clock.move(400 * 86_400)
    await publish(bench, "1")
    await bench.quiet()
    bench.timers.waiting.clear()
    bench.world.clock.move(-400 * 86_400)
    await bench.restart(consumer)

    assert bench.timers.planned == [MAX_REQUESTED_PAUSE_S]


async def test_consumer_that_cannot_be_removed_now_is_removed_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its mark would stay in the store until the next start."""
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [Gone("410")]
    write, errors = bench.world.service.write, [StoreError("the disk is full")]

    async def failing_write(work: Callable[..., object], *, turn: str = "", touch: Touch | None = None) -> object:
        if "_remove" in getattr(work, "__qualname__", "") and errors:
            raise errors.pop()
        return await write(work, turn=turn, touch=touch)  # type: ignore[arg-type]

    monkeypatch.setattr(lane_module, "RETRY_S", 0)
    bench.world.service.write = failing_write  # type: ignore[assignment, method-assign]
    await publish(bench, "1")
    await bench.quiet()

    assert not errors
    assert await bench.world.store.read(lambda tx: tx.mark(1, Order.MODIFIED, consumer.name)) is None


async def test_paused_kind_begins_nothing_and_goes_on_when_resumed(bench: Bench) -> None:
    await bench.follow("a")
    await bench.quiet()
    await bench.dispatcher.pause(HOOK)
    turns = len(bench.receivers.turns)
    await publish(bench, "1 2 3")
    await bench.quiet()
    assert len(bench.receivers.turns) == turns and not bench.dispatcher.busy
    await bench.dispatcher.resume(HOOK)
    await bench.quiet()

    assert bench.got("a") == "1 2 3"


async def test_readings_tell_what_runs_waits_and_fails(bench: Bench) -> None:
    gate = bench.receivers.gates["hook:slow"] = asyncio.Event()
    _, away = await bench.follow("slow", "away")
    bench.receivers.answers[away.name] = [RetryAfter("away", pause_s=100.0)]
    await publish(bench, "1")
    await settle()
    bench.world.clock.move(9)
    (reading,) = bench.dispatcher.readings()

    assert (reading.kind, reading.running, reading.retrying, reading.stopped) == (HOOK, 1, 1, 0)
    assert reading.lag_s == 10.0 and (reading.done, reading.failed) == (0, 1)
    gate.set()
    await bench.fire(100.0)
    (reading,) = bench.dispatcher.readings()
    assert (reading.running, reading.retrying, reading.lag_s) == (0, 0, 0.0)


async def test_lag_begins_again_when_everything_read_was_delivered(bench: Bench) -> None:
    """A feed that changes during every delivery is not behind."""
    await bench.follow("a")
    await bench.quiet()
    gate = bench.receivers.late_gates["hook:a"] = asyncio.Event()
    await publish(bench, "1")
    await settle()
    bench.world.clock.move(50)
    await publish(bench, "2")
    gate.set()
    gate = bench.receivers.late_gates["hook:a"] = asyncio.Event()
    await settle()
    bench.world.clock.move(3)
    (reading,) = bench.dispatcher.readings()
    gate.set()
    await bench.quiet()

    assert reading.running == 1 and reading.lag_s == 3.0
    assert bench.got("a") == "1 2"


async def test_request_of_an_operator_is_not_overwritten_by_a_failure_that_waits_to_be_stored(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=300.0)]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.save_marks()
    bench.dispatcher.hurry(consumer)
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=300.0)]
    await bench.quiet()
    await bench.world.service.write(partial(retry_consumers, name=consumer.name))
    await bench.dispatcher.save_marks()
    await bench.dispatcher.look()
    await bench.quiet()

    assert bench.got("a") == "1" and await bench.failure(consumer) is None


async def test_change_between_the_read_of_a_resumption_and_its_end_is_delivered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would wait for the next look at the store."""
    await bench.follow("a")
    await bench.quiet()
    await bench.dispatcher.pause(HOOK)
    read = bench.world.service.read

    async def slow_read(work: Callable[..., object], *, turn: str = "", touch: Touch | None = None) -> object:
        answer = await read(work, turn=turn, touch=touch)  # type: ignore[arg-type]
        monkeypatch.setattr(bench.world.service, "read", read)
        await publish(bench, "1")
        return answer

    monkeypatch.setattr(bench.world.service, "read", slow_read)
    await bench.dispatcher.resume(HOOK)
    await bench.quiet()

    assert bench.got("a") == "1"


async def test_lag_grows_while_the_link_is_down(bench: Bench) -> None:
    """A consumer without a link has something to receive, and alarms depend on its lag."""
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [LinkError("down"), LinkError("down")]
    await publish(bench, "1")
    await bench.quiet()
    bench.world.clock.move(599)
    await bench.dispatcher.look()
    await bench.quiet()
    (reading,) = bench.dispatcher.readings()
    assert reading.lag_s == 600.0 and not bench.dispatcher.is_current(consumer)
    await bench.dispatcher.pause(HOOK)
    assert bench.dispatcher.readings()[0].lag_s == 600.0
    await bench.dispatcher.resume(HOOK)
    await bench.quiet()

    assert bench.got("a") == "1" and bench.dispatcher.is_current(consumer)
    assert bench.dispatcher.readings()[0].lag_s == 0.0


async def test_lag_of_what_was_delivered_elsewhere_ends_with_the_pause(bench: Bench) -> None:
    """Another process may have delivered it meanwhile: then the consumer is not behind."""
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [LinkError("down")]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.pause(HOOK)
    mark = Mark(bench.world.clock(), "")
    await bench.world.store.write(lambda tx: tx.set_mark(1, Order.MODIFIED, consumer.name, mark))
    await bench.dispatcher.resume(HOOK)

    assert bench.dispatcher.is_current(consumer) and bench.dispatcher.readings()[0].lag_s == 0.0


async def test_consumer_that_cannot_be_saved_is_not_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark and its failure stay in memory and are stored later."""
    (consumer,) = await bench.follow("a")
    await publish(bench, "1")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=100.0)]
    await publish(bench, "2")
    await bench.quiet()
    write, errors = bench.world.service.write, [StoreError("the disk is full")]

    async def failing_write(work: Callable[..., object], *, turn: str = "", touch: Touch | None = None) -> object:
        if errors:
            raise errors.pop()
        return await write(work, turn=turn, touch=touch)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.world.service, "write", failing_write)
    with pytest.raises(StoreError):
        await bench.dispatcher.forget(consumer)
    failure = await bench.failure(consumer)

    assert failure is not None and failure.error == "away"
    assert await stored_key(bench, consumer) == T0_US


async def test_failure_during_the_write_of_the_former_success_is_removed_by_the_next_success(bench: Bench) -> None:
    """Otherwise the stored failure outlives it: the list of consumers shows it for ever."""
    (consumer,) = await bench.follow("a")
    bench.receivers.answers[consumer.name] = [RetryAfter("away", pause_s=1.0)]
    await publish(bench, "1")
    await bench.quiet()
    assert await bench.failure(consumer) is not None
    await bench.fire(1.0)
    saves = HeldSaves(bench)
    first = asyncio.get_running_loop().create_task(bench.dispatcher.save_marks())
    await settle()
    bench.receivers.answers[consumer.name] = [RetryAfter("away again", pause_s=1.0)]
    await publish(bench, "2")
    await bench.quiet()
    second = asyncio.get_running_loop().create_task(bench.dispatcher.save_marks())
    await settle()
    saves.gate.set()
    await asyncio.gather(first, second)
    assert await bench.failure(consumer) is not None
    await bench.fire(1.0)

    assert bench.got("a") == "1 2" and await bench.failure(consumer) is None


OUTCOMES = st.sampled_from([None, None, None, RetryAfter("away"), RetryAfter("busy", pause_s=3.0), ValueError("fault")])
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 1)),
    st.tuples(st.just("fail"), st.integers(0, 3), OUTCOMES),
    st.tuples(st.just("pass"), st.sampled_from([1.0, 5.0, 60.0])),
    st.tuples(st.sampled_from(["turn", "restart", "crash", "pause", "resume"])),
)


@given(steps=st.lists(STEPS, max_size=24), at_once=st.integers(1, 3))
@settings(max_examples=runs(30), deadline=None)
def test_every_consumer_receives_the_feed_in_order_whatever_happens(
    steps: list[tuple[object, ...]], at_once: int
) -> None:
    """Only a crash repeats items, and none is ever left out."""
    asyncio.run(_play(steps, at_once))


async def _play(steps: list[tuple[object, ...]], at_once: int) -> None:
    async with running_world(SqliteMemoryStore()) as world:
        nodes = ["one", "two"]
        for node in nodes:
            await world.create(node)
        bench = Bench(world)
        bench.made(at_once=at_once, host_at_once=1)
        bench.receivers.hosts = {"hook:2": "h", "hook:3": "h"}
        await bench.dispatcher.resume(HOOK)
        consumers = [(await bench.follow(str(number), node_no=1 + number % 2))[0] for number in range(4)]
        published: list[list[str]] = [[], []]
        actions: dict[object, Callable[[], object]] = {
            "restart": lambda: bench.restart(*consumers, at_once=at_once, host_at_once=1),
            "crash": lambda: bench.crash(*consumers),
            "pause": lambda: bench.dispatcher.pause(HOOK),
            "resume": lambda: bench.dispatcher.resume(HOOK),
            "turn": settle,
        }
        crashed = False
        for name, *values in steps:
            if name == "publish":
                (which,) = values
                assert isinstance(which, int)
                published[which].append(f"i{len(published[which])}")
                await publish(bench, published[which][-1], node=nodes[which])
            elif name == "fail":
                number, outcome = values
                if outcome is not None:
                    bench.receivers.answers.setdefault(f"hook:{number}", []).append(outcome)  # type: ignore[arg-type]
            elif name == "pass":
                (seconds,) = values
                assert isinstance(seconds, float)
                await bench.fire(seconds)
            else:
                crashed = crashed or name == "crash"
                await actions[name]()  # type: ignore[misc]
        bench.receivers.answers.clear()
        await bench.dispatcher.resume(HOOK)
        for _ in range(3):
            await bench.fire(3_600.0)
        await bench.dispatcher.stop()
        for number in range(4):
            got = bench.receivers.delivered.get(f"hook:{number}", [])
            wanted = published[number % 2]
            assert crashed or got == wanted
            # Each item comes for the first time behind the one before it, and what is repeated is a run of the feed.
            assert list(dict.fromkeys(got)) == wanted
            places = [wanted.index(item_id) for item_id in got]
            assert all(after <= before + 1 for before, after in pairwise(places))


async def test_planned_pause_is_no_failure(bench: Bench) -> None:
    """A receiver that wants its items later is never given up, nobody is warned, and the metrics show no failure."""
    rules: dict[str, object] = {"give_up_failures": 2, "give_up_s": 150.0}
    bench.made(**rules)
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [Planned(T0_US + (1 + n * 100) * S) for n in range(1, 5)]
    with structlog.testing.capture_logs() as logs:
        await publish(bench, "1")
        await bench.quiet()
        for n in range(1, 5):
            assert await bench.wait(consumer) == Pause(T0_US + (1 + n * 100) * S)
            assert bench.timers.planned == [100.0]
            (reading,) = bench.dispatcher.readings()
            assert (reading.failed, reading.retrying, reading.stopped, reading.lag_s) == (0, 0, 0, 0.0)
            assert bench.dispatcher.failure(consumer) is None and not bench.dispatcher.is_current(consumer)
            await bench.fire(100.0)
    assert logs == []
    assert bench.got("a") == "1" and await bench.wait(consumer) is None


async def test_planned_pause_leaves_earlier_failures_as_they_are(bench: Bench) -> None:
    """It neither ends the time after which the service gives up, nor makes the next pause longer."""
    bench.made()
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [
        RetryAfter("away", pause_s=60.0),
        Planned(T0_US + 161 * S),
        RetryAfter("away", pause_s=60.0),
    ]
    await publish(bench, "1")
    await bench.quiet()
    first = await bench.failure(consumer)
    await bench.fire(60.0)
    second = await bench.failure(consumer)
    await bench.fire(100.0)
    third = await bench.failure(consumer)

    assert first is not None and second is not None and third is not None
    assert (second.count, second.since_us, second.next_us) == (1, first.since_us, T0_US + 161 * S)
    assert (third.count, third.since_us) == (2, first.since_us)


async def test_planned_pause_survives_a_restart(bench: Bench) -> None:
    """The next process waits as long, and the stored pause ends with the delivery."""
    bench.made()
    await bench.dispatcher.resume(HOOK)
    (consumer,) = await bench.follow("a")
    await bench.quiet()
    bench.receivers.answers[consumer.name] = [Planned(T0_US + 101 * S)]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.stop()
    bench.made()
    await bench.dispatcher.resume(HOOK)
    bench.dispatcher.follow(consumer)
    await bench.quiet()

    assert bench.got("a") == "" and bench.timers.planned[-1:] == [100.0]
    await bench.fire(100.0)
    assert bench.got("a") == "1" and await bench.wait(consumer) is None


async def test_nothing_to_deliver_is_no_success(bench: Bench) -> None:
    """The failure stays, and so does its count; the next change wakes the consumer at once."""
    (consumer,) = await bench.follow("a")
    bench.receivers.answers[consumer.name] = [RetryAfter("no", 5.0), Idle(), RetryAfter("no", 5.0)]
    await publish(bench, "1")
    await bench.quiet()
    await bench.fire(5)
    failure = await bench.failure(consumer)
    assert failure is not None and failure.count == 1
    assert bench.timers.planned == [] and bench.dispatcher.lag_s() == 0
    await publish(bench, "2")
    await bench.quiet()
    failure = await bench.failure(consumer)
    assert failure is not None and failure.count == 2


async def test_position_moves_over_what_is_not_for_a_consumer(bench: Bench) -> None:
    (consumer,) = await bench.follow("a")
    mark = Mark(T0_US + 7, "c")
    bench.receivers.answers[consumer.name] = [Idle(ConsumerPosition({Order.MODIFIED: mark}))]
    await publish(bench, "1")
    await bench.quiet()
    await bench.dispatcher.save_marks()
    assert await bench.world.store.read(lambda tx: tx.mark(1, Order.MODIFIED, consumer.name)) == mark


async def test_receivers_that_become_silent_together_leave_their_places(bench: Bench) -> None:
    """[WS-059] A thousand at once: one that works waits for the first of them only until they are slow."""
    await bench.dispatcher.stop()
    bench.made(at_once=4, slow_at_once=8)
    await bench.dispatcher.resume(HOOK)
    silent = await bench.follow(*(f"silent{number}" for number in range(20)))
    gate = asyncio.Event()
    for consumer in silent:
        bench.receivers.gates[consumer.name] = gate
    await bench.follow("good")
    await publish(bench, "1")
    running = []
    for _ in range(4):
        await settle()
        running.append(len(bench.receivers.running))
        bench.timers.fire(lane_module.SLOW_S)
    # Beyond the bound of the slow ones the others wait.
    assert running == [4, 8, 12, 12]
    gate.set()
    await bench.quiet()
    assert bench.got("good") == "1"
    assert all(bench.got(consumer.name.partition(":")[2]) == "1" for consumer in silent)
    # Nothing is left behind: the next deliveries have their places.
    await publish(bench, "2")
    await bench.quiet()
    assert bench.got("silent19") == "2" and bench.timers.planned == []


async def test_other_work_has_its_turn_between_the_starts(bench: Bench) -> None:
    """A publish to a thousand subscribers does not delay the next publish by all their first steps."""
    await bench.dispatcher.stop()
    bench.made(at_once=100, starts=3)
    await bench.dispatcher.resume(HOOK)
    await bench.follow(*(f"hook{number}" for number in range(50)))
    await bench.quiet()
    counts: list[int] = []

    def look() -> None:
        counts.append(len(bench.dispatcher._lanes[HOOK].tasks))
        if counts[-1] < 50:
            asyncio.get_running_loop().call_soon(look)

    bench.dispatcher.wake([1])
    look()
    await bench.quiet()
    steps = [later - earlier for earlier, later in pairwise([0, *counts])]
    assert max(steps) == 3


@pytest.mark.parametrize(("pause_s", "served"), [(3600.0, 2), (0.001, 7)])
async def test_deliveries_start_in_groups_with_a_pause_between_them(bench: Bench, pause_s: float, served: int) -> None:
    """Only the first group starts before the pause. `idle` waits for the other groups, too."""
    names = [f"hook{number}" for number in range(7)]
    await bench.follow(*names)
    await bench.dispatcher.stop()
    bench.made(at_once=100, starts=2, pause_s=pause_s)
    await publish(bench, "1")
    await bench.follow(*names)
    await bench.dispatcher.resume(HOOK)
    if served < len(names):
        await settle()
        await settle()
    else:
        await bench.dispatcher.idle()
    assert sum(bench.got(name) == "1" for name in names) == served


async def test_consumers_that_fail_leave_room_for_those_that_work(bench: Bench) -> None:
    """[WS-059] However many receivers are dead, one that works does not wait for their time-outs."""
    await bench.dispatcher.stop()
    bench.made(at_once=4, failing_at_once=3)
    await bench.dispatcher.resume(HOOK)
    dead = await bench.follow(*(f"dead{number}" for number in range(20)))
    await bench.follow("good")
    for consumer in dead:
        bench.receivers.answers[consumer.name] = [RetryAfter("no", 5.0)]
    await publish(bench, "1")
    await bench.quiet()
    assert bench.got("good") == "1"
    gate = asyncio.Event()
    for consumer in dead:
        bench.receivers.gates[consumer.name] = gate
    bench.world.clock.move(5)
    bench.timers.fire()
    await settle()
    assert len(bench.receivers.running) == 3
    await publish(bench, "2")
    await settle()
    assert bench.got("good") == "2"
    assert len(bench.receivers.running) == 3
    gate.set()
    await bench.quiet()
    assert bench.got("dead19") == "1 2"


async def test_failing_consumer_that_is_hurried_is_served_once(bench: Bench) -> None:
    """It leaves the queue of those that fail."""
    await bench.dispatcher.stop()
    bench.made(at_once=1, failing_at_once=1)
    await bench.dispatcher.resume(HOOK)
    first, second = await bench.follow("a", "b")
    for consumer in (first, second):
        bench.receivers.answers[consumer.name] = [RetryAfter("no", 5.0)]
    await publish(bench, "1")
    await bench.quiet()
    gate = bench.receivers.gates[first.name] = asyncio.Event()
    bench.world.clock.move(5)
    bench.timers.fire()
    await settle()
    bench.dispatcher.hurry(second)
    gate.set()
    await bench.quiet()
    assert (bench.got("a"), bench.got("b")) == ("1", "1")

"""Wake-up: changes made here at once, those of other processes by looking, and failures end nothing."""

import asyncio
from collections.abc import Collection

import pytest

from smartfeeds.delivery import changes as module
from smartfeeds.delivery import indexing
from smartfeeds.delivery.changes import ChangeNotifier, WatchedNodes
from smartfeeds.delivery.indexing import Indexer
from smartfeeds.errors import StoreError
from smartfeeds.telemetry import REGISTRY
from support.faketime import FakeTime, settle
from support.sqlite_memory import SqliteMemoryStore
from support.world import FEED, World, running_world


class Noted:
    """A listener, or those who wait on `node_nos`; `faults` are raised by its looks."""

    def __init__(self, name: str, calls: list[tuple[str, tuple[int, ...]]], *faults: Exception) -> None:
        self.name = name
        self.calls = calls
        self.faults = list(faults)
        self.node_nos: Collection[int] = ()

    def wake(self, node_nos: Collection[int]) -> None:
        if node_nos:
            self.calls.append((self.name, tuple(node_nos)))

    async def look(self) -> None:
        self.calls.append((self.name, ()))
        if self.faults:
            raise self.faults.pop(0)


async def test_change_wakes_every_listener_in_order() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    changes = ChangeNotifier()
    for name in "ab":
        changes.listen(Noted(name, calls))
    changes.announce([3, 4])

    assert calls == [("a", (3, 4)), ("b", (3, 4))]


async def test_listener_is_forgotten_while_others_look() -> None:
    """None of the others is left out."""
    calls: list[tuple[str, tuple[int, ...]]] = []
    changes = ChangeNotifier()
    last = Noted("c", calls)

    class Leaving(Noted):
        async def look(self) -> None:
            await super().look()
            changes.forget(self)

    for listener in (Leaving("a", calls), Noted("b", calls), last):
        changes.listen(listener)
    await changes.look()
    changes.announce([3])
    changes.forget(last)
    changes.announce([4])

    assert calls == [("a", ()), ("b", ()), ("c", ()), ("b", (3,)), ("c", (3,)), ("b", (4,))]


async def test_every_listener_looks_again_and_again_whatever_fails(capsys: pytest.CaptureFixture[str]) -> None:
    time, calls = FakeTime(), list[tuple[str, tuple[int, ...]]]()
    changes = ChangeNotifier(time.sleep)
    changes.listen(Noted("a", calls, StoreError("disk on fire"), ValueError("unforeseen")))
    changes.listen(Noted("b", calls))
    task = asyncio.create_task(changes.run())
    await settle()
    assert calls == []
    for _ in range(3):
        await time.advance(module.LOOK_S)
    task.cancel()

    assert calls == [("a", ()), ("b", ())] * 3
    printed = capsys.readouterr().out
    assert "disk on fire" in printed and "unforeseen" in printed


async def test_waiters_are_woken_by_what_another_process_writes_to_their_nodes() -> None:
    """[SF-004] The first look at a node wakes too: it may have changed since its waiter read it. A node that nobody
    waits on is not read."""
    async with running_world(SqliteMemoryStore()) as world:
        await world.create(FEED)
        await world.create("other")
        calls: list[tuple[str, tuple[int, ...]]] = []
        waiters = Noted("w", calls)
        watched = WatchedNodes(world.service, waiters)
        waiters.node_nos = [1]
        await world.publish("0")
        await watched.look()
        assert calls == [("w", (1,))]
        await watched.look()
        assert calls == [("w", (1,))]
        await world.publish("a")
        await world.publish("b", node="other")
        await watched.look()
        assert calls == [("w", (1,))] * 2
        waiters.node_nos = []
        await watched.look()
        waiters.node_nos = [1]
        await world.publish("c")
        await watched.look()
        assert calls == [("w", (1,))] * 3
        watched.wake([2])
        assert calls[-1] == ("w", (2,))


async def test_changes_without_a_notice_are_counted() -> None:
    """[OPS-082] Those of nodes that had waiters at the look before. The look had to stand in for the notice."""
    async with running_world(SqliteMemoryStore()) as world:
        await world.create(FEED)
        waiters = Noted("w", [])
        waiters.node_nos = [1]
        watched = WatchedNodes(world.service, waiters)
        counts: list[float] = []

        async def look() -> None:
            before = REGISTRY.get_sample_value("smartfeeds_unannounced_changes_total")
            await watched.look()
            after = REGISTRY.get_sample_value("smartfeeds_unannounced_changes_total")
            assert before is not None
            assert after is not None
            counts.append(after - before)

        await look()
        await world.publish("a")
        watched.wake([1])
        await look()
        await world.publish("b")
        await look()
        await look()

    assert counts == [0.0, 0.0, 1.0, 0.0]


async def test_index_that_fails_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "INDEX_REST_S", 0)
    world = World(SqliteMemoryStore())
    indexer = Indexer(world.store)
    steps: list[int] = []

    async def index_some(_limit: int) -> int:
        steps.append(len(steps))
        indexer.wake([1])
        if len(steps) == 1:
            raise ValueError("unforeseen")
        if len(steps) == 3:
            raise asyncio.CancelledError
        return 1

    monkeypatch.setattr(world.store, "index_some", index_some)
    with pytest.raises(asyncio.CancelledError):
        await indexer.run()

    assert steps == [0, 1, 2]


async def test_index_begins_with_the_start_and_with_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with one that another process has made."""
    monkeypatch.setattr(indexing, "INDEX_REST_S", 0)
    monkeypatch.setattr(indexing, "QUIET_PAUSE", 0)
    world = World(SqliteMemoryStore())
    indexer = Indexer(world.store)
    left = [2]
    steps: list[int] = []

    async def index_some(_limit: int) -> int:
        steps.append(left[0])
        left[0] = max(0, left[0] - 1)
        return steps[-1]

    monkeypatch.setattr(world.store, "index_some", index_some)
    task = asyncio.create_task(indexer.run())
    await settle()
    assert steps == [2, 1, 0]
    await indexer.look()
    await settle()
    assert len(steps) == 4
    indexer.wake([1])
    await settle()
    task.cancel()

    assert steps == [2, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("done", "pauses"),
    [(indexing.INDEX_STEP, []), (1, [indexing.INDEX_REST_S] * 4)],
    ids=["many publishes", "few publishes"],
)
async def test_publishes_do_not_end_a_run_of_the_index(
    monkeypatch: pytest.MonkeyPatch, done: int, pauses: list[float]
) -> None:
    """The index keeps up while somebody publishes all the time: there is no pause between whole steps.

    Few publishes do not wait for a commit of the index each.
    """
    world = World(SqliteMemoryStore())
    indexer = Indexer(world.store)
    sleeps: list[float] = []
    left = 5

    async def sleep(delay_s: float) -> None:
        sleeps.append(delay_s)

    async def index_some(_limit: int) -> int:
        nonlocal left
        indexer.wake([1])
        left -= 1
        if not left:
            raise asyncio.CancelledError
        return done

    monkeypatch.setattr(world.store, "index_some", index_some)
    monkeypatch.setattr(indexing.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await indexer.run()

    assert sleeps == [indexing.INDEX_REST_S, *pauses]

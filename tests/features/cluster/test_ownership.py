"""The ownership of shards over locks in memory: share, hand-over, loss."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from smartfeeds.delivery.duties import Duty
from smartfeeds.delivery.shards import ALL_SHARDS, SHARDS, shard_of_name
from smartfeeds.errors import ConfigError, LinkError, NewerSchemaError, StoreError
from smartfeeds.features.cluster.lock_session import LockView
from smartfeeds.features.cluster.locks import ShardLocks
from smartfeeds.features.cluster.ownership import BEAT_S, SharedOwnership
from smartfeeds.features.cluster.shards import Members
from smartfeeds.push.fencing import FencedSender
from support.waiting import wait_for

LEASE_S = 5.0


@dataclass
class Table:
    """The locks of all processes."""

    shards: dict[int, "Locks"] = field(default_factory=dict)
    members: dict["Locks", bool] = field(default_factory=dict)
    link: "Locks | None" = None


@dataclass(eq=False)
class Locks:
    """The locks of one process in a table."""

    table: Table
    error: StoreError | None = None
    letters: list[tuple[str, bytes]] = field(default_factory=list)
    announced: list[Collection[int]] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.table.members[self] = False

    async def beat(self) -> LockView:
        if self.error is not None:
            raise self.error
        linked = sum(self.table.members.values())
        return LockView(Members(linked, len(self.table.members) - linked), frozenset(self.table.shards))

    async def join(self, *, is_linked: bool) -> None:
        self.table.members[self] = is_linked

    async def lock(self, shards: Iterable[int]) -> frozenset[int]:
        return frozenset(shard for shard in shards if self.table.shards.setdefault(shard, self) is self)

    async def unlock(self, shards: Iterable[int]) -> None:
        for shard in shards:
            assert self.table.shards.pop(shard) is self

    async def lease_link(self) -> bool:
        self.table.link = self.table.link or self
        return self.table.link is self

    async def write_marks(self, works: Sequence[Callable]) -> list[object]:  # type: ignore[type-arg]
        if self.error is not None:
            raise self.error
        return [work(None) for work in works]

    def announce(self, node_nos: Collection[int]) -> None:
        self.announced.append(node_nos)

    async def send_letter(self, recipient: str, body: bytes) -> None:
        self.letters.append((recipient, body))

    async def remove_letters(self) -> None:
        """Nothing is old in a test."""

    async def close(self) -> None:
        self.closed = True
        self.table.members.pop(self, None)
        for shard in [shard for shard, owner in self.table.shards.items() if owner is self]:
            del self.table.shards[shard]
        if self.table.link is self:
            self.table.link = None


@dataclass
class Work:
    """Notes what it is told."""

    calls: list[tuple[str, frozenset[int]]] = field(default_factory=list)

    async def begin(self, shards: frozenset[int]) -> None:
        self.calls.append(("begin", shards))

    async def end(self, shards: frozenset[int]) -> None:
        self.calls.append(("end", shards))

    def drop(self, shards: frozenset[int]) -> None:
        self.calls.append(("drop", shards))


class Process:
    """A process with a clock that stands still."""

    def __init__(self, table: Table, start_shard: int = 0) -> None:
        self.table, self.now_s, self.linked = table, 100.0, True
        self.locks: list[Locks] = []
        self.ownership = SharedOwnership(
            self._open,
            lease_s=LEASE_S,
            is_linked=lambda: self.linked,
            start_shard=start_shard,
            clock=lambda: self.now_s,
            sleep=asyncio.sleep,
        )
        self.work = Work()
        self.ownership.register(self.work)

    async def _open(self) -> ShardLocks:
        self.locks.append(Locks(self.table))
        return self.locks[-1]  # type: ignore[return-value]

    async def step(self) -> None:
        self.now_s += 1.0
        await self.ownership.step()
        await self.ownership.settle()


async def test_first_process_owns_all_shards_and_shares_them_with_the_second() -> None:
    """[TOP-040] [TOP-045] A shard is unlocked after its work has ended."""
    table = Table()
    first, second = Process(table), Process(table, 30)
    await first.ownership.start()
    assert first.ownership.owned == ALL_SHARDS
    await second.ownership.start()
    await second.step()
    for _ in range(2):
        await first.step()
        await second.step()
    assert len(first.ownership.owned) == len(second.ownership.owned) == SHARDS // 2
    assert not first.ownership.owned & second.ownership.owned
    assert ("end", second.ownership.owned) in first.work.calls
    assert second.ownership.reading().processes == 2


async def test_process_without_a_link_owns_nothing_beside_one_with_a_link() -> None:
    """[TOP-024] [TOP-040]"""
    table = Table()
    first, second = Process(table), Process(table)
    first.linked = False
    await first.ownership.start()
    assert first.ownership.owned == ALL_SHARDS
    await second.ownership.start()
    for _ in range(2):
        await first.step()
        await second.step()
    assert (first.ownership.owned, second.ownership.owned) == (frozenset(), ALL_SHARDS)


async def test_old_beat_means_that_nothing_is_owned() -> None:
    """[TOP-042] By the clock of the process: it may have been asleep."""
    process = Process(Table())
    await process.ownership.start()
    assert process.ownership.owns(3)
    process.now_s += LEASE_S
    assert not process.ownership.owns(3) and not process.ownership.is_current
    assert process.ownership.reading().shards == 0 and process.ownership.reading().lease_age_s == LEASE_S
    await process.step()
    assert process.ownership.owns(3)


async def test_lost_locks_end_everything_at_once_and_new_ones_are_opened() -> None:
    """[TOP-041] Nothing is stored: another process may own the shards."""
    process, lost = Process(Table()), []
    process.ownership.on_link_lost = lambda: lost.append("link")
    await process.ownership.start()
    await process.ownership.await_link()
    process.locks[0].error = StoreError("the session was lost")
    await process.step()
    assert process.work.calls[-1] == ("drop", ALL_SHARDS)
    assert process.ownership.owned == frozenset() and lost == ["link"] and process.locks[0].closed
    with pytest.raises(StoreError, match="owns no feeds"):
        await process.ownership.write_marks([lambda _tx: None])
    await process.step()
    assert process.ownership.owned == ALL_SHARDS and len(process.locks) == 2


async def test_age_of_the_last_beat_grows_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """[TOP-041] [OPS-082] An alarm on it must not end with the loss of the locks."""
    process = Process(Table())
    await process.ownership.start()
    process.locks[0].error = StoreError("the server cannot be reached")
    opened = process.ownership._open_locks
    monkeypatch.setattr(process.ownership, "_open_locks", unreachable)
    for _ in range(7):
        await process.step()
    assert process.ownership.reading().lease_age_s == 7.0
    monkeypatch.setattr(process.ownership, "_open_locks", opened)
    await process.step()
    assert process.ownership.reading().lease_age_s == 0.0


async def unreachable() -> ShardLocks:
    raise StoreError("the server cannot be reached")


async def test_database_of_a_newer_program_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-091] A newer program has upgraded the database while this process had no locks. To try again is no help."""
    process = Process(Table())
    await process.ownership.start()
    process.locks[0].error = StoreError("the connection was lost")
    await process.step()
    monkeypatch.setattr(process.ownership, "_open_locks", refuse)
    monkeypatch.setattr(process.ownership, "_sleep", lambda _seconds: asyncio.sleep(0))
    with pytest.raises(NewerSchemaError):
        await wait_for(process.ownership.run(), "the refusal of the database")
    assert process.ownership.owned == frozenset()


async def refuse() -> ShardLocks:
    raise NewerSchemaError("its schema 9999 is newer")


async def test_locks_that_are_lost_during_a_hand_over_end_the_work_of_all_shards() -> None:
    """[TOP-041] Also of shards that the next owner may have already."""
    table = Table()
    first, second = Process(table), Process(table, 30)
    await first.ownership.start()
    await second.ownership.start()

    begun = asyncio.Event()

    async def end(_shards: frozenset[int]) -> None:
        begun.set()
        await asyncio.Event().wait()

    first.work.end = end  # type: ignore[method-assign]
    await first.ownership.step()
    await wait_for(begun.wait(), "the hand-over")
    first.locks[0].error = StoreError("the session was lost")
    await first.ownership.step()

    assert first.work.calls[-1] == ("drop", ALL_SHARDS)


async def test_work_that_cannot_begin_does_not_keep_the_others_from_it() -> None:
    """[TOP-040] For example the mirrors, if their part of the configuration is wrong."""
    process, other = Process(Table()), Work()
    process.ownership.register(other)

    async def fail(_shards: frozenset[int]) -> None:
        raise ConfigError("two mirrors have one name")

    process.work.begin = fail  # type: ignore[method-assign]
    await process.ownership.start()

    assert other.calls == [("begin", ALL_SHARDS)]


async def test_locks_that_are_lost_during_the_start_do_not_end_the_start() -> None:
    """[TOP-041] [CAM-082] The database restarts while the work of the first shards begins."""
    process = Process(Table())

    class LongWork(Work):
        async def begin(self, shards: frozenset[int]) -> None:
            await super().begin(shards)
            if len(self.calls) == 1:
                process.ownership.note_lost("the database restarts")
                await asyncio.Event().wait()

    work = LongWork()
    process.ownership.register(work)
    await process.ownership.start()
    assert process.ownership.owned == frozenset()
    await process.step()
    assert process.ownership.owned == ALL_SHARDS
    assert [name for name, _ in work.calls] == ["begin", "drop", "begin"]


async def test_process_that_stops_hands_its_shards_over_and_takes_none_again() -> None:
    """[TOP-034] [TOP-045]"""
    table = Table()
    first, second = Process(table), Process(table)
    await first.ownership.start()
    await second.ownership.start()
    await first.ownership.release()
    await first.step()
    for _ in range(2):
        await second.step()
    assert first.ownership.owned == frozenset() and not first.locks[0].closed
    await first.ownership.stop()
    await first.step()
    await second.step()
    assert second.ownership.owned == ALL_SHARDS and first.locks[0].closed
    assert len(first.locks) == 1, "it does not come back"


async def test_link_is_leased_to_one_process() -> None:
    """[TOP-021]"""
    table = Table()
    first, second = Process(table), Process(table)
    await first.ownership.start()
    await second.ownership.start()
    await first.ownership.await_link()
    waiting = asyncio.create_task(second.ownership.await_link())
    second.ownership._sleep = lambda _seconds: asyncio.sleep(0)
    await first.ownership.stop()
    await wait_for(waiting, "the link")
    assert table.link is second.locks[0]


async def test_lease_of_a_session_that_is_lost_meanwhile_does_not_count() -> None:
    """[TOP-021] [TOP-041] The answer to the request comes after the loss."""
    process = Process(Table())
    await process.ownership.start()
    former = process.locks[0]

    async def lease_late() -> bool:
        await process.ownership.note_lost("the database was silent")
        process.ownership._sleep = lambda _seconds: process.ownership.step()
        return True

    former.lease_link = lease_late  # type: ignore[method-assign]
    await wait_for(process.ownership.await_link(), "the link")
    assert process.table.link is process.locks[1]


async def test_peer_with_a_link_is_known_by_the_last_beat() -> None:
    """[TOP-034] Only such a process can take the stanzas of one that stops."""
    first, second = Process(table := Table()), Process(table)
    second.linked = False
    await first.ownership.start()
    await second.ownership.start()
    await first.step()
    assert first.ownership.processes == 2 and not first.ownership.has_linked_peer
    assert second.ownership.has_linked_peer
    second.linked = True
    await second.step()
    await first.step()
    assert first.ownership.has_linked_peer


async def test_short_lease_has_several_beats() -> None:
    """[TOP-041] The database ends a session that was silent for the lease."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    for lease_s in (1.0, 60.0):
        process = Process(Table())
        process.ownership._lease_s = lease_s
        process.ownership._sleep = sleep
        task = asyncio.create_task(process.ownership.run())
        await asyncio.sleep(0)
        task.cancel()
    assert pauses == [0.25, BEAT_S]


async def test_process_that_stops_opens_no_other_locks() -> None:
    """[TOP-034] The next beat comes while the locks are being closed."""
    process = Process(Table())
    await process.ownership.start()
    process.ownership._sleep = lambda _seconds: asyncio.sleep(0)
    running = asyncio.create_task(process.ownership.run())
    close = process.locks[0].close

    async def close_slowly() -> None:
        for _ in range(20):  # several beats, which follow each other without a pause here
            await asyncio.sleep(0)
        await close()

    process.locks[0].close = close_slowly  # type: ignore[method-assign]
    await asyncio.sleep(0)
    await process.ownership.stop()
    assert len(process.locks) == 1 and running.cancelled()


async def test_duty_runs_while_its_shard_is_owned() -> None:
    """[PG-075] [PG-074]"""
    running: list[str] = []

    async def work() -> None:
        running.append("runs")
        try:
            await asyncio.Event().wait()
        finally:
            running.clear()

    duty = Duty("sources", work, lambda coroutine, name: asyncio.create_task(coroutine, name=name))
    shard = frozenset({shard_of_name("sources")})
    await duty.begin(ALL_SHARDS - shard)
    await asyncio.sleep(0)
    assert running == []
    await duty.begin(shard)
    await asyncio.sleep(0)
    assert running == ["runs"]
    await duty.end(ALL_SHARDS - shard)
    assert running == ["runs"]
    await duty.end(shard)
    assert running == []


async def test_duty_begins_again_when_its_last_run_has_ended() -> None:
    """[PG-075] The locks may come back before the work that they have ended is over."""
    runs: list[str] = []
    over = asyncio.Event()

    async def work() -> None:
        runs.append("run")
        try:
            await asyncio.Event().wait()
        finally:
            await over.wait()

    duty = Duty("sources", work, lambda coroutine, name: asyncio.create_task(coroutine, name=name))
    await duty.begin(ALL_SHARDS)
    await asyncio.sleep(0)
    duty.drop(ALL_SHARDS)
    beginning = asyncio.create_task(duty.begin(ALL_SHARDS))
    await asyncio.sleep(0)
    assert runs == ["run"]
    over.set()
    await beginning
    await asyncio.sleep(0)
    assert runs == ["run", "run"]
    await duty.end(ALL_SHARDS)


async def test_sender_stops_when_the_beat_is_old() -> None:
    """[TOP-042]"""

    class Wire:
        online = True

        async def notify(self, stanzas: Iterable[bytes]) -> int:
            return len(list(stanzas))

    process = Process(Table())
    await process.ownership.start()
    sender = FencedSender(Wire(), lambda: process.ownership.is_current)
    assert sender.online and await sender.notify([b"<message/>"]) == 1
    process.now_s += LEASE_S
    assert not sender.online
    with pytest.raises(LinkError, match="another process may deliver"):
        await sender.notify([b"<message/>"])
    assert sender.sent == 1


async def test_process_that_starts_counts_before_the_next_beat() -> None:
    """[TOP-013] Stanzas for it may arrive at once, such as the answers to its probes."""
    process = Process(Table())
    await process.ownership.start()
    assert process.ownership.processes == 1
    process.ownership.note_joined()
    assert process.ownership.processes == 2
    await process.ownership.step()
    assert process.ownership.processes == 1, "the database decides"

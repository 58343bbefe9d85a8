"""The ownership of shards by one of several processes on a database (docs/scaling.md, "Shards").

A process owns a shard while it has the lock in the database and its last beat is younger than the lease. The work of a
shard begins after its lock was taken, and ends before the lock is given back: two owners would send everything twice.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, TypeVar

import structlog

from smartfeeds.delivery.changes import RETRY_S, failures_logged
from smartfeeds.delivery.ownership import ShardWork
from smartfeeds.delivery.shards import ALL_SHARDS, shard_of_name
from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.features.cluster.locks import ShardLocks
from smartfeeds.features.cluster.metrics import OwnershipReading
from smartfeeds.features.cluster.shards import Members, plan_shards, shards_text
from smartfeeds.store.base import WriteTx

T = TypeVar("T")

# Five beats in the default lease of 5 s. A process that joins waits for two beats: with one the others release shards,
# with the next it takes them.
BEAT_S: Final = 1.0
LETTERS_S: Final = 60.0  # between two removals of letters that nobody has read: a write by each process

_log = structlog.get_logger()


class SharedOwnership:
    """The shards of this process. `start` and `stop` are called once; `run` runs in between.

    `open_locks` opens the locks. Without a beat for `lease_s` seconds of `clock` they are lost, and nothing is owned.
    `is_linked` returns whether this process can send over XMPP now. `start_shard` differs between processes.
    """

    def __init__(
        self,
        open_locks: Callable[[], Awaitable[ShardLocks]],
        *,
        lease_s: float,
        is_linked: Callable[[], bool],
        start_shard: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._open_locks = open_locks
        self._lease_s = lease_s
        self._is_linked = is_linked
        self._start_shard = start_shard
        self._clock = clock
        self._sleep = sleep
        self._locks: ShardLocks | None = None
        self._works: list[ShardWork] = []
        self._owned: frozenset[int] = frozenset()
        self._members = Members(0, 0)
        self._joined_linked = False  # whether the lock session counts this process among those with a link
        self._has_link = False
        self._is_leaving = False
        self._runner: asyncio.Task[None] | None = None
        self._is_over = False  # also a beat outside of `run` opens no locks any more
        self._beat_s = -math.inf
        self._last_beat_s = clock()  # of any locks; of the start before the first one
        self._letters_s = -math.inf
        self._moving: asyncio.Task[None] | None = None
        self.on_link_lost: Callable[[], object] = lambda: None

    # What this process owns.

    @property
    def owned(self) -> frozenset[int]:
        """The shards of this process."""
        return self._owned if self.is_current else frozenset()

    @property
    def is_current(self) -> bool:
        """Whether the last beat is younger than the lease, by the clock of this process.

        The database fences marks. This fences what is sent: a process that was asleep must not send the rest of a batch
        that another process sends, too.
        """
        return self._clock() < self._beat_s + self._lease_s

    def owns(self, shard: int) -> bool:
        """Whether this process does the work of a shard."""
        return shard in self._owned and self.is_current

    def owns_name(self, name: str) -> bool:
        """Whether this process does the background work of this name."""
        return self.owns(shard_of_name(name))

    @property
    def has_linked_peer(self) -> bool:
        """Whether another process had a link at the last beat."""
        return self._members.linked > self._joined_linked

    @property
    def has_link(self) -> bool:
        """Whether this process has the lease of the component's link."""
        return self._has_link

    @property
    def processes(self) -> int:
        """The number of processes on the database, at least one.

        Those without a link count, too: one of them may have got its link since the last beat.
        """
        return max(1, self._members.total)

    def reading(self) -> OwnershipReading:
        """The numbers for metrics and `status`."""
        return OwnershipReading(len(self.owned), self.processes, self._clock() - self._last_beat_s)

    def register(self, work: ShardWork) -> None:
        """Adds work that follows the ownership. Works begin in the order of the calls."""
        self._works.append(work)

    # Life.

    async def start(self) -> None:
        """Opens the locks, takes a share of the shards, and begins their work. Raises StoreError."""
        await self._beat()
        # A lock session that is lost meanwhile ends the move, but not the start: `run` opens another one.
        await self.settle()

    async def run(self) -> None:
        """Keeps the locks and the share of this process, for ever. Failures are logged.

        Raises NewerSchemaError: this program must not use the database any more, and a start would be refused.
        """
        self._runner = asyncio.current_task()
        try:
            while True:
                # Several beats in a lease: one of them may be late.
                await self._sleep(min(BEAT_S, self._lease_s / 4))
                with failures_logged():
                    await self.step()
        finally:
            self._runner = None

    async def step(self) -> None:
        """Sends one beat. A failure loses all shards; the next step opens new locks.

        Raises NewerSchemaError if a newer program has upgraded the database while this process had no locks.
        """
        if self._is_over:
            return  # a new lock session would count this process among the others
        try:
            # After so long the locks are lost, whether an answer comes or not.
            async with asyncio.timeout(self._lease_s):
                await self._beat()
        except NewerSchemaError as error:
            await self._lose(str(error))
            raise
        except (StoreError, TimeoutError) as error:
            reason = str(error) or "the database does not answer"
            if self._locks is None:
                _log.error("locks_not_opened", reason=reason)
            await self._lose(reason)

    async def settle(self) -> None:
        """Waits until the shards that are being taken or released have moved."""
        while self._moving is not None and not self._moving.done():
            await asyncio.wait((self._moving,))

    async def release(self) -> None:
        """Hands all shards over. This process takes no more of them."""
        self._is_leaving = True
        if self._moving is not None:
            # It could take shards behind the release.
            self._moving.cancel()
            await asyncio.gather(self._moving, return_exceptions=True)
        if self._locks is not None:
            with failures_logged():
                await self._end(self._locks, self._owned)

    async def stop(self) -> None:
        """Ends `run` and closes the locks. `release` comes first."""
        self._is_over = True
        if self._runner is not None:
            self._runner.cancel()  # it may wait for a server that does not answer
            await asyncio.gather(self._runner, return_exceptions=True)
        locks, self._locks = self._locks, None
        if locks is not None:
            with failures_logged():
                await locks.close()

    # Locks.

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works that fail if this process has lost its shards (`ShardLocks.write_marks`). Raises StoreError."""
        if self._locks is None:
            raise StoreError("this process owns no feeds now, because the lock session was lost")
        return await self._locks.write_marks(works)

    async def await_link(self) -> None:
        """Returns when this process has the lease of the component's link."""
        while not self._has_link:
            with failures_logged():
                locks = self._locks
                # The locks may be lost while the database answers.
                self._has_link = locks is not None and await locks.lease_link() and locks is self._locks
            if not self._has_link:
                await self._sleep(BEAT_S)

    def announce(self, node_nos: Collection[int]) -> None:
        """Wakes the other processes: this process has changed these nodes."""
        if self._locks is not None:
            self._locks.announce(node_nos)

    async def send_letter(self, recipient: str, body: bytes) -> None:
        """Passes bytes to the process of an instance, to EVERY_PROCESS or to ANY_PROCESS (`letter`). Raises
        StoreError."""
        if self._locks is None:
            raise StoreError("this process has no lock session now")
        await self._locks.send_letter(recipient, body)

    def note_joined(self) -> None:
        """Another process has started. It counts before the next beat, because stanzas for it may arrive here."""
        self._members = Members(self._members.linked, self._members.unlinked + 1)

    def note_lost(self, reason: str) -> "asyncio.Task[None]":
        """Gives everything up: the database has ended the session."""
        return asyncio.get_running_loop().create_task(self._lose(reason), name="ownership lost")

    async def _beat(self) -> None:
        if self._locks is None:
            self._locks = await self._open_locks()
            self._joined_linked = False
            if self._is_over:  # since the locks are being opened
                await self.stop()
                return
        locks, began_s = self._locks, self._clock()
        view = await locks.beat()
        # The time before the beat: the database may have received it right after it was sent.
        self._beat_s = self._last_beat_s = began_s
        self._members = view.members
        is_linked = self._is_linked()
        if is_linked is not self._joined_linked:
            await locks.join(is_linked=is_linked)
            self._joined_linked = is_linked
            self._members = view.members.moved(is_linked=is_linked)
        if began_s - self._letters_s >= LETTERS_S:
            self._letters_s = began_s
            await locks.remove_letters()
        if self._is_leaving or (self._moving is not None and not self._moving.done()):
            return
        plan = plan_shards(self._owned, view.held, self._members.share(is_linked=is_linked), self._start_shard)
        if plan.release or plan.take:
            # A task of its own: the beats must go on while a batch ends or the store is read.
            self._moving = asyncio.get_running_loop().create_task(self._move(locks, plan.release, plan.take))

    async def _move(self, locks: ShardLocks, release: frozenset[int], take: Collection[int]) -> None:
        with failures_logged():
            if release:
                await self._end(locks, release)
            if take:
                gained = await locks.lock(take) - self._owned
                # A session that was lost meanwhile has no locks any more.
                if gained and locks is self._locks:
                    self._owned |= gained
                    _log.info("shards_taken", shards=shards_text(gained), processes=self._members.total)
                    await self._begin(gained)

    async def _begin(self, shards: frozenset[int]) -> None:
        for work in self._works:
            # A failure of one work, such as a wrong section of the configuration, must not end the others.
            with failures_logged():
                await self._begin_work(work, shards)

    async def _begin_work(self, work: ShardWork, shards: frozenset[int]) -> None:
        while shards <= self._owned:
            try:
                await work.begin(shards)
                break
            except StoreError as error:
                # Nothing else would begin the work of these shards.
                _log.error("store_failed", reason=str(error))
                await self._sleep(RETRY_S)

    async def _end(self, locks: ShardLocks, shards: frozenset[int]) -> None:
        """Ends the work of shards, then unlocks them: the next owner reads the stored marks."""
        # First, so that nothing new begins for these shards while their work ends.
        self._owned -= shards
        for work in reversed(self._works):
            with failures_logged():
                await work.end(shards)
        await locks.unlock(shards)
        if shards:
            _log.info("shards_released", shards=shards_text(shards))

    async def _lose(self, reason: str) -> None:
        # First, so that a work that waits for the store in `_begin_work` gives up.
        locks, self._locks = self._locks, None
        lost, self._owned = self._owned, frozenset()
        self._beat_s = -math.inf
        if self._moving is not None:
            self._moving.cancel()
        for work in reversed(self._works):
            with failures_logged():
                # Of all shards: those that are being handed over are not among `lost`, and their work may still run.
                work.drop(ALL_SHARDS)
        if self._has_link:
            self._has_link = False
            self.on_link_lost()
        if locks is not None:
            _log.error("shards_lost", shards=shards_text(lost), reason=reason)
            with failures_logged():
                await locks.close()

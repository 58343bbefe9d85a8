"""The shards that this process owns: it delivers and does background work for these alone.

A process with a database of its own owns all shards. The feature `cluster` divides them between several processes
(docs/scaling.md).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from smartfeeds.delivery.changes import failures_logged, repeat_until_stored
from smartfeeds.delivery.shards import ALL_SHARDS
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

T = TypeVar("T")


class ShardWork(Protocol):
    """A part of the service that works for the shards that this process owns."""

    async def begin(self, shards: frozenset[int]) -> None:
        """Starts the work for shards that this process has just got. Raises StoreError."""

    async def end(self, shards: frozenset[int]) -> None:
        """Ends the work for shards and stores its state for their next owner. Raises StoreError."""

    def drop(self, shards: frozenset[int]) -> None:
        """Ends the work for shards at once. It stores nothing, because another process may own them already."""


class Ownership(Protocol):
    """The shards of this process, and the parts of the service that work for them."""

    @property
    def owned(self) -> frozenset[int]:
        """The numbers of the shards."""

    @property
    def processes(self) -> int:
        """The number of processes on the database."""

    @property
    def is_current(self) -> bool:
        """Whether the shards are still those of this process. If not, another process sends what this one has read."""

    def owns(self, shard: int) -> bool:
        """Whether this process does the work of a shard."""

    def owns_name(self, name: str) -> bool:
        """Whether this process does the background work of a name (`shards.shard_of_name`)."""

    def register(self, work: ShardWork) -> None:
        """Adds a work. Works begin in the order of the calls and end in the reverse order."""

    async def start(self) -> None:
        """Takes shards, and begins the works for them. Raises StoreError."""

    async def release(self) -> None:
        """Ends the works for all shards. This process takes no shard afterwards."""

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs functions that store marks, and returns their results. Raises StoreError, also if the shards are lost:
        marks of a former owner must not replace those of the next.

        The functions may share a transaction or have one each (PG-039).
        """


class SoleOwnership:
    """The ownership of a process with a database of its own: all shards at all times."""

    owned = ALL_SHARDS
    processes = 1
    is_current = True

    def __init__(self, service: FeedService) -> None:
        self._service = service
        self._works: list[ShardWork] = []

    def owns(self, _shard: int) -> bool:
        """Returns True: there is no other owner."""
        return True

    def owns_name(self, _name: str) -> bool:
        """Returns True: there is no other owner."""
        return True

    def register(self, work: ShardWork) -> None:
        """Adds a work. Works begin in the order of the calls and end in the reverse order."""
        self._works.append(work)

    async def start(self) -> None:
        """Begins all works."""
        for work in self._works:
            # A work that cannot begin, such as one with a wrong section of the configuration, must not keep the others
            # from it. No other process would begin a work that the store refuses, so this one repeats it.
            with failures_logged():
                await repeat_until_stored(partial(work.begin, ALL_SHARDS))

    async def release(self) -> None:
        """Ends all works, in the reverse order of their begin."""
        for work in reversed(self._works):
            with failures_logged():
                await work.end(ALL_SHARDS)

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs functions that store marks, all in one transaction. Returns their results. Raises StoreError."""
        return await self._service.write(lambda tx, _context: [work(tx) for work in works])

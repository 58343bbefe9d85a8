"""The ownership of shards, which decides the work of this process. A process with a database of its own owns all of
them.

A feature may divide the shards between several processes (docs/scaling.md).
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
    """Work that depends on the ownership of shards."""

    async def begin(self, shards: frozenset[int]) -> None:
        """Starts the work of shards that this process owns now. Raises StoreError."""

    async def end(self, shards: frozenset[int]) -> None:
        """Ends the work of shards, and stores its state. Another process may own them afterwards. Raises StoreError."""

    def drop(self, shards: frozenset[int]) -> None:
        """Ends the work of shards at once, and stores nothing: another process may own them already."""


class Ownership(Protocol):
    """The shards of this process."""

    @property
    def owned(self) -> frozenset[int]:
        """The shards of this process."""

    @property
    def processes(self) -> int:
        """The number of processes on the database."""

    @property
    def is_current(self) -> bool:
        """Whether this process may send what it has read: no other process has taken its shards meanwhile."""

    def owns(self, shard: int) -> bool:
        """Whether this process does the work of a shard."""

    def owns_name(self, name: str) -> bool:
        """Whether this process does the background work of this name."""

    def register(self, work: ShardWork) -> None:
        """Adds work that follows the ownership. Works begin in the order of the calls."""

    async def start(self) -> None:
        """Takes shards, and begins their work. Raises StoreError."""

    async def release(self) -> None:
        """Ends the work of all shards. This process takes no more of them."""

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works in one or several transactions, which fail if the shards are lost. Returns their results. Raises
        StoreError."""


class SoleOwnership:
    """The ownership of a process with a database of its own: all shards, also before `start`."""

    owned = ALL_SHARDS
    processes = 1
    is_current = True

    def __init__(self, service: FeedService) -> None:
        self._service = service
        self._works: list[ShardWork] = []

    def owns(self, _shard: int) -> bool:
        """Returns True."""
        return True

    def owns_name(self, _name: str) -> bool:
        """Returns True."""
        return True

    def register(self, work: ShardWork) -> None:
        """Adds work."""
        self._works.append(work)

    async def start(self) -> None:
        """Begins all work."""
        for work in self._works:
            # A failure of one work, such as a wrong section of the configuration, must not end the others. This process
            # is the only one, so it repeats what the store refuses.
            with failures_logged():
                await repeat_until_stored(partial(work.begin, ALL_SHARDS))

    async def release(self) -> None:
        """Ends all work, first what began last."""
        for work in reversed(self._works):
            with failures_logged():
                await work.end(ALL_SHARDS)

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works in one transaction. Returns their results. Raises StoreError."""
        return await self._service.write(lambda tx, _context: [work(tx) for work in works])

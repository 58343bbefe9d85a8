"""What the mechanism needs from the locks of several processes, and the locks of a process with its own database."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from smartfeeds.features.cluster.shards import Members
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

T = TypeVar("T")


class LockReading(Protocol):
    """The locks of all processes."""

    @property
    def members(self) -> Members:
        """The processes."""

    @property
    def held(self) -> frozenset[int]:
        """The shards that have an owner."""


class ShardLocks(Protocol):
    """The locks of one process (`lock_session`). The methods raise StoreError when the locks are lost."""

    async def beat(self) -> LockReading:
        """Keeps the locks, and returns those of all processes."""

    async def join(self, *, is_linked: bool) -> None:
        """Counts this process among the members with or without a link."""

    async def lock(self, shards: Iterable[int]) -> frozenset[int]:
        """Locks shards that have no owner. Returns those that this process owns now."""

    async def unlock(self, shards: Iterable[int]) -> object:
        """Releases shards."""

    async def lease_link(self) -> bool:
        """Locks the link of the component. Returns whether this process has it."""

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works in one or several transactions, which fail if the locks are lost. Returns their results."""

    def announce(self, node_nos: Collection[int]) -> None:
        """Wakes the other processes for changed nodes."""

    async def send_letter(self, recipient: str, body: bytes) -> object:
        """Passes bytes to another process."""

    async def remove_letters(self) -> object:
        """Removes letters that nobody has read in time."""

    async def close(self) -> None:
        """Releases all locks."""


@dataclass(frozen=True, slots=True)
class SoleReading:
    """The locks of a process with a database of its own."""

    members: Members
    held: frozenset[int] = frozenset()


class SoleLocks:
    """The locks of a process with a database of its own: it gets every lock, and no process waits for one."""

    def __init__(self, service: FeedService) -> None:
        self._service = service

    async def beat(self) -> SoleReading:
        """Returns the reading of a sole process."""
        return SoleReading(Members(1, 0))

    async def join(self, *, is_linked: bool) -> None:
        """Changes nothing."""

    async def lock(self, shards: Iterable[int]) -> frozenset[int]:
        """Returns the shards."""
        return frozenset(shards)

    async def unlock(self, shards: Iterable[int]) -> None:
        """Changes nothing."""

    async def lease_link(self) -> bool:
        """Returns True."""
        return True

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works in one transaction of the store. Raises StoreError."""
        return await self._service.write(lambda tx, _context: [work(tx) for work in works])

    def announce(self, node_nos: Collection[int]) -> None:
        """Changes nothing."""

    async def send_letter(self, recipient: str, body: bytes) -> None:
        """Changes nothing."""

    async def remove_letters(self) -> None:
        """Changes nothing."""

    async def close(self) -> None:
        """Changes nothing."""

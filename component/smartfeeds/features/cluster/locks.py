"""The interface of the locks of several processes."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from smartfeeds.features.cluster.shards import Members
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

"""What the two directions of a mirror share: the state in the store, and what the other side is known to have."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import structlog

from smartfeeds.core.mirror import REASON_CHARACTERS, Direction, Half
from smartfeeds.errors import StoreError
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.mirrors import save_half
from smartfeeds.store.base import WriteTx

T = TypeVar("T")
Change = Callable[[Half], Half]
Work = Callable[[WriteTx, Context], tuple[T, Change]]

KNOWN: Final = 20_000
FIRST_PAUSE_S: Final = 2.0
LONGEST_PAUSE_S: Final = 300.0
_MOST_DOUBLINGS: Final = 16

_log = structlog.get_logger()


def pause_of(failures: int, spread: float) -> float:
    """Seconds to wait after this many failures in a row, at least one; `spread` in 0..1 is chosen at random."""
    doubled = FIRST_PAUSE_S * (1 << min(failures - 1, _MOST_DOUBLINGS))
    return min(doubled, LONGEST_PAUSE_S) * (0.5 + spread / 2)


class Peer:
    """Which version of an item the other side was last seen to have, as far as it is remembered.

    It keeps changes from being sent back to where they came from. What is forgotten is sent once more at worst, which
    changes nothing there.
    """

    def __init__(self, limit: int = KNOWN) -> None:
        self._limit = limit
        self._versions: OrderedDict[str, bytes] = OrderedDict()

    def note(self, item_id: str, sync: bytes) -> None:
        """The other side has the version with this sync data."""
        self._versions[item_id] = _digest(sync)
        self._versions.move_to_end(item_id)
        if len(self._versions) > self._limit:
            self._versions.popitem(last=False)

    def has(self, item_id: str, sync: bytes) -> bool:
        """Whether it is known to have just this version."""
        return self._versions.get(item_id) == _digest(sync)


def _digest(sync: bytes) -> bytes:
    return hashlib.blake2b(sync, digest_size=16).digest()


class Keeper:
    """The state of one direction, in memory and in the store.

    What is only to be told (`note`) is written soon, or with the next `write`, in the order of the calls. `now_us`
    gives microseconds since the Unix epoch.
    """

    def __init__(
        self, service: FeedService, name: str, direction: Direction, half: Half, now_us: Callable[[], int]
    ) -> None:
        self.name = name
        self.direction = direction
        self.half = half
        self.now_us = now_us
        self._kept = half
        self._service = service
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def note(self, change: Change) -> None:
        """Changes the state; the store hears of it soon."""
        self.half = change(self.half)
        if self._writer is None and self.half != self._kept:
            self._writer = asyncio.get_running_loop().create_task(self._write_soon(), name=f"mirror {self.name} state")

    async def write(self, work: Work[T]) -> T:
        """Runs a work in a transaction, and keeps the state as it is behind it in the same one.

        Raises what the work raises, and StoreError: then neither has happened.
        """
        async with self._turn:
            before = self.half

            def both(tx: WriteTx, context: Context) -> tuple[T, Change, Half]:
                result, change = work(tx, context)
                then = change(before)
                save_half(tx, self.name, self.direction, then)
                return result, change, then

            result, change, self._kept = await self._service.write(both, turn=f"mirror {self.name}")
            self.half = self._kept if self.half is before else change(self.half)
            return result

    def fail(self, reason: str) -> None:
        """Something went wrong; what lasts is logged once."""
        if reason[:REASON_CHARACTERS] != self.half.failure:
            _log.warning("mirror_failing", mirror=self.name, direction=self.direction.value, reason=reason)
        self.note(lambda half: half.failing(reason, self.now_us()))

    def in_step(self) -> None:
        """Everything is there now."""
        self.note(self.stepping())

    def stepping(self) -> Change:
        """The change that `in_step` makes, for a work of `write`."""
        if self.half.failure:
            _log.info("mirror_works_again", mirror=self.name, direction=self.direction.value)
        now_us = self.now_us()
        return lambda half: replace(half.well(), in_step_us=now_us)

    async def settle(self) -> None:
        """Waits until the store has everything that was told."""
        while self._writer is not None:
            await asyncio.wait((self._writer,))

    async def _write_soon(self) -> None:
        try:
            while self.half != self._kept:
                await self.write(lambda _tx, _context: (None, _as_it_is))
        except StoreError as error:
            _log.error("mirror_state_not_kept", mirror=self.name, reason=str(error))
        finally:
            self._writer = None


def _as_it_is(half: Half) -> Half:
    return half

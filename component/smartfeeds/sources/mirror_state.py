"""The state of one direction of a mirror in the store, and the loop of the incoming directions."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

import structlog

from smartfeeds.client.follow import Timers
from smartfeeds.core.backoff import Backoff
from smartfeeds.core.mirror import REASON_CHARACTERS, Direction, MirrorState
from smartfeeds.errors import SmartfeedsError, StoreError
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.mirrors import save_half
from smartfeeds.store.base import WriteTx

T = TypeVar("T")
StateChange = Callable[[MirrorState], MirrorState]
StateWork = Callable[[WriteTx, Context], tuple[T, StateChange]]

BROKEN: Final = "a fault of this program, which the log tells more about"
BACKOFF: Final = Backoff(first_s=2.0, longest_s=300.0)

_log = structlog.get_logger()


class ThreadRunner(Protocol):
    """What runs a long function where it holds up nobody."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """The result of the function with these arguments."""


@dataclass(frozen=True, slots=True)
class MirrorTools:
    """The clock, the timers and the threads that mirrors use.

    `now_us` gives microseconds since the Unix epoch, `spread` a random number in 0..1; `sleep` waits for seconds.
    `timers` are those of the event loop where they are None; `aside` runs a function beside the event loop.
    """

    now_us: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    spread: Callable[[], float]
    timers: Timers | None = None
    aside: ThreadRunner = asyncio.to_thread


class MirrorStateKeeper:
    """The state of one direction, in memory and in the store.

    What is only to be told (`note`) is written soon, or with the next `write`, in the order of the calls. `now_us`
    gives microseconds since the Unix epoch. `failures` counts how often in a row it could not go on.
    """

    def __init__(
        self, service: FeedService, name: str, direction: Direction, half: MirrorState, now_us: Callable[[], int]
    ) -> None:
        self.name = name
        self.direction = direction
        self.half = half
        self.failures = 0
        self.now_us = now_us
        self._kept = half
        self._service = service
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def note(self, change: StateChange) -> None:
        """Changes the state; the store hears of it soon."""
        self.half = change(self.half)
        if self._writer is None and self.half != self._kept:
            self._writer = asyncio.get_running_loop().create_task(self._write_soon(), name=f"mirror {self.name} state")

    async def write(self, work: StateWork[T]) -> T:
        """Runs a work in a transaction, and keeps the state as it is behind it in the same one.

        Raises what the work raises, and StoreError: then neither has happened.
        """
        async with self._turn:
            before = self.half

            def both(tx: WriteTx, context: Context) -> tuple[T, StateChange, MirrorState]:
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

    def in_step(self, *, news: bool = True) -> None:
        """Everything is there now; without `news` the state is told only where it was not so before."""
        change = self.stepping()
        if news or self.half.failed_us is not None or self.half.in_step_us is None:
            self.note(change)

    def stepping(self) -> StateChange:
        """The change that `in_step` makes, for a work of `write`."""
        if self.half.failure:
            _log.info("mirror_works_again", mirror=self.name, direction=self.direction.value)
        now_us = self.now_us()
        return lambda half: replace(half.well(), in_step_us=now_us, filling=False)

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


def _as_it_is(half: MirrorState) -> MirrorState:
    return half


async def run_for_ever(
    keeper: MirrorStateKeeper,
    step: Callable[[], Awaitable[None]],
    pause: Callable[[float], Awaitable[None]],
    spread: Callable[[], float],
    told: Callable[[SmartfeedsError], str] = str,
) -> None:
    """Takes one step after the other. One that fails is told, and tried again after `pause` of some seconds, which
    grows with the failures in a row; what `step` has achieved sets `keeper.failures` to 0."""
    while True:
        try:
            await step()
        except SmartfeedsError as error:
            reason = told(error)
        except Exception:  # noqa: BLE001 - one mirror must not end the others
            _log.exception("mirror_failed", mirror=keeper.name)
            reason = BROKEN
        else:
            continue
        keeper.failures += 1
        keeper.fail(reason)
        await pause(BACKOFF.pause_s(keeper.failures, spread()))

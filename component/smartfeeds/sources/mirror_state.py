"""Stores the state of one direction of a mirror, and runs the loop of the incoming directions."""

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
from smartfeeds.service.mirrors import save_state
from smartfeeds.store.base import WriteTx

T = TypeVar("T")
StateChange = Callable[[MirrorState], MirrorState]
StateWork = Callable[[WriteTx, Context], tuple[T, StateChange]]

BROKEN: Final = "a fault of this program, which the log tells more about"
BACKOFF: Final = Backoff(first_s=2.0, longest_s=300.0)

_log = structlog.get_logger()


class ThreadRunner(Protocol):
    """Runs a long function in a thread, so that the event loop does not wait for it."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """Calls the function with these arguments and returns its result."""


@dataclass(frozen=True, slots=True)
class MirrorTools:
    """The clock, the timers and the threads that mirrors use.

    `now_us` returns microseconds since the Unix epoch, `spread` a random number in 0..1. `sleep` waits for seconds.
    `timers` None means those of the event loop. `aside` runs a function in a thread.
    """

    now_us: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    spread: Callable[[], float]
    timers: Timers | None = None
    aside: ThreadRunner = asyncio.to_thread


class MirrorStateStore:
    """The state of one direction, in memory and in the store.

    Changes of `note` are stored soon, or with the next `write`, in the order of the calls. `now_us` returns
    microseconds since the Unix epoch. `failures` counts the failures since the last success.
    """

    def __init__(
        self, service: FeedService, name: str, direction: Direction, state: MirrorState, now_us: Callable[[], int]
    ) -> None:
        self.name = name
        self.direction = direction
        self.state = state
        self.failures = 0
        self.now_us = now_us
        self._stored = state
        self._service = service
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def note(self, change: StateChange) -> None:
        """Changes the state and stores it soon."""
        self.state = change(self.state)
        if self._writer is None and self.state != self._stored:
            self._writer = asyncio.get_running_loop().create_task(self._write_soon(), name=f"mirror {self.name} state")

    async def write(self, work: StateWork[T]) -> T:
        """Runs `work` in a transaction and stores the resulting state in the same transaction.

        Raises what `work` raises, or StoreError. Then nothing is stored.
        """
        # Two writes must not overlap: each starts from the state that the last one stored.
        async with self._turn:
            before = self.state

            def both(tx: WriteTx, context: Context) -> tuple[T, StateChange, MirrorState]:
                result, change = work(tx, context)
                then = change(before)
                save_state(tx, self.name, self.direction, then)
                return result, change, then

            result, change, self._stored = await self._service.write(both, turn=f"mirror {self.name}")
            self.state = self._stored if self.state is before else change(self.state)
            return result

    def fail(self, reason: str) -> None:
        """Records a failure. A failure that lasts is logged once."""
        if reason[:REASON_CHARACTERS] != self.state.failure:
            _log.warning("mirror_failing", mirror=self.name, direction=self.direction.value, reason=reason)
        self.note(lambda state: state.failing(reason, self.now_us()))

    def in_step(self, *, news: bool = True) -> None:
        """Records that the direction is complete. Without `news` this changes only a state that was not so before."""
        change = self.stepping()
        if news or self.state.failed_us is not None or self.state.in_step_us is None:
            self.note(change)

    def stepping(self) -> StateChange:
        """Returns the change that `in_step` makes, for `write`."""
        if self.state.failure:
            _log.info("mirror_works_again", mirror=self.name, direction=self.direction.value)
        now_us = self.now_us()
        return lambda state: replace(state.well(), in_step_us=now_us, filling=False)

    async def settle(self) -> None:
        """Waits until all changes of `note` are stored."""
        while self._writer is not None:
            await asyncio.wait((self._writer,))

    async def _write_soon(self) -> None:
        try:
            while self.state != self._stored:
                await self.write(lambda _tx, _context: (None, _as_it_is))
        except StoreError as error:
            _log.error("mirror_state_not_kept", mirror=self.name, reason=str(error))
        finally:
            self._writer = None


def _as_it_is(state: MirrorState) -> MirrorState:
    return state


async def run_for_ever(
    state_store: MirrorStateStore,
    step: Callable[[], Awaitable[None]],
    pause: Callable[[float], Awaitable[None]],
    spread: Callable[[], float],
    reason_of: Callable[[SmartfeedsError], str] = str,
) -> None:
    """Runs `step` again and again. After a failure it records the failure and waits with `pause`, which takes seconds.

    The pause grows with `state_store.failures`; `step` sets this number to 0 when it succeeds. `reason_of` returns the
    reason of a failure for people.
    """
    while True:
        try:
            await step()
        except SmartfeedsError as error:
            reason = reason_of(error)
        except Exception:  # noqa: BLE001 - one mirror must not end the others
            _log.exception("mirror_failed", mirror=state_store.name)
            reason = BROKEN
        else:
            continue
        state_store.failures += 1
        state_store.fail(reason)
        await pause(BACKOFF.pause_s(state_store.failures, spread()))

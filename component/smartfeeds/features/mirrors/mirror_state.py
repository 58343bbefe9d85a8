"""The state of one direction of a mirror, in memory and in the store."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

import structlog

from smartfeeds.core.consumers import ERROR_CHARACTERS, Failure, next_failure
from smartfeeds.delivery.changes import RETRY_S
from smartfeeds.delivery.deliverer import DEFAULT_BACKOFF
from smartfeeds.errors import StoreError
from smartfeeds.features.mirrors.mirror import Direction, MirrorState
from smartfeeds.features.mirrors.statuses import save_state
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

T = TypeVar("T")
StateChange = Callable[[MirrorState], MirrorState]
StateWork = Callable[[WriteTx, Context], tuple[T, StateChange]]

BACKOFF: Final = DEFAULT_BACKOFF

_log = structlog.get_logger()


class MirrorStateStore:
    """The state of one direction, in memory and in the store.

    Changes of `note` are stored soon, or with the next `write`, in the order of the calls. `may_store` returns False
    once another process may run the mirror.
    """

    def __init__(
        self,
        service: FeedService,
        name: str,
        direction: Direction,
        state: MirrorState,
        tools: SourceTools,
        may_store: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = name
        self.direction = direction
        self.state = state
        self.now_us = tools.now_us
        self._sleep = tools.sleep
        self._stored = state
        self._service = service
        self._may_store = may_store
        self._turn = asyncio.Lock()
        self._writes: set[asyncio.Task[Any]] = set()  # that run
        self._writer: asyncio.Task[None] | None = None

    def note(self, change: StateChange) -> None:
        """Changes the state and stores it soon."""
        self.state = change(self.state)
        if (self._writer is None or self._writer.done()) and self.state != self._stored:
            self._writer = asyncio.get_running_loop().create_task(self._write_soon(), name=f"mirror {self.name} saver")

    async def write(self, work: StateWork[T], on_stored: Callable[[T], None] | None = None) -> T:
        """Runs `work` in a transaction and stores the resulting state in the same transaction.

        `on_stored` is called with the result of `work` before any delivery of the change begins. A write that has
        begun ends even if the caller is cancelled. Raises what `work` raises, or StoreError. Then nothing is stored.
        """
        # The store would commit the write of a cancelled caller too. Without its result, `note` would store the state
        # before it over the state that it stored.
        task = asyncio.get_running_loop().create_task(self._write(work, on_stored), name=f"mirror {self.name} state")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def _write(self, work: StateWork[T], on_stored: Callable[[T], None] | None) -> T:
        # Two writes must not overlap: each starts from the state that the last one stored.
        async with self._turn:
            if not self._may_store():
                raise StoreError("this process does not run the mirror any more")
            before = self.state

            def both(tx: WriteTx, context: Context) -> tuple[T, StateChange, MirrorState]:
                result, change = work(tx, context)
                then = change(before)
                save_state(tx, self.name, self.direction, then)
                return result, change, then

            result, change, self._stored = await self._service.write(both, turn=f"mirror {self.name}")
            self.state = self._stored if self.state is before else change(self.state)
            # Without an await since the commit: the deliveries that it has woken have not run yet.
            if on_stored is not None:
                on_stored(result)
            return result

    def load(self) -> str | None:
        """The position of the follower; None at the beginning."""
        return self.state.position or None

    def save(self, position: str) -> None:
        """Stores the position of the follower. A merge has stored it with its items already."""
        if position != self.state.position:
            self.note(lambda state: replace(state, position=position))

    def fail(self, error: str, jitter: float, pause_s: float | None = None) -> float:
        """Records a failed attempt and returns the pause before the next one, in seconds. `jitter` is a random number
        in 0..1, `pause_s` the pause that the other side asked for."""
        now_us = self.now_us()
        failure = next_failure(self.state.failure, error, now_us, BACKOFF, jitter, pause_s)
        self._record(failure)
        return failure.pause_s(now_us)

    def interrupt(self, error: str) -> None:
        """Records a failure of a follower that goes on by itself. The attempts of the mirror are not counted: after a
        long interruption the first of them is not to wait for minutes."""
        now_us = self.now_us()
        former = self.state.failure or Failure(0, now_us, now_us, "")
        self._record(replace(former, error=error[:ERROR_CHARACTERS]))

    def _record(self, failure: Failure) -> None:
        """Stores a failure. A failure that lasts is logged once."""
        if failure.error != self.state.error:
            _log.warning("mirror_failing", mirror=self.name, direction=self.direction.value, reason=failure.error)
        self.note(lambda state: replace(state, failure=failure))

    def in_step(self, *, news: bool = True) -> None:
        """Records that the direction is complete. Without `news` this changes only a state that was not so before."""
        change = self.stepping()
        if news or self.state.failure is not None or self.state.in_step_us is None:
            self.note(change)

    def stepping(self) -> StateChange:
        """Returns the change that `in_step` makes, for `write`."""
        if self.state.failure is not None:
            _log.info("mirror_works_again", mirror=self.name, direction=self.direction.value)
        now_us = self.now_us()
        return lambda state: replace(state, failure=None, in_step_us=now_us, filling=False)

    async def settle(self) -> None:
        """Ends the writes that run, and stores the changes that are not stored yet. A failure is logged."""
        if self._writer is not None:
            self._writer.cancel()  # it may be in the pause after a failure
            await asyncio.wait((self._writer,))
        while self._writes:
            await asyncio.wait(self._writes)
        if self.state != self._stored:
            await self._write_logged()

    async def _write_soon(self) -> None:
        while self.state != self._stored:
            if not await self._write_logged():
                await self._sleep(RETRY_S)

    async def _write_logged(self) -> bool:
        """Stores the state. Returns False if that fails."""
        try:
            await self.write(lambda _tx, _context: (None, unchanged))
        except StoreError as error:
            _log.error("mirror_state_not_saved", mirror=self.name, reason=str(error))
            return False
        return True


def unchanged(state: MirrorState) -> MirrorState:
    """The change that changes nothing."""
    return state

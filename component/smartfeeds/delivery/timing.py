"""The clock, the random numbers and the timers of the delivery mechanism, which tests replace."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class PlannedCall(Protocol):
    """The handle of a planned call (`asyncio.TimerHandle`)."""

    def cancel(self) -> object:
        """Cancels the call."""


class CallScheduler(Protocol):
    """The part of an event loop that plans calls."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> PlannedCall:
        """Calls `callback` after `delay` seconds."""


@dataclass(frozen=True, slots=True)
class DeliveryTiming:
    """The clock, the random numbers and the timers of the mechanism.

    `clock` returns microseconds since the Unix epoch, `spread` a random number in 0..1. `timers` is the running event
    loop if it is None.
    """

    clock: Callable[[], int]
    spread: Callable[[], float]
    timers: CallScheduler | None = None

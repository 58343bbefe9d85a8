"""The clock, the timers and the threads that sources use; tests pass their own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from smartfeeds.client.follow import Timers
from smartfeeds.threads import OwnThreads

T = TypeVar("T")

DOCUMENTS_AT_ONCE = 4  # documents of others that are read at a time


class ThreadRunner(Protocol):
    """Runs a long function in a thread, so that the event loop does not wait for it."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """Calls the function with these arguments and returns its result."""


@dataclass(frozen=True, slots=True)
class SourceTools:
    """The clock, the random numbers, the timers and the threads of everything that comes in.

    `now_us` returns microseconds since the Unix epoch, `spread` a random number in 0..1. `sleep` waits for seconds.
    `timers` None means those of the event loop. `aside` runs a function in a thread: reading
    a large document would hold up everything else.
    """

    now_us: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    spread: Callable[[], float]
    timers: Timers | None = None
    aside: ThreadRunner = field(default_factory=lambda: OwnThreads(DOCUMENTS_AT_ONCE))

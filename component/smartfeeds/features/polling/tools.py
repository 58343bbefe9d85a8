"""The clock, the timers and the processes that sources use; tests pass their own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from smartfeeds.client.follow import Timers

T = TypeVar("T")

ACCEPT_FEED: Final = "application/atom+xml, application/rss+xml, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"


class DocumentRunner(Protocol):
    """Runs a function that reads a document of somebody else, so that the event loop does not wait for it."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any, party: str = "") -> Awaitable[T]:
        """Calls the function with these arguments and returns its result. Parties take turns. Raises FeedError."""


async def read_here(work: Callable[..., T], /, *arguments: Any, party: str = "") -> T:  # noqa: ARG001
    """Calls the function at once, for commands, whose process does nothing else."""
    return work(*arguments)


@dataclass(frozen=True, slots=True)
class SourceTools:
    """The clock, the random numbers, the timers and the processes of everything that comes in.

    `now_us` returns microseconds since the Unix epoch, `spread` a random number in 0..1. `sleep` waits for seconds.
    `timers` None means those of the event loop. `aside` reads documents, in the service in another process: a large or
    hostile document would hold up everything else.
    """

    now_us: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    spread: Callable[[], float]
    timers: Timers | None = None
    aside: DocumentRunner = read_here

    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Waits for an event, for so many seconds at most. Returns whether it is set."""
        waits = [asyncio.ensure_future(wait) for wait in (event.wait(), self.sleep(timeout_s))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return event.is_set()

"""Waits of tests: each names what it waits for, and ends with what happens, not with a time.

`HANG_S` is the one limit in real time. A machine that is ten times slower does not reach it.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeVar

# What has not happened by then never happens. Below the limit that pytest has for a test (300 s, pyproject.toml), which
# says only where the test stands. A developer who writes a test may want less: SMARTFEEDS_TEST_HANG_S=5.
HANG_S: Final = float(os.environ.pop("SMARTFEEDS_TEST_HANG_S", "250"))
_LOOK_S: Final = 0.005  # how often a condition is looked at of which nobody tells

T = TypeVar("T")


class waiting:  # noqa: N801 (as `asyncio.timeout`)
    """`async with waiting("the answer to q12"):` fails if its block does not end.

    The block's own TimeoutError passes unchanged.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._limit = asyncio.timeout(HANG_S)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise AssertionError(in_vain(self._what)) from late


async def wait_for(awaitable: Awaitable[T], what: str) -> T:
    """Returns the result of an awaitable, for example of `event.wait()`."""
    __tracebackhide__ = True
    async with waiting(what):
        return await awaitable


async def until(condition: Callable[[], object], what: str) -> None:
    """Returns when a condition holds, which may be a coroutine function. It is read again and again: for what nobody
    reports here, such as the database of another process or the log of a server.
    """
    __tracebackhide__ = True
    async with waiting(what):
        while True:
            result = condition()
            if inspect.isawaitable(result):
                result = await result
            if result:
                return
            await asyncio.sleep(_LOOK_S)


def block_until(condition: Callable[[], object], what: str) -> None:
    """As `until`, for a test without an event loop."""
    limit = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < limit, in_vain(what)
        time.sleep(_LOOK_S)


def in_vain(what: str) -> str:
    """The message of a wait that failed, also for waits of threads: `assert event.wait(HANG_S), in_vain("the end")`."""
    return f"not seen: {what}"  # the summary of a run cuts a message after a few words

"""Functions that run in a new thread each, for work that a shared pool of threads must not do.

A name look-up may take a minute, and look-ups of slow names would occupy all threads of a pool. The same is true of the
messages of anonymous callers (rssCloud), which have at most 64 KB. Larger documents are read by `workers`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class OwnThreads:
    """Runs functions, at most `at_once` at a time. The threads are daemons, so none of them delays the exit."""

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)

    async def __call__(self, work: Callable[..., T], /, *arguments: Any) -> T:
        """Calls the function with these arguments and returns its result.

        A function cannot be interrupted, so its place stays taken until it ends, also after a cancellation.
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        try:
            Thread(target=self._run, args=(loop, future, partial(work, *arguments)), daemon=True).start()
        except BaseException:
            self._places.release()
            raise
        return await future

    def _run(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]", work: Callable[[], T]) -> None:
        settle: Callable[[], None]
        try:
            settle = partial(future.set_result, work())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            settle = partial(future.set_exception, error)
        # The loop may be closed when a slow function ends.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end, future, settle)

    def _end(self, future: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
        self._places.release()
        if not future.done():
            settle()

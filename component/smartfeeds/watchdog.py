"""Ends a process whose event loop hangs, so that a process manager starts it again (docs/scaling.md, "Hanging").

A process that hangs keeps its connection, and an XMPP server that shares stanzas between processes goes on to send it
some of them. A thread counts the seconds in which the loop did not turn.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import Final

TICK_S: Final = 1.0
EXIT_CODE: Final = 1


def end_process(limit_s: int) -> None:
    """Writes the reason to standard error and ends the process at once: what hangs cannot be stopped in order."""
    # Without the buffer and the lock of `sys.stderr`, which the thread that hangs may hold.
    os.write(
        sys.stderr.fileno(),
        f"smartfeeds: the event loop has not turned for {limit_s} s; the process ends (run.watchdog_s)\n".encode(),
    )
    os._exit(EXIT_CODE)


class Watchdog:
    """Calls `on_hang` after `limit_s` ticks without a turn of the event loop.

    Ticks are counted, not the clock: a process that was stopped, or a machine that was asleep, must not end when it
    wakes.
    """

    def __init__(self, limit_s: int, on_hang: Callable[[int], object] = end_process) -> None:
        self._limit_s = limit_s
        self._on_hang = on_hang
        self._ticks = 0  # without a lock: a turn that is lost between two threads costs one tick of the limit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def turn(self) -> None:
        """The event loop has turned."""
        self._ticks = 0

    def tick(self) -> None:
        """A second has passed."""
        self._ticks += 1
        if self._ticks >= self._limit_s:
            self._on_hang(self._limit_s)

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            self.tick()

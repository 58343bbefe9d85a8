"""Timers that only a test moves."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Timers:
    """Timers that run when a test says so; `planned` are the delays of those that wait."""

    waiting: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def call_later(self, delay: float, callback: Callable[[], None], /) -> "Timer":
        entry = (delay, next(self.numbers), callback)
        self.waiting.append(entry)
        return Timer(self, entry)

    async def sleep(self, delay: float) -> None:
        """Until a test fires it."""
        done = asyncio.Event()
        timer = self.call_later(delay, done.set)
        try:
            await done.wait()
        finally:
            timer.cancel()

    @property
    def planned(self) -> list[float]:
        """The delays, shortest first."""
        return sorted(delay for delay, _, _ in self.waiting)

    def fire(self, longest: float = 1e9) -> list[float]:
        """Runs all that wait now and take no longer; their delays."""
        due = sorted(timer for timer in self.waiting if timer[0] <= longest)
        for timer in due:
            if timer in self.waiting:
                self.waiting.remove(timer)
                timer[2]()
        return [timer[0] for timer in due]


@dataclass
class Timer:
    """A planned call."""

    timers: Timers
    entry: tuple[float, int, Callable[[], None]]

    def cancel(self) -> None:
        if self.entry in self.timers.waiting:
            self.timers.waiting.remove(self.entry)

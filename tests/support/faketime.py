"""A clock that only moves when a test moves it, with a sleep that follows it."""

import asyncio

from support.waiting import wait_for

SETTLE_TURNS = 30


async def settle() -> None:
    """Lets every task that can go on do so; enough where no socket is involved."""
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)


class FakeTime:
    """`clock` and `sleep` for injection. `sleeping` lists the durations being slept, in the order of their ends."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.slept: list[float] = []
        self._waiting: list[tuple[float, float, asyncio.Future[None]]] = []
        self._changed = asyncio.Condition()

    def clock(self) -> float:
        """Seconds on the fake clock."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Returns when the test has moved the clock far enough."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self.now_s + seconds, seconds, wake)
        self._waiting.append(entry)
        self.slept.append(seconds)
        async with self._changed:
            self._changed.notify_all()
        try:
            await wake
        finally:
            self._waiting.remove(entry)

    @property
    def sleeping(self) -> list[float]:
        """The seconds of the sleeps that have not ended."""
        return [seconds for _, seconds, wake in sorted(self._waiting, key=lambda e: e[0]) if not wake.done()]

    async def until_sleeping(self, most_s: float) -> float:
        """Waits until somebody sleeps no longer than this, and says how long: how a test waits for a back-off."""
        async with self._changed:
            asleep = self._changed.wait_for(lambda: any(s <= most_s for s in self.sleeping))
            await wait_for(asleep, f"a sleep of at most {most_s:g} s")
        return min(self.sleeping)

    async def advance(self, seconds: float) -> None:
        """Moves the clock, waking sleepers in order."""
        target_s = self.now_s + seconds
        await settle()
        while due := [entry for entry in self._waiting if entry[0] <= target_s and not entry[2].done()]:
            at_s, _, wake = min(due, key=lambda entry: entry[0])
            self.now_s = max(self.now_s, at_s)
            wake.set_result(None)
            await settle()
        self.now_s = target_s
        await settle()

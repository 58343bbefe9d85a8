"""A clock that a campaign moves while the service runs: the service adds the number in a file to the real time."""

import mmap
import struct
import time
from collections.abc import Callable
from pathlib import Path

from smartfeeds import system

_NUMBER = struct.Struct("<q")
VARIABLE = "CAMPAIGN_CLOCK"


class MovedClock:
    """The file with the number of microseconds to add."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.added_us = 0
        self.move(0)

    def move(self, seconds: float) -> None:
        """Sets the clock forward, or back if negative."""
        self.added_us += int(seconds * 1_000_000)
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(_NUMBER.pack(self.added_us))


def read_clock(path: Path) -> Callable[[], int]:
    """The moved clock in microseconds, for the service."""
    with path.open("rb") as file:
        number = mmap.mmap(file.fileno(), _NUMBER.size, access=mmap.ACCESS_READ)

    def now_us() -> int:
        return time.time_ns() // 1_000 + int(_NUMBER.unpack(number[:])[0])

    return now_us


def install(path: Path) -> None:
    """Makes this process use the clock."""
    vars(system)["now_us"] = read_clock(path)

"""The clock and the random ids of this machine. Other modules get both as parameters, so that tests can choose them."""

import secrets
import time
import uuid
from collections.abc import Callable


def now_us() -> int:
    """The time, in microseconds since the Unix epoch."""
    return time.time_ns() // 1000


def monotonic() -> float:
    """The seconds since some time in the past. Unlike `now_us` it never steps back."""
    return time.monotonic()


class AgeClock:
    """The time for ages, in microseconds: it follows `clock`, but not its jumps forward after the start.

    Setting the clock forward must not make waiting notifications too old to be sent. Keys that are given after such a
    jump are in the future of this clock, so their ages count as zero until the next start.
    """

    def __init__(self, clock: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._offset_us = clock() - int(monotonic() * 1_000_000)

    def __call__(self) -> int:
        return min(self._clock(), self._offset_us + int(self._monotonic() * 1_000_000))


def new_instance() -> str:
    """A fresh id for a running process: 8 letters and digits."""
    return secrets.token_hex(4)


def new_id() -> str:
    """A fresh id for an item or a node: a UUID of version 7 (RFC 9562 5.7).

    Ids that are made one after the other lie together in the index of the store.
    """
    made = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(74)
    random_a, random_b = (made >> 62) & 0xFFF, made & (2**62 - 1)
    return str(uuid.UUID(int=(made >> 80) << 80 | 0x7 << 76 | random_a << 64 | 0b10 << 62 | random_b))

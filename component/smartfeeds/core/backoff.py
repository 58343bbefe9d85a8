"""The pause before a failed action is tried again: exponential back-off with jitter."""

from dataclasses import dataclass
from typing import Protocol

# 2.0 ** 1024 overflows a float. With 60 doublings, one second has become longer than the age of the universe.
_MOST_DOUBLINGS = 60
# The longest pause that a peer may ask for. One that asks for more has a fault, and must not be left out for years.
MAX_REQUESTED_PAUSE_S = 7 * 86_400.0


class Pauses(Protocol):
    """The pauses between attempts."""

    def pause_s(self, failures: int, jitter: float) -> float:
        """The seconds to wait after `failures` failures in a row, at least 1. `jitter` is a random number in 0..1."""


@dataclass(frozen=True, slots=True)
class StepPauses:
    """Pauses from a list, the last one for all further failures. A pause differs by up to `spread` of its length."""

    steps_s: tuple[float, ...]
    spread: float = 0.2

    def pause_s(self, failures: int, jitter: float) -> float:
        """The seconds to wait after `failures` failures in a row, at least 1. `jitter` is a random number in 0..1."""
        step_s = self.steps_s[min(failures, len(self.steps_s)) - 1]
        return step_s * (1 + self.spread * (2 * jitter - 1))


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double with each failure, from `first_s` up to `longest_s` seconds.

    Half of each pause is jitter, so that clients that failed together do not come back together.
    """

    first_s: float
    longest_s: float

    def pause_s(self, failures: int, jitter: float) -> float:
        """The seconds to wait after `failures` failures in a row, at least 1. `jitter` is a random number in 0..1.

        The pause is between half of the doubled value (`jitter` 0) and all of it (`jitter` 1).
        """
        doubled_s = self.first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        return min(doubled_s, self.longest_s) * (1 + jitter) / 2

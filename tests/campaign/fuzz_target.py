"""What `campaign.fuzz` feeds with mutated input."""

from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.errors import SmartfeedsError


@dataclass(frozen=True, slots=True)
class Target:
    """`read` raises `errors` for input that it refuses. Inputs are mutations of `seeds` and pieces of `tokens`."""

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    tokens: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = (SmartfeedsError,)

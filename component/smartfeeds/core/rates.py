"""Token buckets: how many requests each of many senders may start."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

REMEMBERED = 16_384


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: `per_s` requests a second on average, `burst` at once."""

    per_s: float
    burst: float


class TokenBuckets:
    """Token buckets by name. A full bucket equals no bucket, so the bucket unused for the longest time is dropped."""

    def __init__(self, rate: Rate, *, clock: Callable[[], float], remembered: int = REMEMBERED) -> None:
        self._rate = rate
        self._clock = clock
        self._remembered = remembered
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: (tokens, time of the last request)

    def __len__(self) -> int:
        return len(self._buckets)

    def has(self, name: str) -> bool:
        """Returns whether a request is allowed now."""
        return self._tokens(name) >= 1.0

    def take(self, name: str) -> None:
        """Counts one request."""
        self._buckets[name] = (self._tokens(name) - 1.0, self._clock())
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._remembered:
            self._buckets.popitem(last=False)

    def _tokens(self, name: str) -> float:
        tokens, at = self._buckets.get(name, (self._rate.burst, 0.0))
        return min(self._rate.burst, tokens + max(0.0, self._clock() - at) * self._rate.per_s)

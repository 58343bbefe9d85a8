"""Limits that refuse at once: how often each of many senders may ask, and how much each may have in use at a time.

Work that waits for its turn instead is ordered by `core.fairness`. The number of names that buckets remember is limited
too, so that nobody can fill the memory with new JIDs.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.core.jid import Jid

REMEMBERED = 16_384  # buckets
BURST_S = 10  # seconds' worth of publishes that a user may send at once
DOMAIN_SHARE = 100  # the rate of a whole domain, in rates of one user


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


class RateLimits:
    """Rates of bare JIDs and of their domains. That of the domain holds for a sender that keeps creating new JIDs.

    A request above a limit is answered with `wait` / `resource-constraint` at once (xep-map 249).
    """

    def __init__(self, *, per_sender: Rate, per_domain: Rate, clock: Callable[[], float]) -> None:
        self._senders = TokenBuckets(per_sender, clock=clock)
        self._domains = TokenBuckets(per_domain, clock=clock)
        self.refused = 0

    def admit(self, sender: Jid) -> bool:
        """Returns whether the request is allowed. A rejected request uses up neither limit."""
        name = sender.bare_text
        if not (self._senders.has(name) and self._domains.has(sender.domain)):
            self.refused += 1
            return False
        self._senders.take(name)
        self._domains.take(sender.domain)
        return True


def publish_limits(per_s: float, clock: Callable[[], float]) -> RateLimits | None:
    """Returns the limits for `per_s` publishes of each user a second, or None for 0. `clock` returns seconds."""
    if not per_s:
        return None
    sender, domain = (Rate(rate, max(1.0, rate * BURST_S)) for rate in (per_s, per_s * DOMAIN_SHARE))
    return RateLimits(per_sender=sender, per_domain=domain, clock=clock)


class Quota:
    """Counts what each key has in use, at most `most` at a time."""

    __slots__ = ("_counts", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def take(self, key: str) -> bool:
        """Returns whether a key may use one more. If so, it is counted until `release`."""
        if self._counts.get(key, 0) >= self._most:
            return False
        self._counts[key] += 1
        return True

    def release(self, key: str) -> None:
        """A key uses one less."""
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]

"""Bounds on how often peers may ask (xep-map 249); `turns` bounds how much they may ask at once.

Over a bound the request is answered with `wait` / `resource-constraint` at once; the caller writes that answer.
Memory is bounded too: nobody can make us remember more than a fixed number of names.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.core.jid import Jid

REMEMBERED = 16_384
BURST_S = 10  # seconds' worth of publishes that a user may send at once
DOMAIN_SHARE = 100  # the rate of a whole domain, in rates of one user


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: `per_s` requests a second on average, `burst` at once."""

    per_s: float
    burst: float


class Buckets:
    """Token buckets by name. A bucket that is full again is the same as none; the longest unused goes first."""

    __slots__ = ("_buckets", "_clock", "_rate", "_remembered")

    def __init__(self, rate: Rate, *, clock: Callable[[], float], remembered: int = REMEMBERED) -> None:
        self._rate = rate
        self._clock = clock
        self._remembered = remembered
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: tokens, at what time

    def __len__(self) -> int:
        return len(self._buckets)

    def has(self, name: str) -> bool:
        """Whether a request may be made now."""
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
    """Two rates that a request must keep: its sender's bare JID, and its domain, which new JIDs do not escape."""

    __slots__ = ("_domains", "_senders", "refused")

    def __init__(
        self, *, per_sender: Rate, per_domain: Rate, clock: Callable[[], float], remembered: int = REMEMBERED
    ) -> None:
        self._senders = Buckets(per_sender, clock=clock, remembered=remembered)
        self._domains = Buckets(per_domain, clock=clock, remembered=remembered)
        self.refused = 0

    def admit(self, sender: Jid) -> bool:
        """Whether the request may be worked on. A refused one costs neither bucket anything."""
        name = str(sender.bare)
        if not (self._senders.has(name) and self._domains.has(sender.domain)):
            self.refused += 1
            return False
        self._senders.take(name)
        self._domains.take(sender.domain)
        return True


def publish_limits(per_s: float, clock: Callable[[], float]) -> RateLimits | None:
    """The limits that let each user publish so often; None if there is no limit. `clock` gives seconds."""
    if not per_s:
        return None
    sender = Rate(per_s=per_s, burst=max(1.0, per_s * BURST_S))
    domain = Rate(per_s=per_s * DOMAIN_SHARE, burst=max(1.0, per_s * BURST_S * DOMAIN_SHARE))
    return RateLimits(per_sender=sender, per_domain=domain, clock=clock)

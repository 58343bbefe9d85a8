"""Bounds on what peers may ask of us at once, and how often (style section 4, rule 7; xep-map 249, 250).

Over a bound the request is answered with `wait` / `resource-constraint` at once; the caller writes that answer.
Memory is bounded too: nobody can make us remember more than a fixed number of names.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.core.jid import Jid

IN_FLIGHT_TOTAL = 4_096
IN_FLIGHT_PER_SENDER = 1_024
REMEMBERED = 16_384


class InFlight:
    """Counts the requests that are being worked on, in all and per sender's bare JID.

    A sender may have as many as are still free for others: however many ask for much at once, whoever asks for little
    finds room.
    """

    __slots__ = ("_per_sender", "_senders", "_total", "refused", "total")

    def __init__(self, *, total: int = IN_FLIGHT_TOTAL, per_sender: int = IN_FLIGHT_PER_SENDER) -> None:
        self._total = total
        self._per_sender = per_sender
        self._senders: dict[Jid, int] = {}
        self.total = 0
        self.refused = 0

    def admit(self, sender: Jid) -> bool:
        """Whether one more request of this sender may begin; if so it counts until `done`."""
        key = sender.bare
        count = self._senders.get(key, 0)
        if count >= min(self._per_sender, self._total - self.total):
            self.refused += 1
            return False
        self._senders[key] = count + 1
        self.total += 1
        return True

    def done(self, sender: Jid) -> None:
        """An admitted request has been answered. Raises KeyError when none was admitted."""
        key = sender.bare
        count = self._senders[key]
        if count == 1:
            del self._senders[key]
        else:
            self._senders[key] = count - 1
        self.total -= 1

    @property
    def senders(self) -> int:
        """How many senders have a request in flight."""
        return len(self._senders)


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

"""Rate limits for requests (xep-map 249). `turns` limits the requests of a peer that are in progress at one time.

A request above a limit is answered with `wait` / `resource-constraint` at once; the caller sends that response. The
number of names that the buckets remember is limited too, so that nobody can fill the memory with new JIDs.
"""

from collections.abc import Callable

from smartfeeds.core.jid import Jid
from smartfeeds.core.rates import Rate, TokenBuckets

BURST_S = 10  # seconds' worth of publishes that a user may send at once
DOMAIN_SHARE = 100  # the rate of a whole domain, in rates of one user


class RateLimits:
    """Limits per bare JID and per domain. The limit per domain holds for a sender that keeps creating new JIDs."""

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

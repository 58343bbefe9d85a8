"""Notifications that come back as errors end a subscription (XEP-0060 12.4; xep-map 241 to 244, 6.5).

`gone` ends a subscription at once. Any other error may come from a user who is offline or from a link that is down for
a while. Such errors are counted, and more than a bound of them within a period end the subscription.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.subscriptions import Bounce

BOUND = 1_000  # errors of one subscription in one period: a busy feed may cause many while a user is away
PERIOD_S = 86_400
COUNTS = 10_000  # subscriptions whose errors are counted; the count that was used least recently is dropped
FINAL = "gone"
TOO_MANY = "too-many-bounces"


@dataclass(slots=True)
class _Count:
    since_us: int
    bounces: int = 0


class Bounces:
    """Counts errors by subscription. A restart loses the counts, which only delays the end of a dead subscription."""

    def __init__(self, service: FeedService, *, clock: Callable[[], int], bound: int = BOUND) -> None:
        self._service = service
        self._clock = clock
        self._bound = bound
        self._counts: OrderedDict[tuple[int, Jid], _Count] = OrderedDict()

    async def note(self, bounce: Bounce) -> None:
        """Counts one error, and ends the subscription if it is final."""
        if bounce.condition == FINAL:
            await self._service.handle(bounce)
        elif self._count(bounce) > self._bound:
            self._counts.pop(_key(bounce), None)
            await self._service.handle(replace(bounce, condition=TOO_MANY))

    def _count(self, bounce: Bounce) -> int:
        now_us = self._clock()
        key = _key(bounce)
        count = self._counts.get(key)
        if count is None or now_us - count.since_us > PERIOD_S * US_PER_S:
            count = self._counts[key] = _Count(now_us)
        self._counts.move_to_end(key)
        while len(self._counts) > COUNTS:
            self._counts.popitem(last=False)
        count.bounces += 1
        return count.bounces


def _key(bounce: Bounce) -> tuple[int, Jid]:
    """Errors are counted by the address that sent them, so that nobody can end the subscription of somebody else."""
    return bounce.sub_no, bounce.actor.bare

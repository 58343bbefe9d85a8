"""Events that come back as errors: when a subscription is given up (XEP-0060 12.4; xep-map 241 to 244, 6.5).

`gone` ends a subscription at once. Anything else may be a user who is offline or a link that is cut for a while, so it
is counted, and ends the subscription only past a bound within a period; a period without bounces starts anew.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import Bounce

BOUND = 1_000
PERIOD_S = 86_400
REMEMBERED = 10_000
FINAL = "gone"
WORN_OUT = "too-many-bounces"


@dataclass(slots=True)
class _Count:
    since_us: int
    bounces: int = 0


class Bounces:
    """Counts bounces by subscription; what it forgets at a restart only delays the end of a dead subscription."""

    def __init__(self, service: FeedService, *, clock: Callable[[], int], bound: int = BOUND) -> None:
        self._service = service
        self._clock = clock
        self._bound = bound
        self._counts: OrderedDict[tuple[int, Jid], _Count] = OrderedDict()

    async def note(self, bounce: Bounce) -> None:
        """One error that came back."""
        if bounce.condition == FINAL:
            await self._service.handle(bounce)
        elif self._counted(bounce) > self._bound:
            self._counts.pop(_key(bounce), None)
            await self._service.handle(replace(bounce, condition=WORN_OUT))

    def _counted(self, bounce: Bounce) -> int:
        now_us = self._clock()
        key = _key(bounce)
        count = self._counts.get(key)
        if count is None or now_us - count.since_us > PERIOD_S * US_PER_S:
            count = self._counts[key] = _Count(now_us)
        self._counts.move_to_end(key)
        while len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
        count.bounces += 1
        return count.bounces


def _key(bounce: Bounce) -> tuple[int, Jid]:
    """Only what comes from the same address is counted together: nobody can wear out the subscription of another."""
    return bounce.sub_no, bounce.actor.bare

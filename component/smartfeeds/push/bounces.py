"""Events that come back as errors: when a subscription is given up (XEP-0060 12.4; xep-map 241 to 244, 6.5).

`gone` ends a subscription at once. Anything else may be a user who is offline or a link that is cut for a while, so it
is counted, and ends the subscription only past a bound within a period; a period without bounces starts anew.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

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
        self._counts: OrderedDict[int, _Count] = OrderedDict()

    async def note(self, bounce: Bounce) -> None:
        """One error that came back."""
        if bounce.condition == FINAL:
            await self._service.handle(bounce)
        elif self._counted(bounce.sub_no) > self._bound:
            self._counts.pop(bounce.sub_no, None)
            await self._service.handle(replace(bounce, condition=WORN_OUT))

    def _counted(self, sub_no: int) -> int:
        now_us = self._clock()
        count = self._counts.get(sub_no)
        if count is None or now_us - count.since_us > PERIOD_S * US_PER_S:
            count = self._counts[sub_no] = _Count(now_us)
        self._counts.move_to_end(sub_no)
        while len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
        count.bounces += 1
        return count.bounces

"""Held pulls of a mirror over HTTP (SF-046): how long the publisher may hold them, and when the next one is sent.

Nothing announces whether a publisher or a proxy before it holds a request, so each answer teaches it. A held pull only
announces changes. Whatever comes of it, the mirror reads from its cursor and polls, so it can lose time but no item.
"""

from collections.abc import Callable
from typing import Final

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.mirrors.mirror import LEAST_EVERY_S
from smartfeeds.net.fetch import FetchError

# Most proxies cut a request that is silent for 60 s, some after 50 s.
HOLD_S: Final = 45.0
# For proxies that cut after 5 s. Pauses keep such pulls as rare as the polls of a mirror may be.
LEAST_HOLD_S: Final = 3.0
# An answer after this time was held, or after the whole time that it was asked for. A timer may be a little early.
HELD_S: Final = 4.0
_EARLY_S: Final = 1.0
# Between two held pulls, so that a publisher with many changes sends several in one answer.
SPACE_S: Final = 1.0
# The pauses before the next held pull at a publisher that does not hold, and at one whose answers have items but no
# news. The latter may be the echo of our own changes from a mirror of our feed, with a real change soon after it.
PAUSES: Final = Backoff(first_s=1.0, longest_s=3_600.0)
ECHO_PAUSES: Final = Backoff(first_s=1.0, longest_s=15.0)
# The time after which a shorter hold is forgotten: what cut the pulls may have been a restart of the publisher.
LEARNED_US: Final = 3_600 * US_PER_S
_SHORTER: Final = 0.8  # of the time after which pulls were cut, so that the publisher answers before the next cut
_CUTS: Final = 2  # in a row that show a time limit; a single one may have been a restart
_REQUEST_TIMEOUT: Final = 408
_TOO_MANY_REQUESTS: Final = 429
# Statuses of a server that refuses a value of `timeout`.
_INVALID: Final = frozenset({400, 422})


class HeldPullTiming:
    """The timing of the held pulls of one mirror, learned from the responses of its publisher. `now_us` and `spread`
    are those of `SourceTools`.

    `pause_s` are the seconds before the next held pull. The methods after an answer get the seconds that it took.
    """

    def __init__(self, now_us: Callable[[], int], spread: Callable[[], float]) -> None:
        self._now_us = now_us
        self._spread = spread
        self.pause_s = 0.0
        self._hold_s = HOLD_S
        self._lowered_us = 0
        self._misses = 0  # held pulls in a row that were not held and brought no news
        self._cuts = 0

    @property
    def works(self) -> bool:
        """Whether nothing shows that the publisher does not hold pulls."""
        return not self._misses

    def timeout_s(self, left_s: float) -> int:
        """Returns the seconds for which the next pull is held if the next poll is due in `left_s`; 0 for no held
        pull."""
        if self._hold_s < HOLD_S and self._now_us() - self._lowered_us >= LEARNED_US:
            self._hold_s, self._cuts = HOLD_S, 0
        return int(min(self._hold_s, left_s)) if left_s >= LEAST_EVERY_S else 0

    def after_pause(self, waited_s: float) -> None:
        """Shortens the pause by a time that is over."""
        self.pause_s = max(0.0, self.pause_s - waited_s)

    def after_nothing(self, took_s: float) -> None:
        """The answer had no new item."""
        if self._is_held(took_s):
            self._misses = self._cuts = 0
            self.pause_s = max(0.0, LEAST_EVERY_S - took_s)
        else:
            self._miss(PAUSES)

    def after_read(self, took_s: float, *, has_moved: bool, has_news: bool) -> None:
        """The answer had items, and the mirror has read them. `has_moved`: its position is another one now.
        `has_news`: an item is new here, or was refused."""
        if has_news or (has_moved and self._is_held(took_s)):
            self._misses = 0
            self.pause_s = max(0.0, SPACE_S - took_s)
        else:
            self._miss(ECHO_PAUSES if has_moved else PAUSES)

    def after_failure(self, took_s: float, error: FetchError | None = None) -> bool:
        """There was no answer, or none that can be used. Returns whether to read at once: the result shows whether the
        publisher fails, or only its held pulls do. A server that is overloaded gets no request before its pause ends.
        """
        status, asked_s = (error.status, error.retry_after_s) if error is not None else (0, None)
        if asked_s is not None or status == _TOO_MANY_REQUESTS:
            self._miss(PAUSES, asked_s or 0.0)
            return False
        if status in _INVALID:
            self._shorten(self._hold_s / 2)
        is_refused = 400 <= status < 500 and status != _REQUEST_TIMEOUT
        if is_refused or not self._is_held(took_s):
            self._miss(PAUSES)
            return True
        self._cuts += 1
        if self._cuts >= _CUTS and not self._shorten(_SHORTER * min(took_s, self._hold_s)):
            self._miss(PAUSES)
        return True

    def _is_held(self, took_s: float) -> bool:
        return took_s >= min(HELD_S, int(self._hold_s) - _EARLY_S)

    def _shorten(self, hold_s: float) -> bool:
        """Returns whether the next pulls may be held for so short a time."""
        self._hold_s, self._lowered_us, self._cuts = max(hold_s, LEAST_HOLD_S), self._now_us(), 0
        return hold_s >= LEAST_HOLD_S

    def _miss(self, pauses: Backoff, least_s: float = 0.0) -> None:
        self._misses += 1
        self.pause_s = max(least_s, pauses.pause_s(self._misses, self._spread()))

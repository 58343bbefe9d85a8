"""The recent activity, in memory: rates of the last minute, the last 24 hours by minutes, warnings and errors.

Everything here is bounded and is lost when the process ends.
"""

import asyncio
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

_SNAPSHOT_S: Final = 5.0
_SNAPSHOTS: Final = 12  # a minute
_MINUTE_US: Final = 60_000_000
SAMPLES: Final = 24 * 60
EVENTS: Final = 200
EVENT_CHARACTERS: Final = 300  # of each text of an event
_LEVELS: Final = frozenset({"warning", "error", "critical"})
# Members of a log event that are shown elsewhere, or that may contain whole requests.
_HIDDEN: Final = frozenset(
    {"event", "level", "timestamp", "logger", "exc_info", "stack_info", "_record", "_from_structlog"}
)
_SECRET_NAMES: Final = re.compile(r"secret|password|token|cookie|authorization", re.IGNORECASE)
# Bearer tokens and sessions: a prefix, an id, a secret.
_SECRET: Final = re.compile(r"\b([a-z]{2,4}_[0-9a-f]{12})_[A-Za-z0-9_-]{20,}")


class Throughput(NamedTuple):
    """Items published, notifications sent, pulls answered and requests refused: counts since the start, counts of a
    minute, or rates in 1/s."""

    published: float
    notified: float
    pulled: float
    refused: float


class Sample(NamedTuple):
    """A minute: its end in microseconds, what happened in it, and the longest time in seconds that a consumer had
    something to receive."""

    time_us: int
    counts: Throughput
    lag_s: float


class RecentRates:
    """The rates of the last minute and the history of the last 24 hours, from snapshots of counts that exist anyway, so
    a request costs nothing more.

    `read` returns the counts since the start, `now_us` the time in microseconds, and `lag_s` the lag of the slowest
    consumer.
    """

    def __init__(
        self, read: Callable[[], Throughput], now_us: Callable[[], int], lag_s: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._read = read
        self._now_us = now_us
        self._lag_s = lag_s
        self._snapshots: deque[tuple[int, Throughput]] = deque(maxlen=_SNAPSHOTS)
        self._history: deque[Sample] = deque(maxlen=SAMPLES)
        self._minute: tuple[int, Throughput] | None = None  # when the minute began, and the counts then
        self._minute_lag_s = 0.0

    def take(self) -> None:
        """Takes a snapshot, and a sample if a minute has passed."""
        now_us, counts = self._now_us(), self._read()
        self._snapshots.append((now_us, counts))
        self._minute_lag_s = max(self._minute_lag_s, self._lag_s())
        if self._minute is None:
            self._minute = now_us, counts
        start_us, start = self._minute
        # A clock that steps back ends the minute, too.
        if not 0 <= now_us - start_us < _MINUTE_US:
            self._history.append(Sample(now_us, _difference(start, counts), self._minute_lag_s))
            self._minute, self._minute_lag_s = (now_us, counts), 0.0

    def rates(self) -> Throughput:
        """Returns the rates since the oldest snapshot, which is a minute old, or as old as the process."""
        if not self._snapshots:
            return Throughput(0, 0, 0, 0)
        (start_us, start), now = self._snapshots[0], self._read()
        # A clock that steps back must not make a rate negative or infinite.
        seconds = max(1.0, (self._now_us() - start_us) / 1_000_000)
        return Throughput(*(count / seconds for count in _difference(start, now)))

    def history(self) -> tuple[Sample, ...]:
        """Returns the samples of the last 24 hours, oldest first."""
        return tuple(self._history)

    async def run(self) -> None:
        """Takes snapshots until cancelled. The caller runs it as a task."""
        while True:
            self.take()
            await asyncio.sleep(_SNAPSHOT_S)


def _difference(start: Throughput, now: Throughput) -> Throughput:
    return Throughput(*(count - earlier for count, earlier in zip(now, start, strict=True)))


class LogEvent(NamedTuple):
    """A warning or an error of the log. `time` is a date-time, and `fields` are texts without secrets."""

    time: str
    level: str
    event: str
    fields: Mapping[str, str]


class RecentEvents:
    """The last warnings and errors of the log. An instance is a processor of structlog that changes nothing."""

    def __init__(self) -> None:
        self._events: deque[LogEvent] = deque(maxlen=EVENTS)

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Remembers a warning or an error."""
        level = str(event.get("level", ""))
        if level in _LEVELS:
            fields = {name: _shown(name, value) for name, value in event.items() if name not in _HIDDEN}
            if (error := _error_of(event.get("exc_info"))) is not None:
                # The message of an unexpected exception may contain anything.
                fields["exception"] = type(error).__name__
            text = _shown("", event.get("event", ""))
            self._events.append(LogEvent(str(event.get("timestamp", "")), level, text, fields))
        return event

    def newest(self) -> tuple[LogEvent, ...]:
        """Returns the events, newest first."""
        return tuple(reversed(self._events))


def _error_of(exc_info: object) -> BaseException | None:
    value = exc_info[1] if isinstance(exc_info, tuple) and len(exc_info) > 1 else exc_info
    if value is True:
        value = sys.exc_info()[1]
    return value if isinstance(value, BaseException) else None


def _shown(name: str, value: object) -> str:
    if _SECRET_NAMES.search(name):
        return "(hidden)"
    return _SECRET.sub(r"\1_...", str(value))[:EVENT_CHARACTERS]


RECENT_EVENTS: Final = RecentEvents()

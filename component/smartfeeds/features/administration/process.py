"""Operation of the running process by admins: statistics, log level, announcements, stop and restart.

These requests concern the process and not only the store, so they are not use cases of `service.feeds`. Each checks the
rights of the actor.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import structlog

from smartfeeds.app.feature import Process
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError, LinkError
from smartfeeds.features.administration.requests import AddressList, CountStore, ListAddresses, StoreCounts
from smartfeeds.recent import RECENT_EVENTS, LogEvent, Sample, Throughput
from smartfeeds.service.answers import ask
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import Answer, EmptyResult, Request, ResultSet
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.standing import check_admin
from smartfeeds.telemetry import LOG_LEVELS, Readings, log_level, requests_answered, set_log_level

log = structlog.get_logger()

# An announcement goes to `ANNOUNCE_BATCH` addresses, then pauses, so that it delays notifications by little and other
# servers do not take it for spam.
ANNOUNCE_BATCH = 100
ANNOUNCE_PAUSE_S = 1.0
LINK_PAUSE_S = 10.0  # before the next attempt while there is no link
MAX_TEXT_BYTES = 4_000
MAX_DELAY_S = 86_400


class Recipients(Enum):
    """The recipients of an announcement, as bare JIDs."""

    SUBSCRIBERS = "subscribers"
    OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A message to many."""

    recipients: Recipients
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class GetStatistics(Request):
    """The counts of the service."""


@dataclass(frozen=True, slots=True)
class Statistics(Answer):
    """Counts of the store, those of the process since its start `uptime_s` seconds ago, rates of the last minute, and
    the last 24 hours by minutes, oldest first."""

    counts: StoreCounts
    uptime_s: float
    requests: int
    readings: Readings
    rates: Throughput
    history: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class GetRecentEvents(ListRequest):
    """The last warnings and errors of the log, newest first, in one page."""


@dataclass(frozen=True, slots=True)
class GetLogLevel(Request):
    """The level from which events are logged."""


@dataclass(frozen=True, slots=True)
class LogLevel(Answer):
    """A level of `telemetry.LOG_LEVELS`."""

    level: str


@dataclass(frozen=True, slots=True)
class SetLogLevel(Request):
    """Changes the level until the next start."""

    level: str


@dataclass(frozen=True, slots=True)
class Announce(Request):
    """Sends a message to all subscribers or all owners."""

    announcement: Announcement


@dataclass(frozen=True, slots=True)
class StopService(Request):
    """Stops the service after a delay, with an announcement before it. It replaces a stop whose delay has not passed.

    With `restart` the process manager starts it again.
    """

    delay_s: int
    restart: bool = False
    announcement: Announcement | None = None


@dataclass(frozen=True, slots=True)
class CancelStop(Request):
    """Cancels a stop whose delay has not passed, and the rest of its announcement."""


class ServiceOperations:
    """Handles the requests of this module. `send` sends an announcement to addresses and raises LinkError."""

    def __init__(
        self,
        service: FeedService,
        process: Process,
        send: Callable[[Sequence[str], Announcement], Awaitable[None]],
        now_us: Callable[[], int],
    ) -> None:
        self._service = service
        self._process = process
        self._send_to = send
        self._now_us = now_us
        self._start_us = now_us()
        self._announcing = False
        # The functions that cancel the tasks of the pending stop. Its announcement ends with it: it would be untrue.
        self._pending_stop: list[Callable[[], object]] = []
        self._handlers: Mapping[type[Request], Callable[[Any], Awaitable[Answer]]] = {
            GetStatistics: self._statistics,
            GetRecentEvents: self._recent_events,
            GetLogLevel: self._log_level,
            SetLogLevel: self._set_log_level,
            Announce: self._announce,
            StopService: self._stop,
            CancelStop: self._cancel,
        }

    @property
    def handlers(self) -> Mapping[type[Request], Callable[[Any], Awaitable[Answer]]]:
        """The functions that answer the requests, by their type."""
        return dict.fromkeys(self._handlers, self.handle)

    async def handle(self, request: Request) -> Answer:
        """Returns the answer to a request. Raises FeedError, StoreError."""
        check_admin(self._service.policy, request.actor)
        return await self._handlers[type(request)](request)

    async def _statistics(self, request: GetStatistics) -> Statistics:
        counts = await ask(self._service.handle, CountStore(request.actor, request.service), StoreCounts)
        uptime_s = max(0, self._now_us() - self._start_us) / US_PER_S
        readings, recent = self._process.readings(), self._process.recent
        return Statistics(counts, uptime_s, requests_answered(), readings, recent.rates(), recent.history())

    async def _recent_events(self, _request: GetRecentEvents) -> ListAnswer[LogEvent]:
        events = RECENT_EVENTS.newest()
        return ListAnswer(events, ResultSet(len(events)))

    async def _log_level(self, _request: GetLogLevel) -> LogLevel:
        return LogLevel(log_level())

    async def _set_log_level(self, request: SetLogLevel) -> LogLevel:
        if request.level not in LOG_LEVELS:
            raise FeedError(Condition.NOT_ACCEPTABLE, f"the level must be one of {', '.join(LOG_LEVELS)}")
        set_log_level(request.level)
        log.warning("log_level_changed", level=request.level, admin=request.actor.bare_text)
        return LogLevel(log_level())

    async def _announce(self, request: Announce) -> EmptyResult:
        if self._announcing:
            raise FeedError(Condition.BUSY, "another announcement is being sent; try again later")
        _check_text(request.announcement)
        self._announcing = True
        self._process.spawn(partial(self._send_requested, request), "announcement")
        return EmptyResult()

    async def _send_requested(self, request: Announce) -> None:
        try:
            await self._send_all(request)
        finally:
            self._announcing = False

    async def _send_all(self, request: Announce) -> None:
        event, sent_count, after = "announcement_incomplete", 0, ""
        try:
            while addresses := await self._recipients(request, after):
                await self._send(addresses, request.announcement)
                sent_count += len(addresses)
                after = addresses[-1]
                await self._process.sleep(ANNOUNCE_PAUSE_S)
            event = "announced"
        finally:
            log.info(event, admin=request.actor.bare_text, recipients=sent_count)

    async def _recipients(self, request: Announce, after: str) -> tuple[str, ...]:
        owners = request.announcement.recipients is Recipients.OWNERS
        batch = ListAddresses(request.actor, request.service, owners, after, ANNOUNCE_BATCH)
        return (await ask(self._service.handle, batch, AddressList)).addresses

    async def _send(self, addresses: Sequence[str], announcement: Announcement) -> None:
        """Sends to a batch of addresses. If the link breaks meanwhile, the batch is sent again on the next link."""
        while True:
            try:
                return await self._send_to(addresses, announcement)
            except LinkError:
                await self._process.sleep(LINK_PAUSE_S)

    async def _stop(self, request: StopService) -> EmptyResult:
        if request.restart and not self._service.policy.restarts:
            raise FeedError(Condition.NOT_ALLOWED, "no process manager starts the service again (run.restarts)")
        if not 0 <= request.delay_s <= MAX_DELAY_S:
            raise FeedError(Condition.NOT_ACCEPTABLE, f"the delay must be 0 to {MAX_DELAY_S} seconds")
        if request.announcement is not None:
            _check_text(request.announcement)
        self._cancel_pending()
        log.warning("stop_requested", admin=request.actor.bare_text, delay_s=request.delay_s, restart=request.restart)
        self._pending_stop = [self._process.spawn(partial(self._stop_later, request), "stop")]
        if request.announcement is not None:
            # Beside another announcement, because behind it this one could come too late.
            announce = Announce(request.actor, request.service, request.announcement)
            self._pending_stop.append(self._process.spawn(partial(self._send_all, announce), "stop announcement"))
        return EmptyResult()

    def _cancel_pending(self) -> None:
        """Cancels the pending stop, and the rest of its announcement."""
        for cancel in self._pending_stop:
            cancel()
        self._pending_stop = []

    async def _stop_later(self, request: StopService) -> None:
        if request.delay_s:
            await self._process.sleep(request.delay_s)
        self._pending_stop = []  # first: a request to cancel must not succeed any more
        self._process.stop(request.restart)

    async def _cancel(self, request: CancelStop) -> EmptyResult:
        if not self._pending_stop:
            raise FeedError(Condition.ITEM_NOT_FOUND, "no shutdown or restart is pending")
        self._cancel_pending()
        log.warning("stop_cancelled", admin=request.actor.bare_text)
        return EmptyResult()


def _check_text(announcement: Announcement) -> None:
    if not 0 < len(announcement.text.encode()) <= MAX_TEXT_BYTES:
        raise FeedError(Condition.NOT_ACCEPTABLE, f"an announcement has 1 to {MAX_TEXT_BYTES} bytes")

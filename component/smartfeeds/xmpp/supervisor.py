"""Connects the component link and connects it again after each failure (xep-map 3 to 5, 9, 11).

The module decides the pauses between attempts, pings an idle link, and logs what an operator should do. slixmpp's own
retries never start, because `ComponentStream.open` makes exactly one attempt.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Never, TypeVar

import structlog

from smartfeeds.core.backoff import Backoff
from smartfeeds.telemetry import STREAM_ERRORS
from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.settings import LinkSettings
from smartfeeds.xmpp.stream import ComponentStream

log = structlog.get_logger()
T = TypeVar("T")

# Ends that only an operator can change. They are retried with the longest pause, and logged as errors.
REFUSED: Final = {
    "not-authorized": "the secret is not the one the server has for this domain, or ejabberd has no such domain",
    "handshake-refused": "the server closed the stream during the handshake; the secret or the domain may be wrong",
    "host-unknown": "the server has no component of this name, or component.port is its port for clients",
    "host-gone": "the server no longer serves this component",
    "invalid-namespace": "this port does not speak XEP-0114; it may be the client or server-to-server port",
}
ADVICE: Final = {
    **REFUSED,
    "connect-failed": "is the server running, and does it accept components at component.host and component.port?",
    "conflict": "another process is connected under this name; standing by",
    "policy-violation": "the server rejected a stanza; compare its stanza size limit with pubsub.stanza_bytes",
    "timeout": "the server accepts connections but does not answer",
    "lease-lost": "this process has lost the lease of the link, and another process may connect",
    "letters-missed": "this process was without the database for a minute, and asks for all presence again",
    "ping-timeout": "the connection was open, but the server did not answer a ping",
}


@dataclass(frozen=True, slots=True)
class LinkSharing:
    """The rules by which processes share a domain. `may_connect` returns when it may connect, None if it always may.
    `burst` returns how many pings find a sound link, because the server sends each ping to any link of the domain."""

    may_connect: Callable[[], Coroutine[Any, Any, None]] | None = None
    burst: Callable[[], int] = lambda: 1


class Supervisor:
    """Keeps one link connected until `stop`.

    `online` is set while the stream is authenticated. `epoch` counts the successful handshakes, `connects` the
    attempts, `pings` the pings over an idle link. `last_error` is the reason of the latest end or failed attempt, None
    before the first. `on_online` is called after each handshake.
    """

    def __init__(
        self,
        link: ComponentStream,
        settings: LinkSettings,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]],
        random: Callable[[], float],
        on_online: Callable[[], None] = lambda: None,
        sharing: LinkSharing = LinkSharing(),
    ) -> None:
        self._link = link
        self._settings = settings
        self._on_online = on_online
        self._sharing = sharing
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._stop = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._failures = 0
        self._logged = ""
        self.online = asyncio.Event()
        self.epoch = 0
        self.connects = 0
        self.pings = 0
        self.last_error: LinkDownError | None = None

    def report(self) -> dict[str, str]:
        """Returns why the link is down, and what to do about it; nothing while it is up."""
        down = self.last_error
        if down is None or self.online.is_set():
            return {}
        return {"reason": str(down), "advice": _advice(down)}

    async def run(self) -> None:
        """Connects and reconnects until `stop`, or until the task is cancelled. Then closes the link."""
        self._idle.clear()
        try:
            if not self._stop.is_set():
                await _first(self._connect_repeatedly(), self._stop.wait())
        finally:
            self.online.clear()
            await self._link.close()
            self._idle.set()

    async def stop(self) -> None:
        """Ends the stream with its footer. Returns when `run` has ended."""
        self._stop.set()
        await self._idle.wait()

    async def _connect_repeatedly(self) -> Never:
        while True:
            self.last_error = down = await self._connect_once()
            STREAM_ERRORS.labels(down.condition if down.condition in ADVICE else "other").inc()
            delay_s = self._delay_s(down)
            self._log_change(down, delay_s)
            await self._sleep(delay_s)

    async def _connect_once(self) -> LinkDownError:
        """Makes one attempt to connect, and returns the reason of its failure or of the end of the connection."""
        if self._sharing.may_connect is not None:
            await self._sharing.may_connect()
        self.connects += 1
        try:
            await _first(self._link.open(), self._time_out())
        except LinkDownError as down:
            return down
        self.epoch += 1
        self.online.set()
        self._on_online()
        self._logged = ""
        log.info("link_online", domain=self._link.domain, server=self._link.endpoint, epoch=self.epoch)
        start_s = self._clock()
        try:
            return await _first(self._link.wait_closed(), self._watch())
        finally:
            self.online.clear()
            # A link that ends soon after each handshake must not be reopened at the first pause again and again.
            if self._clock() - start_s >= self._settings.healthy_after_s:
                self._failures = 0

    async def _time_out(self) -> None:
        await self._sleep(self._settings.open_timeout_s)
        raise LinkDownError("timeout")

    async def _watch(self) -> LinkDownError:
        """Pings an idle link and drops it if no byte arrives (xep-map 11). TCP alone notices a dead peer too late."""
        while True:
            received_bytes = self._link.received_bytes
            await self._sleep(self._settings.ping_idle_s)
            if self._link.received_bytes != received_bytes:
                continue
            for _ in range(self._sharing.burst()):
                self._link.ping()
                self.pings += 1
            await self._sleep(self._settings.ping_timeout_s)
            if self._link.received_bytes == received_bytes:
                self._link.drop("ping-timeout")
                return await self._link.wait_closed()

    def _delay_s(self, down: LinkDownError) -> float:
        """Returns the pause before the next attempt, the longest one after a refusal."""
        settings = self._settings
        self._failures += 1
        first_s = settings.retry_most_s if down.condition in REFUSED else settings.retry_first_s
        return Backoff(first_s, settings.retry_most_s).pause_s(self._failures, self._random())

    def _log_change(self, down: LinkDownError, delay_s: float) -> None:
        """Logs a reason once, however often it repeats."""
        if down.condition == self._logged:
            return
        self._logged = down.condition
        refused = down.condition in REFUSED
        (log.error if refused else log.warning)(
            "link_refused" if refused else "link_offline",
            domain=self._link.domain,
            server=self._link.endpoint,
            condition=down.condition,
            detail=down.detail,
            advice=_advice(down),
            retry_s=round(delay_s, 1),
        )


def _advice(down: LinkDownError) -> str:
    return ADVICE.get(down.condition, "connecting again")


async def _first(*works: Coroutine[Any, Any, T]) -> T:
    """Runs coroutines until one is done, cancels the others, and returns its result or raises its exception.

    If several are done at the same time, the first argument decides.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)  # `ComponentStream.open` drops its connection when it is cancelled
    return next(task for task in tasks if not task.cancelled()).result()

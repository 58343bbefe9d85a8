"""Owns connecting (design section 3; xep-map 3-5, 9, 11): back-off, standing by, the idle ping, and the end.

slixmpp's own retries are never started: `ComponentLink.open` makes exactly one attempt. Time and chance are injected.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from smartfeeds.core.backoff import Backoff
from smartfeeds.telemetry import STREAM_ERRORS
from smartfeeds.xmpp.link import ComponentLink, LinkDownError

log = structlog.get_logger()

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
    "policy-violation": "the server refused what was sent; compare its stanza size limit with ours",
    "timeout": "the server accepts connections and does not answer",
    "ping-timeout": "the link was dead though it was still open",
}


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of the supervisor, in seconds."""

    retry_first_s: float = 0.5
    retry_most_s: float = 30.0
    healthy_after_s: float = 30.0
    open_timeout_s: float = 30.0
    ping_idle_s: float = 60.0
    ping_timeout_s: float = 30.0


class Supervisor:
    """Keeps one link up until it is stopped.

    `online` is set while the handshake stands. `epoch` counts the times it came up. `last_error` is why it is not
    up, or was not the last time (None before the first failure). `connects` counts attempts. `on_online` is called
    each time the handshake is done.
    """

    def __init__(
        self,
        link: ComponentLink,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]],
        random: Callable[[], float],
        pace: Pace | None = None,
        on_online: Callable[[], None] = lambda: None,
    ) -> None:
        self._link = link
        self._on_online = on_online
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._pace = Pace() if pace is None else pace
        self._stop = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._failures = 0
        self._logged = ""
        self.online = asyncio.Event()
        self.epoch = 0
        self.connects = 0
        self.last_error: LinkDownError | None = None

    async def run(self) -> None:
        """Connects, and connects again, until `stop`. To be run as one task; raises nothing of its own."""
        self._idle.clear()
        try:
            while not self._stop.is_set():
                down = await self._live_once()
                if self._stop.is_set():
                    break
                self.last_error = down
                STREAM_ERRORS.labels(down.condition if down.condition in ADVICE else "other").inc()
                delay_s = self._delay_s(down)
                self._say(down, delay_s)
                await self._unless_stopped(self._sleep(delay_s))
        finally:
            self.online.clear()
            await self._link.close()
            self._idle.set()

    async def stop(self) -> None:
        """Ends the stream with its footer; returns when `run` is done with it."""
        self._stop.set()
        await self._idle.wait()

    async def _live_once(self) -> LinkDownError:
        """One connection from its first attempt to its end; the reason of the end."""
        self.connects += 1
        try:
            if not await self._within(self._pace.open_timeout_s, self._link.open()):
                return LinkDownError("stopped" if self._stop.is_set() else "timeout")
        except LinkDownError as down:
            return down
        self.epoch += 1
        self.online.set()
        self._on_online()
        self._logged = ""
        log.info("link_online", domain=self._link.domain, server=self._link.endpoint, epoch=self.epoch)
        since = self._clock()
        watch = asyncio.create_task(self._watch())
        closed = asyncio.create_task(self._link.wait_closed())
        try:
            await self._unless_stopped(_join(closed))
            return closed.result() if closed.done() else LinkDownError("stopped")
        finally:
            self.online.clear()
            await _cancelled(watch, closed)
            if self._clock() - since >= self._pace.healthy_after_s:
                self._failures = 0

    async def _watch(self) -> None:
        """Pings an idle link and drops it when nothing at all comes back [xep-map 11]."""
        while True:
            heard = self._link.received_bytes
            await self._sleep(self._pace.ping_idle_s)
            if self._link.received_bytes != heard:
                continue
            self._link.ping()
            await self._sleep(self._pace.ping_timeout_s)
            if self._link.received_bytes == heard:
                self._link.drop("ping-timeout")
                return

    def _delay_s(self, down: LinkDownError) -> float:
        """The pause before the next attempt. A refusal gets the longest: only an operator can remove its cause."""
        pace = self._pace
        self._failures += 1
        first_s = pace.retry_most_s if down.condition in REFUSED else pace.retry_first_s
        return Backoff(first_s, pace.retry_most_s).pause_s(self._failures, self._random())

    def _say(self, down: LinkDownError, delay_s: float) -> None:
        """One line per change of state, however often the same thing happens again."""
        if down.condition == self._logged:
            return
        self._logged = down.condition
        say = log.error if down.condition in REFUSED else log.warning
        say(
            "link_refused" if down.condition in REFUSED else "link_offline",
            domain=self._link.domain,
            server=self._link.endpoint,
            condition=down.condition,
            detail=down.detail,
            advice=ADVICE.get(down.condition, "connecting again"),
            retry_s=round(delay_s, 1),
        )

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Runs `work` until it is done or the supervisor is stopped; whether it was done."""
        task = asyncio.create_task(work)
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            done = task.done()
        finally:
            await _cancelled(stop, task)
        if done:
            task.result()
        return done

    async def _within(self, seconds: float, work: Coroutine[Any, Any, None]) -> bool:
        """The same with a time limit."""
        task = asyncio.create_task(work)
        limit = asyncio.create_task(self._sleep(seconds))
        try:
            await self._unless_stopped(_first(task, limit))
            done = task.done()
        finally:
            await _cancelled(limit, task)
        if done:
            task.result()
        return done


async def _join(task: asyncio.Task[LinkDownError]) -> None:
    await asyncio.wait((task,))


async def _first(*tasks: asyncio.Task[None]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

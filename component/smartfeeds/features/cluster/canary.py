"""The canary: pings to the own address, which show whether the server routes stanzas (docs/scaling.md, "Canary").

A process with a link pings the address of the component through the server. The server sends the ping, and later the
response, to any connection of the component, and the process that gets the response passes it on. So a ping without a
response means that a connection swallows stanzas: a process that hangs, or a connection of another program.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Protocol

import structlog
from lxml import etree

from smartfeeds.features.cluster.metrics import CanaryReading
from smartfeeds.xmpp.link import LinkDownError

# Often enough for an alert after minutes, and rare enough to cost nothing: a ping and its response are 300 bytes.
PAUSE_S: Final = 10.0
LATELY: Final = 64  # pings; with 64 connections, of which one swallows stanzas, two of three rounds would show it
_PING: Final = b"<ping xmlns='urn:xmpp:ping'/>"

_log = structlog.get_logger()


class CanaryLink(Protocol):
    """The part of `xmpp.stream.ComponentStream` that the canary uses."""

    @property
    def domain(self) -> str:
        """The domain of the component."""

    async def call(self, kind: str, to: str, payload: bytes, timeout_s: float) -> etree._Element:
        """Sends an IQ and returns the response. Raises LinkDownError, TimeoutError."""


class Canary:
    """Pings the own address for ever, and counts the pings that get no response.

    `is_online` returns whether the link is up, and `answer_s` is how long a response may take.
    """

    def __init__(
        self,
        link: CanaryLink,
        is_online: Callable[[], bool],
        sleep: Callable[[float], Awaitable[object]],
        *,
        answer_s: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._link = link
        self._is_online = is_online
        self._sleep = sleep
        self._answer_s = answer_s
        self._clock = clock
        self._sent = 0
        self._lost = 0
        self._seconds = 0.0
        self._lately: deque[bool] = deque(maxlen=LATELY)  # whether each of the last pings was lost
        self._is_losing = False

    async def run(self) -> None:
        """Sends a ping every `PAUSE_S` seconds while the link is up, for ever."""
        while True:
            await self._sleep(PAUSE_S)
            if self._is_online():
                await self.ping()

    async def ping(self) -> None:
        """Sends a ping and waits for its response. A ping whose link has ended proves nothing and is not counted."""
        began_s = self._clock()
        try:
            await self._link.call("get", self._link.domain, _PING, self._answer_s)
        except LinkDownError:
            return
        except TimeoutError:
            self._count(is_lost=True)
        else:
            self._seconds = self._clock() - began_s
            self._count(is_lost=False)

    def reading(self) -> CanaryReading:
        """Returns the counts."""
        return CanaryReading(self._sent, self._lost, self._seconds, sum(self._lately), len(self._lately))

    def _count(self, *, is_lost: bool) -> None:
        self._sent += 1
        self._lost += is_lost
        self._lately.append(is_lost)
        lost = sum(self._lately)
        # With several connections only some pings are lost, so the end of the losses shows after many pings.
        if lost and not self._is_losing:
            _log.warning("canary_lost", domain=self._link.domain, lost=lost, sent=len(self._lately))
        elif self._is_losing and not lost:
            _log.info("canary_returns", domain=self._link.domain)
        self._is_losing = lost > 0

"""Limits on outgoing requests: concurrency in all and per host, rate per host, and the pauses that servers ask for.

Concurrency and rate are bounded per host, because strangers name addresses: with limits per port they could direct
65,535 times as many requests at one machine. A pause concerns the port that asked for it, because another port may be
the server of somebody else.

A slow body holds its turn for as long as the client waits for it. So hosts that were not quick the last time, and new
hosts, never hold every turn: a quarter is for hosts that were. Many hosts may become silent at the same time. So a turn
that is not quick leaves its place to another one, up to a bound.

Implements `Retry-After` (RFC 9110 section 10.2.3) for 429 (RFC 6585 section 4) and 503 (RFC 9110 section 15.6.4).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S
from smartfeeds.errors import SmartfeedsError

_SWEEP_HOSTS: Final = 1_024  # hosts in memory before the first sweep
_QUICK_S: Final = 5.0  # a quick turn ends within this time; most answers take less than a second


class LimiterCall(Protocol):
    """The handle of a planned call (`asyncio.TimerHandle`)."""

    def cancel(self) -> object:
        """Cancels the call."""


class HostPausedError(SmartfeedsError):
    """The server asked for a pause that has not ended. `left_s` is what is left of it, in seconds."""

    def __init__(self, left_s: float) -> None:
        super().__init__(f"was not requested: its server asked for a pause; try again in {left_s:.0f} seconds")
        self.left_s = left_s


@dataclass(frozen=True, slots=True)
class HostLimits:
    """`at_once` and `at_once_per_host` bound requests in flight; `per_s` requests a second start at one host on
    average, and up to `burst` without waiting. `at_once_per_address` bounds those to one IP address, which many names
    may share; 0 is no bound. `slow_at_once` bounds the requests that have left their place because they are slow."""

    at_once: int = 20
    at_once_per_host: int = 2
    per_s: float = 10.0
    burst: int = 20
    at_once_per_address: int = 0
    slow_at_once: int = 0


class _Address:
    """The turns of one IP address, while anybody uses or wants them."""

    __slots__ = ("slots", "users")

    def __init__(self, at_once: int) -> None:
        self.slots = asyncio.Semaphore(at_once)
        self.users = 0


class _Place:
    """A place in each of several semaphores, taken and left together."""

    def __init__(self, bounds: tuple[asyncio.Semaphore, ...]) -> None:
        self._bounds = bounds
        self.is_taken = False

    async def take(self) -> None:
        """Waits until each bound has a place."""
        async with AsyncExitStack() as stack:
            for bound in self._bounds:
                await stack.enter_async_context(bound)
            stack.pop_all()
        self.is_taken = True

    def leave(self) -> None:
        """Returns the places."""
        self.is_taken = False
        for bound in self._bounds:
            bound.release()


class _Host:
    """The turns and the pause of one host. Times are those of the limiter's clock."""

    __slots__ = ("paused_until_s", "quick", "slots", "spent_until_s", "users")

    def __init__(self, at_once: int) -> None:
        self.slots = asyncio.Semaphore(at_once)
        self.users = 0
        self.quick = False  # whether the last turn was quick; strangers can name any number of new hosts
        self.spent_until_s = 0.0  # when the rate is unspent again
        self.paused_until_s: dict[int, float] = {}  # by port


# What polls of feeds may use: one request at a time at a host, a second apart (SRC-017, SRC-018).
# Slow ones are few, because each may have a body of 10 MB in memory.
POLL_LIMITS: Final = HostLimits(
    at_once=20, at_once_per_host=1, per_s=1.0, burst=1, at_once_per_address=4, slow_at_once=60
)


class HostLimiter:
    """Hands out turns for requests. One limiter serves all clients of a process, so that a host sees one of them.

    `clock` gives seconds that never go back; `sleep` waits for seconds. `call_later` plans a call after seconds; None
    is that of the event loop.
    """

    def __init__(
        self,
        limits: HostLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        call_later: Callable[[float, Callable[[], None]], LimiterCall] | None = None,
    ) -> None:
        self.limits = limits or HostLimits()
        self._clock = clock
        self._sleep = sleep
        self._call_later = call_later
        self._slow = 0
        at_once = self.limits.at_once
        self._all = asyncio.Semaphore(at_once)
        self._not_quick = asyncio.Semaphore(at_once - at_once // 4)
        self._hosts: dict[str, _Host] = {}
        self._addresses: dict[str, _Address] = {}
        self._sweep_at = _SWEEP_HOSTS

    def __len__(self) -> int:
        """The number of hosts in memory."""
        return len(self._hosts)

    @asynccontextmanager
    async def turn(self, host: str, port: int, address: str = "") -> AsyncIterator[None]:
        """Waits until a request to `host` may start, and counts it until the block ends. `address` is the IP address
        of the host, "" if it is not known.

        Raises HostPausedError at once, instead of waiting for the end of a pause that the server at `port` asked for.
        """
        state = self._state(host)
        # First, so that requests to a paused port take no slot and no rate from the other ports of the host.
        self._check_pause(state, port)
        state.users += 1
        try:
            # The host comes first: requests that wait for a slow host must not take the turns of other hosts.
            async with state.slots:
                await self._wait_for_rate(state)
                # The share comes before the turn: requests that wait for the share must not take a turn.
                async with self._address_turn(address), self._place(is_quick=state.quick):
                    # Again, because the server may have asked for a pause meanwhile.
                    self._check_pause(state, port)
                    began_s = self._clock()
                    try:
                        yield
                    finally:
                        state.quick = self._clock() - began_s < _QUICK_S
        finally:
            state.users -= 1

    @asynccontextmanager
    async def held(self, host: str, port: int) -> AsyncIterator[None]:
        """Waits until a request may start that the server holds until it has news. The request takes no place: it would
        have the place for a minute, and other requests to the host would wait. It counts for the rate.

        Raises HostPausedError as `turn` does.
        """
        state = self._state(host)
        self._check_pause(state, port)
        state.users += 1
        try:
            await self._wait_for_rate(state)
            self._check_pause(state, port)
            yield
        finally:
            state.users -= 1

    @asynccontextmanager
    async def _place(self, *, is_quick: bool) -> AsyncIterator[None]:
        """Waits for a place, which a slow request leaves before it ends."""
        # The narrower bound first: requests that wait for it must not take the places that are for quick hosts.
        place = _Place((self._all,) if is_quick else (self._not_quick, self._all))
        await place.take()

        def leave() -> None:
            if self._slow < self.limits.slow_at_once:
                self._slow += 1
                place.leave()

        timer = (self._call_later or asyncio.get_running_loop().call_later)(_QUICK_S, leave)
        try:
            yield
        finally:
            timer.cancel()
            if place.is_taken:
                place.leave()
            else:
                self._slow -= 1

    @asynccontextmanager
    async def _address_turn(self, address: str) -> AsyncIterator[None]:
        if not address or not self.limits.at_once_per_address:
            yield
            return
        state = self._addresses.setdefault(address, _Address(self.limits.at_once_per_address))
        state.users += 1
        try:
            async with state.slots:
                yield
        finally:
            state.users -= 1
            if not state.users:
                del self._addresses[address]

    def pause(self, host: str, port: int, pause_s: float) -> None:
        """Starts no request to `port` of `host` for `pause_s` seconds. A longer pause that has begun before stays."""
        pauses = self._state(host).paused_until_s
        pauses[port] = max(pauses.get(port, 0.0), self._clock() + pause_s)

    def _check_pause(self, state: _Host, port: int) -> None:
        """Raises HostPausedError during a pause of this port."""
        left_s = state.paused_until_s.get(port, 0.0) - self._clock()
        if left_s > 0:
            raise HostPausedError(left_s)

    def _state(self, host: str) -> _Host:
        name = host.lower()
        state = self._hosts.get(name)
        if state is None:
            if len(self._hosts) >= self._sweep_at:
                self._sweep()
            state = self._hosts[name] = _Host(self.limits.at_once_per_host)
        return state

    async def _wait_for_rate(self, state: _Host) -> None:
        """The generic cell rate algorithm: each request spends 1/`per_s` seconds, `burst` of them in advance."""
        now_s, limits = self._clock(), self.limits
        # Spent before the wait, so that the next request waits behind this one. A wait that is cancelled stays spent.
        state.spent_until_s = max(state.spent_until_s, now_s) + 1 / limits.per_s
        wait_s = state.spent_until_s - now_s - limits.burst / limits.per_s
        if wait_s > 0:
            await self._sleep(wait_s)

    def _sweep(self) -> None:
        """Forgets hosts that no limit applies to any more. The threshold follows the hosts that are left, so that a
        sweep costs little per host."""
        now_s = self._clock()
        self._hosts = {
            name: state
            for name, state in self._hosts.items()
            if state.users or max((state.spent_until_s, *state.paused_until_s.values())) > now_s
        }
        self._sweep_at = max(_SWEEP_HOSTS, 2 * len(self._hosts))


def retry_after_s(text: str, now_s: float) -> float | None:
    """The pause that a `Retry-After` header asks for: seconds or an HTTP date, at most `MAX_REQUESTED_PAUSE_S`.

    `now_s` is the Unix time. None where the header is missing, cannot be read, or names a time that has passed.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        pause_s = float(text[:12])  # more digits would only reach further beyond the bound
    else:
        try:
            date = parsedate_to_datetime(text)
            # HTTP dates are GMT (RFC 9110 section 5.6.7), also where a server leaves that out.
            pause_s = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    return min(pause_s, MAX_REQUESTED_PAUSE_S) if pause_s > 0 else None

"""`async for change in follow("xmpp:feeds.example?;node=comments", ...)`: a follower over an XMPP link (SF-045 to
SF-051).

`FollowState` decides; this module sends requests, waits, retries and stores the position. The caller's `async for`
drives all of it: no page is pulled while the caller processes a change, so memory stays bounded.
"""

import asyncio
import logging
import os
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypedDict, Unpack
from xml.etree.ElementTree import Element

from smartfeeds.client import events, stanzas
from smartfeeds.client.change import Change
from smartfeeds.client.errors import (
    AnswerError,
    FollowError,
    NodeMissingError,
    RefusedError,
    RequestError,
    RequestTimeoutError,
)
from smartfeeds.client.events import PAGE_ITEMS, FollowCounters, Input, Output, StartPoint
from smartfeeds.client.failures import NOT_APPROVED, TOO_LARGE, TRY_AGAIN, failure_of
from smartfeeds.client.position import FileStore, PositionStore, parse_position
from smartfeeds.client.state import REMEMBER, FollowState
from smartfeeds.client.transport import BACKOFF, ClientLink, FollowerLink, Slixmpp, link_over
from smartfeeds.core.feed_address import FeedAddress, parse_address
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.text import counted

log = logging.getLogger("smartfeeds.client")

# Silence after which the follower subscribes and pulls again (SF-051). It bounds how long a lost last push can remain
# unnoticed, and costs the service two requests for each silent follower.
INTEGRITY_S = 300.0
# Pushes that wait for the caller. A pull fetches what exceeds it, so the number bounds memory and loses nothing. Other
# events have no bound: they answer the single request under way, or are rare.
INBOX = 500


class Timer(Protocol):
    """A scheduled call, as `call_later` returns it."""

    def cancel(self) -> None:
        """Cancels the call."""


class Timers(Protocol):
    """The part of an event loop that schedules calls."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Calls `callback` after `delay` seconds."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The evidence that a follower has every item.

    `position` is the cursor of the newest item of the follower, `total` the number of items that the service named with
    it. `in_step`: no item is known to be missing. `checked_at` is when a pull last proved it, in Unix seconds.
    """

    node: str
    position: str
    total: int | None
    in_step: bool
    checked_at: float | None
    counters: FollowCounters

    def __str__(self) -> str:
        items = "? items" if self.total is None else counted(self.total, "item")
        step = "in step" if self.in_step else "not in step"
        return f"{step} with {self.node} at {self.position or 'the start'}, {items}; {self.counters}"


class FollowOptions(TypedDict, total=False):
    """The options of a follower, all optional.

    `smart=False` keeps a node without parameters as it is: the follower then sees a deletion only when it is pushed.

    The follower starts at the position in `store` (a path or an object with `load` and `save`). Without a stored
    position it starts at `since` (a `Change.position` or a cursor), else with `mirror=True` at the beginning, else at
    the end of the feed. Requesting the next change saves the position of the previous change, which is processed by
    then.

    If the service no longer knows the position, the follower reads the feed again from its beginning. `replay=False`
    raises PositionRefusedError instead. `leave=True` unsubscribes when the follower is closed.

    `integrity_s` is the silence after which the follower pulls, `page_items` the length of a page, and `remember` the
    number of items whose versions the follower remembers.

    `on_caught_up` is called when a pull proves that nothing is missing. `on_connection` is called with False when the
    session is lost, and with True when there is a session again.
    """

    store: PositionStore | str | os.PathLike[str] | None
    since: str | None
    mirror: bool
    smart: bool
    leave: bool
    replay: bool
    integrity_s: float
    page_items: int
    remember: int
    on_caught_up: Callable[[Proof], None] | None
    on_connection: Callable[[bool], None] | None


@dataclass(frozen=True, slots=True)
class FollowerClock:
    """The time of a follower. `timers` is that of the running event loop unless it is set. `spread` returns a random
    number from 0 to 1, which staggers retries and integrity pulls of many followers. `wall_clock` returns Unix seconds.
    """

    timers: Timers | None = None
    spread: Callable[[], float] = random.random
    wall_clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class _Retry:
    """A request failed in a way that may pass, and its pause is over."""

    request: events.SubscribeRequest | events.PageRequest


class Follower:
    """An asynchronous iterator over the changes of a feed, for one `async for` at a time.

    `xmpp` is a slixmpp client or component that the caller connects, or a `FollowerLink`. `address` is an `xmpp:`
    address with a node. `options` are those of `FollowOptions`. `on_trouble` is called with the error before a failed
    request is retried. The constructor raises AddressError, the iteration FollowError.
    """

    def __init__(
        self,
        xmpp: Slixmpp | FollowerLink,
        address: str | FeedAddress,
        *,
        subscribe_as: str | None = None,
        on_trouble: Callable[[Exception], None] | None = None,
        clock: FollowerClock = FollowerClock(),
        **options: Unpack[FollowOptions],
    ) -> None:
        smart, store = options.get("smart", True), options.get("store")
        self.address = parse_address(address, smart=smart) if isinstance(address, str) else address
        self._link = link_over(xmpp, subscribe_as=subscribe_as)
        self._store = FileStore(store) if isinstance(store, str | os.PathLike) else store
        self._leave = options.get("leave", False)
        self._integrity_s = options.get("integrity_s", INTEGRITY_S)
        self._on_caught_up = options.get("on_caught_up")
        self._on_connection = options.get("on_connection")
        self._on_trouble = on_trouble
        self._clock = clock
        text = self._store.load() if self._store is not None else None
        self._saved_position = text
        begin = StartPoint.BEGINNING if options.get("mirror") else StartPoint.NOW
        text = options.get("since") if text is None else text
        self._state = FollowState(
            self.address.node,
            begin if text is None else parse_position(text),
            page_items=options.get("page_items", PAGE_ITEMS),
            remember=options.get("remember", REMEMBER),
            replay=options.get("replay", True),
        )
        self._inbox: deque[Input | _Retry | Exception] = deque()
        self._arrived = asyncio.Event()
        self._overrun = False
        self._ready: deque[Change] = deque()
        self._last_change: Change | None = None
        self._end: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._silence: Timer | None = None
        self._retry: Timer | None = None
        self._to_retry: events.SubscribeRequest | events.PageRequest | None = None
        self._failures = 0
        self._pending = False
        self._up = False
        self._is_lost = False
        self._is_open = False
        self._checked_at: float | None = None
        self._proofs = 0  # pulls that proved that nothing is missing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        change = await self._next(lambda: False)
        assert change is not None  # None only if there are enough, and there never are
        return change

    async def _next(self, is_enough: Callable[[], bool]) -> Change | None:
        """Returns the next change, or None if none is ready and there are enough."""
        if not self._is_open:
            self._is_open = True
            self._link.open(self)
        self.acknowledge()
        while not self._ready:
            if self._end is not None:
                raise self._end
            if is_enough():
                return None
            await self._arrived.wait()
            self._work()
        self._last_change = self._ready.popleft()
        return self._last_change

    async def until_caught_up(self) -> AsyncIterator[Change]:
        """The changes up to now, for `async for`: it ends when a pull that began after the call proves that there are
        no more. Changes that arrive meanwhile are among them. Raises FollowError.

        The end acknowledges the last change. The follower stays subscribed, and may be iterated again.
        """
        if self._is_open:
            self.check()
            self._work()  # a proof that waits in the inbox is older than this call
        proofs = self._proofs
        while (change := await self._next(lambda: self._proofs > proofs)) is not None:
            yield change

    async def several(self, limit: int) -> list[Change]:
        """Returns the next change and up to `limit - 1` more that are ready. The next call acknowledges them."""
        changes = [await anext(self)]
        while self._ready and len(changes) < limit:
            changes.append(self._ready.popleft())
        self._last_change = changes[-1]
        return changes

    @property
    def waiting(self) -> int:
        """The number of changes that are ready for the caller."""
        return len(self._ready)

    def check(self) -> None:
        """Asks the service for changes now, and ends the pause after a failed request."""
        if self._retry is None or self._to_retry is None:
            self._put(events.GapSuspected())
            return
        self._retry.cancel()
        self._retry = None
        self._put(_Retry(self._to_retry))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def acknowledge(self) -> None:
        """Records that the last change was processed, and saves its position. Raises what the store raises."""
        if self._last_change is not None:
            change, self._last_change = self._last_change, None
            self._save(change.position)
        self._save_reached()

    @property
    def position(self) -> str | None:
        """The position after the last change that the caller received. None before the first response."""
        if self._last_change is not None:
            return self._last_change.position
        if self._ready or self._state.position is None:
            return self._saved_position
        return str(self._state.position)

    def proof(self) -> Proof:
        """Returns the current evidence of being in step."""
        at = self._state.position
        return Proof(
            self.address.node,
            at.cursor if at is not None else "",
            at.total if at is not None else None,
            self._state.in_step and not self._overrun and not self._inbox,
            self._checked_at,
            replace(self._state.counters),
        )

    async def aclose(self) -> None:
        """Stops, and unsubscribes if `leave` is set. The last change stays unacknowledged: the caller may have stopped
        in the middle of processing it."""
        self._cancel()
        self._end = self._end or FollowError("the follower was closed")
        if self._leave and self._up:
            await self._unsubscribe()
        if self._is_open:
            await self._link.close()

    async def _unsubscribe(self) -> None:
        request = stanzas.request("unsubscribe", node=self.address.node, jid=self._link.subscriber)
        try:
            await self._link.ask("set", self.address.service, request)
        except (RequestError, RequestTimeoutError) as error:
            log.warning("could not unsubscribe from %s: %s", self.address, error)

    # Calls from the link.

    def on_up(self) -> None:
        """A session has started."""
        self._up = True
        self._failures = 0
        self._tell_connection(is_lost=False)
        self._put(events.Connected())

    def on_down(self) -> None:
        """The session has ended."""
        if self._up:
            self._tell_connection(is_lost=True)
        self._up = False
        self._cancel()
        self._put(events.Disconnected())

    def _tell_connection(self, *, is_lost: bool) -> None:
        """Reports the start and the end of each outage once, however many attempts to connect it takes."""
        if is_lost != self._is_lost:
            self._is_lost = is_lost
            if self._on_connection is not None:
                self._on_connection(not is_lost)

    def on_failure(self, error: Exception) -> None:
        """No further attempt to connect will be made."""
        self._put(error)

    def on_message(self, message: Element) -> None:
        """Queues the notifications of this node. Messages that other senders forged are ignored."""
        sender = parse_jid(message.get("from", ""))
        if sender is None or str(sender) != self.address.service:
            return
        event = stanzas.read_message(message, self.address.node)
        if isinstance(event, events.PushReceived) and len(self._inbox) >= INBOX:
            self._overrun = True
        elif event is not None:
            self._put(event)

    def _put(self, event: Input | _Retry | Exception) -> None:
        self._inbox.append(event)
        self._arrived.set()

    # Work in the caller's task.

    def _work(self) -> None:
        """Processes all queued events."""
        self._arrived.clear()
        while self._inbox:
            event = self._inbox.popleft()
            if isinstance(event, Exception):
                self._end = event
            elif isinstance(event, _Retry):
                self._ask(event.request)
            else:
                self._feed(event)
        if self._overrun:
            self._overrun = False
            self._feed(events.GapSuspected())
        self._save_reached()

    def _feed(self, event: Input) -> None:
        if isinstance(event, events.PushReceived):
            self._await_silence()
        outputs = self._state.receive(event)
        # A page that contradicts itself leads to another request. It counts as a failure, else the pauses never grow.
        if isinstance(event, events.SubscriptionAccepted | events.PageReceived) and not any(
            isinstance(output, events.DelayedPageRequest) for output in outputs
        ):
            self._failures = 0
        for output in outputs:
            self._do(output)

    def _do(self, output: Output) -> None:
        if isinstance(output, Change):
            self._ready.append(output)
        elif isinstance(output, events.SubscribeRequest | events.PageRequest):
            self._ask(output)
        elif isinstance(output, events.DelayedPageRequest):
            self._try_again(output.request, failure_of(output))
        elif isinstance(output, events.StopFollowing):
            self._end = output.error(f"{self.address}: {output.reason}")
            self._cancel()
        elif isinstance(output, events.CaughtUp):
            self._checked_at = self._clock.wall_clock()
            self._proofs += 1
            self._await_silence()
            if self._on_caught_up is not None:
                self._on_caught_up(self.proof())

    def _save(self, position: str) -> None:
        if self._store is not None and position != self._saved_position:
            self._store.save(position)
        self._saved_position = position

    def _save_reached(self) -> None:
        """Saves a position that was reached without a change: at the start, or after a return to earlier content."""
        at = self._state.position
        # An empty cursor before the first proof is where a mirror starts, not a place that it has reached.
        if not self._ready and at is not None and (at.cursor or self._checked_at is not None):
            self._save(str(at))

    def _call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        timers: Timers = self._clock.timers if self._clock.timers is not None else asyncio.get_running_loop()
        return timers.call_later(delay_s, callback)

    def _await_silence(self) -> None:
        """Restarts the integrity timer. It varies by a quarter, so that many followers do not pull at once."""
        if self._silence is not None:
            self._silence.cancel()
        delay_s = self._integrity_s * (1 - self._clock.spread() / 4)
        self._silence = self._call_later(delay_s, lambda: self._put(events.IntegrityDue()))

    def _ask(self, request: events.SubscribeRequest | events.PageRequest) -> None:
        # One request at a time. The state ignores responses to earlier requests, so their tasks are of no use.
        if self._task is not None:
            self._task.cancel()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._up:
            self._task = asyncio.get_running_loop().create_task(self._perform(request))

    async def _perform(self, request: events.SubscribeRequest | events.PageRequest) -> None:
        try:
            if isinstance(request, events.SubscribeRequest):
                payload = stanzas.request("subscribe", node=self.address.node, jid=self._link.subscriber)
                reply = await self._link.ask("set", self.address.service, payload)
                self._pending = stanzas.is_pending(reply)
                event: Input = events.SubscriptionAccepted(request.request_no)
            else:
                reply = await self._link.ask("get", self.address.service, stanzas.pull(self.address.node, request))
                event = stanzas.read_page(reply, request.request_no, self.address.node)
        except (RequestTimeoutError, AnswerError) as error:
            if isinstance(request, events.SubscribeRequest):
                self._try_again(request, error)
            else:
                log.info("%s: %s", self.address, error)
                self._put(events.PullFailed(request.request_no, str(error), answered=isinstance(error, AnswerError)))
        except RequestError as error:
            self._refused(request, error)
        else:
            self._put(event)

    def _refused(self, request: events.SubscribeRequest | events.PageRequest, error: RequestError) -> None:
        if error.kind == "wait" or error.condition in TRY_AGAIN or (self._pending and error.condition in NOT_APPROVED):
            self._try_again(request, error)
        elif isinstance(request, events.PageRequest) and request.max_items > 1 and error.condition in TOO_LARGE:
            self._put(events.PullFailed(request.request_no, str(error), answered=True))
        elif error.condition != "item-not-found":
            self._put(RefusedError(error.condition, f"{self.address}: {error}"))
        elif isinstance(request, events.PageRequest) and request.after:
            # For a request behind a cursor, item-not-found is about the cursor (XEP-0059 section 2.4).
            log.warning("%s: the service no longer knows the stored position", self.address)
            self._put(events.CursorRefused(request.request_no))
        else:
            self._put(NodeMissingError(f"{self.address}: the node does not exist ({error}); check the address"))

    def _try_again(self, request: events.SubscribeRequest | events.PageRequest, error: Exception) -> None:
        self._failures += 1
        delay_s = BACKOFF.pause_s(self._failures, self._clock.spread())
        log.warning("%s: %s; next try in %.1f s", self.address, error, delay_s)
        if self._on_trouble is not None:
            self._on_trouble(error)
        self._to_retry = request
        self._retry = self._call_later(delay_s, lambda: self._put(_Retry(request)))

    def _cancel(self) -> None:
        """Cancels the requests and timers of this session."""
        for pending in (self._task, self._silence, self._retry):
            if pending is not None:
                pending.cancel()
        self._task = self._silence = self._retry = None


def follow(
    address: str,
    *,
    jid: str,
    password: str,
    server: tuple[str, int] | str | None = None,
    plaintext: bool = False,
    ca_certs: Path | None = None,
    **options: Unpack[FollowOptions],
) -> Follower:
    """Follows a feed over a connection of its own, which reconnects. `options` are those of `FollowOptions`.

    If `jid` has a resource, that full JID is subscribed, else the bare JID. `ConnectOptions` describes `server`,
    `plaintext` and `ca_certs`. Close the follower with `async with` or `aclose`.

    While the server cannot be reached, the logger `smartfeeds.client` warns with server and cause, and the follower
    retries. The iteration raises LoginError if the account or its password is wrong or the server offers no TLS, and
    CertificateError if the server's certificate is not valid; both are FollowErrors.
    """
    link = ClientLink(jid, password, server=server, plaintext=plaintext, ca_certs=ca_certs)
    return Follower(link, address, **options)

"""`async for change in follow("xmpp:feeds.example?;node=comments", ...)`: the follower over a link (SF-045 to SF-051).

The state machine decides, this module performs: it asks, waits, tries again, and keeps the position. Everything is
driven by the caller's `async for`: while the caller works on a change nothing is pulled, so memory stays bounded.
"""

import asyncio
import logging
import os
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from xml.etree.ElementTree import Element

from smartfeeds.client import stanzas
from smartfeeds.client.address import FeedAddress, parse_address
from smartfeeds.client.change import Change
from smartfeeds.client.errors import (
    AnswerError,
    FollowError,
    NodeMissingError,
    PositionRefusedError,
    RefusedError,
    RequestError,
    RequestTimeoutError,
)
from smartfeeds.client.events import (
    PAGE_ITEMS,
    CaughtUp,
    Connected,
    Counters,
    CursorRefused,
    Disconnected,
    GapSuspected,
    Input,
    IntegrityDue,
    Later,
    Output,
    PageReceived,
    Pull,
    PullFailed,
    PushReceived,
    Start,
    Stop,
    StopReason,
    Subscribe,
    Subscribed,
)
from smartfeeds.client.position import FileStore, PositionStore, parse_position
from smartfeeds.client.state import REMEMBER, FollowState
from smartfeeds.client.transport import BACKOFF, ClientLink, FollowerLink, Slixmpp, link_over
from smartfeeds.client.trouble import NOT_YET, TOO_MUCH, TRY_AGAIN, told_of
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.text import counted

log = logging.getLogger("smartfeeds.client")

INTEGRITY_S = 300.0
INBOX = 500  # pushes that wait for the caller; what finds no room is pulled later


class Timer(Protocol):
    """What `call_later` gives back."""

    def cancel(self) -> None:
        """Lets the call not happen."""


class Timers(Protocol):
    """The part of an event loop that keeps the time."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Calls back after `delay` seconds."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a follower can show for having everything.

    `position` is the cursor of the newest item it has, `total` the number of items that the service named with it.
    `in_step` says that nothing is known to be missing; `checked_at` (Unix seconds) is when a pull last showed it.
    """

    node: str
    position: str
    total: int | None
    in_step: bool
    checked_at: float | None
    counters: Counters

    def __str__(self) -> str:
        items = "? items" if self.total is None else counted(self.total, "item")
        step = "in step" if self.in_step else "not in step"
        return f"{step} with {self.node} at {self.position or 'the start'}, {items}; {self.counters}"


@dataclass(frozen=True, slots=True)
class _TryAgain:
    """A request met trouble that passes."""

    request: Subscribe | Pull


class Follower:
    """An asynchronous iterator over the changes of a feed, for one `async for` at a time.

    `xmpp` is a slixmpp client or component that the caller connects, or a `FollowerLink`. `address` is an `xmpp:`
    address with a node. `smart=False` keeps a node without parameters as it is: the follower then sees a deletion only
    when it is pushed.

    Where it begins: at the position in `store` (a path or an object with `load` and `save`), else at `since` (a
    `Change.position` or a cursor), else with `mirror` at the beginning, else from now on. The position is saved when
    the next change is asked for: a change is taken as worked on then.

    `on_connection` is called with False when the session is lost, and with True when there is one again.

    `replay=False` ends with PositionRefusedError instead of reading again from the beginning when the service does not
    know the position any more. Raises FollowError, and AddressError from the constructor.

    `on_trouble` is called with the reason when a request met trouble that passes, before it is tried again.
    """

    def __init__(
        self,
        xmpp: Slixmpp | FollowerLink,
        address: str | FeedAddress,
        *,
        store: PositionStore | str | os.PathLike[str] | None = None,
        since: str | None = None,
        mirror: bool = False,
        smart: bool = True,
        subscribe_as: str | None = None,
        leave: bool = False,
        replay: bool = True,
        integrity_s: float = INTEGRITY_S,
        page_items: int = PAGE_ITEMS,
        remember: int = REMEMBER,
        on_caught_up: Callable[[Proof], None] | None = None,
        on_connection: Callable[[bool], None] | None = None,
        on_trouble: Callable[[Exception], None] | None = None,
        timers: Timers | None = None,
        spread: Callable[[], float] = random.random,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.address = parse_address(address, smart=smart) if isinstance(address, str) else address
        self._link = link_over(xmpp, subscribe_as=subscribe_as)
        self._store = FileStore(store) if isinstance(store, str | os.PathLike) else store
        self._leave = leave
        self._integrity_s = integrity_s
        self._on_caught_up = on_caught_up
        self._on_connection = on_connection
        self._on_trouble = on_trouble
        self._timers = timers
        self._spread = spread
        self._wall_clock = wall_clock
        text = self._store.load() if self._store is not None else None
        self._saved = text
        begin = Start.BEGINNING if mirror else Start.NOW
        text = since if text is None else text
        start = begin if text is None else parse_position(text)
        self._state = FollowState(self.address.node, start, page_items=page_items, remember=remember, replay=replay)
        self._inbox: deque[Input | _TryAgain | Exception] = deque()
        self._arrived = asyncio.Event()
        self._overrun = False
        self._ready: deque[Change] = deque()
        self._given: Change | None = None
        self._end: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._silence: Timer | None = None
        self._retry: Timer | None = None
        self._to_retry: Subscribe | Pull | None = None
        self._failures = 0
        self._pending = False
        self._up = False
        self._lost = False
        self._opened = False
        self._checked_at: float | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        if not self._opened:
            self._opened = True
            self._link.open(self)
        self.acknowledge()
        while not self._ready:
            if self._end is not None:
                raise self._end
            await self._arrived.wait()
            self._work()
        self._given = self._ready.popleft()
        return self._given

    async def several(self, limit: int) -> list[Change]:
        """The next change, and up to `limit` with those that are ready behind it; asking again acknowledges them."""
        found = [await anext(self)]
        while self._ready and len(found) < limit:
            found.append(self._ready.popleft())
        self._given = found[-1]
        return found

    @property
    def waiting(self) -> int:
        """How many changes are ready and were not handed over yet."""
        return len(self._ready)

    def check(self) -> None:
        """Asks the service soon whether there is more, and does not wait any longer where it failed to answer."""
        if self._retry is None or self._to_retry is None:
            self._put(GapSuspected())
            return
        self._retry.cancel()
        self._retry = None
        self._put(_TryAgain(self._to_retry))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def acknowledge(self) -> None:
        """Says that the change handed over last is worked on, and saves its position. Raises what the store raises."""
        if self._given is not None:
            given, self._given = self._given, None
            self._save(given.position)
        self._save_reached()

    @property
    def position(self) -> str | None:
        """Where the caller is: behind the change handed over last. None before the service has answered."""
        if self._given is not None:
            return self._given.position
        if self._ready or self._state.position is None:
            return self._saved
        return str(self._state.position)

    def proof(self) -> Proof:
        """What is known of being in step, now."""
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
        """Stops, and unsubscribes where `leave` asks for it. The change handed over last stays unacknowledged."""
        self._cancel()
        self._end = self._end or FollowError("the follower was closed")
        if self._leave and self._up:
            await self._unsubscribe()
        if self._opened:
            await self._link.close()

    async def _unsubscribe(self) -> None:
        request = stanzas.unsubscribe(self.address.node, self._link.subscriber)
        try:
            await self._link.ask("set", self.address.service, request)
        except (RequestError, RequestTimeoutError) as error:
            log.warning("could not unsubscribe from %s: %s", self.address, error)

    # What the link says.

    def on_up(self) -> None:
        """A session has begun."""
        self._up = True
        self._failures = 0
        self._tell_connection(lost=False)
        self._put(Connected())

    def on_down(self) -> None:
        """The session has ended."""
        if self._up:
            self._tell_connection(lost=True)
        self._up = False
        self._cancel()
        self._put(Disconnected())

    def _tell_connection(self, *, lost: bool) -> None:
        """Each outage is told once, however many tries it takes, and so is its end."""
        if lost != self._lost:
            self._lost = lost
            if self._on_connection is not None:
                self._on_connection(not lost)

    def on_failure(self, error: Exception) -> None:
        """There will be no session."""
        self._put(error)

    def on_message(self, message: Element) -> None:
        """Takes the notifications of this node, from its service only."""
        sender = parse_jid(message.get("from", ""))
        if sender is None or str(sender) != self.address.service:
            return
        event = stanzas.read_message(message, self.address.node)
        if isinstance(event, PushReceived) and len(self._inbox) >= INBOX:
            self._overrun = True
        elif event is not None:
            self._put(event)

    def _put(self, event: Input | _TryAgain | Exception) -> None:
        self._inbox.append(event)
        self._arrived.set()

    # What is done about it.

    def _work(self) -> None:
        """Takes everything that has arrived."""
        self._arrived.clear()
        while self._inbox:
            event = self._inbox.popleft()
            if isinstance(event, Exception):
                self._end = event
            elif isinstance(event, _TryAgain):
                self._ask(event.request)
            else:
                self._feed(event)
        if self._overrun:
            self._overrun = False
            self._feed(GapSuspected())
        self._save_reached()

    def _feed(self, event: Input) -> None:
        if isinstance(event, PushReceived):
            self._await_silence()
        outputs = self._state.receive(event)
        if isinstance(event, Subscribed | PageReceived) and not any(isinstance(output, Later) for output in outputs):
            self._failures = 0
        for output in outputs:
            self._do(output)

    def _do(self, output: Output) -> None:
        if isinstance(output, Change):
            self._ready.append(output)
        elif isinstance(output, Subscribe | Pull):
            self._ask(output)
        elif isinstance(output, Later):
            self._try_again(output.request, told_of(output))
        elif isinstance(output, Stop):
            self._end = _STOPPED[output.reason](f"{self.address}: {output.reason.value}")
            self._cancel()
        elif isinstance(output, CaughtUp):
            self._checked_at = self._wall_clock()
            self._await_silence()
            if self._on_caught_up is not None:
                self._on_caught_up(self.proof())

    def _save(self, position: str) -> None:
        if self._store is not None and position != self._saved:
            self._store.save(position)
        self._saved = position

    def _save_reached(self) -> None:
        """A position may be reached without a change: at the start, and where former content came back."""
        at = self._state.position
        if not self._ready and at is not None and (at.cursor or self._checked_at is not None):
            self._save(str(at))

    def _call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        timers: Timers = self._timers if self._timers is not None else asyncio.get_running_loop()
        return timers.call_later(delay_s, callback)

    def _await_silence(self) -> None:
        """A quarter of the period is spread, so that many followers do not pull at once."""
        if self._silence is not None:
            self._silence.cancel()
        delay_s = self._integrity_s * (1 - self._spread() / 4)
        self._silence = self._call_later(delay_s, lambda: self._put(IntegrityDue()))

    def _ask(self, request: Subscribe | Pull) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._up:
            self._task = asyncio.get_running_loop().create_task(self._perform(request))

    async def _perform(self, request: Subscribe | Pull) -> None:
        try:
            if isinstance(request, Subscribe):
                wanted = stanzas.subscribe(self.address.node, self._link.subscriber)
                reply = await self._link.ask("set", self.address.service, wanted)
                self._pending = stanzas.is_pending(reply)
                event: Input = Subscribed(request.request_no)
            else:
                reply = await self._link.ask("get", self.address.service, stanzas.pull(self.address.node, request))
                event = stanzas.read_page(reply, request.request_no, self.address.node)
        except (RequestTimeoutError, AnswerError) as error:
            if isinstance(request, Subscribe):
                self._try_again(request, error)
            else:
                log.info("%s: %s", self.address, error)
                self._put(PullFailed(request.request_no, str(error), answered=isinstance(error, AnswerError)))
        except RequestError as error:
            self._refused(request, error)
        else:
            self._put(event)

    def _refused(self, request: Subscribe | Pull, error: RequestError) -> None:
        if error.kind == "wait" or error.condition in TRY_AGAIN or (self._pending and error.condition in NOT_YET):
            self._try_again(request, error)
        elif isinstance(request, Pull) and request.max_items > 1 and error.condition in TOO_MUCH:
            self._put(PullFailed(request.request_no, str(error), answered=True))
        elif error.condition != "item-not-found":
            self._put(RefusedError(error.condition, f"{self.address}: {error}"))
        elif isinstance(request, Pull) and request.after:
            log.warning("%s does not know our position any more", self.address)
            self._put(CursorRefused(request.request_no))
        else:
            self._put(NodeMissingError(f"{self.address}: there is no such node ({error})"))

    def _try_again(self, request: Subscribe | Pull, error: Exception) -> None:
        self._failures += 1
        delay_s = BACKOFF.pause_s(self._failures, self._spread())
        log.warning("%s: %s; next try in %.1f s", self.address, error, delay_s)
        if self._on_trouble is not None:
            self._on_trouble(error)
        self._to_retry = request
        self._retry = self._call_later(delay_s, lambda: self._put(_TryAgain(request)))

    def _cancel(self) -> None:
        """Nothing that was asked or planned on this session is waited for any more."""
        for waiting in (self._task, self._silence, self._retry):
            if waiting is not None:
                waiting.cancel()
        self._task = self._silence = self._retry = None


_STOPPED: dict[StopReason, type[FollowError]] = {
    StopReason.NODE_GONE: NodeMissingError,
    StopReason.POSITION_REFUSED: PositionRefusedError,
}


def follow(
    address: str,
    *,
    jid: str,
    password: str,
    store: PositionStore | str | os.PathLike[str] | None = None,
    since: str | None = None,
    mirror: bool = False,
    server: tuple[str, int] | None = None,
    plaintext: bool = False,
    ca_certs: Path | None = None,
    smart: bool = True,
    leave: bool = False,
    replay: bool = True,
    integrity_s: float = INTEGRITY_S,
    page_items: int = PAGE_ITEMS,
    remember: int = REMEMBER,
    on_caught_up: Callable[[Proof], None] | None = None,
    on_connection: Callable[[bool], None] | None = None,
) -> Follower:
    """Follows a feed with a connection of its own, which is kept up; the other arguments are those of `Follower`.

    With a resource in `jid` that full address is subscribed, else the bare one. `server` is the host and port to
    connect to, such as `("127.0.0.1", 5222)`; without it, the DNS records of the account's domain name them.
    `plaintext=True` allows a connection without TLS: for a server on the same machine only. `ca_certs` is a file of
    certificates to trust instead of the system's. Close it with `async with` or `aclose`.

    While the server cannot be reached, the logger `smartfeeds.client` gets a warning with server and cause, and the
    follower tries again. Raises LoginError when the account or its password is wrong or the server offers no TLS,
    CertificateError when its certificate is not valid; both are FollowErrors.
    """
    link = ClientLink(jid, password, server=server, plaintext=plaintext, ca_certs=ca_certs)
    return Follower(
        link,
        address,
        store=store,
        since=since,
        mirror=mirror,
        smart=smart,
        leave=leave,
        replay=replay,
        integrity_s=integrity_s,
        page_items=page_items,
        remember=remember,
        on_caught_up=on_caught_up,
        on_connection=on_connection,
    )

"""Wake-up: calls every listener when nodes change, at once for changes by this process. Entries that answer others are
passed on by the process that published them, and by no other one.

Changes by other processes are found by reading the store every `LOOK_S` seconds. So no correctness depends on a
wake-up: a lost one only delays a change by this time.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from typing import Protocol

import structlog

from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.service.context import NewReply
from smartfeeds.service.feed_pages import version_of
from smartfeeds.service.feeds import FeedService
from smartfeeds.telemetry import UNANNOUNCED_CHANGES

RETRY_S = 1.0  # the pause after a failure of the store
LOOK_S = 5.0  # the longest delay of a change that another process has written

_log = structlog.get_logger()


class ChangeListener(Protocol):
    """A part of the service that follows changes."""

    def wake(self, node_nos: Collection[int]) -> None:
        """Handles changes of these nodes."""

    async def look(self) -> None:
        """Reads from the store what other processes have changed. Raises StoreError."""


class ChangeNotifier:
    """Calls the listeners in the order in which they were added."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._listeners: tuple[ChangeListener, ...] = ()  # replaced as a whole: a look goes on while others come and go
        self._forwards: list[Callable[[Collection[int]], None]] = []
        self._reply_listeners: list[Callable[[NewReply], None]] = []
        self._sleep = sleep

    def listen(self, listener: ChangeListener) -> None:
        """Adds a listener."""
        self._listeners = (*self._listeners, listener)

    def forget(self, listener: ChangeListener) -> None:
        """Removes a listener."""
        self._listeners = tuple(each for each in self._listeners if each is not listener)

    def forward(self, function: Callable[[Collection[int]], None]) -> None:
        """Adds a function that passes the changes by this process on to other processes."""
        self._forwards.append(function)

    def announce(self, node_nos: Collection[int]) -> None:
        """Wakes every listener: this process has changed these nodes."""
        self.receive(node_nos)
        for function in self._forwards:
            function(node_nos)

    def receive(self, node_nos: Collection[int]) -> None:
        """Wakes every listener: another process has changed these nodes."""
        for listener in self._listeners:
            listener.wake(node_nos)

    def listen_to_replies(self, function: Callable[[NewReply], None]) -> None:
        """Adds a function that is called with each entry that this process publishes as an answer."""
        self._reply_listeners.append(function)

    def announce_reply(self, reply: NewReply) -> None:
        """Calls every listener of replies."""
        for function in self._reply_listeners:
            function(reply)

    async def look(self) -> None:
        """Calls `look` of every listener. Failures are logged."""
        for listener in self._listeners:
            with failures_logged():
                await listener.look()

    async def run(self) -> None:
        """Calls `look` of every listener every `LOOK_S` seconds, for ever. Failures are logged."""
        while True:
            await self._sleep(LOOK_S)
            await self.look()


class Waiters(Protocol):
    """Readers such as held pulls and event streams, which wait for the next change of a node."""

    @property
    def node_nos(self) -> Collection[int]:
        """The nodes that have readers waiting."""

    def wake(self, node_nos: Collection[int]) -> None:
        """Handles changes of these nodes."""


class WatchedNodes:
    """The listener for readers without a mark in the store: it compares versions of the nodes that they wait on."""

    def __init__(self, service: FeedService, waiters: Waiters) -> None:
        self._service = service
        self._waiters = waiters
        self._versions: dict[int, str] = {}
        self._announced: set[int] = set()  # since the last look

    def wake(self, node_nos: Collection[int]) -> None:
        """Handles changes of these nodes."""
        self._announced.update(self._versions.keys() & node_nos)
        self._waiters.wake(node_nos)

    async def look(self) -> None:
        """Wakes the waiters of nodes whose version differs from that of the look before. Raises StoreError.

        The first look at a node wakes its waiters too, because it may have changed since they read it.
        """
        node_nos = self._waiters.node_nos
        if not node_nos:
            self._versions, self._announced = {}, set()
            return
        nodes = await self._service.read(lambda tx, _context: tx.nodes_by_no(node_nos))
        versions = {no: version_of(nodes[no]) if no in nodes else "" for no in node_nos}
        former, self._versions = self._versions, versions
        announced, self._announced = self._announced, set()
        changed = [no for no, version in versions.items() if former.get(no) != version]
        UNANNOUNCED_CHANGES.inc(sum(no in former and no not in announced for no in changed))
        self._waiters.wake(changed)


@contextlib.contextmanager
def failures_logged() -> Iterator[None]:
    """Logs an exception of work that is repeated, so that the loop around it goes on.

    Raises NewerSchemaError: no repetition helps.
    """
    try:
        yield
    except NewerSchemaError:
        raise
    except StoreError as error:
        _log.error("store_failed", reason=str(error))
    except Exception:  # noqa: BLE001 - a fault in one round must not end the work for good
        _log.exception("background_work_failed")


async def log_failures_of(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Does work whose failure must not end what comes after it; an exception is logged."""
    with failures_logged():
        await work()


async def repeat_until_stored(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Repeats work until the store allows it, because nothing else would do it soon."""
    while True:
        try:
            return await work()
        except StoreError as error:
            _log.error("store_failed", reason=str(error))
            await asyncio.sleep(RETRY_S)

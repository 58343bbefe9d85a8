"""Wake-up: tells every listener which nodes have changed, at once if this process has changed them.

Changes by other processes are found by looking at the store again and again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Protocol

import structlog

from smartfeeds.core.model import Node
from smartfeeds.errors import StoreError
from smartfeeds.service.documents import version_of
from smartfeeds.service.feeds import FeedService

LOOK_S = 5.0  # how often the store is looked at

_log = structlog.get_logger()


class ChangeListener(Protocol):
    """Somebody who follows changes."""

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""

    async def look(self) -> None:
        """Finds in the store what other processes have changed. Raises StoreError."""


class ChangeNotifier:
    """Passes changes on to the listeners, in the order in which they were added."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._listeners: list[ChangeListener] = []
        self._sleep = sleep

    def listen(self, listener: ChangeListener) -> None:
        """Adds a listener."""
        self._listeners.append(listener)

    def announce(self, node_nos: Collection[int]) -> None:
        """These nodes have changed here."""
        for listener in self._listeners:
            listener.wake(node_nos)

    async def run(self) -> None:
        """Lets the listeners look at the store for ever; a look that fails is logged, and the next one comes."""
        while True:
            await self._sleep(LOOK_S)
            for listener in self._listeners:
                with failures_logged():
                    await listener.look()


class Waiters(Protocol):
    """Those who wait for the next change of a node with a position of their own."""

    @property
    def node_nos(self) -> Collection[int]:
        """The nodes that somebody waits on."""

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""


class WatchedNodes:
    """A listener for waiters, who have no mark in the store: it compares the versions of the nodes they wait on."""

    def __init__(self, service: FeedService, waiters: Waiters) -> None:
        self._service = service
        self._waiters = waiters
        self._versions: dict[int, str] = {}

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""
        self._waiters.wake(node_nos)

    async def look(self) -> None:
        """Wakes the waiters of nodes whose version differs from that of the look before. Raises StoreError.

        A node that was not looked at before may have changed since its waiters read it, so they are woken too.
        """
        node_nos = self._waiters.node_nos
        if not node_nos:
            self._versions = {}
            return
        versions = await self._service.read(lambda tx, _context: {no: _version(tx.node_by_no(no)) for no in node_nos})
        former, self._versions = self._versions, versions
        self.wake([no for no, version in versions.items() if former.get(no) != version])


def _version(node: Node | None) -> str:
    return "" if node is None else version_of(node)


@contextlib.contextmanager
def failures_logged() -> Iterator[None]:
    """Work that is done again and again goes on, whatever failed this time."""
    try:
        yield
    except StoreError as error:
        _log.error("store_failed", reason=str(error))
    except Exception:  # noqa: BLE001
        _log.exception("background_work_failed")

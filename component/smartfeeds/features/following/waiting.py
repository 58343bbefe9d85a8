"""The held requests of *My feeds*: each waits until a feed that its reader follows changes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager

from smartfeeds.delivery.changes import ChangeNotifier, WatchedNodes
from smartfeeds.features.following.entries import NewestKey
from smartfeeds.service.feeds import FeedService


class NewsWaiters:
    """The readers who wait for newer entries of what they follow, each for `wait_s` at most.

    A reader has no mark here: the script of the page sends the newest key that the page has.
    """

    def __init__(self, service: FeedService, notifier: ChangeNotifier, wait_s: float) -> None:
        self._service = service
        self._notifier = notifier
        self.wait_s = wait_s
        self._readers: set[asyncio.Event] = set()  # each is set by a change
        self._by_node: dict[int, set[asyncio.Event]] = {}
        self._listener = WatchedNodes(service, self)
        self._changes = 0
        self._stopped = False

    @property
    def held(self) -> int:
        """The number of readers."""
        return len(self._readers)

    @property
    def node_nos(self) -> Collection[int]:
        """The nodes that have readers waiting."""
        return list(self._by_node)

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""
        self._changes += 1
        for node_no in node_nos:
            for changed in self._by_node.get(node_no, ()):
                changed.set()

    async def newest(self, read: Callable[[], Awaitable[NewestKey]], known_us: int) -> NewestKey:
        """Returns what `read` returns, as soon as its key is above `known_us`, or when the time is over.

        The first read decides on which nodes the reader waits. Raises ConnectionResetError after `stop`.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.wait_s
        with self._reader() as changed:
            changes = self._changes
            newest = await read()
            with self._waiting_on(newest.node_nos, changed):
                if changes != self._changes:  # a change came between the read and this wait
                    changed.set()
                while newest.modified_us <= known_us and loop.time() < end_s:
                    try:
                        async with asyncio.timeout_at(end_s):
                            await changed.wait()
                    except TimeoutError:
                        break
                    if self._stopped:
                        raise ConnectionResetError("the service ends")
                    changed.clear()  # before the read: a change that comes meanwhile sets it again
                    newest = await read()
            return newest

    async def stop(self) -> None:
        """Ends all waits with ConnectionResetError."""
        self._stopped = True
        for changed in self._readers:
            changed.set()

    @contextmanager
    def _reader(self) -> Iterator[asyncio.Event]:
        """Yields the event of a reader. Without readers a publish costs nothing here."""
        changed = asyncio.Event()
        if self._stopped:
            changed.set()
        if not self._readers:
            # A new one, because the versions that another one knows are old.
            self._listener = WatchedNodes(self._service, self)
            self._notifier.listen(self._listener)
        self._readers.add(changed)
        try:
            yield changed
        finally:
            self._readers.remove(changed)
            if not self._readers:
                self._notifier.forget(self._listener)

    @contextmanager
    def _waiting_on(self, node_nos: Collection[int], changed: asyncio.Event) -> Iterator[None]:
        """Lets changes of these nodes set the event."""
        for node_no in node_nos:
            self._by_node.setdefault(node_no, set()).add(changed)
        try:
            yield
        finally:
            for node_no in node_nos:
                readers = self._by_node[node_no]
                readers.remove(changed)
                if not readers:
                    del self._by_node[node_no]

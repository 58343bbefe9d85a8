"""The order of the requests of one sender: they take effect in the order in which the sender sent them.

RFC 6120 section 10.1 requires it for each pair of entities. Many clients rely on it: they do not wait for the response
to a publish before they delete the item or retrieve the node. So a request starts when the requests before it have
ended, with two exceptions. Reads run together, because they change nothing. Writes run together, because the store runs
the writes of one user in order (`store.work_queue`). Pipelined publishes therefore share a commit.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum


class StoreAccess(Enum):
    """The access of a request to the store."""

    READ = "read"
    """The request only reads. It runs together with other reads of its sender."""
    WRITE = "write"
    """The request is one write. It runs together with other writes of its sender, which the store runs in order."""
    MIXED = "mixed"
    """The request consists of several reads and writes, so it runs alone."""


class _Lane:
    """The requests of one sender: the number that run, all of one kind of access, and the requests that wait.

    `due` are those that run, but are started in the next iteration of the event loop.
    """

    __slots__ = ("access", "due", "running", "waiting")

    def __init__(self, access: StoreAccess) -> None:
        self.access = access
        self.running = 1
        self.due = 0
        self.waiting: deque[tuple[StoreAccess, Callable[[], None]]] = deque()


class RequestOrder:
    """The requests in progress, by the full JIDs of their senders. Devices of one user do not wait for each other."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}

    def enter(self, sender: str, access: StoreAccess, start: Callable[[], None]) -> None:
        """Calls `start` when a request may start, now if it may now. The caller calls `leave` when it has ended."""
        lane = self._lanes.get(sender)
        if lane is None:
            self._lanes[sender] = _Lane(access)
        elif lane.access is access and access is not StoreAccess.MIXED and not lane.waiting:
            lane.running += 1
            if lane.due:
                self._start_soon(lane, start)  # not before those that have waited
                return
        else:
            lane.waiting.append((access, start))
            return
        start()

    def is_idle(self, sender: str) -> bool:
        """Returns whether no request of the sender is in progress."""
        return sender not in self._lanes

    def leave(self, sender: str) -> None:
        """Removes a request that has ended, and starts the requests that waited for it."""
        lane = self._lanes[sender]
        lane.running -= 1
        while lane.waiting and (not lane.running or lane.waiting[0][0] is lane.access is not StoreAccess.MIXED):
            lane.access, start = lane.waiting.popleft()
            lane.running += 1
            # Not at once: a request that ends while it starts would call this method, one level deeper for each.
            self._start_soon(lane, start)
        if not lane.running:
            del self._lanes[sender]

    def _start_soon(self, lane: _Lane, start: Callable[[], None]) -> None:
        lane.due += 1
        asyncio.get_running_loop().call_soon(self._start, lane, start)

    def _start(self, lane: _Lane, start: Callable[[], None]) -> None:
        lane.due -= 1
        start()

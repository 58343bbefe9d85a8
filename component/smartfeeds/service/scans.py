"""Runs the scans that filtered reads use while the filter index of a node is made (`store.scan`).

The readers of a view share one scan. Few scans run at once, because they delay the index that makes them needless. All
of them have a bound in bytes.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from smartfeeds.core.model import IndexState
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import Filters
from smartfeeds.service.steps import IndexFirst
from smartfeeds.store.base import ReadTx, Scan, Store

T = TypeVar("T")

SCAN_STEP = 200  # items that one read judges for a scan: some 5 ms
# Scans that are not complete. More of them would take the processor from the index, which serves all views.
RUNNING_SCANS = 2
BUSY_PAUSE_S = 0.005  # until the step of another reader has ended
# Scans are kept while the index of their node is made, for clients that read page after page.
KEPT_SCAN_S = 30.0
# Of all scans: one of 80,000 items of which none matches, or of 48,000 that all match. A scan that would exceed it is
# given up.
SCANS_BYTES = 8 * 1024 * 1024

Key = tuple[int, Filters]


class _Rest(Enum):
    """The action of a reader after a step that has not returned its result."""

    SCAN = auto()
    PAUSE = auto()  # another reader does a step
    BEGIN_INDEX = auto()
    WAIT_FOR_INDEX = auto()
    DROP = auto()  # the same, and nobody can use the scan


class _SharedScan:
    """A scan and its readers.

    A step has the `lock` only while it runs in a connection. If it had the lock while it waits for the turn of its
    reader, the other readers would wait, too, perhaps for a long search of that reader.
    """

    __slots__ = ("complete", "lock", "readers", "scan", "step_bytes", "timer")

    def __init__(self, scan: Scan) -> None:
        self.scan: Scan | None = scan  # None if it was given up, so that its readers wait for the index
        self.lock = threading.Lock()
        self.readers = 0
        self.complete = False
        self.step_bytes = 0  # the size of the scan after the last step
        self.timer: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        """Whether the scan has items to judge."""
        return self.scan is not None and not self.complete

    @property
    def size_bytes(self) -> int:
        """The memory of the scan. A step may still run after the scan was given up."""
        return 0 if self.scan is None else self.step_bytes

    def give_up(self) -> None:
        """Frees the memory of the scan."""
        self.scan = None


class Scans:
    """The scans of a service. `begin_index` makes the index of a node follow its items."""

    def __init__(self, store: Store, begin_index: Callable[[int, str], Awaitable[object]]) -> None:
        self._store = store
        self._begin_index = begin_index
        self._scans: dict[Key, _SharedScan] = {}

    async def read(
        self, first: IndexFirst, work: Callable[[ReadTx], T], turn: str, touch: Touch | None
    ) -> T | IndexFirst:
        """Returns the result of a work in a transaction in which the scan for its view is complete. Returns `first` if
        the work must wait for the index instead.

        The readers of a view do the steps of its scan in turn, and each pays for its own. So the scan goes on if one of
        them is cancelled.
        """
        if first.view is None:
            return first
        key = first.node_no, first.view.filters
        shared = self._scans.get(key)
        if shared is None:
            if sum(scan.running for scan in self._scans.values()) >= RUNNING_SCANS:
                return first
            shared = self._scans[key] = _SharedScan(self._store.new_scan(first.node_no, first.view))
        self._enter(shared)
        step = partial(_scanned, shared, work)
        try:
            while True:
                result = await self._store.read(step, turn=turn, touch=touch)
                if not self._have_room():
                    shared.give_up()
                if result is _Rest.BEGIN_INDEX:
                    await self._begin_index(first.node_no, turn)
                elif result is _Rest.PAUSE:
                    await asyncio.sleep(BUSY_PAUSE_S)
                elif result is _Rest.WAIT_FOR_INDEX:
                    return first
                elif result is _Rest.DROP:
                    self._drop(key, shared)
                    return first
                elif not isinstance(result, _Rest):
                    return result
        finally:
            self._leave(key, shared)

    def _have_room(self) -> bool:
        """Drops scans that nobody uses, the oldest first, until all of them are within their bound. Returns whether
        they are.
        """
        size_bytes = sum(scan.size_bytes for scan in self._scans.values())
        for key, shared in list(self._scans.items()):
            if size_bytes <= SCANS_BYTES:
                break
            if not shared.readers:
                size_bytes -= shared.size_bytes
                self._drop(key, shared)
        return size_bytes <= SCANS_BYTES

    @staticmethod
    def _enter(shared: _SharedScan) -> None:
        shared.readers += 1
        if shared.timer is not None:
            shared.timer.cancel()
            shared.timer = None

    def _leave(self, key: Key, shared: _SharedScan) -> None:
        shared.readers -= 1
        if shared.readers or self._scans.get(key) is not shared:
            return
        if shared.running:
            self._drop(key, shared)  # all its readers were cancelled
        else:
            shared.timer = asyncio.get_running_loop().call_later(KEPT_SCAN_S, self._drop, key, shared)

    def _drop(self, key: Key, shared: _SharedScan) -> None:
        shared.give_up()
        if self._scans.get(key) is shared:
            del self._scans[key]
        if shared.timer is not None:
            shared.timer.cancel()


def _scanned(shared: _SharedScan, work: Callable[[ReadTx], T], tx: ReadTx) -> T | _Rest:
    """Continues a scan, and does a work in the transaction in which the scan is complete."""
    # This runs in the thread of a connection, which serves other readers instead of waiting here.
    if not shared.lock.acquire(blocking=False):
        return _Rest.PAUSE
    try:
        scan = shared.scan
        if scan is None:
            return _Rest.WAIT_FOR_INDEX
        if not scan.judged and not tx.scan_is_shorter(scan.node_no):
            return _Rest.DROP
        if tx.index_state(scan.node_no) is IndexState.UNREAD:
            return _Rest.BEGIN_INDEX
        complete = tx.scan_on(scan, SCAN_STEP)
        if complete is None:
            return _Rest.DROP
        if complete:
            shared.complete = True
        try:
            return work(tx) if complete else _Rest.SCAN
        finally:
            shared.step_bytes = scan.size_bytes()
    finally:
        shared.lock.release()

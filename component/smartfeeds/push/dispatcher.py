"""Which feeds are to be sent now: gives turns to the feeds that changed, and writes the marks behind them.

Some feeds are sent side by side, the others wait for their turn; a feed has one task at most, so its order holds. While
the link is down nothing runs and nothing is queued: the marks stay, and everything goes on from them (design section 4;
SF-007, SF-041; xep-map 182).
"""

import asyncio
from collections.abc import Collection
from functools import partial

import structlog

from smartfeeds.core.consumers import PUSH
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.push.sender import Position, Sender
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

MARKS_FLUSH_S = 0.25  # after a crash at most this much is sent twice
SENDERS = 32  # feeds that are sent at the same time; the others wait for their turn
KEPT_POSITIONS = 10_000
RETRY_S = 1.0

_log = structlog.get_logger()


class Dispatcher:
    """Sends what changed. `wake` may be called from anywhere in the loop; `start` and `stop` once."""

    def __init__(self, service: FeedService, sender: Sender) -> None:
        self._service = service
        self._sender = sender
        self._positions: dict[int, Position] = {}
        self._awake: dict[int, None] = {}  # in the order of their turns
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._unsaved: set[int] = set()
        self._saver: asyncio.Task[None] | None = None
        self._online = False

    @property
    def busy(self) -> bool:
        """Whether anything is being sent."""
        return bool(self._tasks)

    async def online(self) -> None:
        """The link is up: sends go on from the marks, for every node that has something."""
        self._online = True
        self.wake(await self.behind())

    async def behind(self) -> list[int]:
        """The nodes that have something to send."""
        consumers = await self._service.read(lambda tx, _context: tx.behind())
        return [consumer.node_no for consumer in consumers if consumer.name == PUSH]

    async def offline(self) -> None:
        """The link is down: stops the senders where they are."""
        self._online = False
        self._awake.clear()
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def stop(self) -> None:
        """Ends everything and saves the marks."""
        await self.offline()
        if self._saver is not None:
            self._saver.cancel()
            await asyncio.gather(self._saver, return_exceptions=True)
        await self.save_marks()

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have something to send."""
        if not self._online:
            return
        self._awake.update(dict.fromkeys(node_nos))
        self._start()

    async def idle(self) -> None:
        """Returns when everything known has been sent."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def save_marks(self) -> None:
        """Writes the marks that moved."""
        unsaved, self._unsaved = self._unsaved, set()
        moved = [(no, order, mark) for no in unsaved for order, mark in self._position(no).marks.items()]
        if not moved:
            return
        try:
            await self._service.write(lambda tx, _context: _set_marks(tx, moved))
        except StoreError:
            self._unsaved |= unsaved
            raise

    def _start(self) -> None:
        """Gives turns to the nodes that wait for one, as far as there is room. A node has one turn at a time."""
        while len(self._tasks) < SENDERS:
            node_no = next((no for no in self._awake if no not in self._tasks), None)
            if node_no is None:
                return
            del self._awake[node_no]
            task = asyncio.get_running_loop().create_task(self._turn(node_no), name=f"push {node_no}")
            self._tasks[node_no] = task
            task.add_done_callback(partial(self._ended, node_no))

    async def _turn(self, node_no: int) -> None:
        """Sends what a node has; one batch only while other nodes wait."""
        more = True
        while more:
            self._awake.pop(node_no, None)
            try:
                more = await self._send_batch(node_no) or node_no in self._awake
            except LinkError:
                _log.info("push_interrupted", node_no=node_no)
                return
            except StoreError as error:
                _log.error("push_failed", node_no=node_no, reason=str(error))
                await asyncio.sleep(RETRY_S)
            if more and self._awake.keys() - {node_no}:
                self._awake[node_no] = None
                return

    async def _send_batch(self, node_no: int) -> bool:
        position = self._position(node_no)
        before = position.marks
        more = await self._sender.send_next(node_no, position)
        if position.marks != before:
            self._moved(node_no)
        return more

    def _ended(self, node_no: int, task: asyncio.Task[None]) -> None:
        self._tasks.pop(node_no, None)
        if not self._position(node_no).marks:
            del self._positions[node_no]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("push_failed", node_no=node_no, reason=repr(error))
        if self._online:
            self._start()

    def _position(self, node_no: int) -> Position:
        return self._positions.setdefault(node_no, Position())

    def _moved(self, node_no: int) -> None:
        self._unsaved.add(node_no)
        if self._saver is None or self._saver.done():
            self._saver = asyncio.get_running_loop().create_task(self._save_later(), name="push marks")

    async def _save_later(self) -> None:
        await asyncio.sleep(MARKS_FLUSH_S)
        try:
            await self.save_marks()
        except StoreError as error:
            _log.error("marks_not_saved", reason=str(error))
        if len(self._positions) > KEPT_POSITIONS:
            kept = self._unsaved | set(self._tasks)
            self._positions = {no: position for no, position in self._positions.items() if no in kept}


def _set_marks(tx: WriteTx, moved: list[tuple[int, Order, Mark]]) -> None:
    for node_no, order, mark in moved:
        if tx.node_by_no(node_no) is not None:
            tx.set_mark(node_no, order, PUSH, mark)

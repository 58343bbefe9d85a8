"""Which feeds are to be sent now: wakes one sender task a changed feed, and writes the marks behind them.

Senders of different feeds run side by side and take turns at the wire; a feed has one task at most, so its order
holds. While the link is down nothing runs and nothing is queued: the marks stay, and everything goes on from them.
"""

import asyncio
from collections.abc import Collection
from functools import partial

import structlog

from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.push.sender import Position, Sender
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

MARKS_FLUSH_S = 0.25  # after a crash at most this much is sent twice
SENDERS = 32  # feeds that are read from the store at the same time
KEPT_POSITIONS = 10_000
RETRY_S = 1.0

_log = structlog.get_logger()


class Dispatcher:
    """Sends what changed. `wake` may be called from anywhere in the loop; `start` and `stop` once."""

    def __init__(self, service: FeedService, sender: Sender) -> None:
        self._service = service
        self._sender = sender
        self._positions: dict[int, Position] = {}
        self._awake: set[int] = set()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._unsaved: set[int] = set()
        self._turns = asyncio.Semaphore(SENDERS)
        self._saver: asyncio.Task[None] | None = None
        self._online = False

    @property
    def busy(self) -> bool:
        """Whether anything is being sent."""
        return bool(self._tasks)

    async def online(self) -> None:
        """The link is up: sends go on from the marks, for every node that has something."""
        self._online = True
        self.wake(await self._service.read(lambda tx, _context: tx.unpushed()))

    async def offline(self) -> None:
        """The link is down: stops the senders where they are."""
        self._online = False
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
        for node_no in node_nos:
            self._awake.add(node_no)
            if node_no not in self._tasks:
                task = asyncio.get_running_loop().create_task(self._drain(node_no), name=f"push {node_no}")
                self._tasks[node_no] = task
                task.add_done_callback(partial(self._ended, node_no))

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

    async def _drain(self, node_no: int) -> None:
        while node_no in self._awake:
            self._awake.discard(node_no)
            try:
                more = True
                while more:
                    position = self._position(node_no)
                    before = position.marks
                    async with self._turns:
                        more = await self._sender.send_next(node_no, position)
                    if position.marks != before:
                        self._moved(node_no)
            except LinkError:
                _log.info("push_interrupted", node_no=node_no)
                return
            except StoreError as error:
                _log.error("push_failed", node_no=node_no, reason=str(error))
                await asyncio.sleep(RETRY_S)
                self._awake.add(node_no)

    def _ended(self, node_no: int, task: asyncio.Task[None]) -> None:
        self._tasks.pop(node_no, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("push_failed", node_no=node_no, reason=repr(error))
        if node_no in self._awake and self._online:
            self.wake((node_no,))

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
            tx.set_mark(node_no, order, mark)

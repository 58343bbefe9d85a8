"""The network between two servers, one way: what the one opens to the other goes through a wire that a test can break.

A cut wire closes what goes through it and refuses what is new. A lossy wire takes everything and delivers nothing,
and nobody is told: what was sent is lost for good, since the connection cannot go on.
"""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum, auto
from types import TracebackType

from smartfeeds.local.process import HOST, free_port
from support.listener import Listener
from support.relay import read_some
from support.waiting import waiting


class State(Enum):
    """The state of a wire."""

    WHOLE = auto()
    LOSSY = auto()
    CUT = auto()


class Wire:
    """From `port`, which stays the same, to `target_port`. Inside `async with` it is whole at first, outside it is cut.

    May be entered again in another event loop. `opened` counts connections, `lost_bytes` what it swallowed.
    """

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.state = State.CUT
        self.opened = 0
        self.lost_bytes = 0
        self._target_port = target_port
        self._listener: Listener | None = None
        self._open: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> "Wire":
        self._changed = asyncio.Condition()
        await self.heal()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    async def cut(self) -> None:
        """Breaks the wire. Returns once both servers know that their connections have ended."""
        self.state = State.CUT
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        for ends in self._open:
            for writer in ends:
                _finish(writer)
        await self.until(lambda: not self._open)

    def lose(self) -> None:
        """Lets everything that is sent from now on get lost, and nobody know."""
        assert self.state is State.WHOLE, self.state
        self.state = State.LOSSY

    async def heal(self) -> None:
        """Makes the wire whole. Connections of the time when it was lossy are ended first."""
        if self.state is not State.WHOLE:
            await self.cut()
            self._listener = Listener(self._serve, self.port)
            self.state = State.WHOLE

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so of this wire."""
        async with waiting(f"a change of the wire to port {self._target_port}"), self._changed:
            await self._changed.wait_for(condition)

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target_port)
        except OSError:
            writer.transport.abort()
            return
        ends = writer, far_writer
        self._open.add(ends)
        self.opened += 1
        await self._note()
        if self.state is State.CUT:
            for end in ends:
                _finish(end)
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            for end in ends:
                end.close()
            self._open.discard(ends)
            await self._note()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await read_some(reader):
            if self.state is State.LOSSY:
                self.lost_bytes += len(data)
                await self._note()
            elif self.state is State.WHOLE:
                await _write(writer, data)
        if self.state is not State.LOSSY:
            _finish(writer)


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await writer.drain()


def _finish(writer: asyncio.StreamWriter) -> None:
    """Says that nothing more will come."""
    if not writer.is_closing():
        with contextlib.suppress(OSError):  # the other side is gone already
            writer.write_eof()

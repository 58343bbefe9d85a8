"""A TCP relay that a campaign cuts and heals: a network between two processes [CAM-007]."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from support.listener import HOST, Listener


class Cable:
    """Listens on `port` and forwards to `target_port`. An async context manager.

    `cut` resets the connections and refuses new ones. `hold` stops the bytes and keeps the connections, as a partition
    does: nobody is told.
    """

    def __init__(self, target_port: int = 0) -> None:
        self.target_port = target_port
        self.port = 0
        self._listener: Listener | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.target_ports: set[int] = set()  # of the ends of the connections that the target sees
        self.on_end: Callable[[], object] = lambda: None  # is called when a connection has ended

    async def __aenter__(self) -> "Cable":
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.set()
        await self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    @property
    def url(self) -> str:
        """The address of an HTTP service behind the cable."""
        return f"http://{HOST}:{self.port}"

    @property
    def is_cut(self) -> bool:
        """Whether new connections are refused."""
        return self._listener is None

    async def cut(self) -> None:
        """Resets all connections and refuses new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def heal(self) -> None:
        """Accepts connections again on the same port, and lets bytes pass."""
        self._open.set()
        if self._listener is None:
            self._listener = Listener(self._serve, self.port)

    def hold(self) -> None:
        """Lets no more bytes pass."""
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        self._writers.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection(HOST, self.target_port)
        except OSError:
            writer.transport.abort()
        else:
            self._writers.add(up_writer)
            target_port: int = up_writer.get_extra_info("sockname")[1]
            self.target_ports.add(target_port)
            if self.is_cut:  # while the connection was made
                await self.cut()
            await asyncio.gather(self._forward(reader, up_writer), self._forward(up_reader, writer))
            self._writers.discard(up_writer)
            self.target_ports.discard(target_port)
        self._writers.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        self.on_end()
        await self._open.wait()  # the end of a connection does not pass a partition
        writer.close()

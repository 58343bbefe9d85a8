"""A TCP server for streams that may close while clients connect.

`asyncio.Server.close` loses a connection that was accepted in the same turn of the event loop: Python 3.11 raises an
AssertionError inside the new transport, whose destructor then warns, and a warning fails a test.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from smartfeeds.local.process import HOST

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """Listens on `port` of the loopback interface, and calls `serve` with each connection until `close`."""

    def __init__(self, serve: Serve, port: int = 0) -> None:
        self._serve = serve
        self._socket = socket.create_server((HOST, port))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._is_open = True
        self._openings: set[asyncio.Task[None]] = set()
        self.served: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Refuses new connections, and resets those that are not served yet. The others stay."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
        if self._openings:
            await asyncio.wait(self._openings)

    def _accept(self) -> None:
        with suppress(OSError):  # the client has gone again
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            _keep(self._openings, self._open(connection))

    async def _open(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        if self._is_open:
            _keep(self.served, self._served(reader, writer))
        else:
            writer.transport.abort()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except BaseException:
            writer.close()
            raise


def _keep(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Starts a task. The event loop itself has weak references to tasks only."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)

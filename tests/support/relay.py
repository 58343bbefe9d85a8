"""A relay between the component and its server that sees every stanza, and loses those that a test wants lost.

It stands for a network: what it drops was sent, and never arrives. Each connection of the component is a life.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType

from smartfeeds.local.process import HOST
from smartfeeds.xmpp.framer import Framer
from support.listener import Listener
from support.waiting import waiting

_LIMIT_BYTES = 10_000_000


def keep(_stanza: bytes) -> bool:
    """Loses nothing."""
    return False


class Relay:
    """Listens for the component on `port`; connects each life of it to the server. An async context manager.

    `lost` says of each stanza that the component sends whether it never arrives, while `losing`; it may keep what it
    sees. `life` counts the connections, and `speaking` is the connection of the stanza that `lost` sees.
    """

    def __init__(self, server_port: int, lost: Callable[[bytes], bool] = keep) -> None:
        self.lost = lost
        self.losing = True
        self.port = 0
        self.life = 0
        self.speaking = 0
        self.accepted = 0  # the last life whose handshake the server took
        self.ended = 0  # the last life that is over
        self.dropped = 0
        self._server_port = server_port
        self._changed = asyncio.Condition()
        self._listener: Listener | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "Relay":
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        await self._listener.close()
        self.cut()
        await self.until(lambda: self.ended == self.life)

    def cut(self) -> None:
        """Ends the life that is going on, as a broken network does."""
        for writer in self._writers:
            writer.transport.abort()

    async def ready(self) -> int:
        """Waits until the server has taken the component's handshake; the life."""
        await self.until(lambda: self.accepted == self.life > self.ended)
        return self.life

    async def over(self, life: int) -> None:
        """Waits until this connection is gone."""
        await self.until(lambda: self.ended >= life)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so of this relay."""
        async with waiting(f"a change of the relay at port {self.port}"), self._changed:
            await self._changed.wait_for(condition)

    async def _set(self, name: str, life: int) -> None:
        async with self._changed:
            # An old connection may end after the next one began.
            setattr(self, name, max(life, getattr(self, name)))
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        life = self.life + 1
        await self._set("life", life)
        try:
            up_reader, up_writer = await asyncio.open_connection(HOST, self._server_port)
        except OSError:
            writer.transport.abort()
            await self._set("ended", life)
            return
        self._writers = [writer, up_writer]
        ways = [
            asyncio.ensure_future(self._to_server(reader, up_writer, life)),
            asyncio.ensure_future(self._to_component(up_reader, writer, life)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        # What one side has said to its end reaches the other; then both are closed.
        for end in (writer, up_writer):
            end.close()
        await asyncio.wait(ways)
        await self._set("ended", life)

    async def _to_server(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, life: int) -> None:
        framer = Framer(_LIMIT_BYTES)
        begun = False
        while data := await read_some(reader):
            frames = [frame.data for frame in framer.feed(data)]
            out = [] if begun or not framer.header else [framer.header]
            begun = begun or bool(framer.header)
            self.speaking = life
            for frame in frames:
                if self.lost(frame) and self.losing:
                    self.dropped += 1
                else:
                    out.append(frame)
            if framer.ended:
                out.append(b"</stream:stream>")
            await _write(writer, b"".join(out))

    async def _to_component(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, life: int) -> None:
        head = b""
        while data := await read_some(reader):
            await _write(writer, data)
            if self.accepted < life:
                head += data
                if b"<handshake" in head:
                    await self._set("accepted", life)


async def read_some(reader: asyncio.StreamReader) -> bytes:
    """The next bytes; none where the connection has ended, however it did."""
    try:
        return await reader.read(65_536)
    except ConnectionError:
        return b""


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data and not writer.is_closing():
        writer.write(data)
        try:
            await writer.drain()
        except ConnectionError:
            writer.transport.abort()

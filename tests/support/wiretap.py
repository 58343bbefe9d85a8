"""A relay between the component and its server that remembers what each user has sent and received."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from types import TracebackType
from typing import Self

from lxml import etree

from smartfeeds.local.process import HOST
from smartfeeds.xmpp.framer import Framer
from support.listener import Listener
from support.relay import read_some

_LIMIT_BYTES = 10_000_000


class Wiretap:
    """Listens for the component on `port`. An async context manager."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self._server_port = server_port
        self._listener: Listener | None = None
        self._requests: defaultdict[str, list[bytes]] = defaultdict(list)
        self._responses: dict[tuple[str, str], bytes] = {}

    async def __aenter__(self) -> Self:
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The components have ended before, so their connections end, too."""
        assert self._listener is not None
        await self._listener.close()
        if self._listener.served:
            await asyncio.wait(self._listener.served)

    def mark(self, jid: str) -> int:
        """The number of requests of this full JID so far."""
        return len(self._requests[jid])

    def exchanges(self, jid: str, mark: int) -> list[tuple[str, str]]:
        """Requests of this full JID since a mark, with their responses."""
        pairs = []
        for data in self._requests[jid][mark:]:
            response = self._responses.get((jid, etree.fromstring(data).get("id", "")), b"")
            pairs.append((data.decode(), response.decode()))
        return pairs

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(HOST, self._server_port)
        ways = [
            asyncio.ensure_future(self._relay(reader, up_writer, self._remember_response)),
            asyncio.ensure_future(self._relay(up_reader, writer, self._remember_request)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, up_writer):
            end.close()
        await asyncio.wait(ways)
        for end in (writer, up_writer):
            with suppress(ConnectionError):
                await end.wait_closed()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remember: object) -> None:
        assert callable(remember)
        framer = Framer(_LIMIT_BYTES)
        while data := await read_some(reader):
            writer.write(data)
            for frame in framer.feed(data):
                if frame.data.startswith(b"<iq"):
                    remember(frame.data)

    def _remember_request(self, data: bytes) -> None:
        stanza = etree.fromstring(data)
        self._requests[stanza.get("from", "")].append(data)

    def _remember_response(self, data: bytes) -> None:
        stanza = etree.fromstring(data)
        self._responses[stanza.get("to", ""), stanza.get("id", "")] = data

"""HTTP by hand: what no client library sends, and what comes back of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as it came: the status line's numbers, the headers with names in lower case, the body."""

    version: str
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Raw:
    """A connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, data: bytes) -> None:
        """Writes, as far as the other end reads."""
        self.writer.write(data)

    async def hear(self, *, bodiless: bool = False) -> Heard:
        """The next answer. `bodiless`: its head is all of it."""
        head = await wait_for(self.reader.readuntil(b"\r\n\r\n"), "the head of an answer")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        version, status, _ = first.split(" ", 2)
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers, f"{name} stands there twice"
            headers[name.lower()] = value
        length = 0 if bodiless else int(headers.get("content-length", "0"))
        body = await wait_for(self.reader.readexactly(length), f"the {length} bytes of an answer")
        return Heard(version, int(status), headers, body)

    async def ended(self) -> bytes:
        """Returns the bytes that were unread when the other end closed the connection."""
        try:
            return await wait_for(self.reader.read(), "the end of the connection")
        except ConnectionError:
            return b""

    def close(self) -> None:
        """Ends it without a word."""
        self.writer.transport.abort()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Raw]:
    """A connection to this port on 127.0.0.1."""
    raw = Raw(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield raw
    finally:
        raw.close()


def request(
    target: str | bytes = "/feeds/notes/?timeout=0",
    *headers: str | bytes,
    method: str = "GET",
    version: str = "1.1",
    host: str | None = "feeds.example",
    body: bytes = b"",
) -> bytes:
    """A request as bytes; what is given as bytes is sent as it is."""
    lines = [f"{method} ".encode() + _bytes(target) + f" HTTP/{version}".encode()]
    lines += [] if host is None else [f"Host: {host}".encode()]
    lines += [_bytes(header) for header in headers]
    return b"\r\n".join([*lines, b"", body])


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()

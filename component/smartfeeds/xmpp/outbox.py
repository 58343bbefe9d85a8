"""What leaves on the component link: two lanes of bytes, water marks, and the epoch (design section 3, Fan-out).

Nothing is queued while offline: what must survive is in the store (xep-map 3, 9). Everything handed in is whole
stanzas, already escaped; the outbox never looks inside.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from smartfeeds.errors import LinkError

BATCH_BYTES = 65_536
HIGH_WATER_BYTES = 1_048_576
LOW_WATER_BYTES = 262_144
REPLY_LIMIT_BYTES = 8_388_608


class Writable(Protocol):
    """The part of `asyncio.Transport` that the outbox uses."""

    def write(self, data: bytes, /) -> None:
        """Takes bytes and sends what the socket takes."""

    def get_write_buffer_size(self) -> int:
        """Bytes that wait because the server does not read."""


class Outbox:
    """Writes replies at once and notifications at the pace of the server.

    Attributes for metrics, all since the start: `written_bytes`, `written_replies`, `written_notifications`
    (stanzas), `dropped_replies`, `paused_s`. `epoch` counts the connections; `online` says whether there is one.
    """

    __slots__ = (
        "_clock",
        "_flush_handle",
        "_paused_at",
        "_replies",
        "_replies_bytes",
        "_reply_limit_bytes",
        "_transport",
        "_turn",
        "_writable",
        "dropped_replies",
        "epoch",
        "paused_total_s",
        "written_bytes",
        "written_notifications",
        "written_replies",
    )

    def __init__(
        self, *, reply_limit_bytes: int = REPLY_LIMIT_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reply_limit_bytes = reply_limit_bytes
        self._clock = clock
        self._transport: Writable | None = None
        self._replies: list[bytes] = []
        self._replies_bytes = 0
        self._flush_handle: asyncio.Handle | None = None
        self._turn = asyncio.Lock()  # wakes its waiters in order: concurrent senders take turns
        self._writable = asyncio.Event()
        self._paused_at: float | None = None
        self.epoch = 0
        self.written_bytes = 0
        self.written_replies = 0
        self.written_notifications = 0
        self.dropped_replies = 0
        self.paused_total_s = 0.0

    @property
    def online(self) -> bool:
        """Whether stanzas may be sent."""
        return self._transport is not None

    @property
    def paused(self) -> bool:
        """Whether the server reads too slowly for more notifications."""
        return self._paused_at is not None

    @property
    def paused_s(self) -> float:
        """Seconds spent paused since the start, the present pause included."""
        return self.paused_total_s + (0.0 if self._paused_at is None else self._clock() - self._paused_at)

    def attach(self, transport: Writable) -> None:
        """The handshake is done: a new epoch begins."""
        self.detach()
        self._transport = transport
        self.epoch += 1
        self._writable.set()

    def detach(self) -> None:
        """The connection is gone. Waiting senders wake up and get LinkError; unsent replies are lost with it."""
        self.resume()
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        self.dropped_replies += len(self._replies)
        self._replies.clear()
        self._replies_bytes = 0
        self._transport = None
        self._writable.set()

    def pause(self) -> None:
        """The transport holds more than its high-water mark."""
        if self._paused_at is None and self._transport is not None:
            self._paused_at = self._clock()
            self._writable.clear()

    def resume(self) -> None:
        """The transport is below its low-water mark again."""
        if self._paused_at is not None:
            self.paused_total_s += self._clock() - self._paused_at
            self._paused_at = None
        self._writable.set()

    def reply(self, data: bytes) -> bool:
        """Sends one stanza as soon as this turn of the loop is over; never waits.

        False when it was dropped: there is no connection, or the server has not read for a long time.
        """
        if self._transport is None or self._waiting_bytes() + len(data) > self._reply_limit_bytes:
            self.dropped_replies += 1
            return False
        self._replies.append(data)
        self._replies_bytes += len(data)
        if self._flush_handle is None:
            self._flush_handle = asyncio.get_running_loop().call_soon(self.flush)
        return True

    def flush(self) -> None:
        """Writes the replies that wait, now."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if self._transport is None or not self._replies:
            return
        data = self._replies[0] if len(self._replies) == 1 else b"".join(self._replies)
        self.written_replies += len(self._replies)
        self.written_bytes += len(data)
        self._replies.clear()
        self._replies_bytes = 0
        self._transport.write(data)

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        """Sends whole stanzas in batches of 64 KiB, in turn with the other senders, and returns how many.

        Waits while the server does not keep up: what grows too old meanwhile is dropped by the caller, and a server
        that reads nothing at all does not answer pings either, which ends the link. The iterable is read
        batch by batch, so it may be a generator that makes its stanzas late. Raises LinkError when there is no
        connection, or when it is no longer the one that this call began on: the caller keeps its mark.
        """
        if self._transport is None:
            raise LinkError("the link to the XMPP server is down")
        epoch = self.epoch
        sent = 0
        for batch, count in _batches(stanzas):
            async with self._turn:
                await self._writable.wait()
                if self._transport is None or self.epoch != epoch:
                    raise LinkError("the link to the XMPP server is down")
                self.flush()
                self._transport.write(batch)
                sent += count
                self.written_notifications += count
                self.written_bytes += len(batch)
            await asyncio.sleep(0)
        return sent

    def _waiting_bytes(self) -> int:
        written = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return written + self._replies_bytes


def _batches(stanzas: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    parts: list[bytes] = []
    size_bytes = 0
    for stanza in stanzas:
        parts.append(stanza)
        size_bytes += len(stanza)
        if size_bytes >= BATCH_BYTES:
            yield b"".join(parts), len(parts)
            parts.clear()
            size_bytes = 0
    if parts:
        yield b"".join(parts), len(parts)

"""The outgoing side of the component connection: two lanes of bytes, water marks, and an epoch per connection.

Responses do not wait behind notifications (design section 3). Nothing is queued while offline, because everything that
must survive is in the store (xep-map 3, 9). Callers pass whole stanzas that are escaped already; the outbox does not
parse them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator

from smartfeeds.errors import LinkError

BATCH_BYTES = 65_536  # notifications in one write; between writes other tasks run
# The transport pauses notifications above the high-water mark and resumes them below the low-water mark, a quarter of
# it, as by default in asyncio.
HIGH_WATER_BYTES = 1_048_576
LOW_WATER_BYTES = 262_144
# Responses are dropped if more bytes than this wait: a server that sends requests and reads nothing must not fill the
# memory. It does not answer pings either, so the supervisor ends the link.
REPLY_LIMIT_BYTES = 8_388_608


class Outbox:
    """Writes responses at once and notifications at the pace of the server.

    Attributes for metrics, since the start: `written_bytes`, `written_replies`, `written_notifications` (stanzas),
    `dropped_replies`, `paused_s`. `epoch` is the number of the connection, `online` whether there is one.
    """

    def __init__(
        self, *, reply_limit_bytes: int = REPLY_LIMIT_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reply_limit_bytes = reply_limit_bytes
        self._clock = clock
        self._transport: asyncio.WriteTransport | None = None
        self._replies: list[bytes] = []
        self._replies_bytes = 0
        self._buffered_bytes = 0  # in the transport when the first of these responses came
        self._flush_handle: asyncio.Handle | None = None
        self._turn = asyncio.Lock()  # asyncio's lock is fair: it wakes waiters in order, so senders take turns
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
        """Whether stanzas can be sent."""
        return self._transport is not None

    @property
    def paused(self) -> bool:
        """Whether the server reads too slowly, so that notifications wait."""
        return self._paused_at is not None

    @property
    def paused_s(self) -> float:
        """Seconds spent paused since the start, including the current pause."""
        return self.paused_total_s + (0.0 if self._paused_at is None else self._clock() - self._paused_at)

    def attach(self, transport: asyncio.WriteTransport) -> None:
        """Starts a new epoch on a transport. The handshake is complete."""
        self.detach()
        self._transport = transport
        self.epoch += 1
        self._writable.set()

    def detach(self) -> None:
        """Ends the epoch. Waiting senders get LinkError; responses that were not written are lost."""
        self.resume()
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        self.dropped_replies += len(self._replies)
        self._replies.clear()
        self._replies_bytes = 0
        self._transport = None
        self._writable.set()  # wakes paused senders, which find no transport and raise

    def pause(self) -> None:
        """The transport's buffer is above the high-water mark."""
        if self._paused_at is None and self._transport is not None:
            self._paused_at = self._clock()
            self._writable.clear()

    def resume(self) -> None:
        """The transport's buffer is below the low-water mark."""
        if self._paused_at is not None:
            self.paused_total_s += self._clock() - self._paused_at
            self._paused_at = None
        self._writable.set()

    def reply(self, data: bytes) -> bool:
        """Sends one stanza at the end of this iteration of the event loop. Never waits.

        Returns False if the stanza was dropped: there is no connection, or the server has not read for a long time.
        """
        if self._transport is None:
            self.dropped_replies += 1
            return False
        if not self._replies:
            # Whatever else is written, `flush` comes before it. So this number stays until then.
            self._buffered_bytes = self._transport.get_write_buffer_size()
        size_bytes = self._replies_bytes + len(data)
        if self._buffered_bytes + size_bytes > self._reply_limit_bytes:
            self.dropped_replies += 1
            return False
        self._replies.append(data)
        self._replies_bytes = size_bytes
        if self._flush_handle is None:
            self._flush_handle = asyncio.get_running_loop().call_soon(self.flush)
        return True

    def flush(self) -> None:
        """Writes the waiting responses now."""
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
        """Sends whole stanzas in batches of 64 KiB, in turn with other senders. Returns the number of stanzas.

        The call waits while the server is slow. The caller drops stanzas that become too old meanwhile. A server that
        reads nothing does not answer pings either, and the supervisor ends the link. The iterable is read batch by
        batch, so a generator can produce stanzas late. Raises LinkError if there is no connection, or if the connection
        is no longer the one that the call started on; the caller keeps its mark then.
        """
        if self._transport is None:
            raise LinkError("the link to the XMPP server is down")
        epoch = self.epoch
        sent_count = 0
        for batch, count in _batches(stanzas):
            async with self._turn:
                await self._writable.wait()
                # Another connection may not have the events before this batch, and the caller starts from its mark.
                if self._transport is None or self.epoch != epoch:
                    raise LinkError("the link to the XMPP server is down")
                self.flush()  # responses that wait for the end of this iteration go first
                self._transport.write(batch)
                sent_count += count
                self.written_notifications += count
                self.written_bytes += len(batch)
            await asyncio.sleep(0)
        return sent_count


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

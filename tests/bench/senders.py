"""Several senders on one component link, each with its own number of requests in flight.

A quiet sender's request goes out before requests of the flood that are not yet in the socket: a real server also
reads its clients in turn. What is already in the socket's buffers stays in front of it.
"""

import re
import select
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.wire import BenchError, Wire

CHUNK_BYTES = 1 << 18
DRAIN_S = 120.0
_ANSWER = re.compile(rb"<iq\b[^>]*?\sid=['\"]bq-(\d+)['\"][^>]*?(/?)>")
_ANSWER_END = b"</iq>"
_ID = re.compile(rb"id='bq-(\d+)'")
_HEAD_BYTES = 2_000  # of a stanza, within which its id stands


@dataclass(slots=True)
class Sender:
    """One sender: its requests without end, how many it keeps in flight, and how long each answer took in seconds."""

    stanzas: Iterator[bytes]
    in_flight: int = 1
    latencies_s: list[float] = field(default_factory=list)
    errors: int = 0


class SharedLink:
    """Sends for several senders on one link and measures each one's answers."""

    def __init__(self, wire: Wire, quiet: list[Sender], flood: Sender | None = None) -> None:
        self._socket = wire.socket
        self._senders = [*quiet, *([flood] if flood is not None else [])]
        self._flood = flood
        self._first: deque[memoryview] = deque()  # of quiet senders, and the rest of a stanza that has begun
        self._later: deque[memoryview] = deque()
        self._sent: dict[int, tuple[Sender, float]] = {}
        self._buffer = bytearray()
        self._scan = 0

    def run(self, seconds: float) -> None:
        """Keeps every sender busy for this long and waits for the answers still missing. Raises BenchError."""
        start_s = now_s = time.perf_counter()
        for sender in self._senders:
            for _ in range(sender.in_flight):
                self._add(sender)
        self._socket.setblocking(False)
        try:
            while self._sent:
                self._turn()
                for sender in self._read():
                    now_s = time.perf_counter()
                    if now_s - start_s < seconds:
                        self._add(sender)
                if time.perf_counter() - start_s > seconds + DRAIN_S:
                    raise BenchError(f"{len(self._sent)} answers are missing after {DRAIN_S:.0f} s")
        finally:
            self._socket.setblocking(True)

    def _add(self, sender: Sender) -> None:
        stanza = next(sender.stanzas)
        match = _ID.search(stanza, 0, _HEAD_BYTES)
        assert match is not None
        self._sent[int(match[1])] = sender, time.perf_counter()
        queue = self._later if sender is self._flood else self._first
        queue.append(memoryview(stanza))

    def _turn(self) -> None:
        """Waits until something can be read or written, and writes."""
        writing = [self._socket] if self._first or self._later else []
        _, writable, _ = select.select([self._socket], writing, [], 1.0)
        if not writable:
            return
        queue = self._first or self._later
        data = queue.popleft()
        size = self._socket.send(data)
        if size < len(data):
            self._first.appendleft(data[size:])

    def _read(self) -> Iterator[Sender]:
        """The senders whose answers have come."""
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise BenchError("the link was closed")
        self._buffer += data
        while match := _ANSWER.search(self._buffer):
            end = match.end()
            if not match[2]:
                place = self._buffer.find(_ANSWER_END, max(end, self._scan))
                if place < 0:
                    self._scan = max(end, len(self._buffer) - len(_ANSWER_END))
                    return
                end = place + len(_ANSWER_END)
            sender, sent_s = self._sent.pop(int(match[1]))
            sender.latencies_s.append(time.perf_counter() - sent_s)
            sender.errors += b"error" in match[0]
            del self._buffer[:end]
            self._scan = 0
            yield sender

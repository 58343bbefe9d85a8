"""One component link as the benchmark drives it: a raw socket, prepared bytes, answers counted by their bytes.

The driver is the XEP-0114 server of our component, or a component of a real server; the stanzas are the same.
"""

import contextlib
import hashlib
import itertools
import re
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 1 << 20
PATIENCE_S = 60.0
GRACE_S = 60.0
NAMESPACE = "jabber:component:accept"
# No other attribute in the traffic begins like this: every answer to an IQ holds it once.
ANSWER = b"id='bq-"
IQ_END = b"</iq>"
EVENT = b"</message>"
ERROR = b"type='error'"
_SHARED = 16  # more than any marker has bytes
_HEADER = re.compile(rb"<stream:stream(?:[^>]*?\sid=['\"]([^'\"]*)['\"])?[^>]*>")
_HANDSHAKE = re.compile(rb"<handshake\s*/>|</handshake>|<stream:error.*", re.DOTALL)


class BenchError(Exception):
    """A target did not do the work; the text says what it answered."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a piece of work went: how many answers, in how many seconds."""

    done: int
    seconds: float

    @property
    def per_s(self) -> float:
        """Answers a second."""
        return self.done / self.seconds if self.seconds else 0.0


class Reader:
    """Reads a socket into one buffer and counts markers there, also those that two reads share."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = bytearray(_SHARED + CHUNK_BYTES)
        self._fresh = memoryview(self._buffer)[_SHARED:]
        self._end = _SHARED

    def read(self) -> None:
        """Waits for more. Raises BenchError at the end of the stream."""
        self._buffer[:_SHARED] = self._buffer[self._end - _SHARED : self._end]
        size = self._socket.recv_into(self._fresh)
        if not size:
            raise BenchError("the link was closed")
        self._end = _SHARED + size

    def count(self, marker: bytes) -> int:
        """How many of a marker this read has completed."""
        return self._buffer.count(marker, _SHARED - len(marker) + 1, self._end)

    @property
    def text(self) -> bytes:
        """What came last."""
        return bytes(self._buffer[_SHARED : self._end])


class Wire:
    """A link that is up."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(PATIENCE_S)
        self._socket = sock

    @property
    def socket(self) -> socket.socket:
        """The socket, for a driver of its own."""
        return self._socket

    def close(self) -> None:
        """Ends the stream."""
        with contextlib.suppress(OSError):  # the other side may have been faster
            self._socket.sendall(b"</stream:stream>")
        self._socket.close()

    def ask(self, stanza: bytes) -> bytes:
        """Sends one IQ and returns everything up to the end of its answer. Raises BenchError for an error."""
        self._socket.sendall(stanza)
        data = b""
        while ANSWER not in data or not data.endswith(b">"):
            data += self._receive()
        if ERROR in data:
            raise BenchError(data[:1000].decode("utf-8", "replace"))
        return data

    def rate(
        self,
        stanzas: Iterable[bytes],
        *,
        in_flight: int,
        seconds: float,
        marker: bytes = ANSWER,
        each: int = 1,
    ) -> Pace:
        """Keeps `in_flight` stanzas on the way for up to `seconds`, then waits for what is still to come.

        `each` is how many markers answer one stanza. Raises BenchError for an error among the answers.
        """
        source: Iterator[bytes] | None = iter(stanzas)
        reader = Reader(self._socket)
        sent = got = 0
        start = now = time.perf_counter()
        while source is not None or got < sent * each:
            room = in_flight - (sent - got // each)
            if source is not None and room > 0:
                batch = list(itertools.islice(source, room))
                if len(batch) < room:
                    source = None
                self._socket.sendall(b"".join(batch))
                sent += len(batch)
            if got < sent * each:
                reader.read()
                got += reader.count(marker)
                if reader.count(ERROR):
                    raise BenchError(_around(reader.text, ERROR))
            now = time.perf_counter()
            if now - start > seconds:
                source = None
            if now - start > seconds + GRACE_S:
                raise BenchError(f"{got} of {sent * each} answers after {now - start:.0f} s")
        return Pace(got, now - start)

    def latencies(self, stanzas: Iterable[bytes], *, seconds: float) -> list[float]:
        """Asks one after the other for up to `seconds`; how long each whole answer took."""
        taken: list[float] = []
        start = time.perf_counter()
        for stanza in stanzas:
            sent = time.perf_counter()
            self._socket.sendall(stanza)
            data = self._receive()
            while not data.endswith(IQ_END):
                data += self._receive()
            done = time.perf_counter()
            if ERROR in data:
                raise BenchError(data[:1000].decode("utf-8", "replace"))
            taken.append(done - sent)
            if done - start > seconds:
                break
        return taken

    def settle(self, quiet_s: float = 0.2) -> None:
        """Reads what is still coming until nothing has come for a while."""
        self._socket.settimeout(quiet_s)
        with contextlib.suppress(TimeoutError):
            while self._receive():
                pass
        self._socket.settimeout(PATIENCE_S)

    def _receive(self) -> bytes:
        data = self._socket.recv(CHUNK_BYTES)
        if not data:
            raise BenchError("the link was closed")
        return data


class Listener:
    """The server's end: waits for components."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_S)
        self.port: int = self._socket.getsockname()[1]

    def accept(self, domain: str) -> Wire:
        """The next component, accepted whatever its secret is."""
        sock, _ = self._socket.accept()
        sock.settimeout(PATIENCE_S)
        _until(sock, _HEADER)
        header = f"<stream:stream xmlns='{NAMESPACE}' xmlns:stream='http://etherx.jabber.org/streams'"
        sock.sendall(f"<?xml version='1.0'?>{header} id='bench' from='{domain}'>".encode())
        _until(sock, _HANDSHAKE)
        sock.sendall(b"<handshake/>")
        return Wire(sock)

    def close(self) -> None:
        """Closes the port."""
        self._socket.close()


def connect(port: int, domain: str, secret: str) -> Wire:
    """A component of a server on this machine. Raises BenchError where it is refused."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    header = f"<stream:stream xmlns='{NAMESPACE}' xmlns:stream='http://etherx.jabber.org/streams' to='{domain}'>"
    sock.sendall(header.encode())
    found = _until(sock, _HEADER)
    digest = hashlib.sha1((found[1] or b"") + secret.encode()).hexdigest()
    sock.sendall(f"<handshake>{digest}</handshake>".encode())
    answer = _until(sock, _HANDSHAKE)
    if not answer[0].startswith(b"<handshake"):
        raise BenchError("the server refused the benchmark's component")
    return Wire(sock)


def _until(sock: socket.socket, wanted: re.Pattern[bytes]) -> re.Match[bytes]:
    """Reads until this has come. Whoever sends it waits for our answer before he goes on."""
    data = b""
    while True:
        chunk = sock.recv(65_536)
        if not chunk:
            raise BenchError(f"the link was closed: {data.decode('utf-8', 'replace')}")
        data += chunk
        found = wanted.search(data)
        if found is not None:
            return found


def _around(data: bytes, mark: bytes) -> str:
    """The neighbourhood of a mark, for a message."""
    return data[max(0, data.find(mark) - 200) :][:1000].decode("utf-8", "replace")


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_mb(pid: int) -> float:
    """The memory of a process that is in RAM, in MB (1,000,000 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise BenchError(f"process {pid} has ended")

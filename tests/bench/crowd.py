"""Very many clients in one process of their own: `python -m bench.crowd polls|streams PORT COUNT ROUNDS PATH`.

`{n}` in PATH is the number of the client. Prints a line of JSON for everything that has happened: all requests are sent
(polls) or all streams are open, all of a round have their whole answer. Times are of the monotonic clock, which all
processes share. Nothing is done to an answer but to count its bytes, so that the clients are not what is measured.
"""

import json
import re
import select
import socket
import sys
import time
from collections.abc import Iterator

BUFFER_BYTES = 256 * 1024
OPENING = 200  # connections whose first answer is waited for before more are opened
HEAD_END = b"\r\n\r\n"
CHUNK_END = b"\r\n"
ITEM = b'"verb":'  # once in every item
_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.IGNORECASE)
_CURSOR = re.compile(rb'"last_cursor":"([^"]*)"')
_SINCE = re.compile(r"since=[^&]*")


class Crowd:
    """The connections, and how many bytes of its answer each still lacks."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._count = count
        self._epoll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)

    def open(self, path: str, accept: str) -> Iterator[int]:
        """Opens every connection and sends its request; gives the number of each."""
        for number in range(self._count):
            sock = socket.create_connection(("127.0.0.1", self._port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(_request(path, number, accept))
            sock.setblocking(False)
            self._sockets[sock.fileno()] = sock
            self._epoll.register(sock.fileno(), select.EPOLLIN)
            yield number

    def again(self, path: str, accept: str) -> None:
        """The next request on every connection."""
        for number, sock in enumerate(self._sockets.values()):
            sock.sendall(_request(path, number, accept))

    def read(self) -> Iterator[tuple[int, bytes]]:
        """What has come, after waiting for something. Ends the process when a connection is closed."""
        for descriptor, _ in self._epoll.poll():
            size = self._sockets[descriptor].recv_into(self._view)
            if not size:
                sys.exit("a connection was closed")
            yield descriptor, bytes(self._view[:size])

    def answers(self) -> tuple[list[float], bytes]:
        """Waits until every connection has its answer: when each had it, and the last one."""
        lacking: dict[int, int] = {}
        times: list[float] = []
        data = b""
        while len(times) < self._count:
            for descriptor, data in self.read():
                missing = lacking.get(descriptor)
                missing = _whole(data) - len(data) if missing is None else missing - len(data)
                lacking[descriptor] = missing
                if not missing:
                    times.append(time.monotonic())
        return times, data

    def items(self, wanted: int) -> list[float]:
        """Waits until this many items have come on all streams together: when."""
        times: list[float] = []
        tails: dict[int, bytes] = {}
        while len(times) < wanted:
            for descriptor, data in self.read():
                joint = tails.pop(descriptor, b"") + data
                found = joint.count(ITEM)
                if found:
                    times += [time.monotonic()] * found
                if not joint.endswith(CHUNK_END):
                    tails[descriptor] = joint[-len(ITEM) + 1 :]
        return times


def _request(path: str, number: int, accept: str) -> bytes:
    return (
        f"GET {path.replace('{n}', str(number))} HTTP/1.1\r\nHost: bench.localhost\r\nAccept: {accept}\r\n\r\n".encode()
    )


def _whole(data: bytes) -> int:
    """How many bytes an answer has in all."""
    if not data.startswith(b"HTTP/1.1 200 "):
        sys.exit(data[:500].decode("utf-8", "replace"))
    length = _LENGTH.search(data)
    if length is None:
        sys.exit("an answer does not say how long it is")
    return data.index(HEAD_END) + len(HEAD_END) + int(length[1])


def _say(**found: object) -> None:
    print(json.dumps(found), flush=True)


def polls(port: int, count: int, rounds: int, path: str) -> None:
    """Held pulls, each sent again when all have been answered."""
    crowd = Crowd(port, count)
    began_s = time.monotonic()
    for _ in crowd.open(path, "application/json"):
        pass
    _say(sent_s=time.monotonic() - began_s)
    for left in range(rounds - 1, -1, -1):
        times, last = crowd.answers()
        _say(first=times[0], middle=times[len(times) // 2], last=times[-1])
        cursor = _CURSOR.search(last)
        if left and cursor is not None:
            path = _SINCE.sub(f"since=cursor:{cursor[1].decode()}", path)
            crowd.again(path, "application/json")
            _say(sent_s=0)
    sys.stdin.read()


def streams(port: int, count: int, rounds: int, path: str) -> None:
    """Event streams; in a round, all of them get as many items as a line of standard input says."""
    crowd = Crowd(port, count)
    began_s = time.monotonic()
    waiting: set[int] = set()
    opened = 0
    for number in crowd.open(path, "text/event-stream"):
        while opened < number - OPENING or (number == count - 1 and opened < count):
            for descriptor, _ in crowd.read():
                opened += descriptor not in waiting
                waiting.add(descriptor)
    _say(sent_s=time.monotonic() - began_s)
    for _ in range(rounds):
        times = crowd.items(count * int(sys.stdin.readline()))
        _say(first=times[0], middle=times[len(times) // 2], last=times[-1])
    sys.stdin.read()


def main(kind: str, port: int, count: int, rounds: int, path: str) -> None:
    """A crowd of one kind."""
    (polls if kind == "polls" else streams)(port, count, rounds, path)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])

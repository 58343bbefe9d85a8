"""A network between the service and its database: `python -m bench.relay TARGET_PORT DELAY_S`.

Every byte arrives DELAY_S later, in each direction. The process prints its port first. For each line of its standard
input it prints the number of round trips so far: how often a client has sent something after the server had answered.
asyncio is not used because its timers have a resolution of a millisecond.
"""

import os
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
_ENDED = b""  # in a queue: the sender has closed its side


class Direction:
    """One direction of a connection: what has been read, and when it is due."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.queue: deque[tuple[float, bytes]] = deque()
        self.is_open = True
        self.is_blocked = False

    def read(self, due_s: float) -> None:
        """Reads what is there."""
        try:
            data = self.source.recv(CHUNK_BYTES)
        except ConnectionError:
            data = _ENDED
        self.is_open = data != _ENDED
        self.queue.append((due_s, data))

    def write(self, now_s: float) -> None:
        """Writes what is due, until the receiver does not read."""
        self.is_blocked = False
        while self.queue and self.queue[0][0] <= now_s:
            due_s, data = self.queue.popleft()
            with suppress(OSError):  # the receiver may be gone
                if not data:
                    self.target.shutdown(socket.SHUT_WR)
                    continue
                try:
                    size = self.target.send(data)
                except BlockingIOError:
                    size = 0
                if size < len(data):
                    self.queue.appendleft((due_s, data[size:]))
                    self.is_blocked = True
                    return


class Connection:
    """A client and its connection to the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.sockets = (client, server)
        for sock in self.sockets:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.directions = Direction(client, server), Direction(server, client)
        self.was_answered = True

    @property
    def is_over(self) -> bool:
        """Whether both sides have ended and got everything."""
        return not any(direction.is_open or direction.queue for direction in self.directions)

    def close(self) -> None:
        """Closes both sockets."""
        for sock in self.sockets:
            sock.close()


class Relay:
    """Listens on `port`, and connects each client to `target_port`."""

    def __init__(self, target_port: int, delay_s: float) -> None:
        self.trips = 0
        self._target_port = target_port
        self._delay_s = delay_s
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[Connection] = []

    def run(self) -> None:
        """Runs until the standard input ends."""
        while True:
            directions = [direction for connection in self._connections for direction in connection.directions]
            sources = {d.source: d for d in directions if d.is_open}
            blocked = [d.target for d in directions if d.is_blocked]
            due_s = min((d.queue[0][0] for d in directions if d.queue and not d.is_blocked), default=None)
            pause_s = None if due_s is None else max(0.0, due_s - time.monotonic())
            readable, _, _ = select.select([sys.stdin, self._listener, *sources], blocked, [], pause_s)
            now_s = time.monotonic()
            for ready in readable:
                if ready is self._listener:
                    self._accept()
                elif ready is sys.stdin:
                    if not os.read(sys.stdin.fileno(), CHUNK_BYTES):
                        return
                    print(self.trips, flush=True)
                else:
                    sources[ready].read(now_s + self._delay_s)
                    self._count(ready)
            for direction in directions:
                direction.write(now_s)
            for connection in [connection for connection in self._connections if connection.is_over]:
                connection.close()
                self._connections.remove(connection)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection((HOST, self._target_port))
        except OSError:
            client.close()
        else:
            self._connections.append(Connection(client, server))

    def _count(self, source: socket.socket) -> None:
        """Counts a round trip when a client sends something for the first time after an answer."""
        connection = next(connection for connection in self._connections if source in connection.sockets)
        is_client = source is connection.sockets[0]
        self.trips += is_client and connection.was_answered
        connection.was_answered = not is_client


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        relay = Relay(int(sys.argv[1]), float(sys.argv[2]))
        print(relay.port, flush=True)
        relay.run()

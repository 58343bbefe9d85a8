"""The listening socket, and limits for its connections.

aiohttp parses and writes HTTP. Its `AppRunner` and `TCPSite` are not used, because they cannot reject a connection
before it costs a task, close a connection whose first request never ends, or close one whose client does not read.
"""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from smartfeeds.core.ip_addresses import is_within, network_of, parse_networks
from smartfeeds.core.limits import Quota
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.http.calls import peer_of
from smartfeeds.http.http_errors import failure_reply
from smartfeeds.http.replies import has_begun
from smartfeeds.http.settings import HttpSettings

BACKLOG = 1_024  # connections that the system completes while the process is busy
# For the store, the link, polls, and deliveries to callbacks, of which slow ones may be some hundreds.
SPARE_FILES = 1_280
SWEEP_S = 10.0  # a client that does not read is disconnected at most this long after `http.unread_s`
SHUTDOWN_S = 2.0  # for responses in progress; held pulls and changes have an end of their own (`Site.stop`)
# After an early refusal the rest of the body is read for so long. A close with unread bytes resets the connection, and
# a proxy that still sends the body then loses the response (RFC 9112 9.6).
LINGER_S = 2.0
# No more of it is read, or refused uploads from a fast network would occupy the process all that time.
LINGER_BYTES = 16 * 2**20
# Of the request line, and of each header. It is the default of aiohttp, set here because the error names it.
MAX_LINE_BYTES = 8_190

_log = structlog.get_logger()

TOO_MANY = "too many connections, in total or from your address; close some, or retry later"

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpConnection(RequestHandler):
    """One connection. It is rejected with 429 and closed at once if there are too many."""

    __slots__ = ("_first", "_listener", "address", "answered", "stalled_bytes", "stalled_since", "unread_bytes")

    def __init__(self, listener: "HttpListener", **options: object) -> None:
        super().__init__(listener.server, **options)  # type: ignore[arg-type]  # the values of `HttpListener.bind`
        self._listener = listener
        self._first: asyncio.TimerHandle | None = None
        self.address = ""
        self.answered = False
        self.unread_bytes = 0
        self.stalled_bytes = 0
        self.stalled_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection, or closes it."""
        self.address = peer_of(transport.get_extra_info("peername"))
        if not self._listener.admit(self):  # before `super`, which starts a task for the connection
            # Not asserted: the transports of uvloop have the methods of asyncio.Transport and are no instances of it.
            transport = cast(asyncio.Transport, transport)
            busy, _ = failure_reply(FeedError(Condition.BUSY, TOO_MANY), "connect", anonymous=True)
            refusal = busy.with_headers(Connection="close")
            transport.write(refusal.raw())
            transport.close()
            return
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._first = loop.call_later(self._listener.settings.first_request_s, self._too_slow)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stops counting the connection."""
        if self._first is not None:  # the connection was admitted
            self._first.cancel()
            self._listener.release(self)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads the rest of a refused body up to LINGER_BYTES."""
        if self.answered:
            self.unread_bytes += len(data)
            if self.unread_bytes > LINGER_BYTES and self.transport is not None:
                self.transport.close()
                return
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - the signature is the library's
    ) -> web.StreamResponse:
        """The response to a request that aiohttp cannot parse, or to an error outside the router.

        Raises ConnectionError if a response has begun or the connection is closed.
        """
        if isinstance(exc, ConnectionError):
            raise exc
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._listener.unreadable += 1
            is_long = isinstance(exc, LineTooLong)
            text = f"the address or a header has more than {MAX_LINE_BYTES} bytes, which is the limit"
            exc = FeedError(Condition.BAD_REQUEST, text if is_long else "the request cannot be read")
        reply, _ = failure_reply(exc, "unread", anonymous=True)
        if has_begun(request):
            raise ConnectionResetError("a response that had begun cannot be finished")
        response = reply.response()
        response.force_close()
        return response

    def _too_slow(self) -> None:
        """Closes a connection whose first request has not arrived."""
        if self._request_count == 0 and self.transport is not None:
            self.transport.abort()


class HttpListener:
    """Serves `handler` at HOST:PORT. Call `bind`, `start` and `stop` once; run `watch` between `start` and `stop`.

    Connections of proxies count only in the total, because many clients share them.
    """

    def __init__(self, handler: Handler, settings: HttpSettings) -> None:
        self.settings = settings
        self._handler = handler
        self._proxies = parse_networks(settings.proxies)
        self._per_address = Quota(settings.connections_per_address)
        self._open: set[HttpConnection] = set()
        self._most = settings.connections
        self._socket: asyncio.Server | None = None
        self.server: web.Server
        self.refused = 0
        self.unreadable = 0

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def port(self) -> int:
        """The port of the socket."""
        assert self._socket is not None
        return int(self._socket.sockets[0].getsockname()[1])

    async def bind(self) -> None:
        """Reserves the address. Raises ConfigError if the address cannot be bound."""
        files = _files(self.settings.connections + SPARE_FILES)
        # If few files are allowed, connections get half of them.
        self._most = min(self.settings.connections, max(files - SPARE_FILES, files // 2))
        if self._most < self.settings.connections:
            _log.warning("connections_bounded", by="the limit of open files (ulimit -n)", connections=self._most)
        # A handler is cancelled when its client disconnects. Otherwise a held pull would wait for nobody.
        self.server = web.Server(self._serve, handler_cancellation=True)
        options = {
            "keepalive_timeout": self.settings.idle_s,
            "access_log": None,
            "lingering_time": LINGER_S,
            "max_line_size": MAX_LINE_BYTES,
            "max_field_size": MAX_LINE_BYTES,
            "auto_decompress": False,  # a compressed body is rejected by `BodyReader`
        }
        host, _, port = self.settings.listen.rpartition(":")
        try:
            self._socket = await asyncio.get_running_loop().create_server(
                lambda: HttpConnection(self, loop=asyncio.get_running_loop(), **options),
                host.strip("[]"),
                int(port),
                backlog=BACKLOG,
                start_serving=False,
            )
        except OSError as error:
            raise self._failure(error) from None

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, HttpConnection)
        connection.answered = False  # the body of the request may be long
        connection.unread_bytes = 0
        try:
            return await self._handler(request)
        finally:
            connection.answered = True

    def unbind(self) -> None:
        """Releases the address. Does nothing after `stop`."""
        if self._socket is not None:
            self._socket.close()

    async def start(self) -> None:
        """Begins to listen. Raises ConfigError if another process has begun to since `bind`."""
        assert self._socket is not None
        try:
            await self._socket.start_serving()
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> ConfigError:
        return ConfigError(f"http.listen: {bind_failure(self.settings.listen, error)}")

    async def stop(self) -> None:
        """Closes the socket and all connections."""
        if self._socket is None:
            return
        self._socket.close()
        self.server.pre_shutdown()
        await self.server.shutdown(SHUTDOWN_S)
        await self._socket.wait_closed()

    def admit(self, connection: HttpConnection) -> bool:
        """Whether one more connection of this address may stay; if so it is counted until `release`."""
        shared = is_within(connection.address, self._proxies)
        if len(self._open) >= self._most or not (shared or self._per_address.take(network_of(connection.address))):
            self.refused += 1
            return False
        self._open.add(connection)
        return True

    def release(self, connection: HttpConnection) -> None:
        """A connection has ended."""
        self._open.remove(connection)
        if not is_within(connection.address, self._proxies):
            self._per_address.release(network_of(connection.address))

    async def watch(self) -> None:
        """Closes connections whose clients do not read their responses. Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep(loop.time())

    def sweep(self, now_s: float) -> None:
        """Checks all connections once."""
        for connection in list(self._open):
            transport = connection.transport
            unread_bytes = transport.get_write_buffer_size() if transport is not None else 0
            if unread_bytes == 0 or unread_bytes != connection.stalled_bytes:
                connection.stalled_bytes, connection.stalled_since = unread_bytes, now_s
            elif now_s - connection.stalled_since >= self.settings.unread_s and transport is not None:
                transport.abort()


def bind_failure(listen: str, error: OSError) -> str:
    """Returns the error for an address HOST:PORT that cannot be bound, with advice."""
    if isinstance(error, socket.gaierror):
        return f"cannot bind {listen}, the host name is unknown ({error.strerror}); use an address of this machine"
    # asyncio puts the address and the reason into strerror.
    reason = _BIND_FAILURES.get(error.errno or 0, f"{os.strerror(error.errno or 0).lower()}; choose another address")
    return f"cannot bind {listen}, {reason}"


_BIND_FAILURES = {
    errno.EADDRINUSE: "the address is in use; stop the other process or choose another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose 127.0.0.1, 0.0.0.0 or an address of this machine",
    errno.EACCES: "this user has no right to bind it; choose a port above 1023",
}


def _files(count: int) -> int:
    """Raises the limit of open files to `count` if possible, and returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        soft = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return count if soft == resource.RLIM_INFINITY else soft

"""The component stream (XEP-0114; xep-map 1 to 3, 11, 13): the only module that uses internals of slixmpp.

Incoming bytes are split into stanzas (`framer`). Stanzas wait for their sender's turn (`turns`), are parsed with lxml
(`parsing`) and passed to one callback. Responses to our own requests go to their callers (`requests`), and messages
that the callback did not handle go to listeners. slixmpp receives the rest as its own tree: handshake, stream errors,
ping (XEP-0199), version (XEP-0092) and unknown IQs. Presence never reaches slixmpp, which would store every sender
without limit. Outgoing bytes pass through the outbox, and nothing is queued while offline.
"""

import asyncio
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import structlog
from lxml import etree
from slixmpp import ComponentXMPP, InvalidJID
from slixmpp.stanza import Handshake

from smartfeeds.core.text import attribute
from smartfeeds.errors import Condition
from smartfeeds.xmpp.framer import CUT_NS, Framer, StanzaFrame, cut_down, start_of
from smartfeeds.xmpp.link import LinkDownError, error_bytes, is_own_ping, own_ping, stream_error, stream_header
from smartfeeds.xmpp.listeners import Listeners
from smartfeeds.xmpp.outbox import HIGH_WATER_BYTES, LOW_WATER_BYTES, Outbox
from smartfeeds.xmpp.parsing import (
    CLIENT_NS,
    COMPONENT_NS,
    REQUEST_BYTES,
    STREAM_NS,
    StanzaParser,
    StreamSyntaxError,
    as_component_stanza,
    domain_of,
    fault_of,
    sender_of,
)
from smartfeeds.xmpp.pending_iqs import Requests
from smartfeeds.xmpp.relay import Relay
from smartfeeds.xmpp.slixmpp_tree import to_slixmpp
from smartfeeds.xmpp.stanza_errors import error_answer
from smartfeeds.xmpp.turns import QueueBounds, StanzaTurns, StanzaWork, Turn

# The framer truncates a larger stanza, so that it cannot fill the memory. Prosody accepts 512 KiB from other servers.
STANZA_LIMIT_BYTES = 1_048_576
CLOSE_TIMEOUT_S = 2.0  # wait for the server's footer
# Stanzas are served for this long, or for one batch, then other tasks run and the next chunk is read. An answer needs
# four iterations of the event loop, so the stanzas of others delay it by four slices. With slices of 5 ms it came after
# 130 ms beside 64 requests of 120 KB and 3 ms each: the socket was read no faster than they were served. Publishing is
# as fast with short slices.
SLICE_S = 0.001
# Parsing a document has a fixed cost as large as that of some stanzas, so short stanzas of a turn share a document.
BATCH_BYTES = 16_384
_IQ = f"{{{COMPONENT_NS}}}iq"
_PRESENCE = f"{{{COMPONENT_NS}}}presence"
_MESSAGE = f"{{{COMPONENT_NS}}}message"
_STANZAS = frozenset({_IQ, _MESSAGE, _PRESENCE})
_CLIENT_STANZAS = frozenset(f"{{{CLIENT_NS}}}{kind}" for kind in ("iq", "message", "presence"))
_CUT = f"{{{CUT_NS}}}cut"
_STREAM_ERROR = f"{{{STREAM_NS}}}error"
_FOOTER = b"</stream:stream>"

log = structlog.get_logger()

# True if the stanza was handled, or the work that goes on.
StanzaOutcome = bool | StanzaWork
StanzaCallback = Callable[[etree._Element], StanzaOutcome]


@dataclass(frozen=True, slots=True)
class StreamTools:
    """The tools of a stream, and its limits.

    `request_bytes` is the size of the largest request, and `bounds` is what may wait. `software_version` answers
    XEP-0092. Several processes may share the domain; `relay` passes stanzas to them.
    """

    request_bytes: int = REQUEST_BYTES
    bounds: QueueBounds = field(default_factory=QueueBounds)
    software_version: str = ""
    relay: Relay = field(default_factory=Relay)


class ComponentStream(ComponentXMPP):
    """One component connection at a time. The supervisor opens and closes it.

    `domain` is that of the component. `on_stanza` receives each iq, message and presence as an lxml element in the
    component namespace and returns whether it handled the stanza. It must not block or store the element, which keeps
    its document in memory. `on_full` receives the name and attributes of a rejected stanza.
    """

    def __init__(
        self,
        domain: str,
        secret: str,
        *,
        host: str = "127.0.0.1",
        port: int = 5347,
        on_stanza: StanzaCallback = lambda _element: False,
        tools: StreamTools | None = None,
    ) -> None:
        super().__init__(domain, secret, host, port)  # type: ignore[no-untyped-call]  # slixmpp has few annotations
        tools = tools or StreamTools()
        self.domain = str(self.boundjid.host)
        self.on_stanza = on_stanza
        self.turns = StanzaTurns(tools.bounds, clock=time.monotonic)
        self.on_full: Callable[[str, Mapping[str, str]], object] = lambda _name, _attributes: None
        self._request_bytes = tools.request_bytes
        self._serving: asyncio.Handle | None = None  # the next call of `_serve`; a timer if all waiting senders pause
        self._framing_s = 0.0  # processor time spent on the bytes of incomplete stanzas
        self.outbox = Outbox()
        self._framer = Framer(STANZA_LIMIT_BYTES)
        self._stanzas: StanzaParser | None = None
        self._received_bytes = 0
        self._pings = 0
        self._relay = tools.relay
        self._requests = Requests(self._relay.instance)
        self._listeners = Listeners()
        self._down: LinkDownError | None = None
        self._online = False  # from the handshake until the connection is lost
        self._opened: asyncio.Future[LinkDownError | None] | None = None
        self._closed: asyncio.Future[LinkDownError] | None = None
        self._abort_handle: asyncio.TimerHandle | None = None
        self.stream_header = stream_header(domain)
        self.stream_footer = _FOOTER.decode()
        self.register_plugin("xep_0199", {"keepalive": False})
        self.register_plugin("xep_0092", {"software_name": "smartfeeds", "version": tools.software_version, "os": ""})

    # The interface of the supervisor

    @property
    def endpoint(self) -> str:
        """The server's address as `host:port`."""
        return f"{self.server_host}:{self.server_port}"

    @property
    def received_bytes(self) -> int:
        """The number of bytes received since the start."""
        return self._received_bytes

    async def open(self) -> None:
        """Connects and completes the handshake. Raises LinkDownError; the connection is closed then."""
        if self._closed is not None and not self._closed.done():
            raise LinkDownError("connect-failed", "the previous connection is still open")
        self.init_plugins()  # type: ignore[no-untyped-call]
        # slixmpp starts its filter task in `connect`, which is not used here.
        if self._run_out_filters is None or self._run_out_filters.done():
            self._run_out_filters = asyncio.get_running_loop().create_task(self.run_filters())
        self._down = None
        self._opened = asyncio.get_running_loop().create_future()
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, self.server_host, self.server_port)
        except OSError as error:
            raise LinkDownError("connect-failed", str(error)) from error
        try:
            down = await self._opened
        except asyncio.CancelledError:  # the supervisor has waited long enough, or stops
            self.drop("timeout")
            raise
        if down is not None:
            raise down

    async def wait_closed(self) -> LinkDownError:
        """Waits until the connection has ended, and returns the reason."""
        if self._closed is None:
            return LinkDownError("closed", "never opened")
        return await asyncio.shield(self._closed)  # the supervisor may be cancelled, and `close` waits for it too

    def ping(self) -> None:
        """Sends a ping to our own address. It passes through the server and does not depend on any other host."""
        self._pings += 1
        self.outbox.reply(own_ping(self.domain, f"{self._relay.instance}-{self._pings}"))

    def drop(self, condition: str) -> None:
        """Aborts the connection, without a footer."""
        if self.transport is not None:
            self._down = self._down or LinkDownError(condition)
            self.outbox.detach()
            self.transport.abort()

    async def close(self) -> None:
        """Flushes, closes the stream with its footer, and waits up to 2 s for the server to close its side."""
        if self._run_out_filters is not None:
            self._run_out_filters.cancel()
            await asyncio.wait((self._run_out_filters,))
        if self.transport is not None and self._closed is not None:
            self._down = self._down or LinkDownError("stopped")
            self._write_last(_FOOTER)
            await asyncio.wait((self._closed,), timeout=CLOSE_TIMEOUT_S)
            if self.transport is not None:
                self.transport.abort()
            await asyncio.wait((self._closed,))

    async def call(self, kind: str, to: str, payload: bytes, timeout_s: float) -> etree._Element:
        """Sends an IQ and returns the response. The element keeps its document in memory, so it must not be stored.

        The payload is sent unchanged. slixmpp's own stanzas lose attributes that have a namespace. Raises
        LinkDownError, TimeoutError.
        """
        stanza_id, response = self._requests.add(to)
        head = f"<iq type='{kind}' id='{stanza_id}' from='{attribute(self.domain)}' to='{attribute(to)}'>"
        try:
            if not self.outbox.reply(b"".join((head.encode(), payload, b"</iq>"))):
                raise LinkDownError("lost", "there is no link, or the server does not read")
            async with asyncio.timeout(timeout_s):
                return await response
        finally:
            self._requests.remove(stanza_id)

    def listen(
        self,
        on_up: Callable[[], None],
        on_down: Callable[[], None],
        on_message: Callable[[etree._Element], None],
    ) -> Callable[[], None]:
        """Registers callbacks and returns a function that removes them.

        `on_up` is called after each handshake, and at once if the stream is online. `on_down` is called when the stream
        has ended, `on_message` for each message that `on_stanza` did not handle. It must not store the element.
        """
        remove = self._listeners.add(on_up, on_down, on_message)
        if self._online:
            on_up()
        return remove

    # Callbacks of asyncio and slixmpp

    def connection_made(self, transport: asyncio.BaseTransport, send_event: bool = True) -> None:
        """Sets water marks and sends the stream header (xep-map 1). asyncio and uvloop have set TCP_NODELAY."""
        # Not asserted: the transports of uvloop have the methods of asyncio.Transport and are no instances of it.
        transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=LOW_WATER_BYTES)
        self._closed = asyncio.get_running_loop().create_future()
        super().connection_made(transport, send_event)

    def init_parser(self) -> None:
        """Creates a new framer for each connection. slixmpp's own parser is never created."""
        self._framer = Framer(STANZA_LIMIT_BYTES)
        self._stanzas = None

    def data_received(self, data: bytes | str) -> None:
        """Reads received bytes stanza by stanza. Ends the stream if they are not XML."""
        assert isinstance(data, bytes)
        self._received_bytes += len(data)
        framer = self._framer
        # Senders are charged processor time. The time of the store's thread, which runs meanwhile, is not theirs.
        began_s = time.thread_time()
        frames = framer.feed(data)
        self._framing_s += time.thread_time() - began_s
        try:
            if framer.header and self._stanzas is None and not framer.error:
                self._stanzas = StanzaParser(framer.header)
                self._start_handshake(self._stanzas.attributes)
            if frames:
                self._enter(frames)
        except StreamSyntaxError as error:
            self._end_stream(str(error))
            return
        last = framer.ended or bool(framer.error)
        if last or self._is_idle():
            self._serve(last=last)
        if framer.error:
            self._end_stream(framer.error)
        elif framer.ended:
            self._down = self._down or LinkDownError("closed" if self._online else "handshake-refused")
            self._shut(_FOOTER)

    def connection_lost(self, exception: BaseException | None) -> None:
        """Takes the outbox offline, then ends all requests and calls the listeners."""
        # First, because the listeners may send. A notification that is written to a closed connection would count as
        # sent, and the mark of its consumer would move.
        self.outbox.detach()
        self.turns.clear()
        if self._serving is not None:
            self._serving.cancel()
            self._serving = None
        if self._abort_handle is not None:
            self._abort_handle.cancel()
            self._abort_handle = None
        was_online, self._online = self._online, False
        if self._down is None:
            condition = "lost" if was_online else "handshake-refused"
            self._down = LinkDownError(condition, "" if exception is None else str(exception))
        self.sessionstarted = False
        self._requests.fail(self._down)
        if was_online:
            self._listeners.down()
        super().connection_lost(exception)
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(self._down)
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(self._down)

    def pause_writing(self) -> None:
        """The transport's buffer is above the high-water mark."""
        self.outbox.pause()

    def resume_writing(self) -> None:
        """The transport's buffer is below the low-water mark."""
        self.outbox.resume()

    def send(self, data: Any, use_filters: bool = True) -> None:
        """Sends a stanza of slixmpp. Drops it while offline: slixmpp would queue it without limit (xep-map 3)."""
        if self._online or isinstance(data, Handshake):
            super().send(data, use_filters)

    def _handle_handshake(self, xml: Any) -> None:
        super()._handle_handshake(xml)  # type: ignore[no-untyped-call]
        assert self.transport is not None
        assert self._opened is not None
        self._online = True
        if not self._opened.done():  # done if `open` was cancelled
            self._opened.set_result(None)
        self.outbox.attach(self.transport)
        self._listeners.up()

    def _start_keepalive(self, event: Any) -> None:
        """Disables slixmpp's whitespace keepalive, because nobody answers it. The supervisor sends pings instead."""

    # Internals

    def _start_handshake(self, attributes: dict[str, str]) -> None:
        """Lets slixmpp answer the stream header with SHA-1 of its id and the secret [xep-map 2]."""
        self.start_stream_handler(ET.Element("stream", attributes))  # type: ignore[no-untyped-call]

    def _enter(self, frames: Sequence[StanzaFrame]) -> None:
        """Queues stanzas for their senders' turns. Stanzas of the server itself are handled at once."""
        assert self._stanzas is not None
        byte_s = self._framing_s / sum([frame.size_bytes for frame in frames])
        self._framing_s = 0.0
        for frame in frames:
            sender = sender_of(frame.data)
            # No sender: an element of the stream itself. Before the handshake everything is from the server.
            if sender is None or not self._online:
                for element in self._stanzas.parse([frame.data]):
                    self._handle(element)
                continue
            fault = fault_of(frame, self._request_bytes)
            data = cut_down(frame.data, fault) if fault else frame.data
            size_bytes = frame.size_bytes
            cut = len(data) < size_bytes
            requested = not cut and bool(self._requests.open) and self._requests.claim(data)
            if not self.turns.add(sender, data, size_bytes, byte_s * size_bytes, cut=cut, requested=requested):
                self.on_full(*start_of(data))

    def _serve(self, *, last: bool = False) -> None:
        """Serves waiting stanzas for a slice of time, then continues in the next iteration of the event loop.

        The `last` stanzas of a stream are served at once, because the stream is closed after this call.
        """
        loop = asyncio.get_running_loop()
        if self._serving is not None:
            self._serving.cancel()
            self._serving = None
        end_s = loop.time() + SLICE_S
        while batch := self.turns.take(BATCH_BYTES):
            try:
                self._serve_batch(batch)
            except StreamSyntaxError as error:
                self._end_stream(str(error))
            if self._is_leaving():  # no response could be sent on this connection
                self.turns.clear()
                return
            if loop.time() >= end_s and not last:
                self._serving = loop.call_soon(self._serve)
                return
        rest_s = self.turns.rest_s()
        if rest_s is not None:
            self._serving = loop.call_later(rest_s, self._serve)

    def _serve_batch(self, batch: Sequence[Turn]) -> None:
        """Parses and handles stanzas. Each sender is charged its share of the time. Raises StreamSyntaxError."""
        assert self._stanzas is not None
        began_s = time.thread_time()
        unread: list[bool] = []
        working: dict[Turn, StanzaWork] = {}
        try:
            for turn, element in zip(batch, self._stanzas.parse([turn.frame for turn in batch]), strict=True):
                unread.append(element is None or (len(element) > 0 and element[0].tag == _CUT))
                # The callback may close the link. The rest of the batch is dropped then.
                transport = self.transport
                outcome = transport is None or transport.is_closing() or self._handle(element)
                if isinstance(outcome, StanzaWork) and not outcome.has_ended:
                    working[turn] = outcome
        finally:
            # The stanzas share one document, so only their sizes can divide the time.
            byte_s = (time.thread_time() - began_s) / sum([turn.size_bytes for turn in batch])
            for turn, cut in zip(batch, unread, strict=False):
                self.turns.spend(turn, byte_s * turn.size_bytes, cut=cut)
            # Count the stanzas after a syntax error too: the counts in `turns` outlive the connection.
            for turn in batch:
                if turn in working:
                    working[turn].when_ended(partial(self._done, turn))
                else:
                    self.turns.done(turn)

    def _done(self, turn: Turn, spent_s: float) -> None:
        self.turns.spend(turn, spent_s)
        if self.turns.done(turn) and self._is_idle() and not self._is_leaving():
            if self._serving is not None:
                self._serving.cancel()
            self._serving = asyncio.get_running_loop().call_soon(self._serve)

    def _is_idle(self) -> bool:
        """Returns whether no call of `_serve` is scheduled for the next iteration of the event loop."""
        return self._serving is None or isinstance(self._serving, asyncio.TimerHandle)

    def _handle(self, element: etree._Element | None, *, is_handed: bool = False) -> StanzaOutcome:
        """Passes a stanza to its handler: the callback, a caller of `call`, the listeners, or slixmpp."""
        if element is None:
            return False
        tag = element.tag
        if tag in _CLIENT_STANZAS:
            element = as_component_stanza(element)
            tag = element.tag
        if tag in _STANZAS:
            if not self._online or (tag == _IQ and element.get("from") == self.domain and is_own_ping(element)):
                return True
            if self._relay.is_leaving and not is_handed and self._relay.hand_over(element):
                return True  # two processes that stop do not pass it to and fro
            try:
                outcome = self.on_stanza(element)
            except Exception:  # noqa: BLE001 - it must not end the link for everybody
                outcome = self._failed(element)
            if tag != _IQ:
                self._relay.share(element, outcome)
            if outcome or tag == _PRESENCE:
                return outcome
            if tag == _MESSAGE:
                self._listeners.pass_message(element, self._failed)
                return True
            if element.get("type") not in ("get", "set"):
                # The caller of the request may be in another process. A response that nobody waits for is dropped.
                return self._requests.resolve(element) or self._relay.return_answer(element)
        elif tag == _STREAM_ERROR:
            self._down = stream_error(element)
        self._pass_to_slixmpp(element)
        return True

    def receive_handed(self, element: etree._Element) -> None:
        """Handles a stanza that the server has sent to another process of this domain, which stops."""
        self._handle(element, is_handed=True)

    def receive_shared(self, element: etree._Element) -> None:
        """Reads a response or a message that the server has sent to another process of this domain."""
        if element.tag == _IQ:
            self._requests.resolve(element)
        else:
            self._listeners.pass_message(element, self._failed)

    def _pass_to_slixmpp(self, element: etree._Element) -> None:
        try:
            self._spawn_event(to_slixmpp(element, self.domain))
        except InvalidJID as error:
            # slixmpp has older tables of Unicode, and stricter rules for host names, than servers and this service.
            log.warning("address_refused", sender=domain_of(element), recipient=element.get("to"), reason=str(error))
            self._refuse(element, Condition.JID_MALFORMED)
        except Exception:  # noqa: BLE001 - what slixmpp does with a stranger's stanza must not end the link
            self._failed(element)

    def _failed(self, element: etree._Element) -> bool:
        log.exception("stanza_failed", tag=element.tag, sender=domain_of(element), stanza_id=element.get("id"))
        self._refuse(element, Condition.INTERNAL)
        return True

    def _refuse(self, element: etree._Element, condition: Condition) -> None:
        """Sends an error response to a request. Other stanzas get no response."""
        if element.tag == _IQ and element.get("type") in ("get", "set"):
            self.outbox.reply(error_answer(element.attrib, self.domain, condition))

    def _end_stream(self, condition: str) -> None:
        """Ends the stream after a violation by the server, with a stream error. The supervisor reconnects."""
        self._down = self._down or LinkDownError(condition, "the stream from the server is not valid")
        self._shut(error_bytes(condition) + _FOOTER)

    def _is_leaving(self) -> bool:
        return self.transport is None or bool(self.transport.is_closing())

    def _write_last(self, data: bytes) -> None:
        """Writes the waiting responses, then these bytes, and takes the outbox offline."""
        assert self.transport is not None
        self.outbox.flush()
        self.outbox.detach()
        self.transport.write(data)

    def _shut(self, data: bytes) -> None:
        """Closes the connection after these bytes, or aborts it if the server does not read them in time."""
        if self.transport is None or self._is_leaving():
            return
        self._write_last(data)
        self._abort_handle = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self.transport.abort)
        self.transport.close()

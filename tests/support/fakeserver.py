"""A fake XEP-0114 server on loopback: the base of the protocol, fault and speed tests of the component link.

It speaks real TCP and real XML and breaks the rules only where a test asks it to. One `FakeServer` may see many
connections, one after the other or at once; each is a `Session`.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from smartfeeds.xml_names import PullParser
from support.listener import Listener
from support.waiting import wait_for

STREAM_ID = "3BF96D32"
_NS = "jabber:component:accept"
_CONDITIONS = "urn:ietf:params:xml:ns:xmpp-streams"
_FOOTER = b"</stream:stream>"


@dataclass(slots=True)
class Switches:
    """The faults of the server; read at each new connection, `reading` also later."""

    refuse: str = ""  # a stream error instead of the handshake: conflict, not-authorized, host-unknown
    refuse_silently: bool = False  # closes TCP instead of answering the handshake
    mute: bool = False  # accepts TCP and never says anything
    byte_by_byte: bool = False  # writes each byte as a segment of its own
    answer_pings: bool = True
    close_with_footer: bool = True
    namespace: str = _NS  # the default namespace of the server's stream
    stream_id: str = STREAM_ID
    header_attributes: str = ""


@dataclass(slots=True)
class Session:
    """One connection of a component. `header` and `handshake` are what it sent before it was accepted."""

    switches: Switches
    secret: str
    domain: str
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    header: str = ""
    handshake: str = ""
    online: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    stanzas: asyncio.Queue[etree._Element] = field(default_factory=asyncio.Queue)
    received: bytearray = field(default_factory=bytearray)
    footer: bool = False
    before_online: list[str] = field(default_factory=list)

    async def send(self, text: str | bytes) -> None:
        """Writes raw bytes to the component, well-formed or not."""
        data = text.encode() if isinstance(text, str) else text
        if self.switches.byte_by_byte:
            for index in range(len(data)):
                self.writer.write(data[index : index + 1])
                await asyncio.sleep(0)
        else:
            self.writer.write(data)
        await self.writer.drain()

    async def expect(self) -> etree._Element:
        """The next stanza that the component sent."""
        return await wait_for(self.stanzas.get(), "a stanza of the component")

    async def stream_error(self, condition: str, text: str = "") -> None:
        """Ends the stream with an error, as servers do."""
        words = f"<text xmlns='{_CONDITIONS}'>{escape(text)}</text>" if text else ""
        await self.send(f"<stream:error><{condition} xmlns='{_CONDITIONS}'/>{words}</stream:error>")
        await self.end()

    async def end(self) -> None:
        """Closes the stream and TCP."""
        if self.switches.close_with_footer:
            await self.send(_FOOTER)
        self.writer.close()

    def cut(self) -> None:
        """Cuts TCP in the middle of whatever is going on."""
        self.writer.transport.abort()

    def stop_reading(self) -> None:
        """Lets everything that the component writes pile up."""
        transport = self.writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()

    def read_again(self) -> None:
        """Reads what has piled up."""
        transport = self.writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.resume_reading()

    async def serve(self) -> None:
        """Reads until the component is gone."""
        parser = PullParser(("start", "end"), huge_tree=True)
        depth = 0
        while data := await self.reader.read(65_536):
            self.received += data
            if self.switches.mute:
                continue
            parser.feed(data)
            for event, element in parser.read_events():
                assert isinstance(element, etree._Element)
                depth += 1 if event == "start" else -1
                if event == "start" and depth == 1:
                    await self._welcome(element)
                elif event == "end" and depth == 1:
                    await self._take(element)
                elif event == "end" and depth == 0:
                    self.footer = True
                    if self.switches.close_with_footer:
                        await self.end()

    async def _welcome(self, root: etree._Element) -> None:
        self.header = self.received.decode()
        await self.send(
            f"<?xml version='1.0'?><stream:stream xmlns='{self.switches.namespace}' "
            "xmlns:stream='http://etherx.jabber.org/streams' "
            f"from='{self.domain}' id={quoteattr(self.switches.stream_id)}{self.switches.header_attributes}>"
        )

    async def _take(self, element: etree._Element) -> None:
        root = element.getparent()
        assert root is not None
        root.remove(element)
        if not self.online.is_set():
            if element.tag == f"{{{_NS}}}handshake":
                self.handshake = element.text or ""
                await self._judge()
            else:
                self.before_online.append(str(element.tag))
            return
        if self._is_to_itself(element):
            if self.switches.answer_pings:
                await self.send(etree.tostring(element, with_tail=False))
            return
        await self.stanzas.put(element)

    async def _judge(self) -> None:
        expected = hashlib.sha1((self.switches.stream_id + self.secret).encode()).hexdigest()
        if self.switches.refuse_silently:
            self.writer.close()
        elif self.switches.refuse:
            await self.stream_error(self.switches.refuse, "as the test asked")
        elif self.handshake != expected:
            await self.stream_error("not-authorized")
        else:
            await self.send("<handshake/>")
            self.online.set()

    def _is_to_itself(self, element: etree._Element) -> bool:
        """Whether the component has sent a ping to its own address, or the response to such a ping."""
        is_ping = element.find("{urn:xmpp:ping}ping") is not None or element.get("type") in ("result", "error")
        return is_ping and element.tag == f"{{{_NS}}}iq" and element.get("to") == element.get("from") == self.domain


class FakeServer:
    """Listens on a free loopback port; an async context manager."""

    def __init__(self, domain: str = "feeds.example.org", secret: str = "secret") -> None:
        self.domain = domain
        self.secret = secret
        self.switches = Switches()
        self.sessions: list[Session] = []
        self.port = 0
        self._arrived = asyncio.Condition()
        self._listener: Listener | None = None

    async def __aenter__(self) -> "FakeServer":
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_listening()
        for session in self.sessions:
            session.cut()
        for session in self.sessions:
            await wait_for(session.closed.wait(), "the end of the component's connection")

    async def listen(self) -> None:
        """Opens the port, the same one as before if there was one."""
        self._listener = Listener(self._accept, self.port)
        self.port = self._listener.port

    async def stop_listening(self) -> None:
        """Closes the port; connections stay."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    async def session(self, number: int = 1) -> Session:
        """The n-th connection, once it is online."""
        session = await self.connection(number)
        await wait_for(session.online.wait(), f"the handshake of connection {number}")
        return session

    async def connection(self, number: int = 1) -> Session:
        """The n-th connection, in whatever state."""
        async with self._arrived:
            await wait_for(self._arrived.wait_for(lambda: len(self.sessions) >= number), f"connection {number}")
        return self.sessions[number - 1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self.switches, self.secret, self.domain, writer, reader)
        async with self._arrived:
            self.sessions.append(session)
            self._arrived.notify_all()
        try:
            await session.serve()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the component, or the test, has cut the connection
        finally:
            writer.close()
            session.closed.set()


class CountingServer(asyncio.Protocol):
    """A server for speed tests: accepts any handshake and then only counts bytes and stanzas.

    `marker` is what ends a stanza; `on_progress` is called with the number of stanzas so far.
    """

    def __init__(self, marker: bytes = b"</message>", on_progress: Callable[[int], None] | None = None) -> None:
        self._marker = marker
        self._on_progress = on_progress
        self._tail = b""
        self._online = False
        self.transport: asyncio.Transport | None = None
        self.bytes = 0
        self.stanzas = 0

    async def listen(self) -> asyncio.Server:
        """Opens a free loopback port for one component."""
        return await asyncio.get_running_loop().create_server(lambda: self, "127.0.0.1", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A component is there."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(
            f"<stream:stream xmlns='{_NS}' xmlns:stream='http://etherx.jabber.org/streams' id='{STREAM_ID}'>".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Counts the ends of stanzas, also those that two segments share."""
        if not self._online:
            self._tail += data
            if b"</handshake>" in self._tail:
                assert self.transport is not None
                self._online = True
                self._tail = b""
                self.transport.write(b"<handshake/>")
            return
        self.bytes += len(data)
        joint = self._tail + data[: len(self._marker) - 1]
        self.stanzas += joint.count(self._marker) + data.count(self._marker)
        self._tail = (self._tail + data[-len(self._marker) :])[-(len(self._marker) - 1) :]
        if self._on_progress is not None:
            self._on_progress(self.stanzas)
        if data.endswith(_FOOTER) and self.transport is not None:
            self.transport.close()

"""Counts the work of requests over XMPP: Python calls, modules of the package, SQL statements.

The service runs in the process of the test. A thread that is not counted plays the server: it accepts the component,
sends the requests of a group at once, and waits for their answers before it sends the next group.
"""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from budgets.support_http import Counts, PageWork, counting, without_time
from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.store.sqlite import SqliteStore

DOMAIN = "feeds.example.org"
OWNER = "ann@example.org/home"
GROUP = 50  # requests that are sent at once
FEW = 2  # groups; three times as many are compared with them
MANY = 5 * FEW * GROUP  # as many to warm up, these, and those
_PUBSUB = "http://jabber.org/protocol/pubsub"
_TEXT = "Rain in the west, sun in the east. " * 20
_ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:{0}</id><title>Report {0}</title>"
    "<author><name>Ann</name></author><published>2026-01-02T08:00:00Z</published>"
    "<updated>2026-01-02T08:00:00Z</updated><category term='reports'/>"
    f"<content type='html'>&lt;p&gt;{_TEXT}&lt;/p&gt;</content></entry>"
)
_STREAM = (
    f"<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' from='{DOMAIN}'"
    " id='one'>"
)
_ANSWER = re.compile(rb"<iq type='(result|error)'.*?</iq>", re.DOTALL)


def iq(kind: str, stanza_id: str, body: str, sender: str = OWNER) -> bytes:
    """A request with an element of pubsub."""
    return _iq(kind, stanza_id, f"<pubsub xmlns='{_PUBSUB}'>{body}</pubsub>", sender)


def listing(size: int) -> bytes:
    """A request for the first nodes of the service."""
    page = f"<set xmlns='http://jabber.org/protocol/rsm'><max>{size}</max></set>"
    return _iq("get", "d", f"<query xmlns='http://jabber.org/protocol/disco#items'>{page}</query>", OWNER)


def _iq(kind: str, stanza_id: str, child: str, sender: str) -> bytes:
    return f"<iq type='{kind}' id='{stanza_id}' from='{sender}' to='{DOMAIN}'>{child}</iq>".encode()


def publish(node: str, number: int) -> bytes:
    """A publish of an entry of 1 KB."""
    entry = _ENTRY.format(number)
    return iq("set", f"p{number}", f"<publish node='{node}'><item id='i{number}'>{entry}</item></publish>")


Work = Callable[[Sequence[bytes]], Awaitable[None]]


async def _none(_requests: Sequence[bytes]) -> None:
    """Needs no preparation."""


class PlayedServer:
    """The server of the component, in a thread."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._link: socket.socket | None = None
        self._rest = b""

    def accept(self) -> None:
        """Accepts the component."""
        self._link, _ = self._listener.accept()
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while b"<stream:stream" not in self._rest:
            self._read()
        self._link.sendall(_STREAM.encode())
        while b"</handshake>" not in self._rest:
            self._read()
        self._rest = b""
        self._link.sendall(b"<handshake/>")

    def exchange(self, groups: Sequence[Sequence[bytes]], messages: int = 0) -> None:
        """Sends each group when the answers to the one before it have arrived, and so many messages for each request.

        Raises AssertionError for an error.
        """
        assert self._link is not None
        for group in groups:
            self._link.sendall(b"".join(group))
            while self._rest.count(b"</iq>") < len(group) or self._rest.count(b"</message>") < messages * len(group):
                self._read()
            answers = [match[0] for match in _ANSWER.finditer(self._rest) if match[1] != b"result"]
            assert not answers, answers[:1]
            self._rest = b""

    def _read(self) -> None:
        assert self._link is not None
        data = self._link.recv(1 << 20)
        assert data, "the service has closed the connection"
        self._rest += data

    def close(self) -> None:
        """Ends the link."""
        if self._link is not None:
            self._link.close()
        self._listener.close()


@dataclass(frozen=True, slots=True)
class XmppWork:
    """A running service, and its server."""

    app: App
    server: PlayedServer
    thread: ThreadPoolExecutor

    async def exchange(self, requests: Sequence[bytes], messages: int = 0) -> None:
        """Sends requests in groups."""
        groups = [requests[at : at + GROUP] for at in range(0, len(requests), GROUP)]
        await asyncio.get_running_loop().run_in_executor(self.thread, self.server.exchange, groups, messages)

    async def of(self, requests: Sequence[bytes], messages: int = 0) -> PageWork:
        """The work of one of these requests."""
        return await self._difference(requests, lambda some: self.exchange(some, messages), _none)

    async def of_messages(self, few: Sequence[bytes], many: Sequence[bytes], messages: tuple[int, int]) -> PageWork:
        """The work of messages: what a request takes that causes many more than a request that causes few. `messages`
        are both numbers."""
        counts = []
        for requests, number in zip((few, many), messages, strict=True):
            await self.exchange(requests[:GROUP], number)
            counts.append(await self._counted(requests[GROUP:], lambda some, n=number: self.exchange(some, n), _none))
        return PageWork.of(counts[1] - counts[0], len(many) - GROUP)

    async def of_index(self, requests: Sequence[bytes]) -> PageWork:
        """The work of the filter index for what one of these requests has stored."""
        return await self._difference(requests, lambda _some: self._index(), self.exchange)

    async def _difference(self, requests: Sequence[bytes], work: Work, prepare: Work) -> PageWork:
        first, few = FEW * GROUP, 2 * FEW * GROUP
        assert len(requests) == MANY
        # What is imported and cached at the first use is not counted.
        await self._counted(requests[:first], work, prepare)
        before = await self._counted(requests[first:few], work, prepare)
        after = await self._counted(requests[few:], work, prepare)
        return PageWork.of(after - before, MANY - few - (few - first))

    async def _counted(self, requests: Sequence[bytes], work: Work, prepare: Work) -> Counts:
        store = self.app.service.store
        assert isinstance(store, SqliteStore)
        await prepare(requests)
        # Threads are counted that start meanwhile.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        async with counting(store._connections) as counts:
            await work(requests)
        return counts()

    async def _index(self) -> None:
        while await self.app.service.store.index_some(200):
            pass


@asynccontextmanager
async def xmpp_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[XmppWork]:
    """A service and its server. The filter index is brought forward by the test alone."""
    monkeypatch.setattr("smartfeeds.delivery.indexing.INDEX_REST_S", 3_600.0)
    without_time(monkeypatch)
    server = PlayedServer()
    sections: dict[str, Any] = {
        "component": {"jid": DOMAIN, "secret": "secret", "host": "127.0.0.1", "port": server.port},
        "store": {"url": f"sqlite:///{folder}/feeds.db"},
        "http": {"listen": ""},
        "pubsub": {"creators": ["example.org"]},
    }
    app = App(settings_of(**sections))
    thread = ThreadPoolExecutor(1)
    try:
        accepting = asyncio.get_running_loop().run_in_executor(thread, server.accept)
        await app.start()
        await accepting
        await app.online.wait()
        yield XmppWork(app, server, thread)
    finally:
        await app.stop()
        thread.shutdown()
        server.close()

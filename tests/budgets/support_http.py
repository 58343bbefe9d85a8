"""Counts the work of a page over HTTP: Python calls, modules of the package, SQL statements.

The service runs in the process of the test, with its own threads. A client in a thread that is not counted sends
requests over several connections at once. What is counted is the difference between many requests and few, divided by
the number of the additional ones, so what the service does once, or from time to time, counts for nothing.
"""

import asyncio
import re
import selectors
import socket
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
from lxml import etree

import smartfeeds
from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.token import TokenScope
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import CreateNode, FeedPage, Publish, PullFeed
from smartfeeds.store.sqlite import SqliteStore, SqliteThread

FEED = "comments"
ITEMS = 200
PAGE = 50
IN_FLIGHT = 20  # connections, each with a request
FEW = 100  # requests; three times as many are compared with them
DEAREST = 20  # modules that a failure names
MEASUREMENTS = 3  # of work that exceeds its budget
_PACKAGE = str(Path(smartfeeds.__file__).parent)
DOMAIN = "feeds.example.org"
# A turn of the event loop. Whether a result of a thread comes in the same turn as something else is chance.
_TURN = frozenset(
    function.__code__
    for function in (
        asyncio.BaseEventLoop._run_once,
        asyncio.BaseEventLoop.time,
        asyncio.SelectorEventLoop._process_events,
        selectors.DefaultSelector.select,
    )
)
_LITERAL = re.compile(r"'[^']*'|\b[0-9]+\b")
OWNER = Jid("ann", "example.org", "home")
_TEXT = "Rain in the west, sun in the east. " * 20
ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><author><name>Ann</name></author><category term="reports"></category>'
    '<content type="html">&lt;p&gt;{text}&lt;/p&gt;</content><id>tag:example.org,2026:{number}</id>'
    "<published>2026-01-02T08:00:00Z</published><title>Report {number}</title>"
    "<updated>2026-01-02T08:00:00Z</updated></entry>"
)


@dataclass(slots=True)
class Counts:
    """What requests took together: Python calls by code, calls of C functions by the code that calls them, and the
    texts of SQL statements."""

    calls: Counter[CodeType] = field(default_factory=Counter)
    c_calls: Counter[CodeType] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)

    def __sub__(self, other: "Counts") -> "Counts":
        difference = Counts(Counter(self.calls), Counter(self.c_calls), Counter(self.statements))
        difference.calls.subtract(other.calls)
        difference.c_calls.subtract(other.c_calls)
        difference.statements.subtract(other.statements)
        return difference


@dataclass(frozen=True, slots=True)
class PageWork:
    """The work of one page."""

    calls: float
    c_calls: float
    modules: dict[str, float]  # of the package, with their calls
    statements: dict[str, float]
    all_modules: dict[str, float]

    @classmethod
    def of(cls, counts: Counts, pages: int) -> "PageWork":
        """The work of one of so many pages."""
        each = _by_file(counts.calls, pages)
        short = {name.rpartition("site-packages/")[2].removeprefix(f"{_PACKAGE}/"): n for name, n in each.items()}
        own = {name.removeprefix(f"{_PACKAGE}/"): n for name, n in each.items() if name.startswith(_PACKAGE)}
        # All of them: what a group shares is a part of a statement for each request.
        statements = {text: number / pages for text, number in counts.statements.most_common() if number}
        return cls(sum(each.values()), sum(_by_file(counts.c_calls, pages).values()), own, statements, short)

    @property
    def statement_count(self) -> float:
        """The number of SQL statements."""
        return sum(self.statements.values())

    @property
    def report(self) -> str:
        """The figures with the modules that take most calls, and the statements."""
        dearest = sorted(self.all_modules.items(), key=lambda row: -row[1])[:DEAREST]
        return "\n".join(
            [
                f"it takes {self.calls:.0f} Python calls, {self.c_calls:.0f} C calls, "
                f"{len(self.modules)} modules of the package and "
                f"{self.statement_count:.2f} statements",
                *(f"{number:8.1f} {name}" for name, number in dearest),
                *(f"{number:8.2f} {text}" for text, number in self.statements.items()),
                f"modules: {', '.join(sorted(self.modules))}",
            ]
        )


def _by_file(calls: Counter[CodeType], pages: int) -> dict[str, float]:
    """Calls for one of so many pages, by the file of their code; what less than every second page needs is left out."""
    by_file: Counter[str] = Counter()
    for code, number in calls.items():
        if code not in _TURN:
            by_file[code.co_filename] += number
    return {name: number / pages for name, number in by_file.items() if number >= pages / 2}


class Budget(NamedTuple):
    """The most that a request, or what it causes, may take."""

    calls: int
    c_calls: int
    modules: int
    statements: float

    async def assert_holds(self, measure: Callable[[Path], Awaitable[PageWork]], folder: Path, margin: float) -> None:
        """`measure` takes a folder for its service. `margin` is for other versions of the libraries.

        Other programs of the machine only add work: requests of a group arrive in two pieces, or the event loop needs
        one more iteration. So the work is measured up to three times, and one measurement within the budget suffices.
        """
        for attempt in range(MEASUREMENTS):
            own_folder = folder / str(attempt)
            own_folder.mkdir()
            found = await measure(own_folder)
            if self._holds(found, margin):
                return
        pytest.fail(f"the budget is {self}\n{found.report}")

    def _holds(self, found: PageWork, margin: float) -> bool:
        # Modules have no margin: those of libraries do not count.
        return (
            found.calls <= self.calls * margin
            and found.c_calls <= self.c_calls * margin
            and len(found.modules) <= self.modules
            and found.statement_count <= self.statements * margin
        )


@dataclass(frozen=True, slots=True)
class HttpWork:
    """A running service with a feed, and its client."""

    app: App
    positions: Sequence[str]  # of all items, oldest first
    client: ThreadPoolExecutor

    async def of_page(self, accept: str) -> PageWork:
        """The work of a page of 50 that nobody has requested before, of items that were read before."""
        requests = self._requests(accept)
        await self._send(requests)  # what is imported and cached at the first use is not counted
        few, many = requests[:FEW], [*requests[:FEW]] * 3
        before = await self._counted(few)
        return PageWork.of(await self._counted(many) - before, len(many) - len(few))

    async def of_publishes(self, media_type: str, body: str) -> PageWork:
        """The work of a publish with a token, whose response has the item. `body` has a place for its number.

        Each waits for the one before: how many publishes in flight share a transaction is chance.
        """
        from smartfeeds.features.accounts.tokens import add_token, new_token

        token, text = new_token(OWNER.bare_text, TokenScope.PUBLISH, FEED, "")
        await self.app.service.write(lambda tx, context: add_token(tx, context, token, None))
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {text}\r\nContent-Type: {media_type}\r\n"
        bodies = enumerate(body.format(number=number, text=_TEXT).encode() for number in count())
        requests = (
            f"PUT /entries/{FEED}/p-{number} HTTP/1.1\r\n{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
            for number, data in bodies
        )
        await self._send(
            [*islice(requests, FEW)], None, 1
        )  # what is imported and cached at the first use is not counted
        few = await self._counted([*islice(requests, FEW)], None, 1)
        many = await self._counted([*islice(requests, 3 * FEW)], None, 1)
        return PageWork.of(many - few, 2 * FEW)

    async def of_events(self) -> PageWork:
        """The work of an item that 20 event streams receive, its publishing without a wire included."""
        assert self.app.site is not None
        loop, port = asyncio.get_running_loop(), self.app.site.listener.port
        with ExitStack() as stack:
            streams = await loop.run_in_executor(self.client, _open_streams, stack, port, self.positions[-1])
            numbers = iter(range(ITEMS, 2 * ITEMS))

            async def rounds(count: int) -> Counts:
                async with counting(self.connections) as counts:
                    for number in islice(numbers, count):
                        await publish(self.app, number)
                        await loop.run_in_executor(self.client, _read_event, streams, number)
                return counts()

            await rounds(20)  # what is imported and cached at the first use is not counted
            few = await rounds(20)
            return PageWork.of(await rounds(60) - few, 40)

    @property
    def connections(self) -> Sequence[SqliteThread]:
        """The connections to the database."""
        assert isinstance(self.app.service.store, SqliteStore)
        return self.app.service.store._connections

    def _requests(self, accept: str) -> list[bytes]:
        starts = self.positions[: ITEMS - PAGE]
        head = f"Host: 127.0.0.1\r\nAccept: {accept}\r\n\r\n"
        return [f"GET /feeds/{FEED}/?max={PAGE}&since={start} HTTP/1.1\r\n{head}".encode() for start in starts]

    async def _counted(self, requests: Sequence[bytes], items: int | None = PAGE, in_flight: int = IN_FLIGHT) -> Counts:
        async with counting(self.connections) as counts:
            await self._send(requests, items, in_flight)
        return counts()

    async def _send(self, requests: Sequence[bytes], items: int | None = PAGE, in_flight: int = IN_FLIGHT) -> None:
        assert self.app.site is not None
        port = self.app.site.listener.port
        await asyncio.get_running_loop().run_in_executor(self.client, _exchange, port, requests, items, in_flight)


def without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes batches end by their size alone: counting makes everything slow."""
    monkeypatch.setattr("smartfeeds.xmpp.stream.SLICE_S", 3_600.0)
    monkeypatch.setattr("smartfeeds.xmpp.turns.COSTLY_S", 3_600.0)
    for budget in ("batches.READ_BUDGET_S", "batches.WRITE_BUDGET_S", "sql_store.SLOW_WRITE_S", "sqlite.SLOW_READ_S"):
        monkeypatch.setattr(f"smartfeeds.store.{budget}", 3_600.0)


@asynccontextmanager
async def http_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, base_url: str = "", **sections: Mapping[str, object]
) -> AsyncIterator[HttpWork]:
    """A service with a feed of 200 items of 1 KB, and a client. `sections` are further ones of the configuration."""
    without_time(monkeypatch)
    usual: dict[str, Any] = {
        "component": {"jid": DOMAIN, "link": "off", "secret": "secret"},
        "store": {"url": f"sqlite:///{folder}/feeds.db"},
        "http": {"listen": "127.0.0.1:0", "base_url": base_url},
    }
    app = App(settings_of(**usual, **sections))
    await app.start()
    client = ThreadPoolExecutor(1)
    try:
        await asyncio.get_running_loop().run_in_executor(client, int)  # its thread starts before any thread is counted
        await _fill(app)
        await app.tasks.stop()  # what runs from time to time
        yield HttpWork(app, await _positions(app), client)
    finally:
        client.shutdown()
        await app.stop()


async def _fill(app: App) -> None:
    await app.service.handle(CreateNode(OWNER, DOMAIN, FEED))
    for number in range(ITEMS):
        await publish(app, number)
    while await app.service.store.index_some(ITEMS):
        pass


async def publish(app: App, number: int, node: str = FEED) -> None:
    """Publishes an entry of 1 KB, without a wire."""
    draft = draft_of(etree.fromstring(ENTRY.format(text=_TEXT, number=number)))
    await app.service.handle(Publish(OWNER, DOMAIN, node, f"item-{number}", draft))


async def _positions(app: App) -> list[str]:
    positions: list[str] = []
    for number in range(ITEMS):
        since = positions[-1] if positions else ""
        request = PullFeed(ANONYMOUS, DOMAIN, FEED, page=ResultSetRequest("1", since))
        answer = await app.service.handle(request)
        assert isinstance(answer, FeedPage) and answer.page is not None and answer.page.result_set is not None
        assert answer.page.result_set.last is not None, number
        positions.append(answer.page.result_set.last)
    return positions


@asynccontextmanager
async def counting(connections: Sequence[SqliteThread]) -> AsyncIterator[Callable[[], Counts]]:
    """Counts in the thread of the event loop, in those of the connections, and in threads that start meanwhile."""
    by_thread: list[tuple[defaultdict[CodeType, int], defaultdict[CodeType, int]]] = []
    statements: list[str] = []

    def profile() -> Callable[[FrameType, str, Any], None]:
        calls: defaultdict[CodeType, int] = defaultdict(int)
        c_calls: defaultdict[CodeType, int] = defaultdict(int)
        by_thread.append((calls, c_calls))

        def note(frame: FrameType, event: str, _arg: Any) -> None:
            if event == "call":
                calls[frame.f_code] += 1
            elif event == "c_call":
                c_calls[frame.f_code] += 1

        return note

    def counts() -> Counts:
        # Statements within a statement, such as those of the full-text index, begin with a comment.
        total = Counts(statements=Counter(_LITERAL.sub("?", text) for text in statements if text[:2] != "--"))
        for calls, c_calls in by_thread:
            total.calls.update(calls)
            total.c_calls.update(c_calls)
        return total

    for connection in connections:
        await connection.run(connection.raw.set_trace_callback, statements.append)
        await connection.run(sys.setprofile, profile())
    threading.setprofile(lambda *_event: sys.setprofile(profile()))
    sys.setprofile(profile())
    try:
        yield counts
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        for connection in connections:
            await connection.run(sys.setprofile, None)
            await connection.run(connection.raw.set_trace_callback, None)


def _exchange(port: int, requests: Sequence[bytes], items: int | None, in_flight: int) -> None:
    """Sends requests in rounds, one over each connection, and waits for the responses of a round before the next one.

    `items` as in `receive`. Raises AssertionError for an error.
    """
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(in_flight)]
        for start in range(0, len(requests), in_flight):
            part = requests[start : start + in_flight]
            for connection, request in zip(connections, part, strict=False):
                connection.sendall(request)
            for connection, _ in zip(connections, part, strict=False):
                receive(connection, items)


def _open_streams(stack: ExitStack, port: int, since: str) -> list[socket.socket]:
    """Returns event streams of what is published after a position."""
    streams = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(IN_FLIGHT)]
    for stream in streams:
        head = "Host: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        stream.sendall(f"GET /feeds/{FEED}/?since={since} HTTP/1.1\r\n{head}".encode())
        assert _read(stream).startswith(b"HTTP/1.1 200 ")
    return streams


def _read_event(streams: Sequence[socket.socket], number: int) -> None:
    """Reads an item from all streams."""
    for stream in streams:
        data = b""
        while f"item-{number}".encode() not in data or not data.endswith(b"\n\n\r\n"):
            data += _read(stream)


def receive(connection: socket.socket, items: int | None) -> None:
    """Reads a response: a page of so many items, or that to a publish (None)."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _read(connection)
    head, data = data[:end].decode(), data[end + 4 :]
    assert head.startswith("HTTP/1.1 201 " if items is None else "HTTP/1.1 200 "), head
    length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
    while len(data) < length:
        data += _read(connection)
    assert len(data) == length
    assert items is None or data.count(b"item-") == items, data[:500]


def _read(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 20)
    assert data, "the service has closed the connection"
    return data

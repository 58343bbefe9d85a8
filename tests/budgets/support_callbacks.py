"""Counts the work of what is sent to callbacks: Python calls, modules of the package, SQL statements.

A thread that is not counted plays the subscribers. Each has a host of its own on this machine. It closes its connection
after a request, because most feeds change too rarely to use it again.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, parse_headers
from pathlib import Path
from threading import Thread
from typing import Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from budgets.support_http import DOMAIN, OWNER, Counts, HttpWork, PageWork, counting, http_work, publish
from smartfeeds.features.callbacks.last_deliveries import DeliveryResults
from smartfeeds.service.requests import CreateNode
from support.waiting import block_until

FEW, MANY = 2, 22  # callbacks of a feed
ROUNDS = 20  # items that are published
SITE = "http://feeds.example.org"
_FORM = "application/x-www-form-urlencoded"


class PlayedSubscribers:
    """Answers each request, and confirms what it asks. `posts` is the number of deliveries."""

    def __init__(self) -> None:
        self.posts = 0
        self._listener = socket.create_server(("0.0.0.0", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as stream:
                method, target, _ = stream.readline().decode().split()
                stream.read(int(parse_headers(stream)["Content-Length"] or 0))
                query = parse_qs(urlsplit(target).query)
                body = "".join(query.get("hub.challenge", query.get("challenge", []))).encode()
                head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                self.posts += method == "POST"
                if target == "/end":
                    return

    def close(self) -> None:
        """Ends the thread."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"GET /end HTTP/1.1\r\n\r\n")
        self._thread.join()
        self._listener.close()


class HasResults(Protocol):
    """The hub or the cloud."""

    results: DeliveryResults


@dataclass(frozen=True, slots=True)
class Subscription:
    """A request that subscribes a callback: the path of the service, and the form."""

    path: str
    form: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CallbackWork:
    """A running service and its subscribers."""

    http: HttpWork
    subscribers: PlayedSubscribers
    server: HasResults

    async def of_delivery(self, subscription: Callable[[str, str, int], Subscription]) -> PageWork:
        """The work of one more callback for an item. `subscription` returns the subscription of a feed for a host and a
        port."""
        counts = []
        for node, callbacks in (("few", FEW), ("many", MANY)):
            await self.http.app.service.handle(CreateNode(OWNER, DOMAIN, node))
            for number in range(callbacks):
                wanted = subscription(f"{SITE}/feeds/{node}", f"127.0.1.{number + 1}", self.subscribers.port)
                await self._in_thread(partial(self._subscribe, wanted))
            counts.append(await self._counted(node, callbacks))
        return PageWork.of(counts[1] - counts[0], (MANY - FEW) * ROUNDS)

    def _subscribe(self, wanted: Subscription) -> None:
        assert self.http.app.site is not None
        client = HTTPConnection("127.0.0.1", self.http.app.site.listener.port)
        client.request("POST", wanted.path, urlencode(wanted.form), {"Content-Type": _FORM})
        response = client.getresponse()
        body = response.read()
        assert response.status == HTTPStatus.NO_CONTENT or b'success="true"' in body, body
        client.close()

    async def _counted(self, node: str, callbacks: int) -> Counts:
        await self._deliver(node, callbacks, 0)  # what is imported and cached at the first use is not counted
        async with counting(self.http.connections) as counts:
            for number in range(1, ROUNDS + 1):
                await self._deliver(node, callbacks, number)
        return counts()

    async def _deliver(self, node: str, callbacks: int, number: int) -> None:
        """Publishes an item, and returns when its deliveries are done, with their marks and results stored."""
        posts = self.subscribers.posts + callbacks
        await publish(self.http.app, number, node)
        await self._in_thread(lambda: block_until(lambda: self.subscribers.posts == posts, "the deliveries"))
        await self.http.app.dispatcher.idle()
        await self.http.app.dispatcher.save_marks()
        await self.server.results.save()

    async def _in_thread(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self.http.client, work)


@asynccontextmanager
async def callback_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, server: type[HasResults]
) -> AsyncIterator[CallbackWork]:
    """A service with a hub and a cloud, and their subscribers. Marks and results are stored by the test alone, and all
    deliveries of an item start together: otherwise the speed of the machine decides how many of them share a read.
    """
    monkeypatch.setattr("smartfeeds.features.callbacks.consumers.STARTS", MANY)
    monkeypatch.setattr("smartfeeds.delivery.dispatcher.MARKS_FLUSH_S", 3_600.0)
    monkeypatch.setattr("smartfeeds.features.callbacks.last_deliveries.FLUSH_S", 3_600.0)
    monkeypatch.setattr("smartfeeds.delivery.lane.SLOW_S", 3_600.0)
    settings = {"allowed_networks": ["127.0.0.0/8"], "requests_per_minute": 10_000}
    subscribers = PlayedSubscribers()
    try:
        async with http_work(folder, monkeypatch, base_url=SITE, webhooks=settings) as http:
            yield CallbackWork(http, subscribers, http.app.parts.get(server))
    finally:
        subscribers.close()

"""Counts the work of pulls that are held until an item comes: Python calls, modules of the package, SQL statements.

The requests of a round are sent while the event loop waits for it, so all of them come in one turn of the loop. What is
counted is the difference between many pulls and few.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, islice

from budgets.support_http import DOMAIN, FEED, ITEMS, Counts, HttpWork, PageWork, counting, publish, receive
from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.http.feeds import FeedRequest, FeedUpdate
from smartfeeds.http.waiting import HeldPulls
from smartfeeds.service.requests import FeedPage, PullFeed
from support.waiting import block_until

FEW, MANY = 2, 22  # pulls
ROUNDS = 20  # items that are published


@dataclass(frozen=True, slots=True)
class HeldWork:
    """The pulls of a feed, which get items of the feed of `http`. `query` returns the parameters of each pull."""

    http: HttpWork
    query: Callable[[int], str]
    feed: str = FEED
    numbers: Iterator[int] = field(default_factory=lambda: count(ITEMS))

    async def of_answered(self) -> PageWork:
        """The work of one more pull that each item answers, its request included."""
        return await self._of_one_more(self._round_of_answered)

    async def of_unanswered(self) -> PageWork:
        """The work of one more pull that no item answers."""
        return await self._of_one_more(self._round_of_unanswered)

    async def _of_one_more(self, work: Callable[[Sequence[socket.socket], int], Awaitable[None]]) -> PageWork:
        few, many = [await self._counted(work, pulls) for pulls in (FEW, MANY)]
        return PageWork.of(many - few, (MANY - FEW) * ROUNDS)

    async def _counted(self, work: Callable[[Sequence[socket.socket], int], Awaitable[None]], pulls: int) -> Counts:
        with ExitStack() as stack:
            connections = [
                stack.enter_context(socket.create_connection(("127.0.0.1", self._port))) for _ in range(pulls)
            ]
            await work(connections, next(self.numbers))  # what is imported and cached at the first use is not counted
            async with counting(self.http.connections) as counts:
                for number in islice(self.numbers, ROUNDS):
                    await work(connections, number)
            found = counts()
        await self._in_thread(lambda: block_until(lambda: not self._pulls.held, "the end of the pulls"))
        return found

    async def _round_of_answered(self, connections: Sequence[socket.socket], number: int) -> None:
        await self._hold(connections)
        await publish(self.http.app, number)
        await self._in_thread(lambda: [receive(connection, 1) for connection in connections])

    async def _round_of_unanswered(self, connections: Sequence[socket.socket], number: int) -> None:
        if not self._pulls.held:
            await self._hold(connections)
        await publish(self.http.app, number)
        await self._in_thread(lambda: block_until(self._is_quiet, "the end of the look at the pulls"))

    async def _hold(self, connections: Sequence[socket.socket]) -> None:
        newest = await self._newest()
        self.http.client.submit(self._ask, connections, newest).result()
        await self._in_thread(lambda: block_until(lambda: self._pulls.held == len(connections), "the held pulls"))

    def _ask(self, connections: Sequence[socket.socket], since: str) -> None:
        head = "Host: 127.0.0.1\r\nAccept: application/json\r\n\r\n"
        for number, connection in enumerate(connections):
            query = f"since={since}&{self.query(number)}"
            connection.sendall(f"GET /feeds/{self.feed}/?{query} HTTP/1.1\r\n{head}".encode())

    async def _newest(self) -> str:
        """The position behind all items."""
        request = PullFeed(ANONYMOUS, DOMAIN, FEED, page=ResultSetRequest("1", None, ""))
        answer = await self.http.app.service.handle(request)
        assert isinstance(answer, FeedPage) and answer.page is not None and answer.page.result_set is not None
        return answer.page.result_set.last or ""

    def _is_quiet(self) -> bool:
        return all(feed.task is None for feed in self._pulls._feeds.values())

    async def _in_thread(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self.http.client, work)

    @property
    def _pulls(self) -> HeldPulls[FeedRequest, FeedUpdate]:
        assert self.http.app.site is not None
        return self.http.app.site.feeds.waiting

    @property
    def _port(self) -> int:
        assert self.http.app.site is not None
        return self.http.app.site.listener.port

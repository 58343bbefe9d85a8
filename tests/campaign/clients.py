"""The clients of a campaign: writers and followers over HTTP, and walks of whole feeds. Each writes the history.

A writer does not repeat a request without an answer: the next write is another one, and the checker decides whether the
first one may be visible.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import aiohttp

from campaign.checker import RECOVERY_S
from campaign.history import DELETED, Event, History, Kind, Shown, Status, digest_of
from campaign.service import NODE
from smartfeeds.core.position import parse_cursor
from smartfeeds.core.times import parse_time

REQUEST_S = 20.0
CATCH_UP_S = 120.0
POLL_TIMEOUT_S = 1
PAGE_ITEMS = 50
WALK_ITEMS = 500
SHARED_ITEMS = 5  # that all writers change
WRITES_TO_LOSE = 20  # before each fault of a negative control: on a slow machine a short life may have no write at all
_LOST = (aiohttp.ClientError, TimeoutError, ConnectionError)


class Endpoint(Protocol):
    """What clients talk to: one service, or any process of several. `label` distinguishes services of one history.

    Clients wait until `up` is set.
    """

    token: str
    label: str
    up: asyncio.Event

    @property
    def url(self) -> str:
        """The address for the next request."""
        ...


def new_session() -> aiohttp.ClientSession:
    """A session for all clients of a run."""
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(REQUEST_S), connector=aiohttp.TCPConnector(limit=0, force_close=True)
    )
    # aiohttp repeats a PUT after a lost connection. The second answer would say nothing about the first request.
    session._retry_connection = False
    return session


def status_of(code: int) -> Status:
    """The outcome that a status code means. After an error of the service the write may be stored."""
    if code < 300:
        return Status.OK
    return Status.FAIL if code < 500 else Status.UNKNOWN


class Writer:
    """Publishes, edits and retracts items, one request at a time."""

    shares = True  # whether it edits items that other writers edit, too

    def __init__(
        self,
        service: Endpoint,
        history: History,
        session: aiohttp.ClientSession,
        name: str,
        seed: int,
        node: str = NODE,
    ) -> None:
        self.service = service
        self.name = name
        self.node = node
        self._history = history
        self._session = session
        self._chance = random.Random(f"{seed} {name}")
        self._number = 0
        self._live: list[str] = []
        self.padding = "x" * self._chance.randrange(2_000)

    async def run(self, stop: asyncio.Event, pause_s: float = 0.0) -> None:
        """Writes until `stop` is set, with a pause between two writes."""
        while not stop.is_set():
            await self.service.up.wait()
            await self.step()
            await asyncio.sleep(pause_s)

    async def step(self) -> Status:
        """Sends one request. Returns its outcome."""
        chance = self._chance.random()
        if chance < 0.5 or not self._live:
            self._number += 1
            item = f"{self.name}-{self._number}"
            self._live.append(item)
            return await self.publish(item)
        if chance < 0.6 and self.shares:
            return await self.publish(f"shared-{self._chance.randrange(SHARED_ITEMS)}")
        if chance < 0.82:
            return await self.publish(self._chance.choice(self._live))
        if chance < 0.87:
            # The service refuses this write if the item exists, and nobody may ever see it.
            return await self.publish(self._chance.choice(self._live), {"If-None-Match": "*"})
        return await self.retract(self._live.pop(self._chance.randrange(len(self._live))))

    async def publish(self, item: str, headers: Mapping[str, str] | None = None, label: str = "") -> Status:
        """Publishes a version that nobody has published before."""
        self._number += 1
        title, content = f"{item} {self.name} {self._number}", self.padding
        node = label or self.node + self.service.label
        call = self._history.invoke(self.name, Kind.PUBLISH, node, item, digest_of(title, content))
        return await self._send(call, "PUT", {"title": title, "content": content}, headers)

    async def retract(self, item: str) -> Status:
        """Retracts an item."""
        node = self.node + self.service.label
        return await self._send(self._history.invoke(self.name, Kind.RETRACT, node, item, DELETED), "DELETE")

    async def _send(
        self, call: Event, method: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Status:
        url = f"{self.service.url}/entries/{self.node}/{call.item}"
        own = {"Authorization": f"Bearer {self.service.token}", "Accept": "application/json", **(headers or {})}
        try:
            async with self._session.request(method, url, json=body, headers=own) as answer:
                await answer.read()
                status = status_of(answer.status)
                key_us = _key_of_tag(answer.headers.get("ETag", "")) if status is Status.OK else 0
        except aiohttp.ClientConnectorError:
            status, key_us = Status.FAIL, 0  # no connection, so nothing was sent
            await asyncio.sleep(0.01)
        except _LOST:
            status, key_us = Status.UNKNOWN, 0
        self._history.complete(call, status, key_us=key_us)
        return status


def _key_of_tag(tag: str) -> int:
    """The key in an ETag such as "1.1795465266631640.json"; 0 if there is none."""
    parts = tag.strip('"').split(".")
    return int(parts[1]) if len(parts) == 3 else 0


class Follower:
    """Pulls a feed from its position, and continues at its cursor after every fault."""

    def __init__(
        self, service: Endpoint, history: History, session: aiohttp.ClientSession, name: str, node: str = NODE
    ) -> None:
        self.service = service
        self.name = name
        self._node = node
        self._history = history
        self._session = session
        self._since = "time:0"
        self._key_us = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Pulls until `stop` is set."""
        while not stop.is_set():
            await self.service.up.wait()
            await self.pull(POLL_TIMEOUT_S)

    async def catch_up(self) -> None:
        """Pulls until there is no more. Raises TimeoutError if the service does not answer in `CATCH_UP_S`."""
        async with asyncio.timeout(CATCH_UP_S):
            while not await self.pull(0):
                pass

    async def pull(self, timeout_s: int) -> bool:
        """Reads one page. Returns whether it is the last one now."""
        call = self._history.invoke(self.name, Kind.PAGE, self._node + self.service.label)
        query = {"order": "modified", "since": self._since, "timeout": str(timeout_s), "max": str(PAGE_ITEMS)}
        try:
            page = await read_page(self._session, self.service, self._node, query)
        except _LOST:
            self._history.complete(call, Status.UNKNOWN)
            await asyncio.sleep(0.01)
            return False
        previous_us = self._key_us
        if page["items"]:
            self._since, self._key_us = f"cursor:{page['last_cursor']}", _key_of_cursor(page["last_cursor"])
        complete = "next" not in page
        self._history.complete(
            call,
            Status.OK,
            shown=_shown(page),
            previous_us=previous_us,
            key_us=self._key_us,
            complete=complete,
        )
        return complete


async def writes_again(history: History, count: int = 1) -> None:
    """Returns when so many writes that began after this call are acknowledged, or after `RECOVERY_S`, which a rule
    reports.
    """
    start = len(history.events)
    for _ in range(int(RECOVERY_S / 0.05)):
        new = history.events[start:]
        begun = {event.op for event in new if event.status is Status.INVOKE and event.kind is Kind.PUBLISH}
        if sum(event.status is Status.OK and event.op in begun for event in new) >= count:
            return
        await asyncio.sleep(0.05)


async def walk(
    service: Endpoint, history: History, session: aiohttp.ClientSession, node: str = NODE, only: str = ""
) -> list[Shown]:
    """Reads the whole feed in both orders while nobody writes. Returns the items in modified order.

    `only` selects the items whose ids begin with it; then their number is not compared with the total.
    """
    modified: list[Shown] = []
    for order in ("created", "modified"):
        call = history.invoke("walk", Kind.WALK, node + service.label)
        shown: list[Shown] = []
        query = {"order": order, "since": "time:0", "timeout": "0", "max": str(WALK_ITEMS)}
        while True:
            page = await read_page(session, service, node, query)
            shown += [item for item in _shown(page) if item.item.startswith(only)]
            if "next" not in page:
                break
            query["since"] = f"cursor:{page['last_cursor']}"
        key_us = shown[-1].key_us if shown else 0
        read = {"shown": tuple(shown), "total": -1 if only else page["totalItems"], "key_us": key_us, "complete": True}
        history.complete(call, Status.OK, **read, created=order == "created")
        modified = shown
    return modified


async def read_page(
    session: aiohttp.ClientSession, service: Endpoint, node: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """One page of a feed as JSON."""
    headers = {"Accept": "application/json", "Authorization": f"Bearer {service.token}"}
    async with session.get(f"{service.url}/feeds/{node}/", params=query, headers=headers) as answer:
        answer.raise_for_status()
        page: dict[str, Any] = await answer.json(content_type=None)
        return page


def _shown(page: Mapping[str, Any]) -> tuple[Shown, ...]:
    return tuple(map(shown_of, page["items"]))


def shown_of(item: Mapping[str, Any]) -> Shown:
    """An item of a page."""
    deleted = item.get("deleted")
    digest = DELETED if deleted else digest_of(item["title"], item["object"].get("content", ""))
    return Shown(item["id"], digest, parse_time(item["updated"]) or 0)


def _key_of_cursor(text: str) -> int:
    cursor = parse_cursor(text)
    assert cursor is not None, text
    return cursor.key_us


@asynccontextmanager
async def load_on(
    service: Endpoint,
    history: History,
    session: aiohttp.ClientSession,
    seed: int,
    *,
    writers: int = 4,
    followers: int = 2,
    nodes: Sequence[str] = (NODE,),
    pause_s: float = 0.0,
) -> AsyncIterator[list[Follower]]:
    """Writers and followers work until the block ends; then their last requests are answered.

    They share the nodes: the n-th of them has the n-th node, and so on from the first node again. A writer waits for
    `pause_s` between two writes.
    """
    stop = asyncio.Event()
    reading = [
        Follower(service, history, session, f"f{number}", nodes[number % len(nodes)]) for number in range(followers)
    ]
    writing = [
        Writer(service, history, session, f"w{number}", seed, nodes[number % len(nodes)]) for number in range(writers)
    ]
    async with asyncio.TaskGroup() as group:
        # If the block fails, the group cancels the clients.
        for follower in reading:
            group.create_task(follower.run(stop))
        for writer in writing:
            group.create_task(writer.run(stop, pause_s))
        yield reading
        stop.set()

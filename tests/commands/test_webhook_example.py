"""The example deliverer of the contributor's guide, against a real HTTP server and over a database that is reopened."""

import asyncio
import importlib.util
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.consumers import Consumer, Failure
from smartfeeds.core.view import Order
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition, RetryAfter
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.formats.atom import read_traits
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.system import now_us
from support.waiting import HANG_S
from support.world import draft, entry, jid

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "webhook.py"
SERVICE, OWNER = "feeds.example.org", "owner@example.org"


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("webhook", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Receiver:
    """A web server that keeps the ids that it accepted. `answers` are the status codes of the next requests."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.answers: list[int] = []
        self.retry_after = "3600"
        self.ids: list[str] = []
        self.requests = 0
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/hook", self._post)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _post(self, request: web.Request) -> web.Response:
        page: dict[str, Any] = await request.json()
        status = self.answers.pop(0) if self.answers else 204
        if status == 204:
            assert page["feed"] == "news" and page["cursor"] and all("<entry" in item["xml"] for item in page["items"])
            self.ids += [item["id"] for item in page["items"]]
        async with self._changed:
            self.requests += 1
            self._changed.notify_all()
        return web.Response(status=status, headers={"Retry-After": self.retry_after} if status == 503 else {})

    async def until(self, ids: str) -> None:
        """Waits until exactly these items have been accepted, in this order."""
        async with asyncio.timeout(HANG_S), self._changed:
            await self._changed.wait_for(lambda: len(self.ids) >= len(ids.split()))
        assert self.ids == ids.split()

    async def until_asked(self, requests: int) -> None:
        """Waits for so many requests in all."""
        async with asyncio.timeout(HANG_S), self._changed:
            await self._changed.wait_for(lambda: self.requests >= requests)


class Process:
    """The service with its webhooks, as one process runs it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def start(self) -> None:
        self.service = FeedService(
            SqliteStore(self.path, read_traits),
            Policy(SERVICE),
            clock=now_us,
            new_id=lambda: "unused",
            on_change=lambda node_nos: self.dispatcher.wake(node_nos),
        )
        await self.service.store.open()
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG_S))
        self.dispatcher = Dispatcher(self.service, DeliveryTiming(now_us, lambda: 0.0))
        module = load_example()
        self.webhooks = module.Webhooks(self.service, self.session)
        self.dispatcher.register(module.KIND, ConsumerKind(self.webhooks, backoff=Backoff(0.02, 0.02)))
        await self.webhooks.start(self.dispatcher)

    async def stop(self) -> None:
        await self.dispatcher.stop()
        await self.session.close()
        await self.service.store.close()

    async def publish(self, ids: str) -> None:
        for item_id in ids.split():
            await self.service.handle(r.Publish(jid(OWNER), SERVICE, "news", item_id, draft(entry(item_id)), None))

    async def failed(self) -> None:
        """Waits until a delivery has failed."""
        async with asyncio.timeout(HANG_S):
            while not self.dispatcher.readings()[0].failed:
                await self.dispatcher.idle()
                await asyncio.sleep(0)

    async def rows(self) -> list[tuple[str, str]]:
        """The stored consumers and their errors."""
        await self.dispatcher.idle()
        await self.dispatcher.save_marks()
        rows = await self.service.read(lambda tx, _context: tx.consumers((0, "", ""), 9))
        return [(row.consumer.name, row.wait.error if isinstance(row.wait, Failure) else "") for row in rows]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def process(tmp_path: Path, receiver: Receiver) -> AsyncIterator[Process]:
    made = Process(tmp_path / "feeds.db")
    await made.start()
    await made.service.handle(r.CreateNode(jid(OWNER), SERVICE, "news", None))
    await made.webhooks.follow(made.dispatcher, 1, receiver.url)
    yield made
    await made.stop()


def test_page_shows_the_whole_example_in_less_than_60_lines() -> None:
    example = EXAMPLE.read_text()
    assert f"```python\n{example}```" in (ROOT / "docs" / "contributing.md").read_text()
    assert len(example.splitlines()) < 60


async def test_changes_are_posted_in_order(process: Process, receiver: Receiver) -> None:
    ids = " ".join(f"i{number}" for number in range(120))
    await process.publish(ids)
    await receiver.until(ids)


async def test_receiver_that_fails_gets_everything_once_it_works_again(process: Process, receiver: Receiver) -> None:
    receiver.answers = [500, 502, 500]
    await process.publish("a b c")
    await receiver.until("a b c")
    await process.publish("d")
    await receiver.until("a b c d")
    assert await process.rows() == [(f"webhook:{receiver.url}", "")]


async def test_restart_goes_on_behind_what_was_delivered(process: Process, receiver: Receiver) -> None:
    """The receiver is away while the service ends, and comes back when it runs again."""
    await process.publish("a b")
    await receiver.until("a b")
    await receiver.stop()
    await process.publish("c")
    await process.failed()
    assert "the receiver cannot be reached" in (await process.rows())[0][1]
    await process.stop()
    await process.start()
    await process.publish("d")
    await receiver.start()
    await receiver.until("a b c d")


async def test_pause_that_the_receiver_asks_for_is_kept_over_a_restart(process: Process, receiver: Receiver) -> None:
    receiver.answers = [503]
    await process.publish("a")
    await receiver.until_asked(1)
    assert await process.rows() == [(f"webhook:{receiver.url}", "the receiver answers 503")]
    await process.stop()
    await process.start()
    await process.publish("b")
    await process.dispatcher.idle()
    consumer = Consumer(1, f"webhook:{receiver.url}")
    failure = process.dispatcher.failure(consumer)
    assert receiver.requests == 1
    assert failure is not None and failure.next_us is not None and failure.next_us - now_us() > 3_000_000_000
    process.dispatcher.hurry(consumer)
    await receiver.until("a b")


@pytest.mark.parametrize(("retry_after", "pause_s"), [("60", 60.0), ("²", None), ("", None)])
async def test_pause_that_cannot_be_read_leaves_the_back_off_of_the_mechanism(
    process: Process, receiver: Receiver, retry_after: str, pause_s: float | None
) -> None:
    """`"²".isdigit()` is true, but it is not a number."""
    await process.dispatcher.pause("webhook")
    await process.publish("a")
    receiver.answers, receiver.retry_after = [503], retry_after
    outcome = await process.webhooks.deliver(Consumer(1, f"webhook:{receiver.url}"), ConsumerPosition())
    assert outcome == RetryAfter("the receiver answers 503", pause_s)


async def test_page_that_is_too_large_is_passed_over(process: Process, receiver: Receiver) -> None:
    receiver.answers = [413]
    await process.publish("a")
    await receiver.until_asked(1)
    await process.dispatcher.idle()
    await process.publish("b")
    await receiver.until("b")


async def test_receiver_that_is_gone_is_removed(process: Process, receiver: Receiver) -> None:
    receiver.answers = [410]
    await process.publish("a")
    await receiver.until_asked(1)
    assert await process.rows() == []
    await process.publish("b")
    assert await process.rows() == [] and receiver.requests == 1
    assert await process.service.read(lambda tx, _context: tx.mark(1, Order.MODIFIED, "webhook:")) is None

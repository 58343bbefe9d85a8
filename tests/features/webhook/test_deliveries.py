"""Deliveries to webhooks, against a real HTTP server and over a database that is reopened."""

import asyncio
import hashlib
import hmac
import json
import socket
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.backoff import Backoff
from smartfeeds.core.consumers import Consumer, Failure
from smartfeeds.core.model import Node
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition, RetryAfter
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.features.webhook import messages, requests, webhooks
from smartfeeds.features.webhook.settings import KIND, Webhook, WebhookSettings
from smartfeeds.features.webhook.webhooks import GIVE_UP_S, Webhooks, make_clients
from smartfeeds.formats.atom import read_traits
from smartfeeds.service import requests as r
from smartfeeds.service.consumers import ConsumerState
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.sqlite import SqliteStore
from support.waiting import HANG_S
from support.world import draft, entry, jid

SERVICE, OWNER = "feeds.example.org", "owner@example.org"
NAME = "webhook:hook"


class Receiver:
    """A web server that keeps the messages that it accepted. `answers` are the status codes of the next requests;
    `refuse` returns the status for a body that it does not accept, 0 for one that it does.
    """

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook?key=s3cret"
        self.answers: list[int] = []
        self.refuse: Callable[[dict[str, Any]], int] = lambda _body: 0
        self.retry_after = "3600"
        self.bodies: list[dict[str, Any]] = []
        self.raw: list[tuple[bytes, dict[str, str]]] = []
        self.requests = 0
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items of all messages."""
        return [item for body in self.bodies for item in body["items"]]

    @property
    def ids(self) -> list[str]:
        """Their ids; a deleted one has a minus sign, one that left the filter a tilde."""
        return [("~" if item.get("left") else "-" if item.get("deleted") else "") + item["id"] for item in self.items]

    async def start(self) -> None:
        app = web.Application(client_max_size=10_000_000)
        app.router.add_post("/hook", self._post)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _post(self, request: web.Request) -> web.Response:
        raw = await request.read()
        body = json.loads(raw)
        status = (self.answers.pop(0) if self.answers else self.refuse(body)) or 204
        if status == 204:
            self.bodies.append(body)
            self.raw.append((raw, dict(request.headers)))
        async with self._changed:
            self.requests += 1
            self._changed.notify_all()
        return web.Response(status=status, headers={"Retry-After": self.retry_after} if status in (503, 429) else {})

    async def until(self, ids: str) -> None:
        """Waits until exactly these items have been accepted, in this order."""
        async with asyncio.timeout(HANG_S), self._changed:
            await self._changed.wait_for(lambda: len(self.ids) >= len(ids.split()))
        assert self.ids == ids.split()

    async def until_asked(self, count: int) -> None:
        """Waits for so many requests in all."""
        async with asyncio.timeout(HANG_S), self._changed:
            await self._changed.wait_for(lambda: self.requests >= count)


class Process:
    """The service with its webhooks, as one process runs it. `settings` are those of the webhook."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.settings = {"name": "hook", "node": "news", "allow_private": True, **settings}
        self.now_us = 1_800_000_000_000_000

    @property
    def webhook(self) -> Webhook:
        return WebhookSettings(**self.settings).to_webhook()

    async def start(self) -> None:
        self.service = FeedService(
            SqliteStore(self.path, read_traits),
            Policy(SERVICE),
            clock=self._clock,
            new_id=lambda: "unused",
            on_change=lambda node_nos: self.dispatcher.wake(node_nos),
        )
        await self.service.store.open()
        self.clients = make_clients("")
        for client in self.clients:
            await client.__aenter__()
        self.dispatcher = Dispatcher(self.service, DeliveryTiming(self._clock, lambda: 0.0))
        self.webhooks = Webhooks(self.service, self.dispatcher, [self.webhook], self.clients, "https://feeds.example")
        await self.webhooks.start()

    async def stop(self) -> None:
        await self.dispatcher.stop()
        for client in self.clients:
            await client.__aexit__(None, None, None)
        await self.service.store.close()

    async def create(self, node: str = "news") -> None:
        await self.service.handle(r.CreateNode(jid(OWNER), SERVICE, node, None))

    async def publish(self, ids: str, node: str = "news", **content: Any) -> None:
        for item_id in ids.split():
            await self.service.handle(
                r.Publish(jid(OWNER), SERVICE, node, item_id, draft(entry(item_id, **content)), None)
            )

    async def node(self) -> Node:
        node = await self.service.read(lambda tx, _context: tx.node("news"))
        assert node is not None
        return node

    async def retract(self, item_id: str) -> None:
        await self.service.handle(r.Retract(jid(OWNER), SERVICE, "news", item_id))

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

    def _clock(self) -> int:
        self.now_us += 1
        return self.now_us


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses before repetitions are short."""

    def kind(deliverer: Webhooks, **rules: Any) -> ConsumerKind:
        return ConsumerKind(deliverer, **rules, backoff=Backoff(0.02, 0.02))

    monkeypatch.setattr(webhooks, "ConsumerKind", kind)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.stop()


Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path, receiver: Receiver) -> AsyncIterator[Start]:
    """Starts a process with the settings of a webhook; its node exists already, unless `created` is false."""
    processes: list[Process] = []

    async def begin(*, created: bool = True, **settings: Any) -> Process:
        process = Process(tmp_path / "feeds.db", **{"url": receiver.url, **settings})
        processes.append(process)
        await process.start()
        if created:
            await process.create()
            await process.stop()
            await process.start()
        return process

    yield begin
    for process in processes:
        await process.stop()


async def test_running_service_delivers(receiver: Receiver, tmp_path: Path) -> None:
    """As `smartfeeds run` has it: without HTTP of its own, and with a node that is there before it starts."""
    section = {"url": receiver.url, "node": "news", "name": "hook", "allow_private": True, "secret": "hush"}
    settings = settings_of(
        component={"jid": SERVICE, "secret": "x", "link": "off"},
        store={"url": f"sqlite:///{tmp_path}/feeds.db"},
        http={"listen": ""},
        webhook=[section],
    )
    for ids in ("", "a b"):
        app = App(settings)
        await app.start()
        try:
            if not ids:
                await app.service.handle(r.CreateNode(jid(OWNER), SERVICE, "news", None))
            for item_id in ids.split():
                await app.service.handle(r.Publish(jid(OWNER), SERVICE, "news", item_id, draft(entry(item_id)), None))
            await receiver.until(ids)
        finally:
            await app.stop()
    assert "url" not in receiver.bodies[0] and "X-Hub-Signature-256" in receiver.raw[0][1]


async def test_changes_are_posted_in_order_and_each_names_the_one_before_it(start: Start, receiver: Receiver) -> None:
    """[SF-044] [SF-049] The chain of cursors has no gap, also between messages."""
    process = await start()
    ids = " ".join(f"i{number}" for number in range(120))
    await process.publish(ids)
    await receiver.until(ids)

    for body in receiver.bodies:
        assert (body["webhook"], body["feed"], body["filter"], body["url"]) == (
            "hook",
            "news",
            "",
            "https://feeds.example/feeds/news/",
        )
        assert (body["count"], body["items"][0]["previous_cursor"]) == (len(body["items"]), body["previous_cursor"])
        assert body["items"][-1]["cursor"] == body["last_cursor"]
    assert receiver.bodies[0]["previous_cursor"] == ""
    assert all(one["cursor"] == other["previous_cursor"] for one, other in pairwise(receiver.items))


async def test_items_are_those_of_a_pull(start: Start, receiver: Receiver) -> None:
    """[SF-065] A deletion is a tombstone. The cursor is one from which a pull continues."""
    process = await start()
    await process.publish("a b", content="Some words")
    await process.retract("a")
    await receiver.until("a b -a")

    first = receiver.items[0]
    assert first["object"]["displayName"] == "a" if "object" in first else first["title"] == "a"
    since = f"cursor:{receiver.items[1]['cursor']}"
    page = await process.service.handle(
        r.Pull(jid(OWNER), SERVICE, "news?order=modified", page=ResultSetRequest("9", since, None))
    )
    assert [item.id for item in page.items] == ["a"]


async def test_items_from_before_the_webhook_are_not_sent(start: Start, receiver: Receiver) -> None:
    process = await start(created=False)
    await process.create()
    await process.publish("old")
    await process.stop()
    await process.start()
    await process.publish("new")
    await receiver.until("new")
    assert receiver.bodies[0]["previous_cursor"] != ""


async def test_node_that_is_created_later_is_sent_from_its_first_item(start: Start, receiver: Receiver) -> None:
    process = await start(created=False)
    await process.create()
    await process.publish("a")
    assert receiver.requests == 0
    await process.webhooks.look()
    await receiver.until("a")
    await process.webhooks.look()
    await process.publish("b")
    await receiver.until("a b")


async def test_look_before_the_start_does_nothing(start: Start, receiver: Receiver) -> None:
    """The looks begin before the features, and an existing feed would be sent from its first item."""
    process = await start()
    await process.publish("a")
    await receiver.until("a")
    early = Webhooks(
        process.service,
        Dispatcher(process.service, DeliveryTiming(process._clock, lambda: 0.0)),
        [WebhookSettings(**{**process.settings, "name": "other"}).to_webhook()],
        process.clients,
        "",
    )
    await early.look()
    assert [name for name, _ in await process.rows()] == [NAME]


async def test_filter_selects_items_and_says_which_have_left(start: Start, receiver: Receiver) -> None:
    process = await start(filter="category=sport")
    sport, other = "<category term='sport'/>", "<category term='art'/>"
    await process.publish("a", inner=sport)
    await process.publish("b", inner=other)
    await process.publish("c", inner=sport)
    await receiver.until("a c")
    await process.publish("a", inner=other)
    await receiver.until("a c ~a")

    assert receiver.bodies[0]["filter"] == "category=sport"
    assert receiver.bodies[0]["url"] == "https://feeds.example/feeds/news/?category=sport"
    assert all(one["cursor"] == other["previous_cursor"] for one, other in pairwise(receiver.items))


async def test_secret_signs_the_bytes_of_the_message(start: Start, receiver: Receiver) -> None:
    process = await start(secret="hush")
    await process.publish("a")
    await receiver.until("a")
    ((raw, headers),) = receiver.raw

    digest = hmac.new(b"hush", raw, hashlib.sha256).hexdigest()
    assert headers["X-Hub-Signature-256"] == f"sha256={digest}"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("smartfeeds/")


async def test_message_without_a_secret_has_no_signature(start: Start, receiver: Receiver) -> None:
    process = await start()
    await process.publish("a")
    await receiver.until("a")
    assert "X-Hub-Signature-256" not in receiver.raw[0][1]


async def test_name_and_password_of_the_address_are_sent_and_not_shown(start: Start, receiver: Receiver) -> None:
    """For HTTP Basic (RFC 7617)."""
    process = await start(url=receiver.url.replace("127", "alice:secret%20word@127"))
    receiver.answers = [500]
    await process.publish("a")
    await receiver.until("a")
    scheme, _, credentials = receiver.raw[0][1]["Authorization"].partition(" ")
    assert (scheme, b64decode(credentials)) == ("Basic", b"alice:secret word")
    assert process.webhook.host == "127.0.0.1" and "secret" not in process.webhook.consumer(await process.node()).name


async def test_private_address_is_refused_unless_it_is_allowed(start: Start, receiver: Receiver) -> None:
    """Nobody shall make this service send to a machine inside by a name that leads there."""
    process = await start(allow_private=False)
    await process.publish("a")
    await process.failed()
    ((_, error),) = await process.rows()
    assert error == "its address is not public; the operator may allow it with allow_private in the section [[webhook]]"
    assert receiver.requests == 0


async def test_receiver_that_fails_gets_everything_once_it_works_again(start: Start, receiver: Receiver) -> None:
    process = await start()
    receiver.answers = [500, 410, 302]
    await process.publish("a b c")
    await receiver.until("a b c")
    await process.publish("d")
    await receiver.until("a b c d")
    assert await process.rows() == [(NAME, "")]


async def test_restart_goes_on_behind_what_was_delivered(start: Start, receiver: Receiver) -> None:
    """[SF-007] The receiver is away while the service ends, and comes back when it runs again."""
    process = await start()
    await process.publish("a b")
    await receiver.until("a b")
    await receiver.stop()
    await process.publish("c")
    await process.failed()
    assert "cannot be reached" in (await process.rows())[0][1]
    await process.stop()
    await process.start()
    await process.publish("d")
    await receiver.start()
    await receiver.until("a b c d")
    assert all(one["cursor"] == other["previous_cursor"] for one, other in pairwise(receiver.items))


@pytest.mark.parametrize("status", [503, 429])
async def test_pause_that_the_receiver_asks_for_is_kept_over_a_restart(
    start: Start, receiver: Receiver, status: int
) -> None:
    process = await start()
    receiver.answers = [status]
    await process.publish("a")
    await receiver.until_asked(1)
    assert await process.rows() == [(NAME, f"answered {status}")]
    await process.stop()
    await process.start()
    await process.publish("b")
    await process.dispatcher.idle()
    consumer = Consumer(1, NAME)
    failure = process.dispatcher.failure(consumer)
    assert receiver.requests == 1
    assert failure is not None and failure.next_us is not None and failure.next_us - process.now_us > 3_000_000_000
    process.dispatcher.hurry(consumer)
    await receiver.until("a b")


async def test_receiver_that_is_away_for_days_is_given_up(start: Start, receiver: Receiver) -> None:
    """An operator retries it, and it gets everything."""
    process = await start()
    receiver.answers = [500]
    await process.publish("a")
    await receiver.until_asked(1)
    await process.dispatcher.idle()
    receiver.refuse = lambda _body: 500
    process.now_us += int(GIVE_UP_S * 1_000_000) + 1
    process.dispatcher.hurry(Consumer(1, NAME))
    await receiver.until_asked(2)
    await process.dispatcher.idle()
    await process.dispatcher.save_marks()
    status = await process.service.read(lambda tx, context: requests.webhook_status(tx, context, process.webhook))
    assert status.consumer is not None
    assert (status.consumer.state, status.consumer.waiting) == (ConsumerState.STOPPED, 1)
    receiver.refuse = lambda _body: 0
    process.dispatcher.hurry(Consumer(1, NAME))
    await receiver.until("a")


async def test_message_that_is_too_large_is_sent_in_parts(start: Start, receiver: Receiver) -> None:
    """An item that is too large alone is passed over, and the cursors of the next one show it."""
    process = await start()
    await process.dispatcher.pause(KIND)
    receiver.refuse = lambda body: 413 if len(body["items"]) > 2 or "c" in [i["id"] for i in body["items"]] else 0
    await process.publish("a b c d e")
    await process.dispatcher.resume(KIND)
    await receiver.until("a b d e")
    by_id = {item["id"]: item for item in receiver.items}
    assert by_id["d"]["previous_cursor"] != by_id["b"]["cursor"]


async def test_items_that_cannot_be_parted_are_passed_over_together(
    start: Start, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items with one key come together whatever the limit is."""
    together = messages.read_batch
    monkeypatch.setattr(webhooks, "read_batch", lambda *parts: together(*parts[:-1], 50))
    process = await start()
    await process.dispatcher.pause(KIND)
    await process.publish("a b")
    receiver.refuse = lambda _body: 413
    await process.dispatcher.resume(KIND)
    await process.dispatcher.idle()
    assert receiver.requests == 2
    receiver.refuse = lambda _body: 0
    await process.publish("c")
    await receiver.until("c")


async def test_messages_are_bounded_in_bytes(start: Start, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MESSAGE_BYTES", 1_000)
    process = await start()
    await process.dispatcher.pause(KIND)
    await process.publish("a b c d e f", content="x" * 300)
    await process.dispatcher.resume(KIND)
    await receiver.until("a b c d e f")
    assert len(receiver.bodies) > 2


async def test_feed_that_is_deleted_ends_the_webhook_until_it_is_there_again(start: Start, receiver: Receiver) -> None:
    process = await start()
    await process.publish("a")
    await receiver.until("a")
    await process.service.handle(r.DeleteNode(jid(OWNER), SERVICE, "news", ""))
    assert await process.rows() == []
    await process.create()
    await process.publish("b")
    await process.webhooks.look()
    await receiver.until("a b")


async def test_dropped_items_are_not_sent_and_the_next_one_shows_the_gap(start: Start, receiver: Receiver) -> None:
    process = await start()
    await process.publish("a")
    await receiver.until("a")
    receiver.refuse = lambda _body: 500
    await process.publish("b c")
    await process.failed()
    await process.rows()
    count = await process.service.write(lambda tx, context: requests.drop_waiting(tx, context, process.webhook))
    assert count == 2
    receiver.refuse = lambda _body: 0
    await process.dispatcher.look()
    await process.dispatcher.idle()
    assert await process.rows() == [(NAME, "")]
    await process.publish("d")
    await receiver.until("a d")
    assert receiver.items[1]["previous_cursor"] not in ("", receiver.items[0]["cursor"])


async def test_webhook_that_another_process_has_is_retried(start: Start) -> None:
    """While the configuration changes, processes have different webhooks; the one that has it delivers later."""
    process = await start()
    other = Consumer(1, "webhook:other")
    outcome = await process.webhooks.deliver(other, ConsumerPosition())
    assert isinstance(outcome, RetryAfter) and "no webhook of this name" in outcome.error
    assert process.webhooks.host(other) == ""


async def test_former_webhooks_are_removed(start: Start, receiver: Receiver) -> None:
    """One that the configuration has no more, and one that has another node now."""
    process = await start()
    await process.create("sport")
    names = {
        "none": [],
        "moved": [WebhookSettings(**{**process.settings, "node": "sport"}).to_webhook()],
        "same": [process.webhook],
    }
    former = {
        key: await process.service.read(
            lambda tx, context, configured=configured: requests.former_consumers(tx, context, configured)
        )
        for key, configured in names.items()
    }
    assert former == {"none": [Consumer(1, NAME)], "moved": [Consumer(1, NAME)], "same": []}

"""Transactions of several processes that meet on PostgreSQL: which one waits, and what it sees afterwards."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

import psycopg
import pytest

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Mark, Node, Subscription
from smartfeeds.core.stores import parse_store
from smartfeeds.core.token import Token, TokenScope
from smartfeeds.core.view import Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.listing import TOKENS_PER_JID, AddToken, add_token
from smartfeeds.features.accounts.session import SESSIONS_PER_TOKEN
from smartfeeds.features.accounts.sessions import BeginSession, begin_session, new_session
from smartfeeds.features.cluster.lock_session import LockSession
from smartfeeds.features.cluster.notices import SessionEvents
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.formats.atom import read_traits
from smartfeeds.service import nodes, subscriptions
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context, Policy
from smartfeeds.service.feeds import FeedService, _touch_of
from smartfeeds.store.base import WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.telemetry import REGISTRY
from store.values import add_feed, item, subscription, view
from support.postgres_store import EmptyDatabase
from support.stores import opened
from support.waiting import HANG_S, in_vain, until, waiting
from support.world import draft, entry

USE_CASES: dict[type, Callable[..., object]] = {
    r.CreateNode: nodes.create,
    r.DeleteNode: nodes.delete,
    r.Subscribe: subscriptions.subscribe,
    AddToken: add_token,
    BeginSession: begin_session,
}
SERVICE = "feeds.example.org"
ALICE, BOB = Jid("alice", "example.org", "x"), Jid("bob", "example.org", "x")
MODIFIED = Order.MODIFIED


@pytest.fixture
async def url(empty_database: EmptyDatabase) -> AsyncIterator[str]:
    with empty_database.emptied() as address:
        yield address


@asynccontextmanager
async def opened_pair(url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """The stores of two processes."""
    async with (
        opened(PostgresStore(parse_store(url), read_traits)) as one,
        opened(PostgresStore(parse_store(url), read_traits)) as two,
    ):
        yield one, two


def services_on(*stores: PostgresStore, **limits: int) -> list[FeedService]:
    times = count(1_700_000_000_000_000, 1_000)
    return [
        FeedService(
            store,
            Policy(SERVICE, **limits),  # type: ignore[arg-type]
            clock=lambda: next(times),
            new_id=lambda: f"new-{next(times)}",
            on_change=lambda _: None,
        )
        for store in stores
    ]


class Gate:
    """Holds a transaction: `wait` is called in the thread of a store, and returns after `open`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_open = threading.Event()
        self.reached = asyncio.Event()

    def wait(self) -> None:
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self._is_open.wait(HANG_S), in_vain("the gate")

    def open(self) -> None:
        self._is_open.set()


async def until_waiting(url: str, task: "asyncio.Task[object]") -> None:
    """Returns when a transaction waits for another one, or when the task has ended because none does."""
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as connection:
        await until(lambda: task.done() or connection.execute(query).fetchone(), "a transaction that waits for a lock")


def deadlocks() -> float:
    """How often works have run again after a deadlock."""
    return REGISTRY.get_sample_value("smartfeeds_store_retries_total", {"reason": "deadlock"}) or 0.0


def published(name: str, item_id: str) -> Callable[[WriteTx], None]:
    """A work that publishes a new item with the next key of a feed."""

    def work(tx: WriteTx) -> None:
        feed = tx.node(name)
        assert feed is not None
        key_us = feed.last_modified_us + 1
        tx.set_keys(feed.node_no, key_us, key_us)
        tx.put_item(feed.node_no, item(item_id, key_us, entry(item_id)))

    return work


def followed_feed(name: str) -> Callable[[WriteTx], Node]:
    """A work that makes a feed with an item and a consumer, which has nothing to receive."""

    def work(tx: WriteTx) -> Node:
        feed = add_feed(name=name)(tx)
        published(name, "one")(tx)
        tx.settle()
        tx.set_mark(feed.node_no, MODIFIED, PUSH, Mark(0, ""))
        return feed

    return work


# Marks.


async def test_mark_that_is_stored_during_a_publish_stays_behind(url: str) -> None:
    """[PG-063] Otherwise nobody would find the new item if the notice of its publisher is lost."""
    async with opened_pair(url) as (store, other):
        feed = await store.write(add_feed(name="feed"))
        consumer, gate = Consumer(feed.node_no, PUSH), Gate()
        await store.write(published("feed", "one"))
        await store.write(lambda tx: tx.set_mark(feed.node_no, MODIFIED, PUSH, Mark(-1, "")))
        assert await store.read(lambda tx: tx.behind()) == [consumer]

        def publish(tx: WriteTx) -> None:
            published("feed", "two")(tx)
            tx.behind()  # sends all changes; the mark is behind already
            gate.wait()

        publishing = asyncio.create_task(store.write(publish))
        await gate.reached.wait()
        await other.write(lambda tx: tx.move_mark(consumer, MODIFIED, Mark(0, "")))
        gate.open()
        await publishing
        assert await store.read(lambda tx: tx.behind()) == [consumer]
        await other.write(lambda tx: tx.move_mark(consumer, MODIFIED, Mark(1, "")))
        assert await store.read(lambda tx: tx.behind()) == []


async def test_mark_of_a_consumer_that_was_removed_is_not_stored(url: str) -> None:
    async with opened_pair(url) as (store, _):
        feed = await store.write(followed_feed("feed"))
        await store.write(lambda tx: tx.move_mark(Consumer(feed.node_no, "hub:x"), MODIFIED, Mark(5, "")))
        await store.write(lambda tx: tx.move_mark(Consumer(feed.node_no, PUSH), Order.CREATED, Mark(5, "")))
        marks = await store.read(lambda tx: tx.consumers_of(feed.node_no, ("", ""), 9))
        assert [(row.consumer.name, row.order, row.mark.key_us) for row in marks] == [(PUSH, MODIFIED, 0)]


async def test_marks_and_publishers_do_not_wait_for_each_other_in_a_circle(url: str) -> None:
    """[PG-039] A publish to two feeds changes their marks, while the marks of both are stored in the other order."""
    async with opened_pair(url) as (store, _):
        feeds = [await store.write(followed_feed(name)) for name in ("a", "b")]
        gate, before = Gate(), deadlocks()
        runs: list[str] = []

        def publish(tx: WriteTx) -> None:
            runs.append("publish")
            published("a", "two")(tx)
            tx.behind()  # sends all changes
            gate.wait()
            published("b", "two")(tx)

        def move(feed: Node) -> Callable[[WriteTx], None]:
            return lambda tx: tx.move_mark(Consumer(feed.node_no, PUSH), MODIFIED, Mark(0, "moved"))

        nothing = SessionEvents(*[lambda *_: None] * 3)
        session = await LockSession.open(parse_store(url), "a", lease_s=30.0, events=nothing, reader=read_traits)
        try:
            publishing = asyncio.create_task(store.write(publish))
            await gate.reached.wait()
            moving = asyncio.create_task(session.write_marks([move(feed) for feed in reversed(feeds)]))
            await until_waiting(url, moving)
            gate.open()
            await asyncio.gather(publishing, moving)
        finally:
            await session.close()
        assert (runs, deadlocks()) == (["publish"], before)
        behind = await store.read(lambda tx: tx.behind())
        assert behind == [Consumer(feed.node_no, PUSH) for feed in feeds]


async def test_new_rows_of_a_node_do_not_wait_for_its_publishers(url: str) -> None:
    """[PG-008] Their foreign key locks the node, too: with FOR UPDATE they would wait until the publish is stored."""
    async with opened_pair(url) as (store, other):
        feed = await store.write(add_feed(name="feed"))
        gate = Gate()

        def publish(tx: WriteTx) -> None:
            published("feed", "one")(tx)
            gate.wait()

        publishing = asyncio.create_task(store.write(publish))
        await gate.reached.wait()
        adding = asyncio.create_task(other.write(lambda tx: tx.set_mark(feed.node_no, MODIFIED, PUSH, Mark(0, ""))))
        await until_waiting(url, adding)
        is_added = adding.done()
        gate.open()
        await asyncio.gather(publishing, adding)
        assert is_added


# Numbers.


async def test_subscriptions_have_numbers_in_the_order_in_which_they_appear(url: str) -> None:
    """[PG-041] A page of recipients, read by number, would miss a subscription that appears below its end."""
    async with opened_pair(url) as (store, other):
        feed = await store.write(add_feed(name="feed"))
        gate = Gate()

        def add(jid: str, tx: WriteTx) -> Subscription:
            return tx.put_subscription(subscription(feed.node_no, jid))

        def add_two(tx: WriteTx) -> list[Subscription]:
            first = add("a@x", tx)
            gate.wait()
            return [first, add("b@x", tx)]

        adding = asyncio.create_task(store.write(add_two))
        await gate.reached.wait()
        waiting = asyncio.create_task(other.write(partial(add, "c@x")))
        await until_waiting(url, waiting)
        gate.open()
        first, second = await adding
        assert first.sub_no < second.sub_no < (await waiting).sub_no


# The filter index.


async def test_two_processes_index_different_feeds(url: str) -> None:
    """[PG-076] The second one takes the next feed, and does not wait for the first one."""
    async with opened_pair(url) as (store, other):
        feeds = [await store.write(add_feed(name=name)) for name in ("a", "b")]
        for name in ("a", "b"):
            await store.write(published(name, "fox"))
        gate = Gate()

        def index_first(tx: WriteTx) -> int:
            done = tx.index_some(1)
            tx.settle()
            gate.wait()
            return done

        indexing = asyncio.create_task(store.write(index_first))
        await gate.reached.wait()
        try:
            assert await other.write(lambda tx: tx.index_some(10)) == 1
        finally:
            gate.open()
        assert await indexing == 1
        assert await other.write(lambda tx: tx.index_some(10)) == 0
        for feed in feeds:
            assert await store.read(lambda tx, feed=feed: tx.count(feed.node_no, view("q=fox"))) == 1


# Names, quotas and counts.


async def decided_second(url: str, first: FeedService, second: FeedService, *requests: r.Request) -> Condition:
    """Runs the first request in a transaction of one process, and during it the second request in another process.
    Returns why the second one is refused.
    """
    with pytest.raises(FeedError) as refusal:
        await decided_in_turn(url, first, second, *requests)
    return refusal.value.condition


async def decided_in_turn(url: str, first: FeedService, second: FeedService, *requests: r.Request) -> None:
    """Runs the first request in a transaction of one process, and during it the second request in another process."""
    gate = Gate()
    use_case = USE_CASES[type(requests[0])]

    def work(tx: WriteTx, context: Context) -> object:
        answer = use_case(tx, context, requests[0])
        gate.wait()
        return answer

    deciding = asyncio.create_task(first.write(work, touch=_touch_of(requests[0])))
    await gate.reached.wait()
    waiting = asyncio.ensure_future(second.write(partial(USE_CASES[type(requests[1])], request=requests[1])))
    await until_waiting(url, waiting)
    gate.open()
    await deciding
    await waiting


@pytest.mark.parametrize("names", [("feed", "feed?order=created"), ("feed?order=created", "feed")])
async def test_node_that_another_process_creates_is_not_hidden_by_a_view(url: str, names: tuple[str, str]) -> None:
    """[PG-044] A node of Alice, and one of Bob with the name of a view of it."""
    async with opened_pair(url) as stores:
        requests = [r.CreateNode(jid, SERVICE, name) for jid, name in zip((ALICE, BOB), names, strict=True)]
        assert await decided_second(url, *services_on(*stores), *requests) is Condition.NOT_ALLOWED


async def test_two_processes_do_not_give_a_user_more_nodes_than_the_quota(url: str) -> None:
    """[PG-044] Each of them creates the last node that the user may have."""
    async with opened_pair(url) as stores:
        services = services_on(*stores, nodes_per_jid=1)
        requests = [r.CreateNode(ALICE, SERVICE, name) for name in ("a", "b")]
        assert await decided_second(url, *services, *requests) is Condition.POLICY_VIOLATION
        await services[0].handle(r.CreateNode(BOB, SERVICE, "c"))


async def test_two_processes_do_not_give_a_user_more_subscriptions_than_the_quota(url: str) -> None:
    """[PG-044]"""
    async with opened_pair(url) as stores:
        services = services_on(*stores, subscriptions_per_jid=1)
        for name in ("a", "b"):
            await services[0].handle(r.CreateNode(ALICE, SERVICE, name))
        requests = [r.Subscribe(BOB, SERVICE, name, BOB.bare_text) for name in ("a", "b")]
        assert await decided_second(url, *services, *requests) is Condition.TOO_MANY_SUBSCRIPTIONS


async def test_two_processes_do_not_give_a_user_more_redirects_than_the_quota(url: str) -> None:
    """[PG-044]"""
    async with opened_pair(url) as stores:
        services = services_on(*stores, nodes_per_jid=2)
        for name in ("a", "b", "c"):
            if name == "c":
                await services[0].handle(r.DeleteNode(ALICE, SERVICE, "a", "xmpp:new@example.org"))
            await services[0].handle(r.CreateNode(ALICE, SERVICE, name))
        requests = [r.DeleteNode(ALICE, SERVICE, name, "xmpp:new@example.org") for name in ("b", "c")]
        assert await decided_second(url, *services, *requests) is Condition.POLICY_VIOLATION


async def test_two_processes_do_not_give_a_user_more_tokens_than_the_limit(url: str) -> None:
    """[PG-044] Each of them adds the last token that the user may have, for a feed of its own."""
    async with opened_pair(url) as stores:
        services = services_on(*stores)
        for name in ("feed", "another"):
            await services[0].handle(r.CreateNode(ALICE, SERVICE, name))
        tokens = [token_of(number) for number in range(TOKENS_PER_JID)] + [token_of(TOKENS_PER_JID, feed="another")]
        requests = [AddToken(ALICE, SERVICE, token, None) for token in tokens]
        for request in requests[:-2]:
            await services[0].write(partial(add_token, request=request))
        assert await decided_second(url, *services, *requests[-2:]) is Condition.POLICY_VIOLATION


async def test_two_processes_do_not_give_a_token_more_sessions_than_the_limit(url: str) -> None:
    """[PG-044] Each of them ends the session that was unused for the longest time."""
    async with opened_pair(url) as stores:
        services = services_on(*stores)
        sessions = [new_session(token_of(0, token_id=""), "Firefox")[0] for _ in range(SESSIONS_PER_TOKEN + 1)]
        requests = [BeginSession(ALICE, SERVICE, session) for session in sessions]
        for request in requests[:-2]:
            await services[0].write(partial(begin_session, request=request))
        await decided_in_turn(url, *services, *requests[-2:])
        rows = await stores[0].read(lambda tx: account_rows.sessions_of(tx, ALICE.bare_text))
        assert [row.session_id for row in rows] == [session.session_id for session in sessions[1:]]


def token_of(number: int, token_id: str | None = None, feed: str = "feed") -> Token:
    token_id = f"{number:012}" if token_id is None else token_id
    return Token(token_id, bytes(32), ALICE.bare_text, TokenScope.READ, feed, "", 0)


async def test_contact_that_two_processes_add_is_counted_once(url: str) -> None:
    """[PG-042] A request for presence that a client repeats may reach both."""
    async with opened_pair(url) as (store, other):
        contact, gate = Contact(SERVICE, "alice@example.org", ContactState.ASKED), Gate()

        def add(tx: WriteTx) -> None:
            contact_rows.put(tx, contact)
            gate.wait()

        adding = asyncio.create_task(store.write(add))
        await gate.reached.wait()
        repeating = asyncio.create_task(other.write(lambda tx: contact_rows.put(tx, contact)))
        await until_waiting(url, repeating)
        gate.open()
        await asyncio.gather(adding, repeating)
        assert await store.read(lambda tx: contact_rows.contacts_in(tx, "example.org")) == 1


# Deadlocks.


async def test_requests_of_two_processes_for_the_same_feeds_never_deadlock(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-039] Publishing, retracting and subscribing to feeds, and creating nodes, each in the other order."""
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", 60.0)  # on a busy machine a group would end early
    async with opened_pair(url) as stores:
        services = services_on(*stores)
        names = [f"feed{number}" for number in range(10)]
        for name in names:
            await services[0].handle(r.CreateNode(ALICE, SERVICE, name))
            await services[0].handle(r.Publish(ALICE, SERVICE, name, "old", draft(entry("old"))))
        before = deadlocks()
        users = [Jid(f"user{number}", "example.org", "x") for number in range(5)]
        works: list[r.Request] = []
        for number, user in enumerate(users):
            works += [r.Publish(ALICE, SERVICE, name, f"i{number}", draft(entry(f"i{number}"))) for name in names]
            works += [r.Subscribe(user, SERVICE, name, user.bare_text) for name in names]
            works += [r.CreateNode(user, SERVICE, f"own{number} {name}") for name in names[:3]]
        works += [r.Retract(ALICE, SERVICE, name, "old") for name in names]
        mine, theirs = works[::2], works[1::2][::-1]
        async with waiting("the works of both processes"):
            await asyncio.gather(
                *(services[0].handle(request) for request in mine), *(services[1].handle(request) for request in theirs)
            )
        assert deadlocks() == before
        for name in names:
            info = await services[1].handle(r.GetNodeInfo(ALICE, SERVICE, name))
            assert (info.node.total, info.node.live) == (6, 5)

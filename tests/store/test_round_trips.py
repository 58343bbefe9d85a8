"""Round trips of common requests on PostgreSQL: they decide about the speed when the database is on another machine."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from psycopg.pq.abc import PGresult

from bench.bench_remote import delayed
from smartfeeds.core.jid import Jid
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.stores import parse_store
from smartfeeds.core.touches import Touch
from smartfeeds.formats.atom import read_traits
from smartfeeds.push.batch import NodeBatch, read_batch
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store import postgres_session
from smartfeeds.store.base import WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_pipeline import PostgresPipeline, Statement
from smartfeeds.store.postgres_session import PostgresSession
from support.postgres import PostgresServer
from support.postgres_store import EmptyDatabase
from support.stores import opened
from support.world import draft, entry

ALICE, BOB, CAROL = (Jid(name, "example.org", "x") for name in ("alice", "bob", "carol"))
SERVICE = "feeds.example.org"
ITEMS = 60
GROUP = 50


class Work(NamedTuple):
    """How often a connection waits for the server, and the statements that it sends."""

    trips: int
    statements: int


class Counter:
    """Counts the work of all connections to PostgreSQL."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.total = Work(0, 0)
        run = PostgresPipeline.run

        def counted(pipeline: PostgresPipeline, statements: Sequence[Statement]) -> list[PGresult]:
            self.total = Work(self.total.trips + 1, self.total.statements + len(statements))
            return run(pipeline, statements)

        patch.setattr(PostgresPipeline, "run", counted)
        patch.setattr(postgres_session, "PLANNED_AGAIN", ())  # plans are made again by a statement of their own

    def since(self, before: Work) -> Work:
        """The work since then."""
        return Work(self.total.trips - before.trips, self.total.statements - before.statements)


class Counted:
    """A service on a feed with items, whose requests are counted."""

    def __init__(self, store: PostgresStore, counter: Counter) -> None:
        self.counter = counter
        self._now_us = 1_700_000_000_000_000
        self.store = store
        self.service = FeedService(
            store, Policy(SERVICE), clock=self._clock, new_id=lambda: "new", on_change=lambda _: None
        )

    def _clock(self) -> int:
        self._now_us += 1_000
        return self._now_us

    async def trips(self, request: r.Request) -> tuple[int, r.Answer]:
        """The round trips of a request, and its answer."""
        work, (answer,) = await self.work(request)
        return work.trips, answer

    async def work(self, *requests: r.Request) -> tuple[Work, list[r.Answer]]:
        """The work of requests that come together, and their answers."""
        before = self.counter.total
        answers = await asyncio.gather(*map(self.service.handle, requests))
        return self.counter.since(before), answers

    def publish(self, item_id: str, text: str = "") -> r.Publish:
        return r.Publish(ALICE, SERVICE, "news", item_id, draft(entry(text or item_id)))


@pytest.fixture
async def counted(empty_database: EmptyDatabase) -> AsyncIterator[Counted]:
    with empty_database.emptied() as url, pytest.MonkeyPatch.context() as patch:
        # On a busy machine a read would exceed its time, and run again. A slow work would run alone.
        patch.setattr("smartfeeds.store.postgres.LIGHT_MS", 60_000)
        patch.setattr("smartfeeds.store.postgres.SLOW_READ_S", 60.0)
        patch.setattr("smartfeeds.store.sql_store.SLOW_WRITE_S", 60.0)
        async with opened(PostgresStore(parse_store(url), read_traits)) as store:
            counted = Counted(store, Counter(patch))
            await counted.service.handle(r.CreateNode(ALICE, SERVICE, "news"))
            for number in range(ITEMS):
                await counted.service.handle(counted.publish(f"i{number}"))
            await store.write(lambda tx: tx.begin_index(1))
            while await store.index_some(1_000):
                pass
            # Statements that are used for the first time do not cost more trips, but connections do.
            await counted.service.handle(r.Pull(BOB, SERVICE, "news"))
            yield counted


async def test_common_reads_make_one_or_two_round_trips(counted: Counted) -> None:
    """[PG-049] The first trip looks up the node, the affiliation and the position; the second reads the page."""
    for node, most in (("news", 2), ("news?order=modified", 2), ("news?order=created", 2), ("news?kind=new", 4)):
        newest = r.Pull(BOB, SERVICE, node, page=ResultSetRequest(max="20", before=""))
        trips, page = await counted.trips(newest)
        assert len(page.items) == 20
        assert trips <= most, node
        first = page.result_set.first.partition("~")[0]
        trips, page = await counted.trips(r.Pull(BOB, SERVICE, node, page=ResultSetRequest(max="10", after=first)))
        # The index of a page in the middle is counted in small feeds.
        assert trips <= most + 1, node
        assert len(page.items) == 10
    for request, most in (
        (r.PullFeed(BOB, SERVICE, "news", page=ResultSetRequest(max="20", before="")), 2),
        (r.Pull(BOB, SERVICE, "news", item_ids=("i1", "i2")), 1),
        (r.GetItem(BOB, SERVICE, "news", "i5"), 1),
        (r.GetConfiguration(ALICE, SERVICE, "news"), 1),
    ):
        trips, _ = await counted.trips(request)
        assert trips <= most, request


async def test_reads_that_come_together_share_their_look_ups(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-049] Twenty readers of one feed."""
    monkeypatch.setattr("smartfeeds.store.batches.READ_BUDGET_S", 60.0)  # on a busy machine a batch would end early
    before = counted.counter.total
    pulls = [
        r.Pull(Jid(f"u{number}", "example.org", "x"), SERVICE, "news", item_ids=(f"i{number}",)) for number in range(20)
    ]
    pages = await asyncio.gather(*map(counted.service.handle, pulls))

    assert [page.items[0].id for page in pages] == [f"i{number}" for number in range(20)]
    # Each batch of the reading connections makes one.
    assert counted.counter.since(before).trips <= 8


async def test_push_reads_a_batch_in_two_round_trips(counted: Counted) -> None:
    """[PG-049] The first looks up the node, its views, marks and events; the second reads the items of the order."""
    node = (await counted.service.handle(r.GetNodeInfo(BOB, SERVICE, "news"))).node
    await counted.service.handle(r.Subscribe(BOB, SERVICE, "news", "bob@example.org"))
    for stored in (1, 20):
        for number in range(stored):
            await counted.service.handle(counted.publish(f"pushed {number}"))
        before = counted.counter.total
        batch = await counted.service.read(
            lambda tx, context: read_batch(tx, context, node.node_no, {}, frozenset({""}), lambda _: None)
        )
        trips = counted.counter.since(before).trips
        assert isinstance(batch, NodeBatch)
        assert trips <= 2
        assert [len(order.changes) for order in batch.orders] == [stored]


async def test_look_at_the_nodes_of_held_pulls_makes_one_round_trip(counted: Counted) -> None:
    """[PG-049] [PG-079] Every few seconds, however many nodes have readers waiting."""
    for number in range(5):
        await counted.service.handle(r.CreateNode(ALICE, SERVICE, f"feed{number}"))
    nodes = await counted.store.read(lambda tx: tx.nodes("", 9))
    before = counted.counter.total
    found = await counted.store.read(lambda tx: tx.nodes_by_no([node.node_no for node in nodes]))
    assert len(found) == 6
    assert counted.counter.since(before).trips == 1


def test_statements_of_a_pipeline_share_one_round_trip(postgres: PostgresServer) -> None:
    """[PG-049] Counted between the two programs: the transaction begins with them, and their results come together."""
    with (
        delayed(postgres.url(), 0.0) as network,
        closing(PostgresSession(parse_store(network.url))) as session,
    ):
        session.open_at_once()
        before = network.trips()
        session.begin("BEGIN")
        session.queue("SELECT 1", ((), ()))
        assert session.execute_all([("SELECT 2", ()), ("SELECT 3", ())]) == [[(2,)], [(3,)]]
        assert network.trips() - before == 1


async def test_requests_stay_within_their_budgets(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-038] Each budget is what the requests take now. A change that makes them cheaper lowers it; one that makes
    them dearer needs a reason. A group of publishes or subscribes takes hardly more
    than one request.
    """
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", 60.0)  # on a busy machine a group would end early
    group = [counted.publish(f"g{number}") for number in range(GROUP)]
    subscribers = [Jid(f"u{number}", "example.org", "x") for number in range(GROUP)]
    budgets: dict[str, tuple[Sequence[r.Request], Work]] = {
        "a publish": ([counted.publish("alone")], Work(2, 13)),
        "a group of publishes": (group, Work(2, 13)),
        "a publish again": ([counted.publish("i3")], Work(2, 9)),
        "an edit": ([counted.publish("i3", "another text")], Work(2, 13)),
        "a page": ([r.Pull(BOB, SERVICE, "news", page=ResultSetRequest(max="50", before=""))], Work(2, 6)),
        "the first subscribe": ([r.Subscribe(BOB, SERVICE, "news", "bob@example.org")], Work(6, 20)),
        "a subscribe": ([r.Subscribe(CAROL, SERVICE, "news", "carol@example.org")], Work(3, 15)),
        "a group of subscribes": (
            [r.Subscribe(jid, SERVICE, "news", jid.bare_text) for jid in subscribers],
            Work(3, 16),
        ),
        "an unsubscribe": ([r.Unsubscribe(CAROL, SERVICE, "news", "carol@example.org")], Work(4, 16)),
        "a group of creates": (
            [r.CreateNode(jid, SERVICE, f"of-{jid.bare_text}") for jid in subscribers],
            Work(152, 311),
        ),
        "a create": ([r.CreateNode(ALICE, SERVICE, "other")], Work(5, 17)),
    }
    for what, (requests, budget) in budgets.items():
        work, _ = await counted.work(*requests)
        assert work.trips <= budget.trips and work.statements <= budget.statements, (what, work)


async def test_slow_look_up_does_not_make_groups_small(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-049] The look-up of a group waits for the network and for the locks of other processes."""
    clock_s = 0.0
    look_ahead = WriteTx.look_ahead

    def slow(tx: WriteTx, touches: Sequence[Touch]) -> None:
        nonlocal clock_s
        clock_s += 1.0
        look_ahead(tx, touches)

    monkeypatch.setattr(WriteTx, "look_ahead", slow)
    monkeypatch.setattr("smartfeeds.store.batches.time", SimpleNamespace(monotonic=lambda: clock_s))
    work, _ = await counted.work(*[counted.publish(f"s{number}") for number in range(GROUP)])

    assert work == Work(2, 13)


async def test_publishes_that_come_together_share_their_round_trips(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-038] Two feeds, forty items: the first publish is a group, and all others are the next one."""
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", 60.0)  # on a busy machine a group would end early
    await counted.service.handle(r.CreateNode(ALICE, SERVICE, "other"))
    before = counted.counter.total
    items = [
        r.Publish(ALICE, SERVICE, node, f"t{number}", draft(entry(f"t{number}")))
        for number in range(20)
        for node in ("news", "other")
    ]
    answers = await asyncio.gather(*map(counted.service.handle, items))

    assert [answer.item_id for answer in answers] == [item.item_id for item in items]
    assert counted.counter.since(before).trips <= 4

"""Counts of the whole service are sums of rows, which no two writing connections share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.delivery.sweeps import TALLIES
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from store.values import node, read_payload, subscription
from support.postgres_store import EmptyDatabase
from support.stores import opened
from support.waiting import HANG_S, wait_for

DOMAIN = "example.org"


@pytest.fixture
async def url(empty_database: EmptyDatabase) -> AsyncIterator[str]:
    with empty_database.emptied() as address:
        yield address


@asynccontextmanager
async def opened_pair(url: str) -> AsyncIterator[tuple[Store, Store]]:
    """Two stores whose writing connections have different slots."""
    async with AsyncExitStack() as stores:

        async def open_store() -> tuple[Store, int]:
            store = await stores.enter_async_context(opened(PostgresStore(parse_store(url), read_payload)))
            return store, await store.write(slot_of)

        one, slot = await open_store()
        two, other_slot = await open_store()
        while other_slot == slot:  # rare, because the server counts its processes
            two, other_slot = await open_store()
        yield one, two


def slot_of(tx: WriteTx) -> int:
    return tx.db.tally_slot


def counts(tx: ReadTx) -> tuple[int, ...]:
    use = tx.subscriber_use(1, f"a@{DOMAIN}", now_us=None)
    return (tx.node_count(), tx.listed_count("x@y"), tx.created_in(DOMAIN), use.of_domain)


def rows(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT name, slot, value FROM tally WHERE value <> 0 ORDER BY 1, 2").fetchall()


async def test_writes_of_two_processes_in_one_domain_do_not_wait_for_each_other(url: str) -> None:
    """[PG-042] The second write commits while the first transaction has changed the same counts and is still open."""
    async with opened_pair(url) as (one, two):
        loop = asyncio.get_running_loop()
        is_changed, may_end = asyncio.Event(), asyncio.Event()

        def slow(tx: WriteTx) -> None:
            made = tx.add_node(node("slow"))
            tx.put_subscription(subscription(made.node_no, f"a@{DOMAIN}"))
            tx.settle()
            assert counts(tx) == (1, 1, 1, 1)  # also sends the changes to the database
            loop.call_soon_threadsafe(is_changed.set)
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(HANG_S)

        def quick(tx: WriteTx) -> None:
            made = tx.add_node(node("quick"))
            tx.put_subscription(subscription(made.node_no, f"b@{DOMAIN}"))

        first = asyncio.create_task(one.write(slow))
        await wait_for(is_changed.wait(), "the changes of the slow write")
        await wait_for(two.write(quick), "the quick write")
        assert await two.read(counts) == (1, 1, 1, 1)
        may_end.set()
        await first

        assert await two.read(counts) == (2, 2, 2, 2)


async def test_rows_of_connections_are_added_up(url: str) -> None:
    """[PG-042] One process removes what another has added, so one of the rows is negative."""
    async with opened_pair(url) as (one, two):
        made = [await one.write(lambda tx, name=name: tx.add_node(node(name))) for name in "abc"]  # type: ignore[misc]
        await two.write(lambda tx: tx.retire_node(made[0].node_no))
        await two.write(lambda tx: [tx.put_subscription(subscription(made[1].node_no, f"a@{DOMAIN}"))])
        await one.write(lambda tx: tx.remove_subscription(1))
        assert len(rows(url)) == 12
        assert await one.read(counts) == (2, 2, 2, 0)

        service = FeedService(
            one, Policy("feeds.example.org"), clock=lambda: 1, new_id=lambda: "i", on_change=lambda _: None
        )
        await TALLIES.sweep(service)

        names = ("listed", "nodes", f"nodes of alice@{DOMAIN}", f"nodes@{DOMAIN}")
        assert rows(url) == [(name, 0, 2) for name in names]
        assert await one.read(counts) == (2, 2, 2, 0)


async def test_counts_of_a_transaction_include_its_own_changes(store: Store) -> None:
    """A work that fails leaves none."""

    def add(tx: WriteTx) -> tuple[int, ...]:
        made = tx.add_node(node("a"))
        tx.put_subscription(subscription(made.node_no, f"a@{DOMAIN}"))
        return counts(tx)

    def fail(tx: WriteTx) -> None:
        add(tx)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        await store.write(fail)
    assert await store.read(counts) == (0, 0, 0, 0)
    assert await store.write(add) == (1, 1, 1, 1)
    assert await store.read(counts) == (1, 1, 1, 1)

"""A PostgreSQL server that is stopped or hangs: its kernel acknowledges what it receives, and no answer ever comes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.core.view import SMART
from smartfeeds.errors import StoreError, UnknownOutcomeError
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_answers import AnswerLimit
from smartfeeds.store.postgres_session import connect
from store.values import add_feed, item, read_payload
from support.postgres import SHORT_S, PostgresServer, running_postgres, shorten_waits
from support.waiting import waiting

NEVER_S = 1_000.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that only the tests here use, because they stop it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    """The address of an empty database."""
    yield server.create_database()
    server.thaw()


@pytest.fixture(autouse=True)
def _short_times(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_waits(server, monkeypatch)


class Outage:
    """Stops the server, and makes it go on. Only meanwhile the connections wait for a short time."""

    def __init__(self, server: PostgresServer) -> None:
        self.limit = AnswerLimit(NEVER_S)
        self._server = server

    def begin(self, limit_s: float = SHORT_S) -> None:
        self._server.freeze()
        self.limit.limit_s = limit_s

    def end(self) -> None:
        self.limit.limit_s = NEVER_S
        self._server.thaw()


@pytest.fixture
def outage(server: PostgresServer) -> Outage:
    return Outage(server)


@asynccontextmanager
async def opened(url: str, outage: Outage) -> AsyncIterator[PostgresStore]:
    """A store with a feed."""
    store = PostgresStore(parse_store(url), read_payload, limit=outage.limit)
    async with waiting("the works on a server that hangs"):
        await store.open()
        await store.write(add_feed())
        yield store
        await store.close()


def published(item_id: str, after: Callable[[], object] = lambda: None) -> Callable[[WriteTx], None]:
    """A work that publishes an item to the feed, and calls `after` before the commit."""

    def work(tx: WriteTx) -> None:
        node = tx.node("feed")
        assert node is not None
        key_us = node.last_modified_us + 1
        tx.set_keys(node.node_no, key_us, key_us)
        tx.put_item(node.node_no, item(item_id, key_us))
        after()

    return work


async def test_read_from_a_server_that_hangs_fails_and_the_next_one_is_answered(url: str, outage: Outage) -> None:
    """[CAM-002] [CAM-007]"""

    def count(tx: ReadTx) -> int:
        outage.begin()
        return tx.node_count()

    async with opened(url, outage) as store:
        with pytest.raises(StoreError, match="the server cannot be reached; check that it runs"):
            await store.read(count)
        outage.end()

        assert await store.read(lambda tx: tx.node_count()) == 1


async def test_write_on_a_server_that_hangs_before_the_commit_fails(url: str, outage: Outage) -> None:
    """[CAM-002] The work may run again, because nothing was stored."""

    def work(tx: WriteTx) -> None:
        outage.begin()
        published("one")(tx)

    async with opened(url, outage) as store:
        with pytest.raises(StoreError, match="the server cannot be reached") as failure:
            await store.write(work)
        assert not isinstance(failure.value, UnknownOutcomeError)
        outage.end()

        await store.write(published("one"))


async def test_commit_on_a_server_that_hangs_has_an_unknown_outcome(url: str, outage: Outage) -> None:
    """[PG-006] [CAM-002] The server may commit when it goes on, so the work does not run again."""
    runs: list[str] = []

    def begin() -> None:
        runs.append("one")
        outage.begin()

    async with opened(url, outage) as store:
        with pytest.raises(UnknownOutcomeError, match="the write may have happened or not"):
            await store.write(published("one", begin))
        outage.end()

        assert runs == ["one"]
        await store.write(published("two"))


async def write_until_it_fails(store: PostgresStore, work: Callable[[WriteTx], object]) -> None:
    while True:
        await store.write(work)


async def test_commit_that_waits_for_a_standby_is_never_taken_for_done(server: PostgresServer, url: str) -> None:
    """[TOP-050] The server reports success when the wait of a commit for its standby is cancelled. So the timeout of
    statements must not do that.
    """
    limit = AnswerLimit(NEVER_S)
    store = PostgresStore(parse_store(f"{url}?options=-csynchronous_commit%3Don"), read_payload, limit=limit)
    await store.open()
    await store.write(add_feed())

    def work(tx: WriteTx) -> None:
        tx.put_item(1, item(f"i{tx.count(1, SMART)}", 1))
        tx.db.run("SET LOCAL statement_timeout = 100")

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nowhere'")
        connection.execute("SELECT pg_reload_conf()")
        limit.limit_s = 1.0
        try:
            async with waiting("a commit that waits for the standby"):
                with pytest.raises(UnknownOutcomeError):
                    await write_until_it_fails(store, work)  # the server reads its settings a moment later
        finally:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
    await store.close()


async def test_close_does_not_wait_for_a_server_that_hangs(url: str, outage: Outage) -> None:
    """[CAM-002] Works that wait behind the first one fail with it."""
    is_frozen = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin() -> None:
        outage.begin(NEVER_S)
        loop.call_soon_threadsafe(is_frozen.set)

    async with opened(url, outage) as store:
        first = asyncio.create_task(store.write(published("one", begin)))
        await is_frozen.wait()
        works = [store.write(published(f"other{number}")) for number in range(3)]
        works += [store.read(lambda tx: tx.node_count()) for _ in range(3)]
        tasks = [asyncio.create_task(work) for work in works]
        await asyncio.sleep(0)  # the tasks queue their works
        store.prepare_close()

        with pytest.raises(UnknownOutcomeError):
            await first
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, StoreError) for error in errors), errors


@pytest.mark.parametrize(("options", "user_timeout_ms"), [("", 30_000), ("?tcp_user_timeout=7000", 7_000)])
def test_connection_notices_a_network_that_loses_all_packets(url: str, options: str, user_timeout_ms: int) -> None:
    """[CAM-008] The address may set another time."""
    with connect(parse_store(url + options), "smartfeeds test") as connection:
        peer = socket.socket(fileno=connection.fileno())
        try:
            assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == user_timeout_ms
            assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
        finally:
            peer.detach()

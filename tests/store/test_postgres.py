"""The PostgreSQL store when things go wrong, and what it promises beyond the contract."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from smartfeeds.core.consumers import PUSH, Consumer, Pause
from smartfeeds.core.model import Item, Mark, Node, Slice
from smartfeeds.core.stores import parse_store
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import SMART, Order
from smartfeeds.errors import StoreError, UnknownOutcomeError
from smartfeeds.local.process import free_port
from smartfeeds.store.base import OpenMode, ReadTx, WriteTx
from smartfeeds.store.engine import TransientError
from smartfeeds.store.migrate import HEAD
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.sqlite_engine import CREATE_IT
from smartfeeds.telemetry import REGISTRY
from store.values import add_feed, item, node, read_payload
from support.postgres import PostgresServer
from support.stores import opened as opened_store
from support.waiting import HANG_S, until

EXISTING = (OpenMode.READ, OpenMode.WRITE)


@pytest.fixture
async def url(postgres: PostgresServer) -> AsyncIterator[str]:
    """The address of an empty database without a schema."""
    address = postgres.create_database()
    yield address
    postgres.drop_database(address)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    """A store on a database of its own."""
    made = store_at(url)
    await made.open()
    yield made
    await made.close()


def store_at(url: str, mode: OpenMode = OpenMode.SERVE) -> PostgresStore:
    return PostgresStore(parse_store(url), read_payload, mode=mode)


async def opened(url: str, mode: OpenMode = OpenMode.SERVE) -> None:
    store = store_at(url, mode)
    await store.open()
    await store.close()


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Runs statements as another program. Returns the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def retries(reason: str) -> float:
    """How often works have run again for this reason."""
    return REGISTRY.get_sample_value("smartfeeds_store_retries_total", {"reason": reason}) or 0.0


def end_connections(url: str) -> None:
    """Ends all other connections to a database."""
    run(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def published(name: str, item_id: str) -> Callable[[WriteTx], Item]:
    """A work that publishes a new item with the next key of a feed."""

    def work(tx: WriteTx) -> Item:
        feed = tx.node(name)
        assert feed is not None
        assert tx.item(feed.node_no, item_id) is None
        key_us = feed.last_modified_us + 1
        tx.set_keys(feed.node_no, key_us, key_us)
        return tx.put_item(feed.node_no, item(item_id, key_us))

    return work


def every_item(tx: ReadTx, name: str) -> tuple[Node, list[Item]]:
    """A feed and all its items."""
    feed = tx.node(name)
    assert feed is not None
    return feed, tx.slice(feed.node_no, Slice(SMART, 10_000))


# Opening


@pytest.mark.parametrize("mode", EXISTING)
async def test_database_without_a_schema_gets_none(url: str, mode: OpenMode) -> None:
    with pytest.raises(StoreError, match=f"it is empty; check store.url, or {CREATE_IT}"):
        await opened(url, mode)

    assert run(url, "SELECT count(*) FROM pg_class WHERE relname = 'node'") == [(0,)]


async def test_stores_that_start_at_once_create_one_schema(url: str) -> None:
    await asyncio.gather(*(opened(url) for _ in range(6)))

    assert run(url, "SELECT version_num FROM alembic_version") == [(HEAD,)]


async def test_newer_schema_and_data_of_others_are_refused(url: str) -> None:
    run(url, "CREATE TABLE accounts (name text)")
    with pytest.raises(StoreError, match=r"it belongs to another program; check store\.url"):
        await opened(url)

    run(url, "DROP TABLE accounts")
    await opened(url)
    run(url, "UPDATE alembic_version SET version_num = '9999'")
    run(url, "UPDATE compatibility SET oldest = '9999'")
    with pytest.raises(StoreError, match=f"its schema 9999 is newer than this program, which knows up to {HEAD}"):
        await opened(url)


async def test_database_that_cannot_be_opened_has_advice(postgres: PostgresServer) -> None:
    """[PG-006]"""
    with pytest.raises(StoreError, match="nowhere: it does not exist; create it with createdb"):
        await opened(postgres.url("nowhere"))
    with pytest.raises(StoreError, match="the server cannot be reached; check that it runs"):
        await opened(f"postgresql://127.0.0.1:{free_port()}/feeds")
    with pytest.raises(StoreError, match=r'check store\.url .*"connect_timeot"') as unknown:
        await opened(f"{postgres.url('postgres')}?connect_timeot=3")
    assert not isinstance(unknown.value, TransientError)  # a service would try it again for ever


async def test_store_open_for_reading_refuses_to_write(url: str) -> None:
    await opened(url)
    store = store_at(url, OpenMode.READ)
    await store.open()

    assert await store.read(lambda tx: tx.node_count()) == 0
    with pytest.raises(StoreError, match="open for reading only"):
        await store.write(lambda tx: tx.node_count())
    await store.close()


# Values


async def test_text_with_nul_is_found_nowhere_and_not_stored(store: PostgresStore) -> None:
    """[PG-005]"""
    feed = await store.write(add_feed())

    assert await store.read(lambda tx: (tx.node("a\0b"), tx.item(feed.node_no, "\0"))) == (None, None)
    touch = Touch("a\0b", "a@x", ("\0",))
    assert await store.write(lambda tx: tx.node("a\0b"), touch=touch) is None
    for work in (lambda tx: tx.add_node(node("a\0b")), lambda tx: tx.put_item(feed.node_no, item("\0", 1))):
        with pytest.raises(StoreError, match="NUL"):
            await store.write(work)
    assert await store.read(lambda tx: tx.count(feed.node_no, SMART)) == 0


async def test_lists_are_in_the_order_of_code_points(postgres: PostgresServer) -> None:
    """[PG-003] Also in a database whose own collation is another one."""
    url = postgres.create_database(locale="LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    store = store_at(url)
    await store.open()
    names = ["B", "a", "Z", "ä", "b", "_", "a/", "a0"]
    for name in names:
        await store.write(add_feed(name=name))

    assert [found.name for found in await store.read(lambda tx: tx.nodes("", 99))] == sorted(names)
    await store.close()
    postgres.drop_database(url)


# Connections


async def test_connections_that_were_lost_are_opened_again(store: PostgresStore, url: str) -> None:
    """[PG-006]"""
    feed = await store.write(add_feed())
    assert await store.read(lambda tx: tx.node_count()) == 1
    end_connections(url)

    assert await store.read(lambda tx: tx.node_count()) == 1
    await store.write(published("feed", "one"))
    end_connections(url)
    await store.write(published("feed", "two"), touch=Touch("feed", "a@x", ("two",), 1))

    assert await store.read(lambda tx: tx.count(feed.node_no, SMART)) == 2


async def test_work_whose_connection_is_lost_runs_again(store: PostgresStore, url: str) -> None:
    """[PG-006] Before the commit was sent. The metric does not count it as a failure of the work."""
    feed = await store.write(add_feed())
    runs: list[str] = []
    before = {reason: retries(reason) for reason in ("lost", "rollback")}

    def work(tx: WriteTx) -> Item:
        stored = published("feed", "one")(tx)
        runs.append(stored.id)
        if len(runs) < 3:
            end_connections(url)
            tx.node_count()
        return stored

    await store.write(work)

    assert len(runs) == 3
    assert retries("lost") == before["lost"] + 2
    assert retries("rollback") == before["rollback"]
    assert await store.read(lambda tx: tx.count(feed.node_no, SMART)) == 1


async def test_work_that_fails_after_a_change_is_counted_as_a_rollback(store: PostgresStore) -> None:
    before = {reason: retries(reason) for reason in ("lost", "rollback")}

    def work(tx: WriteTx) -> None:
        tx.add_node(node("feed"))
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        await store.write(work)
    assert retries("rollback") == before["rollback"] + 1
    assert retries("lost") == before["lost"]
    assert await store.read(lambda tx: tx.node_count()) == 0


def break_commits(url: str, body: str) -> None:
    """Runs a block of PL/pgSQL in each commit that adds an item."""
    run(
        url,
        "CREATE SEQUENCE commits",
        f"CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} RETURN NULL; END$$",
        "CREATE CONSTRAINT TRIGGER break AFTER INSERT ON item DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION break()",
    )


def noted(runs: list[str]) -> Callable[[WriteTx], None]:
    """A work that publishes an item, and notes that it ran."""

    def work(tx: WriteTx) -> None:
        runs.append(published("feed", "one")(tx).id)

    return work


async def item_count(store: PostgresStore) -> int:
    """The number of items of the feed."""
    feed = await store.read(lambda tx: tx.node("feed"))
    assert feed is not None
    return await store.read(lambda tx: tx.count(feed.node_no, SMART))


async def test_commit_that_has_not_happened_is_repeated(store: PostgresStore, url: str) -> None:
    """[PG-006] The connection ends during the commit. The row of the last commit says that it was undone."""
    await store.write(add_feed())
    # The number of a sequence is not undone with the commit.
    break_commits(
        url,
        "IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END IF;",
    )
    runs: list[str] = []
    before = retries("lost")

    await store.write(noted(runs))
    assert runs == ["one", "one"]
    assert retries("lost") == before + 1
    assert await item_count(store) == 1


async def test_commit_that_has_happened_is_not_repeated(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-006] [CAM-082] An operator ends the session right after the commit; psycopg reports its busy pipeline."""
    await store.write(add_feed())
    commit = PostgresSession.commit

    def commit_and_fail(session: PostgresSession) -> str:
        commit(session)
        monkeypatch.undo()
        raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    monkeypatch.setattr(PostgresSession, "commit", commit_and_fail)
    runs: list[str] = []

    await store.write(noted(runs))
    assert runs == ["one"]
    assert await item_count(store) == 1


async def test_commit_that_still_runs_is_waited_for(store: PostgresStore, url: str) -> None:
    """[PG-006] The network fails, and the server does not know it yet. To look too early would store the item twice."""
    await store.write(add_feed())
    break_commits(url, "PERFORM pg_advisory_xact_lock(7);")
    runs: list[str] = []
    query = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as other:

        async def until_waiting(count: int) -> None:
            await until(lambda: other.execute(query).fetchone() == (count,), f"{count} sessions that wait for a lock")

        other.execute("SELECT pg_advisory_lock(7)")
        writing = asyncio.create_task(store.write(noted(runs)))
        await until_waiting(1)
        store._lanes[0].session.answers.shut_down()
        await until_waiting(2)
        other.execute("SELECT pg_advisory_unlock(7)")
    await writing
    assert runs == ["one"]
    assert await item_count(store) == 1


async def test_commit_has_an_unknown_outcome_if_the_database_cannot_be_asked(
    store: PostgresStore, postgres: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-006] The work does not run again, and the store serves the next one."""
    monkeypatch.setattr("smartfeeds.store.postgres_session.RECONNECT_S", 0.1)
    await store.write(add_feed())
    break_commits(
        url,
        "IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END IF;",
    )
    database = url.rpartition("/")[2]
    run(postgres.url(), f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    runs: list[str] = []
    with pytest.raises(UnknownOutcomeError, match="the write may have happened or not; look whether it has"):
        await store.write(noted(runs))
    run(postgres.url(), f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
    assert runs == ["one"]
    assert await item_count(store) == 0
    await store.write(noted(runs))
    assert await item_count(store) == 1


async def test_service_that_ends_leaves_no_row_of_its_last_commit(url: str) -> None:
    """Those of processes that were killed are removed after a day."""
    store = store_at(url)
    await store.open()
    await store.write(add_feed())
    run(url, "INSERT INTO last_commit (writer, number, seen) VALUES ('old', 1, now() - interval '25 hours')")
    assert run(url, "SELECT number FROM last_commit ORDER BY seen DESC LIMIT 1") == [(1,)]
    await opened(url)
    assert run(url, "SELECT count(*) FROM last_commit") == [(1,)]
    await store.close()
    assert run(url, "SELECT count(*) FROM last_commit") == [(0,)]


@pytest.mark.parametrize(
    ("state", "advice", "reason"),
    [
        ("40001", "another transaction has changed the same rows", "serialization"),
        ("40P01", "transactions waited for each other", "deadlock"),
        ("23505", "a write would have made the data inconsistent", "unique"),
        ("57P01", "the service connects again by itself", "lost"),
        ("57P02", "the server has crashed and restarts", "lost"),
        ("57P03", "the server is starting or stopping", "lost"),
        ("53300", "too many connections; raise max_connections", "lost"),
        ("53100", "the disk is full; free disk space", ""),
        ("25006", "it is read-only, probably a standby", ""),
        ("28P01", "the password is missing or wrong", ""),
        ("28000", "the server rejects the user", ""),
        ("3D000", "it does not exist; create it with createdb", ""),
        ("42501", "the user may not do this", ""),
        ("58030", "the server cannot use its disk", ""),
    ],
)
def test_sqlstate_decides_about_advice_and_repetition(state: str, advice: str, reason: str) -> None:
    """[PG-006]"""
    error = postgres_error(psycopg.errors.lookup(state)("its own words"), "db")
    assert advice in str(error)
    assert "the database db: " in str(error)
    assert (error.reason if isinstance(error, TransientError) else "") == reason


async def test_statement_works_after_an_error_of_the_statement_before_it(store: PostgresStore) -> None:
    """A statement whose preparation was skipped because of the error is prepared again."""
    feed = await store.write(lambda tx: tx.add_node(node("feed")))

    def wait(tx: WriteTx) -> None:
        tx.set_wait(Consumer(feed.node_no, PUSH), Pause(1))

    def refused_wait(tx: WriteTx) -> None:
        tx.set_mark(feed.node_no + 1, Order.MODIFIED, PUSH, Mark(1, "c"))
        wait(tx)

    for _ in range(4):
        with pytest.raises(StoreError, match="mark_node_no_fkey"):
            await store.write(refused_wait)
        await store.write(wait)


async def test_server_that_is_gone_has_advice_and_is_used_again(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-006] With the name of the database, and without its password."""
    monkeypatch.setattr("smartfeeds.store.postgres_session.RECONNECT_S", 0.1)
    await store.write(add_feed())
    database = store.address.name.rpartition("/")[2]
    run(
        postgres.url(),
        f"ALTER DATABASE {database} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'",
    )
    with pytest.raises(StoreError, match=f"the database postgresql://postgres@127.0.0.1:{postgres.port}/{database}: "):
        await store.write(published("feed", "one"))
    with pytest.raises(StoreError, match="is not currently accepting connections"):
        await store.read(lambda tx: tx.node_count())

    run(postgres.url(), f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
    await store.write(published("feed", "one"))
    assert await store.read(lambda tx: tx.node_count()) == 1


async def test_look_up_that_takes_too_long_runs_on_another_connection(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-049] The disk is slow for a moment, for example. The reads of a batch do not fail."""
    monkeypatch.setattr("smartfeeds.store.postgres.LIGHT_MS", 1_000)  # the first session is seen before it ends
    async with opened_store(store_at(url)) as store:
        await store.write(add_feed())
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE affiliation IN ACCESS EXCLUSIVE MODE")
            read = asyncio.create_task(store.read(lambda tx: tx.node("feed"), touch=Touch("feed", "a@x")))
            sessions: set[object] = set()

            def look() -> bool:
                sessions.update(pid for (pid,) in other.execute("SELECT pid FROM pg_locks WHERE NOT granted"))
                return len(sessions) == 2 or read.done()

            await until(look, "a second session that waits for the lock")
        assert await read is not None
        assert len(sessions) == 2


async def test_read_that_was_answered_before_the_server_went_away_is_no_failure(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-006] Although the reads behind it in the batch fail."""
    monkeypatch.setattr("smartfeeds.store.postgres_session.RECONNECT_S", 0.1)
    monkeypatch.setattr("smartfeeds.store.batches.READ_BUDGET_S", 60.0)
    await store.write(add_feed())
    database = store.address.name.rpartition("/")[2]

    def end(tx: ReadTx) -> int:
        run(
            postgres.url(),
            f"ALTER DATABASE {database} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'",
        )
        return tx.node_count()

    works = [lambda tx: tx.node_count(), end, lambda tx: tx.node_count()]
    answers = await asyncio.gather(*map(store.read, works), return_exceptions=True)
    run(postgres.url(), f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")

    assert answers[0] == 1
    assert all(isinstance(answer, StoreError) for answer in answers[1:])


async def test_server_ends_a_statement_before_its_client_gives_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[CAM-002] It would go on with it, and keep the locks of the transaction. A bounded count changes nothing."""
    monkeypatch.setattr("smartfeeds.store.postgres.STATEMENT_MS", 200)

    def sleep(tx: ReadTx) -> None:
        tx.node("feed")
        tx.db.within(10**9, tx.node_count)
        tx.db.row("SELECT pg_sleep(60)")

    async with opened_store(store_at(url)) as store:
        for call in (store.write, store.read):
            with pytest.raises(StoreError, match="a statement took too long and was cancelled"):
                await call(sleep)


# Several processes


async def test_two_stores_publish_to_the_same_feeds(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-038] [PG-039] [PG-040] [PG-041] No work runs twice, so no group met a deadlock."""
    monkeypatch.setattr("smartfeeds.store.batches.WRITE_BUDGET_S", 60.0)  # on a busy machine a group would end early
    feeds, rounds = [f"feed{number}" for number in range(20)], 10
    other = store_at(url)
    await other.open()
    for name in feeds:
        await store.write(add_feed(name=name))
    runs: Counter[str] = Counter()

    def publish(where: PostgresStore, name: str, item_id: str) -> "asyncio.Task[Item]":
        def work(tx: WriteTx) -> Item:
            runs[f"{name} {item_id}"] += 1
            return published(name, item_id)(tx)

        touch = Touch(name, "alice@example.org", (item_id,), 1)
        return asyncio.create_task(where.write(work, touch=touch))

    tasks = [
        publish(where, name, f"{prefix}{number}")
        for number in range(rounds)
        for where, prefix, names in ((store, "a", feeds), (other, "b", feeds[::-1]))
        for name in names
    ]
    stored = await asyncio.gather(*tasks)

    assert set(runs.values()) == {1}
    assert len({made.item_no for made in stored}) == len(tasks)
    for name in feeds:
        feed, items = await store.read(lambda tx, name=name: every_item(tx, name))
        assert [made.modified_us for made in items] == list(range(2 * rounds))
        assert [made.item_no for made in items] == sorted(made.item_no for made in items)
        assert (feed.total, feed.live) == (2 * rounds, 2 * rounds)
    await other.close()


async def test_works_that_wait_for_each_other_run_again(store: PostgresStore, url: str) -> None:
    """[PG-006] A work without a touch locks its nodes in its own order."""
    other = store_at(url)
    await other.open()
    for name in ("a", "b"):
        await store.write(add_feed(name=name))
    locked = {name: asyncio.Event() for name in ("a", "b")}
    loop = asyncio.get_running_loop()
    runs: Counter[str] = Counter()
    before = retries("deadlock")

    def work(first: str, second: str) -> Callable[[WriteTx], None]:
        def both(tx: WriteTx) -> None:
            runs[first] += 1
            tx.lock(first)
            loop.call_soon_threadsafe(locked[first].set)
            if runs[first] == 1:
                asyncio.run_coroutine_threadsafe(locked[second].wait(), loop).result(HANG_S)
            published(second, f"by {first}")(tx)

        return both

    await asyncio.gather(store.write(work("a", "b")), other.write(work("b", "a")))

    # The work that was ended may lock its first node again before the other one wakes up, and both wait again.
    assert runs.total() >= 3
    assert retries("deadlock") > before
    assert await store.read(lambda tx: [tx.count(number, SMART) for number in (1, 2)]) == [1, 1]
    await other.close()


async def test_names_that_are_taken_at_once_have_one_node(store: PostgresStore, url: str) -> None:
    """[PG-044]"""
    other = store_at(url)
    await other.open()

    def create(tx: WriteTx) -> bool:
        tx.reserve_name("new")
        if tx.node("new") is not None:
            return False
        tx.add_node(node("new"))
        return True

    results = await asyncio.gather(*(where.write(create) for where in (store, other) for _ in range(5)))

    assert results.count(True) == 1
    assert await store.read(lambda tx: tx.node_count()) == 1
    await other.close()

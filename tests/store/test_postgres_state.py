"""The state of a real PostgreSQL server, as an administrator and an ordinary user of it see it (OPS-082)."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from smartfeeds.core.stores import parse_store
from smartfeeds.features.doctor.postgres_facts import read_facts
from smartfeeds.store.database_state import STANDBY_STATES, DatabaseState
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_engine import PostgresEngine
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.telemetry import REGISTRY
from store.values import read_payload
from support.postgres import PostgresServer, postgres_program
from support.stores import opened
from support.waiting import block_until

ORDINARY = "ordinary"
LIMIT = 9
NO_STANDBYS = dict.fromkeys(STANDBY_STATES, 0)


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    """The address of a database with the schema, whose owner is no administrator of the server."""
    url = postgres.create_database()
    name = sql.Identifier(url.rpartition("/")[2])
    owner = sql.Identifier(ORDINARY)
    with psycopg.connect(postgres.url(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(owner))
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(name, owner))
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(owner))
    with closing(PostgresSession(parse_store(as_ordinary(url)))) as session:
        session.open_at_once()
        prepare_postgres(session)
    yield url
    postgres.drop_database(url)
    with psycopg.connect(postgres.url(), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP ROLE {}").format(owner))


def as_ordinary(url: str) -> str:
    return url.replace("postgres@", f"{ORDINARY}@")


def state_of(url: str) -> DatabaseState:
    """The state as the store reads it."""
    session = PostgresSession(parse_store(url))
    engine = PostgresEngine(session)
    try:
        engine.begin_read()
        return engine.database_state()
    finally:
        engine.end_read()
        session.close()


@contextmanager
def receiver(postgres: PostgresServer, folder: Path) -> Iterator[None]:
    """A client that receives the log, as a standby does."""
    command = [postgres_program("pg_receivewal"), "-D", str(folder), "-d", postgres.url(), "--synchronous"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def until(url: str, condition: Callable[[DatabaseState], object], what: str) -> DatabaseState:
    """Returns the first state that meets a condition. The server ends sessions a moment after their connections."""
    states: list[DatabaseState] = []

    def look() -> object:
        states.append(state_of(url))
        return condition(states[-1])

    block_until(look, what)
    return states[-1]


def test_connections_that_are_free(postgres: PostgresServer, url: str) -> None:
    """[OPS-082] Each open connection counts. The limit of the user is lower than that of the server."""
    mine = as_ordinary(url)
    assert state_of(url).free_connections > LIMIT
    with psycopg.connect(postgres.url(), autocommit=True) as admin:
        admin.execute(sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(sql.Identifier(ORDINARY), LIMIT))
    # The connection that reads the state counts, too.
    until(mine, lambda state: state.free_connections == LIMIT - 1, "one connection")
    with psycopg.connect(mine), psycopg.connect(mine):
        until(mine, lambda state: state.free_connections == LIMIT - 3, "three connections")


def test_session_that_waits_for_a_lock_is_counted(url: str) -> None:
    """[OPS-082] For an ordinary user, too. It waits for the row of another transaction."""
    statement = b"UPDATE compatibility SET oldest = oldest"
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as waiter:
        holder.execute(statement)
        waiter.pgconn.send_query(statement)
        mine = as_ordinary(url)
        state = until(mine, lambda state: state.waiting_sessions == 1 and state.longest_wait_s > 0, "a waiting session")
        until(mine, lambda later: later.longest_wait_s > state.longest_wait_s, "a longer wait")
        holder.rollback()
        while waiter.pgconn.get_result() is not None:
            pass
    assert (state_of(url).waiting_sessions, state_of(url).longest_wait_s) == (0, 0.0)


def test_standby_is_seen_with_its_state_and_lag(postgres: PostgresServer, url: str, tmp_path: Path) -> None:
    """[OPS-082] An ordinary user sees only that it is there."""
    assert (state_of(url).standbys, state_of(url).standby_lag_bytes) == (NO_STANDBYS, None)
    with receiver(postgres, tmp_path):
        state = until(url, lambda state: state.standby_lag_bytes is not None, "the standby")
        assert state.standbys == NO_STANDBYS | {"async": 1}
        hidden = state_of(as_ordinary(url))
        assert (hidden.standbys, hidden.standby_lag_bytes) == (NO_STANDBYS | {"unknown": 1}, None)
        facts = read_facts(parse_store(as_ordinary(url)))
        assert (facts.standbys, facts.synchronous_standbys) == (1, None)
        assert read_facts(parse_store(url)).synchronous_standbys == 0
    until(url, lambda state: state.standbys == NO_STANDBYS, "the end of the standby")


async def test_store_counts_its_connections_and_round_trips(url: str) -> None:
    """[OPS-082] A connection is opened when it is needed."""

    def connections(state: str) -> float | None:
        return REGISTRY.get_sample_value("smartfeeds_store_connections", {"state": state})

    def trips(kind: str) -> float:
        return REGISTRY.get_sample_value("smartfeeds_store_round_trips_total", {"kind": kind}) or 0.0

    before = trips("read")
    async with opened(PostgresStore(parse_store(url), read_payload)) as store:
        assert (connections("used"), connections("idle")) == (0.0, 1.0)
        assert await store.read(lambda tx: tx.database_state()) is not None
        assert (connections("used"), connections("idle")) == (0.0, 2.0)
        assert trips("read") == before + 1
        states = await store.read(lambda _tx: (connections("used"), connections("idle")))
        assert states == (1.0, 1.0)
    assert (connections("used"), connections("idle")) == (0.0, 0.0)


async def test_file_has_no_server(tmp_path: Path) -> None:
    """[OPS-082]"""
    async with opened(SqliteStore(tmp_path / "s.db", read_payload)) as store:
        assert await store.read(lambda tx: tx.database_state()) is None

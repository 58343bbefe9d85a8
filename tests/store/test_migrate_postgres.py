"""The schema in PostgreSQL: created and upgraded by several processes at once, and compared with that of SQLite."""

import os
import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from smartfeeds.core.stores import StoreAddress, parse_store
from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.features.cluster.lock_session import _LockedSession
from smartfeeds.store import migrate, migrate_postgres
from smartfeeds.store.base import OpenMode
from smartfeeds.store.engine import TransientError
from smartfeeds.store.migrate_postgres import postgres_version, prepare_postgres
from smartfeeds.store.postgres_session import PostgresSession
from support.next_version import NEXT, SCRIPT, use_next_version
from support.postgres import PostgresServer
from support.waiting import HANG_S, block_until

TYPES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea", "REAL": "double precision"}


@pytest.fixture
def address(postgres: PostgresServer) -> Iterator[StoreAddress]:
    url = postgres.create_database()
    yield parse_store(url)
    postgres.drop_database(url)


@contextmanager
def opened(address: StoreAddress) -> Iterator[PostgresSession]:
    session = PostgresSession(address)
    session.open_at_once()
    try:
        yield session
    finally:
        session.close()


def prepare(address: StoreAddress, mode: OpenMode = OpenMode.SERVE) -> str | None:
    """Prepares a database as a process does at its start. Returns the version after that."""
    with opened(address) as session:
        prepare_postgres(session, mode)
        return postgres_version(session)


def postgres_version_of(address: StoreAddress) -> str | None:
    with opened(address) as session:
        return postgres_version(session)


def run(address: StoreAddress, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(address.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the next version, which adds a column."""
    use_next_version(monkeypatch, tmp_path / "scripts")


def test_several_processes_create_the_schema_at_once(address: StoreAddress) -> None:
    """[OPS-091]"""
    with ThreadPoolExecutor(4) as threads:
        versions = list(threads.map(prepare, [address] * 4))

    assert versions == [migrate.HEAD] * 4
    assert run(address, "SELECT oldest FROM compatibility") == [(migrate.oldest_of(migrate.HEAD),)]


def test_several_processes_upgrade_at_once(
    address: StoreAddress, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-091]"""
    prepare(address)
    first = migrate.HEAD
    request.getfixturevalue("next_version")
    monkeypatch.setattr(migrate, "COMPATIBLE", {NEXT: first})

    with ThreadPoolExecutor(4) as threads:
        versions = list(threads.map(prepare, [address] * 4))

    assert versions == [NEXT] * 4
    assert run(address, "SELECT oldest FROM compatibility") == [(first,)]
    assert has_colour(address)


def test_former_program_goes_on_with_a_newer_schema_that_supports_it(address: StoreAddress) -> None:
    """[OPS-091]"""
    prepare(address)
    run(address, "UPDATE alembic_version SET version_num = '9999'")

    assert prepare(address) == "9999"
    run(address, "UPDATE compatibility SET oldest = '9998'")
    with pytest.raises(StoreError, match=r"9999 is newer .* install a newer smartfeeds"):
        prepare(address)


@contextmanager
def serving(address: StoreAddress, instance: str) -> Iterator[PostgresSession]:
    """The lock session of a process that serves the database."""
    session = _LockedSession(address, lease_s=60.0)
    session.prepare(instance)
    try:
        yield session
    finally:
        session.close()


def test_upgrade_waits_for_no_process_but_refuses_those_that_cannot_work_with_it(
    address: StoreAddress, request: pytest.FixtureRequest
) -> None:
    """[OPS-091] The message names the processes, also one of a version that does not name its schema."""
    prepare(address)
    former = migrate.HEAD
    with serving(address, "a"), serving(address, "b"):
        unknown = psycopg.connect(address.url, application_name="smartfeeds c locks", autocommit=True)
        request.getfixturevalue("next_version")
        with unknown, pytest.raises(StoreError) as refusal:
            prepare(address)
        assert postgres_version_of(address) == former
    place = rf"process {os.getpid()} on \S+ \(schema {former}, since \d{{4}}-\d\d-\d\d \d\d:\d\d UTC\)"
    other = r"process c \(schema unknown, since [^)]*\)"
    assert re.search(
        rf"its schema {former} cannot be upgraded to {NEXT}, because older programs use it that cannot work with "
        rf"{NEXT}: {place}, {place}, {other}; stop these processes, then start this program again",
        str(refusal.value),
    )

    # The server ends a session a moment after its connection.
    sessions = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'smartfeeds % locks'"
    block_until(lambda: not run(address, sessions), "the end of the sessions")
    assert prepare(address) == NEXT


def test_upgrade_goes_through_beside_processes_that_can_work_with_it(
    address: StoreAddress, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-091] They go on, and may connect again."""
    prepare(address)
    former = migrate.HEAD
    with serving(address, "a") as old:
        with pytest.MonkeyPatch.context() as patch:
            request.getfixturevalue("next_version")
            patch.setattr(migrate, "COMPATIBLE", {NEXT: former})
            assert prepare(address) == NEXT
        assert old.is_open
        monkeypatch.undo()  # the program of the former version again
        assert former == migrate.HEAD
        with serving(address, "b") as other:
            assert other.is_open


def test_process_that_starts_during_an_upgrade_waits_for_it(address: StoreAddress) -> None:
    """[OPS-091] Otherwise the upgrade would overlook it."""
    prepare(address)
    with psycopg.connect(address.url) as upgrading, ThreadPoolExecutor(1) as threads:
        upgrading.execute("SELECT pg_advisory_xact_lock(%s)", (migrate_postgres.SCHEMA_LOCK,))
        session = _LockedSession(address, lease_s=60.0)
        start = threads.submit(session.prepare, "a")
        locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        block_until(lambda: run(address, locks), "the process to wait for the upgrade")
        upgrading.execute("UPDATE alembic_version SET version_num = '9999'")
        upgrading.execute("UPDATE compatibility SET oldest = '9998'")
        upgrading.commit()
        with pytest.raises(NewerSchemaError, match="9999 is newer"):
            start.result(HANG_S)
    assert not session.is_open


@pytest.mark.usefixtures("next_version")
@pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE, OpenMode.CREATE])
def test_commands_leave_an_older_schema_alone(address: StoreAddress, mode: OpenMode) -> None:
    prepare(address)
    run(address, f"UPDATE alembic_version SET version_num = '{migrate.REVISIONS[-2]}'")

    with pytest.raises(StoreError, match="is older than this program"):
        prepare(address, mode)


@pytest.mark.parametrize("revision", ["0034", "0036"])
def test_schema_that_was_never_released_is_refused(address: StoreAddress, revision: str) -> None:
    """[OPS-091]"""
    prepare(address)
    run(address, f"UPDATE alembic_version SET version_num = '{revision}'")
    run(address, f"UPDATE compatibility SET oldest = '{revision}'")

    with pytest.raises(StoreError, match=f"its schema {revision} was never released"):
        prepare(address)
    assert run(address, "SELECT version_num FROM alembic_version") == [(revision,)]


def has_colour(address: StoreAddress) -> bool:
    columns = run(address, "SELECT 1 FROM information_schema.columns WHERE column_name = 'colour'")
    return bool(columns)


@pytest.mark.parametrize(
    ("statement", "error", "reason"),
    [
        (SCRIPT, StoreError, "already exists"),
        ("SELECT pg_terminate_backend(pg_backend_pid());\n", TransientError, "terminating connection"),
    ],
    ids=["statement", "connection"],
)
def test_failed_upgrade_is_undone_and_may_be_repeated(
    address: StoreAddress, tmp_path: Path, statement: str, error: type[StoreError], reason: str
) -> None:
    """[OPS-091] A script with a mistake, and a connection that was lost after the first statement."""
    prepare(address)
    former = migrate.HEAD
    with pytest.MonkeyPatch.context() as patch:
        use_next_version(patch, tmp_path / "failing", SCRIPT + statement)
        with pytest.raises(StoreError, match=f"its upgrade from {former} to {NEXT} failed and was undone") as failure:
            prepare(address)
    assert type(failure.value) is error
    assert reason in str(failure.value)
    assert postgres_version_of(address) == former
    assert not has_colour(address)

    with pytest.MonkeyPatch.context() as patch:
        use_next_version(patch, tmp_path / "good")
        assert prepare(address) == NEXT
    assert has_colour(address)


def test_upgrade_has_no_time_limit(address: StoreAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of the store bounds its statements, and may wait for another process only for some seconds."""
    prepare(address)
    limits = "current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')"
    use_next_version(monkeypatch, tmp_path / "scripts", f"CREATE TABLE seen AS SELECT {limits} AS limits;\n")
    session = PostgresSession(address, statement_timeout_ms=60_000)
    session.open_at_once()
    try:
        prepare_postgres(session)
        after = session.execute(f"SELECT {limits}")
    finally:
        session.close()

    assert run(address, "SELECT limits FROM seen") == [("0 0",)]
    assert after == [("1min 20s",)]


def test_both_engines_have_the_same_tables_columns_and_keys(address: StoreAddress, tmp_path: Path) -> None:
    """[PG-010] test_migrate.py compares the file for SQLite with the upgrades."""
    prepare(address)
    with (
        closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as sqlite,
        psycopg.connect(address.url, autocommit=True) as postgres,
    ):
        migrate.prepare(sqlite, tmp_path / "s.db")
        of_sqlite = sqlite.execute("SELECT name FROM pragma_table_list WHERE type <> 'shadow'").fetchall()
        of_postgres = postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        tables = {name for (name,) in of_sqlite if not name.startswith("sqlite_")}
        assert tables == {name for (name,) in of_postgres}
        assert len(tables) > 25
        # FTS5 has no types; here its texts are a tsvector. Alembic makes the other table.
        for table in tables - {"word", "alembic_version"}:
            assert columns_of_sqlite(sqlite, table) == columns_of_postgres(postgres, table), table


@pytest.mark.parametrize("unique", [True, False])
def test_both_engines_have_the_same_indexes(address: StoreAddress, tmp_path: Path, *, unique: bool) -> None:
    """[PG-010]"""
    prepare(address)
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as sqlite:
        migrate.prepare(sqlite, tmp_path / "s.db")
        names = sqlite.execute(
            'SELECT l.name FROM sqlite_master m, pragma_index_list(m.tbl_name) l WHERE l."unique" = ?'
            " AND m.sql IS NOT NULL AND l.origin = 'c' AND l.name = m.name",
            (unique,),
        ).fetchall()
    rows = run(
        address,
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint k"
        " ON k.conindid = c.oid WHERE k.oid IS NULL AND c.relnamespace = 'public'::regnamespace"
        f" AND i.indisunique = {unique}",
    )
    only_postgres = set() if unique else {("word_tokens",)}

    assert set(rows) == {*names, *only_postgres}


def columns_of_sqlite(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, bool]]:
    """Name, type as in PostgreSQL, and whether the column must have a value."""
    query = 'SELECT name, type, "notnull" OR pk > 0 FROM pragma_table_info(?) ORDER BY 1'
    return [(name, TYPES[kind], bool(needed)) for name, kind, needed in connection.execute(query, (table,))]


def columns_of_postgres(connection: psycopg.Connection[tuple[object, ...]], table: str) -> list[tuple[object, ...]]:
    query = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        ' WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname COLLATE "C"'
    )
    return connection.execute(query, (table,)).fetchall()

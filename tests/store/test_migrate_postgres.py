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
from alembic.config import Config

from smartfeeds.core.stores import StoreAddress, parse_store
from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.features.cluster.lock_session import _LockedSession
from smartfeeds.store import migrate, migrate_postgres, migrations
from smartfeeds.store.base import OpenMode
from smartfeeds.store.migrate_postgres import postgres_version, prepare_postgres
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.rows import checksum, item_texts
from support.postgres import PostgresServer
from support.waiting import HANG_S, block_until

NEXT = "9000"
VERSIONS = Path(migrations.__file__).parent / "versions"
COLOUR = '''"""A column that the next version might add."""

from smartfeeds.store.migrations import run_script

revision = "9000"
down_revision = "{head}"

_COLUMN = """
ALTER TABLE node ADD COLUMN colour TEXT NOT NULL DEFAULT '';
"""


def upgrade() -> None:
    run_script(_COLUMN, postgres=_COLUMN)
'''
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
    (tmp_path / "9000_colour.py").write_text(COLOUR.format(head=migrate.HEAD))
    configuration = migrations.configuration

    def extended() -> Config:
        config = configuration()
        config.set_main_option("version_locations", f"{VERSIONS}{os.pathsep}{tmp_path}")
        return config

    monkeypatch.setattr(migrations, "configuration", extended)
    monkeypatch.setattr(migrate, "REVISIONS", (*migrate.REVISIONS, NEXT))
    for module in (migrate, migrate_postgres):
        monkeypatch.setattr(module, "HEAD", NEXT)


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
    assert run(address, "SELECT column_name FROM information_schema.columns WHERE column_name = 'colour'")


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


def test_version_without_statements_for_postgres_is_undone(address: StoreAddress) -> None:
    """Versions before the first release with PostgreSQL have no such statements."""
    prepare(address)
    former = migrate.REVISIONS[migrate.REVISIONS.index("0034") - 1]
    run(address, f"UPDATE alembic_version SET version_num = '{former}'")

    with pytest.raises(StoreError, match="no statements for PostgreSQL"):
        prepare(address)
    assert run(address, "SELECT version_num FROM alembic_version") == [(former,)]


def test_counts_of_the_former_version_survive(address: StoreAddress) -> None:
    """[PG-010] [PG-042] Afterwards the tables and indexes are those of a new database."""
    prepare(address)
    shape = (
        "SELECT c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c WHERE c.conrelid = 'tally'::regclass",
        "SELECT column_default FROM information_schema.columns WHERE table_name = 'tally' AND column_default <> ''",
        "SELECT indexdef FROM pg_indexes WHERE indexname = 'mark_behind'",
        "SELECT attname, attstorage, attcompression FROM pg_attribute WHERE attrelid = 'item'::regclass AND attnum > 0"
        " AND NOT attisdropped",
    )
    expected = [run(address, statement) for statement in shape]
    run(
        address,
        "INSERT INTO node (node_no, name, kind, creator, created_us, options, state, total, live, last_modified_us,"
        " last_created_us, audience, subscribed, indexed_us, indexed_no, stale, listed)"
        " VALUES (1, 'n', 'feed', 'o@x', 1, '{}', 'live', 2, 2, 1, 1, 0, 0, 0, 0, 0, 1);"
        " INSERT INTO item (node_no, id, created_us, modified_us, change, revision, notify, total, live, publisher,"
        " payload, sync_id, sync) VALUES (1, 'é', 1, 1, 0, 1, 0, 1, 1, 'o@x', convert_to('é', 'UTF8'), '', 's'),"
        " (1, 'b', 2, 2, 0, 1, 0, 1, 1, '', '', 'b', '');"
        " INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us,"
        " created_us, options) VALUES (1, 's@x', 's@x', '', 'n', 'f', 'subscribed', 0, 0, 0, '{}'),"
        " (1, 's@x/r', 's@x', '', 'n', 'f', 'pending', 0, 0, 0, '{}')",
    )
    run(
        address,
        'DROP TABLE tally; CREATE TABLE tally (name TEXT COLLATE "C" NOT NULL PRIMARY KEY, value BIGINT NOT NULL'
        " CHECK (value >= 0)); INSERT INTO tally VALUES ('nodes', 3); DROP INDEX mark_behind;"
        " CREATE INDEX mark_behind ON mark (behind, node_no, ord, key_us);"
        " ALTER TABLE item ALTER payload SET STORAGE EXTENDED, ALTER sync SET STORAGE EXTENDED;"
        " ALTER TABLE item ALTER payload SET COMPRESSION default;"
        " ALTER TABLE item DROP COLUMN checksum;"
        " UPDATE alembic_version SET version_num = '0034'",
    )

    assert prepare(address) == migrate.HEAD
    # [PG-042] Schema 0037 adds what each bare JID has.
    rows = run(address, "SELECT name, slot, value FROM tally ORDER BY name")
    assert rows == [("nodes", 0, 3), ("nodes of o@x", 0, 1), ("subscriptions of s@x", 0, 2)]
    sums = [row[0] for row in run(address, "SELECT checksum FROM item ORDER BY item_no")]
    assert sums == [
        checksum("é".encode(), b"s", item_texts("é", "o@x", "")),
        checksum(b"", b"", item_texts("b", "", "b")),
    ]
    assert [run(address, statement) for statement in shape] == expected


def test_both_engines_have_the_same_tables_columns_and_keys(address: StoreAddress, tmp_path: Path) -> None:
    """[PG-010] test_migrate.py compares the file for SQLite with the migrations."""
    prepare(address)
    with (
        closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as sqlite,
        psycopg.connect(address.url, autocommit=True) as postgres,
    ):
        migrate.create(sqlite)
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
        migrate.create(sqlite)
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

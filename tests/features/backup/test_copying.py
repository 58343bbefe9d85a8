"""Copies of stores between engines: every table, in both directions, interrupted and continued."""

import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import psycopg
import pytest

from smartfeeds.core.stores import StoreAddress, StoreEngine, parse_store
from smartfeeds.errors import StoreError
from smartfeeds.features.backup import copy_postgres, copying
from smartfeeds.features.backup.copy_postgres import postgres_source, postgres_target
from smartfeeds.features.backup.copy_sqlite import sqlite_source, sqlite_target
from smartfeeds.features.backup.copying import CopySource, CopyTarget, Progress, copy_store, no_progress, table_digests
from smartfeeds.features.backup.digests import TableDigest, digest_of, feed_digests, row_bytes
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode
from smartfeeds.store.lock import lock_database
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_session import PostgresSession
from support.postgres import PostgresServer
from support.waiting import block_until

ROWS = 3  # of each table
SOURCE = "the source"


class CopyInterruptedError(Exception):
    """Stands for Ctrl-C."""


@pytest.fixture
def address(postgres: PostgresServer) -> Iterator[StoreAddress]:
    """An empty database of PostgreSQL."""
    url = postgres.create_database()
    yield parse_store(url)
    postgres.drop_database(url)


@pytest.fixture
def filled(tmp_path: Path, template: Path) -> Path:
    """A SQLite database with rows in every table."""
    return Path(shutil.copy(template, tmp_path / "filled.db"))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows are made for every table of the schema, so that a table that is added later is copied here too."""
    path = tmp_path_factory.mktemp("template") / "filled.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate.prepare(connection, path)
        connection.execute("BEGIN")
        connection.execute("DELETE FROM tally")
        tables = connection.execute(
            "SELECT m.name, m.sql, l.type = 'virtual' FROM sqlite_master m JOIN pragma_table_list l ON m.name = l.name"
            " WHERE l.type <> 'shadow' ORDER BY m.rowid"
        ).fetchall()
        for table, text, is_virtual in tables:
            choices = dict(re.findall(r"(\w+) TEXT NOT NULL CHECK \(\w+ IN \('([\w-]+)'", text))
            if table in copying.OWN_TABLES or table.startswith("sqlite_"):
                continue
            columns = connection.execute('SELECT name, type, "notnull" FROM pragma_table_info(?)', (table,)).fetchall()
            for number in range(1, ROWS + 1):
                if is_virtual:
                    connection.execute(f"INSERT INTO {table} (rowid, tokens) VALUES (?, '1wzz 1wa 1f00')", (number,))
                else:
                    values = [value(choices.get(column[0], ""), *column, number) for column in columns]
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        # Numbers of rows that are gone are not given again.
        connection.execute("UPDATE sqlite_sequence SET seq = 77 WHERE name = 'item'")
        connection.execute("COMMIT")
    return path


def value(choice: str, name: str, kind: str, needed: int, number: int) -> object:
    """A value of a column, which passes its checks and differs between rows where it may."""
    if not needed and number == 2 and not name.endswith("_no"):
        return None
    if name in ("listed", "stale", "change", "notify", "behind", "joined", "configured", "active", "room", "presence"):
        return 1
    if name == "ord":
        return "modified"
    return {
        "INTEGER": number,
        "REAL": number + 0.25,
        "BLOB": bytes([number]) * 32,
        "TEXT": choice or f"{name} \U0001f600 \u1e9e \\N \t \n {number}",
    }[kind]


End = Callable[[], AbstractContextManager[CopySource]]
TargetEnd = Callable[[], AbstractContextManager[CopyTarget]]


def copied(source: End, target: TargetEnd, on_progress: Progress = no_progress) -> list[TableDigest]:
    with source() as read, target() as written:
        return copy_store(read, written, SOURCE, on_progress)


def digests(source: End) -> list[TableDigest]:
    with source() as read:
        return table_digests(read)


def dump(path: Path) -> list[tuple[str, object]]:
    """All rows of a SQLite database, the schema included."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        shadows = {f"word_{part}" for part in ("data", "idx", "content", "docsize", "config")}
        rows = [
            (table, row if table != "word" else tuple(sorted(row[0].split())))
            for table in sorted(set(tables) - shadows)
            for row in sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        ]
        indexes = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql <> '' ORDER BY name")
        return [*rows, *(("index", row) for row in indexes)]


def test_copy_to_postgres_and_back_is_equal(filled: Path, address: StoreAddress, tmp_path: Path) -> None:
    """[OPS-092] Every table, every column, every number, the sequences and the indexes."""
    back = tmp_path / "back.db"

    there = copied(partial(sqlite_source, filled), partial(postgres_target, address))
    here = copied(partial(postgres_source, address), partial(sqlite_target, back))

    assert {table.rows for table in there} == {ROWS}
    assert len(there) > 25
    assert (
        sorted(there, key=repr) == sorted(here, key=repr) == sorted(digests(partial(sqlite_source, filled)), key=repr)
    )
    assert digest_of(there) == digest_of(here)
    assert dump(back) == dump(filled)
    with psycopg.connect(address.url) as connection:
        row = connection.execute("SELECT nextval(pg_get_serial_sequence('item', 'item_no'))").fetchone()
        assert row == (78,)


def test_database_that_processes_have_served_is_copied(
    filled: Path, address: StoreAddress, postgres: PostgresServer, tmp_path: Path
) -> None:
    """[OPS-092] The letters between processes are no data, and have a table that a new database lacks."""
    there = copied(partial(sqlite_source, filled), partial(postgres_target, address))
    with psycopg.connect(address.url) as connection:
        connection.execute("CREATE TABLE letter (no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body BYTEA)")
        connection.execute("INSERT INTO letter (body) VALUES ('x')")
    other = parse_store(postgres.create_database())

    for target in (partial(sqlite_target, tmp_path / "back.db"), partial(postgres_target, other)):
        assert digest_of(copied(partial(postgres_source, address), target)) == digest_of(there)
    postgres.drop_database(other.url)


def test_copy_of_postgres_has_all_its_indexes(filled: Path, postgres: PostgresServer, address: StoreAddress) -> None:
    """[OPS-092]"""
    copied(partial(sqlite_source, filled), partial(postgres_target, address))
    fresh = parse_store(postgres.create_database())
    session = PostgresSession(fresh)
    session.open_at_once()
    prepare_postgres(session)
    session.close()
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    constraints = "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1, 2"

    with psycopg.connect(address.url) as one, psycopg.connect(fresh.url) as other:
        for query in (indexes, constraints, "SELECT * FROM alembic_version", "SELECT * FROM compatibility"):
            assert one.execute(query.encode()).fetchall() == other.execute(query.encode()).fetchall() != []


@pytest.mark.parametrize("engine", StoreEngine)
@pytest.mark.parametrize("stop_at", [1, 40])
def test_interrupted_copy_continues(
    filled: Path,
    address: StoreAddress,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: StoreEngine,
    stop_at: int,
) -> None:
    """[OPS-092] A service refuses the part, and a second run adds the rest."""
    monkeypatch.setattr(copying, "CHUNK_ROWS", 1)
    part = tmp_path / "part.db"
    is_postgres = engine is StoreEngine.POSTGRES
    target: TargetEnd = partial(postgres_target, address) if is_postgres else partial(sqlite_target, part)
    opened: End = partial(postgres_source, address) if is_postgres else partial(sqlite_source, part)
    source = partial(sqlite_source, filled)
    steps: list[tuple[str, int, int]] = []

    def stop(*step: object) -> None:
        steps.append(step)  # type: ignore[arg-type]
        if len(steps) == stop_at:
            raise CopyInterruptedError

    with pytest.raises(CopyInterruptedError):
        copied(source, target, stop)
    with pytest.raises(StoreError, match="is an unfinished copy; run smartfeeds db copy again"):
        digests(opened)
    again = copied(source, target)

    assert sorted(again, key=repr) == sorted(digests(source), key=repr) == sorted(digests(opened), key=repr)


def test_progress_grows_to_the_number_of_rows(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "CHUNK_ROWS", 1)
    steps: list[tuple[str, int, int]] = []

    copied(
        partial(sqlite_source, filled),
        partial(sqlite_target, tmp_path / "to.db"),
        lambda work, done, total: steps.append((work, done, total)),
    )

    assert {total for _, _, total in steps} == {ROWS}
    assert {("copy item", ROWS, ROWS), ("verify item", ROWS, ROWS)} < set(steps)
    assert all(before[1] <= after[1] for before, after in pairwise(steps) if before[0] == after[0])


def test_source_that_changed_between_two_runs_is_noticed(filled: Path, tmp_path: Path) -> None:
    """[OPS-092]"""
    source, target = partial(sqlite_source, filled), partial(sqlite_target, tmp_path / "to.db")

    def stop(work: str, _done: int, _total: int) -> None:
        if work == "verify item":
            raise CopyInterruptedError

    with pytest.raises(CopyInterruptedError):
        copied(source, target, stop)
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE item SET payload = x'00' WHERE item_no = 2")

    with pytest.raises(StoreError, match="differs from its source in the table item: 3 rows instead of 3, sha256"):
        copied(source, target)


@pytest.mark.parametrize("engine", StoreEngine)
def test_target_with_other_data_is_refused(
    filled: Path, address: StoreAddress, tmp_path: Path, engine: StoreEngine
) -> None:
    """[OPS-092] Also the unfinished copy of another source."""
    source = partial(sqlite_source, filled)
    path = tmp_path / "to.db"
    target: TargetEnd = (
        partial(postgres_target, address) if engine is StoreEngine.POSTGRES else partial(sqlite_target, path)
    )
    with target() as written:
        written.begin("another source")

    with pytest.raises(StoreError, match="has other data"):
        copied(source, target)
    with target() as written:
        written.finish({})
    with pytest.raises(StoreError, match="has other data"):
        copied(source, target)


@pytest.mark.parametrize("engine", StoreEngine)
def test_target_of_another_program_is_named(
    filled: Path, address: StoreAddress, tmp_path: Path, engine: StoreEngine
) -> None:
    """[OPS-092]"""
    path = tmp_path / "to.db"
    if engine is StoreEngine.POSTGRES:
        with psycopg.connect(address.url) as connection:
            connection.execute("CREATE TABLE theirs (number INTEGER)")
        target: TargetEnd = partial(postgres_target, address)
    else:
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE theirs (number INTEGER)")
        target = partial(sqlite_target, path)
    name = address.name if engine is StoreEngine.POSTGRES else str(path)

    with pytest.raises(StoreError, match=f"the database {re.escape(name)}: it belongs to another program"):
        copied(partial(sqlite_source, filled), target)


def test_database_that_a_service_uses_is_refused(filled: Path, address: StoreAddress) -> None:
    """[OPS-092]"""
    session = PostgresSession(address)
    session.open_at_once()
    prepare_postgres(session)
    release = lock_database(filled, "smartfeeds, feeds.example.org")
    try:
        for end in (postgres_source, postgres_target):
            with pytest.raises(StoreError, match=r"a service or a command of smartfeeds uses it \(1 connections\)"):
                digests(partial(end, address))
        for other in (sqlite_source, sqlite_target):
            with pytest.raises(StoreError, match=r"feeds\.example\.org\) is using it; stop that process"):
                digests(partial(other, filled))
    finally:
        release()
        session.close()


def test_two_copies_into_one_database_are_refused(address: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_postgres, "_LOCK_WAIT", "10ms")
    with (
        postgres_target(address),
        pytest.raises(StoreError, match="another smartfeeds db copy uses it"),
        postgres_target(address),
    ):
        pass


def test_copy_waits_until_the_server_has_noticed_the_end_of_another_one(address: StoreAddress) -> None:
    with psycopg.connect(address.url, autocommit=True) as former, psycopg.connect(address.url, autocommit=True) as look:
        former.execute("SELECT pg_advisory_lock(%s)", (copy_postgres._LOCK,))

        def end_the_former() -> None:
            query = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
            block_until(lambda: look.execute(query).fetchone(), "the copy to wait for the lock")
            former.close()

        thread = threading.Thread(target=end_the_former, daemon=True)
        thread.start()
        with postgres_target(address):
            thread.join()


def test_older_source_is_refused(filled: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")

    with pytest.raises(StoreError, match="its schema 0001 is older than this program"):
        copied(partial(sqlite_source, filled), partial(sqlite_target, tmp_path / "to.db"))


def test_tables_that_differ_are_named(filled: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("ALTER TABLE chat ADD COLUMN colour TEXT")

    with pytest.raises(StoreError, match=r"tables of source and target differ \(chat\)"):
        copied(partial(sqlite_source, filled), partial(sqlite_target, tmp_path / "to.db"))


def test_rows_that_differ_have_different_bytes() -> None:
    values = (1, "1", b"1", 1.0, None, "", b"", "1;", "11", "s1:1")
    rows = [*product(values, repeat=2), *((value,) for value in values)]

    assert len({row_bytes(row) for row in rows}) == len(rows)


def test_digest_of_a_feed_covers_what_followers_see() -> None:
    """[OPS-092] It does not depend on the numbers of rows and nodes."""
    columns = ("item_no", "node_no", "id", "created_us", "modified_us", "change", "revision", "publisher", "payload",
               "sync_id", "sync")  # fmt: skip
    item = (1, 7, "a", 5, 6, 0, 1, "o@x", b"<a/>", "", b"")
    (feed,) = feed_digests(columns, [item, (2, 7, *item[2:])])
    (moved,) = feed_digests(columns, [(11, 3, *item[2:]), (12, 3, *item[2:])])
    edited = {feed_digests(columns, [item, (2, 7, *item[2:place], "other", *item[place + 1 :])])[0].sha256
              for place in range(2, len(item))}  # fmt: skip

    assert (feed.items, feed.sha256) == (moved.items, moved.sha256) == (2, feed.sha256)
    assert len(edited | {feed.sha256}) == len(item) - 1


def test_read_mode_of_a_source_changes_nothing(filled: Path) -> None:
    before = filled.read_bytes()
    with sqlite_source(filled):
        pass

    assert filled.read_bytes() == before
    assert OpenMode.READ.creates is False

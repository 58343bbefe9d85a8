"""A PostgreSQL database as the source or the target of a copy (`copying`).

A source is one snapshot. A target gets its tables first, then the rows by COPY, and last the indexes, so that no row
has to update an index.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.features.backup.copying import OWN_TABLES, TableShape
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode
from smartfeeds.store.engine import Row
from smartfeeds.store.migrate_postgres import postgres_version, prepare_postgres
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import PostgresSession, connect
from smartfeeds.store.schema_blocks import schema_blocks

# Of one connection at a time: two copies into one database would disturb each other. "feedcopy" as a number.
_LOCK = int.from_bytes(b"feedcopy")
# The server releases the lock of a copy only when it has noticed the end of its connection.
_LOCK_WAIT = "3s"
_FETCH_ROWS = 2_000  # of one request; the other rows of the table wait at the server
_APPLICATION = "smartfeeds db copy"
_SERVICE = "smartfeeds"  # the application_name of the sessions of a service
_TABLES = """
SELECT c.relname, k.conkey, array_agg(a.attname::text ORDER BY a.attnum), array_agg(a.attnum ORDER BY a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
GROUP BY c.oid, c.relname, k.conkey
ORDER BY c.oid
"""
_SEQUENCES = """
SELECT t.relname, pg_get_serial_sequence(t.oid::regclass::text, a.attname)
FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid
WHERE a.attidentity <> '' AND t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
"""


@contextmanager
def postgres_source(address: StoreAddress) -> Iterator["PostgresCopy"]:
    """Yields a database in a snapshot. Raises StoreError, also if a service uses the database."""
    with _connected(address) as connection:
        with _session(address) as session:
            prepare_postgres(session, OpenMode.READ)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield PostgresCopy(connection, address)
        connection.execute("COMMIT")


@contextmanager
def postgres_target(address: StoreAddress) -> Iterator["PostgresCopy"]:
    """Yields a database to write. Raises StoreError, also if a service or another copy uses the database."""
    with _connected(address) as connection:
        try:
            with connection.transaction():
                connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_WAIT,))
                connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        except psycopg.errors.LockNotAvailable as error:
            text = f"the database {address.name}: another smartfeeds db copy uses it; wait for its end"
            raise StoreError(text) from error
        yield PostgresCopy(connection, address)


@contextmanager
def _connected(address: StoreAddress) -> Iterator[psycopg.Connection[Row]]:
    try:
        with connect(address, _APPLICATION, autocommit=True, client_encoding="utf8") as connection:
            _refuse_service(connection, address)
            yield connection
    except psycopg.Error as error:
        raise postgres_error(error, address.name) from error


@contextmanager
def _session(address: StoreAddress) -> Iterator[PostgresSession]:
    session = PostgresSession(address)
    session.open_at_once()
    try:
        # A connection stays in the list of the server for a moment after its end, and is no service.
        session.connection.execute("SELECT set_config('application_name', %s, false)", (_APPLICATION,))
        yield session
    finally:
        session.close()


def _refuse_service(connection: psycopg.Connection[Row], address: StoreAddress) -> None:
    (count,) = _row(
        connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            (_SERVICE,),
        )
    )
    if count:
        raise StoreError(
            f"the database {address.name}: a service or a command of smartfeeds uses it ({count} connections); "
            "stop that process"
        )


class PostgresCopy:
    """A database for `copying.copy_store`. Its methods raise psycopg.Error, which the context managers translate."""

    def __init__(self, connection: psycopg.Connection[Row], address: StoreAddress) -> None:
        self._connection = connection
        self._address = address

    def tables(self) -> list[TableShape]:
        shapes = []
        for name, key_numbers, names, numbers in self._connection.execute(_TABLES).fetchall():
            if name not in OWN_TABLES:
                column = dict(zip(numbers, names, strict=True))
                shapes.append(TableShape(name, tuple(sorted(names)), tuple(column[number] for number in key_numbers)))
        return shapes

    def count(self, table: TableShape) -> int:
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))
        return int(_row(self._connection.execute(query))[0])

    def rows(self, table: TableShape, after: Row | None = None) -> Iterator[Row]:
        query = sql.SQL("SELECT {} FROM {}").format(_columns(table), sql.Identifier(table.name))
        if after:
            places = sql.SQL(", ").join([sql.Placeholder()] * len(table.key))
            query += sql.SQL(" WHERE ({}) > ({})").format(_names(table.key), places)
        query += sql.SQL(" ORDER BY {}").format(_names(table.key))
        # A cursor of the server sends the rows in pieces. It needs a transaction, which a target does not have yet.
        with self._connection.transaction(), self._connection.cursor("copied_rows", binary=True) as cursor:
            cursor.itersize = _FETCH_ROWS
            yield from cursor.execute(query, after)

    def sequences(self) -> dict[str, int]:
        values = {}
        for table, sequence in self._sequence_names().items():
            query = f"SELECT last_value, is_called FROM {sequence}"
            last, is_called = _row(self._connection.execute(query.encode()))
            if is_called:
                values[table] = last
        return values

    def _sequence_names(self) -> dict[str, str]:
        rows = self._connection.execute(_SEQUENCES).fetchall()
        return {table: sequence for table, sequence in rows if table not in OWN_TABLES}

    def begin(self, source: str) -> None:
        marker = migrate.copy_marker(source)
        with _session(self._address) as session:
            version = _version(session)
        if version == marker:
            return
        if version is not None:
            raise StoreError(f"the database {self._address.name} has other data; create an empty database")
        tables, _ = self._blocks()
        with self._connection.transaction():
            for block in tables:
                self._connection.execute(block.encode())
            self._connection.execute("DELETE FROM tally")  # the rows of an empty database; those of the source follow
            self._connection.execute("INSERT INTO alembic_version (version_num) VALUES (%s)", (marker,))

    def last_key(self, table: TableShape) -> Row | None:
        order = sql.SQL(", ").join([sql.SQL("{} DESC").format(sql.Identifier(column)) for column in table.key])
        query = sql.SQL("SELECT {} FROM {} ORDER BY {} LIMIT 1")
        return self._connection.execute(
            query.format(_names(table.key), sql.Identifier(table.name), order), binary=True
        ).fetchone()

    def write(self, table: TableShape, rows: Sequence[Row]) -> None:
        command = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), _names(table.columns))
        with self._connection.transaction(), self._connection.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row(row)

    def finish(self, sequences: dict[str, int]) -> None:
        _, indexes = self._blocks()
        names = self._sequence_names()
        with self._connection.transaction():
            self._connection.execute("SET LOCAL maintenance_work_mem = '256MB'")  # sorts of a million rows fit
            for block in indexes:
                self._connection.execute(block.encode())
            for table, last in sequences.items():
                if last:
                    self._connection.execute("SELECT setval(%s::regclass, %s)", (names[table], last))
            self._connection.execute(migrate.set_version().encode())
        self._connection.execute("ANALYZE")

    def _blocks(self) -> tuple[list[str], list[str]]:
        return schema_blocks(migrate.schema("postgres"))


def _version(session: PostgresSession) -> str | None:
    with migrate.database_named(session.name):
        return postgres_version(session)


def _columns(table: TableShape) -> sql.Composed:
    """The columns to read. The index of words has its tokens as one text, as SQLite has them."""
    tokens = sql.SQL("array_to_string(ARRAY(SELECT unnest(tsvector_to_array(tokens)) COLLATE \"C\" ORDER BY 1), ' ')")
    is_index = table.name == "word"
    return sql.SQL(", ").join(
        [tokens if is_index and column == "tokens" else sql.Identifier(column) for column in table.columns]
    )


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _row(cursor: psycopg.Cursor[Any]) -> Row:
    row: Row | None = cursor.fetchone()
    assert row is not None  # the callers ask for a count, or for the row of a sequence
    return row

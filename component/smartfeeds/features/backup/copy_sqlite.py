"""A SQLite database as the source or the target of a copy (`copying`).

The file is locked as by a service until the copy ends. Rows that changed meanwhile would make the digests differ.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.features.backup.copying import OWN_TABLES, TableShape
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode
from smartfeeds.store.engine import Row
from smartfeeds.store.lock import lock_database
from smartfeeds.store.rows import placeholders
from smartfeeds.store.schema_blocks import schema_blocks
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, make_private, missing, restoring_path, store_error

# The index of words is a virtual table, whose number of a row has no column of its own.
_DOCUMENT = "document"


@contextmanager
def sqlite_source(path: Path) -> Iterator["SqliteCopy"]:
    """Yields a database, locked against a service, in a snapshot. Raises StoreError."""
    if not path.exists():
        raise missing(path, "check the address")
    with _locked(path) as connection:
        migrate.prepare(connection, path, OpenMode.READ)
        connection.execute("BEGIN")
        yield SqliteCopy(connection, path)


@contextmanager
def sqlite_target(path: Path) -> Iterator["SqliteCopy"]:
    """Yields a database to write, locked against a service. It is created if it does not exist. Raises StoreError."""
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist; create it")
    if not path.exists() and restoring_path(path).exists():
        raise missing(path)
    make_private(path)
    with _locked(path) as connection:
        # A copy that is interrupted by a power loss begins again, so only its end needs to reach the disk.
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        yield SqliteCopy(connection, path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def _locked(path: Path) -> Iterator[sqlite3.Connection]:
    release = lock_database(path, "smartfeeds db copy")
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error
    finally:
        release()


class SqliteCopy:
    """A database for `copying.copy_store`. Its methods raise sqlite3.Error, which the context managers translate."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def tables(self) -> list[TableShape]:
        names = self._connection.execute(
            "SELECT l.name, l.type FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.name"
            " WHERE m.type = 'table' AND l.schema = 'main' AND l.type IN ('table', 'virtual') ORDER BY m.rowid"
        ).fetchall()
        return [
            self._shape(name, kind) for name, kind in names if name not in OWN_TABLES and not name.startswith("sqlite_")
        ]

    def _shape(self, name: str, kind: str) -> TableShape:
        rows = self._connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        columns = tuple(sorted(row[0] for row in rows))
        if kind == "virtual":
            return TableShape(name, (_DOCUMENT, *columns), (_DOCUMENT,))
        return TableShape(name, columns, tuple(row[0] for row in sorted(rows, key=lambda row: row[1]) if row[1]))

    def count(self, table: TableShape) -> int:
        (count,) = self._connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
        return int(count)

    def rows(self, table: TableShape, after: Row | None = None) -> Iterator[Row]:
        key = _sql(table.key)
        start = f" WHERE ({key}) > ({', '.join('?' * len(table.key))})" if after else ""
        rows = self._connection.execute(
            f"SELECT {_sql(table.columns)} FROM {table.name}{start} ORDER BY {key}", after or ()
        )
        return map(_with_sorted_tokens, rows) if _DOCUMENT in table.key else rows

    def sequences(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())

    def begin(self, source: str) -> None:
        marker = migrate.copy_marker(source)
        with migrate.database_named(self._path):
            version = migrate.version(self._connection)
        if version == marker:
            return
        if version is not None:
            raise StoreError(f"the database {self._path} has other data; name a new file")
        tables, _ = self._blocks()
        with self._transaction():
            for statement in tables:
                self._connection.execute(statement)
            self._connection.execute("DELETE FROM tally")  # the rows of an empty database; those of the source follow
            self._connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (marker,))

    def last_key(self, table: TableShape) -> Row | None:
        order = ", ".join(f"{_sql([column])} DESC" for column in table.key)
        row: Row | None = self._connection.execute(
            f"SELECT {_sql(table.key)} FROM {table.name} ORDER BY {order} LIMIT 1"
        ).fetchone()
        return row

    def write(self, table: TableShape, rows: Sequence[Row]) -> None:
        places = placeholders(table.columns)
        with self._transaction():
            self._connection.executemany(f"INSERT INTO {table.name} ({_sql(table.columns)}) VALUES ({places})", rows)

    def finish(self, sequences: dict[str, int]) -> None:
        _, indexes = self._blocks()
        with self._transaction():
            for statement in indexes:
                self._connection.execute(statement)
            self._connection.execute("DELETE FROM sqlite_sequence")
            self._connection.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", sequences.items())
            for statement in migrate.statements(migrate.set_version()):
                self._connection.execute(statement)

    def _blocks(self) -> tuple[list[str], list[str]]:
        tables, indexes = schema_blocks(migrate.schema("sqlite"))
        return migrate.statements("\n".join(tables)), migrate.statements("\n".join(indexes))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _sql(columns: Sequence[str]) -> str:
    return ", ".join("rowid" if column == _DOCUMENT else column for column in columns)


def _with_sorted_tokens(row: Row) -> Row:
    """Returns a row of the index of words with its tokens in one order: SQLite stores them in any."""
    number, tokens = row
    return (number, " ".join(sorted(tokens.split())))

"""Copies a store into another database, of either engine, row by row (OPS-092).

Both databases have the same tables and columns, so every number and key is kept: cursors that were handed out before
stay valid. The tables come from the schema, so that none can be forgotten. Rows are copied in the order of their
primary key, each chunk in a transaction of its own. So an interrupted copy continues behind the last row of each
table. At the end both sides are compared by digests.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from smartfeeds.errors import StoreError
from smartfeeds.features.backup.digests import RowsHash, TableDigest
from smartfeeds.store.engine import Row

CHUNK_ROWS = 5_000  # of one transaction: an interrupted copy loses at most one chunk
CHUNK_BYTES = 8_000_000  # of texts and payloads: the memory of a copy does not depend on the sizes of rows
# Receives what is done, the number of rows so far, and their total.
Progress = Callable[[str, int, int], None]
# The tables that every database writes for itself: its versions, and the letters and commits of the processes that
# serve it.
OWN_TABLES = frozenset({"alembic_version", "compatibility", "last_commit", "letter"})


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table, its columns by name, which is the order of the values in rows, and the columns of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class CopySource(Protocol):
    """A database that is read in one snapshot. Methods raise StoreError."""

    def tables(self) -> list[TableShape]:
        """Returns the tables to copy."""

    def count(self, table: TableShape) -> int:
        """Returns the number of rows."""

    def rows(self, table: TableShape, after: Row | None = None) -> Iterator[Row]:
        """Returns the rows behind a key, in the order of the key."""

    def sequences(self) -> dict[str, int]:
        """Returns the last number that each table has given to a row, also if that row is gone."""


class CopyTarget(CopySource, Protocol):
    """A database that is written."""

    def begin(self, source: str) -> None:
        """Creates the tables in an empty database, or checks that an earlier copy from `source` did. Raises StoreError
        if the database has other data."""

    def last_key(self, table: TableShape) -> Row | None:
        """Returns the greatest key, None for an empty table."""

    def write(self, table: TableShape, rows: Sequence[Row]) -> None:
        """Adds rows in one transaction."""

    def finish(self, sequences: dict[str, int]) -> None:
        """Creates the indexes, sets the sequences, and makes the database usable, in one transaction."""


def no_progress(_work: str, _done: int, _total: int) -> None:
    """Ignores the progress."""


def copy_store(
    source: CopySource, target: CopyTarget, source_name: str, on_progress: Progress = no_progress
) -> list[TableDigest]:
    """Copies all rows of `source` to `target` and returns the digests of the tables, which are equal on both sides.

    Raises StoreError if they are not, and if the target has other data.
    """
    target.begin(source_name)
    tables = _common_tables(source.tables(), target.tables())
    digests = []
    for table in tables:
        total = source.count(table)
        copied = _copy_table(source, target, table, _call(on_progress, f"copy {table.name}", total))
        # A table that was copied in this run was read already.
        expected = copied or _digest(source, table, _call(on_progress, f"read {table.name}", total))
        actual = _digest(target, table, _call(on_progress, f"verify {table.name}", total))
        if actual != expected:
            raise StoreError(
                f"the copy differs from its source in the table {table.name}: {actual.rows} rows instead of "
                f"{expected.rows}, sha256 {actual.sha256} instead of {expected.sha256}; the source was probably "
                "changed between two runs: remove the target and copy again"
            )
        digests.append(actual)
    # Last: until then the database has the version of an unfinished copy, and no service opens it.
    target.finish(source.sequences())
    return digests


def table_digests(source: CopySource, on_progress: Progress = no_progress) -> list[TableDigest]:
    """Returns the digests of all tables. Raises StoreError."""
    return [
        _digest(source, table, _call(on_progress, f"read {table.name}", source.count(table)))
        for table in source.tables()
    ]


def _common_tables(source: list[TableShape], target: list[TableShape]) -> list[TableShape]:
    """Returns the tables in the order of the target, in which parents are before their children. Raises StoreError if
    the tables differ."""
    if different := {table.name for table in set(source) ^ set(target)}:
        names = ", ".join(sorted(different))
        raise StoreError(f"the tables of source and target differ ({names}); upgrade both databases with this program")
    return target


def _copy_table(
    source: CopySource, target: CopyTarget, table: TableShape, on_rows: Callable[[int], None]
) -> TableDigest | None:
    """Copies the rows that the target lacks. Returns the digest of the table if these are all rows."""
    last = target.last_key(table)
    total, chunk, chunk_bytes = RowsHash(), list[Row](), 0
    for row in source.rows(table, last):
        total.add(row)
        chunk.append(row)
        chunk_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(chunk) == CHUNK_ROWS or chunk_bytes >= CHUNK_BYTES:
            target.write(table, chunk)
            chunk, chunk_bytes = [], 0
            on_rows(total.rows)
    if chunk:
        target.write(table, chunk)
    on_rows(total.rows)
    return total.of_table(table.name) if last is None else None


def _digest(source: CopySource, table: TableShape, on_rows: Callable[[int], None]) -> TableDigest:
    total = RowsHash()
    for row in source.rows(table):
        total.add(row)
        if not total.rows % CHUNK_ROWS:
            on_rows(total.rows)
    on_rows(total.rows)
    return total.of_table(table.name)


def _call(on_progress: Progress, work: str, total: int) -> Callable[[int], None]:
    return lambda done: on_progress(work, done, total)

"""Reads the database of another service: a SQLite file, or PostgreSQL by its address. Nothing is written.

All statements see one snapshot. They have `?` for parameters and are sent to both kinds of database.
"""

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from smartfeeds.core.stores import NO_PSYCOPG, without_password
from smartfeeds.errors import ConfigError, DocumentError

POSTGRESQL: Final = ("postgresql://", "postgres://")
_SQLITE_HEADER: Final = b"SQLite format 3\0"
_BATCH_ROWS: Final = 2_000  # of one request to PostgreSQL
_OTHER: Final = ("mysql:", "mariadb:", "mssql:")

# Yields the rows of a statement with parameters. Raises DocumentError.
ForeignRows = Callable[..., Iterator[tuple[Any, ...]]]


def is_database(source: str) -> bool:
    """Returns whether a source is the address of a database server, or a SQLite file. Raises ConfigError for a database
    that this program cannot read."""
    if source.lower().startswith(_OTHER):
        kind = source.partition(":")[0]
        raise ConfigError(
            f"{kind} databases cannot be read; copy the tables to a SQLite file, for example with mysql2sqlite, and"
            " name the file (docs/moving-in.md, Data in MySQL)"
        )
    if "://" in source and not source.startswith(POSTGRESQL):
        raise ConfigError(
            f"{without_password(source)} is no address of a database that can be read; name a file, or an address such"
            " as postgresql://USER@HOST/DATABASE"
        )
    return source.startswith(POSTGRESQL) or is_sqlite(Path(source))


def is_sqlite(path: Path) -> bool:
    """Returns whether a path is a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER
    except OSError:
        return False


def text_of_value(value: object) -> str:
    """Returns the text of a column that has texts: SQLite stores a value of any type in each column."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


@contextmanager
def open_database(source: str) -> Iterator[ForeignRows]:
    """Yields the function that reads rows. Raises DocumentError if the database cannot be opened, ConfigError without
    psycopg."""
    with _open_postgresql(source) if source.startswith(POSTGRESQL) else _open_sqlite(Path(source)) as rows:
        yield rows


@contextmanager
def _open_sqlite(path: Path) -> Iterator[ForeignRows]:
    def read(statement: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from connection.execute(statement, tuple(params))
        except (sqlite3.Error, UnicodeEncodeError) as error:  # SQLite takes no text that is no UTF-8
            raise DocumentError(f"cannot read {path}: {error}") from None

    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        # The generators that read may run in another thread than this one, but never in two at once.
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise DocumentError(f"cannot open {path}: {error}") from None
    with contextlib.closing(connection):
        # Bytes that are no UTF-8 must not end the import. The check of each text reports them.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.set_authorizer(_permit_tables)
        connection.execute("BEGIN")
        yield read


def _permit_tables(_action: int, _what: str | None, _column: str | None, _schema: str | None, view: str | None) -> int:
    """Refuses views: in a crafted file one that refers to itself has rows without end, and no server makes any."""
    return sqlite3.SQLITE_OK if view is None else sqlite3.SQLITE_DENY


@contextmanager
def _open_postgresql(url: str) -> Iterator[ForeignRows]:
    numbers = itertools.count()
    if url.partition("://")[2].partition("/")[0].count("@") > 1:
        # libpq would take the end of the password for the host, and repeat it.
        raise DocumentError("cannot read the address of the database: percent-encode the signs of the password")
    try:
        import psycopg  # a service on SQLite runs without it
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise ConfigError(NO_PSYCOPG) from None
    try:
        parts = conninfo_to_dict(url)
        address = " ".join(f"{key}={parts[key]}" for key in ("host", "dbname") if key in parts)  # without the password
        connection = psycopg.connect(url)
    except psycopg.Error as error:
        reason = without_password(str(error).strip())
        raise DocumentError(f"cannot open the PostgreSQL database: {reason}") from None

    def read(statement: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            # A named cursor leaves the rows at the server, so that a table of any size is read in little memory.
            with connection.cursor(f"rows{next(numbers)}") as cursor:
                cursor.itersize = _BATCH_ROWS
                cursor.execute(statement.replace("?", "%s"), tuple(params))
                yield from cursor
        except psycopg.Error as error:
            raise DocumentError(f"cannot read PostgreSQL {address}: {error}".strip()) from None

    with contextlib.closing(connection):
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield read

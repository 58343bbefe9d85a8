"""The version of the schema: checked at every start, created or upgraded if necessary.

A new database is created from `sqlite.sql`. An older one is upgraded by the alembic versions under `migrations/` in one
transaction, so that an interrupted migration leaves no trace. alembic and SQLAlchemy are imported only then, because
they use more memory than a running service.

A database also stores the oldest schema whose programs can work with it (table `compatibility`). A program rejects a
newer database, unless it knows that schema. So the processes of a service can be upgraded one after the other.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import resources
from pathlib import Path

from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.sqlite_engine import CREATE_IT, DATABASE_ERRORS, store_error

# Every version of the schema, oldest first; the last one is what this code works with.
REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",  # 0025 never existed
    "0026",
    "0027",
    "0029",
    "0030",
    "0031",
    "0032",
    "0033",
    "0034",
    "0035",
    "0036",
    "0037",
)
HEAD = REVISIONS[-1]
# Schema -> the oldest schema whose programs can read and write it. A schema that is not in the table needs a program of
# its own. A release may add tables, and columns with defaults, under the same oldest schema. What older programs use is
# removed one release later.
COMPATIBLE: Mapping[str, str] = {}
SCHEMA = "sqlite.sql"


def statements(text: str) -> list[str]:
    """Splits a script into statements, which end with a semicolon at the end of a line."""
    return [part for part in (piece.strip() for piece in text.split(";\n")) if part]


def version(connection: sqlite3.Connection) -> str | None:
    """Returns the version of the schema, None for an empty database. Raises StoreError for another program's data."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    rows: list[tuple[str]] = []
    if "alembic_version" in tables:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if len(rows) != 1:
        raise StoreError("it belongs to another program; check store.url")
    return str(rows[0][0])


_COPYING = "copy:"


def copy_marker(source: str) -> str:
    """Returns what stands for the version of a database while `db copy` fills it from the database `source`."""
    return _COPYING + hashlib.sha256(source.encode()).hexdigest()[:16]


class Step(Enum):
    """What a program does with a database before it uses it."""

    NOTHING = "nothing"
    CREATE = "create"
    UPGRADE = "upgrade"


def oldest_of(revision: str) -> str:
    """Returns the oldest schema whose programs can work with the schema `revision` of this program."""
    return COMPATIBLE.get(revision, revision)


def works_with(program: str, target: str) -> bool:
    """Returns whether a program that was made for the schema `program` can work with the schema `target`."""
    order = {revision: position for position, revision in enumerate(REVISIONS)}
    return program in order and order[program] >= order[oldest_of(target)]


def next_step(revision: str | None, oldest: str | None, mode: OpenMode) -> Step:
    """Returns what to do with a database of the schema `revision`, which is None for an empty database.

    `oldest` is what the database says about older programs, None if it says nothing. Raises StoreError if this program
    cannot use the database, and NewerSchemaError if the schema is newer.
    """
    if revision == HEAD:
        return Step.NOTHING
    if revision is None:
        if mode.creates:
            return Step.CREATE
        raise StoreError(f"it is empty; check store.url, or {CREATE_IT}")
    if revision.startswith(_COPYING):
        raise StoreError("it is an unfinished copy; run smartfeeds db copy again, or remove the database")
    if revision not in REVISIONS:
        if oldest in REVISIONS:
            return Step.NOTHING
        raise NewerSchemaError(
            f"its schema {revision} is newer than this program, which knows up to {HEAD}; "
            "install a newer smartfeeds, or restore the backup from before the upgrade"
        )
    if mode is not OpenMode.SERVE:
        raise StoreError(
            f"its schema {revision} is older than this program, which needs {HEAD}; "
            "run smartfeeds db upgrade, or start the service with this version"
        )
    return Step.UPGRADE


@contextmanager
def database_named(name: object) -> Iterator[None]:
    """Puts the name of the database before the text of a StoreError."""
    try:
        yield
    except StoreError as error:
        raise type(error)(f"the database {name}: {error}") from error


def oldest_program(connection: sqlite3.Connection) -> str | None:
    """Returns the oldest schema whose programs can work with the database, None if the database does not say it."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'compatibility'").fetchone():
        return None
    row: tuple[str] | None = connection.execute("SELECT oldest FROM compatibility").fetchone()
    return None if row is None else row[0]


def prepare(connection: sqlite3.Connection, path: Path, mode: OpenMode = OpenMode.SERVE) -> None:
    """Ensures that the database at `path`, open as `connection`, has the schema of this code.

    `mode` decides whether an empty database gets a schema and an older schema is upgraded. Raises StoreError if it does
    not, or if the database belongs to another program or cannot be read or written, and NewerSchemaError if the schema
    is newer.
    """
    try:
        with database_named(path):
            step = next_step(version(connection), oldest_program(connection), mode)
            if step is Step.CREATE:
                create(connection)
                # Another process, perhaps of another version, may have created the schema first.
                step = next_step(version(connection), oldest_program(connection), mode)
            if step is Step.UPGRADE:
                upgrade(path, HEAD)
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error


def create(connection: sqlite3.Connection) -> None:
    """Creates the schema in an empty database in one transaction. Does nothing if another process created it first."""
    text = resources.files("smartfeeds.store").joinpath(SCHEMA).read_text(encoding="utf-8")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version(connection) is None:
            for statement in statements(text):
                connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
            connection.execute("INSERT INTO compatibility (oldest) VALUES (?)", (oldest_of(HEAD),))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def upgrade(path: Path, target: str) -> None:
    """Runs the migrations up to `target` in one transaction. Raises StoreError."""
    # Imported here only, because alembic and SQLAlchemy use much memory.
    from smartfeeds.store.migrations import run

    run(path, target)

"""The schema's version: checked at every start, made or brought up to date where needed.

A new database is made from `sqlite.sql`; an older one goes through the alembic versions under `migrations/`, all in
one transaction, so that a migration that is killed has not happened. alembic and SQLAlchemy are imported only then:
they cost more memory than a running service. Data that is newer than the code is refused.
"""

import sqlite3
from importlib import resources
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.sqlite_engine import CREATE_IT, store_error

# Every version of the schema, oldest first; the last one is what this code works with.
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011")
HEAD = REVISIONS[-1]
SCHEMA = "sqlite.sql"


def statements(text: str) -> list[str]:
    """The statements of a script whose statements end in a semicolon at the end of a line."""
    return [part for part in (piece.strip() for piece in text.split(";\n")) if part]


def version(connection: sqlite3.Connection) -> str | None:
    """The version of the schema, or None for an empty database. Raises StoreError for the data of others."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    found: list[tuple[str]] = []
    if "alembic_version" in tables:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if len(found) != 1:
        raise StoreError("its tables are not those of smartfeeds; check the path")
    return str(found[0][0])


def prepare(connection: sqlite3.Connection, path: Path, mode: OpenMode = OpenMode.SERVE) -> None:
    """Makes sure that the database at `path`, on which `connection` is open, has the schema of this code.

    `mode` decides whether an empty database gets a schema and an older schema is upgraded. Raises StoreError when it
    does not, when the schema is newer, and when the database belongs to another program or cannot be read or written.
    """
    try:
        revision = version(connection)
        if revision is None and mode.creates:
            create(connection)
            revision = version(connection)
        if revision == HEAD:
            return
        if revision is None:
            raise StoreError(f"it is empty; check the path, or {CREATE_IT}")
        if revision not in REVISIONS:
            raise StoreError(
                f"its schema {revision} is newer than this program, which knows up to {HEAD}; "
                "install a newer smartfeeds"
            )
        if mode is not OpenMode.SERVE:
            raise StoreError(
                f"its schema {revision} is older than this program, which needs {HEAD}; "
                "run smartfeeds db upgrade, or start the service with this version"
            )
        upgrade(path, HEAD)
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
    except StoreError as error:
        raise StoreError(f"the database {path}: {error}") from error


def create(connection: sqlite3.Connection) -> None:
    """Makes the schema in an empty database, in one transaction; nothing where another process was faster."""
    text = resources.files("smartfeeds.store").joinpath(SCHEMA).read_text(encoding="utf-8")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version(connection) is None:
            for statement in statements(text):
                connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def upgrade(path: Path, target: str) -> None:
    """Runs the migrations up to `target`, in one transaction. Raises StoreError."""
    # alembic and SQLAlchemy are imported here only, for what they cost.
    from smartfeeds.store.migrations import run

    run(path, target)

"""The version of the schema: checked at every start, created or upgraded if necessary.

A new database is created from `sqlite.sql`. An older one is upgraded by the scripts in `upgrades/` in one transaction,
so that an interrupted upgrade leaves no trace.

A database also stores the oldest schema whose programs can work with it (table `compatibility`). A program rejects a
newer database, unless it knows that schema. So the processes of a service can be upgraded one after the other.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.rows import checksum
from smartfeeds.store.sqlite_engine import CREATE_IT, DATABASE_ERRORS, store_error

# The schemas of the releases, oldest first; the last one is what this program works with. UPGRADES has the scripts that
# lead to each of them from the one before it (docs/contributing.md). Schemas between 0001 and 0037 were never released.
REVISIONS = ("0001", "0037", "0038")
HEAD = REVISIONS[-1]
FOLDER = resources.files("smartfeeds.store")
UPGRADES = FOLDER.joinpath("upgrades")
# Schema -> the oldest schema whose programs can read and write it. A schema that is not in the table needs a program of
# its own. A release may add tables, and columns with defaults, under the same oldest schema. What older programs use is
# removed one release later.
COMPATIBLE: Mapping[str, str] = {"0038": "0037"}


def statements(text: str) -> list[str]:
    """Splits a script into statements, which end with a semicolon at the end of a line."""
    return [part for part in (piece.strip() for piece in text.split(";\n")) if part]


def version(connection: sqlite3.Connection) -> str | None:
    """Returns the version of the schema, None for an empty database. Raises StoreError for another program's data.

    The table has the name that a former library gave it, because version 0.1.0 looks there: it says that the database
    is newer. Without this table it would say that the database belongs to another program.
    """
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


def oldest_of(revision: str) -> str:
    """Returns the oldest schema whose programs can work with the schema `revision` of this program."""
    return COMPATIBLE.get(revision, revision)


def works_with(program: str, target: str) -> bool:
    """Returns whether a program that was made for the schema `program` can work with the schema `target`."""
    order = {revision: position for position, revision in enumerate(REVISIONS)}
    return program in order and order[program] >= order[oldest_of(target)]


def check_known(revision: str, oldest: str | None) -> None:
    """Raises StoreError if this program can neither use nor upgrade a database of the schema `revision`, and
    NewerSchemaError if the schema is newer.

    `oldest` is what the database says about older programs, None if it says nothing.
    """
    if revision in REVISIONS or oldest in REVISIONS:
        return
    if REVISIONS[0] < revision < HEAD:
        raise StoreError(
            f"its schema {revision} was never released, and this program cannot upgrade it; start the program of "
            "commit 6390fea4 once, which upgrades it to 0037, or move the feeds with smartfeeds export and import"
        )
    raise NewerSchemaError(
        f"its schema {revision} is newer than this program, which knows up to {HEAD}; "
        "install a newer smartfeeds, or restore the backup from before the upgrade"
    )


def must_change(revision: str | None, oldest: str | None, mode: OpenMode) -> bool:
    """Returns whether the schema must be created or upgraded before this program can use the database.

    `revision` is None for an empty database, `oldest` as for `check_known`. Raises StoreError if this program cannot
    use the database in this mode, and NewerSchemaError if the schema is newer.
    """
    if revision is None:
        if mode.creates:
            return True
        raise StoreError(f"it is empty; check store.url, or {CREATE_IT}")
    if revision.startswith(_COPYING):
        raise StoreError("it is an unfinished copy; run smartfeeds db copy again, or remove the database")
    check_known(revision, oldest)
    if revision == HEAD or revision not in REVISIONS:
        return False
    if mode is not OpenMode.SERVE:
        raise StoreError(
            f"its schema {revision} is older than this program, which needs {HEAD}; "
            "run smartfeeds db upgrade, or start the service with this version"
        )
    return True


def scripts(revision: str | None, engine: str) -> list[str]:
    """Returns the scripts that lead from the schema `revision`, None for an empty database, to that of this program.

    `engine` is "sqlite" or "postgres".
    """
    if revision is None:
        return [schema(engine), set_version()]
    later = REVISIONS[REVISIONS.index(revision) + 1 :]
    return [*(UPGRADES.joinpath(f"{target}_{engine}.sql").read_text("utf-8") for target in later), set_version()]


def schema(engine: str) -> str:
    """Returns the script that creates the schema of this program."""
    return FOLDER.joinpath(f"{engine}.sql").read_text("utf-8")


def set_version() -> str:
    """Returns the script that marks a database as one of the schema of this program."""
    return (
        "DELETE FROM alembic_version;\nDELETE FROM compatibility;\n"  # noqa: S608 - constants
        f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}');\n"
        f"INSERT INTO compatibility (oldest) VALUES ('{oldest_of(HEAD)}');\n"
    )


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
            if must_change(version(connection), oldest_program(connection), mode):
                log_upgrade(str(path), _change(connection, mode))
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error


def log_upgrade(database: str, before: str | None) -> None:
    """Logs that a database has the schema of this program now, and had the schema `before`; None: it is new."""
    if before not in (None, HEAD):
        import structlog  # here, because commands import this module for their help, which logs nothing

        log = structlog.get_logger()
        log.info("schema_upgraded", database=database, before=before, after=HEAD)


def _change(connection: sqlite3.Connection, mode: OpenMode) -> str | None:
    """Creates or upgrades the schema in one transaction. Returns the schema before, None for an empty database."""
    connection.execute("BEGIN IMMEDIATE")
    revision = None
    try:
        # Read again: another process, perhaps of another version, may have changed the schema before the transaction.
        revision = version(connection)
        if must_change(revision, oldest_program(connection), mode):
            connection.create_function("item_checksum", 5, _item_checksum, deterministic=True)
            for script in scripts(revision, "sqlite"):
                for statement in statements(script):
                    connection.execute(statement)
        connection.execute("COMMIT")
        return revision
    except DATABASE_ERRORS as error:
        if revision is None:
            raise
        raise StoreError(f"its upgrade from {revision} to {HEAD} failed and was undone: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _item_checksum(payload: bytes, sync: bytes, *texts: bytes) -> int:
    """Returns `rows.checksum` for the columns of an item, as a function of the upgrade to 0037."""
    return checksum(payload, sync, b"\0".join(texts))

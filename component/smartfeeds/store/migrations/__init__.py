"""The schema's migrations: alembic versions written in plain SQL, run in one transaction."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, exc, inspect, text
from sqlalchemy.pool import NullPool

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import TransientError
from smartfeeds.store.migrate import oldest_of, statements
from smartfeeds.store.postgres_programs import SESSIONS, outdated_programs

LOCATION = "smartfeeds.store:migrations"


def configuration() -> Config:
    """alembic's configuration, without a file."""
    config = Config()
    config.set_main_option("script_location", LOCATION)
    config.set_main_option("path_separator", "os")
    return config


def run(path: Path, target: str) -> None:
    """Runs the versions up to `target` on the database at `path`: all of them, or none. Raises StoreError."""
    # sqlite3 would begin no transaction before DDL, so it is left out of that (isolation_level None).
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    _run(engine, target)


def run_on_postgres(address: StoreAddress, target: str) -> None:
    """Runs the versions up to `target`: all of them, or none. Raises StoreError.

    One process at a time does it. Another process that starts meanwhile waits, and has nothing left to do. No version
    runs while processes use the database whose programs cannot work with the target.
    """
    from smartfeeds.store.migrate_postgres import SCHEMA_LOCK
    from smartfeeds.store.postgres_session import connect

    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: connect(address, "smartfeeds upgrade"), poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")

    _run(engine, target, _refuse_outdated_programs)


def _refuse_outdated_programs(connection: Connection, target: str) -> None:
    """Raises StoreError if a process uses the database that could not work with the target.

    A process that starts joins the others under the same advisory lock (`lock_session`), so none is overlooked.
    """
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    if revision == target:
        return  # another process has upgraded the schema
    programs = outdated_programs(connection.exec_driver_sql(SESSIONS), target)
    if programs:
        raise StoreError(
            f"its schema {revision} cannot be upgraded to {target}, because older programs use it that cannot work "
            f"with {target}: {', '.join(programs)}; stop these processes, then start this program again"
        )


def _run(
    engine: Engine, target: str, check: Callable[[Connection, str], None] = lambda _connection, _target: None
) -> None:
    config = configuration()
    try:
        with engine.begin() as connection:
            check(connection, target)
            config.attributes["connection"] = connection
            command.upgrade(config, target)
            _set_compatibility(connection)
    except (exc.SQLAlchemyError, CommandError) as error:
        is_lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
        kind = TransientError if is_lost else StoreError
        raise kind(f"its migration to {target} failed and was undone: {error}") from error


def _set_compatibility(connection: Connection) -> None:
    if "compatibility" not in inspect(connection).get_table_names():
        return  # the target is older than this table
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    connection.execute(text("DELETE FROM compatibility"))
    connection.execute(text("INSERT INTO compatibility (oldest) VALUES (:oldest)"), {"oldest": oldest_of(revision)})


def run_script(script: str, postgres: str | None = None) -> None:
    """Runs the statements of a version. Each ends with a semicolon at the end of a line.

    `script` is for SQLite. `postgres` is for PostgreSQL; versions before the first release with PostgreSQL lack it.
    Raises StoreError if it is missing and needed.
    """
    if op.get_bind().dialect.name == "postgresql":
        if postgres is None:
            raise StoreError("a version of the schema has no statements for PostgreSQL; report this as a bug")
        script = postgres
    for statement in statements(script):
        op.execute(statement)

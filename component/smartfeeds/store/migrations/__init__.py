"""The schema's migrations: alembic versions written in plain SQL, run in one transaction."""

import sqlite3
from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, create_engine, event, exc
from sqlalchemy.pool import NullPool

from smartfeeds.errors import StoreError
from smartfeeds.store.migrate import statements

LOCATION = "smartfeeds.store:migrations"


def configuration() -> Config:
    """alembic's configuration, without a file."""
    config = Config()
    config.set_main_option("script_location", LOCATION)
    config.set_main_option("path_separator", "os")
    return config


def run(path: Path, target: str) -> None:
    """Runs the versions up to `target` on the database at `path`: all of them, or none. Raises StoreError."""
    config = configuration()
    # sqlite3 would begin no transaction before DDL, so it is left out of that (isolation_level None).
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, target)
    except (exc.SQLAlchemyError, CommandError) as error:
        raise StoreError(f"its migration to {target} failed and was undone: {error}") from error


def run_script(script: str) -> None:
    """Runs the statements of a version. Each ends with a semicolon at the end of a line."""
    for statement in statements(script):
        op.execute(statement)

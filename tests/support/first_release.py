"""Databases of version 0.1.0 (schema 0001), the first release."""

import sqlite3
from contextlib import closing
from pathlib import Path

FIRST_RELEASE = Path(__file__).parents[1] / "data/version-0.1.0/feeds.db"  # written by the program of this version


def create_first_schema(connection: sqlite3.Connection) -> None:
    """Creates the tables of version 0.1.0 in an empty database."""
    with closing(sqlite3.connect(FIRST_RELEASE)) as released:
        # FTS5 makes the tables behind `word`, and SQLite its own.
        schema = released.execute(
            "SELECT sql FROM sqlite_master WHERE sql <> '' AND name NOT GLOB 'word_*' AND name NOT GLOB 'sqlite_*'"
        ).fetchall()
    for (statement,) in schema:
        connection.execute(statement)
    connection.execute("INSERT INTO alembic_version VALUES ('0001')")
    connection.execute("INSERT INTO tally (name, value) VALUES ('nodes', 0)")

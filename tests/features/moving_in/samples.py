"""What ejabberd and sat-pubsub have stored, as files and in databases. All samples were made by the same requests."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from support.postgres import PostgresServer

SAMPLES = Path(__file__).parent / "data"
DUMP = SAMPLES / "ejabberd-23.01-mnesia" / "mnesia.dump"
HOST = "pubsub.localhost"
ODD_NODE = "ünï/c ode?a=b&c"


def load(url: str, *files: Path) -> str:
    """Runs the statements of dumps of PostgreSQL, whose rows come from the file itself."""
    with psycopg.connect(url, autocommit=True) as connection:
        for file in files:
            text = re.sub(r"^\\(?:un)?restrict .*$", "", file.read_text("utf-8"), flags=re.MULTILINE)
            while copy := re.search(r"^COPY .* FROM stdin;$", text, re.MULTILINE):
                connection.execute(text[: copy.start()])
                rows, text = text[copy.end() + 1 :].split("\\.\n", 1)
                with connection.cursor() as cursor, cursor.copy(copy[0].removesuffix(";")) as target:
                    target.write(rows)
            connection.execute(text)
    return url


@contextmanager
def loaded_samples(postgres: PostgresServer, folder: Path) -> Iterator[dict[str, str]]:
    """The source of each sample: `dump`, `sqlite` and `postgresql` of ejabberd, and `sat-pubsub`."""
    path = folder / "ejabberd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript((SAMPLES / "ejabberd-23.01.sqlite.sql").read_text("utf-8"))
    ejabberd, sat = postgres.create_database(), postgres.create_database()
    load(ejabberd, SAMPLES / "ejabberd-23.01-pgsql.sql")
    load(sat, SAMPLES / "sat-pubsub-schema-v10.sql")
    with psycopg.connect(sat, autocommit=True) as database:
        database.execute("DELETE FROM nodes")  # the data has the row that the schema adds, too
        database.execute("DELETE FROM metadata")
    load(sat, SAMPLES / "sat-pubsub-0.4-pgsql-data.sql")
    yield {"dump": str(DUMP), "sqlite": str(path), "postgresql": ejabberd, "sat-pubsub": sat}
    for url in (ejabberd, sat):
        postgres.drop_database(url)

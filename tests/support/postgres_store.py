"""An empty database with the schema, made once for all tests of a process and emptied for each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import psycopg
import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_pipeline import PostgresPipeline
from smartfeeds.store.postgres_session import PostgresSession
from support.postgres import PostgresServer

_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
# The collation of the database is not that of code points, so that a text column without COLLATE "C" fails tests.
_LOCALE = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
# A counter that a rollback resets, in place of each sequence.
_GAPLESS = """
CREATE TABLE counter (name name PRIMARY KEY, value bigint NOT NULL);
CREATE FUNCTION draw() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE number bigint;
BEGIN
    INSERT INTO counter VALUES (TG_TABLE_NAME, 1) ON CONFLICT (name) DO UPDATE SET value = counter.value + 1
    RETURNING value INTO number;
    RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], number));
END $$;
DO $$
DECLARE key record;
BEGIN
    FOR key IN SELECT attrelid::regclass AS name, attname FROM pg_attribute WHERE attidentity = 'd' LOOP
        EXECUTE format('CREATE TRIGGER draw BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION draw(%L)',
            key.name, key.attname);
    END LOOP;
END $$;
"""


class EmptyDatabase:
    """A database that `empty` makes new. Only one store at a time may use it."""

    def __init__(self, server: PostgresServer, *, gapless: bool = False) -> None:
        """With `gapless` a transaction that is rolled back uses up no numbers, as in the other stores."""
        self.url = server.create_database(locale=_LOCALE)
        session = PostgresSession(parse_store(self.url))
        session.open_at_once()
        prepare_postgres(session)
        session.close()
        self._connection = psycopg.connect(self.url, autocommit=True)
        # Without triggers for foreign keys, tables can be emptied in any order.
        self._connection.execute("SET session_replication_role = replica")
        if gapless:
            self._connection.execute(_GAPLESS.encode())
        tables = {str(row[0]) for row in self._connection.execute(_TABLES).fetchall()} - {
            "alembic_version",
            "compatibility",
            "tally",
        }
        self._filled = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in sorted(tables)
        )

    def empty(self) -> None:
        """Removes all rows."""
        tables = [str(row[0]) for row in self._connection.execute(self._filled.encode()).fetchall()]
        statements = [f"DELETE FROM {table}" for table in tables]
        statements += [
            "DELETE FROM tally",
            # Letters between processes are no data. They stay until their time is over, and so do their numbers.
            "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S' AND relname NOT LIKE 'letter%'",
        ]
        self._connection.execute("; ".join(statements).encode())

    @contextmanager
    def emptied(self) -> Iterator[str]:
        """The address of the empty database, whose stores use connections of earlier tests meanwhile."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("smartfeeds.store.postgres.PostgresSession", PooledSession)
            self.empty()
            yield self.url

    def close(self) -> None:
        """Closes all connections to the database."""
        self._connection.close()
        PooledSession.close_all()


class PooledSession(PostgresSession):
    """A session whose connection the next session of its kind uses too. Most tests take less time than connecting."""

    _spare: ClassVar[dict[tuple[str, ...], list[PostgresPipeline]]] = {}

    def _open(self) -> None:
        spare = self._spare.get(self._kind, [])
        while spare:
            pipeline = spare.pop()
            if not pipeline.connection.closed:
                self._use(pipeline)
                return
        super()._open()

    def close(self) -> None:
        """Keeps the connection for the next session."""
        self.finish_ending()
        if self._pipeline is not None and self.is_open:
            self.connection.rollback()
            self._spare.setdefault(self._kind, []).append(self._pipeline)
            self._pipeline = None
        super().close()

    @classmethod
    def close_all(cls) -> None:
        """Closes the connections that no session uses."""
        for pipeline in (pipeline for spare in cls._spare.values() for pipeline in spare):
            pipeline.connection.close()
        cls._spare.clear()

    @property
    def _kind(self) -> tuple[str, ...]:
        return (self.address.url, *self._settings.values())

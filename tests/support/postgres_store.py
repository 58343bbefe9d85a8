"""An empty database with the schema, made once for all tests of a process and emptied for each of them."""

import psycopg

from smartfeeds.core.stores import StoreAddress, parse_store
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_session import PostgresSession
from support.postgres import PostgresServer

_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
# The collation of the database is not that of code points, so that a text column without COLLATE "C" fails tests.
_LOCALE = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"


class EmptyDatabase:
    """A database that `empty` makes new. Only one store at a time may use it."""

    def __init__(self, server: PostgresServer) -> None:
        self.url = server.create_database(locale=_LOCALE)
        self.address: StoreAddress = parse_store(self.url)
        session = PostgresSession(self.address)
        session.open_at_once()
        prepare_postgres(session)
        session.close()
        self._connection = psycopg.connect(self.url, autocommit=True)
        # Without triggers for foreign keys, tables can be emptied in any order.
        self._connection.execute("SET session_replication_role = replica")
        tables = {str(row[0]) for row in self._connection.execute(_TABLES).fetchall()} - {"alembic_version", "tally"}
        self._filled = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in sorted(tables)
        )

    def empty(self) -> StoreAddress:
        """Removes all rows. Returns the address."""
        tables = [str(row[0]) for row in self._connection.execute(self._filled.encode()).fetchall()]
        statements = [f"DELETE FROM {table}" for table in tables]
        statements += [
            "DELETE FROM tally WHERE name NOT IN ('nodes', 'listed')",
            "UPDATE tally SET value = 0",
            "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'",
        ]
        self._connection.execute("; ".join(statements).encode())
        return self.address

    def close(self) -> None:
        """Closes the connection that empties the database."""
        self._connection.close()

"""Facts about a PostgreSQL server and a database, which `smartfeeds doctor` judges (OPS-093).

psycopg is optional, so other modules import this one inside of functions.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg

from smartfeeds.core.stores import StoreAddress
from smartfeeds.features.doctor.damage import CONTENT, DamagedItem, DamagedRow, damaged_items, damaged_rows
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import connect
from smartfeeds.store.postgres_state import FREE_CONNECTIONS
from smartfeeds.store.row_readers import RowReader

_APPLICATION = "smartfeeds doctor"
# Other users' sessions have no backend_type for a user without rights, but they have a database. The sessions of the
# doctor itself do not count.
_FACTS = f"""
WITH client AS (
    SELECT usename, datname, coalesce(application_name, '') AS name FROM pg_stat_activity
    WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
        AND coalesce(application_name, '') <> current_setting('application_name')
), ours AS (
    SELECT name FROM client WHERE datname = current_database() AND name LIKE 'smartfeeds%'
)
SELECT current_setting('server_version_num')::int,
    current_setting('server_encoding'),
    pg_is_in_recovery(),
    current_setting('transaction_read_only')::bool,
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
    EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace),
    current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication)::int,
    (SELECT CASE WHEN count(*) = 0 OR count(sync_state) > 0
        THEN count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) END FROM pg_stat_replication)::int,
    current_setting('fsync')::bool,
    current_setting('full_page_writes')::bool,
    current_setting('autovacuum')::bool,
    {FREE_CONNECTIONS},
    (SELECT count(*) FROM ours)::int,
    (SELECT count(*) FROM ours WHERE name LIKE 'smartfeeds % locks')::int
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class PostgresFacts:
    """The state of a server and a database. `version` is `server_version_num`; `clock_apart_s` is the difference of the
    clocks, positive if the server is ahead. `synchronous_standbys` is None if this user may not see the states of
    standbys. `pools_transactions` says that two clients share one connection of a pooler. `schema` is the version of
    our tables, None if there are none; `has_tables` is true for any tables. `free_connections` is what the limits of
    the server, the user and the database permit beside the open ones, of which `connections` belong to `processes` of
    the service.
    """

    version: int
    encoding: str
    is_standby: bool
    is_read_only: bool
    can_create: bool
    has_tables: bool
    synchronous_commit: str
    standby_names: str
    standbys: int
    synchronous_standbys: int | None
    fsync: bool
    full_page_writes: bool
    autovacuum: bool
    free_connections: int
    connections: int
    processes: int
    clock_apart_s: float
    pools_transactions: bool
    schema: str | None
    oldest: str | None


def read_facts(address: StoreAddress) -> PostgresFacts:
    """Returns the facts about a database. Raises StoreError if it cannot be reached or read."""
    try:
        with closing(_connect(address)) as connection, closing(_connect(address)) as second:
            # Both clocks are read within one round trip, so half of it is the greatest error.
            before_s = time.time()
            (clock_s,) = _row(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
            apart_s = clock_s - (before_s + time.time()) / 2
            values = [
                *_row(connection, _FACTS),
                apart_s,
                _is_shared(connection, second),
                _text_of(connection, "alembic_version", "version_num"),
                _text_of(connection, "compatibility", "oldest"),
            ]
            return PostgresFacts(*values)
    except psycopg.Error as error:
        raise postgres_error(error, address.name) from error


def read_damage(address: StoreAddress, readers: Iterable[RowReader]) -> tuple[list[DamagedItem], list[DamagedRow]]:
    """Returns the items whose content is damaged, and the damaged rows. Reads all of them. Raises StoreError."""
    try:
        with closing(connect(address, _APPLICATION)) as connection:
            (is_empty,) = _row(connection, "SELECT to_regclass('item') IS NULL")

            def read(statement: str) -> Iterator[tuple[Any, ...]]:
                # A cursor with a name reads the rows in pieces, and needs a transaction.
                with connection.cursor("damaged") as cursor:
                    yield from cursor.execute(statement.encode())

            return ([], []) if is_empty else (damaged_items(read(CONTENT)), list(damaged_rows(read, readers)))
    except psycopg.Error as error:
        raise postgres_error(error, address.name) from error


def _connect(address: StoreAddress) -> psycopg.Connection[tuple[Any, ...]]:
    return connect(address, _APPLICATION, autocommit=True)


def _is_shared(first: psycopg.Connection[tuple[Any, ...]], second: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Whether two clients use one connection of the server in turns: then locks of a session protect nothing."""
    process = _row(first, "SELECT pg_backend_pid()")
    # The first connection is idle now, so a pooler of transactions gives its process to the second one.
    with second.transaction():
        return _row(second, "SELECT pg_backend_pid()") == process


def _text_of(connection: psycopg.Connection[tuple[Any, ...]], table: str, column: str) -> str | None:
    if _row(connection, f"SELECT to_regclass('{table}')")[0] is None:
        return None
    row = connection.execute(f"SELECT {column} FROM {table}".encode()).fetchone()  # noqa: S608 - constants
    return None if row is None else str(row[0])


def _row(connection: psycopg.Connection[tuple[Any, ...]], query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None  # the queries select expressions, without FROM
    return row

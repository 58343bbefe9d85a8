"""Removes the bytes of deleted rows from the data files of a PostgreSQL database (OPS-025).

PostgreSQL leaves old versions of rows in its tables until VACUUM, and their bytes in free space until VACUUM FULL has
written the tables anew. The statistics of the planner have samples of the values until ANALYZE replaces them. The
write-ahead log, its archive and the replicas have old bytes until their segments are removed.
"""

import time
from contextlib import closing
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.features.privacy.scrub import BUSY_S, MAX_LIVE_BYTES, ScrubResult
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import connect

# Works of a running service wait meanwhile. They wait for a lock for 20 s (`postgres_session`).
_LOCK_MS: Final = 5_000
_LOCKED: Final = "55P03"  # lock_not_available (PostgreSQL manual, appendix A)
_PAUSE_S: Final = 0.05
_TABLES: Final = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
_SAMPLED: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), c.collname
FROM pg_attribute a JOIN pg_stats s ON s.attname = a.attname AND s.tablename = %(table)s
LEFT JOIN pg_collation c ON c.oid = a.attcollation AND a.atttypid = 'text'::regtype
WHERE s.schemaname = current_schema() AND a.attrelid = %(table)s::regclass
    AND a.atttypid IN ('text'::regtype, 'bytea'::regtype)
"""
# VACUUM does not remove what an older snapshot may still see: those of transactions, of standbys and of prepared
# transactions.
_OLD_SNAPSHOTS: Final = """
SELECT count(*) FROM (
    SELECT backend_xmin AS xmin FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    UNION ALL SELECT xmin FROM pg_replication_slots
    UNION ALL SELECT backend_xmin FROM pg_stat_replication
    UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
) AS snapshots WHERE age(xmin) > age(%(own)s::text::xid)
"""
# VACUUM skips the table of another role with a warning only.
_FOREIGN: Final = """
SELECT relname, pg_get_userbyid(relowner), current_user FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT pg_has_role(current_user, relowner, 'USAGE')
ORDER BY relname LIMIT 1
"""
# A letter between processes may quote a stanza of the person. It is read within milliseconds (`lock_session`).
_LETTER_AGE_S: Final = 5
_Connection = psycopg.Connection[tuple[object, ...]]


def scrub_postgres(address: StoreAddress, *, max_bytes: int = MAX_LIVE_BYTES, busy_s: float = BUSY_S) -> ScrubResult:
    """Writes all tables anew. Returns TOO_LARGE for a database beyond `max_bytes`: its tables would be locked for too
    long. Returns BUSY if another transaction may still read old rows, or if a table stayed locked. Raises StoreError,
    also if another role owns a table.
    """
    try:
        with closing(_connect(address)) as connection:
            _refuse_foreign_tables(connection, address)
            if _number(connection, "SELECT pg_database_size(current_database())") > max_bytes:
                return ScrubResult.TOO_LARGE
            if not (_outlive_letters(connection, busy_s) and _outlive_snapshots(connection, busy_s)):
                return ScrubResult.BUSY
            connection.execute(f"SET lock_timeout = {_LOCK_MS}")
            for row in connection.execute(_TABLES).fetchall():
                _write_anew(connection, str(row[0]))
            # A user who does not own the database gets a warning, and replaced samples stay in free space.
            connection.execute("VACUUM (FULL) pg_catalog.pg_statistic")
            return ScrubResult.CLEAN
    except psycopg.Error as error:
        if error.sqlstate == _LOCKED:
            return ScrubResult.BUSY
        raise postgres_error(error, address.name) from error


def _write_anew(connection: _Connection, table: str) -> None:
    name = sql.Identifier(table)
    connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(name))
    if connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(name)).fetchone():
        return
    # ANALYZE ignores an empty table. PostgreSQL removes the samples of a column whose type is set, also to its own.
    for column, kind, collation in connection.execute(_SAMPLED, {"table": table}).fetchall():
        ending = sql.SQL("COLLATE {}").format(sql.Identifier(str(collation))) if collation else sql.SQL("")
        connection.execute(
            sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {} {}").format(
                name, sql.Identifier(str(column)), sql.Identifier(str(kind)), ending
            )
        )


def _connect(address: StoreAddress) -> _Connection:
    return connect(address, "smartfeeds gdpr", autocommit=True)


def _refuse_foreign_tables(connection: _Connection, address: StoreAddress) -> None:
    row = connection.execute(_FOREIGN).fetchone()
    if row is not None:
        table, owner, user = row
        raise StoreError(
            f"the database {address.name}: {user} does not own the table {table}, so its old bytes cannot be removed;"
            f" connect as {owner}, or make {user} a member of this role, and repeat the command"
        )


def _outlive_letters(connection: _Connection, busy_s: float) -> bool:
    """Removes the letters that were sent before now. Returns False if some are too young to be removed."""
    if _number(connection, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('letter')") == 0:
        return True
    began = connection.execute("SELECT clock_timestamp()").fetchone()
    until_s = time.monotonic() + busy_s
    while True:
        connection.execute(
            "DELETE FROM letter WHERE sent < clock_timestamp() - make_interval(secs => %s)", (_LETTER_AGE_S,)
        )
        if connection.execute("SELECT 1 FROM letter WHERE sent <= %s LIMIT 1", began).fetchone() is None:
            return True
        if time.monotonic() > until_s:
            return False
        time.sleep(_PAUSE_S)


def _outlive_snapshots(connection: _Connection, busy_s: float) -> bool:
    """Waits until no snapshot is older than now. Returns False if one remains."""
    # Takes a transaction id now. A snapshot with an older id may see rows that were deleted before this function ran.
    own = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchone()
    assert own is not None  # a SELECT without FROM has one row
    until_s = time.monotonic() + busy_s
    while _number(connection, _OLD_SNAPSHOTS, own=own[0]):
        if time.monotonic() > until_s:
            return False
        time.sleep(_PAUSE_S)
    return True


def _number(connection: _Connection, statement: LiteralString, **params: object) -> int:
    row = connection.execute(statement, params or None).fetchone()
    assert row is not None  # the statements count
    return int(str(row[0]))

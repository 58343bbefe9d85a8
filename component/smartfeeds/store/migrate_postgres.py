"""The version of the schema in PostgreSQL: checked at every start, created or upgraded if necessary.

A new database is created from `postgres.sql`. The first release with PostgreSQL has schema 0037.
"""

import psycopg

from smartfeeds.errors import StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.engine import TransientError
from smartfeeds.store.migrate import HEAD, database_named, log_upgrade, must_change, scripts
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_programs import SESSIONS, outdated_programs
from smartfeeds.store.postgres_session import PostgresSession

# The advisory lock of a transaction that creates or upgrades the schema: "smartfee" as a number.
SCHEMA_LOCK = int.from_bytes(b"smartfee")
# An upgrade waits for that of another process, takes as long as it needs, and reads whole tables. The other settings of
# the session suit short transactions on a few rows.
_SETTINGS = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
    " SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_sort TO DEFAULT; SET LOCAL enable_hashjoin TO DEFAULT"
)


def postgres_version(session: PostgresSession) -> str | None:
    """Returns the version of the schema, None for an empty database.

    Raises StoreError for another program's data, and psycopg.Error.
    """
    tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    is_known, table_count = session.execute(f"SELECT to_regclass('alembic_version') IS NOT NULL, ({tables})")[0]
    if not is_known:
        if table_count:
            raise StoreError("it belongs to another program; check store.url")
        return None
    versions = session.execute("SELECT version_num FROM alembic_version")
    if len(versions) != 1:
        raise StoreError("it belongs to another program; check store.url")
    return str(versions[0][0])


def oldest_postgres_program(session: PostgresSession) -> str | None:
    """Returns the oldest schema whose programs can work with the database, None if the database does not say it.

    Raises psycopg.Error.
    """
    if session.execute("SELECT to_regclass('compatibility') IS NOT NULL") != [(True,)]:
        return None
    rows = session.execute("SELECT oldest FROM compatibility")
    return str(rows[0][0]) if rows else None


def prepare_postgres(session: PostgresSession, mode: OpenMode = OpenMode.SERVE) -> None:
    """Ensures that the database has the schema of this code (`migrate.prepare`). Raises StoreError."""
    try:
        with database_named(session.name):
            if must_change(postgres_version(session), oldest_postgres_program(session), mode):
                log_upgrade(session.name, _change(session, mode))
    except psycopg.Error as error:
        raise postgres_error(error, session.name, lost=not session.is_open) from error


def _change(session: PostgresSession, mode: OpenMode) -> str | None:
    """Creates or upgrades the schema in one transaction. Processes that start at the same time do it one after the
    other. Returns the schema before, None for an empty database. Raises psycopg.Error."""
    revision = None
    try:
        with session.connection.transaction():
            session.execute_script(_SETTINGS)
            session.execute("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            # Read again: another process, perhaps of another version, may have changed the schema meanwhile.
            revision = postgres_version(session)
            if must_change(revision, oldest_postgres_program(session), mode):
                if revision is not None:
                    _refuse_outdated_programs(session, revision)
                for script in scripts(revision, "postgres"):
                    session.execute_script(script)
        return revision
    except psycopg.Error as error:
        if revision is None:
            raise
        kind = StoreError if session.is_open else TransientError
        raise kind(f"its upgrade from {revision} to {HEAD} failed and was undone: {error}") from error


def _refuse_outdated_programs(session: PostgresSession, revision: str) -> None:
    """Raises StoreError if a process uses the database that could not work with the schema of this program.

    A process that starts joins the others under the same advisory lock (`lock_session`), so none is overlooked.
    """
    programs = outdated_programs(session.execute(SESSIONS), HEAD)
    if programs:
        raise StoreError(
            f"its schema {revision} cannot be upgraded to {HEAD}, because older programs use it that cannot work "
            f"with {HEAD}: {', '.join(programs)}; stop these processes, then start this program again"
        )

"""The version of the schema in PostgreSQL: checked at every start, created or upgraded if necessary.

A new database is created from `postgres.sql`. The first one had the schema of the first release with PostgreSQL, so the
versions under `migrations/` before it have statements for SQLite only.
"""

from importlib import resources

import psycopg

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.migrate import HEAD, Step, database_named, next_step, oldest_of
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import PostgresSession

SCHEMA = "postgres.sql"
# The advisory lock of a transaction that creates or upgrades the schema: "smartfee" as a number.
SCHEMA_LOCK = int.from_bytes(b"smartfee")


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
            step = _step(session, mode)
            if step is Step.CREATE:
                create_schema(session)
                # Another process, perhaps of another version, may have created the schema first.
                step = _step(session, mode)
            if step is Step.UPGRADE:
                upgrade_postgres(session.address, HEAD)
    except psycopg.Error as error:
        raise postgres_error(error, session.name, lost=not session.is_open) from error


def _step(session: PostgresSession, mode: OpenMode) -> Step:
    return next_step(postgres_version(session), oldest_postgres_program(session), mode)


def upgrade_postgres(address: StoreAddress, target: str) -> None:
    """Runs the migrations up to `target` in one transaction. Processes that start at the same time do it one after the
    other. Raises StoreError."""
    # Imported here only, because alembic and SQLAlchemy use much memory.
    from smartfeeds.store.migrations import run_on_postgres

    run_on_postgres(address, target)


def create_schema(session: PostgresSession) -> None:
    """Creates the schema in an empty database in one transaction. Does nothing if another process created it first."""
    text = resources.files("smartfeeds.store").joinpath(SCHEMA).read_text(encoding="utf-8")
    with session.connection.transaction():
        # Processes that start at the same time create the schema one after the other.
        session.execute("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
        if postgres_version(session) is None:
            session.execute_script(text)
            session.queue("INSERT INTO alembic_version (version_num) VALUES (?)", ((HEAD,),))
            session.queue("INSERT INTO compatibility (oldest) VALUES (?)", ((oldest_of(HEAD),),))
            session.flush()

"""The version of the schema in PostgreSQL: checked at every start, and created from `postgres.sql` if it is missing."""

from importlib import resources

import psycopg

from smartfeeds.errors import StoreError
from smartfeeds.store.base import OpenMode
from smartfeeds.store.migrate import HEAD, REVISIONS
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.sqlite_engine import CREATE_IT

SCHEMA = "postgres.sql"
# The advisory lock of a transaction that creates or upgrades the schema: "smartfee" as a number.
_LOCK = int.from_bytes(b"smartfee")


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


def prepare_postgres(session: PostgresSession, mode: OpenMode = OpenMode.SERVE) -> None:
    """Ensures that the database has the schema of this code (`migrate.prepare`). Raises StoreError."""
    try:
        revision = postgres_version(session)
        if revision is None and mode.creates:
            create_schema(session)
            revision = postgres_version(session)
        if revision == HEAD:
            return
        if revision is None:
            raise StoreError(f"it is empty; check store.url, or {CREATE_IT}")
        if revision not in REVISIONS:
            raise StoreError(
                f"its schema {revision} is newer than this program, which knows up to {HEAD}; "
                "install a newer smartfeeds"
            )
        raise StoreError(
            f"its schema {revision} is older than this program, which needs {HEAD}; run smartfeeds db upgrade"
        )
    except psycopg.Error as error:
        raise postgres_error(error, session.name) from error
    except StoreError as error:
        raise StoreError(f"the database {session.name}: {error}") from error


def create_schema(session: PostgresSession) -> None:
    """Creates the schema in an empty database in one transaction. Does nothing if another process created it first."""
    text = resources.files("smartfeeds.store").joinpath(SCHEMA).read_text(encoding="utf-8")
    with session.connection.transaction():
        # Processes that start at the same time create the schema one after the other.
        session.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        if postgres_version(session) is None:
            session.execute_script(text)
            session.queue("INSERT INTO alembic_version (version_num) VALUES (?)", ((HEAD,),))
            session.flush()

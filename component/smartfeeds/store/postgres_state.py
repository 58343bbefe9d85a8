"""The state of a PostgreSQL server for metrics, in two statements that an ordinary user may run (OPS-082)."""

from typing import Final

from smartfeeds.store.database_state import STANDBY_STATES, DatabaseState
from smartfeeds.store.engine import Row

# What the limits permit beside the connections of the expression `client`, which lists them. NULL is no limit, and
# LEAST ignores it.
FREE_CONNECTIONS: Final = """least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true), '0')::int - (SELECT count(*) FROM client),
        (SELECT nullif(rolconnlimit, -1) - (SELECT count(*) FROM client WHERE usename = current_user)
            FROM pg_roles WHERE rolname = current_user),
        (SELECT nullif(datconnlimit, -1) - (SELECT count(*) FROM client WHERE datname = current_database())
            FROM pg_database WHERE datname = current_database())
    )::int"""
# A session that waits for a row waits for the transaction that has it, and such a lock belongs to no database. So the
# database is that of the session. `waitstart` is not set in the first moment of a wait.
_LOAD: Final = f"""
WITH client AS (
    SELECT usename, datname FROM pg_stat_activity
    WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
), wait AS (
    SELECT l.pid, l.waitstart FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE NOT l.granted AND a.datname = current_database()
)
SELECT {FREE_CONNECTIONS}, (SELECT count(DISTINCT pid) FROM wait),
    (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(waitstart)), 0)::float8 FROM wait)
"""  # noqa: S608 - a constant
# A user without pg_read_all_stats sees that a standby is connected, and nothing else of it. Backups are no standbys.
# What only stores the log (pg_receivewal) applies none.
_STANDBYS: Final = """
SELECT coalesce(sync_state, 'unknown'), count(*), max(pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
    coalesce(replay_lsn, flush_lsn)))::bigint
FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' GROUP BY 1
"""
STATEMENTS: Final = (_LOAD, _STANDBYS)


def to_state(load: list[Row], standbys: list[Row]) -> DatabaseState:
    """Returns the state from the rows of both statements."""
    ((free, waiting, longest_wait_s),) = load
    counts = dict.fromkeys(STANDBY_STATES, 0) | {state: count for state, count, _ in standbys}
    lags = [lag_bytes for _, _, lag_bytes in standbys if lag_bytes is not None]
    return DatabaseState(free, waiting, max(0.0, longest_wait_s), counts, max(0, *lags) if lags else None)

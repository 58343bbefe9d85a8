"""One connection to PostgreSQL: it is opened with the settings that the store needs, and again after it was lost.

A session belongs to one thread. Its settings pin the plans (PG-036): every statement of the store is a few ranges of
indexes, and the planner would choose other plans whenever its statistics are old.
"""

import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.store.postgres_errors import may_connect_later, postgres_error

CONNECT_S = 5  # for each host of the address
# A failover takes seconds. Works wait this long for a connection that was lost. After that they fail, and the works
# after them try again.
RECONNECT_S = 5.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
OLDEST_VERSION = 140_000
# A process that hangs in a transaction must not keep the rows of feeds locked for the other processes.
IDLE_IN_TRANSACTION_MS = 15_000
LOCK_TIMEOUT_MS = 20_000
_PREPARED = 500  # statements that a connection keeps prepared; works use about 300
_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
    "lock_timeout": str(LOCK_TIMEOUT_MS),
}
_IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)


class PostgresSession:
    """A connection that `statement_timeout_ms` bounds (0: no bound).

    `open_at_once` fails when the server cannot be reached, `renew` waits some seconds for it.
    """

    def __init__(self, address: StoreAddress, *, statement_timeout_ms: int = 0) -> None:
        self.name = address.name
        self._address = address
        self._settings = {**_SETTINGS, "statement_timeout": str(statement_timeout_ms)}
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._cursor: psycopg.Cursor[tuple[Any, ...]] | None = None

    @property
    def connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, which must be open."""
        assert self._connection is not None
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether the connection was opened and has not been lost."""
        return self._connection is not None and not self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, also if it has failed."""
        return self.is_open and self.connection.info.transaction_status in _IN_TRANSACTION

    @property
    def has_failed(self) -> bool:
        """Whether the connection is lost, or the server refuses statements until the transaction ends."""
        return not self.is_open or self.connection.info.transaction_status is TransactionStatus.INERROR

    def open_at_once(self) -> None:
        """Opens the connection. Raises StoreError with advice."""
        try:
            self._open()
        except psycopg.Error as error:
            raise postgres_error(error, self.name) from error

    def renew(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Opens the connection if it is not open, with a growing pause between attempts. Raises StoreError."""
        until = time.monotonic() + RECONNECT_S
        pause_s = _FIRST_PAUSE_S
        while not self.is_open:
            try:
                self._open()
            except psycopg.Error as error:
                if not may_connect_later(error) or time.monotonic() + pause_s > until:
                    raise postgres_error(error, self.name, lost=True) from error
                # With jitter, because all connections of all processes are lost at the same time.
                sleep(pause_s * (0.5 + random.random()))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _open(self) -> None:
        self.close()
        options: dict[str, Any] = {"password": self._address.password} if self._address.password else {}
        connection = psycopg.connect(
            self._address.url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            prepare_threshold=2,
            application_name="smartfeeds",
            client_encoding="utf8",
            **options,
        )
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise StoreError(
                f"the database {self.name}: the server is PostgreSQL {version // 10_000}; 14 is the oldest"
            )
        connection.prepared_max = _PREPARED
        # All integers have one type: otherwise the server would plan each statement again for small and large numbers.
        for kind in (int, bool):
            connection.adapters.register_dumper(kind, _INTEGER)
        calls = ", ".join("set_config(%s, %s, false)" for _ in self._settings)
        connection.execute(f"SELECT {calls}", [part for pair in self._settings.items() for part in pair])
        self._connection = connection
        self._cursor = connection.cursor(binary=True)

    def close(self) -> None:
        """Closes the connection if it is open."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._cursor = None

    def execute(self, sql: str, params: Any = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs a statement with the placeholder `?`. Raises psycopg.Error, OverflowError, UnicodeEncodeError."""
        if self._cursor is None:
            raise psycopg.OperationalError("the connection is closed")
        return self._cursor.execute(to_psycopg(sql), params)

    def execute_script(self, script: str) -> str:
        """Runs statements without parameters in one round trip. Returns the last command as the server names it. Raises
        as `execute`.
        """
        if self._connection is None:
            raise psycopg.OperationalError("the connection is closed")
        return self._connection.execute(script.encode(), prepare=False).statusmessage or ""

    def execute_many(self, sql: str, rows: Any) -> None:
        """Runs a statement for each row of parameters, in one round trip. Raises as `execute`."""
        if self._cursor is None:
            raise psycopg.OperationalError("the connection is closed")
        self._cursor.executemany(to_psycopg(sql), rows)


_INTEGER: type[Dumper] = Int8BinaryDumper


@lru_cache(4_096)
def to_psycopg(sql: str) -> bytes:
    """Returns a statement with psycopg's placeholders. Statements have no `?` in literals."""
    return sql.replace("%", "%%").replace("?", "%s").encode()

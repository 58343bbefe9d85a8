"""One connection to PostgreSQL: it is opened with the settings that the store needs, and again after it was lost.

A session belongs to one thread. Its settings pin the plans (PG-036): every statement of the store is a few ranges of
indexes, and the planner would choose other plans whenever its statistics are old.
"""

import random
import select
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Row
from smartfeeds.store.postgres_answers import AnswerLimit, AnswerSocket
from smartfeeds.store.postgres_errors import may_connect_later, postgres_error
from smartfeeds.store.postgres_pipeline import PostgresPipeline, Statement, combined
from smartfeeds.telemetry import STORE_ROUND_TRIPS

CONNECT_S = 5  # for each host of the address
# A network that loses all packets answers nothing, and TCP alone would wait for 15 minutes, or for ever without data
# (PostgreSQL 15 manual, section 34.1.2; tcp(7)). The address may set other values.
_NETWORK: dict[str, Any] = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# A failover takes seconds. Works wait this long for a connection that was lost. After that they fail, and the works
# after them try again.
RECONNECT_S = 5.0
_PAUSES = Backoff(first_s=0.05, longest_s=1.0)
OLDEST_VERSION = 140_000  # as docs/postgres.md promises
# A process that hangs in a transaction must not keep the rows of feeds locked for the other processes. A wait for a
# lock is longer, so those that wait for such a process get the lock, and do not fail.
IDLE_IN_TRANSACTION_MS = 15_000
LOCK_TIMEOUT_MS = 20_000
# Plans that were made while a table was nearly empty may read it as a whole. They stay until the server gathers
# statistics, a minute later by default. So they are made again after these numbers of round trips.
PLANNED_AGAIN = frozenset(4**power for power in range(3, 9))
_SETTINGS = {
    # What is left is a scan of an index in its order, which ends with the LIMIT of a page. A bitmap has no order, so it
    # would be read whole and sorted.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    # Joins look rows up by their keys. These two read a whole index of nodes or items if the statistics are misleading.
    "enable_mergejoin": "off",
    "enable_hashjoin": "off",
    "jit": "off",  # compiling takes longer than a statement of the store runs
    # One plan for a statement, whatever its parameters. By default the first five runs are planned anew each.
    "plan_cache_mode": "force_generic_plan",
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
    "lock_timeout": str(LOCK_TIMEOUT_MS),
}
_IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)


def connect(address: StoreAddress, application: str, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """Returns a connection that the server lists under the name `application`. `options` are those of psycopg.connect.
    Raises psycopg.Error, or StoreError if libpq cannot read the address.
    """
    try:
        own = conninfo_to_dict(address.url)
    except psycopg.ProgrammingError as error:
        reason = " ".join(str(error).split())
        raise StoreError(
            f"the database {address.name}: its address has a mistake; check store.url ({reason})"
        ) from error
    network = {name: value for name, value in _NETWORK.items() if name not in own}
    password = address.password or None
    return psycopg.connect(address.url, password=password, application_name=application, **network, **options)


class PostgresSession:
    """A connection that `statement_timeout_ms` bounds (0: no bound). `kind` is a label of its metrics.

    `open_at_once` fails when the server cannot be reached, `renew` waits some seconds for it. Whoever shares `limit`
    ends statements without an answer: it calls `limit.enforce` with `answers`.
    """

    def __init__(
        self,
        address: StoreAddress,
        *,
        statement_timeout_ms: int = 0,
        kind: str = "read",
        limit: AnswerLimit | None = None,
    ) -> None:
        self.name = address.name
        self.address = address
        self.statement_timeout_ms = statement_timeout_ms
        self.answers = AnswerSocket()
        self._limit = limit or AnswerLimit()
        self._settings = {**_SETTINGS, "statement_timeout": str(statement_timeout_ms)}
        self._pipeline: PostgresPipeline | None = None
        self._queue: list[tuple[str, list[Sequence[Any]]]] = []  # statements, each with the parameters of its runs
        self._trips = STORE_ROUND_TRIPS.labels(kind)
        self._used = 0  # how often this connection was
        self._is_begun = False  # whether the server knows of the transaction
        self._is_ending = False  # whether the response to the end of a snapshot was not read yet

    @property
    def connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, which must be open."""
        assert self._pipeline is not None
        return self._pipeline.connection

    @property
    def is_open(self) -> bool:
        """Whether the connection was opened and has not been lost."""
        return self._pipeline is not None and not self._pipeline.connection.closed

    @property
    def backend_pid(self) -> int:
        """The process of the server that serves this connection, 0 if the connection is lost."""
        return self.connection.info.backend_pid

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, also if it has failed."""
        return self.is_open and self.connection.info.transaction_status in _IN_TRANSACTION

    @property
    def has_failed(self) -> bool:
        """Whether the connection is lost, or the server refuses statements until the transaction ends."""
        # A connection that was lost while its transaction waits in the queue is opened again by the first statement.
        is_lost = not self.is_open and (self._is_begun or not self._queue)
        return is_lost or (self.is_open and self.connection.info.transaction_status is TransactionStatus.INERROR)

    def open_at_once(self) -> None:
        """Opens the connection. Raises StoreError with advice; TransientError if the server may be back later."""
        try:
            self._open()
        except psycopg.Error as error:
            raise postgres_error(error, self.name, lost=may_connect_later(error)) from error

    def renew(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Opens the connection if it is not open, with a growing pause between attempts. Raises StoreError."""
        until = time.monotonic() + RECONNECT_S
        failures = 0
        while not self.is_open:
            if self._limit.is_over:
                raise StoreError(f"the database {self.name}: it does not answer, and the service ends")
            try:
                self._open()
            except psycopg.Error as error:
                self._limit.note_failure()
                failures += 1
                pause_s = _PAUSES.pause_s(failures, random.random())
                if not may_connect_later(error) or time.monotonic() + pause_s > until:
                    raise postgres_error(error, self.name, lost=True) from error
                sleep(pause_s)

    def _open(self) -> None:
        self.close()
        connection = connect(
            self.address,
            "smartfeeds",
            autocommit=True,  # BEGIN is a statement of the queue, so it costs no round trip of its own
            client_encoding="utf8",
        )
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise StoreError(
                f"the database {self.name}: the server is PostgreSQL {version // 10_000}; 14 is the oldest"
            )
        self._use(PostgresPipeline(connection))
        calls = ", ".join("set_config(%s, %s, false)" for _ in self._settings)
        try:
            with self.answers:
                connection.execute(f"SELECT {calls}", [part for pair in self._settings.items() for part in pair])
        except psycopg.Error:
            self.close()
            raise

    def _use(self, pipeline: PostgresPipeline) -> None:
        self.answers.attach(pipeline.connection.fileno())
        self._pipeline = pipeline
        self._used = 0

    def close(self) -> None:
        """Closes the connection if it is open."""
        self._is_ending = False
        self.answers.close()
        if self._pipeline is not None:
            self._pipeline.connection.close()
        self._pipeline = None

    def begin(self, statement: str) -> None:
        """Begins a transaction with this statement. It is sent with the first of the others."""
        self._queue = [(statement, [()])]
        self._is_begun = False

    def end_snapshot(self) -> None:
        """Ends a transaction without changes. The response is read before the next transaction, so that no read waits
        for the round trip (PG-049). Raises psycopg.OperationalError.
        """
        # Below psycopg's `execute`, which waits for the response.
        connection = self.connection.pgconn
        connection.send_query(b"ROLLBACK")
        with self.answers:
            while connection.flush():
                _wait(connection.socket, select.POLLOUT)
        self._is_ending = True

    def finish_ending(self) -> None:
        """Reads the response to the end of a snapshot. Closes the connection if it is lost."""
        if not self._is_ending:
            return
        self._is_ending = False
        connection = self.connection.pgconn
        try:
            with self.answers:
                while connection.is_busy():
                    _wait(connection.socket, select.POLLIN)
                    connection.consume_input()
                while connection.get_result() is not None:
                    pass
        except psycopg.OperationalError:
            self.close()

    def drop(self) -> bool:
        """Forgets the statements that were not sent. Returns whether the transaction has begun on the server."""
        self._queue.clear()
        return self.in_transaction

    def queue(self, sql: str, rows: Any) -> None:
        """Runs a statement for each row of parameters, before the next statement that returns rows."""
        if not self._queue or self._queue[-1][0] != sql:
            self._queue.append((sql, []))
        self._queue[-1][1].extend(rows)

    def execute(self, sql: str, params: Any = ()) -> list[Row]:
        """Returns the rows of a statement with the placeholder `?`. Queued statements are sent with it.

        Raises psycopg.Error, OverflowError, UnicodeEncodeError.
        """
        return self._again_if_new(((sql, params),))[0]

    def execute_all(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Returns the rows of each of these statements, which share a round trip. Raises as `execute`."""
        return self._again_if_new(statements)

    def copy(self, table: str, columns: str, rows: Iterable[Sequence[object]]) -> None:
        """Adds rows to a table by COPY, after the queued statements. Raises as `execute`."""
        self.flush()
        statement = f"COPY {table} ({columns}) FROM STDIN".encode()
        with self.answers, self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def flush(self) -> None:
        """Sends the queued statements. Raises as `execute`."""
        if self._queue:
            self._again_if_new(())

    def commit(self) -> str:
        """Sends the queued statements and the commit. Returns the command as the server names it.

        A transaction without statements is not sent. Raises as `execute`.
        """
        if not self._is_begun:
            if len(self._queue) == 1:
                self._queue.clear()
                return "COMMIT"
            # Not with the commit: these statements are sent again if the connection was lost while it was idle, and
            # nobody would know whether such a commit has happened.
            self.flush()
        status = self._run([("COMMIT", ())])[-1].command_status
        return status.decode() if status else ""

    def _again_if_new(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Sends statements, twice if the connection was lost while it was idle: nothing has been done on it."""
        is_new = bool(self._queue) and not self._is_begun
        queue = list(self._queue)
        try:
            return self._send(statements)
        except psycopg.OperationalError:
            if not is_new or self.is_open:
                raise
            self.renew()
            self._queue = queue
            return self._send(statements)
        finally:
            # Also after an error: the statements before the one that failed were sent.
            self._is_begun = True

    def _send(self, statements: Sequence[Statement]) -> list[list[Row]]:
        results = self._run(statements)
        assert self._pipeline is not None
        return [self._pipeline.rows(result) for result in results]

    def _run(self, statements: Sequence[Statement]) -> list[PGresult]:
        """Returns the results of these statements. Queued statements are sent with them."""
        if self._pipeline is None:
            raise psycopg.OperationalError("the connection is closed")
        queue, self._queue = self._queue, []
        self._trips.inc()
        self._used += 1
        first: list[Statement] = []
        for sql, rows in queue:
            statement = combined(sql, rows) if len(rows) > 1 else None
            first += [(sql, row) for row in rows] if statement is None else [statement]
        if self._used in PLANNED_AGAIN:
            # The names of statements stay. The server plans each again when it runs next.
            first.append(("DISCARD PLANS", ()))
        with self.answers:
            return self._pipeline.run([*first, *statements])[len(first) :]

    def execute_script(self, script: str) -> None:
        """Runs statements without parameters in one round trip, after those that are queued. Raises as `execute`."""
        self.flush()
        if self._pipeline is None:
            raise psycopg.OperationalError("the connection is closed")
        self._trips.inc()
        with self.answers:
            # Without parameters psycopg uses the simple protocol, which takes several statements; a prepared statement
            # is a single one.
            self.connection.execute(script.encode(), prepare=False)


def _wait(file_no: int, event: int) -> None:
    """Waits until a socket can be read or written."""
    poll = select.poll()
    poll.register(file_no, event)
    poll.poll()

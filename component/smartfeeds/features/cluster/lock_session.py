"""One PostgreSQL session for locks, marks, notices and letters between the processes on a database (docs/scaling.md).

The session holds advisory locks, and the database ends it if the process is silent for the lease
(`idle_session_timeout`). The clock of the database alone decides who owns what, and marks that are written on the
session cannot come from a process that has lost its locks. LISTEN needs a session, too, so notices use the same one.
"""

import asyncio
import contextlib
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, LiteralString, Self, TypeVar

import psycopg
import structlog

from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import StoreError
from smartfeeds.features.cluster.letter_table import CREATE_LETTERS, HeardLetters, LetterTable
from smartfeeds.features.cluster.metrics import NOTICES
from smartfeeds.features.cluster.notices import (
    ChangeNotice,
    JoinNotice,
    LetterNotice,
    SessionEvents,
    change_text,
    join_text,
    letter_text,
    read_notice,
)
from smartfeeds.features.cluster.shards import Members
from smartfeeds.store.base import OpenMode, WriteTx
from smartfeeds.store.engine import TransientError
from smartfeeds.store.indexer import ReadAhead, TraitsReader
from smartfeeds.store.migrate import database_named, must_change
from smartfeeds.store.migrate_postgres import SCHEMA_LOCK, oldest_postgres_program, postgres_version
from smartfeeds.store.postgres_engine import PostgresEngine
from smartfeeds.store.postgres_errors import postgres_error
from smartfeeds.store.postgres_programs import session_name
from smartfeeds.store.postgres_session import PostgresSession

T = TypeVar("T")

# The first key of each advisory lock: "SF" and a number, so that locks of other programs in the database differ.
_SHARD: Final = 0x5346_0001
_MEMBER: Final = 0x5346_0002  # the second key is _LINKED or _UNLINKED; each process has a shared lock
_LINK: Final = 0x5346_0003
_LINKED: Final = 1
_UNLINKED: Final = 0
CHANNEL: Final[LiteralString] = "smartfeeds"
# Changes within this time share a notice: each notice takes a lock of the whole server.
NOTICE_S: Final = 0.01
# A statement takes milliseconds. Only a server that hangs, while its kernel still answers, needs longer.
CLOSE_S: Final = 5.0
_SENT, _RECEIVED = NOTICES.labels("sent"), NOTICES.labels("received")

_VIEW: Final[LiteralString] = """
SELECT classid::bigint, objid::bigint, count(*), clock_timestamp() FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid IN (%s::oid, %s::oid)
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY classid, objid
"""
_LOCK: Final[LiteralString] = (
    "SELECT shard FROM unnest(%s::int[]) WITH ORDINALITY AS wish(shard, place) "
    "WHERE pg_try_advisory_lock(%s::int, shard) ORDER BY place"
)
_UNLOCK: Final[LiteralString] = "SELECT pg_advisory_unlock(%s::int, shard) FROM unnest(%s::int[]) AS shard"
# `idle_session_timeout` does not run while the server waits for the rest of a pipeline, and a process may be frozen
# just then. So the other processes end sessions that were silent for the lease, by the clock of the database, too.
_END_SILENT: Final[LiteralString] = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name LIKE 'smartfeeds %% locks'
  AND greatest(query_start, state_change) < clock_timestamp() - make_interval(secs => %s::float8)
"""

_log = structlog.get_logger()

# Work with the connection, and the future of its result.
_Job = tuple[Callable[[], Any], "asyncio.Future[Any] | None"]


class SessionLostError(TransientError):
    """The session has ended, and with it every lock."""


@dataclass(frozen=True, slots=True)
class LockView:
    """The locks of all processes: the members, and the shards that have an owner."""

    members: Members
    held: frozenset[int]


class LockSession:
    """A session with a thread of its own. `open` returns one; a lost session is replaced by another one.

    Every method except `announce` raises SessionLostError.
    """

    def __init__(
        self,
        session: "_LockedSession",
        instance: str,
        events: SessionEvents,
        reader: TraitsReader,
        heard: HeardLetters,
    ) -> None:
        self._session = session
        self._connection = connection = session.connection
        self._engine = PostgresEngine(session)
        self._tx = WriteTx(self._engine, ReadAhead(reader))
        self._instance = instance
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job] = deque()
        # To send and to read. Run when no other job waits: strangers cause letters, and a flood of them must not delay
        # the beats.
        self._letters: deque[_Job] = deque()
        self._guard = threading.Lock()  # of the next four attributes, and of the pipe
        self._changed: set[int] = set()
        self._notice_at_s: float | None = None
        self._ending = False
        self._is_over = False
        self._is_linked = False
        self._heard = heard
        self._table = LetterTable(connection, instance, heard)
        # `_serve` waits for the socket of the connection and for this pipe in one call.
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        connection.add_notify_handler(self._note)
        # A daemon: a server that hangs keeps the thread in recv(), and a start that fails calls no `close`.
        self._thread = threading.Thread(target=self._serve, name="lock session", daemon=True)

    @classmethod
    async def open(
        cls,
        address: StoreAddress,
        instance: str,
        *,
        lease_s: float,
        events: SessionEvents,
        reader: TraitsReader,
        heard: HeardLetters | None = None,
    ) -> Self:
        """Connects and joins the members without a link. `reader` indexes items, as in the store. `heard` is what the
        former session of this process has read. Raises StoreError."""
        session = _LockedSession(address, lease_s)
        preparing = asyncio.ensure_future(asyncio.to_thread(session.prepare, instance))
        try:
            early = await asyncio.shield(preparing)
        except asyncio.CancelledError:
            # The thread goes on. Without this its connection would stay open, and count as that of another process.
            session.answers.shut_down()
            await asyncio.gather(preparing, return_exceptions=True)
            session.close()
            raise
        locks = cls(session, instance, events, reader, heard or HeardLetters())
        for notice in early:
            locks._note(notice)
        if locks._heard.at is not None:
            locks._jobs.append((partial(locks._read_missed, locks._heard.at), None))
            locks._wake()
        locks._thread.start()
        return locks

    # Locks.

    async def beat(self) -> LockView:
        """Shows the database that this process is alive, and returns the locks of all processes."""
        return await self.run(self._read_view)

    async def join(self, *, is_linked: bool) -> None:
        """Counts this process among the members with or without a link."""
        new, former = (_LINKED, _UNLINKED) if is_linked else (_UNLINKED, _LINKED)

        def change() -> None:
            # Counted twice for a moment. Not counted at all, the others would take its share.
            self._connection.execute("SELECT pg_advisory_lock_shared(%s::int, %s::int)", (_MEMBER, new))
            self._connection.execute("SELECT pg_advisory_unlock_shared(%s::int, %s::int)", (_MEMBER, former))
            self._is_linked = is_linked

        await self.run(change)

    async def lock(self, shards: Iterable[int]) -> frozenset[int]:
        """Locks shards that have no owner. Returns those that this process owns now."""
        wish = list(shards)
        return await self.run(
            lambda: frozenset(row[0] for row in self._connection.execute(_LOCK, (wish, _SHARD)).fetchall())
        )

    async def unlock(self, shards: Iterable[int]) -> None:
        """Releases shards of this process."""
        mine = list(shards)
        await self.run(lambda: self._connection.execute(_UNLOCK, (_SHARD, mine)))

    async def lease_link(self) -> bool:
        """Locks the link of the component. Returns whether this process has it now."""

        def lock() -> bool:
            row = self._connection.execute("SELECT pg_try_advisory_lock(%s::int, 0)", (_LINK,)).fetchone()
            return row is not None and bool(row[0])

        return await self.run(lock)

    # Notices and letters.

    def announce(self, node_nos: Collection[int]) -> None:
        """Wakes the other processes for changed nodes, at most `NOTICE_S` later. A lost session drops the notice: the
        other processes read the store every few seconds.
        """
        with self._guard:
            self._changed.update(node_nos)
            is_planned = self._notice_at_s is not None
            if not is_planned:
                self._notice_at_s = time.monotonic() + NOTICE_S
        if not is_planned:
            self._wake()

    async def send_letter(self, recipient: str, body: bytes) -> None:
        """Passes bytes to the process with the instance `recipient`; to all others if it is EVERY_PROCESS, and to one
        of those with a link if it is ANY_PROCESS."""

        def send() -> None:
            self._notify(letter_text(self._instance, recipient, self._table.add(recipient, body)))

        await self._queue(self._letters, send)

    async def remove_letters(self) -> None:
        """Removes letters that were not read in time."""
        await self.run(self._table.remove_old)

    # The thread.

    async def run(self, work: Callable[[], T]) -> T:
        """Runs work with the connection, in the thread, in the order of the calls. Raises what it raises."""
        return await self._queue(self._jobs, work)

    async def _queue(self, jobs: "deque[_Job]", work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        with self._guard:
            if self._is_over or self._ending:
                raise SessionLostError("the lock session has ended; the service opens another one")
            jobs.append((work, future))
        self._wake()
        return await future

    async def write_marks(self, works: Sequence[Callable[[WriteTx], T]]) -> list[T]:
        """Runs works in transactions of this session, which fail if the locks are lost. Returns their results.

        Each work has a transaction of its own: one for the marks of many feeds would lock these feeds for long, and
        could wait for a publisher that waits for it (PG-039).
        """
        return await self.run(lambda: [self._write(work) for work in works])

    def _write(self, work: Callable[[WriteTx], T]) -> T:
        try:
            self._engine.begin()
            result = work(self._tx)
            self._tx.settle()
            self._engine.commit()
        finally:
            self._tx.forget()
            self._engine.rollback()
        return result

    async def close(self) -> None:
        """Ends the session and releases all locks. A server that does not answer loses the connection."""
        with self._guard:
            self._ending = True
        self._wake()
        end = asyncio.create_task(asyncio.to_thread(self._thread.join))
        try:
            await asyncio.wait((end,), timeout=CLOSE_S)
        finally:
            # Also when the caller is cancelled: the process could not end before its threads.
            self._session.answers.shut_down()
        await end

    def _wake(self) -> None:
        with self._guard:
            if not self._is_over:
                # A full pipe wakes the thread, too.
                with contextlib.suppress(BlockingIOError):
                    os.write(self._wake_write, b"\0")

    def _serve(self) -> None:
        connection, reason = self._connection, ""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            selector.register(connection.fileno(), selectors.EVENT_READ)
            try:
                while not self._ending:
                    selector.select(self._pause_s())
                    self._drain()
                    self._run_jobs()
                    self._send_notice()
                    # Not `Connection.notifies`: while it waits it holds the lock, so no job could run.
                    connection.pgconn.consume_input()
                    while (notice := connection.pgconn.notifies()) is not None:
                        self._read_notice(notice.extra.decode(errors="replace"))
                while self._letters:
                    self._run_jobs()
                self._run_jobs()
            except psycopg.Error as error:
                reason = str(error).strip()
        self._session.close()
        with self._guard:
            # No job and no wake-up is added from here on: the numbers of the pipe may soon be those of other files.
            self._is_over = True
            os.close(self._wake_read)
            os.close(self._wake_write)
        for job in (*self._jobs, *self._letters):
            self._settle(job[1], error=SessionLostError(f"the lock session was lost: {reason}"))
        if not self._ending:
            self._call(self._events.on_lost, reason)

    def _pause_s(self) -> float | None:
        if self._letters:
            return 0.0
        with self._guard:
            return None if self._notice_at_s is None else max(0.0, self._notice_at_s - time.monotonic())

    def _drain(self) -> None:
        try:
            while os.read(self._wake_read, 4_096):
                pass
        except BlockingIOError:
            return

    def _run_jobs(self) -> None:
        """Runs all jobs, and one letter."""
        while self._jobs:
            self._run_job(*self._jobs.popleft())
        if self._letters:
            self._run_job(*self._letters.popleft())

    def _run_job(self, work: Callable[[], Any], future: "asyncio.Future[Any] | None") -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - the caller receives it
            is_end = self._connection.closed
            if future is None and not is_end:
                _log.exception("letter_failed", reason=repr(error))  # no caller waits for a letter that arrives
            lost = SessionLostError(f"the lock session was lost: {error}") if is_end else error
            self._settle(future, error=lost)
            if is_end:
                raise psycopg.OperationalError(str(error)) from None
        else:
            self._settle(future, result)

    def _settle(
        self, future: "asyncio.Future[Any] | None", result: object = None, error: Exception | None = None
    ) -> None:
        def settle() -> None:
            if future is None or future.done():  # the caller was cancelled
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._call(settle)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():  # a thread in recv() may outlive it
            self._loop.call_soon_threadsafe(function, *arguments)

    def _read_view(self) -> LockView:
        self._connection.execute(_END_SILENT, (self._session.lease_s,))
        rows = self._connection.execute(_VIEW, (_SHARD, _MEMBER)).fetchall()
        counts = {(row[0], row[1]): row[2] for row in rows}
        self._heard.note_time(max(row[3] for row in rows))  # this process is a member, so there is a row
        members = Members(counts.get((_MEMBER, _LINKED), 0), counts.get((_MEMBER, _UNLINKED), 0))
        return LockView(members, frozenset(number for class_id, number in counts if class_id == _SHARD))

    def _send_notice(self) -> None:
        with self._guard:
            if self._notice_at_s is None or self._notice_at_s > time.monotonic():
                return
            changed, self._changed = self._changed, set()
            self._notice_at_s = None
        self._notify(change_text(self._instance, changed))
        _SENT.inc()

    def _notify(self, text: str) -> None:
        # A transaction of its own, after the commit of the change: NOTIFY in the transaction of a write would make the
        # commits of all processes wait for each other.
        self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))

    def _note(self, notice: psycopg.Notify) -> None:
        self._read_notice(notice.payload)

    def _read_notice(self, payload: str) -> None:
        notice = read_notice(payload, self._instance)
        if isinstance(notice, ChangeNotice):
            _RECEIVED.inc()
            self._call(self._events.on_changed, notice.node_nos)
        elif isinstance(notice, JoinNotice):
            self._call(self._events.on_joined)
        elif notice is not None:
            # Not now: a notice may arrive in the middle of a statement. Any role may send notices of letters.
            self._letters.append((partial(self._read_letter, notice), None))
            self._wake()

    def _read_missed(self, since: datetime) -> None:
        """Reads the letters that others have sent while this process had no session."""
        if self._table.has_lost(since):
            self._call(self._events.on_missed)
        for body in self._table.read_missed(since):
            self._call(self._events.on_letter, body)

    def _read_letter(self, notice: LetterNotice) -> None:
        if notice.is_claimed and not self._is_linked:
            return  # this process could not answer the stanza
        body = self._table.read(notice.letter_no, is_claimed=notice.is_claimed)
        if body is not None:
            self._call(self._events.on_letter, body)


class _LockedSession(PostgresSession):
    """A connection that is not opened again after it was lost, because its locks are lost, too."""

    def __init__(self, address: StoreAddress, lease_s: float) -> None:
        self.lease_s = lease_s
        timeout_ms = max(1, int(lease_s * 1_000))
        # A database that has vanished without a word must not hold a beat for longer than the lease.
        options = f"keepalives_idle=1&keepalives_interval=1&keepalives_count=3&tcp_user_timeout={timeout_ms}"
        url = f"{address.url}{'&' if '?' in address.url else '?'}{options}"
        super().__init__(replace(address, url=url), kind="locks")
        self._lease_settings = {
            "idle_session_timeout": timeout_ms,
            "idle_in_transaction_session_timeout": timeout_ms,
            # A mark that waits for a row must not hold up the beats.
            "lock_timeout": max(1, timeout_ms // 2),
            # What a crash of the database loses is a mark, whose items are sent once more, or a notice.
            "synchronous_commit": "off",
        }

    def renew(self, sleep: Callable[[float], None] = time.sleep) -> None:  # noqa: ARG002 - the signature of the base
        """Raises SessionLostError if the connection is lost."""
        if not self.is_open:
            raise SessionLostError(f"the database {self.name}: the lock session was lost")

    def prepare(self, instance: str) -> list[psycopg.Notify]:
        """Opens the connection and joins the members without a link. Returns the notices that have arrived meanwhile.
        Raises StoreError.
        """
        self.open_at_once()
        connection, early = self.connection, list[psycopg.Notify]()
        try:
            connection.execute("SELECT set_config('application_name', %s, false)", (session_name(instance),))
            self._check_schema()
            for name, value in self._lease_settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
            connection.execute("SELECT pg_advisory_lock_shared(%s::int, %s::int)", (_MEMBER, _UNLINKED))
            with connection.transaction():
                # Processes that start together would both create the table, and one of them would fail.
                connection.execute("SELECT pg_advisory_xact_lock(%s::int, 1)", (_LINK,))
                connection.execute(CREATE_LETTERS)
            # Notices of others may come together with the answers to these two statements.
            connection.add_notify_handler(early.append)
            connection.execute(f"LISTEN {CHANNEL}")
            # The others pass stanzas on to this process at once, and not only after their next beat.
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, join_text(instance)))
            connection.remove_notify_handler(early.append)
        except psycopg.Error as error:
            failure = postgres_error(error, f"{self.name}, lock session", lost=connection.closed)
            self.close()
            raise failure from error
        except StoreError:
            self.close()
            raise
        return early

    def _check_schema(self) -> None:
        """Raises StoreError, or NewerSchemaError if a newer program has upgraded the schema since this one started.

        The lock makes the check wait for an upgrade that runs. An upgrade that starts after it sees this session.
        """
        with self.connection.transaction():
            self.execute("SELECT pg_advisory_xact_lock_shared(?)", (SCHEMA_LOCK,))
            with database_named(self.name):
                must_change(postgres_version(self), oldest_postgres_program(self), OpenMode.READ)

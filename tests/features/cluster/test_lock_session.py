"""The session of locks, marks, notices and letters between processes, on PostgreSQL."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from smartfeeds.core.stores import parse_store
from smartfeeds.errors import NewerSchemaError, StoreError
from smartfeeds.features.cluster import lock_session
from smartfeeds.features.cluster.letter_table import LETTER_S, HeardLetters
from smartfeeds.features.cluster.lock_session import LockSession, SessionLostError
from smartfeeds.features.cluster.notices import SessionEvents
from smartfeeds.features.cluster.shards import Members
from smartfeeds.formats.atom import read_traits
from smartfeeds.store.base import WriteTx
from smartfeeds.store.migrate import HEAD
from smartfeeds.store.migrate_postgres import SCHEMA_LOCK, prepare_postgres
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.telemetry import REGISTRY
from support.postgres import PostgresServer
from support.postgres_store import EmptyDatabase
from support.waiting import HANG_S, in_vain, until, waiting

LEASE_S = 30.0


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    with closing(PostgresSession(parse_store(url))) as session:
        session.open_at_once()
        prepare_postgres(session)
    yield url
    postgres.drop_database(url)


@dataclass
class Peer:
    """A process with a lock session, and what it was told."""

    name: str
    changed: list[Collection[int] | None] = field(default_factory=list)
    letters: list[bytes] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    missed: list[bool] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    session: LockSession = field(init=False)

    def events(self) -> SessionEvents:
        def note(values: list) -> Callable:  # type: ignore[type-arg]
            return lambda value: (values.append(value), self.news.set())

        return SessionEvents(
            note(self.changed), note(self.letters), note(self.lost), on_missed=lambda: note(self.missed)(True)
        )

    async def until(self, is_there: Callable[[], object]) -> None:
        async with waiting(f"events of {self.name}"):
            while not is_there():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def joined(
    url: str, name: str, lease_s: float = LEASE_S, heard: HeardLetters | None = None
) -> AsyncIterator[Peer]:
    peer = Peer(name)
    peer.session = await LockSession.open(
        parse_store(url), name, lease_s=lease_s, events=peer.events(), reader=read_traits, heard=heard
    )
    try:
        yield peer
    finally:
        await peer.session.close()


async def test_shard_has_one_owner_until_it_is_unlocked_or_its_session_ends(url: str) -> None:
    """[TOP-040]"""
    async with joined(url, "b") as second:
        async with joined(url, "a") as first:
            assert await first.session.lock([1, 2, 3]) == {1, 2, 3}
            assert await second.session.lock([3, 4]) == {4}
            assert (await second.session.beat()).held == {1, 2, 3, 4}
            await first.session.unlock([3])
            assert await second.session.lock([3]) == {3}
        # The server ends the session some time after the connection was closed.
        gained: set[int] = set()
        async with waiting("the locks of the closed session"):
            while gained != {1, 2}:
                gained |= await second.session.lock({1, 2} - gained)


async def test_session_that_is_frozen_in_a_pipeline_is_ended_by_another_process(url: str) -> None:
    """[TOP-041] [CAM-002] [CAM-082] The timeout for idle sessions does not run there."""
    async with joined(url, "b", lease_s=1.0) as second:  # it must not lose its own session between two beats
        with closing(psycopg.connect(url, application_name="smartfeeds a locks", autocommit=True)) as frozen:
            frozen.execute("SELECT pg_advisory_lock(%s::int, 9)", (0x5346_0001,))
            frozen.execute("SET idle_session_timeout = 500")
            frozen.pgconn.enter_pipeline_mode()
            frozen.pgconn.send_query_params(b"SELECT 1", None)
            frozen.pgconn.send_flush_request()
            frozen.pgconn.flush()
            gained: frozenset[int] = frozenset()
            async with waiting("the lock of the frozen session"):
                while not gained:
                    await second.session.beat()
                    gained = await second.session.lock([9])
            assert gained == {9}


async def test_notice_that_comes_with_the_answer_to_the_last_statement_of_the_start_is_read(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-013] The others greet a process that starts, and may be faster than its own next step. A session receives
    its own notices together with the answer, so this one is as early as possible.
    """
    monkeypatch.setattr(lock_session, "join_text", lambda _instance: "b changed 7")
    async with joined(url, "a") as first:
        await first.until(lambda: first.changed)
        assert [list(numbers or ()) for numbers in first.changed] == [[7]]


async def test_members_count_by_their_link(url: str) -> None:
    """[TOP-040]"""
    async with joined(url, "a") as first, joined(url, "b") as second:
        assert (await first.session.beat()).members == Members(0, 2)
        await second.session.join(is_linked=True)
        assert (await first.session.beat()).members == Members(1, 1)
        await second.session.join(is_linked=False)
        assert (await first.session.beat()).members == Members(0, 2)


async def test_one_process_has_the_link(url: str) -> None:
    """[TOP-021] The lease ends with the session."""
    async with joined(url, "b") as second:
        async with joined(url, "a") as first:
            assert await first.session.lease_link() is True
            assert await second.session.lease_link() is False
        # The server ends a session a moment after its connection was closed.
        async with waiting("the lease of the closed session"):
            while not await second.session.lease_link():
                await second.session.beat()


async def test_notice_names_the_nodes_of_other_processes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-061] [PG-062] Changes that come together share a notice."""
    monkeypatch.setattr(lock_session, "NOTICE_S", 0.5)  # a slow machine may need more than 10 ms between two calls
    async with joined(url, "a") as first, joined(url, "b") as second:
        first.session.announce([3])
        first.session.announce([1, 2])
        await second.until(lambda: second.changed)
        await first.session.beat()
        assert (first.changed, second.changed) == ([], [(1, 2, 3)])


async def test_notices_are_counted_by_direction(url: str) -> None:
    """[OPS-082] A process counts what it has sent, and what it has received of others."""

    def count(direction: str) -> float:
        return REGISTRY.get_sample_value("smartfeeds_notices_total", {"direction": direction}) or 0.0

    async with joined(url, "a") as first, joined(url, "b") as second:
        before = count("sent"), count("received")
        first.session.announce([1])
        await second.until(lambda: second.changed)
        await first.session.beat()
        assert (count("sent"), count("received")) == (before[0] + 1, before[1] + 1)


async def test_notice_of_too_many_nodes_says_that_there_are_many(url: str) -> None:
    """[PG-061] PostgreSQL refuses a payload of 8,000 bytes."""
    async with joined(url, "a") as first, joined(url, "b") as second:
        first.session.announce(range(10_000, 20_000))
        await second.until(lambda: second.changed)
        assert second.changed == [None]


async def test_letter_reaches_the_process_that_it_names_or_all_others(url: str) -> None:
    """[TOP-030] It may be larger than a notice."""
    body = b"<iq/>" * 10_000
    async with joined(url, "a") as first, joined(url, "b") as second, joined(url, "c") as third:
        await first.session.send_letter("b", body)
        await first.session.send_letter("*", b"<message/>")
        await second.until(lambda: len(second.letters) == 2)
        await third.until(lambda: third.letters)
        assert (first.letters, second.letters, third.letters) == ([], [body, b"<message/>"], [b"<message/>"])


async def test_texts_of_other_roles_end_nothing(url: str) -> None:
    """[PG-062] Every role that may connect to the database may send notices. A thread that ends would hold its locks
    until the lease is over, and its callers would wait for ever."""
    async with joined(url, "a") as first, joined(url, "b") as second:
        with psycopg.connect(url, autocommit=True) as stranger:
            no_letter = 2**40  # the letters of other tests have small numbers
            texts = (f"x letter * {'9' * 5_000}", f"x changed {'9' * 5_000}", f"x letter * {no_letter}", "\U0001f41e")
            for text in texts:
                stranger.execute("SELECT pg_notify(%s, %s)", (lock_session.CHANNEL, text))
        async with waiting("the letter behind the strangers' notices"):
            await second.session.send_letter("a", b"<iq/>")
            await first.until(lambda: first.letters)
            await first.session.beat()
        assert (first.letters, first.changed, first.lost) == ([b"<iq/>"], [], [])


async def test_beat_overtakes_letters(url: str) -> None:
    """[TOP-041] Strangers cause letters: a flood of them must not cost a process its locks."""
    order: list[str] = []
    may_go = threading.Event()
    async with joined(url, "a") as first:
        tasks = [asyncio.create_task(first.session.run(lambda: may_go.wait(HANG_S)), name="work")]
        tasks += [asyncio.create_task(first.session.send_letter("b", b"<presence/>"), name="letter") for _ in range(5)]
        tasks += [asyncio.create_task(first.session.run(lambda: None), name="beat")]
        for task in tasks:
            task.add_done_callback(lambda task: order.append(task.get_name()))
        await asyncio.sleep(0)  # each task has queued its work
        may_go.set()
        await asyncio.gather(*tasks)
    assert order == ["work", "beat", *["letter"] * 5]


async def test_beat_overtakes_letters_that_have_arrived(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[TOP-041] Any role that may connect to the database can send a flood of notices of letters."""
    order: list[str] = []
    read = LockSession._read_letter
    monkeypatch.setattr(LockSession, "_read_letter", lambda *call: (order.append("letter"), read(*call)))
    sent, arrived, may_go = threading.Event(), threading.Event(), threading.Event()
    async with joined(url, "a") as first:

        def receive() -> None:
            assert sent.wait(HANG_S), in_vain("the notices")
            first.session._connection.execute("SELECT 1")  # the response comes with the notices
            arrived.set()
            assert may_go.wait(HANG_S), in_vain("the beats to be queued")

        tasks = [asyncio.create_task(first.session.run(receive))]
        await asyncio.sleep(0)  # it is queued
        with psycopg.connect(url, autocommit=True) as stranger:
            query = "SELECT count(pg_notify(%s, 'x letter * ' || number)) FROM generate_series(1, 5) AS number"
            stranger.execute(query, (lock_session.CHANNEL,))
        sent.set()
        await asyncio.to_thread(arrived.wait, HANG_S)
        tasks += [asyncio.create_task(first.session.run(partial(order.append, "beat"))) for _ in range(3)]
        await asyncio.sleep(0)
        may_go.set()
        await asyncio.gather(*tasks)
    assert order == [*["beat"] * 3, *["letter"] * 5]


async def test_silent_session_loses_its_locks_and_can_write_no_mark(url: str) -> None:
    """[TOP-041] The database ends a session without a beat."""
    async with joined(url, "b") as second, joined(url, "a", lease_s=1.0) as first:  # a slow machine locks within it
        assert await first.session.lock([7]) == {7}
        await first.until(lambda: first.lost)
        with pytest.raises(SessionLostError):
            await first.session.write_marks([lambda _tx: None])
        await until(lambda: second.session.lock([7]), "the lock of the silent session")


async def test_session_is_refused_after_a_newer_program_has_upgraded_the_database(postgres: PostgresServer) -> None:
    """[OPS-091] The process had no session meanwhile, so the newer program has not seen it."""
    url = postgres.create_database()
    with pytest.raises(StoreError, match="it is empty"):
        async with joined(url, "a"):
            pass
    with closing(PostgresSession(parse_store(url))) as session:
        session.open_at_once()
        prepare_postgres(session)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE compatibility SET oldest = '9998'")
        with pytest.raises(NewerSchemaError, match=r"the database .*: its schema 9999 is newer than this program"):
            async with joined(url, "a"):
                pass
        connection.execute("UPDATE compatibility SET oldest = %s", (HEAD,))
        async with joined(url, "a") as first:
            assert (await first.session.beat()).members == Members(0, 1)
    postgres.drop_database(url)


async def test_session_that_the_server_ends_is_reported(url: str) -> None:
    """[TOP-041] A restart of the database, for example."""
    async with joined(url, "a") as first:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'smartfeeds a % locks'"
            )
        await first.until(lambda: first.lost)
        with pytest.raises(SessionLostError):
            await first.session.beat()


async def test_session_ends_although_the_server_hangs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[TOP-041] Its kernel still answers, so the connection looks alive."""
    monkeypatch.setattr(lock_session, "CLOSE_S", 0.1)
    async with joined(url, "a") as first:
        pid = first.session._connection.info.backend_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            beat = asyncio.create_task(first.session.beat())
            async with waiting("the end of the session"):
                await first.session.close()
                with pytest.raises(SessionLostError):
                    await beat
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_closing_that_is_cancelled_ends_although_the_server_hangs(url: str) -> None:
    """[TOP-041] [CAM-002] A service that ends cancels its tasks, and its process ends after the last thread."""
    async with joined(url, "a") as first:
        pid = first.session._connection.info.backend_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            beat = asyncio.create_task(first.session.beat())
            closing = asyncio.create_task(first.session.close())
            await asyncio.sleep(0)  # both begin
            await asyncio.sleep(0)  # closing waits for the thread
            closing.cancel()
            async with waiting("the failure of the beat"):
                with pytest.raises(SessionLostError):
                    await beat
            first.session._thread.join(HANG_S)
            assert not first.session._thread.is_alive()
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_opening_that_is_cancelled_ends_although_the_server_hangs(url: str) -> None:
    """[TOP-041] [CAM-002] The beat of a process is cancelled after the lease. Its thread must not wait for ever."""
    loop = asyncio.get_running_loop()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
        opening = asyncio.create_task(
            LockSession.open(parse_store(url), "z", lease_s=LEASE_S, events=Peer("z").events(), reader=read_traits)
        )
        pid = await waiting_session(other)
        os.kill(pid, signal.SIGSTOP)
        try:
            opening.cancel()
            async with waiting("the end of the opening and of its thread"):
                await asyncio.wait((opening,))
                await loop.shutdown_default_executor()
        finally:
            os.kill(pid, signal.SIGCONT)
    assert opening.cancelled()


async def waiting_session(connection: psycopg.Connection[Any]) -> int:
    """The process of the server that waits for a lock, when there is one."""
    pids: list[int] = []

    def look() -> list[int]:
        pids.extend(pid for (pid,) in connection.execute("SELECT pid FROM pg_locks WHERE NOT granted"))
        return pids

    await until(look, "a session that waits for a lock")
    return pids[0]


async def test_letter_that_cannot_be_read_is_logged(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[TOP-030] No caller waits for it, so nothing else would report the failure. The session goes on."""
    async with joined(url, "a") as first, joined(url, "b") as second:

        def fail(*_: object, **__: object) -> None:
            raise ValueError("a fault")

        monkeypatch.setattr(second.session._table, "read", fail)
        with capture_logs() as logs:
            await first.session.send_letter("b", b"<iq/>")
            await until(lambda: logs, "the log line")
        assert [(log["event"], log["reason"]) for log in logs] == [("letter_failed", "ValueError('a fault')")]
        await second.session.beat()


async def test_session_that_is_given_up_while_it_opens_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[TOP-041] A process that stops, or a database that answers too late. It would count as another process."""
    prepared, may_go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    prepare = lock_session._LockedSession.prepare

    def prepare_slowly(session: lock_session._LockedSession, instance: str) -> None:
        prepare(session, instance)
        loop.call_soon_threadsafe(prepared.set)
        assert may_go.wait(HANG_S), in_vain("the cancellation")

    async with joined(url, "b") as second:
        monkeypatch.setattr(lock_session._LockedSession, "prepare", prepare_slowly)
        events = Peer("a").events()
        opening = asyncio.create_task(
            LockSession.open(parse_store(url), "a", lease_s=LEASE_S, events=events, reader=read_traits)
        )
        await prepared.wait()
        opening.cancel()
        await asyncio.sleep(0)
        may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        # The server ends the session some time after the connection was closed.
        async with waiting("the server to end the session"):
            while (await second.session.beat()).members != Members(0, 1):
                pass


async def test_work_that_fails_leaves_the_session_usable(url: str) -> None:
    async with joined(url, "a") as first:

        def fail(_tx: object) -> None:
            raise StoreError("no")

        with pytest.raises(StoreError, match="no"):
            await first.session.write_marks([fail])
        assert await first.session.write_marks([lambda _tx: 5, lambda _tx: 6]) == [5, 6]


async def test_letters_that_were_sent_without_a_session_are_read_by_the_next_one(url: str) -> None:
    """[TOP-041] [TOP-013] Presence that another process has received meanwhile, for example. None is read twice."""
    async with joined(url, "a") as first:
        heard = HeardLetters()
        async with joined(url, "b", heard=heard) as former:
            await former.session.beat()
            await first.session.send_letter("b", b"0")
            await former.until(lambda: former.letters)
        for recipient, body in (("b", b"1"), ("*", b"2"), ("c", b"3"), ("?", b"4")):
            await first.session.send_letter(recipient, body)
        async with joined(url, "b", heard=heard) as second:
            await first.session.send_letter("b", b"5")
            await second.until(lambda: second.letters[-1:] == [b"5"])
            assert (second.letters, second.missed) == ([b"1", b"2", b"5"], [])


async def test_session_that_comes_back_late_reports_that_letters_are_lost(url: str) -> None:
    """[TOP-041] The database has letters for a minute."""
    heard = HeardLetters()
    heard.note_time(datetime.now(tz=UTC) - timedelta(seconds=LETTER_S + 60))
    async with joined(url, "d", heard=heard) as peer:
        await peer.until(lambda: peer.missed)


async def test_only_marks_are_not_synced(empty_database: EmptyDatabase) -> None:
    """[PG-048] What is lost with a crash of the database is sent once more."""

    def synced(tx: WriteTx) -> tuple[object, ...]:
        row = tx.db.row("SELECT setting, source = 'session' FROM pg_settings WHERE name = 'synchronous_commit'")
        assert row is not None
        return row

    with empty_database.emptied() as url:
        events = SessionEvents(lambda _: None, lambda _: None, lambda _: None)
        session = await LockSession.open(parse_store(url), "a", lease_s=30.0, events=events, reader=read_traits)
        try:
            assert await session.write_marks([synced]) == [("off", True)]
        finally:
            await session.close()
        store = PostgresStore(parse_store(url), read_traits)
        await store.open()
        try:
            assert (await store.write(synced))[1] is False  # the setting of the server, which doctor checks
        finally:
            await store.close()

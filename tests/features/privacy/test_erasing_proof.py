"""The proof of an erasure: a JID in every column that may hold one, in all spellings, and afterwards nowhere [CAM-035].

The proof reads all rows of all tables, the files of SQLite with their log, and the data files of PostgreSQL.
"""

import asyncio
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from smartfeeds.app.opening import all_use_cases
from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.model import Slice
from smartfeeds.core.person import Person
from smartfeeds.core.stores import parse_store
from smartfeeds.core.view import SHARED
from smartfeeds.errors import StoreError
from smartfeeds.features.cluster.lock_session import LockSession
from smartfeeds.features.cluster.notices import SessionEvents
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, ItemRefusal, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.features.privacy import postgres_scrub
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing import begin_erasure, continue_erasure
from smartfeeds.features.privacy.erasures import Erasure, ErasurePhase, ErasureSettings
from smartfeeds.features.privacy.postgres_scrub import scrub_postgres
from smartfeeds.features.privacy.scrub import ScrubResult, scrub
from smartfeeds.formats.atom import read_traits
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context, check_admitted
from smartfeeds.service.personal import JidUse
from smartfeeds.service.publishing import publish
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from support.postgres import PostgresServer, postgres_program
from support.postgres_store import EmptyDatabase
from support.waiting import HANG_S, in_vain, until
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, draft, entry, jid, sqlite_store

# All features with tables of their own: the rows of each name the person.
pytestmark = pytest.mark.needs("accounts", "attachments", "authoring", "bot", "prefetch")

JID = "zoe.distinctive@people.example.net"
PERSON = Person(JID)
ONCE = quote(JID, safe="")
TWICE = quote(ONCE, safe="")
SPELLINGS = (JID, ONCE, TWICE, JID.replace("@", "\\40"), JID.split("@")[0])
ENGINES = ("sqlite", "postgres")
LIKED = "urn:xmpp:microblog:0"
# The columns that hold digests, tokens or numbers in place of a JID, and names of nodes, which cannot change.
COLUMNS = {table.name: table.columns for table in all_use_cases().hooks.personal_data.tables.values()}
NOT_FILLED = {("facet", "facet"), ("word", "tokens"), ("erasure", "digest"), ("erasure", "report")}

# Rows of tables that the requests of this test do not fill. BOB's rows name the person, too.
_NODE, _DIGEST = 1, bytes(32)
ROWS: dict[str, list[dict[str, object]]] = {
    "event": [
        {"node_no": _NODE, "at_us": 1, "kind": "subscription", "data": f'{{"jid": "{JID}"}}', "recipient": BOB},
        {"node_no": _NODE, "at_us": 2, "kind": "subscription", "data": "{}", "recipient": JID},
    ],
    "purge": [{"node_no": _NODE, "up_to_us": 0, "actor": JID}],
    "mark": [
        {"node_no": _NODE, "ord": "created", "consumer": f"chat:{JID}", "key_us": 1, "cursor": "1_0_0"},
    ],
    "failure": [
        {"node_no": _NODE, "consumer": f"chat:{JID}", "failures": 1, "since_us": 1, "error": "x"},
        {"node_no": _NODE, "consumer": "hub:1", "failures": 1, "since_us": 1, "error": f"{JID} is offline"},
    ],
    "batch": [{"node_no": _NODE, "consumer": f"chat:{JID}", "end_us": 1, "joined": 0}],
    "token": [
        {"token_id": "1" * 12, "digest": _DIGEST, "jid": JID, "scope": "read", "feed": "*", "label": "",
         "created_us": 1},
        {"token_id": "2" * 12, "digest": _DIGEST, "jid": BOB, "scope": "read", "feed": f"blog {JID}", "label": "",
         "created_us": 1},
        {"token_id": "3" * 12, "digest": _DIGEST, "jid": BOB, "scope": "read", "feed": "*", "label": f"for {JID}",
         "created_us": 1},
    ],
    "session": [
        {"session_id": str(number) * 12, "digest": _DIGEST, "jid": jid, "scope": "read", "feed": feed, "token_id": "",
         "label": label, "created_us": 1, "seen_us": 1, "expires_us": 1, "limit_us": 1}
        for number, jid, feed, label in ((1, JID, "*", ""), (2, BOB, JID, ""), (3, BOB, "*", f"phone of {JID}"))
    ],
    "request_form": [{"node_no": _NODE, "whom": f"form {JID}", "since_us": 1, "forms": 1}],
    "redirect": [
        {"name": f"blog {JID}", "uri": "xmpp:b.example", "creator": OWNER},
        {"name": "old", "uri": f"xmpp:{JID}?;node=b", "creator": OWNER},
        {"name": "older", "uri": "xmpp:c.example", "creator": JID},
    ],
    "document": [
        {"reader": reader, "url": url, "source_url": source, "etag": "", "last_modified": "", "content": content}
        for reader, url, source, content in (
            (f"mirror {JID}", "http://a.example/1", "", b""),
            ("planet", f"http://a.example/{ONCE}", "", b""),
            ("planet", "http://a.example/3", f"http://a.example/{JID}", b""),
            ("planet", "http://a.example/4", "", f"<opml>{JID}</opml>".encode()),
        )
    ],
    "chat": [{"jid": JID, "room": 0, "settings": "{}"}, {"jid": BOB, "room": 0, "settings": f'{{"x": "{JID}"}}'}],
    "callback": [
        {"kind": "hub", "active": 1, "url": f"http://c.example/{number}", "topic": "t", "node_no": _NODE,
         "host": "c.example", "reader": "", "token_id": "", "created_us": 1, "expires_us": 1, "settings": "{}",
         "question": "", "result": "", **changes}
        for number, changes in enumerate((
            {"url": f"http://c.example/{JID}"}, {"topic": f"http://h.example/feeds/{ONCE}"}, {"reader": JID},
            {"settings": f'{{"x": "{JID}"}}'}, {"question": f'{{"x": "{JID}"}}'}, {"result": f"{JID} gone"},
        ))
    ],
    "source": [
        {"node": f"n{number}", "first_url": "http://s.example/a", "url": "http://s.example/a", "host": "s.example",
         "configured": 0, "owner": "", "created_us": 1, "state": "paused", "reason": "", "since_us": 1,
         "settings": "{}", "progress": "{}", **changes}
        for number, changes in enumerate((
            {"first_url": f"http://s.example/{JID}"}, {"url": f"http://s.example/{TWICE}"}, {"owner": JID},
            {"reason": f"404 {JID}"}, {"settings": f'{{"x": "{JID}"}}'}, {"progress": f'{{"x": "{JID}"}}'},
        ))
    ],
    "source_entry": [
        {"source_no": 3, "identity": str(number), "link": "", "item_id": "i", "digest": "", "presence": 0, **changes}
        for number, changes in enumerate(({"link": f"http://s.example/{JID}"}, {"item_id": f"{JID}-1"}))
    ],
    "source_push": [
        {"source_no": 3, "token": str(number), "state": "ended", "created_us": 1, "since_us": 1, "reason": "",
         "host": "s.example", "url": "http://h.example", "details": "{}", **changes}
        for number, changes in enumerate((
            {"reason": JID}, {"url": f"http://h.example/{JID}"}, {"details": f'{{"x": "{JID}"}}'},
        ))
    ],
    "enclosure": [
        {"url": f"http://e.example/{number}", "host": "e.example", "digest": str(number), "media_type": "",
         "state": "waiting", "reason": "", "dated_us": 1, "since_us": 1, "failures": 0, "tried_us": 0, "etag": "",
         "modified": "", "condition": "", "partial_bytes": 0, "night_us": 0, "night_bytes": 0, **changes}
        for number, changes in enumerate(({"url": f"http://e.example/{JID}"}, {"reason": f"403 {JID}"}))
    ],
    "enclosure_use": [
        {"enclosure_no": 2, "source_no": 3, "item_id": "i", "node": "n", "dated_us": 1, **changes}
        for changes in ({"item_id": f"{JID}-1"}, {"node": f"blog {JID}"})
    ],
    "arrival": [
        {"at_us": number, "node": "n", "item_id": "i", "url": "u", "size_bytes": 1, "seconds": 0.5, "reason": "",
         **changes}
        for number, changes in enumerate((
            {"node": f"blog {JID}"}, {"item_id": f"{JID}-1"}, {"url": f"http://e.example/{JID}"}, {"reason": JID},
        ))
    ],
    "file": [
        {"node_no": _NODE, "file_id": str(number), "digest": "d", "name": name, "media_type": "image/png",
         "size_bytes": 9, "owner": owner, "created_us": 1, "unused_us": 1}
        for number, name, owner in ((1, "a.png", JID), (2, f"{JID}.png", BOB), (3, "used.png", JID))
    ],
    "file_use": [{"node_no": _NODE, "item_no": 1, "file_id": "3"}],
    "guest_reply": [
        {"reply_id": str(number), "node_no": _NODE, "state": "waiting", "name": "", "text": "", "target": "",
         "created_us": 1, "expires_us": 1, **changes}
        for number, changes in enumerate((
            {"name": JID}, {"text": f"Ask {JID}!"}, {"target": f"xmpp:{SERVICE}?;node=blog;item={JID}"},
        ))
    ],
    "block": [{"kind": "allow", "name": JID}, {"kind": "allow", "name": "people.example.net"}],
}  # fmt: skip


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[World]:
    """A world without deliveries, so that no row goes for another reason than the erasure."""
    await store.open()
    try:
        yield World(store)
    finally:
        await store.close()


@contextmanager
def stored(engine: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    """An empty store on an engine."""
    if engine == "sqlite":
        yield sqlite_store(request.getfixturevalue("blank_database"), folder)
        return
    database: EmptyDatabase = request.getfixturevalue("empty_database")
    with database.emptied() as url:
        yield PostgresStore(parse_store(url), read_traits)


def add_rows(tx: WriteTx) -> None:
    """Stores ROWS."""
    for table, rows in ROWS.items():
        for row in rows:
            marks = ", ".join("?" * len(row))
            tx.db.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def replace(tx: WriteTx, table: str, column: str, value: str | bytes, where: str) -> None:
    """Replaces a value that no request writes."""
    tx.db.run(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))


async def fill(world: World) -> None:
    """Names the person in every column that may hold a JID."""
    await world.create()
    for who in (JID, BOB):
        await world.affiliate(who, "publisher")
    await world.publish("mine", actor=JID, title=f"I am {JID}")
    await world.publish(f"{JID}-1", actor=JID)
    await world.publish("gone", actor=JID)
    await world.retract("gone", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.publish("bobs", actor=JID)
    await world.publish("bobs", actor=BOB)
    await world.create("plain", kind="generic")
    await world.affiliate(JID, "publisher", node="plain")
    await world.publish("generic", node="plain", actor=JID, payload=f"<x xmlns='urn:x'>{JID}</x>")
    await world.create("blog", actor=JID)
    await world.publish("post", node="blog", actor=JID)
    await world.create(LIKED)
    await world.publish("post", node=LIKED)
    attachments = f"urn:xmpp:pubsub-attachments:1/xmpp:{SERVICE}?;node={quote(LIKED, safe='')};item=post"
    heart = "<reactions><reaction>\u2764</reaction></reactions>"
    reaction = f"<attachments xmlns='urn:xmpp:pubsub-attachments:1'>{heart}</attachments>"
    await world.publish(JID, node=attachments, actor=JID, payload=reaction)
    await world.subscribe(JID)
    await world.subscribe(BOB, f"{FEED}?author={ONCE}")
    await world.subscribe(ALICE)
    await world.subscribe("carol@example.org")
    await world.service.store.index_some(100)
    node_no = (await world.node()).node_no
    assert node_no == _NODE

    def write(tx: WriteTx) -> None:
        add_rows(tx)
        for contact in (Contact(SERVICE, JID, ContactState.GRANTED), Contact(JID, BOB, ContactState.ASKED)):
            contact_rows.put(tx, contact)
        replace(tx, "item", "sync_id", f"urn:{JID}", "id = 'mine'")
        replace(tx, "subscription", "options", json.dumps({"pubsub#x": [JID]}), f"jid = '{ALICE}'")
        replace(tx, "subscription", "service", JID, "jid = 'carol@example.org'")
        replace(tx, "node", "options", json.dumps({"pubsub#title": [f"About {JID}"]}), f"node_no = {node_no}")
        state = MirrorState(reasons=(ItemRefusal(f"{JID}-1", "too large", 1),))
        mirror = make_mirror(node=FEED, address="xmpp:other.example?;node=x", owner=JID)
        stored_mirrors.put(tx, MirrorRow(mirror, states={Direction.IN: state}))
        stored_mirrors.put(
            tx, MirrorRow(make_mirror(node="copy", address=f"xmpp:{JID}?;node=urn%3Axmpp%3Amicroblog%3A0"))
        )

    await world.store.write(write)


def columns_with(tx: ReadTx) -> set[tuple[str, str]]:
    """The tables and columns that name the person in plain text."""
    found = set()
    for table, columns in COLUMNS.items():
        for column in columns:
            rows = tx.db.rows(f"SELECT {column} FROM {table}")
            values = [row[0] for row in rows if row[0] is not None]
            if any(names_person(value if isinstance(value, bytes) else str(value).encode()) for value in values):
                found.add((table, column))
    return found


def names_person(data: bytes) -> bool:
    """Whether bytes have the JID in one of its spellings, or its local part."""
    data = data.lower()
    return any(spelling.lower().encode() in data for spelling in SPELLINGS)


async def erase(world: World) -> Erasure:
    """Erases the person to the end."""
    settings = ErasureSettings("delete", now=True, block=True)
    await world.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, settings))
    job = await world.service.write(partial(continue_erasure, jid=JID))
    assert job is not None
    return job


@pytest.mark.parametrize("engine", ENGINES)
async def test_no_column_names_the_person(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """[CAM-035] [OPS-001 to OPS-011] [OPS-028] Subscriptions, affiliations, items, tombstones, tokens,
    sessions, callbacks, sources, documents, attachments, enclosures, files, chat, forms, marks, failures, events,
    mirrors: each column that may hold a JID has it before, and none afterwards."""
    with stored(engine, request, tmp_path) as store:
        async with opened(store) as world:
            await fill(world)
            before = await world.store.read(columns_with)
            personal = {
                (table, column)
                for table, columns in COLUMNS.items()
                for column, use in columns.items()
                if use is not JidUse.NODE
            }
            assert personal - before - NOT_FILLED == {("erasure", "jid")}
            tallies = await world.store.read(lambda tx: tx.db.rows("SELECT name, value FROM tally"))

            job = await erase(world)

            assert job.phase is ErasurePhase.DONE
            assert await world.store.read(columns_with) == set()
            left = await world.store.read(lambda tx: tx.db.rows("SELECT jid, state FROM subscription"))
            assert left == [(ALICE, "subscribed")]
            assert len(await world.store.read(lambda tx: privacy_rows.blocks(tx, ListKind.ALLOW))) == 2
            assert dict(tallies)["nodes@people.example.net"] == 1
            await world.store.write(lambda tx: tx.gather_tallies(100))
            after = dict(await world.store.read(lambda tx: tx.db.rows("SELECT name, value FROM tally")))
            assert not [name for name in after if name.endswith("@people.example.net")]


def naming_files(files: Iterable[Path]) -> list[str]:
    """The names of the files that have a byte of the JID. PostgreSQL may remove a file after it was listed."""
    return [file.name for file in files if names_person(bytes_of(file))]


def bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def database_files(folder: Path) -> list[Path]:
    """The database of SQLite, its log, and the index of the log."""
    return list(folder.glob("feeds.db*"))


async def test_files_of_sqlite_have_no_byte(blank_database: Path, tmp_path: Path) -> None:
    """[CAM-035] [OPS-025] The database, its log, and the index of the log."""
    path = tmp_path / "feeds.db"
    async with opened(sqlite_store(blank_database, tmp_path)) as world:
        await fill(world)
        await erase(world)
        assert naming_files(database_files(tmp_path))

        assert scrub(path, served=True) is ScrubResult.CLEAN

        assert naming_files(database_files(tmp_path)) == []
    assert naming_files(database_files(tmp_path)) == []


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The address of a new database."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


def data_files(server: PostgresServer, url: str) -> list[Path]:
    """The files of the tables and indexes of a database, after everything in memory was written."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return [file for file in (server.data / "base" / str(row[0])).iterdir() if file.is_file()]


def dump(url: str, *options: str) -> bytes:
    """The output of pg_dump, without the keys that it makes for each dump."""
    command = [postgres_program("pg_dump"), *options, url]
    output = subprocess.run(command, capture_output=True, timeout=HANG_S, check=True).stdout
    return b"\n".join(line for line in output.splitlines() if b"restrict " not in line)


async def test_dump_and_files_of_postgres_have_no_byte(postgres: PostgresServer, database: str) -> None:
    """[CAM-035] [OPS-025] pg_dump has nothing after the erasure. The data files have nothing after VACUUM FULL, the
    statistics of the planner included."""
    address = parse_store(database)
    store = PostgresStore(address, read_traits)
    async with opened(store) as world:
        await fill(world)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ANALYZE")
        await erase(world)
        dumped, schema = dump(database), dump(database, "--schema-only")
        assert len(dumped) > 10_000
        assert not names_person(dumped)
        assert naming_files(data_files(postgres, database))

        assert scrub_postgres(address) is ScrubResult.CLEAN

        assert naming_files(data_files(postgres, database)) == []
        assert dump(database, "--schema-only") == schema
        assert await world.store.read(columns_with) == set()


def test_old_snapshots_and_large_databases_are_reported(postgres: PostgresServer, database: str) -> None:
    """[OPS-025] VACUUM cannot remove rows that another transaction may read."""
    address = parse_store(database)
    with closing(psycopg.connect(database)) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class LIMIT 1")
        with psycopg.connect(database, autocommit=True) as writer:
            writer.execute("SELECT pg_current_xact_id()")
        assert scrub_postgres(address, busy_s=0) is ScrubResult.BUSY
    assert scrub_postgres(address, busy_s=60) is ScrubResult.CLEAN
    assert scrub_postgres(address, max_bytes=1) is ScrubResult.TOO_LARGE


async def test_letters_between_processes_are_removed(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-025] A letter quotes a stanza, and stays until a process removes it."""
    address = parse_store(database)
    store = PostgresStore(address, read_traits)
    await store.open()
    await store.close()
    events = SessionEvents(*[lambda *_: None] * 3)
    session = await LockSession.open(address, "a", lease_s=30.0, events=events, reader=read_traits)
    await session.send_letter("gone", f"<message from='{JID}'/>".encode())
    await session.send_letter("new", b"<presence/>")
    await session.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE letter SET sent = sent - interval '1 min' WHERE recipient = 'gone'")
        connection.execute("UPDATE letter SET sent = sent + interval '1 h' WHERE recipient = 'new'")
        with monkeypatch.context() as patch:
            patch.setattr(postgres_scrub, "_LETTER_AGE_S", 3_600)
            assert scrub_postgres(address, busy_s=0) is ScrubResult.BUSY

        assert scrub_postgres(address) is ScrubResult.CLEAN

        assert connection.execute("SELECT recipient FROM letter").fetchall() == [("new",)]


def test_role_that_does_not_own_the_tables_is_told_so(database: str) -> None:
    """[OPS-025] PostgreSQL itself skips these tables with a warning."""
    role = f"clerk_of_{database.rpartition('/')[2]}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE node (name TEXT)")
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            connection.execute(f"GRANT ALL ON node TO {role}".encode())
            with pytest.raises(StoreError, match=f"{role} does not own the table node, .*connect as postgres, or make"):
                scrub_postgres(parse_store(database.replace("postgres@", f"{role}@")))
        finally:
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())


async def test_erasure_waits_for_writes_that_were_admitted(postgres: PostgresServer, database: str) -> None:
    """[OPS-025] Another process has admitted a publish of the person and commits it later: it must not come behind the
    erasure."""
    address = parse_store(database)
    admitted, released = threading.Event(), threading.Event()

    def slow_publish(tx: WriteTx, context: Context) -> None:
        request = r.Publish(jid(JID), SERVICE, FEED, "late", draft(entry("late")))
        check_admitted(tx, context.policy, request.actor)
        tx.settle()
        admitted.set()
        assert released.wait(HANG_S), in_vain("the release")
        publish(tx, context, request)

    stores = PostgresStore(address, read_traits), PostgresStore(address, read_traits)
    async with opened(stores[0]) as first, opened(stores[1]) as second:
        await first.create()
        await first.affiliate(JID, "publisher")
        publishing = asyncio.create_task(first.service.write(slow_publish))
        assert await asyncio.to_thread(admitted.wait, 60)
        erasing = asyncio.create_task(erase(second))
        await waiting_locks(database)
        released.set()
        await publishing
        job = await erasing

        assert job.counts["items-erased"] == 1
        assert await second.store.read(columns_with) == set()


async def waiting_locks(url: str, locktype: str = "advisory") -> None:
    """Returns when a session waits for a lock of this type."""
    statement = f"SELECT count(*) FROM pg_locks WHERE locktype = '{locktype}' AND NOT granted"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def is_waiting() -> bool:
            return await (await connection.execute(statement)).fetchone() != (0,)

        await until(is_waiting, f"a session that waits for a lock of type {locktype}")


async def test_erasure_keeps_a_version_that_is_committed_meanwhile(postgres: PostgresServer, database: str) -> None:
    """[OPS-023] Another process commits a version of Bob's while the erasure waits for the node. The erasure must not
    store the version before it again."""
    address = parse_store(database)
    written, released = threading.Event(), threading.Event()

    def slow_publish(tx: WriteTx, context: Context) -> None:
        publish(tx, context, r.Publish(jid(BOB), SERVICE, FEED, "bobs", draft(entry("the newest title"))))
        tx.settle()
        written.set()
        assert released.wait(HANG_S), in_vain("the release")

    stores = PostgresStore(address, read_traits), PostgresStore(address, read_traits)
    async with opened(stores[0]) as first, opened(stores[1]) as second:
        await first.create()
        for who in (JID, BOB):
            await first.affiliate(who, "publisher")
            await first.publish("bobs", actor=who)
        await second.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=True)))
        while (await second.store.read(lambda tx: privacy_rows.open_erasures(tx)))[0].phase is not ErasurePhase.ITEMS:
            await second.step(partial(continue_erasure, jid=JID))
        publishing = asyncio.create_task(first.service.write(slow_publish))
        assert await asyncio.to_thread(written.wait, 60)
        erasing = asyncio.create_task(second.service.write(partial(continue_erasure, jid=JID)))
        await waiting_locks(database, "transactionid")
        released.set()
        await publishing
        await erasing

        (item,) = await second.store.read(lambda tx: tx.slice(1, Slice(SHARED, 10)))
        assert b"the newest title" in item.payload
        assert not PERSON.is_in(item.sync or b"")


async def test_deletion_of_a_node_comes_behind_what_is_published_meanwhile(
    postgres: PostgresServer, database: str
) -> None:
    """[OPS-024] Another process commits an item while the erasure waits for the node. A subscriber receives in the
    order of the keys, and would miss a deletion in front of the item."""
    address = parse_store(database)
    written, released = threading.Event(), threading.Event()

    def slow_publish(tx: WriteTx, context: Context) -> None:
        publish(tx, context, r.Publish(jid(BOB), SERVICE, "blog", "last", draft(entry("last"))))
        tx.settle()
        written.set()
        assert released.wait(HANG_S), in_vain("the release")

    stores = PostgresStore(address, read_traits), PostgresStore(address, read_traits)
    async with opened(stores[0]) as first, opened(stores[1]) as second:
        await first.create("blog", actor=JID)
        await first.affiliate(BOB, "publisher", node="blog", actor=JID)
        settings = ErasureSettings("delete", now=True)
        await second.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, settings))
        first.clock.move(60.0)
        publishing = asyncio.create_task(first.service.write(slow_publish))
        assert await asyncio.to_thread(written.wait, 60)
        erasing = asyncio.create_task(second.step(partial(continue_erasure, jid=JID)))
        await waiting_locks(database, "transactionid")
        released.set()
        await publishing
        await erasing

        ((at_us,),) = await second.store.read(lambda tx: tx.db.rows("SELECT at_us FROM event WHERE kind = 'delete'"))
        ((item_us,),) = await second.store.read(lambda tx: tx.db.rows("SELECT modified_us FROM item WHERE id = 'last'"))
        assert at_us >= item_us

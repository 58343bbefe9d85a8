"""The schema: created, upgraded, compared with what is declared, and refused if it is newer or was never released."""

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.core.view import SMART
from smartfeeds.errors import StoreError
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode, ReadTx
from smartfeeds.store.rows import digest
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, item, read_payload, view
from support.first_release import FIRST_RELEASE, create_first_schema
from support.next_version import NEXT, SCRIPT, use_next_version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def schema(connection: sqlite3.Connection) -> set[str]:
    """Every statement of a database's schema, with its space made even."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", row[0].strip())) for row in rows}


def columns(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Every column, as SQLite itself sees it."""
    return connection.execute(
        "SELECT t.name, t.type, t.wr, t.strict, c.* FROM pragma_table_list t, pragma_table_info(t.name) c"
        " WHERE t.name NOT LIKE 'sqlite_%' ORDER BY 1, c.cid"
    ).fetchall()


def test_upgraded_schema_equals_the_declared_one(path: Path, raw: sqlite3.Connection, tmp_path: Path) -> None:
    create_first_schema(raw)
    migrate.prepare(raw, path)
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as fresh:
        migrate.prepare(fresh, path)
        assert schema(raw) == schema(fresh)
        assert columns(raw) == columns(fresh)
        for table in ("alembic_version", "compatibility", "tally"):
            rows = f"SELECT * FROM {table}"
            assert raw.execute(rows).fetchall() == fresh.execute(rows).fetchall() != []


def test_each_release_has_a_script_for_each_database() -> None:
    """[PG-010] The first release had SQLite only."""
    scripts = {Path(str(script)).name for script in migrate.UPGRADES.iterdir()}

    expected = {f"{target}_{engine}.sql" for target in migrate.REVISIONS[1:] for engine in ("sqlite", "postgres")}
    assert scripts == expected - {"0037_postgres.sql"}


# What users and clients have stored. Other columns of these tables are derived, or belong to the form of the store.
KEPT = {
    "node": "node_no, name, kind, state, creator, created_us, options, total, live, last_modified_us, last_created_us",
    "item": "item_no, node_no, id, created_us, modified_us, change, revision, total, live, publisher, payload",
    "affiliation": "node_no, jid, affiliation",
    "subscription": "sub_no, node_no, jid, bare, view, node_text, service, state, since_us, created_us, options",
    "event": "event_no, node_no, at_us, kind, data, recipient",
    "mark": "node_no, ord, key_us, cursor",
}


def kept(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The stored values of a database of any version."""
    return {
        table: sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall())
        for table, columns in KEPT.items()
    }


def test_upgrade_is_logged_once_and_a_creation_is_not(path: Path, raw: sqlite3.Connection, tmp_path: Path) -> None:
    create_first_schema(raw)
    with capture_logs() as logs:
        migrate.prepare(raw, path)
        migrate.prepare(raw, path)
        with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as fresh:
            migrate.prepare(fresh, path)

    event = {"event": "schema_upgraded", "log_level": "info", "database": str(path)}
    assert logs == [event | {"before": "0001", "after": migrate.HEAD}]


def test_upgrade_keeps_what_version_0_1_0_has_stored(path: Path, raw: sqlite3.Connection) -> None:
    """[OPS-091] In a database that this version has written."""
    shutil.copyfile(FIRST_RELEASE, path)
    expected = kept(raw)
    assert {table: len(rows) for table, rows in expected.items()} == {
        "node": 7, "item": 20, "affiliation": 10, "subscription": 8, "event": 0, "mark": 5,
    }  # fmt: skip

    migrate.prepare(raw, path)

    assert migrate.version(raw) == migrate.HEAD
    assert kept(raw) == expected
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


_OLD_NODE = (
    "INSERT INTO node VALUES (?, ?, 'feed', ?, 'o@x', 1, ?, 2, 2, 2, 2, 0, 0, 2, 9, 0)"  # as of 0001, its index current
)
_OLD_ITEM = "INSERT INTO item VALUES (?, ?, ?, ?, ?, 0, 1, 0, 1, 1, 'p@x', x'')"


async def test_data_of_the_first_version_are_all_there_and_listed_as_they_should(
    path: Path, raw: sqlite3.Connection
) -> None:
    """Hidden nodes are hidden after the upgrade too, and publishers that are not shown cannot be found any more."""
    create_first_schema(raw)
    closed, silent = '{"access_model":["whitelist"]}', '{"itemreply":["none"],"title":["T"]}'
    nodes = [("open", "live", "{}"), ("closed", "live", closed), ("silent", "live", silent), ("gone", "deleted", "{}")]
    for number, (name, state, options) in enumerate(nodes, 1):
        raw.execute(_OLD_NODE, (number, name, state, options))
        for place in (1, 2):
            item_no = number * 2 + place
            raw.execute(_OLD_ITEM, (item_no, number, f"i{place}", place, place))
            raw.execute("INSERT INTO facet VALUES (?, ?, ?, ?, ?)", (number, digest("a:p@x"), place, item_no, place))
        raw.execute("INSERT INTO affiliation VALUES (?, 'o@x', 'owner'), (?, 'b@x', 'outcast')", (number, number))
    for jid in ("a@x", "a@x/1", "b@y"):
        values = (1, jid, jid.partition("/")[0], "", "open", "f", "subscribed", 0, 0, 0, "{}")
        raw.execute(f"INSERT INTO subscription VALUES (NULL{', ?' * len(values)})", values)
    raw.execute("UPDATE tally SET value = 3")
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        for jid, expected in (("a@x", "open silent"), ("o@x", "closed open silent"), ("b@x", "")):
            found = await store.read(lambda tx, jid=jid: tx.listed_nodes(jid, "", 9))  # type: ignore[misc]
            assert " ".join(one.name for one in found) == expected
            assert await store.read(lambda tx, jid=jid: tx.listed_count(jid)) == len(found)  # type: ignore[misc]
        author = view("author=p%40x")
        for number, count in ((1, 2), (2, 2), (3, 0)):
            await store.write(lambda tx, number=number: tx.index_node(number))  # type: ignore[misc]
            assert await store.read(lambda tx, number=number: tx.count(number, author)) == count  # type: ignore[misc]
            assert await store.read(lambda tx, number=number: tx.count(number, SMART)) == 2  # type: ignore[misc]
        assert await store.read(lambda tx: tx.created_in("x")) == 3
        for jid, count in (("a@x", 2), ("a@y", 1)):
            use = await store.read(lambda tx, jid=jid: tx.subscriber_use(1, jid, now_us=None))  # type: ignore[misc]
            assert use.of_domain == count
        counts = await store.read(lambda tx: (tx.created_by("o@x"), *map(tx.subscribed_by, ("a@x", "b@y", "x"))))
        assert counts == (3, 2, 1, 0)
        await store.write(lambda tx: tx.retire_node(2))
        assert await store.read(lambda tx: (tx.node_count(), tx.listed_count("o@x"), tx.created_in("x"))) == (2, 2, 2)
    finally:
        await store.close()
    assert migrate.version(raw) == migrate.HEAD


async def test_upgrade_sets_the_flag_of_the_marks_that_are_behind(path: Path, raw: sqlite3.Connection) -> None:
    create_first_schema(raw)
    for number, marks in enumerate(((("modified", 8), ("created", 3)), (("modified", 9), ("created", 2)), (), ()), 1):
        raw.execute(_OLD_NODE, (number, f"f{number}", "live", "{}"))
        raw.execute(_OLD_ITEM, (number, number, "a", 3, 9))
        raw.executemany("INSERT INTO mark VALUES (?, ?, ?, 'c')", [(number, *mark) for mark in marks])
    raw.executemany("INSERT INTO mark VALUES (3, ?, ?, 'c')", [("modified", 9), ("created", 3)])
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        assert await store.read(lambda tx: tx.behind()) == [Consumer(1, PUSH), Consumer(2, PUSH)]
    finally:
        await store.close()
    assert raw.execute("SELECT node_no, ord, key_us, cursor FROM mark WHERE behind = 1 ORDER BY 1").fetchall() == [
        (1, "modified", 8, "c"),
        (2, "created", 2, "c"),
    ]


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from smartfeeds.store import migrate

statements = migrate.statements
def half(text):
    yield from statements(text)[:40]
    os.kill(os.getpid(), signal.SIGKILL)
migrate.statements = half
migrate.prepare(sqlite3.connect(sys.argv[1], isolation_level=None), Path(sys.argv[1]))
"""


@pytest.mark.parametrize("prepare", [create_first_schema, lambda _: None], ids=["upgrade", "creation"])
async def test_change_killed_half_way_has_not_happened(
    path: Path, raw: sqlite3.Connection, root: Path, prepare: Callable[[sqlite3.Connection], None]
) -> None:
    raw.execute("PRAGMA journal_mode = WAL")
    prepare(raw)
    before = schema(raw)
    assert _run(KILLED, path, root) == -signal.SIGKILL
    assert schema(raw) == before
    store = SqliteStore(path, read_payload)
    await store.open()
    await store.write(add_feed(item("a", 1)))
    await store.close()
    assert migrate.version(raw) == migrate.HEAD


def _run(script: str, path: Path, root: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": str(root / "component")}
    return subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False).returncode


async def test_failed_upgrade_is_undone_and_reported(path: Path, raw: sqlite3.Connection) -> None:
    create_first_schema(raw)
    raw.execute("CREATE TABLE arrival (x)")  # of the last table of the script
    before = schema(raw)
    with pytest.raises(StoreError, match=r"s\.db: its upgrade from 0001 to \d+ failed and was undone: .*arrival"):
        migrate.prepare(raw, path)
    assert schema(raw) == before
    assert migrate.version(raw) == "0001"


@pytest.mark.parametrize("revision", ["0002", "0020", "0036"])
@pytest.mark.parametrize("mode", OpenMode)
async def test_schema_that_was_never_released_is_refused_untouched(
    path: Path, raw: sqlite3.Connection, revision: str, mode: OpenMode
) -> None:
    """[OPS-091]"""
    migrate.prepare(raw, path)
    raw.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    raw.execute("UPDATE compatibility SET oldest = ?", (revision,))
    with pytest.raises(StoreError, match=rf"its schema {revision} was never released, .* smartfeeds export"):
        await SqliteStore(path, read_payload, mode=mode).open()
    assert migrate.version(raw) == revision


@pytest.mark.parametrize("statement", ["DROP TABLE compatibility", "UPDATE compatibility SET oldest = '9998'"])
async def test_open_newer_schema_is_refused_untouched(path: Path, raw: sqlite3.Connection, statement: str) -> None:
    """[OPS-091]"""
    migrate.prepare(raw, path)
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.execute(statement)
    before = schema(raw)
    store = SqliteStore(path, read_payload)
    with pytest.raises(StoreError, match=r"9999 is newer .* install a newer smartfeeds"):
        await store.open()
    assert schema(raw) == before


@pytest.mark.parametrize("mode", OpenMode)
async def test_newer_schema_that_supports_this_program_is_used_as_it_is(
    path: Path, raw: sqlite3.Connection, mode: OpenMode
) -> None:
    """[OPS-091] As during a rolling upgrade: a process of a newer version has upgraded the database."""
    migrate.prepare(raw, path)
    raw.execute("ALTER TABLE node ADD COLUMN colour TEXT NOT NULL DEFAULT ''")
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.execute("UPDATE compatibility SET oldest = ?", (migrate.HEAD,))
    before = schema(raw)
    store = SqliteStore(path, read_payload, mode=mode)
    await store.open()
    if mode is not OpenMode.READ:
        made = await store.write(add_feed(item("a", 1)))
        assert await store.read(lambda tx: tx.item(made.node_no, "a")) is not None
    await store.close()
    assert schema(raw) == before
    assert migrate.version(raw) == "9999"


async def test_upgrade_stores_which_programs_may_still_use_the_database(
    path: Path, raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-091]"""
    monkeypatch.setattr(migrate, "COMPATIBLE", {migrate.HEAD: "0001"})
    create_first_schema(raw)
    assert migrate.oldest_program(raw) is None
    store = SqliteStore(path, read_payload)
    await store.open()
    await store.close()
    assert (migrate.version(raw), migrate.oldest_program(raw)) == (migrate.HEAD, "0001")


def test_compatible_schemas_are_known_and_older() -> None:
    """[OPS-091]"""
    order = migrate.REVISIONS.index
    assert all(order(oldest) < order(revision) for revision, oldest in migrate.COMPATIBLE.items())
    assert migrate.oldest_of(migrate.HEAD) in migrate.REVISIONS


@pytest.mark.parametrize("statement", ["CREATE TABLE song (x)", "CREATE TABLE alembic_version (version_num)"])
async def test_open_data_of_another_program_is_refused(path: Path, raw: sqlite3.Connection, statement: str) -> None:
    raw.execute(statement)
    with pytest.raises(StoreError, match="belongs to another program"):
        await SqliteStore(path, read_payload).open()
    assert len(schema(raw)) == 1


@pytest.mark.parametrize("prepare", [create_first_schema, lambda _: None], ids=["upgrade", "creation"])
async def test_several_processes_may_start_at_once(
    path: Path, raw: sqlite3.Connection, prepare: Callable[[sqlite3.Connection], None]
) -> None:
    """[OPS-091]"""
    raw.execute("PRAGMA journal_mode = WAL")
    prepare(raw)
    stores = [SqliteStore(path, read_payload) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.write(add_feed(name=str(number))) for number, store in enumerate(stores)))
    for store in stores:
        assert await store.read(lambda tx: tx.node_count()) == 4
    for store in stores:
        await store.close()


@pytest.mark.parametrize("is_first", [True, False], ids=["first release", "this version"])
def test_next_version_upgrades_every_release(
    path: Path, raw: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    """[OPS-091] With a file and a revision that a contributor adds."""
    if is_first:
        create_first_schema(raw)
    else:
        migrate.prepare(raw, path)
    use_next_version(monkeypatch, tmp_path / "scripts")

    migrate.prepare(raw, path)

    assert (migrate.version(raw), migrate.oldest_program(raw)) == (NEXT, NEXT)
    assert raw.execute("SELECT colour FROM node").fetchall() == []


def test_failure_of_the_next_version_undoes_the_versions_before_it(
    path: Path, raw: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-091]"""
    create_first_schema(raw)
    before = schema(raw)
    use_next_version(monkeypatch, tmp_path / "scripts", SCRIPT * 2)

    with pytest.raises(StoreError, match="its upgrade from 0001 to 9000 failed and was undone: duplicate column"):
        migrate.prepare(raw, path)
    assert (schema(raw), migrate.version(raw)) == (before, "0001")


async def test_upgrade_takes_attachment_nodes_out_of_lists(path: Path, raw: sqlite3.Connection) -> None:
    """Events of removed items go too: nothing can send them any more."""
    create_first_schema(raw)
    for number, name in enumerate(("blog", "urn:xmpp:pubsub-attachments:summary:1/blog"), 1):
        raw.execute(_OLD_NODE, (number, name, "live", "{}"))
        raw.execute("INSERT INTO affiliation (node_no, jid, affiliation) VALUES (?, 'o@x', 'owner')", (number,))
        for kind in ("retract", "purge"):
            raw.execute(
                "INSERT INTO event (node_no, at_us, kind, data, recipient) VALUES (?, 1, ?, '1', '')", (number, kind)
            )
    raw.execute("UPDATE tally SET value = 2")
    store = SqliteStore(path, read_payload)
    await store.open()
    try:

        def names(tx: ReadTx) -> list[tuple[list[str], int]]:
            return [([node.name for node in tx.listed_nodes(jid, "", 9)], tx.listed_count(jid)) for jid in ("", "o@x")]

        both = ["blog", "urn:xmpp:pubsub-attachments:summary:1/blog"]
        assert await store.read(names) == [(["blog"], 1), (both, 2)]
        assert [event.kind for no in (1, 2) for event in await store.read(lambda tx, no=no: tx.events(no, 9))] == [
            "purge",
            "purge",
        ]
        await store.write(lambda tx: tx.retire_node(2))
        assert await store.read(lambda tx: tx.listed_count("")) == 1
    finally:
        await store.close()

"""The schema: made, brought up to date, compared with what is declared, and refused where it is newer."""

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.core.model import IndexState, Slice
from smartfeeds.core.view import SMART
from smartfeeds.errors import StoreError
from smartfeeds.store import migrate, migrations
from smartfeeds.store.base import OpenMode, ReadTx
from smartfeeds.store.rows import STATES, digest
from smartfeeds.store.sql_tables import NODE_ROW
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, item, read_payload, view


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


def test_migrated_schema_equals_the_declared_one(path: Path, raw: sqlite3.Connection, tmp_path: Path) -> None:
    migrations.run(path, "head")
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as fresh:
        migrate.create(fresh)
        assert schema(raw) == schema(fresh)
        assert columns(raw) == columns(fresh)
        for table in ("alembic_version", "compatibility", "tally"):
            rows = f"SELECT * FROM {table}"
            assert raw.execute(rows).fetchall() == fresh.execute(rows).fetchall() != []


def test_known_revisions_are_those_of_the_scripts() -> None:
    found = [script.revision for script in ScriptDirectory.from_config(migrations.configuration()).walk_revisions()]
    assert tuple(reversed(found)) == migrate.REVISIONS


def test_migration_files_are_installed(root: Path) -> None:
    """What the package needs at run time is named in its metadata."""
    data = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert "**/*.sql" in data["tool"]["setuptools"]["package-data"]["smartfeeds"]
    for package in ("smartfeeds.store.migrations", "smartfeeds.store.migrations.versions"):
        assert resources.files(package).joinpath("__init__.py").is_file()


async def test_open_older_schema_is_brought_up_to_date(
    path: Path, raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that came before everything stands for any older one: its tables are made by the migrations."""
    monkeypatch.setattr(migrate, "REVISIONS", ("0000", *migrate.REVISIONS))
    raw.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    raw.execute("INSERT INTO alembic_version VALUES ('0000')")
    monkeypatch.setattr(migrate, "upgrade", _upgrade_from_nothing)
    store = SqliteStore(path, read_payload)
    await store.open()
    made = await store.write(add_feed(item("a", 1)))
    assert await store.read(lambda tx: tx.item(made.node_no, "a")) is not None
    await store.close()
    assert migrate.version(raw) == migrate.HEAD


def _upgrade_from_nothing(path: Path, target: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
    migrations.run(path, target)


FIRST_RELEASE = Path(__file__).parents[1] / "data/version-0.1.0/feeds.db"
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


def test_each_migration_keeps_what_version_0_1_0_has_stored(path: Path, raw: sqlite3.Connection) -> None:
    """[OPS-091] One after the other, on a database that this version has written, up to the newest schema."""
    shutil.copyfile(FIRST_RELEASE, path)
    expected = kept(raw)
    assert {table: len(rows) for table, rows in expected.items()} == {
        "node": 7, "item": 20, "affiliation": 10, "subscription": 8, "event": 0, "mark": 5,
    }  # fmt: skip

    for revision in migrate.REVISIONS:
        migrations.run(path, revision)
        assert migrate.version(raw) == revision
        assert kept(raw) == expected, revision
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
    migrations.run(path, "0001")
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
    migrations.run(path, "0011")
    raw.execute("INSERT INTO node VALUES (1, 'f', 'feed', 'live', 'o@x', 1, '{}', 1, 1, 9, 3, 0, 0, 0, 0, 0, 1)")
    raw.execute("INSERT INTO item VALUES (1, 1, 'a', 3, 9, 1, 2, 1, 1, 1, 'o@x', x'00', '', 0, x'')")
    marks = [("modified", "push", 8), ("modified", "hub:a", 9), ("created", "hub:b", 2), ("created", "hub:c", 3)]
    raw.executemany("INSERT INTO mark VALUES (1, ?, ?, ?, '')", marks)
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        assert await store.read(lambda tx: tx.behind()) == [Consumer(1, "hub:b"), Consumer(1, PUSH)]
    finally:
        await store.close()
    assert raw.execute("SELECT consumer FROM mark WHERE behind = 1 ORDER BY 1").fetchall() == [("hub:b",), ("push",)]


KILLED = """
import os, signal, sys
from pathlib import Path
from alembic import op
from smartfeeds.store import migrations

execute, done = op.execute, 0
def stop_half_way(statement, **options):
    global done
    done += 1
    execute(statement, **options)
    if done == 12:
        os.kill(os.getpid(), signal.SIGKILL)
op.execute = stop_half_way
migrations.run(Path(sys.argv[1]), "head")
"""


async def test_migration_killed_half_way_has_not_happened(path: Path, raw: sqlite3.Connection, root: Path) -> None:
    raw.execute("PRAGMA journal_mode = WAL")
    assert _run(KILLED, path, root) == -signal.SIGKILL
    assert schema(raw) == set()
    migrations.run(path, "head")
    assert migrate.version(raw) == migrate.HEAD
    store = SqliteStore(path, read_payload)
    await store.open()
    await store.write(add_feed(item("a", 1)))
    await store.close()


CREATION_KILLED = """
import os, signal, sqlite3, sys
from smartfeeds.store import migrate

statements = migrate.statements
def half(text):
    yield from statements(text)[:9]
    os.kill(os.getpid(), signal.SIGKILL)
migrate.statements = half
migrate.create(sqlite3.connect(sys.argv[1], isolation_level=None))
"""


async def test_creation_killed_half_way_has_not_happened(path: Path, root: Path) -> None:
    assert _run(CREATION_KILLED, path, root) == -signal.SIGKILL
    store = SqliteStore(path, read_payload)
    await store.open()
    await store.write(add_feed(item("a", 1)))
    await store.close()


def _run(script: str, path: Path, root: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": str(root / "component")}
    return subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False).returncode


async def test_failed_migration_is_undone_and_told(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute("CREATE TABLE item (x)")
    before = schema(raw)
    with pytest.raises(StoreError, match="undone"):
        migrations.run(path, "head")
    assert schema(raw) == before


@pytest.mark.parametrize("statement", ["DROP TABLE compatibility", "UPDATE compatibility SET oldest = '9998'"])
async def test_open_newer_schema_is_refused_untouched(path: Path, raw: sqlite3.Connection, statement: str) -> None:
    """[OPS-091]"""
    migrate.create(raw)
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
    migrate.create(raw)
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
    monkeypatch.setattr(migrate, "COMPATIBLE", {migrate.HEAD: "0032"})
    migrations.run(path, "0032")
    assert migrate.oldest_program(raw) is None
    store = SqliteStore(path, read_payload)
    await store.open()
    await store.close()
    assert (migrate.version(raw), migrate.oldest_program(raw)) == (migrate.HEAD, "0032")


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


CURRENT = """
import asyncio, sys
from pathlib import Path
from smartfeeds.store.sql_tables import ITEM, NODE_ROW
from smartfeeds.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]), None)
    await store.open()
    await store.close()

asyncio.run(main())
sys.exit("alembic" in sys.modules or "sqlalchemy" in sys.modules)
"""


def test_open_does_not_load_the_migration_tools(path: Path, root: Path) -> None:
    """A new database and a current one both start without alembic and SQLAlchemy, for the memory they take."""
    assert _run(CURRENT, path, root) == 0
    assert _run(CURRENT, path, root) == 0


async def test_two_processes_may_create_it_at_once(path: Path) -> None:
    stores = [SqliteStore(path, read_payload) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.write(add_feed(name=str(number))) for number, store in enumerate(stores)))
    for store in stores:
        assert await store.read(lambda tx: tx.node_count()) == 4
    for store in stores:
        await store.close()


async def test_upgrade_indexes_languages_and_keeps_what_the_index_knows_of_past_versions(
    path: Path, raw: sqlite3.Connection
) -> None:
    """[SF-015] [A-20] Items stored before the filter `lang` are found by it; an item that had left a view stays so."""
    migrations.run(path, "0008")
    values = (1, "feed", "feed", "live", "o@x", 1, "{}", 2, 2, 4, 2, 0, 0, 4, 1, 0, 1)
    raw.execute(f"INSERT INTO node VALUES ({', '.join('?' * len(values))})", values)
    for number, (modified_us, revision, payload) in enumerate(
        ((4, 2, b"in=news la=en-GB | a"), (3, 1, b"in=news | b")), 1
    ):
        values = (
            number,
            1,
            f"i{number}",
            number,
            modified_us,
            revision - 1,
            revision,
            0,
            1,
            1,
            "p@x",
            payload,
            "",
            0,
            b"",
        )
        raw.execute(f"INSERT INTO item VALUES ({', '.join('?' * len(values))})", values)
    # The first item was in another category before it was edited.
    versions = [(1, 0, ("c:sport", "k:new", "p:p@x"), "z"), (1, 1, ("c:news", "k:edited", "p:p@x"), "a")]
    versions.append((2, 0, ("c:news", "k:new", "p:p@x"), "b"))
    states: dict[tuple[int, str], int] = {}
    for item_no, number, facets, word in versions:
        tokens = " ".join(["1w" + word, *(f"1f{digest(facet).hex()}" for facet in facets)])
        raw.execute("INSERT INTO word (rowid, tokens) VALUES (?, ?)", (item_no * STATES + number, tokens))
        bit = 2 if (item_no, number) == (1, 0) else 1
        for facet in facets:
            states[item_no, facet] = states.get((item_no, facet), 0) | bit
    for (item_no, facet), bits in states.items():
        modified_us = 4 if item_no == 1 else 3
        row = (1, digest(facet), modified_us, item_no, item_no, bits)
        raw.execute("INSERT INTO facet VALUES (?, ?, ?, ?, ?, ?)", row)
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        assert not await store.read(lambda tx: tx.index_state(1) is IndexState.CURRENT)
        await store.write(lambda tx: tx.index_node(1))

        def standings(tx: ReadTx) -> dict[str, str]:
            items = tx.slice(1, Slice(SMART, 9))
            queries = ("lang=en", "lang=en-gb", "lang=de", "category=sport", "category=news", "q=z", "q=a&lang=en")
            return {query: " ".join(tx.standings(1, one, [view(query)])[0].value for one in items) for query in queries}

        assert await store.read(standings) == {
            "lang=en": "absent present",
            "lang=en-gb": "absent present",
            "lang=de": "absent absent",
            "category=sport": "absent left",
            "category=news": "present present",
            "q=z": "absent left",
            "q=a&lang=en": "absent present",
        }
        assert await store.read(lambda tx: tx.count(1, view("lang=en"))) == 1
    finally:
        await store.close()


async def test_upgrade_takes_attachment_nodes_out_of_lists(path: Path, raw: sqlite3.Connection) -> None:
    """Events of removed items go too: nothing can send them any more."""
    migrations.run(path, "0018")
    for number, name in enumerate(("blog", "urn:xmpp:pubsub-attachments:summary:1/blog"), 1):
        values = (number, name, "generic", "o@x", 1, "{}", "live", 0, 0, 4, 2, 0, 0, 4, 1, 0, 1)
        columns = f"{NODE_ROW}, listed"
        raw.execute(f"INSERT INTO node ({columns}) VALUES ({', '.join('?' * len(values))})", values)
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

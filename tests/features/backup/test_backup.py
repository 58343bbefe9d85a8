"""Copies of databases that are in use."""

import asyncio
import json
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.core.model import Edge, Slice
from smartfeeds.core.view import BARE
from smartfeeds.errors import StoreError
from smartfeeds.features.backup import backup
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, item, read_payload
from support.shell import Run


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A SQLite store, open and empty."""
    store = SqliteStore(tmp_path / "s.db", read_payload)
    await store.open()
    yield store
    await store.close()


def test_copy_ends_while_others_write_and_is_the_state_at_its_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-028]"""
    monkeypatch.setattr(backup, "PAGES_A_STEP", 1)
    source, target = tmp_path / "feeds.db", tmp_path / "copy.db"
    steps: list[tuple[int, int]] = []
    with closing(sqlite3.connect(source, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL").fetchall()
        writer.execute("CREATE TABLE item (payload BLOB)")
        writer.executemany("INSERT INTO item VALUES (?)", [(b"x" * 4000,)] * 50)

        def write_more(done: int, total: int) -> None:
            steps.append((done, total))
            writer.execute("INSERT INTO item VALUES (?)", (b"y" * 4000,))

        backup.copy_database(source, target, write_more)

        (now,) = writer.execute("SELECT count(*) FROM item").fetchone()
    with closing(sqlite3.connect(target)) as copy:
        (kept,) = copy.execute("SELECT count(*) FROM item").fetchone()
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert kept == 50
    assert now == 50 + len(steps)
    assert [done for done, _ in steps] == list(range(1, steps[-1][1] + 1))


async def test_backup_of_a_running_store_can_be_used(store: SqliteStore, tmp_path: Path) -> None:
    """[SF-028] Positions taken before a backup work on the restored copy, and after 10,000 more items."""
    made = await store.write(add_feed(*(item(str(n), n) for n in range(100))))
    edge = Edge(49, 50)
    await asyncio.to_thread(backup.copy_database, store.path, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="exists"):
        await asyncio.to_thread(backup.copy_database, store.path, tmp_path / "copy.db")
    copy = SqliteStore(tmp_path / "copy.db", read_payload)
    await copy.open()
    try:
        await copy.write(lambda tx: [tx.put_item(made.node_no, item(str(n), n)) for n in range(100, 10_100)])
        page = await copy.read(lambda tx: tx.slice(made.node_no, Slice(BARE, 3, after=edge)))
        assert [each.id for each in page] == ["50", "51", "52"]
        assert await copy.read(lambda tx: tx.count(made.node_no, BARE)) == 10_100
    finally:
        await copy.close()
    assert await store.read(lambda tx: tx.count(made.node_no, BARE)) == 100


@pytest.mark.parametrize(
    ("target", "reason"), [("no/copy.db", "no such file"), ("news.xml/copy.db", "not a directory")]
)
def test_backup_that_cannot_be_written_names_the_file(run: Run, target: str, reason: str) -> None:
    """The argument has to be changed. The store works, so this is no fault of the store."""
    run("init", "feeds.example.org")
    run("node", "create", "news")
    Path("news.xml").touch()
    error = run("backup", target, code=Exit.CONFIG).stderr
    assert error.startswith(f"smartfeeds: cannot write the backup {target}: {reason}")


def test_backup_is_a_database_of_its_own(ready: Run) -> None:
    ready("node", "create", "news")

    ready("backup", "copy.db")
    ready("node", "create", "later")

    with sqlite3.connect("copy.db") as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    copy.close()
    Path("copy.toml").write_text(Path("smartfeeds.toml").read_text().replace("smartfeeds.db", "copy.db"))
    assert [row["node"] for row in json.loads(ready("node", "list", "--json", "--config", "copy.toml").stdout)] == [
        "news"
    ]


def test_backup_has_the_files_of_the_configured_folder(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-092]"""
    monkeypatch.setenv("SMARTFEEDS_STORE__FILES", "elsewhere")
    Path("elsewhere/ab").mkdir(parents=True)
    Path("elsewhere/ab/picture").touch()
    ready("node", "create", "news")

    ready("backup", "copy.db")

    assert Path("copy.db-files/ab/picture").exists()


def test_database_and_its_backup_are_for_the_owner_alone(ready: Run) -> None:
    """They hold what is in closed nodes, and who follows what."""
    ready("node", "create", "news")
    ready("backup", "copy.db")

    assert [stat.S_IMODE(Path(name).stat().st_mode) for name in ("smartfeeds.db", "copy.db")] == [0o600, 0o600]

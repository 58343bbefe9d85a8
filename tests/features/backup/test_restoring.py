"""A restore that is killed at each of its steps: no start makes an empty database, and the next restore ends well."""

import asyncio
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.errors import StoreError
from smartfeeds.features.backup.copy_sqlite import sqlite_source, sqlite_target
from smartfeeds.features.backup.restoring import check_backup, restore_backup
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.store.sqlite_file import schema_version
from store.values import add_feed, read_payload
from support.waiting import HANG_S

# The copies of the database and of the files are renamed when they are complete, then the four former parts, then the
# two new ones.
RENAMES = 8
# Runs a restore and kills its process before one of the renames.
KILLED = """
import os, signal, sys
from pathlib import Path
from smartfeeds.features.backup.restoring import restore_backup

backup, database, files = map(Path, sys.argv[1:4])
count, rename = int(sys.argv[4]), Path.rename

def rename_or_die(path, target):
    global count
    count -= 1
    if count < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)

Path.rename = rename_or_die
restore_backup(backup, database, files, replace=True)
"""


def fill(path: Path, name: str) -> None:
    """Creates a database with one feed, which is in the log only, and a file of that name."""
    source = path.with_name("source.db")
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        migrate.prepare(connection, source)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(
            "INSERT INTO node (name, kind, state, creator, created_us, options, total, live, last_modified_us,"
            " last_created_us, audience, subscribed, indexed_us, indexed_no, stale)"
            " VALUES (?, 'feed', 'live', 'a@x', 1, '{}', 0, 0, 1, 1, 0, 0, 0, 0, 0)",
            (name,),
        )
        # Before the connection ends, which would empty the log.
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(source.with_name(source.name + suffix), path.with_name(path.name + suffix))
    folder = path.with_name(f"{path.name}-files") / "ab"
    folder.mkdir(parents=True)
    (folder / name).touch()


def names(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM node")]


def file_names(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("ab/*")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    fill(tmp_path / "feeds.db", "former")
    (tmp_path / "backup").mkdir()
    fill(tmp_path / "backup/copy.db", "restored")
    return tmp_path / "feeds.db"


@pytest.mark.parametrize("count", range(RENAMES + 1))
def test_restore_that_is_killed_leaves_a_database_or_a_refusal(database: Path, count: int) -> None:
    """[CAM-001] [OPS-092]"""
    backup, files = database.parent / "backup/copy.db", database.with_name("feeds.db-files")
    command = (sys.executable, "-c", KILLED, str(backup), str(database), str(files), str(count))
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == (0 if count == RENAMES else -signal.SIGKILL), done.stderr

    if count < RENAMES and not database.exists():
        before = sorted(path.name for path in database.parent.iterdir())
        refusal = r"feeds.db does not exist, because smartfeeds restore was interrupted; run smartfeeds restore --repl"
        for mode in OpenMode:
            with pytest.raises(StoreError, match=refusal):
                asyncio.run(SqliteStore(database, read_payload, mode=mode).open())
        for end in (sqlite_source, sqlite_target):
            with pytest.raises(StoreError, match=refusal), end(database):
                pass
        with pytest.raises(StoreError, match=refusal):
            schema_version(database)
        assert sorted(path.name for path in database.parent.iterdir()) == before
        with pytest.raises(StoreError, match=r"feeds\.db exists; use --replace to rename it"):
            restore_backup(backup, database, files, replace=False)
    if count < RENAMES:
        assert (names(database), file_names(files)) == (["former"], ["former"])
        restore_backup(backup, database, files, replace=True)

    assert (names(database), file_names(files)) == (["restored"], ["restored"])
    assert names(database.with_name("feeds.db.before-restore")) == ["former"]
    assert file_names(database.with_name("feeds.db-files.before-restore")) == ["former"]
    assert not list(database.parent.glob("*.restoring*"))


@pytest.mark.parametrize("failing", range(2, RENAMES))
def test_restore_whose_rename_fails_gives_the_former_data_back(
    database: Path, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-092] A folder of files that is a mount point cannot be renamed. A rename stays in its folder, so it never
    leaves the file system: the files may be elsewhere than the database.
    """
    backup, files = database.parent / "backup/copy.db", database.parent / "elsewhere/files"
    files.parent.mkdir()
    database.with_name("feeds.db-files").rename(files)
    renames, rename = iter(range(RENAMES)), Path.rename

    def rename_or_fail(path: Path, target: Path) -> Path:
        if next(renames, None) == failing:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        assert path.parent == target.parent
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_or_fail)
        with pytest.raises(StoreError, match=r"cannot be restored: Device or resource busy \(/"):
            restore_backup(backup, database, files, replace=True)

    assert (names(database), file_names(files)) == (["former"], ["former"])
    restore_backup(backup, database, files, replace=True)
    assert (names(database), file_names(files)) == (["restored"], ["restored"])


def test_nothing_is_written_beside_the_backup(database: Path) -> None:
    """[OPS-092] It may be on a read-only file system."""
    backup, files = database.parent / "backup/copy.db", database.with_name("feeds.db-files")
    names(backup)  # the log moves into the database
    before_ns = backup.parent.stat().st_mtime_ns
    check_backup(backup)
    restore_backup(backup, database, files, replace=True)

    assert backup.parent.stat().st_mtime_ns == before_ns
    assert names(database) == ["restored"]


async def test_interrupted_restore_of_a_missing_database_is_not_taken_for_its_absence(tmp_path: Path) -> None:
    """[OPS-092] Nothing was there before, so nothing is taken back."""
    fill(tmp_path / "feeds.db.restoring", "restored")
    database, files = tmp_path / "feeds.db", tmp_path / "feeds.db-files"
    with pytest.raises(StoreError, match="interrupted"):
        await SqliteStore(database, read_payload).open()

    (tmp_path / "backup").mkdir()
    fill(tmp_path / "backup/copy.db", "again")
    assert restore_backup(tmp_path / "backup/copy.db", database, files, replace=False) == []

    assert (names(database), file_names(files)) == (["again"], ["again"])
    store = SqliteStore(database, read_payload)
    await store.open()
    await store.write(add_feed(name="more"))
    await store.close()


def test_data_of_an_earlier_restore_is_never_taken_back(database: Path) -> None:
    """[OPS-092] It must be moved away first, also if the database itself is gone."""
    backup, files = database.parent / "backup/copy.db", database.with_name("feeds.db-files")
    restore_backup(backup, database, files, replace=True)
    database.unlink()

    with pytest.raises(StoreError, match=r"feeds\.db\.before-restore exists from an earlier restore; remove it or"):
        restore_backup(backup, database, files, replace=True)


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TRIGGER evil AFTER INSERT ON node BEGIN DELETE FROM item; END",
        "ALTER TABLE item RENAME TO items; CREATE VIEW item AS SELECT * FROM items",
    ],
)
def test_backup_with_a_trigger_or_a_view_is_refused(tmp_path: Path, statements: str) -> None:
    """[OPS-092] The service would run them."""
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        migrate.prepare(connection, backup)
        connection.executescript(statements)
    with pytest.raises(StoreError, match="which smartfeeds does not make"):
        check_backup(backup)

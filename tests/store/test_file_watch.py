"""The files of a database in use: what counts as removed or replaced, and what happens to them in ordinary use."""

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from smartfeeds.errors import StoreLostError
from smartfeeds.formats.atom import read_traits
from smartfeeds.store import sqlite as sqlite_module
from smartfeeds.store.file_watch import FileWatch
from smartfeeds.store.sqlite import SqliteStore
from support.waiting import wait_for

from .values import add_feed, item


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """A store whose path has a link in it."""
    monkeypatch.setattr(sqlite_module, "WATCH_S", 0.001)
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    store = SqliteStore(tmp_path / "link" / "feeds.db", read_traits)
    await store.open()
    await store.write(add_feed(item("one", 1)))
    yield store
    await store.close()


def replaced(path: Path) -> None:
    """A copy takes the place of the file."""
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.replace(path)


def points_elsewhere(path: Path) -> None:
    """The link leads to a copy of the folder."""
    link = path.parent
    shutil.copytree(link.resolve(), link.parent / "other")
    link.unlink()
    link.symlink_to(link.parent / "other")


def log_of(path: Path) -> Path:
    return path.with_name("feeds.db-wal")


def index_of(path: Path) -> Path:
    return path.with_name("feeds.db-shm")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "removed": (lambda path: path.unlink(), "feeds.db was removed or moved"),
    "renamed": (lambda path: path.rename(path.with_name("old.db")), "feeds.db was removed or moved"),
    "replaced": (replaced, "feeds.db was replaced by another file"),
    "replaced by an empty file": (lambda path: (path.unlink(), path.touch()), "feeds.db was replaced by another file"),
    "replaced by a folder": (lambda path: (path.unlink(), path.mkdir()), "feeds.db was replaced by another file"),
    "folder removed": (lambda path: shutil.rmtree(path.parent.resolve()), "feeds.db was removed or moved"),
    "folder moved": (
        lambda path: path.parent.resolve().rename(path.parent.with_name("moved")),
        "feeds.db was removed or moved",
    ),
    "link removed": (lambda path: path.parent.unlink(), "feeds.db was removed or moved"),
    "link elsewhere": (points_elsewhere, "feeds.db was replaced by another file"),
    "link to itself": (
        lambda path: (path.parent.unlink(), path.parent.symlink_to(path.parent)),
        "feeds.db cannot be reached (too many levels of symbolic links)",
    ),
    "folder replaced by a file": (
        lambda path: (path.parent.unlink(), path.parent.touch()),
        "feeds.db cannot be reached (not a directory)",
    ),
    "log removed": (lambda path: log_of(path).unlink(), "feeds.db-wal was removed or moved"),
    "log replaced": (lambda path: replaced(log_of(path)), "feeds.db-wal was replaced by another file"),
    "index removed": (lambda path: index_of(path).unlink(), "feeds.db-shm was removed or moved"),
    "index replaced": (lambda path: replaced(index_of(path)), "feeds.db-shm was replaced by another file"),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
async def test_change_is_noticed_and_nothing_is_acknowledged_afterwards(
    store: SqliteStore, change: Callable[[Path], object], reason: str
) -> None:
    change(store.path)
    with pytest.raises(StoreLostError) as raised:
        await wait_for(store.watch(), "the watch to notice the change")
    assert reason in str(raised.value) and "stop the service before you move or replace" in str(raised.value)
    with pytest.raises(StoreLostError):
        await store.write(add_feed(item("two", 2), name="other"))


async def test_file_that_takes_the_place_is_left_alone(store: SqliteStore) -> None:
    """SQLite must not copy its log into the new file when the store is closed."""
    path = store.path
    path.unlink()
    log_of(path).unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreLostError):
        await wait_for(store.watch(), "the watch to notice the change")
    await store.close()
    assert path.read_bytes() == before


async def test_ordinary_use_changes_no_file(store: SqliteStore) -> None:
    watch = FileWatch(store.path)
    watch.opened()
    for number in range(2, 50):
        await store.write(add_feed(item("one", number), name=f"feed-{number}"))
    reader = sqlite3.connect(store.path)
    for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "SELECT count(*) FROM item", "VACUUM"):
        reader.execute(statement).fetchall()
    reader.close()
    os.utime(store.path)
    assert watch.fault() == ""

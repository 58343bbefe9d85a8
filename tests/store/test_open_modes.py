"""What opening a store may do: only a service upgrades it, and a command that reads changes nothing."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from smartfeeds.errors import StoreError
from smartfeeds.store import migrate
from smartfeeds.store.base import OpenMode
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.store.sqlite_engine import CREATE_IT
from store.values import read_payload

EXISTING = (OpenMode.READ, OpenMode.WRITE)
NOT_SERVING = (OpenMode.READ, OpenMode.WRITE, OpenMode.CREATE)


async def opened(path: Path, mode: OpenMode) -> None:
    store = SqliteStore(path, read_payload, mode=mode)
    await store.open()
    await store.close()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("mode", EXISTING)
async def test_store_that_does_not_exist_is_not_created(tmp_path: Path, mode: OpenMode) -> None:
    with pytest.raises(StoreError, match=rf"feeds\.db does not exist; {CREATE_IT}$"):
        await opened(tmp_path / "feeds.db", mode)

    assert files(tmp_path) == {}


@pytest.mark.parametrize("mode", EXISTING)
async def test_empty_file_gets_no_schema(tmp_path: Path, mode: OpenMode) -> None:
    (tmp_path / "feeds.db").touch()

    with pytest.raises(StoreError, match=f"it is empty; check store.url, or {CREATE_IT}"):
        await opened(tmp_path / "feeds.db", mode)

    assert files(tmp_path) == {"feeds.db": b""}


@pytest.mark.parametrize("mode", NOT_SERVING)
async def test_older_schema_is_left_alone(tmp_path: Path, mode: OpenMode) -> None:
    path, older = tmp_path / "feeds.db", migrate.REVISIONS[-2]
    await opened(path, OpenMode.CREATE)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (older,))
    before = files(tmp_path)

    with pytest.raises(StoreError, match=f"its schema {older} is older .* {migrate.HEAD}; run smartfeeds db upgrade"):
        await opened(path, mode)

    assert files(tmp_path) == before


async def test_store_open_for_reading_changes_no_file_and_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "feeds.db"
    await opened(path, OpenMode.CREATE)
    before = files(tmp_path)
    store = SqliteStore(path, read_payload, mode=OpenMode.READ)
    await store.open()

    assert await store.read(lambda tx: tx.node_count()) == 0
    with pytest.raises(StoreError, match="open for reading only"):
        await store.write(lambda tx: tx.node_count())
    await store.close()

    assert files(tmp_path) == before

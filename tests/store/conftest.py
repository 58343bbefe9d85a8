"""The stores that the contract is tested on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.store.base import Store
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.memory_store import MemoryStore
from support.postgres_store import EmptyDatabase


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store in turn, open and empty."""
    made: Store
    if request.param == "memory":
        made = MemoryStore(read_payload)
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "s.db", read_payload)
    else:
        database: EmptyDatabase = request.getfixturevalue("empty_database")
        made = PostgresStore(database.empty(), read_payload)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A SQLite store, open and empty, that does not wait for locks."""
    made = SqliteStore(tmp_path / "s.db", read_payload, busy_s=0.0)
    await made.open()
    yield made
    await made.close()

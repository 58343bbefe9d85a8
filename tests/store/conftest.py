"""The stores that the contract is tested on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.store.base import Store
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.postgres_store import EmptyDatabase


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store in turn, open and empty."""
    if request.param == "postgres":
        database: EmptyDatabase = request.getfixturevalue("empty_database")
        with database.emptied() as url:
            async with opened(PostgresStore(parse_store(url), read_payload)) as made:
                yield made
    else:
        async with opened(SqliteStore(tmp_path / "s.db", read_payload)) as made:
            yield made


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    """An open store, which is closed at the end."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A SQLite store, open and empty, that does not wait for locks."""
    made = SqliteStore(tmp_path / "s.db", read_payload, busy_s=0.0)
    await made.open()
    yield made
    await made.close()

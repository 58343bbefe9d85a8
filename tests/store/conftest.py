"""The stores that the contract is tested on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.store.base import Store
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.memory_store import MemoryStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store in turn, open and empty."""
    made: Store = (
        MemoryStore(read_payload) if request.param == "memory" else SqliteStore(tmp_path / "s.db", read_payload)
    )
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

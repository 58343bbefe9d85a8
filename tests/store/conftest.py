"""What tests of the SQLite store share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A SQLite store, open and empty, that does not wait for locks."""
    made = SqliteStore(tmp_path / "s.db", read_payload, busy_s=0.0)
    await made.open()
    yield made
    await made.close()

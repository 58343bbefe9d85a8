"""What fault tests share."""

import contextlib
import importlib
import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from campaign.service import Preload
from smartfeeds.store import migrate
from support.component import Clock, Starter
from support.unprivileged import unprivileged_folder


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Starter]:
    """`await start(pubsub={...})` is a component on a fake server, with a clock that stands still and counted ids."""
    clock, numbers = Clock(), itertools.count(1)
    monkeypatch.setattr("smartfeeds.system.now_us", clock)
    monkeypatch.setattr("smartfeeds.system.monotonic", lambda: clock.now_us / 1_000_000)
    monkeypatch.setattr("smartfeeds.system.new_id", lambda: f"fresh-{next(numbers)}")
    starter = Starter(f"sqlite:///{tmp_path / 'feeds.db'}", clock)
    yield starter
    await starter.close()


@pytest.fixture(scope="session")
def preload() -> Iterator[Preload]:
    """A process that forks services for the short campaigns."""
    with Preload() as process:
        yield process


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of an ordinary user, with this process acting as that user."""
    # That user may not be able to read the libraries: what is loaded late is loaded now.
    importlib.import_module("smartfeeds.cli.run")
    importlib.import_module("smartfeeds.app.lifecycle")
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate.prepare(connection, Path(":memory:"))
    with unprivileged_folder() as folder:
        yield folder

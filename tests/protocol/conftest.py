"""The component that protocol tests talk to."""

import itertools
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.store import migrate
from support.component import Clock, Component, Starter


@pytest.fixture(scope="session")
def blank_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without nodes, made once."""
    path = tmp_path_factory.mktemp("blank") / "feeds.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.prepare(connection, path)
    connection.close()
    return path


@pytest.fixture
async def start(tmp_path: Path, blank_database: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Starter]:
    """`await start(pubsub={...})` is a running component with these settings, a fixed clock and counted ids."""
    clock, numbers = Clock(), itertools.count(1)
    monkeypatch.setattr("smartfeeds.app.now_us", clock)
    monkeypatch.setattr("smartfeeds.app.new_id", lambda: f"fresh-{next(numbers)}")
    # slixmpp reads all certificates of the system at each start; this link has no TLS.
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    monkeypatch.setenv("SSL_CERT_DIR", os.devnull)
    shutil.copy(blank_database, tmp_path / "feeds.db")
    starter = Starter(tmp_path, clock)
    yield starter
    await starter.close()


@pytest.fixture
async def component(start: Starter) -> Component:
    """A running component whose users at example.org may create nodes."""
    return await start()

"""Fixtures of the tests of units and of features. A folder may replace them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.net import addresses
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.shell import Run, shell_in
from support.sqlite_memory import SqliteMemoryStore
from support.website import Site, running_site
from support.world import World, running_world, sqlite_store


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A service that is online, over a SQLite store in memory."""
    async with running_world(SqliteMemoryStore()) as running:
        yield running


@pytest.fixture
async def world_on_disk(blank_database: Path, tmp_path: Path) -> AsyncIterator[World]:
    """As `world`, over the store of a running service, for tests that need its threads: works that overlap, share a
    commit, or outlive their caller.
    """
    async with running_world(sqlite_store(blank_database, tmp_path)) as running:
        yield running


@pytest.fixture
async def feed(world: World) -> World:
    """A service with a feed called comments."""
    await world.create()
    return world


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A web server on this machine."""
    async with running_site() as made:
        yield made


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users reach public addresses only, so 127.0.0.1 counts as one."""
    monkeypatch.setattr(addresses, "is_public", lambda _text: True)


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    """A fetcher that may request any address."""
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as made:
        yield made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs a command in an empty folder."""
    return shell_in(tmp_path, monkeypatch)


@pytest.fixture
def ready(run: Run) -> Run:
    """A function that runs a command in a folder with a configuration."""
    run("init", "feeds.a.example")
    return run


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A SQLite store, open and empty, that does not wait for locks."""
    made = SqliteStore(tmp_path / "s.db", read_payload, busy_s=0.0)
    await made.open()
    yield made
    await made.close()

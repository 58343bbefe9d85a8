"""The world that the tests of this folder run in, over each store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.world import World, blank_database, memory_store, running_world, sqlite_store


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without nodes."""
    return blank_database(tmp_path_factory.mktemp("blank") / "feeds.db")


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, blank: Path, tmp_path: Path) -> AsyncIterator[World]:
    """A world that is online, with one store and then with the other."""
    store = memory_store() if request.param == "memory" else sqlite_store(blank, tmp_path)
    async with running_world(store) as running:
        yield running


@pytest.fixture
async def feed(world: World) -> World:
    """A world with a feed called comments."""
    await world.create()
    return world

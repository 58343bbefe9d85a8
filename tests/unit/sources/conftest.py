"""The service of the tests in this folder."""

from collections.abc import AsyncIterator

import pytest

from support.world import World, memory_store, running_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The service over a store in memory."""
    async with running_world(memory_store()) as running:
        yield running

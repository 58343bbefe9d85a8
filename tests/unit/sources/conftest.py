"""A web server on this machine, a fetcher that may ask it, and a service."""

from collections.abc import AsyncIterator

import pytest

from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits
from support.website import Site, running_site
from support.world import World, memory_store, running_world


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as made:
        yield made


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as made:
        yield made


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The service over a store in memory."""
    async with running_world(memory_store()) as running:
        yield running

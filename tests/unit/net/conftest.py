"""A web server on this machine, and a fetcher that may ask it."""

from collections.abc import AsyncIterator

import pytest

from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits
from support.website import Site, running_site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as made:
        yield made


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as made:
        yield made

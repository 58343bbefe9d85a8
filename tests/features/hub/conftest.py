"""Fixtures of the hub."""

from collections.abc import AsyncIterator

import pytest

from support.callbacks import HubBench, running_hub


@pytest.fixture
async def bench() -> AsyncIterator[HubBench]:
    """A hub with the feed news."""
    async with running_hub() as made:
        yield made

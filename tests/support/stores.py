"""A store that a test opens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from smartfeeds.store.base import Store


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    """An open store, which is closed at the end."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()

"""Keeps the filter index up to date in the background, so that reads of filtered views find it ready."""

import asyncio
import time
from collections.abc import Collection

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.store.base import Store

INDEX_STEP = 50  # items in one transaction, which takes about 5 ms: requests wait no longer than that
INDEX_PAUSE = 4  # the pause after a step is so many times as long, so that indexing takes a fifth of the store at most
INDEX_REST_S = 1.0  # from a publish to its indexing, so that many publishes are indexed together


class Indexer:
    """Indexes new versions of items in small steps with pauses.

    A publish ends the run, and the next one starts `INDEX_REST_S` later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written = asyncio.Event()
        self._written.set()

    def wake(self, _node_nos: Collection[int]) -> None:
        """Starts a run: nodes have changed."""
        self._written.set()

    async def look(self) -> None:
        """Starts a run: other processes may have written."""
        self._written.set()

    async def run(self) -> None:
        """Indexes for ever."""
        while True:
            await self._written.wait()
            self._written.clear()
            await asyncio.sleep(INDEX_REST_S)
            with failures_logged():
                began_s = time.monotonic()
                while await self._store.index_some(INDEX_STEP):
                    if self._written.is_set():
                        break
                    await asyncio.sleep((time.monotonic() - began_s) * INDEX_PAUSE)
                    began_s = time.monotonic()

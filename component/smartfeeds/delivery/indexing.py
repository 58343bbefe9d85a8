"""Keeps the filter index up to date in the background, so that reads of filtered views find it ready."""

import asyncio
import time
from collections.abc import Collection

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.store.base import Store

INDEX_STEP = 50  # items that are read for the filter index at a time: some 5 ms
INDEX_PAUSE = 4  # how much longer than such a step the pause behind it is
INDEX_REST_S = 1.0  # between a publish and the filter index, which then reads all that has come in one go


class Indexer:
    """Brings the filter index forward: all of it while nothing is being published, else a little every second. The
    pauses leave most of the time to requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written = asyncio.Event()
        self._written.set()

    def wake(self, _node_nos: Collection[int]) -> None:
        """Nodes have changed."""
        self._written.set()

    async def look(self) -> None:
        """Other processes may have written."""
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

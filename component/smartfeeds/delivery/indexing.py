"""Keeps the filter index up to date in the background, so that reads of filtered views find it ready."""

import asyncio
import time
from collections.abc import Collection

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.store.base import Store

INDEX_STEP = 200  # items in one transaction, which takes about 10 ms: requests wait no longer than that
# The pause after a whole step in relation to its duration, while nobody writes: readers get half of the time. While
# requests write, there is no pause. A step waits for its fair turn among them anyway, and with a pause the index fell
# 5 s behind 20,000 publishes.
QUIET_PAUSE = 1
# From a publish to its indexing, and from a step that was not whole to the next one. Many publishes are indexed
# together: with a step for each of them, every publish would wait for a commit of the index.
INDEX_REST_S = 1.0


class Indexer:
    """Indexes new versions of items in small steps, until the index is up to date.

    A run goes on while requests write. Otherwise the index would fall behind for as long as somebody publishes, and the
    first filtered pull would have to index all of it.
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
            await asyncio.sleep(INDEX_REST_S)
            with failures_logged():
                while await self._index_step():
                    pass

    async def _index_step(self) -> bool:
        """Indexes some items, and returns whether there may be more."""
        # Before the step: a publish after its transaction starts another run.
        self._written.clear()
        began_s = time.monotonic()
        done = await self._store.index_some(INDEX_STEP)
        if 0 < done < INDEX_STEP:
            await asyncio.sleep(INDEX_REST_S)
        elif done and not self._written.is_set():
            await asyncio.sleep((time.monotonic() - began_s) * QUIET_PAUSE)
        return done > 0

"""Caches take the memory that they count, so that their bounds are bounds of the process."""

import gc
import tracemalloc

import pytest

from smartfeeds.core.token import TokenScope
from smartfeeds.http.conditions import representation_mark
from support.bearer import bearer
from support.component import ALICE
from support.web import Web

WARM = 130  # requests: the HTTP client of the test remembers 128 addresses
PAGES = 150
SLACK_BYTES = 128 * 1024  # of the client and of the event loop


async def read_pages(web: Web, start: int, count: int, token: str) -> None:
    """Reads pages at positions that nobody has read before."""
    headers = {"Authorization": token} if token else {}
    for number in range(start, start + count):
        path = f"/feeds/notes/?since=time:{number}&max=1"
        assert (await web.get(path, accept="application/json", **headers)).status == 200


def traced_bytes() -> int:
    """The memory of all living objects that were created since tracing began."""
    representation_mark.cache_clear()  # it has a bound of its own, in entries
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("authenticated", [False, True])
async def test_pages_at_ever_new_positions_take_the_memory_that_the_cache_counts(
    notes: Web, authenticated: bool
) -> None:
    """[CAM-012] A follower reads each page once, so its pages fill the cache."""
    await notes.component.publish(ALICE, "notes", "a")
    token = await bearer(notes, ALICE, TokenScope.READ, "notes") if authenticated else ""
    site = notes.component.app.site
    assert site is not None
    cache = site.feeds._cache
    await read_pages(notes, 0, WARM, token)

    counted_bytes = cache.size_bytes
    tracemalloc.start()
    try:
        before_bytes = traced_bytes()
        await read_pages(notes, WARM, PAGES, token)
        growth_bytes = traced_bytes() - before_bytes
    finally:
        tracemalloc.stop()

    assert len(cache) == WARM + PAGES
    counted_bytes = cache.size_bytes - counted_bytes
    assert growth_bytes / 2 < counted_bytes
    assert growth_bytes < counted_bytes + SLACK_BYTES


async def test_long_query_counts_in_the_memory_of_its_page(notes: Web) -> None:
    """[CAM-012] A client chooses the view, which is part of the key and of several headers."""
    await notes.component.publish(ALICE, "notes", "word " * 10)
    site = notes.component.app.site
    assert site is not None
    cache = site.feeds._cache
    sizes_bytes = []
    for query in ("author=alice%40example.org", "author=alice%40example.org&author=" + "x" * 900):
        before_bytes = cache.size_bytes
        assert (await notes.get(f"/feeds/notes/?{query}", accept="application/json")).json["count"] == 1
        sizes_bytes.append(cache.size_bytes - before_bytes)

    short_bytes, long_bytes = sizes_bytes
    assert long_bytes > short_bytes + 2 * 900

"""Loads of enclosures over real sockets (PRE-015 to PRE-026)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.prefetching import Prefetching, broken, running_prefetching, sent

DATA = bytes(range(256)) * 40


@pytest.fixture
async def loading(world, site, tmp_path: Path) -> AsyncIterator[Prefetching]:
    async with running_prefetching(world, site, tmp_path / "enclosures") as made:
        yield made


async def test_whole_file(loading, site):
    """[PRE-017] [PRE-018]"""
    site.pages["/a.mp3"] = sent(DATA)
    await loading.add("a")
    await loading.look("02:00", 1)
    row = await loading.row()
    print(row, await loading.log())
    assert row.state == "arrived"
    assert loading.complete() == {row.digest: DATA} and loading.partial() == {}

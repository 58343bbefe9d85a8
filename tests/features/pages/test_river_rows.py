"""The rows of the river (`river_rows`)."""

import sqlite3
from pathlib import Path

import pytest

from smartfeeds.core.model import Edge
from smartfeeds.features.pages import river_rows
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.first_release import create_first_schema
from support.query_plans import plan


@pytest.mark.parametrize("before", [None, Edge(5, 7)])
async def test_items_of_all_nodes_are_read_by_their_index(sqlite: SqliteStore, before: Edge | None) -> None:
    steps = await plan(sqlite, lambda tx: river_rows.changed_items(tx, 9, before))
    assert "item USING COVERING INDEX item_changed" in steps and "TEMP B-TREE" not in steps


async def test_upgrade_lists_stored_items_by_their_last_change(tmp_path: Path) -> None:
    """From version 0.1.0, with a feed that the new version then deletes."""
    path = tmp_path / "s.db"
    raw = sqlite3.connect(path, isolation_level=None)
    create_first_schema(raw)
    for number, changed_us in ((1, 6), (2, 9)):
        node = (number, f"feed-{number}", changed_us)
        raw.execute("INSERT INTO node VALUES (?, ?, 'feed', 'live', 'o@x', 1, '{}', 1, 1, ?, 5, 0, 0, 9, 9, 0)", node)
        row = (number, number, f"i{number}", changed_us)
        raw.execute("INSERT INTO item VALUES (?, ?, ?, 5, ?, 0, 1, 0, 1, 1, 'p@x', x'')", row)
    raw.close()
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        assert [node.name for node in await store.read(lambda tx: tx.changed_nodes("a@x", 9))] == ["feed-2", "feed-1"]
        assert await store.read(lambda tx: river_rows.changed_items(tx, 9)) == [(Edge(9, 2), 2), (Edge(6, 1), 1)]
        await store.write(lambda tx: tx.retire_node(2))
        while not await store.write(lambda tx: tx.reap(2, 9)):
            pass
        assert await store.read(lambda tx: river_rows.changed_items(tx, 9)) == [(Edge(6, 1), 1)]
    finally:
        await store.close()

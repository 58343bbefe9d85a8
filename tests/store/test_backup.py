"""A copy taken while somebody writes without a pause."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.features.backup import backup


def test_copy_ends_while_others_write_and_is_the_state_at_its_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-028]"""
    monkeypatch.setattr(backup, "PAGES_A_STEP", 1)
    source, target = tmp_path / "feeds.db", tmp_path / "copy.db"
    steps: list[tuple[int, int]] = []
    with closing(sqlite3.connect(source, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL").fetchall()
        writer.execute("CREATE TABLE item (payload BLOB)")
        writer.executemany("INSERT INTO item VALUES (?)", [(b"x" * 4000,)] * 50)

        def write_more(done: int, total: int) -> None:
            steps.append((done, total))
            writer.execute("INSERT INTO item VALUES (?)", (b"y" * 4000,))

        backup.copy_database(source, target, write_more)

        (now,) = writer.execute("SELECT count(*) FROM item").fetchone()
    with closing(sqlite3.connect(target)) as copy:
        (kept,) = copy.execute("SELECT count(*) FROM item").fetchone()
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert kept == 50
    assert now == 50 + len(steps)
    assert [done for done, _ in steps] == list(range(1, steps[-1][1] + 1))

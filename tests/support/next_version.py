"""A program of the next version: its schema adds a column, as a contributor would do it (docs/contributing.md)."""

import shutil
from pathlib import Path

import pytest

from smartfeeds.store import migrate, migrate_postgres

NEXT = "9000"
SCRIPT = "ALTER TABLE node ADD COLUMN colour TEXT NOT NULL DEFAULT '';\n"


def use_next_version(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str = SCRIPT) -> None:
    """Makes this process a program of the next version. `folder` gets its scripts."""
    shutil.copytree(Path(str(migrate.UPGRADES)), folder)
    for engine in ("sqlite", "postgres"):
        (folder / f"{NEXT}_{engine}.sql").write_text(script)
    monkeypatch.setattr(migrate, "UPGRADES", folder)
    monkeypatch.setattr(migrate, "REVISIONS", (*migrate.REVISIONS, NEXT))
    for module in (migrate, migrate_postgres):
        monkeypatch.setattr(module, "HEAD", NEXT)

"""Commands over a database in which the bytes of an item are damaged."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from support.shell import Run, shell_in

FEED = (
    "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:f</id><title>Plans</title><updated>2026-01-01T00:00:00Z</updated>"
    + "".join(
        f"<entry><id>urn:x:{name}</id><title>{name}</title><updated>2026-01-0{day}T00:00:00Z</updated></entry>"
        for day, name in enumerate(("one", "two", "three"), 1)
    )
    + "</feed>"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A place with the feed plans of three items."""
    run = shell_in(tmp_path, monkeypatch)
    run("init", "feeds.a.example")
    run("import", "-", "--node", "plans", stdin=FEED)
    return run


def spoil(folder: Path, damage: str) -> None:
    (path,) = folder.rglob("*.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        statement = f"UPDATE item SET payload = CAST({damage} AS BLOB) WHERE instr(payload, x'74776f') > 0"
        assert raw.execute(statement).rowcount == 1


@pytest.mark.parametrize("damage", ["x'3c'", "x'00'", "x''", "substr(payload, 1, 60)", "payload || x'ff'"])
@pytest.mark.parametrize(
    "options",
    [
        *("atom", "rss", "json"),
        pytest.param("atom --sync", marks=pytest.mark.needs("sync_documents")),
        pytest.param("jsonfeed", marks=pytest.mark.needs("documents")),
    ],
)
def test_export_leaves_a_damaged_item_out_and_says_so(run: Run, tmp_path: Path, options: str, damage: str) -> None:
    spoil(tmp_path, damage)
    result = run("export", "--node", "plans", "--to", *options.split())
    assert "one" in result.stdout and "three" in result.stdout and "two" not in result.stdout
    assert "the whole item: it is damaged in the database (urn:x:two)\n" in result.stderr


def test_strict_export_of_a_damaged_item_fails(run: Run, tmp_path: Path) -> None:
    spoil(tmp_path, "x'3c'")
    options = ("--to", "atom", "--strict", "--output", "x.xml", "--json")
    result = run("export", "--node", "plans", *options, code=Exit.FAILED)
    assert "it is damaged in the database" in result.stdout

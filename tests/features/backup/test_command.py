"""`smartfeeds backup`."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from support.shell import Run


def test_backup_never_overwrites(ready: Run) -> None:
    ready("node", "create", "talk")
    Path("copy.db").write_text("mine")

    message = " ".join(ready("backup", "copy.db", code=Exit.USAGE).stderr.split())
    assert re.search(r"copy\.db exists already; name another file, for example copy-\d{4}-\d\d-\d\d\.db", message)
    assert Path("copy.db").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "taken", "example"),
    [
        ("copy.db", (), "copy-TODAY.db"),
        ("copy", (), "copy-TODAY"),
        ("smartfeeds-TODAY.db", (), "smartfeeds-TODAY-2.db"),
        ("smartfeeds-2026-01-02.db", (), "smartfeeds-TODAY.db"),
        ("smartfeeds-20260102.db", (), "smartfeeds-TODAY.db"),
        ("smartfeeds_2026-01-02-3.db", (), "smartfeeds-TODAY.db"),
        ("2026-01-02.db", (), "TODAY.db"),
        ("TODAY.db", (), "TODAY-2.db"),
        ("copy.db", ("copy-TODAY.db",), "copy-TODAY-2.db"),
        ("copy-TODAY-2.db", ("copy-TODAY.db",), "copy-TODAY-3.db"),
        ("copy.db", ("copy-TODAY.db-files",), "copy-TODAY-2.db"),
        ("model-2000.db", (), "model-2000-TODAY.db"),
    ],
)
def test_example_has_the_date_once_and_is_free(ready: Run, name: str, taken: tuple[str, ...], example: str) -> None:
    ready("node", "create", "talk")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    for path in (name, *taken):
        Path(path.replace("TODAY", today)).touch()

    message = ready("backup", name.replace("TODAY", today), code=Exit.USAGE).stderr
    assert f"for example {example.replace('TODAY', today)}" in " ".join(message.split())
    ready("backup", example.replace("TODAY", today))


def test_backup_as_json_says_what_was_written(ready: Run) -> None:
    ready("node", "create", "talk")

    assert json.loads(ready("backup", "copy.db", "--json").stdout) == {
        "file": "copy.db",
        "bytes": Path("copy.db").stat().st_size,
        "folder": None,
        "files": 0,
    }


def test_backup_begins_with_nothing_if_the_folder_of_its_files_exists(ready: Run) -> None:
    """It would fail after the database was copied."""
    ready("node", "create", "talk")
    Path("smartfeeds.db-files/ab").mkdir(parents=True)
    Path("smartfeeds.db-files/ab/abc").touch()
    Path("copy.db-files/cd").mkdir(parents=True)

    assert "copy.db-files exists already" in ready("backup", "copy.db", code=Exit.USAGE).stderr
    assert not Path("copy.db").exists()


def test_backup_of_nothing_makes_nothing(ready: Run) -> None:
    assert "does not exist" in ready("backup", "copy.db", code=Exit.STORE).stderr
    assert sorted(path.name for path in Path().iterdir()) == ["smartfeeds.toml"]

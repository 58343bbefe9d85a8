"""`smartfeeds backup`."""

import re
from pathlib import Path

from smartfeeds.console import Exit
from support.shell import Run


def test_backup_never_overwrites(ready: Run) -> None:
    ready("node", "create", "talk")
    Path("copy.db").write_text("mine")

    message = " ".join(ready("backup", "copy.db", code=Exit.USAGE).stderr.split())
    assert re.search(r"copy\.db exists already; name another file, for example copy-\d{4}-\d\d-\d\d\.db", message)
    assert Path("copy.db").read_text() == "mine"


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

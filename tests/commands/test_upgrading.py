"""docs/upgrading.md: its commands on a database of version 0.1.0, and its message about a newer database."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.store import migrate
from support.shell import Run, program_in, run_block, shell_in

BLOCK = re.compile(r"(?ms)^```sh old-database\n(.*?)^```$")
OLD_DATABASE = Path(__file__).parents[1] / "data/version-0.1.0/feeds.db"
FIRST = "0001"  # the schema of version 0.1.0
ITEMS = "SELECT item_no, id, payload FROM item ORDER BY item_no"


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/upgrading.md").read_text("utf-8")


def schema_of(path: Path) -> str | None:
    with closing(sqlite3.connect(path)) as raw:
        return migrate.version(raw)


def test_commands_of_the_page_upgrade_a_database_of_the_first_version_and_return(page: str, tmp_path: Path) -> None:
    environment = program_in(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()
    shutil.copyfile(OLD_DATABASE, work / "smartfeeds.db")

    def run(script: str) -> str:
        return run_block(script, work, environment)

    run("smartfeeds init feeds.example.org")
    back_up, upgrade, restore = BLOCK.findall(page)
    run(back_up)
    assert schema_of(work / "smartfeeds.db") == schema_of(work / "before-upgrade.db") == FIRST

    assert "news" in run(upgrade)
    assert schema_of(work / "smartfeeds.db") == migrate.HEAD

    run(restore)
    assert schema_of(work / "smartfeeds.db") == FIRST
    rows = []
    for path in (work / "smartfeeds.db", OLD_DATABASE):
        with closing(sqlite3.connect(path)) as raw:
            rows.append(raw.execute(ITEMS).fetchall())
    assert rows[0] == rows[1] != []


def test_message_about_a_newer_database_is_that_of_the_program(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Run = shell_in(tmp_path, monkeypatch)
    run("init", "feeds.example.org")
    run("node", "create", "news")
    with closing(sqlite3.connect("smartfeeds.db", isolation_level=None)) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
        raw.execute("UPDATE compatibility SET oldest = '9999'")
    before = Path("smartfeeds.db").read_bytes()

    for command in (("run",), ("node", "list"), ("db", "upgrade")):
        message = run(*command, code=Exit.NEWER).stderr.strip().splitlines()[-1]
        expected = message.replace(str(tmp_path / "smartfeeds.db"), "/var/lib/smartfeeds/feeds.db")
        assert re.sub(r"up to \d{4}", "up to 0032", expected) in re.sub(r"up to \d{4}", "up to 0032", page)
    assert Path("smartfeeds.db").read_bytes() == before


def test_page_has_the_exit_codes_of_an_upgrade(page: str) -> None:
    codes = re.findall(r"(?m)^\| (\d+) \|", page)

    assert codes == [str(int(Exit.STORE)), str(int(Exit.NEWER))]

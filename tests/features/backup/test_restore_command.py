"""`smartfeeds restore` on real backups: good ones, damaged ones, and those of former versions."""

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.store import migrate
from smartfeeds.store.lock import lock_database
from support.shell import Run, program_in

DIGEST = "ab" * 32


@pytest.fixture
def backup(run: Run) -> Run:
    """A database with a feed of two items and its backup; the database has a third item."""
    run("init", "feeds.example.org")
    for node in ("news", "talk"):
        run("node", "create", node)
    for text in ("One", "Two"):
        run("publish", "news", text)
    run("backup", "copy.db")
    run("publish", "news", "Three")
    return run


def items(run: Run) -> list[int]:
    """The numbers of items of all feeds."""
    return [row["items"] for row in json.loads(run("node", "list", "--json").stdout)]


def test_check_says_what_a_backup_holds_and_changes_nothing(backup: Run) -> None:
    """[OPS-092]"""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}

    lines = backup("restore", "--check", "copy.db").stdout.splitlines()

    assert re.fullmatch(rf"copy\.db: no damage, schema {migrate.HEAD}, \d+ rows, sha256 [0-9a-f]{{64}}\.", lines[0])
    assert re.fullmatch(r"news: 2 items, last change \d{4}-.*Z, sha256 [0-9a-f]{16}", lines[1])
    assert re.fullmatch(r"talk: 0 items, last change never, sha256 [0-9a-f]{16}", lines[2])
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_database_that_is_no_file_is_refused_before_the_backup_is_read(
    backup: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-092]"""
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", "postgresql://a@127.0.0.1:1/feeds")

    result = backup("restore", "copy.db", code=Exit.CONFIG)

    assert "copy the backup into an empty database with smartfeeds db copy" in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_digest_of_a_feed_is_that_of_the_restored_feed(backup: Run) -> None:
    """[OPS-092]"""
    first = json.loads(backup("restore", "--check", "--json", "copy.db").stdout)
    backup("restore", "--replace", "copy.db")
    backup("backup", "again.db")
    again = json.loads(backup("restore", "--check", "--json", "again.db").stdout)

    assert again == first
    assert [feed["items"] for feed in first["feeds"]] == [2, 0]
    backup("publish", "news", "Four")
    backup("backup", "third.db")
    third = json.loads(backup("restore", "--check", "--json", "third.db").stdout)
    assert third["sha256"] != first["sha256"]
    assert third["feeds"][0]["sha256"] != first["feeds"][0]["sha256"]


def test_restore_replaces_the_database_and_its_files_and_renames_the_former(backup: Run) -> None:
    former, kept = Path("smartfeeds.db-files"), Path("copy.db-files/ab")
    former.mkdir()
    (former / "old").touch()
    kept.mkdir(parents=True)
    (kept / DIGEST).write_bytes(b"picture")
    refusal = backup("restore", "copy.db", code=Exit.STORE).stderr
    assert "smartfeeds.db exists; use --replace to rename it to smartfeeds.db.before-restore" in refusal
    assert items(backup) == [3, 0]

    output = backup("restore", "--replace", "copy.db").stdout

    assert items(backup) == [2, 0]
    assert (Path("smartfeeds.db-files/ab") / DIGEST).read_bytes() == b"picture"
    assert Path("smartfeeds.db-files.before-restore/old").exists()
    assert "The former data is " in output and "Restored " in output
    with closing(sqlite3.connect("smartfeeds.db.before-restore")) as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (3,)
    again = backup("restore", "--replace", "copy.db", code=Exit.STORE).stderr
    assert "smartfeeds.db.before-restore exists from an earlier restore" in again


def test_restore_into_an_empty_folder(backup: Run) -> None:
    Path("smartfeeds.db").unlink()

    backup("restore", "copy.db")

    assert items(backup) == [2, 0]


def test_restore_beside_a_service_is_refused(backup: Run) -> None:
    release = lock_database(Path("smartfeeds.db"), "smartfeeds, feeds.example.org")
    try:
        assert "is using it; stop that process" in backup("restore", "--replace", "copy.db", code=Exit.STORE).stderr
        backup("restore", "--check", "copy.db")
    finally:
        release()
    assert items(backup) == [3, 0]


def spoil_page() -> None:
    size = Path("copy.db").stat().st_size
    with Path("copy.db").open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)


def change(statement: str) -> None:
    with closing(sqlite3.connect("copy.db")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_page, "copy.db"),
        (lambda: Path("copy.db").write_bytes(b"hello" * 1000), "is not a SQLite database"),
        (lambda: Path("copy.db").write_bytes(b""), "is empty; name another backup"),
        (
            lambda: Path("copy.db").unlink(),
            "the backup copy.db does not exist; name a file that smartfeeds backup has written",
        ),
        (lambda: change("UPDATE item SET node_no = 99"), "is damaged: 2 rows belong to no node"),
        (lambda: change("DROP TABLE alembic_version"), "belongs to another program"),
    ],
    ids=["pages", "text", "empty", "missing", "orphans", "foreign"],
)
def test_bad_backup_is_refused_and_the_database_stays(backup: Run, spoil: object, message: str) -> None:
    """[OPS-092]"""
    assert callable(spoil)
    spoil()

    for arguments in (("--check",), ("--replace",)):
        assert message in backup("restore", *arguments, "copy.db", code=Exit.STORE).stderr
    assert items(backup) == [3, 0]


def test_backup_of_a_newer_program_is_refused(backup: Run) -> None:
    change("UPDATE alembic_version SET version_num = '9999'")
    change("UPDATE compatibility SET oldest = '9998'")

    assert "its schema 9999 is newer" in backup("restore", "--check", "copy.db", code=Exit.STORE).stderr


def test_backup_without_its_uploaded_files_fails_the_check(backup: Run) -> None:
    change(f"INSERT INTO file VALUES (1, 'f', '{DIGEST}', 'n', 'image/png', 3, 'o@x', 1, NULL)")

    for arguments in (("--check",), ("--replace",)):
        result = backup("restore", *arguments, "copy.db", code=Exit.FAILED)
        assert f"The uploaded file {DIGEST} is missing." in result.stdout
    assert items(backup) == [2, 0], "the rest is restored"

    folder = Path("copy.db-files") / DIGEST[:2]
    folder.mkdir(parents=True)
    (folder / DIGEST).touch()
    backup("restore", "--check", "copy.db")


def test_unused_file_that_was_removed_while_the_backup_ran_is_not_missing(backup: Run) -> None:
    change(f"INSERT INTO file VALUES (1, 'f', '{DIGEST}', 'n', 'image/png', 3, 'o@x', 1, 1)")

    assert "is missing" not in backup("restore", "--check", "copy.db").stdout


def test_backup_of_the_first_version_is_restored_and_upgraded(backup: Run, root: Path) -> None:
    """[OPS-091]"""
    shutil.copyfile(root / "tests/data/version-0.1.0/feeds.db", "copy.db")

    backup("restore", "--replace", "copy.db")
    backup("db", "upgrade")

    rows = json.loads(backup("node", "list", "--json").stdout)
    assert {row["node"]: row["items"] for row in rows} == {
        "asked": 0,
        "closed": 1,
        "empty": 0,
        "geo": 3,
        "late": 2,
        "news": 11,
        "quiet": 1,
    }


def test_scheduled_backup_runs(backup: Run, root: Path, tmp_path: Path) -> None:
    """The command of the systemd unit, with the folders of this test."""
    unit = (root / "config/smartfeeds-backup.service").read_text()
    command = unit.partition("ExecStart=/bin/sh -ec '\\\n")[2].partition("'\n")[0]
    folder = tmp_path / "backups"
    folder.mkdir()
    script = command.replace("\\\n", "\n").replace("%%", "%").replace("/var/lib/smartfeeds-backups", str(folder))

    subprocess.run(["sh", "-ec", script], env=program_in(tmp_path / "bin") | {"CREDENTIALS_DIRECTORY": "."}, check=True)

    (copy,) = folder.iterdir()
    assert re.fullmatch(r"feeds-\d{4}-\d\d-\d\d-\d{6}\.db", copy.name)

"""`smartfeeds doctor`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.store.migrate import HEAD, REVISIONS
from support.shell import Run


@pytest.mark.parametrize(("mode", "state"), [(0o600, "ok"), (0o604, "fix")])
def test_doctor_looks_who_can_read_the_configuration_with_the_secret(ready: Run, mode: int, state: str) -> None:
    Path("smartfeeds.toml").chmod(mode)
    text = Path("smartfeeds.toml").read_text().replace("port = 5347", "port = 1")
    Path("smartfeeds.toml").write_text(text)

    findings = json.loads(ready("doctor", "--json", code=Exit.FAILED).stdout)
    assert [one["state"] for one in findings if one["check"] == "secret"] == [state]


@pytest.mark.parametrize(
    ("revision", "oldest", "state", "found"),
    [
        (HEAD, HEAD, "ok", f"schema {HEAD}, "),
        (REVISIONS[-2], REVISIONS[-2], "note", f"has the older schema {REVISIONS[-2]}"),
        ("9999_later", HEAD, "note", "has the newer schema 9999_later"),
        ("9999_later", "9999_later", "fix", "its schema 9999_later is newer than this program"),
        ("0020", "0020", "fix", "its schema 0020 was never released"),
    ],
)
def test_doctor_compares_the_schema_of_the_database(
    ready: Run, revision: str, oldest: str, state: str, found: str
) -> None:
    """It changes nothing: an upgrade has no way back."""
    ready("node", "create", "news")
    with closing(sqlite3.connect("smartfeeds.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.execute("UPDATE compatibility SET oldest = ?", (oldest,))
    text = Path("smartfeeds.toml").read_text().replace("port = 5347", "port = 1")
    Path("smartfeeds.toml").write_text(text)

    findings = json.loads(ready("doctor", "--json", code=Exit.FAILED).stdout)

    (store,) = [one for one in findings if one["check"] == "store"]
    assert store["state"] == state and found in store["found"]
    with closing(sqlite3.connect("smartfeeds.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


def test_doctor_folds_its_lines_and_cuts_no_word(ready: Run) -> None:
    text = Path("smartfeeds.toml").read_text().replace("port = 5347", "port = 1")
    Path("smartfeeds.toml").write_text(text)
    lines = ready("doctor", code=Exit.FAILED).stdout.splitlines()
    findings = json.loads(ready("doctor", "--json", code=Exit.FAILED).stdout)

    assert any(len(finding["found"]) > 80 or len(finding["advice"]) > 80 for finding in findings)
    assert [line for line in lines if len(line) > 80 and " " in line] == []
    words = " ".join(lines).split()
    # Free bytes, ids and times differ from one run to the next.
    told = [word for each in findings if each["check"] == "link" for word in each.values() for word in word.split()]
    assert told and set(told) <= {*words, "link"}


def test_doctor_prints_no_blanks_at_the_ends_of_its_lines(ready: Run) -> None:
    lines = ready("doctor", code=Exit.FAILED).stdout.splitlines()

    assert len(lines) > 3 and [line for line in lines if line != line.rstrip()] == []

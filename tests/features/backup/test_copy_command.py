"""`smartfeeds db copy` on real databases."""

import json
import re
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from support.postgres import PostgresServer
from support.shell import Run


@pytest.fixture
def ready(run: Run) -> Run:
    run("init", "feeds.example.org")
    run("node", "create", "news")
    run("publish", "news", "Hello")
    return run


def test_copy_to_postgres_is_read_by_commands(
    ready: Run, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-092]"""
    url = postgres.create_database()
    Path("smartfeeds.db-files").mkdir()
    before = ready("export", "--node", "news", "--to", "atom").stdout

    lines = ready("db", "copy", "sqlite:///smartfeeds.db", url).stdout.splitlines()

    digest = re.fullmatch(
        rf"Copied \d+ rows of \d+ tables to {url}\. Both have the sha256 ([0-9a-f]{{64}})\.", lines[0]
    )
    assert digest
    assert lines[1:] == [
        f"Uploaded files are not copied. Set store.files to {Path.cwd()}/smartfeeds.db-files, or to a copy of it."
    ]
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", url)
    assert ready("export", "--node", "news", "--to", "atom").stdout == before
    ready("publish", "news", "Again")
    (node,) = json.loads(ready("node", "list", "--json").stdout)
    assert node["items"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("sqlite:///smartfeeds.db", "sqlite:///./smartfeeds.db"), Exit.USAGE, "are the same database"),
        (("smartfeeds.db", "sqlite:///b.db"), Exit.USAGE, "must look like sqlite:///"),
        (("sqlite:///none.db", "sqlite:///b.db"), Exit.STORE, "none.db does not exist; check the address"),
        (("sqlite:///smartfeeds.db", "sqlite:///no/b.db"), Exit.STORE, "/no does not exist; create it"),
        (
            ("sqlite:///smartfeeds.db", "postgresql://a:hush@db.example/f"),
            Exit.USAGE,
            "write the password to a file and name it with --password-file",
        ),
        (
            ("sqlite:///smartfeeds.db", "postgresql://db.example/f", "--password-file", "none"),
            Exit.CONFIG,
            "cannot read none: No such file",
        ),
    ],
)
def test_mistake_says_what_to_change(ready: Run, arguments: tuple[str, ...], code: Exit, message: str) -> None:
    result = ready("db", "copy", *arguments, code=code)

    assert message in " ".join(result.stderr.split())
    assert "hush" not in result.output
    assert not Path("b.db").exists()


def test_password_of_the_database_is_not_shown(ready: Run, postgres: PostgresServer) -> None:
    """[OPS-094] Nobody listens at this port, so the error of the driver is shown."""
    Path("password").write_text("correct horse\n")

    result = ready(
        *("db", "copy", "sqlite:///smartfeeds.db", "postgresql://a@127.0.0.1:1/f", "--password-file", "password"),
        code=Exit.STORE,
    )

    assert "the database postgresql://a@127.0.0.1:1/f: the server cannot be reached" in result.stderr
    assert "horse" not in result.output

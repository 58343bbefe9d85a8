"""Which database a command works on, and what it may do to it."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest

from smartfeeds.cli import main
from smartfeeds.console import Exit
from smartfeeds.store import migrate
from smartfeeds.store.lock import lock_database
from support.shell import Run
from support.unprivileged import unprivileged_folder


def _known(*commands: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The commands of the kernel, and those of features that are there."""
    names = main.list_commands(click.Context(main))
    return tuple(command for command in commands if command[0] in names)


BACKUP = _known(("backup", "copy.db"))
UPGRADE = ("db", "upgrade")
# Commands that change nothing in a database, and so must not make one.
READING = _known(
    ("node", "list"),
    ("node", "show", "news"),
    ("node", "affiliations", "news"),
    ("sub", "list"),
    ("token", "list"),
    ("mirror", "list"),
    ("mirror", "status"),
    ("conflicts", "list"),
    ("export", "--node", "news", "--to", "atom"),
)
# Commands that change something that must be there already.
CHANGING = _known(
    ("node", "set", "news", "title=News"),
    ("node", "delete", "news", "--yes"),
    ("node", "allow", "news", "bob@example.org"),
    ("node", "deny", "news", "bob@example.org"),
    ("publish", "news", "Hello"),
    ("retract", "news", "1"),
    ("sub", "add", "news", "bob@example.org"),
    ("sub", "remove", "news", "bob@example.org"),
    ("token", "revoke", "0123456789ab"),
    ("mirror", "remove", "plans"),
    ("mirror", "restart", "plans"),
    ("conflicts", "resolve", "news", "1"),
)
CREATING = _known(
    ("node", "create", "talk"),
    ("token", "add", "--jid", "alice@example.org", "--feed", "news", "--scope", "read"),
    ("import", "news.xml", "--node", "news"),
    ("mirror", "add", "https://example.org/feed.atom", "--node", "plans"),
)
NEWS = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:x:1</id><title>One</title></entry></feed>'


@pytest.fixture
def ready(run: Run) -> Run:
    run("init", "feeds.example.org")
    Path("news.xml").write_text(NEWS)
    return run


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.parametrize("command", [*READING, *BACKUP, UPGRADE, *CHANGING], ids=" ".join)
def test_command_on_a_database_that_does_not_exist_makes_none(ready: Run, command: tuple[str, ...]) -> None:
    before = names()

    result = ready(*command, code=Exit.STORE)

    assert result.stderr.startswith(f"smartfeeds: the database {Path.cwd()}/smartfeeds.db does not exist; create it ")
    assert (result.stdout, names()) == ("", before)


@pytest.mark.parametrize("command", CREATING, ids=" ".join)
def test_command_that_adds_something_makes_the_database(ready: Run, command: tuple[str, ...]) -> None:
    ready(*command)

    assert Path("smartfeeds.db").stat().st_size > 0


@pytest.mark.parametrize("command", [*READING, *CHANGING, *CREATING], ids=" ".join)
def test_command_leaves_an_older_schema_alone(ready: Run, command: tuple[str, ...]) -> None:
    ready("node", "create", "news")
    with closing(sqlite3.connect("smartfeeds.db", isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (migrate.REVISIONS[0],))
    before = Path("smartfeeds.db").read_bytes()

    error = ready(*command, code=Exit.STORE).stderr

    assert f"its schema 0001 is older than this program, which needs {migrate.HEAD}; run smartfeeds db upgrade" in error
    assert Path("smartfeeds.db").read_bytes() == before


@pytest.mark.parametrize("command", [*READING, *BACKUP, *CREATING], ids=" ".join)
def test_command_works_beside_a_running_service(ready: Run, command: tuple[str, ...]) -> None:
    ready("import", "news.xml", "--node", "news")
    release = lock_database(Path("smartfeeds.db"), "the service")

    ready(*command)

    release()


def test_upgrade_of_a_served_database_names_the_process(ready: Run) -> None:
    """A service of an older version must not have its schema changed under it."""
    ready("node", "create", "news")
    with closing(sqlite3.connect("smartfeeds.db", isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (migrate.REVISIONS[0],))
    release = lock_database(Path("smartfeeds.db"), "smartfeeds, feeds.example.org")

    error = ready("db", "upgrade", code=Exit.STORE).stderr

    release()
    assert f"process {os.getpid()} (smartfeeds, feeds.example.org) is using it; stop that process" in error


def test_relative_path_is_relative_to_the_configuration_file(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ready("node", "create", "news")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")

    result = ready("node", "list", "--json", "--config", "../smartfeeds.toml")

    assert [row["node"] for row in json.loads(result.stdout)] == ["news"]
    assert (result.stderr, names()) == ("", [])


def test_new_database_beside_the_configuration_warns_of_one_in_the_working_directory(ready: Run) -> None:
    """It may date from when a relative path was relative to the working directory, or have nothing to do with it."""
    ready("node", "create", "news")
    Path("etc").mkdir()
    shutil.move("smartfeeds.toml", "etc/smartfeeds.toml")

    missing = ready("publish", "news", "Hello", "--config", "etc/smartfeeds.toml", code=Exit.STORE)
    first = ready("node", "create", "talk", "--config", "etc/smartfeeds.toml")
    second = ready("node", "list", "--json", "--config", "etc/smartfeeds.toml")

    folder = Path.cwd()
    assert first.stderr.startswith(
        f"warning: store.url: the database {folder}/etc/smartfeeds.db does not exist, but {folder}/smartfeeds.db does"
    )
    assert "move the database there or set an absolute path" in first.stderr
    assert missing.stderr.count("warning: ") == 1
    assert ([row["node"] for row in json.loads(second.stdout)], second.stderr) == (["talk"], "")


def test_command_without_a_configuration_file_names_its_database_beside_the_output(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.example.org")
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET", "x")
    run("node", "create", "news")

    result = run("node", "list", "--json")

    assert [row["node"] for row in json.loads(result.stdout)] == ["news"]
    assert result.stderr == f"smartfeeds: using the database {tmp_path}/smartfeeds.db\n"


def test_database_of_the_environment_is_named_when_there_is_a_file(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", f"sqlite:///{Path.cwd()}/other.db")

    assert ready("node", "create", "news").stderr == f"smartfeeds: using the database {Path.cwd()}/other.db\n"
    monkeypatch.delenv("SMARTFEEDS_STORE__URL")
    assert ready("node", "create", "news").stderr == ""


def test_command_without_any_configuration_says_so_in_one_line(run: Run, tmp_path: Path) -> None:
    result = run("node", "list", code=Exit.CONFIG)

    assert result.stderr == (
        f"smartfeeds: there is no smartfeeds.toml in {tmp_path}: name a configuration with --config, or create one "
        "with smartfeeds init DOMAIN\n"
    )
    assert names() == []


def test_environment_that_lacks_something_is_named_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.example.org")

    error = run("node", "list", code=Exit.CONFIG).stderr

    assert "component: set exactly one of secret and secret_file" in error and "there is no smartfeeds.toml in" in error


def test_upgrade_leaves_no_log_files(ready: Run) -> None:
    ready("node", "create", "news")
    before = names()
    for _ in range(2):
        assert "has schema" in ready(*UPGRADE).stdout
        assert names() == before


@pytest.mark.parametrize("command", [READING[0], UPGRADE], ids=" ".join)
@pytest.mark.parametrize("place", ["smartfeeds.db", "."])
def test_read_only_database_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], place: str
) -> None:
    with unprivileged_folder() as folder:
        monkeypatch.chdir(folder)
        run("init", "feeds.example.org")
        run("node", "create", "news")
        before = names()
        Path(place).chmod(0o400 if place == "smartfeeds.db" else 0o500)

        error = run(*command, code=Exit.STORE).stderr

        assert f"{folder}/smartfeeds.db: it is read-only; give this user write permission" in error
        assert names() == before


def test_upgrade_of_a_served_database_at_the_newest_schema_has_nothing_to_do(ready: Run) -> None:
    ready("node", "create", "news")
    release = lock_database(Path("smartfeeds.db"), "smartfeeds, feeds.example.org")

    assert f"has schema {migrate.HEAD} already" in ready(*UPGRADE).stdout

    release()

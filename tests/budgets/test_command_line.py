"""Help texts and the completion of shells are quick: what they import is counted, because a time depends on a machine.

The text of a table needs no command, and the options of a command need no library of the service.
"""

import os
import subprocess
import sys
from collections.abc import Mapping

import click
import pytest

from smartfeeds.cli import main

# Libraries of the service, which take up to 80 ms each. pydantic is in the rows of some features, which takes 20 ms.
HEAVY = {"aiohttp", "jinja2", "nh3", "prometheus_client", "psycopg", "rich", "slixmpp", "structlog"}
OWN_OF_TABLES = 70  # modules of the project: the tables, and the declaration of each feature
OWN_OF_A_COMMAND = 210
PROGRAM = "from smartfeeds.cli import main; main(prog_name='smartfeeds')"


def modules(*arguments: str, environment: Mapping[str, str] | None = None) -> set[str]:
    """The modules that are in memory at the end of a run of the program."""
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    return set(done.stderr.split())


def completed(*words: str) -> set[str]:
    """The modules that the completion of the last word imports, as bash requests it."""
    line = " ".join(("smartfeeds", *words))
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_SMARTFEEDS_COMPLETE": "bash_complete"}
    return modules(environment=variables)


def own(names: set[str]) -> set[str]:
    return {name for name in names if name.partition(".")[0] == "smartfeeds"}


def heavy(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names} & HEAVY


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("node", "--help"), ("item", "--help")])
def test_help_of_groups_needs_the_tables_alone(arguments: tuple[str, ...]) -> None:
    names = modules(*arguments)

    assert heavy(names) == set() and "pydantic" not in names
    assert {name for name in own(names) if name.startswith("smartfeeds.features.") and name.count(".") > 2} == set()
    assert len(own(names)) <= OWN_OF_TABLES
    assert "asyncio" not in names


@pytest.mark.parametrize("words", [("",), ("no",), ("node", ""), ("node", "s"), ("item", "")])
def test_completion_of_commands_needs_the_tables_alone(words: tuple[str, ...]) -> None:
    names = completed(*words)

    assert heavy(names) == set()
    assert len(own(names)) <= OWN_OF_TABLES
    assert "asyncio" not in names


def names_of(group: click.Group, *words: str) -> list[tuple[str, ...]]:
    """The first command of each group, and each command that is in no group."""
    context = click.Context(group)
    rows: list[tuple[str, ...]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        rows += names_of(command, *words, name)[:1] if isinstance(command, click.Group) else [(*words, name)]
    return rows


@pytest.mark.parametrize("words", names_of(main), ids=" ".join)
def test_options_of_a_command_need_no_library_of_the_service(words: tuple[str, ...]) -> None:
    names = modules(*words, "--help")

    assert heavy(names) == set()
    assert len(own(names)) <= OWN_OF_A_COMMAND

"""The table of all commands: what it repeats of them, how they name nodes, which have JSON, and their former names."""

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.cli import COMMANDS, TableGroup, main
from smartfeeds.console import Exit
from smartfeeds.features import FEATURES
from support.shell import Run, shell_in

# Commands without --json, and why.
NO_JSON = {
    "bench": "its arguments and its report are those of the benchmark",
    "demo gap": "a transcript for people",
    **dict.fromkeys(("demo phone", "demo post", "demo publish"), "a part of the demonstration for people"),
    "demo serve": "runs until Ctrl-C",
    "demo share": "a transcript for people",
    "init": "prints a configuration for people, with a secret",
    "run": "runs until Ctrl-C; smartfeeds status has JSON",
    "source export": "writes a document",
}
# Visible options that name a node, and why they are no argument.
NODE_OPTIONS = {
    **dict.fromkeys(
        [f"source {name}" for name in ("pause", "poll", "remove", "renew", "resume", "set", "show")] + ["prefetch add"],
        "selects one of several sources with the same address; the command works on SOURCE",
    ),
}
# Commands that end something by another verb than `remove`, and why.
OTHER_VERBS = {
    "gdpr erase": "the term of the law; it leaves tombstones of everything",
    "node purge": "the term of XEP-0060; the node stays",
    "node deny": "adds an affiliation",
    "webhook drop": "the webhook stays; the items that wait for it are left out",
}
REMOVING = {"delete", "drop", "revoke", "retract", "erase", "purge", "deny", "rm", "end", "unset"}


def commands(group: click.Group = main, *words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        else:
            yield " ".join((*words, name)), command


ALL = dict(commands())
GROUPS = [row for row in COMMANDS if row.subcommands]


def options_of(command: click.Command, *, hidden: bool = False) -> set[str]:
    return {
        text
        for param in command.params
        if isinstance(param, click.Option) and param.hidden is hidden
        for text in param.opts
    }


def test_table_repeats_the_first_sentence_of_each_command() -> None:
    def check(group: TableGroup) -> None:
        context = click.Context(group)
        for rows in group.rows(context).values():
            for name, summary in rows:
                command = group.get_command(context, name)
                assert command is not None and command.name == name
                assert summary == command.get_short_help_str(1_000), name
                if isinstance(command, TableGroup):
                    check(command)

    assert isinstance(main, TableGroup)
    check(main)


@pytest.mark.parametrize("row", GROUPS, ids=lambda row: row.name)
def test_group_is_what_its_row_says(row: CommandRow) -> None:
    group = row.load()
    assert isinstance(group, click.Group)
    shown = main.get_command(click.Context(main), row.name)

    assert {name for name, command in group.commands.items() if not command.hidden} == set(row.subcommands)
    assert shown is not None and cleandoc(shown.help or "") == cleandoc(group.help or "")
    assert set(row.aliases.values()) <= set(row.subcommands)
    assert row.default in ("", *row.subcommands)


def test_extensions_add_the_commands_that_they_name() -> None:
    for feature in FEATURES:
        for extension in feature.extends:
            command = next(row for row in COMMANDS if row.name == extension.name).load()
            before = set(command.commands) if isinstance(command, click.Group) else set()
            extended = extension.extend(command)
            after = set(extended.commands) if isinstance(extended, click.Group) else set()
            assert after - before <= set(extension.subcommands) <= after


def test_every_topic_has_commands_and_is_a_heading(run: Run) -> None:
    text = run("--help").output

    places = [text.index(f"\n{topic.value}:\n") for topic in CommandTopic]
    assert places == sorted(places)
    assert text.index("Options:") < places[0]


@pytest.mark.parametrize("name", ALL)
def test_command_has_json_or_a_reason(name: str) -> None:
    assert ("--json" in options_of(ALL[name])) is (name not in NO_JSON)


@pytest.mark.parametrize("name", ALL)
def test_command_names_a_node_by_the_argument(name: str) -> None:
    command = ALL[name]
    names = {"node", "nodes"} | ({"feed"} if name.startswith("token") else set())
    arguments = [param for param in command.params if isinstance(param, click.Argument) and param.name in names]
    assert {param.make_metavar(click.Context(command)) for param in arguments} <= {"NODE", "[NODE]", "[NODE]..."}

    assert (options_of(command) & {"--node", "--feed"} != set()) is (name in NODE_OPTIONS)


@pytest.mark.parametrize("name", [name for name in ALL if name.rpartition(" ")[2] in REMOVING])
def test_the_verb_for_removing_is_remove(name: str) -> None:
    assert name in OTHER_VERBS


def test_exceptions_are_commands() -> None:
    present = {row.name for row in COMMANDS}  # some are commands of features
    exceptions = NO_JSON.keys() | NODE_OPTIONS.keys() | OTHER_VERBS.keys()
    assert {name for name in exceptions if name.partition(" ")[0] in present} <= ALL.keys()


@pytest.mark.parametrize("name", [name for name in ALL if name.rpartition(" ")[2] in ("list", "log", "affiliations")])
def test_list_has_all_columns_on_request(name: str) -> None:
    assert {"--wide", "--json"} <= options_of(ALL[name])


FORMER_COMMANDS = {
    "node delete": "node remove",
    "retract": "item remove",
    **({"token revoke": "token remove"} if "token remove" in ALL else {}),
    **({"hub drop": "hub remove"} if "hub remove" in ALL else {}),
    **({"cloud drop": "cloud remove"} if "cloud remove" in ALL else {}),
}


def find(words: str) -> click.Command:
    command: click.Command = main
    for word in words.split():
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), word)
        assert inner is not None
        command = inner
    return command


def test_former_names_are_those_of_commands_today_and_are_not_shown(run: Run) -> None:
    former = {alias for row in COMMANDS for alias in row.aliases} | {row.name for row in COMMANDS if row.hidden}
    assert {name.rpartition(" ")[2] for name in FORMER_COMMANDS} == former
    for name, today in FORMER_COMMANDS.items():
        assert find(name) is find(today)
        assert name not in ALL
        *group, last = name.split()
        assert f"\n  {last} " not in run(*group, "--help").output


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a configuration and a node with an item."""
    shell = shell_in(tmp_path, monkeypatch)
    shell("init", "feeds.example.org")
    shell("node", "create", "news")
    shell("publish", "news", "hello", "--id", "one")
    Path("news.xml").write_text('<rss version="2.0"><channel><title>t</title></channel></rss>')
    return shell


@pytest.mark.parametrize(
    ("former", "today"),
    [
        (("export", "--node", "news", "--to", "json"), ("export", "news", "--to", "json")),
        (("sub", "list", "--node", "news", "--json"), ("sub", "list", "news", "--json")),
        (("import", "news.xml", "--node", "news", "--json"), ("import", "news.xml", "news", "--json")),
        (("import", "--node", "news", "news.xml", "--json"), ("import", "news.xml", "news", "--json")),
    ],
)
def test_former_option_names_the_node(run: Run, former: tuple[str, ...], today: tuple[str, ...]) -> None:
    assert run(*former).stdout == run(*today).stdout
    assert "--node" not in run(*today[:1], "--help").output


def test_node_that_is_named_twice_or_not_at_all_is_a_usage_error(run: Run) -> None:
    assert "the node is named twice" in run("sub", "list", "news", "--node", "other", code=Exit.USAGE).stderr
    assert "Missing argument 'NODE'" in run("export", "--to", "json", code=Exit.USAGE).stderr
    assert "Missing argument 'NODE'" in run("import", "news.xml", code=Exit.USAGE).stderr

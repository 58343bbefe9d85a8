"""Misspelt names get the name that was probably meant, wherever people type one: a table of the places."""

from pathlib import Path

import pytest

from smartfeeds.cli import COMMANDS
from smartfeeds.console import Exit
from smartfeeds.core.nearest import did_you_mean, nearest
from smartfeeds.core.synonyms import SYNONYMS, synonym
from support.shell import Run

MIRROR = pytest.mark.needs("mirrors")
SOURCE = pytest.mark.needs("polling")
CONFLICTS = pytest.mark.needs("conflicts")


@pytest.fixture
def news(ready: Run) -> Run:
    """A function that runs a command in a folder with a node and an item."""
    ready("node", "create", "comments")
    ready("publish", "comments", "hello", "--id", "one")
    return ready


PLACES = {
    "command": (("nod", "list"), Exit.USAGE, "did you mean node?"),
    "command of a group": (("node", "crate", "x"), Exit.USAGE, "did you mean create?"),
    "group of the same meaning": (("subscription", "list"), Exit.USAGE, "did you mean sub?"),
    "group of the same meaning, plural": (("Feeds", "list"), Exit.USAGE, "did you mean node?"),
    "command of the same meaning": (("sub", "delete", "x"), Exit.USAGE, "did you mean remove?"),
    "command of the same meaning, short": (("node", "ls"), Exit.USAGE, "did you mean list?"),
    "option": (("node", "list", "--jsn"), Exit.USAGE, "Did you mean '--json'?"),
    "option of a node": (("node", "create", "x", "--option", "titel=x"), Exit.USAGE, "did you mean title?"),
    "option of a node that exists": (("node", "set", "comments", "titel=x"), Exit.USAGE, "did you mean title?"),
    "node to show": (("node", "show", "coments"), Exit.REFUSED, "no such node: coments; did you mean comments?"),
    "node to remove": (("node", "remove", "Comments", "--yes"), Exit.REFUSED, "did you mean comments?"),
    "node to publish in": (("publish", "coments", "x"), Exit.REFUSED, "did you mean comments?"),
    "node to list": (("item", "list", "coment"), Exit.REFUSED, "did you mean comments?"),
    "node to export": (("export", "coments", "--to", "json"), Exit.REFUSED, "did you mean comments?"),
    "node to subscribe to": (("sub", "add", "coments", "a@b.example"), Exit.REFUSED, "did you mean comments?"),
    "node of a list": (("sub", "list", "coments"), Exit.REFUSED, "did you mean comments?"),
    "node of a view": (("node", "show", "coments?author=a"), Exit.REFUSED, "did you mean comments?"),
}
OF_FEATURES = {
    "mirror": (("mirror", "remove", "plan"), Exit.CONFIG, "did you mean plans?", MIRROR),
    "mirror to show": (("mirror", "status", "plan"), Exit.USAGE, "did you mean plans?", MIRROR),
    "source": (("source", "show", "https://blog.example/fed"), Exit.CONFIG, "https://blog.example/feed?", SOURCE),
    "command of the same meaning": (("source", "delete", "1"), Exit.USAGE, "did you mean remove?", SOURCE),
    "command that shows": (("source", "info", "1"), Exit.USAGE, "did you mean show?", SOURCE),
    "node with conflicts": (("conflicts", "coments"), Exit.REFUSED, "did you mean comments?", CONFLICTS),
}


@pytest.mark.parametrize(("arguments", "code", "text"), PLACES.values(), ids=PLACES)
def test_misspelt_name_gets_a_suggestion(news: Run, arguments: tuple[str, ...], code: Exit, text: str) -> None:
    assert text in " ".join(news(*arguments, code=code).stderr.split())


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [pytest.param(*row[:3], id=name, marks=row[3]) for name, row in OF_FEATURES.items()],
)
def test_misspelt_name_of_a_feature_gets_a_suggestion(
    news: Run, arguments: tuple[str, ...], code: Exit, text: str
) -> None:
    if arguments[0] == "mirror":
        news("mirror", "add", "xmpp:feeds.b.example?;node=plans", "plans", "--name", "plans")
    if arguments[0] == "source":
        news("source", "add", "https://blog.example/feed", "blog")
    assert text in " ".join(news(*arguments, code=code).stderr.split())


SETTINGS = {
    "section": ("[pubsubs]\n", "did you mean pubsub?"),
    "key": ("[pubsub]\nadmin = []\n", "did you mean admins?"),
    "key of another case": ("[pubsub]\nADMINS = []\n", "did you mean admins?"),
}


@pytest.mark.parametrize(("text", "suggestion"), SETTINGS.values(), ids=SETTINGS)
def test_misspelt_setting_gets_a_suggestion(ready: Run, text: str, suggestion: str) -> None:
    path = Path("wrong.toml")
    path.write_text(f'[component]\njid = "a.example"\nsecret = "s"\n{text}')
    assert suggestion in ready("node", "list", "--config", str(path), code=Exit.CONFIG).stderr


@pytest.mark.parametrize(
    ("variable", "suggestion"),
    [
        ("SMARTFEEDS_PUBSUBS__ADMINS", "did you mean pubsub?"),
        ("SMARTFEEDS_PUBSUB__ADMIN", "did you mean admins?"),
        ("SMARTFEEDS_PUBSUB_ADMINS", "did you mean SMARTFEEDS_PUBSUB__ADMINS?"),
    ],
)
def test_misspelt_variable_gets_a_suggestion(
    ready: Run, monkeypatch: pytest.MonkeyPatch, variable: str, suggestion: str
) -> None:
    monkeypatch.setenv(variable, "[]")
    assert suggestion in ready("node", "list", code=Exit.CONFIG).stderr


@pytest.mark.parametrize("name", ["", "x", "zzzzzz", "no such node"])
def test_name_that_resembles_none_gets_no_suggestion(name: str) -> None:
    assert did_you_mean(name, ("comments", "news")) == ""


@pytest.mark.parametrize("row", SYNONYMS, ids=lambda row: row[0])
def test_every_row_of_synonyms_leads_to_a_command(row: tuple[str, ...]) -> None:
    """The first word is a command, if its feature is there, and each other one that is none leads to it."""
    assert len(set(row)) == len(row) > 1 and all(word == word.casefold() for word in row)
    for word in row[1:]:
        assert synonym(word.upper(), {row[0], "other"}) == row[0]
    assert synonym(row[1], ()) == "" == synonym("zzz", row)


def test_words_of_other_programs_lead_to_the_commands_of_each_group() -> None:
    """Of the groups of all features."""
    usual = {"remove": "delete rm", "list": "ls", "show": "info get", "add": "new create", "set": "edit"}
    for row in COMMANDS:
        names = set(row.subcommands)
        for name, words in usual.items():
            for word in set(words.split()) - names if name in names else ():
                assert synonym(word, names) in names & {name, "create"}, (row.name, word)


def test_item_that_is_missing_says_nothing_of_nodes(news: Run) -> None:
    stderr = news("item", "remove", "comments", "two", code=Exit.REFUSED).stderr
    assert "did you mean" not in stderr and "no such node" not in stderr


def test_names_that_are_long_or_many_take_a_bounded_time() -> None:
    """`difflib` compares in quadratic time."""
    assert nearest("a" * 100_000, ["a" * 100_000]) == "a" * 100_000
    assert nearest("node-7", (f"node-{number}" for number in range(10**9))) == "node-7"

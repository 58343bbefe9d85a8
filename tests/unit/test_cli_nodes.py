"""`smartfeeds node` and `smartfeeds sub`: changes of nodes, of their people and of their subscriptions."""

import json
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.console import Exit
from support.shell import Run

ALICE, BOB = "alice@example.org", "bob@example.org"
# Names that a shell, a table or a terminal may treat in a special way.
NAMES = ["team/plans", "quote\"d 'x", "übung", "\u05d0\u05d1\u05d2", "[bold]red[/bold]"]


@pytest.fixture
def news(ready: Run) -> Run:
    """A function that runs a command in a folder with the node news of Alice."""
    ready("node", "create", "news", "--owner", ALICE)
    return ready


def node(run: Run, name: str = "news") -> Any:
    return json.loads(run("node", "show", name, "--json").stdout)


def people(run: Run, name: str = "news") -> dict[str, str]:
    rows = json.loads(run("node", "affiliations", name, "--json").stdout)
    return {row["jid"]: row["affiliation"] for row in rows}


def subscriptions(run: Run) -> list[tuple[str, str, str]]:
    rows = json.loads(run("sub", "list", "--json").stdout)
    return [(row["jid"], row["view"], row["state"]) for row in rows]


def test_set_changes_the_named_options_and_no_others(news: Run) -> None:
    news("node", "set", "news", "description=first")
    result = news("node", "set", "news", "title=Our = news", "access_model=whitelist")

    options = node(news)["options"]
    assert result.output == "Configured the node news.\n"
    assert (options["title"], options["access_model"], options["description"]) == ("Our = news", "whitelist", "first")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("title", "'title' is not NAME=VALUE; there are: "),
        ("acces_model=open", "there is no option 'acces_model'; did you mean access_model?"),
        ("tilte=x", "there is no option 'tilte'; did you mean title?"),
        ("pubsub#title=x", "there is no option 'pubsub#title'; did you mean title?"),
        ("=x", "there is no option ''; there are: "),
        ("colour=red", "there is no option 'colour'; there are: "),
    ],
)
@pytest.mark.parametrize("command", [("set", "news"), ("create", "other", "--option")])
def test_wrong_option_is_named(news: Run, command: tuple[str, ...], setting: str, reason: str) -> None:
    stderr = " ".join(news("node", *command, setting, code=Exit.USAGE).stderr.split())

    assert reason in stderr and ("access_model, " in stderr or "did you mean" in stderr)


def test_set_refuses_an_impossible_value_and_changes_nothing(news: Run) -> None:
    stderr = news("node", "set", "news", "title=x", "access_model=roster", code=Exit.REFUSED).stderr

    assert "contact list" in stderr
    assert node(news)["options"]["title"] == ""


def test_set_of_a_missing_node_is_refused(ready: Run) -> None:
    ready("node", "create", "other")
    assert "no such node" in ready("node", "set", "news", "title=x", code=Exit.REFUSED).stderr


def test_delete_asks_and_does_nothing_without_a_yes(news: Run) -> None:
    news("publish", "news", "hello")
    news("sub", "add", "news", BOB)
    question = news("node", "delete", "news", code=1, stdin="n\n").stderr

    assert "Delete the node news with 1 item and 1 subscription?" in question
    assert node(news)["items"] == 1


@pytest.mark.parametrize(("arguments", "stdin"), [(["--yes"], None), ([], "y\n")])
def test_delete_frees_the_name(news: Run, arguments: list[str], stdin: str | None) -> None:
    assert "Deleted the node news." in news("node", "delete", "news", *arguments, stdin=stdin).stdout

    assert json.loads(news("node", "list", "--json").stdout) == []
    assert "no such node" in news("node", "delete", "news", "--yes", code=Exit.REFUSED).stderr
    news("node", "create", "news")


def test_purge_asks_and_leaves_tombstones(news: Run) -> None:
    """[OPS-068]"""
    news("publish", "news", "hello")
    question = news("node", "purge", "news", code=1, stdin="n\n").stderr
    assert "Retract 1 item of the node news?" in question
    assert (node(news)["items"], node(news)["deleted"]) == (1, 0)

    assert news("node", "purge", "news", stdin="y\n").stdout == "Retracted all items of news.\n"
    assert (node(news)["items"], node(news)["deleted"]) == (0, 1)
    assert "no such node" in news("node", "purge", "other", "--yes", code=Exit.REFUSED).stderr


def test_delete_leaves_the_address_of_the_new_node(news: Run) -> None:
    news("node", "delete", "news", "--yes", "--redirect", "xmpp:feeds.b.example?;node=news")

    stderr = news("publish", "news", "hello", code=Exit.REFUSED).stderr
    assert "moved to xmpp:feeds.b.example?;node=news" in stderr


def test_delete_refuses_an_address_that_runs_code(news: Run) -> None:
    news("node", "delete", "news", "--yes", "--redirect", "javascript:alert(1)", code=Exit.REFUSED)
    assert node(news)["node"] == "news"


@pytest.mark.parametrize("affiliation", ["member", "publisher", "publish-only", "owner"])
def test_allow_gives_an_affiliation_also_to_a_banned_jid(news: Run, affiliation: str) -> None:
    news("node", "deny", "news", BOB)
    news("node", "allow", "news", "Bob@Example.org", "--as", affiliation)

    assert people(news) == {ALICE: "owner", BOB: affiliation}


def test_allow_makes_a_member_by_default(news: Run) -> None:
    assert news("node", "allow", "news", BOB).output == f"{BOB} is member of news.\n"
    assert people(news)[BOB] == "member"


def test_deny_bans_and_ends_the_subscriptions(news: Run) -> None:
    news("sub", "add", "news", BOB)
    news("node", "deny", "news", BOB)

    assert people(news)[BOB] == "outcast"
    assert subscriptions(news) == []


def test_deny_with_forget_leaves_the_access_model_to_decide(news: Run) -> None:
    news("node", "allow", "news", BOB)
    news("node", "deny", "news", BOB, "--forget")

    assert people(news) == {ALICE: "owner"}
    news("sub", "add", "news", BOB)


@pytest.mark.parametrize("command", [["deny", "news", ALICE], ["allow", "news", ALICE]])
def test_the_last_owner_stays(news: Run, command: list[str]) -> None:
    stderr = news("node", *command, code=Exit.REFUSED).stderr

    assert f"{ALICE} is the last owner of the node; add another owner first" in stderr
    assert people(news) == {ALICE: "owner"}


@pytest.mark.parametrize("jid", ["bob@example.org/phone", "@@", ""])
def test_affiliations_belong_to_bare_jids(news: Run, jid: str) -> None:
    assert "not a bare JID" in news("node", "allow", "news", jid, code=Exit.USAGE).stderr


def test_add_subscribes_to_a_node_and_to_a_view(news: Run) -> None:
    news("sub", "add", "news?category=sport", "bob@example.org/phone")
    news("sub", "add", "news", BOB)

    assert subscriptions(news) == [
        ("bob@example.org/phone", "category=sport&order=modified", "subscribed"),
        (BOB, "", "subscribed"),
    ]


def test_add_refuses_a_jid_that_may_not_read(news: Run) -> None:
    news("node", "deny", "news", BOB)
    assert f"{BOB} cannot be subscribed" in news("sub", "add", "news", BOB, code=Exit.REFUSED).stderr
    assert subscriptions(news) == []


def test_remove_ends_the_subscriptions_of_all_resources(news: Run) -> None:
    news("sub", "add", "news", "bob@example.org/phone")
    news("sub", "add", "news", "carol@example.org")
    news("sub", "remove", "news", BOB)

    assert subscriptions(news) == [("carol@example.org", "", "subscribed")]
    assert "has no subscription" in news("sub", "remove", "news", BOB, code=Exit.REFUSED).stderr


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_kind_work_in_every_command(ready: Run, name: str) -> None:
    ready("node", "create", name)
    ready("node", "set", name, f"title={name}")
    ready("node", "allow", name, BOB)
    ready("sub", "add", name, BOB)
    item = ready("publish", name, "hello").stdout.strip()
    ready("retract", name, item)
    ready("sub", "remove", name, BOB)

    row = node(ready, name)
    assert (row["node"], row["options"]["title"], row["items"], row["deleted"]) == (name, name, 0, 1)
    assert name in ready("node", "delete", name, "--yes").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("node", "set", "news", "title=x"),
        ("node", "delete", "news", "--yes"),
        ("node", "allow", "news", BOB),
        ("node", "deny", "news", BOB),
        ("node", "affiliations", "news"),
        ("sub", "add", "news", BOB),
        ("sub", "remove", "news", BOB),
        ("publish", "news", "hello"),
        ("retract", "news", "1"),
    ],
)
def test_commands_about_a_node_create_no_database(ready: Run, arguments: tuple[str, ...]) -> None:
    ready(*arguments, code=Exit.STORE)
    assert not Path("smartfeeds.db").exists()

"""`smartfeeds token`: what it prints, and what it never prints."""

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.core.token import Token
from smartfeeds.errors import FeedError
from smartfeeds.features.accounts.command import duration
from smartfeeds.features.accounts.tokens import authenticate
from support.service import stored_service
from support.shell import Run, shell_in

ALICE = ("--jid", "Alice@Example.org", "--feed", "news", "--scope", "publish")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a configuration and the node news."""
    invoke = shell_in(tmp_path, monkeypatch)

    invoke("init", "feeds.example.org")
    invoke("node", "create", "news")
    return invoke


async def bearers(texts: list[str], between: Callable[[], object]) -> list[Token | None]:
    """Whom a service that runs all the while takes each text for, with a step before the last one."""
    found: list[Token | None] = []
    async with stored_service() as service:
        for place, text in enumerate(texts):
            if place == len(texts) - 1:
                await asyncio.to_thread(between)
            try:
                found.append(await service.read(partial(authenticate, text=text)))
            except FeedError:
                found.append(None)
    return found


def test_add_prints_the_token_alone_and_the_service_takes_it(ready: Run) -> None:
    result = ready("token", "add", *ALICE, "--label", "build server")

    assert re.fullmatch(r"sf_[0-9a-f]{12}_[A-Za-z0-9_-]{43}\n", result.stdout)
    assert "Authorization: Bearer" in result.stderr
    (token,) = asyncio.run(bearers([result.stdout.strip()], lambda: None))
    assert token is not None
    assert (token.jid, token.feed, token.scope.text, token.label) == (
        "alice@example.org",
        "news",
        "publish",
        "build server",
    )


def test_tokens_are_not_alike(ready: Run) -> None:
    texts = {ready("token", "add", *ALICE).stdout for _ in range(3)}

    assert len({part for text in texts for part in text.split("_", 2)[1:]}) == 6


def test_list_tells_everything_but_the_secret_and_no_file_holds_it(ready: Run) -> None:
    text = ready("token", "add", *ALICE, "--expires", "90d").stdout.strip()
    second = ready("token", "add", "--jid", "b@example.org", "--feed", "*", "--scope", "read").stdout.strip()

    rows = json.loads(ready("token", "list", "--json").stdout)
    assert [(row["id"], row["jid"], row["feed"], row["scope"], row["state"]) for row in rows] == [
        (text.split("_")[1], "alice@example.org", "news", "publish", "valid"),
        (second.split("_")[1], "b@example.org", "*", "read", "valid"),
    ]
    assert rows[0]["expires"] > rows[0]["created"] and rows[1]["expires"] == "never"
    shown = ready("token", "list").output + ready("token", "list", "--json").output
    assert rows[0]["id"] in shown and "alice@example.org" in shown
    for whole in (text, second):
        secret = whole.split("_", 2)[2]
        assert secret not in shown
        assert not [path for path in Path.cwd().iterdir() if path.is_file() and secret.encode() in path.read_bytes()]


def test_list_of_no_tokens_says_so(ready: Run) -> None:
    assert "There are no tokens" in ready("token", "list").stderr
    assert json.loads(ready("token", "list", "--json").stdout) == []


def test_revoked_token_ends_in_a_service_that_runs(ready: Run) -> None:
    text = ready("token", "add", *ALICE).stdout.strip()
    token_id = text.split("_")[1]
    before, after = asyncio.run(bearers([text, text], lambda: ready("token", "revoke", token_id)))

    assert before is not None and after is None
    assert json.loads(ready("token", "list", "--json").stdout) == []
    refused = ready("token", "revoke", token_id, code=Exit.REFUSED)
    assert "token list" in refused.stderr and "Traceback" not in refused.output


def test_new_token_is_heeded_by_a_service_that_runs(ready: Run) -> None:
    made: list[str] = []

    async def story() -> Token:
        async with stored_service() as service:
            made.append((await asyncio.to_thread(ready, "token", "add", *ALICE)).stdout.strip())
            return await service.read(lambda tx, context: authenticate(tx, context, made[0]))

    assert asyncio.run(story()).jid == "alice@example.org"


def test_add_for_a_node_that_is_not_there_says_so_beside_the_token(ready: Run) -> None:
    result = ready("token", "add", "--jid", "a@example.org", "--feed", "later", "--scope", "admin")

    assert result.stdout.startswith("sf_") and len(result.stdout.splitlines()) == 1
    assert "node later does not exist yet" in result.stderr


def test_add_prints_json_for_scripts(ready: Run) -> None:
    """The members of the response over HTTP."""
    result = ready("token", "add", "--json", "--jid", "a@example.org", "--feed", "later", "--scope", "admin")
    made = json.loads(result.stdout)
    assert made == {"id": made["token"].split("_")[1], "token": made["token"], "nodeExists": False}
    assert [row["id"] for row in json.loads(ready("token", "list", "--json").stdout)] == [made["id"]]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"--jid": "alice@example.org/phone"}, Exit.USAGE, "bare JID"),
        ({"--jid": "@"}, Exit.USAGE, "bare JID"),
        ({"--scope": "write"}, Exit.USAGE, "--scope"),
        ({"--feed": ""}, Exit.USAGE, "NODE"),
        ({"--feed": "x" * 1024}, Exit.USAGE, "NODE"),
        ({"--label": "a\nb"}, Exit.USAGE, "--label"),
        ({"--expires": "90"}, Exit.USAGE, "such as 90d"),
        ({"--expires": "0d"}, Exit.USAGE, "such as 90d"),
        ({"--expires": "99999d"}, Exit.USAGE, "such as 90d"),
        ({"--feed": "news?order=created"}, Exit.REFUSED, "name the node itself"),
    ],
)
def test_mistake_makes_no_token(ready: Run, change: dict[str, str], code: Exit, said: str) -> None:
    options = {"--jid": "alice@example.org", "--feed": "news", "--scope": "publish", **change}
    result = ready("token", "add", *(word for pair in options.items() for word in pair), code=code)

    assert said in result.stderr and result.stdout == ""
    assert json.loads(ready("token", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("2m", 120), ("3h", 10_800), ("90d", 7_776_000), ("9999w", 6_047_395_200)]
)
def test_duration_in_each_unit(text: str, seconds: int) -> None:
    assert duration(text) == seconds

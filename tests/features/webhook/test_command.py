"""`smartfeeds webhook`: what it lists, and what it drops."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from smartfeeds.console import Exit
from smartfeeds.core.consumers import RETRY_REQUEST_US, Consumer, Failure
from smartfeeds.core.view import Order
from smartfeeds.service.consumers import add_consumer
from support.shell import Run, write

SECTION = """
[[webhook]]
url = "https://alice:pw@hooks.example/in/s3cret"
node = "news"
name = "hook"
secret = "hush"
filter = "category=sport"

[[webhook]]
url = "https://other.example/"
node = "none"
name = "other"
"""
CONSUMER = Consumer(1, "webhook:hook")


@pytest.fixture
def ready(run: Run) -> Run:
    """The command, with a configuration and a feed."""
    run("init", "feeds.example.org")
    path = Path("smartfeeds.toml")
    path.write_text(path.read_text() + SECTION)
    run("node", "create", "news", "--owner", "alice@example.org")
    return run


def listed(run: Run, *options: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(run("webhook", "list", "--json", *options).stdout)
    return rows


def test_list_without_webhooks_says_how_to_add_one(run: Run) -> None:
    run("init", "feeds.example.org")
    assert "[[webhook]]" in run("webhook", "list").output
    assert listed(run) == []


def test_list_has_the_state_and_no_secret(ready: Run) -> None:
    """The name and the password for HTTP Basic and the path of the address are secrets, too."""
    assert [row["state"] for row in listed(ready)] == ["new", "new"]
    write(lambda tx, _context: add_consumer(tx, CONSUMER, Order.MODIFIED))
    ready("publish", "news", "A", "--id", "a")
    first, second = listed(ready)
    expected = {"name": "hook", "node": "news", "filter": "category=sport", "host": "hooks.example", "signed": True}

    assert {key: first[key] for key in expected} == expected
    assert (first["state"], first["waiting"], first["failures"], first["error"]) == ("behind", 1, 0, "")
    assert (second["host"], second["signed"], second["state"], second["waiting"]) == ("other.example", False, "new", 0)
    assert [row["name"] for row in listed(ready, "--node", "none")] == ["other"]
    text = ready("webhook", "list").output + ready("webhook", "list", "--json").output
    assert not [word for word in ("s3cret", "hush", "alice", "pw@") if word in text]


def test_drop_forgets_what_waits_and_lets_the_service_look(ready: Run) -> None:
    write(lambda tx, _context: add_consumer(tx, CONSUMER, Order.MODIFIED))
    for name in "ab":
        ready("publish", "news", name, "--id", name)
    failure = Failure(3, 1, 1_900_000_000_000_000, "answered 500")
    write(lambda tx, _context: tx.set_wait(CONSUMER, failure))
    assert (listed(ready)[0]["failures"], listed(ready)[0]["error"]) == (3, "answered 500")

    printed = ready("webhook", "drop", "hook").output
    assert printed == "Dropped 2 items that waited for hook; the feed news still has them.\n"
    (row, _) = listed(ready)
    assert (row["waiting"], row["next_attempt"]) == (0, "now")
    waits: list[object] = []
    write(lambda tx, _context: waits.append(tx.wait(CONSUMER)))
    assert waits == [replace(failure, next_us=RETRY_REQUEST_US)]


def test_drop_of_what_is_not_there_is_refused(ready: Run) -> None:
    assert "smartfeeds webhook list shows the names" in ready("webhook", "drop", "nothing", code=Exit.CONFIG).stderr
    refused = ready("webhook", "drop", "other", code=Exit.REFUSED)
    assert "the service has not begun with it" in refused.stderr

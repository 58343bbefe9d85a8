"""`smartfeeds source`: subscriptions at hubs, in lists and commands."""

import json
from dataclasses import replace

from features.polling.test_command import URL, rows, stored, write
from smartfeeds.console import Exit
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling.push_links import PushOffer, PushTarget
from smartfeeds.features.polling.push_states import PushState, SourcePush, new_push
from smartfeeds.features.polling.source import PushKind
from support.shell import Run

NOW_US = 1_800_000_000_000_000
OFFER = PushOffer((PushTarget(PushKind.HUB, "https://hub.example/", URL),))
PUSH = replace(
    new_push(1, OFFER, "a-token", "a-secret", NOW_US),
    state=PushState.ACTIVE,
    ends_us=NOW_US,
    pushed_us=NOW_US,
    due_us=NOW_US,
    misses=2,
)


def pushes() -> list[SourcePush]:
    found: list[SourcePush] = []
    write(lambda tx, _context: found.extend(source_push_rows.pushes(tx, 0, 99)))
    return found


def test_list_shows_push_and_renew_makes_it_due(ready: Run) -> None:
    """[WS-141] Neither path nor secret is shown."""
    ready("source", "add", URL, "--node", "news")
    assert "has no hub or cloud" in ready("source", "renew", "1", code=Exit.CONFIG).stderr
    write(lambda tx, _context: source_push_rows.put(tx, PUSH))
    (row,) = rows(ready)
    assert (row["push"], row["missed"]) == ("hub active", 2)
    assert row["push_until"] == row["last_push"] == "2027-01-15T08:00:00Z"
    assert "a-token" not in json.dumps(row) and "a-secret" not in json.dumps(row)

    ready("source", "renew", URL)
    (push,) = pushes()
    assert push.state is PushState.ACTIVE and push.due_us is not None and push.due_us < NOW_US


def test_push_is_switched_off_for_a_source(ready: Run) -> None:
    """[WS-141]"""
    ready("source", "add", URL, "--node", "news", "--no-push")
    assert not stored(ready)[0].settings.push
    ready("source", "set", URL, "--push")
    assert stored(ready)[0].settings.push

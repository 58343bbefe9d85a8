"""`smartfeeds consumer`: what it lists."""

import json
from pathlib import Path

import pytest

from smartfeeds.cli import consumer as module
from smartfeeds.console import Exit
from smartfeeds.core.consumers import PUSH, Consumer, Failure, Pause
from smartfeeds.core.model import Mark, NodeEvent, Slice
from smartfeeds.core.view import SMART, Order
from smartfeeds.store.base import WriteTx
from support.shell import Run, write

T_US = 1_767_225_600_000_000


def fill(ready: Run, tmp_path: Path) -> None:
    """Two nodes with three items each, and consumers in every state."""
    entries = "".join(
        f"<entry><id>urn:x:{n}</id><title>{n}</title><updated>2026-01-01T00:00:00Z</updated></entry>" for n in range(3)
    )
    (tmp_path / "x.xml").write_text(f"<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title>{entries}</feed>")
    for node in ("plans", "news"):
        ready("node", "create", node)
        ready("import", "x.xml", "--node", node)

    def work(tx: WriteTx, _context: object) -> None:
        plans, news = tx.node("plans"), tx.node("news")
        assert plans is not None and news is not None
        second = tx.slice(plans.node_no, Slice(SMART, 9))[1]
        tx.set_mark(plans.node_no, Order.MODIFIED, PUSH, Mark(plans.last_modified_us, "c"))
        tx.set_mark(plans.node_no, Order.CREATED, PUSH, Mark(-1, ""))
        tx.set_mark(plans.node_no, Order.MODIFIED, "mirror:xmpp:b.example?;node=n", Mark(second.modified_us, "c"))
        tx.set_wait(
            Consumer(plans.node_no, "mirror:xmpp:b.example?;node=n"), Failure(4, T_US, T_US, "it\nrefuses [bold]")
        )
        tx.set_mark(news.node_no, Order.MODIFIED, PUSH, Mark(news.last_modified_us, "c"))
        tx.add_event(NodeEvent(0, news.node_no, 1, "configuration"))
        tx.set_mark(news.node_no, Order.MODIFIED, "hub:https://h.example/", Mark(news.last_modified_us, "c"))
        tx.set_wait(Consumer(news.node_no, "hub:https://h.example/"), Failure(9, T_US, None, "410"))

    write(work)


def test_list_shows_every_consumer_with_its_state_lag_error_and_next_attempt(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    fill(ready, tmp_path)
    rows = json.loads(ready("consumer", "list", "--json").stdout)

    found = {(row["consumer"].partition(":")[0], row["node"], row["order"]): row for row in rows}
    assert len(rows) == len(found) == 5
    states = {key: (row["state"], row["waiting"]) for key, row in found.items()}
    assert states == {
        ("push", "plans", "modified"): ("current", 0),
        ("push", "plans", "created"): ("behind", 3),
        ("mirror", "plans", "modified"): ("retrying", 1),
        ("push", "news", "modified"): ("behind", 0),
        ("hub", "news", "modified"): ("stopped", 0),
    }
    assert found["push", "plans", "modified"]["lag_s"] == 0
    assert found["push", "plans", "created"]["lag_s"] >= 0
    mirror = found["mirror", "plans", "modified"]
    assert (mirror["failures"], mirror["next_attempt"]) == (4, "2026-01-01T00:00:00Z")
    assert mirror["error"] == "it\nrefuses [bold]"
    assert (found["hub", "news", "modified"]["next_attempt"], found["hub", "news", "modified"]["error"]) == ("", "410")


def test_list_shows_until_when_a_receiver_wants_no_items(ready: Run, tmp_path: Path) -> None:
    """Quiet hours of a person are no failure, and there is nothing to retry."""
    fill(ready, tmp_path)

    def work(tx: WriteTx, _context: object) -> None:
        node = tx.node("plans")
        assert node is not None
        tx.set_mark(node.node_no, Order.MODIFIED, "chat:bob@x", Mark(-1, ""))
        tx.set_wait(Consumer(node.node_no, "chat:bob@x"), Pause(T_US))

    write(work)

    (row,) = [row for row in json.loads(ready("consumer", "list", "--json").stdout) if row["consumer"] == "chat:bob@x"]
    assert (row["state"], row["next_attempt"], row["failures"], row["error"]) == (
        "paused",
        "2026-01-01T00:00:00Z",
        0,
        "",
    )
    assert "no failed delivery" in ready("consumer", "retry", "chat:bob@x", code=Exit.REFUSED).stderr


def test_misspelt_consumer_gets_a_suggestion(ready: Run, tmp_path: Path) -> None:
    fill(ready, tmp_path)
    assert "did you mean push?" in ready("consumer", "retry", "pusch", code=Exit.REFUSED).stderr
    assert "consumer list shows the names" in ready("consumer", "retry", "x", code=Exit.REFUSED).stderr


def test_list_for_people_keeps_one_line_a_consumer(ready: Run, tmp_path: Path) -> None:
    fill(ready, tmp_path)
    assert ready("consumer", "list").stdout.splitlines()[0].split()[:4] == ["consumer", "node", "state", "waiting"]
    lines = ready("consumer", "list", "--wide").stdout.splitlines()
    assert lines[0].split()[:5] == ["consumer", "node", "order", "state", "waiting"]
    guide = (Path(__file__).parents[2] / "docs" / "operator.md").read_text()
    for column in ("lag s", "next attempt"):
        assert column in lines[0]
        assert f"`{column}` |" in guide
    assert "[bold]" in "".join(lines)

    behind = json.loads(ready("consumer", "list", "--behind", "--json").stdout)
    assert [row["state"] for row in behind] == ["behind", "retrying", "stopped", "behind"]


def test_retry_requests_an_attempt_for_one_consumer_or_for_all_that_failed(ready: Run, tmp_path: Path) -> None:
    def failing() -> dict[str, tuple[str, int]]:
        rows = json.loads(ready("consumer", "list", "--json").stdout)
        return {row["consumer"]: (row["next_attempt"], row["failures"]) for row in rows if row["error"]}

    fill(ready, tmp_path)
    mirror, hub = "mirror:xmpp:b.example?;node=n", "hub:https://h.example/"
    assert ready("consumer", "retry", hub).stdout == "1 consumer will be retried.\n"
    assert failing() == {mirror: ("2026-01-01T00:00:00Z", 4), hub: ("now", 9)}
    assert ready("consumer", "retry", "--all").stdout == "2 consumers will be retried.\n"
    assert failing() == {mirror: ("now", 4), hub: ("now", 9)}
    rows = json.loads(ready("consumer", "list", "--json").stdout)
    assert {row["state"] for row in rows if row["error"]} == {"retrying"}


def test_retry_of_a_consumer_without_a_failure_says_where_the_names_are(ready: Run, tmp_path: Path) -> None:
    fill(ready, tmp_path)
    assert "no failed delivery" in ready("consumer", "retry", "push", code=Exit.REFUSED).stderr
    unknown = ready("consumer", "retry", "mirror:typo", code=Exit.REFUSED).stderr
    assert "no consumer mirror:typo" in unknown
    assert "consumer list" in unknown
    for arguments in ([], ["push", "--all"]):
        ready("consumer", "retry", *arguments, code=Exit.USAGE)


def test_list_without_consumers_says_so_and_needs_a_database(ready: Run) -> None:
    assert ready("consumer", "list", code=Exit.STORE).stdout == ""
    ready("node", "create", "plans")
    assert ready("consumer", "list").stderr == "There are no consumers.\n"
    assert json.loads(ready("consumer", "list", "--json").stdout) == []

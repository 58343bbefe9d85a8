"""`smartfeeds hub`: the list of subscriptions, and their end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from smartfeeds.cli import offline
from smartfeeds.core.consumers import Failure
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.hub.protocol import (
    HUB_QUESTION,
    HUB_TERMS,
    HubDialect,
    HubQuestion,
    HubTerms,
    Mode,
)
from smartfeeds.features.hub.requests import HUB
from smartfeeds.store.base import WriteTx
from support.shell import Run, write

T_US = 1_767_225_600_000_000


def subscribe(ready: Run, tmp_path: Path) -> None:
    """A feed with three items, and subscriptions in every state."""
    entries = "".join(
        f"<entry><id>urn:x:{n}</id><title>{n}</title><updated>2026-01-01T00:00:00Z</updated></entry>" for n in range(3)
    )
    (tmp_path / "x.xml").write_text(f"<feed xmlns='http://www.w3.org/2005/Atom'><title>x</title>{entries}</feed>")
    ready("node", "create", "news")
    ready("import", "x.xml", "--node", "news")

    def work(tx: WriteTx, _context: object) -> None:
        news = tx.node("news")
        assert news is not None
        topic = "https://feeds.example/feeds/news/"
        terms = HUB_TERMS.write(HubTerms("", "", HubDialect.PUBSUBHUBBUB, "s3cret"))
        row = Callback(HUB.name, news.node_no, "https://reader.example/5tV0k", topic, "reader.example", T_US, T_US)
        active = callback_rows.put(
            tx, replace(row, active=True, settings=terms, reader="a@x", tried_us=T_US, result="answered 503")
        )
        tx.set_mark(news.node_no, Order.MODIFIED, active.consumer.name, Mark(-1, ""))
        tx.set_wait(active.consumer, Failure(2, T_US, T_US, "answered 503"))
        question = HubQuestion(Mode.SUBSCRIBE, terms=HubTerms("", "", secret="s3cret"))
        callback_rows.put(
            tx, replace(row, url="https://other.example/", question=HUB_QUESTION.write(question), due_us=T_US)
        )
        denied = HUB_QUESTION.write(HubQuestion(Mode.DENIED, reason="gone"))
        callback_rows.put(tx, replace(row, url="https://third.example/", node_no=99, question=denied, due_us=T_US))

    write(work)


def test_list_shows_state_lease_backlog_and_last_delivery(ready: Run, tmp_path: Path) -> None:
    """[WS-076] [WS-077] It shows neither secrets nor addresses of callbacks."""
    subscribe(ready, tmp_path)
    text = ready("hub", "list", "--json").stdout
    active, checking, ending = json.loads(text)
    assert active.pop("lag_s") >= 0
    assert active == {
        "subscription": 1,
        "node": "news",
        "topic": "https://feeds.example/feeds/news/",
        "host": "reader.example",
        "reader": "a@x",
        "state": "retrying",
        "dialect": "0.3",
        "lease_end": "2026-01-01T00:00:00Z",
        "waiting": 3,
        "last_try": "2026-01-01T00:00:00Z",
        "last_result": "answered 503",
        "failures": 2,
        "next_attempt": "2026-01-01T00:00:00Z",
    }
    assert [row["state"] for row in (checking, ending)] == ["checking", "ending"]
    assert all(secret not in text for secret in ("s3cret", "5tV0k"))
    assert [row["subscription"] for row in json.loads(ready("hub", "list", "--node", "news", "--json").stdout)] == [
        1,
        2,
    ]


def test_list_has_pages(ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subscribe(ready, tmp_path)
    monkeypatch.setattr(offline, "PAGE_ROWS", 1)
    assert len(json.loads(ready("hub", "list", "--json").stdout)) == 3


def test_no_subscription(ready: Run) -> None:
    ready("node", "create", "news")
    assert "There are no subscriptions." in ready("hub", "list").output


def test_drop_ends_a_subscription(ready: Run, tmp_path: Path) -> None:
    """[WS-077] The service then tells the subscriber."""
    subscribe(ready, tmp_path)
    assert "Ended the subscription 1 of reader.example" in ready("hub", "drop", "1").stdout

    def work(tx: WriteTx, _context: object) -> None:
        row = callback_rows.callback(tx, 1)
        assert row is not None and not row.active and row.due_us is not None
        assert HUB_QUESTION.read(row.question).mode is Mode.DENIED
        assert tx.mark(row.node_no, Order.MODIFIED, row.consumer.name) is None

    write(work)
    refused = ready("hub", "drop", "77", code=6)
    assert "there is no subscription 77; smartfeeds hub list shows the numbers" in refused.stderr

"""`smartfeeds cloud`: the list of registrations, and their end."""

import json
from dataclasses import replace

from smartfeeds.core.consumers import Failure
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.cloud_protocol import CloudCallback, CloudProtocol, CloudTerms, dump_terms
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.cloud.requests import CLOUD
from smartfeeds.features.hub.requests import HUB
from smartfeeds.store.base import WriteTx
from support.shell import Run, write

T_US = 1_767_225_600_000_000
URL = "https://feeds.example/feeds/news.rss"


def register(ready: Run) -> None:
    """Two registrations of the feed news, and one of a feed that was deleted."""
    ready("node", "create", "news")

    def work(tx: WriteTx, _context: object) -> None:
        news = tx.node("news")
        assert news is not None
        callback = CloudCallback("http://reader.example/5tV0k", CloudProtocol.XML_RPC, "notify")
        row = Callback(CLOUD.name, news.node_no, callback.text, URL, "reader.example", T_US, T_US, active=True)
        row = replace(row, settings=dump_terms(CloudTerms("rss", "", URL)), tried_us=T_US, result="answered false")
        failing = callback_rows.put(tx, row)
        tx.set_mark(news.node_no, Order.MODIFIED, failing.consumer.name, Mark(-1, ""))
        tx.set_wait(failing.consumer, Failure(2, T_US, T_US, "answered false"))
        form = CloudCallback("http://reader.example/other", CloudProtocol.HTTP_POST).text
        callback_rows.put(tx, replace(row, url=form, tried_us=None, result=""))
        callback_rows.put(tx, replace(row, url=form, topic="x", node_no=99))
        callback_rows.put(
            tx, Callback(HUB.name, news.node_no, "https://reader.example/", URL, "reader.example", T_US, T_US)
        )

    write(work)


def test_list_shows_state_end_and_last_notification(ready: Run) -> None:
    """[RC-053] Without the addresses of callbacks, and without the subscriptions of the hub."""
    register(ready)
    text = ready("cloud", "list", "--json").stdout
    failing, active, lost = json.loads(text)
    assert failing == {
        "registration": 1,
        "node": "news",
        "url": URL,
        "host": "reader.example",
        "protocol": "xml-rpc",
        "state": "retrying",
        "expires": "2026-01-01T00:00:00Z",
        "last_try": "2026-01-01T00:00:00Z",
        "last_result": "answered false",
        "failures": 2,
        "next_attempt": "2026-01-01T00:00:00Z",
    }
    assert (active["state"], active["protocol"], active["last_try"]) == ("active", "http-post", "")
    assert lost["node"] == "" and "5tV0k" not in text
    assert len(json.loads(ready("cloud", "list", "--node", "news", "--json").stdout)) == 2


def test_no_registration(ready: Run) -> None:
    ready("node", "create", "news")
    assert "There are no registrations." in ready("cloud", "list").output


def test_drop_ends_a_registration(ready: Run) -> None:
    """[RC-053]"""
    register(ready)
    assert f"Ended the registration 1 of reader.example for {URL}." in ready("cloud", "drop", "1").stdout

    def work(tx: WriteTx, _context: object) -> None:
        news = tx.node("news")
        assert news is not None and callback_rows.callback(tx, 1) is None
        assert tx.mark(news.node_no, Order.MODIFIED, "cloud:1@reader.example") is None

    write(work)
    for number in ("1", "4"):
        refused = ready("cloud", "drop", number, code=6)
        assert f"there is no registration {number}; smartfeeds cloud list shows the numbers" in refused.stderr

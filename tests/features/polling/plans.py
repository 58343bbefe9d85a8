"""The statements of sources and of their subscriptions, for the test of plans (`store/test_postgres_plans.py`)."""

from collections.abc import Sequence
from dataclasses import replace

from smartfeeds.features.polling import push_rows, rows
from smartfeeds.features.polling.push_links import PushOffer, PushTarget
from smartfeeds.features.polling.push_states import PUSH_DETAILS, new_push
from smartfeeds.features.polling.source import HostPause, PushKind, new_source
from smartfeeds.features.polling.source_entries import EntryKey, SourceEntry
from smartfeeds.store.base import WriteTx

TARGET = PushTarget(PushKind.HUB, "https://a.example/hub", "https://a.example/f", "", "")
SOURCE_PUSH = new_push(1, PushOffer((TARGET,)), "token", "s", 5)
SAMPLES: dict[object, object] = {Sequence[EntryKey]: [EntryKey("one", "x.example")]}
FEW = {
    "sources_of": "sources of a node",
    "entries": "entries of a source, at most some thousand",
    "trim_entries": "entries of a source, at most some thousand",
}
WHOLE = {
    "sources_of_list": "the cost is that of the sources",
    "named_after": "an erasure reads all sources, once",
    "states": "the cost is that of the sources, or of the subscriptions to hubs",
    "pull_back": "the cost is that of the sources, at the start of the service",
    "without_source": "the cost is that of the subscriptions to hubs",
}
FILL = f"""
INSERT INTO source (node, first_url, url, host, configured, owner, created_us, state, reason, since_us, settings,
    progress)
SELECT 'feed' || n, n, n, 'h', 0, '', 1, 'polled', '', 1, '{{}}', '{{}}' FROM generate_series(1, 1000) n;
INSERT INTO source_entry (source_no, identity, link, item_id, digest, presence)
SELECT n, n, '', n, '', 0 FROM generate_series(1, 1000) n;
INSERT INTO source_push (source_no, token, state, created_us, since_us, reason, host, url, details)
SELECT n, n, 'active', 1, 1, '', '', '', '{PUSH_DETAILS.write(SOURCE_PUSH)}' FROM generate_series(1, 1000) n;
"""


def write(tx: WriteTx) -> None:
    source = new_source("feed1", "https://a.example/f", 5)
    number = rows.add(tx, source)
    rows.due(tx, 5, 10)
    rows.put(tx, source)
    rows.pull_back(tx, 5)
    rows.spread_overdue(tx, 5, 10)
    rows.put_entry(tx, number, SourceEntry(EntryKey("one", "a.example"), "i2"))
    (entry,) = rows.entries(tx, number)
    rows.put_entry(tx, number, entry)
    rows.trim_entries(tx, number, 1)
    rows.put_host_pause(tx, HostPause("a.example", 5))
    rows.remove_host_pause(tx, "a.example")
    push = push_rows.put(tx, replace(SOURCE_PUSH, source_no=number))
    push_rows.put(tx, push)
    push_rows.spread_overdue(tx, 5, 10)
    push_rows.remove(tx, push.push_no)
    rows.remove(tx, number)

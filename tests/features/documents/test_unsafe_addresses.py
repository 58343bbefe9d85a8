"""Addresses that a reader might run do not leave in RSS and JSON Feed, and are told as losses."""

import pytest

from smartfeeds.core.model import Item
from smartfeeds.features.documents.json_feed import write_json_feed
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.rss_writer import write_rss

NAMED = "addresses that a reader might run (javascript, vbscript, data)"


@pytest.mark.parametrize("scheme", ["javascript", "vbscript", "VBScript", "data", "java&#9;script"])
def test_what_a_reader_might_run_does_not_leave(scheme: str) -> None:
    address = f"{scheme}:evil"
    text = address.replace("&#9;", "\t")
    payload = (
        f'<entry xmlns="{ATOM_NS}"><title>t</title><author><name>n</name><uri>{address}</uri></author>'
        f'<link rel="related" href="{address}"/><link rel="enclosure" href="{address}"/><link href="{address}"/>'
        '<link rel="related" href="https://e/good"/></entry>'
    )
    item = Item(1, "i", 0, 0, payload.encode(), "a@b")
    head = FeedHead(id="urn:x", title="f", updated_us=0, channel=Channel(icon=text))

    written = [write_rss(head, [item]), write_json_feed(head, [read_entry(item)])]

    for one in written:
        assert b"evil" not in one.data and b"https://e/good" in one.data
        assert ("i", NAMED) in [(loss.item_id, loss.what) for loss in one.losses]
        assert ("", f"of the feed itself: {NAMED}") in [(loss.item_id, loss.what) for loss in one.losses]

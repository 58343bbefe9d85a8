"""Items that have left a view, in every form that shows them, and nobody takes one for a deletion (A-20)."""

import pytest

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.core.model import Item
from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_document import LEFT_REASON
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.document_reader import FeedReader

NEW = (
    b'<entry xmlns="http://www.w3.org/2005/Atom"><id>tag:1</id><title>secret</title>'
    b'<updated>1970-01-01T00:00:01Z</updated><link href="http://x/"></link></entry>'
)
LIVE = Item(2, "b", 0, 2_000_000, NEW.replace(b"tag:1", b"tag:2"), "")


def left(*, sync: bool) -> Item:
    payload = atom.departed("a", 1_000_000, NEW, sync=sync)
    return Item(1, "a", 0, 1_000_000, payload, "", deleted=True, left=True)


@pytest.mark.parametrize("sync", [False, True])
def test_departed_entry_keeps_its_id_and_nothing_of_the_new_version(sync: bool) -> None:
    """[A-20] Readers of FeedSync find nothing to merge: no sync data, or a mark without id and updates."""
    entry = parse_stored(left(sync=sync).payload)

    assert atom.is_left(entry)
    assert entry.findtext(atom.ID) == "tag:1"
    assert entry.findtext(atom.UPDATED) == "1970-01-01T00:00:01Z"
    assert not entry.findtext(atom.TITLE) and b"http://x/" not in left(sync=sync).payload
    assert [dict(mark.attrib) for mark in entry.iterchildren(atom.SYNC)] == [{"deleted": "true"}] * (not sync)


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"ess"}))  # ESS has no items
def test_document_of_a_view_is_read_without_what_has_left_it(name: str, sync: bool) -> None:
    """[A-20] Written and read again in every format: an import or a merge of it deletes nothing and adds nothing."""
    job = FeedExport(
        FeedHead("http://feed.example/", "A feed", 0, link="http://feed.example/"), [left(sync=sync), LIVE], 0
    )
    data = b"".join(FORMATS[name].write(job))
    document = read_document(data)

    assert [item.deleted for item in document.items] == [False]
    assert [one.reason for one in document.skipped] in ([LEFT_REASON], [])
    assert b"deleted" not in b"".join(item.payload for item in document.items)


@pytest.mark.parametrize("sync", [False, True])
def test_feed_with_sync_data_is_read_without_what_has_left_it(sync: bool) -> None:
    """[A-20] Neither an item to merge nor a plain one to add."""
    reader = FeedReader()
    data = b'<feed xmlns="http://www.w3.org/2005/Atom">' + left(sync=sync).payload + LIVE.payload + b"</feed>"

    pieces = [*reader.read([data])]

    assert [(piece.index, b"tag:2" in piece.raw) for piece in pieces] == [(1, True)]

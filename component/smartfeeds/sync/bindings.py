"""Versions of items as RSS items and outlines, the forms beside Atom that have sync data (FS-002, SSE-002).

Feeds store items as Atom entries, and `arriving` converts what comes back. RSS and OPML cannot represent every entry,
so a version that returns through them may differ from the one that was sent. `service.merging` recognises it.
"""

from collections.abc import Callable, Mapping

from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.opml import alone
from smartfeeds.formats.opml_items import outline_of_entry
from smartfeeds.formats.payload import payload_of
from smartfeeds.formats.rss_writer import write_rss_item
from smartfeeds.formats.xml import canonical, parse_stored
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.record import Version

Convert = Callable[[Version], bytes]


def in_form(version: Version, form: FeedFormat, item_id: str = "") -> Version:
    """Returns a version with its payloads, which are entries, as items of a document.

    `item_id` is the id of the item in the feed, if it is known.
    """
    return with_payloads(version, lambda one: BINDINGS[form](one, item_id))


def with_payloads(version: Version, convert: Convert) -> Version:
    """Returns the version with converted payloads. Conflicts of SSE may have any content; content that is no item is
    unchanged.
    """

    def change(one: Version) -> Version:
        is_item = one is version or one.payload.endswith((b"</item>", b"entry>", b"</outline>"))
        return one._replace(payload=convert(one)) if is_item else one

    return version.each(change)


def to_rss(version: Version, item_id: str = "") -> bytes:
    """Returns a version as an RSS item. Its date, which RSS requires, is the entry's, else that of the last change."""
    return write_rss_item(_item_of(version, item_id))


def to_outline(version: Version, item_id: str = "") -> bytes:
    """Returns a version as an outline without children."""
    return canonical(parse_stored(alone(outline_of_entry(read_entry(_item_of(version, item_id)), []))))


def _item_of(version: Version, item_id: str) -> Item:
    payload, when_us = version.payload, version.top.when_us or 0
    root = payload_of(payload).root
    item_id = item_id or (root.findtext(atom.ID) or "").strip()
    dates = [parse_datetime((root.findtext(tag) or "").strip()) for tag in (atom.PUBLISHED, atom.UPDATED)]
    time_us = next((date for date in dates if date is not None), when_us)
    return Item(1, item_id, time_us, time_us, payload, "", deleted=False)


BINDINGS: Mapping[FeedFormat, Callable[[Version, str], bytes]] = {FeedFormat.RSS: to_rss, FeedFormat.OPML: to_outline}

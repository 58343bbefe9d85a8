"""Converts versions of items from Atom to RSS and OPML, the other formats that have sync data (FS-002, SSE-002).

Feeds store items as Atom entries. `arriving` converts in the opposite direction. RSS and OPML cannot represent every
entry, so a version that another service sends back may differ from the one that was sent. `service.merging` recognises
it.
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
    """Returns a version and its conflicts in RSS or OPML. Their payloads must be entries.

    `item_id` is the id of the item in the feed. Without it, the id of the entry is used.
    """
    return with_payloads(version, lambda each: _CONVERTERS[form](each, item_id))


def with_payloads(version: Version, convert: Convert) -> Version:
    """Returns the version with converted payloads of itself and its conflicts.

    A conflict of SSE may have any content. Content that is no item is left unchanged.
    """

    def change(part: Version) -> Version:
        # Canonical form always has an end tag. That of an entry may have a prefix, as in </atom:entry>.
        is_item = part is version or part.payload.endswith((b"</item>", b"entry>", b"</outline>"))
        return part._replace(payload=convert(part)) if is_item else part

    return version.each(change)


def to_rss(version: Version, item_id: str = "") -> bytes:
    """Returns a version as an RSS item.

    Its date is that of the entry, else that of the last change: this service writes no item without a date.
    """
    return write_rss_item(_item_of(version, item_id))


def to_outline(version: Version, item_id: str = "") -> bytes:
    """Returns a version as an outline without children."""
    return canonical(parse_stored(alone(outline_of_entry(read_entry(_item_of(version, item_id)), []))))


def _item_of(version: Version, item_id: str) -> Item:
    root = payload_of(version.payload).root
    item_id = item_id or (root.findtext(atom.ID) or "").strip()
    dates = [parse_datetime((root.findtext(tag) or "").strip()) for tag in (atom.PUBLISHED, atom.UPDATED)]
    time_us = next((date for date in dates if date is not None), version.top.when_us or 0)
    return Item(1, item_id, time_us, time_us, version.payload, "")


_CONVERTERS: Mapping[FeedFormat, Callable[[Version, str], bytes]] = {
    FeedFormat.RSS: to_rss,
    FeedFormat.OPML: to_outline,
}

"""An Atom document with the entries of several feeds (RFC 4287 4.2.11)."""

import re
from collections.abc import Iterable, Iterator

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.formats.atom import ATOM_NS, with_child
from smartfeeds.formats.atom_feed import FeedHead, write_feed

_SOURCE = re.compile(rb"<(?:[^<>/:\s]+:)?source[\s>]")


def write_river(head: FeedHead, entries: Iterable[tuple[FeedHead, Item]]) -> Iterator[bytes]:
    """The document in pieces. Each item comes with the metadata of its feed, which its atom:source names unless the
    entry has one. Raises ForbiddenCharacterError for texts that XML cannot represent."""
    opening, closing = write_feed(head, ())
    yield opening
    for feed, item in entries:
        _, entry, _ = write_feed(feed, (item,), keys=False)
        yield entry if _SOURCE.search(item.payload) else with_child(entry, _source(feed))
    yield closing


def _source(feed: FeedHead) -> bytes:
    return (
        f'<source xmlns="{ATOM_NS}"><id>{escape(feed.id)}</id><title>{escape(feed.title)}</title>'
        f'<link href="{attribute(feed.link)}" rel="alternate"></link></source>'
    ).encode()

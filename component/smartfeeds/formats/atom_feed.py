"""A whole Atom feed document out of stored items: `export --to atom` (RFC 4287).

Entries are written as they are stored. Deleted items are written as the marked entries they are stored as (A-18:
RFC 6721 is read, not written), so that whoever syncs by FeedSync understands them. What an entry cannot say for
itself stands at its front: the item id (fo:id, SF-070) and the ordering keys; `documents.read_document` takes both
off again, so that an export read back gives the same ids, times and payloads. A payload that is no Atom entry is
the content of one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_datetime, format_t
from smartfeeds.formats.atom import ATOM_NS, START_TAG, derived_id
from smartfeeds.formats.atom_reader import EXPORT_NS, FANOUT_NS


@dataclass(frozen=True, slots=True)
class FeedHead:
    """What the feed says of itself: an atom:id (a URI), a title, the time of its last change, its own address."""

    id: str
    title: str
    updated_us: int
    self_link: str = ""
    subtitle: str = ""


def write_feed(head: FeedHead, items: Iterable[Item]) -> Iterator[bytes]:
    """The document in pieces, one an item, in UTF-8. Raises ForbiddenCharacterError for texts XML cannot carry."""
    link = f'<link rel="self" type="application/atom+xml" href="{attribute(head.self_link)}"/>\n'
    subtitle = f"<subtitle>{escape(head.subtitle)}</subtitle>\n"
    yield (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="{ATOM_NS}">\n'
        f"<id>{escape(head.id)}</id>\n<title>{escape(head.title)}</title>\n"
        f"<updated>{format_datetime(head.updated_us)}</updated>\n"
        f"{link if head.self_link else ''}{subtitle if head.subtitle else ''}"
    ).encode()
    for item in items:
        yield _entry(item) + b"\n"
    yield b"</feed>\n"


def _entry(item: Item) -> bytes:
    payload = item.payload
    start = START_TAG.match(payload)
    if start is None or not _is_entry(start[0], start[1]):
        payload = _wrapped(item)
        start = START_TAG.match(payload)
        assert start is not None
    created, modified = format_t(item.created_us), format_t(item.modified_us)
    marks = (
        f'<id xmlns="{FANOUT_NS}">{escape(item.id)}</id>'
        f'<keys xmlns="{EXPORT_NS}" created="{created}" modified="{modified}"></keys>'
    )
    return payload[: start.end()] + marks.encode() + payload[start.end() :]


def _is_entry(tag: bytes, name: bytes) -> bool:
    """Whether a canonical start tag is that of an atom:entry."""
    prefix, _, local = name.rpartition(b":")
    declaration = b' xmlns%s="%s"' % (b":" + prefix if prefix else b"", ATOM_NS.encode())
    return local == b"entry" and declaration in tag


def _wrapped(item: Item) -> bytes:
    kind = ' type="application/xml"' if item.payload else ""
    return (
        f'<entry xmlns="{ATOM_NS}"><id>{derived_id(item.id)}</id><title></title>'
        f"<updated>{format_datetime(item.modified_us)}</updated><content{kind}>"
    ).encode() + (item.payload + b"</content></entry>")

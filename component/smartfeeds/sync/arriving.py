"""Converts items of synchronised documents to Atom entries, the form in which feeds store them (FS-002).

The result depends on the item alone, so that every service that reads it ends with the same bytes. If an RSS item has
no id, its sync id becomes the id: an id made of the content or the link would differ between versions of the item.
"""

from lxml import etree

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.additions import take_additions
from smartfeeds.formats.atom import ATOM_NS, ENTRY, derived_id, string_of
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.feed_reader import read_one
from smartfeeds.formats.opml import ITEM_ID
from smartfeeds.formats.payload import with_id_and_title
from smartfeeds.formats.plain_entry import ENTRY_START
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.xml import Element, canonical, new_element, parse_stored
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.item_forms import in_form
from smartfeeds.sync.markup import SyncItem, is_whole, read_item, syncs_of, without_sync
from smartfeeds.sync.merging import in_order
from smartfeeds.sync.record import Version

# Around the content of a conflict of SSE, which may be a text or several elements, and in the entry that is made of it.
# Every service must write the same bytes, so the namespace must not change.
_SEVERAL = b'<data xmlns="urn:x-smartfeeds:conflict">', b"</data>"


def read_arrived(raw: bytes, *, lenient: bool = False) -> tuple[str, SyncItem, FeedFormat]:
    """Reads an entry, RSS item or outline with sync data.

    Returns the item id that a Smart Feed wrote into it, or an empty text, the item in Atom, and the form it came in.

    `raw` is that of a `Piece`. Raises FeedError for an invalid item.
    """
    item = parse_stored(raw)
    item_id = (take_additions(item).item_id or item.get(ITEM_ID) or "").strip()
    sync_item = read_item(item, lenient=lenient)
    if sync_item is None:
        raise FeedError(Condition.INVALID_PAYLOAD, "the item has no sync data")
    form = FeedFormat.ATOM if item.tag == ENTRY else FeedFormat.OPML if item.tag == "outline" else FeedFormat.RSS
    return (item_id if len(item_id.encode()) <= MAX_ID_BYTES else ""), in_atom(sync_item), form


def in_atom(item: SyncItem) -> SyncItem:
    """Returns an item with the payloads of all its versions in Atom. Raises FeedError(INVALID_PAYLOAD)."""
    version = item.version
    convert = as_entry if item.dialect is FEEDSYNC else _anything_as_entry
    conflicts = in_order(conflict._replace(payload=convert(conflict)) for conflict in version.conflicts)
    return item._replace(version=version._replace(payload=as_entry(version), conflicts=conflicts))


def passed_through(version: Version, form: FeedFormat) -> bytes:
    """Returns the entry that this service reads if it gets its own version back in a form."""
    return as_entry(version._replace(payload=in_form(version, form).payload))


def read_plain(raw: bytes, base: str = "") -> ImportedItem:
    """Reads an entry or RSS item without sync data as an import with base address `base` does. Raises FeedError."""
    return read_one(parse_stored(raw), len(raw), base)


def names_of(raw: bytes, base: str = "") -> tuple[str, ...]:
    """Returns the id that `read_plain` gives an item without its sync data. An RSS item without guid has it from its
    link or content."""
    try:
        return (read_plain(without_sync(raw), base).id,)
    except FeedError:
        return ()


def is_deletion_alone(raw: bytes) -> bool:
    """Returns whether an item has a deletion mark but no sync data of a version (A-18)."""
    syncs = syncs_of(parse_stored(raw))
    return bool(syncs) and syncs[0].get("deleted") == "true" and not is_whole(syncs[0])


def as_entry(version: Version) -> bytes:
    """Returns the payload of a version in Atom. A payload that is no entry, RSS item or outline is returned unchanged;
    the store rejects it later.
    """
    if version.payload.startswith(ENTRY_START):
        return version.payload
    return _converted(parse_stored(version.payload), version) or version.payload


def _converted(item: Element, version: Version) -> bytes:
    """Returns an RSS item or an outline as an entry, and any other element as empty bytes."""
    if rss_name(item) == "item":
        return _of_rss(item, version)
    if item.tag != "outline":
        return b""
    item.set(ITEM_ID, item.get(ITEM_ID) or version.sync_id)
    read = read_one(item, len(version.payload))
    return with_id_and_title(read.payload, derived_id(read.id))


def _of_rss(item: Element, version: Version) -> bytes:
    if not any(rss_name(node) == "guid" and string_of(node).strip() for node in item.iterchildren(etree.Element)):
        guid = etree.SubElement(item, item.tag[: item.tag.rfind("}") + 1] + "guid", isPermaLink="false")
        guid.text = version.sync_id
    read = read_one(item, len(version.payload))
    # Replicas compare payloads, so an id that is made here must not contain the name of a service or node.
    return with_id_and_title(read.payload, derived_id(read.id))


def _anything_as_entry(version: Version) -> bytes:
    """Returns a conflict of SSE as an entry. Its content can be anything (SSE-048), so content that is no item is
    wrapped.
    """
    start, end = _SEVERAL
    holder = parse_stored(start + version.payload + end)
    several = len(holder) != 1 or bool((holder.text or "").strip() or (holder[0].tail or "").strip())
    if not several:
        item = parse_stored(version.payload)
        if item.tag == ENTRY:
            return version.payload
        if converted := _converted(item, version):
            return converted
    entry = new_element(ENTRY, {None: ATOM_NS})
    content = etree.SubElement(entry, f"{{{ATOM_NS}}}content")
    if len(holder):
        content.set("type", "application/xml")
        content.append(holder if several else holder[0])
    else:
        content.text = holder.text
    return canonical(entry)

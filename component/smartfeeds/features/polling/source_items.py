"""Items of foreign feeds: what identifies them, when they have changed, and which dates count (SRC-053, SRC-056,
SRC-069 to SRC-072).

A digest of the content decides whether an entry has changed. Two forms of an entry that say the same have one digest.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, NamedTuple

from lxml import etree

from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling.source_entries import DocumentEntry, EntryKey, respellings
from smartfeeds.formats import atom
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.distinct import (
    DIGEST_CHARACTERS,
    NO_WORDS,
    EntryWords,
    link_key,
    page_of,
    places_of,
    rewritten,
    words_in,
)
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem, SkippedItem
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.xml import Element, canonical, parse_stored

# Of one document (SRC-053). All of them are stored in one transaction.
MAX_ITEMS: Final = 1_000
MAX_ITEM_BYTES: Final = 1_000_000
# A date that lies further ahead than this is wrong; clocks and time zones account for less.
MAX_AHEAD_US: Final = 86_400 * US_PER_S
# The service sets atom:id, and atom:source has the changing title of the feed.
_OWN: Final = frozenset({atom.ID, atom.SOURCE})


@dataclass(frozen=True, slots=True)
class SourceItem:
    """An item of a source before it is known which item of the node it is. `item.id` is a digest of the first address
    of the source and the id of the entry, `link` is `link_key` of its page, `digest` that of its content, `words` are
    those of `entry_words`. `is_home`: the page is that of the feed or the site. `respelt`: see `DocumentEntry`."""

    item: ImportedItem
    link: str = ""
    digest: str = ""
    words: EntryWords = NO_WORDS
    is_home: bool = False
    respelt: tuple[str, ...] = ()

    @property
    def key(self) -> EntryKey:
        """The identity of the entry."""
        return EntryKey(self.item.id, self.link)

    @property
    def entry(self) -> DocumentEntry:
        """The entry as it is compared with the memory of the source."""
        return DocumentEntry(self.key, self.digest, self.words, self.item.by_link, self.is_home, self.respelt)


class SourceItems(NamedTuple):
    """The items of a document, oldest first, and those that were left out."""

    items: tuple[SourceItem, ...]
    skipped: tuple[SkippedItem, ...]


def source_items(document: FeedDocument, first_url: str, ignore: Collection[str] = ()) -> SourceItems:
    """The items of a document of the source that was added as `first_url`, at most MAX_ITEMS, the newest ones.

    `ignore` has the names of what does not count as a change (`content_digest`).
    """
    skipped: list[SkippedItem] = []
    entries: list[SourceItem] = []
    home = link_key(document.link)
    for index, item in enumerate(document.oldest_first()):
        if len(item.payload) > MAX_ITEM_BYTES:
            skipped.append(SkippedItem(index, f"{len(item.payload)} bytes; the limit of an item is {MAX_ITEM_BYTES}"))
            continue
        root = parse_stored(item.payload)
        link = page_of(root)
        # A feed without ids has ids made by its reader. White space alone is no id.
        entry_id = item.id.strip() or link
        identity = digest_id(first_url, entry_id or canonical(root).decode())
        respelt = tuple(digest_id(first_url, text) for text in respellings(entry_id))
        page = link_key(link)
        # A page without a path is that of a site. Entries that link to it may come one after the other.
        is_home = page == home or set(page).isdisjoint("/?")
        item = replace(item, id=identity)
        entries.append(SourceItem(item, page, content_digest(root, ignore), words_in(root), is_home, respelt))
    entries = _distinct(entries, skipped)
    if len(entries) > MAX_ITEMS:
        reason = f"the document has more than {MAX_ITEMS} items; the newest ones were kept"
        skipped.append(SkippedItem(0, f"{len(entries) - MAX_ITEMS} items: {reason}"))
        entries = entries[-MAX_ITEMS:]
    return SourceItems(tuple(_with_source(entry, document, first_url) for entry in entries), tuple(skipped))


def _with_source(entry: SourceItem, document: FeedDocument, first_url: str) -> SourceItem:
    if entry.item.deleted:
        return entry
    payload = with_source(entry.item.payload, document.id, document.title, first_url)
    return replace(entry, item=replace(entry.item, payload=payload))


def entry_words(payload: bytes) -> EntryWords:
    """The title of a stored entry, a digest of its text or else of its enclosures, and the time of its publication."""
    return words_in(parse_stored(payload))


def _distinct(entries: Iterable[SourceItem], skipped: list[SkippedItem]) -> list[SourceItem]:
    """Leaves out all but the newest of entries that nothing distinguishes (SRC-069, SRC-070)."""
    groups: dict[str, list[tuple[int, SourceItem]]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault(entry.item.id, []).append((place, entry))
    distinct: list[tuple[int, SourceItem]] = []
    for group in groups.values():
        different = places_of([entry for _, entry in group])
        for number, (place, entry) in enumerate(group):
            if number in different:
                distinct.append((place, entry))
            else:
                skipped.append(SkippedItem(place, "a newer item is the same"))
    return [entry for _, entry in sorted(distinct, key=lambda pair: pair[0])]


def content_digest(root: Element, ignore: Collection[str] = ()) -> str:
    """A digest of what an entry says. The order of its elements, its id and its source do not count (SRC-071).

    A name in `ignore` leaves out elements of this local name; a name that starts with "?" leaves out a parameter of all
    addresses ("?*" leaves out all parameters) (SRC-072).
    """
    names = {name for name in ignore if not name.startswith("?")}
    parts = [
        canonical(child)
        for child in root.iterchildren("*")
        if child.tag not in _OWN and child.tag.rpartition("}")[2] not in names
    ]
    content = b"\n".join(sorted(part.strip() for part in parts))
    for name in ignore:
        if name.startswith("?"):
            content = _parameter(name[1:]).sub(rb"\1", content)
    return sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _parameter(name: str) -> re.Pattern[bytes]:
    """A parameter of an address in XML, where HTML in it has "&" escaped once more."""
    pattern = rb"[^=&\"'\s<>]*" if name == "*" else re.escape(name.encode())
    return re.compile(rb"(\?|&(?:amp;)+)" + pattern + rb"=[^&\"'\s<>]*")


def fitted(item: ImportedItem, now_us: int, created_us: int | None, atom_id: str) -> ImportedItem:
    """The item with dates that can be true, and the atom:id that it has in the node, "" if it is new.

    `created_us` is the time of first sight, None if that is now. A date that lies more than a day ahead is left out,
    and the time of first sight takes its place (SRC-056). A known item that has changed without a date of change gets
    the time now (SRC-071).
    """
    first_us = now_us if created_us is None else created_us
    is_ahead = item.published_us is not None and item.published_us > first_us + MAX_AHEAD_US
    published_us = None if is_ahead else item.published_us
    updated_us = item.updated_us
    if updated_us is not None and (
        updated_us > now_us + MAX_AHEAD_US or (is_ahead and updated_us == item.published_us)
    ):
        updated_us = None
    drop = {
        tag
        for tag, before_us, after_us in (
            (atom.PUBLISHED, item.published_us, published_us),
            (atom.UPDATED, item.updated_us, updated_us),
        )
        if before_us is not None and after_us is None
    }
    changed_us = now_us if created_us is not None and updated_us is None else None
    payload = item.payload
    if drop or atom_id or changed_us is not None:
        payload = rewritten(payload, drop, atom_id, changed_us)
    return replace(item, published_us=published_us, updated_us=updated_us, payload=payload)


def with_source(payload: bytes, feed_id: str, title: str, url: str) -> Payload:
    """Returns the entry with an atom:source that names its feed (RFC 4287 4.2.11).

    A source that the entry has already stays. The id is left out if it is not a URI. Everybody who reads the entry
    reads the address, so it has no secrets.
    """
    entry = parse_stored(payload)
    if next(entry.iterchildren(atom.SOURCE), None) is not None:
        return payload_of(payload)
    source = etree.SubElement(entry, atom.SOURCE)
    if is_uri(feed_id):
        etree.SubElement(source, atom.ID).text = without_secrets(feed_id)
    etree.SubElement(source, atom.TITLE).text = title
    etree.SubElement(source, atom.LINK, {"rel": "self", "href": without_secrets(url)})
    return Payload.of(entry)

"""Feed documents: any supported format to items with Atom payloads.

XML (RSS-001, RSS-002, A-122 to A-125), JSON (A-35) and outlines (SF-008) alike; deletions in all their forms (A-18,
SF-091).
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom_reader import ATOM
from smartfeeds.formats.distinct import told_apart
from smartfeeds.formats.document_format import DocumentFormat, Drafts, Reader
from smartfeeds.formats.encodings import in_utf8, in_utf8_exactly
from smartfeeds.formats.feed_document import FeedDocument, FeedDraft, ImportedItem, ItemDraft, SkippedItem
from smartfeeds.formats.growth import ItemGrowth, check_scope
from smartfeeds.formats.json_text import json_feed_start, load_json, looks_like_json
from smartfeeds.formats.links import is_uri, rebase
from smartfeeds.formats.loader import load
from smartfeeds.formats.opml import OutlineDocument, single_outline
from smartfeeds.formats.opml_items import read_lines
from smartfeeds.formats.payload import accept_payload, with_id_and_title
from smartfeeds.formats.refusals import check_kind, json_refusal, root_refusal
from smartfeeds.formats.rss import read_rss_item
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.rss_writer import RSS
from smartfeeds.formats.xml import Element

_NO_TIME = -(2**63)
T = TypeVar("T")
R = TypeVar("R")


def read_feed(
    formats: Collection[DocumentFormat],
    data: bytes,
    base: str = "",
    charset: str = "",
    *,
    doubles: bool = False,
    most: int | None = None,
) -> FeedDocument:
    """The feed in `data`, in one of some formats, which came from the address `base` where that is known, with the
    charset of its Content-Type.

    Of several items of one id the newest is kept, with `doubles` all of them. At most `most` items are read. Items that
    cannot be kept are in `skipped`. Raises FormatError for a document that is no feed, and FeedError(INVALID_PAYLOAD)
    or FeedError(PAYLOAD_TOO_BIG) for a document that cannot be read.
    """
    base = rebase("", base)
    notes: list[str] = []
    text = _claimed(data, (each.text for each in formats))
    if text is not None:
        head, entries = text.read(data, base)
    else:
        check_kind(data)
        data, notes, _ = in_utf8(data, charset)
        start = -1 if looks_like_json(data) else json_feed_start(data)
        if start > 0:
            data = data[start:]
            notes.append("what stands before the feed was skipped")
        head, entries = (_read_json if looks_like_json(data) else _read_xml)(formats, data, base)
    head.repairs = [*notes, *head.repairs]
    if most is not None:
        entries = _first(entries, most, head.warnings)
    return collected(head, entries, len(data), doubles=doubles)


def _claimed(document: T, readers: Iterable[Reader[T, R] | None]) -> Reader[T, R] | None:
    """The reader that claims a document. Later formats are asked first: activities, which the kernel reads, are
    recognised by members that a JSON Feed may have, too."""
    claims = [reader for reader in readers if reader is not None and reader.claims(document)]
    return claims[-1] if claims else None


def _first(
    entries: Iterable[ItemDraft | SkippedItem], most: int, warnings: list[str]
) -> Iterator[ItemDraft | SkippedItem]:
    for count, entry in enumerate(entries):
        if count >= most:
            warnings.append(f"the document has more than {most} items, of which the first ones were read")
            return
        yield entry


def collected(
    head: FeedDraft, entries: Iterable[ItemDraft | SkippedItem], size_bytes: int, *, doubles: bool = False
) -> FeedDocument:
    """The document with this head and these entries, which was read from so many bytes."""
    scope = head.id or head.link
    items: list[tuple[int, ImportedItem]] = []
    skipped: list[SkippedItem] = []
    growth = ItemGrowth(size_bytes)
    for entry in entries:
        if isinstance(entry, SkippedItem):
            skipped.append(entry)
            continue
        try:
            item = _item(entry, scope)
        except FeedError as error:
            skipped.append(SkippedItem(entry.index, error.text or error.condition.value))
            continue
        growth.add(len(item.payload))
        items.append((entry.index, item))
    if head.partial and not items:
        raise FeedError(Condition.INVALID_PAYLOAD, f"no item is whole: {head.repairs[-1].partition(';')[0]}")
    return FeedDocument(
        format=head.format,
        id=head.id,
        title=head.title,
        link=head.link,
        description=head.description,
        channel=head.channel,
        items=tuple(item for _, item in items) if doubles else _distinct(items, skipped),
        skipped=tuple(sorted(skipped, key=lambda item: item.index)),
        warnings=(*head.repairs, *head.warnings),
        repairs=tuple(head.repairs),
        partial=head.partial,
        oldest_on_top=head.oldest_on_top,
        paging=head.paging,
    )


def read_lines_by_index(document: OutlineDocument, size_bytes: int, base: str = "") -> dict[int, ImportedItem]:
    """The items in an outline, which was read from so many bytes, by their place from top to bottom, counted from 0.
    Lines that cannot be kept are left out."""
    _head, entries = read_lines(document, rebase("", base))
    growth = ItemGrowth(size_bytes)
    items: dict[int, ImportedItem] = {}
    for entry in entries:
        if isinstance(entry, SkippedItem):
            continue
        try:
            item = _item(entry, "")
        except FeedError:
            continue  # the caller reports each line that is missing
        growth.add(len(item.payload))
        items[entry.index] = item
    return items


def document_bytes(body: bytes, charset: str) -> bytes:
    """The body of an HTTP response as a document with sync data that needs nobody to name its encoding.

    `charset` is the parameter of the Content-Type (RFC 7303 3). JSON has one encoding only (RFC 8259 8.1).
    """
    return body if looks_like_json(body) else in_utf8_exactly(body, charset)


def read_one(root: Element, size_bytes: int, base: str = "") -> ImportedItem:
    """The item in an entry, RSS item or outline without a feed around it, which was read from so many bytes.

    Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) if it cannot be kept.
    """
    check_scope(root)
    base = rebase("", base)
    if rss_name(root) == "item":
        head, entries = read_rss_item(root, base)
    elif root.tag == "outline":
        head, entries = read_lines(OutlineDocument({}, (single_outline(root),)), base)
    else:
        head, entries = _read_root((ATOM, RSS), root, base)
    entry = next(entries, SkippedItem(0, "there is nothing in it"))
    if isinstance(entry, SkippedItem):
        raise FeedError(Condition.INVALID_PAYLOAD, f"the item cannot be read: {entry.reason}")
    item = _item(entry, head.id or head.link)
    ItemGrowth(size_bytes).add(len(item.payload))
    return item


def _read_json(formats: Collection[DocumentFormat], data: bytes, base: str) -> Drafts:
    value, warnings, partial = load_json(data, repair=True)
    reader = _claimed(value, (each.json for each in formats))
    if reader is None:
        raise json_refusal(value)
    head, entries = reader.read(value, base)
    head.repairs, head.partial = warnings, partial
    return head, entries


def _read_xml(formats: Collection[DocumentFormat], data: bytes, base: str) -> Drafts:
    root, warnings, partial = load(data)
    check_scope(root)
    head, entries = _read_root(formats, root, base)
    head.repairs, head.partial = warnings, partial
    if partial:
        # An item that is missing from a complete feed has been retracted, but here it may be behind the damage.
        head.paging = replace(head.paging, complete=False)
    return head, entries


def _read_root(formats: Collection[DocumentFormat], root: Element, base: str) -> Drafts:
    reader = _claimed(root, (each.xml for each in formats))
    if reader is None:
        raise root_refusal(root)
    return reader.read(root, base)


def _item(draft: ItemDraft, scope: str) -> ImportedItem:
    """Canonical payload and final id. Raises FeedError for an entry beyond the limits of payloads."""
    payload = accept_payload(draft.entry)
    item_id, by_link = draft.item_id, draft.by_link
    if not item_id:
        item_id = _page_of(draft.entry)
        by_link = bool(item_id)
        item_id = item_id or _content_id(draft.entry, scope, payload)
        draft.warnings.append("the item has no id; one was made of its content")
    elif len(item_id.encode()) > MAX_ID_BYTES:
        item_id = atom.digest_id(item_id)
        draft.warnings.append(f"the id is longer than {MAX_ID_BYTES} bytes; a digest takes its place")
    payload = with_id_and_title(payload, item_id if is_uri(item_id) else "")
    warnings = tuple(draft.warnings)
    return ImportedItem(item_id, draft.published_us, draft.updated_us, payload, draft.deleted, warnings, by_link)


def _page_of(entry: Element) -> str:
    """The address of the page of an entry, "" if it has none. It stays the same over polls."""
    links = entry.iterchildren(atom.LINK)
    return next((link.get("href", "") for link in links if link.get("rel", "alternate") == "alternate"), "")


def _content_id(entry: Element, scope: str, payload: bytes) -> str:
    """The id of an entry without a page, the same over polls: a digest of feed, title, text and enclosures (A-122)."""
    links = [(link.get("rel", "alternate"), link.get("href", "")) for link in entry.iterchildren(atom.LINK)]
    nodes = [entry.find(tag) for tag in (atom.TITLE, atom.SUMMARY, atom.CONTENT)]
    texts = ["" if node is None else atom.string_of(node).strip() for node in nodes]
    parts = [*texts, *(href for rel, href in links if rel == "enclosure")]
    return atom.digest_id(scope, *(parts if any(parts) else [payload.decode()]))


def _distinct(items: list[tuple[int, ImportedItem]], skipped: list[SkippedItem]) -> tuple[ImportedItem, ...]:
    """One item an id: the newest, without dates the first, because feeds have their newest on top (A-124). Different
    entries without an id of their own are told apart (SRC-069)."""
    groups: dict[str, list[tuple[int, ImportedItem]]] = {}
    for index, item in reversed(items):
        groups.setdefault(item.id, []).append((index, item))
    distinct: list[tuple[int, ImportedItem]] = []
    for item_id, group in groups.items():
        places = told_apart([item for _, item in group]) if len(group) > 1 else {0: group[0][1]}
        if not places:
            newest = max(range(len(group)), key=lambda place: (_time_us(group[place][1]), place))
            places = {newest: group[newest][1]}
        reason = f"a newer item has the same id: {item_id[:60]}"
        skipped += [SkippedItem(index, reason) for place, (index, _) in enumerate(group) if place not in places]
        for place, item in places.items():
            if len(group) > 1:
                what = "the newest was kept" if len(places) == 1 else "those that differ have ids of their content"
                warning = f"the document has several items of this id; {what}"
                item = replace(item, warnings=(*item.warnings, warning))
            distinct.append((group[place][0], item))
    distinct.sort(key=lambda pair: pair[0])
    return tuple(item for _, item in distinct)


def _time_us(item: ImportedItem) -> int:
    return _NO_TIME if item.time_us is None else item.time_us

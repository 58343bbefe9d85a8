"""Feed documents: any supported format to items with Atom payloads.

XML (RSS-001, RSS-002, A-122 to A-125), JSON (A-35) and outlines (SF-008) alike; deletions in all their forms (A-18,
SF-091).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.features.documents.ess import looks_like_ess
from smartfeeds.features.documents.json_feed import is_json_feed, read_json_feed
from smartfeeds.formats import atom
from smartfeeds.formats.activity import is_collection, read_activities
from smartfeeds.formats.atom_reader import from_atom03, read_atom
from smartfeeds.formats.distinct import told_apart
from smartfeeds.formats.encodings import in_utf8, in_utf8_exactly
from smartfeeds.formats.growth import ItemGrowth, check_scope
from smartfeeds.formats.items import FeedDocument, FeedDraft, ImportedItem, ItemDraft, SkippedItem
from smartfeeds.formats.json_text import json_feed_start, load_json, looks_like_json
from smartfeeds.formats.links import is_uri, rebase
from smartfeeds.formats.loader import load
from smartfeeds.formats.namespaces import ATOM03_NS, RDF_NS
from smartfeeds.formats.opml import OutlineDocument, is_outline, outline_of, single_outline
from smartfeeds.formats.opml_items import read_lines
from smartfeeds.formats.payload import accept_payload, with_id_and_title
from smartfeeds.formats.refusals import check_kind, json_refusal, root_refusal
from smartfeeds.formats.rss import read_rss, read_rss_item
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.xml import Element

_NO_TIME = -(2**63)
_ATOM03_ROOTS = frozenset({f"{{{ATOM03_NS}}}feed", f"{{{ATOM03_NS}}}entry"})
_ESS = (
    "the document is an ESS or NNO file, which has neither texts nor addresses of items: smartfeeds nno reads it, "
    "and with --full downloads the items that it means"
)


def read_document(
    data: bytes, base: str = "", charset: str = "", *, doubles: bool = False, most: int | None = None
) -> FeedDocument:
    """The feed in `data`, which came from the address `base` where that is known, with the charset of its Content-Type.

    Of several items of one id the newest is kept, with `doubles` all of them. At most `most` items are read. Items that
    cannot be kept are in `skipped`. Raises FormatError for a document that is no feed, and FeedError(INVALID_PAYLOAD)
    or FeedError(PAYLOAD_TOO_BIG) for a document that cannot be read.
    """
    if looks_like_ess(data):
        raise FormatError(_ESS)
    check_kind(data)
    base = rebase("", base)
    data, notes, _ = in_utf8(data, charset)
    start = -1 if looks_like_json(data) else json_feed_start(data)
    if start > 0:
        data = data[start:]
        notes.append("what stands before the feed was skipped")
    head, entries = (_read_json if looks_like_json(data) else _read_xml)(data, base)
    head.repairs = [*notes, *head.repairs]
    if most is not None:
        entries = _first(entries, most, head.warnings)
    return collected(head, entries, len(data), doubles=doubles)


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
        head, entries = _read_root(root, base)
    entry = next(entries, SkippedItem(0, "there is nothing in it"))
    if isinstance(entry, SkippedItem):
        raise FeedError(Condition.INVALID_PAYLOAD, f"the item cannot be read: {entry.reason}")
    item = _item(entry, head.id or head.link)
    ItemGrowth(size_bytes).add(len(item.payload))
    return item


def _read_json(data: bytes, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    value, warnings, partial = load_json(data, repair=True)
    if is_json_feed(value):
        head, entries = read_json_feed(value, base)
    elif is_collection(value):
        head, entries = read_activities(value, base)
    else:
        raise json_refusal(value)
    head.repairs, head.partial = warnings, partial
    return head, entries


def _read_xml(data: bytes, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    root, warnings, partial = load(data)
    check_scope(root)
    head, entries = read_lines(outline_of(root), base) if is_outline(root) else _read_root(root, base)
    head.repairs, head.partial = warnings, partial
    if partial:
        # An item that is missing from a complete feed has been retracted, but here it may be behind the damage.
        head.paging = replace(head.paging, complete=False)
    return head, entries


def _read_root(root: Element, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    if root.tag in (atom.FEED, atom.ENTRY):
        return read_atom(root, base)
    if root.tag in _ATOM03_ROOTS:
        head, entries = read_atom(from_atom03(root), base)
        head.format = head.format.replace("1.0", "0.3")
        return head, entries
    if root.tag == f"{{{RDF_NS}}}RDF" or rss_name(root) in ("rss", "channel"):
        return read_rss(root, base)
    raise root_refusal(root)


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

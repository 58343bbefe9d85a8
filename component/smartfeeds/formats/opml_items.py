"""A feed as an outline, written and read: one outline an item, in the order of the feed (SF-008, A-153).

An outline is a line of text. A written item keeps its title, page, dates, categories and plain text, and elements of
other namespaces as children; the rest is reported as lost. Its id, its text and the time of its last change are
attributes in a namespace of ours, because OPML 2.0 ("Extending OPML") allows no other additions. `_note`, which some
outliners use, is read.

Any OPML document is read. An outline goes from top to bottom, so its first line is the oldest item, and lines at all
levels make one flat list. A list of feeds is an outline too: each feed in it becomes an item with links to the feed and
its page. What an outline includes is never opened.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom, opml, representation
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.document_format import DocumentFormat, Drafts, FeedExport, Reader
from smartfeeds.formats.entry import NO_TEXT, Entry, EntryLink, read_entry
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.feed_document import FeedDraft, FormatLoss, ItemDraft, SkippedItem
from smartfeeds.formats.links import is_uri, resolve
from smartfeeds.formats.losses import EntryPart, losses_of, lost_of
from smartfeeds.formats.opml import (
    CHANGED,
    ITEM_ID,
    NOTE,
    PLACEHOLDER,
    Outline,
    OutlineDocument,
    flattened,
    is_outline,
    outline_of,
)
from smartfeeds.formats.plain import LOOKS_LIKE_HTML
from smartfeeds.formats.rss_channel import NO_CHANNEL, source_cloud, source_cloud_element
from smartfeeds.formats.xml import Element, canonical, parse_stored

_LOST = lost_of({EntryPart.LABELS, EntryPart.SOURCE_TITLE, EntryPart.EXTENSIONS, EntryPart.ENCLOSURES_OFF_WEB})
# The type of a link to a feed of any format, as in `type="rss"` of a subscription list.
FEED_TYPE = "application/rss+xml"
# A title that is made of the text: what an outliner shows of a line.
_LINE_CHARACTERS = 80
# `type` says nothing that the other attributes do not say.
_READ = frozenset(
    {"type", "title", "url", "htmlurl", "xmlurl", "created", "category", "description", "_note"}
    | {ITEM_ID, CHANGED, NOTE, opml.ADDRESS}
)


def write_items(head: FeedHead, items: Iterable[Item], losses: list[FormatLoss]) -> Iterator[bytes]:
    """The outline in pieces, one an item; what it lacks is added to `losses`. Raises ForbiddenCharacterError."""
    return opml.write_outline(outline_head(head), opml.never_empty(_outlines(items, losses), "no entries"))


def outline_head(head: FeedHead) -> OutlineDocument:
    """The outline of a feed without its items."""
    texts = {
        "title": head.title,
        "dateModified": format_rfc822(head.updated_us),
        "ownerName": ", ".join(head.channel.authors),
    }
    url = head.channel.cloud_url
    clouds = (source_cloud_element(url).encode(),) if url else ()
    return OutlineDocument({name: text for name, text in texts.items() if text}, (), head_extensions=clouds)


def _outlines(items: Iterable[Item], losses: list[FormatLoss]) -> Iterator[Outline]:
    for item in items:
        entry = read_entry(item)
        if entry.deleted:
            losses.append(FormatLoss(item.id, "a deleted item: OPML has no form for it"))
        else:
            yield outline_of_entry(entry, losses)


def outline_of_entry(entry: Entry, losses: list[FormatLoss]) -> Outline:
    """An entry as one line; what the line lacks is added to `losses`."""
    body = next((text for text in (entry.content, entry.summary) if text is not None and text.value.strip()), NO_TEXT)
    note = body.plain if body.is_markup else body.value.strip()
    title = entry.title.plain
    if not title:
        title = body.plain
        title = title if len(title) <= _LINE_CHARACTERS else title[: _LINE_CHARACTERS - 1].rstrip() + "\u2026"
        note = "" if title == body.plain else note
    terms = [category.term for category in entry.categories if "," not in category.term]
    link = next((link for link in entry.links if link.rel == "related" and link.type == FEED_TYPE), None)
    feed = "" if link is None else link.href
    # OPML 2.0, "Subscription lists": the addresses of a feed and of its page have other names than that of a page.
    links = {"type": "rss", "xmlUrl": feed, "htmlUrl": entry.alternate}
    if not feed:
        links = {"type": "link" if entry.alternate else "", "url": entry.alternate}
    attributes = {
        **links,
        "created": format_rfc822(entry.issued_us),
        "category": ",".join(terms),
        NOTE: note,
        ITEM_ID: entry.item_id,
        CHANGED: format_datetime(entry.changed_us) if entry.changed_us != entry.issued_us else "",
    }
    # OPML 2.0, "Extending OPML": elements of others must be in a namespace.
    named = tuple(data for data in entry.extensions if parse_stored(data).tag.startswith("{"))
    # The attribute `xmlUrl` has all of a link to the feed that has neither title nor length.
    others = [other for other in entry.links if other != EntryLink("related", feed, FEED_TYPE)]
    losses += losses_of(replace(entry, links=others), _LOST)
    if len(terms) < len(entry.categories):
        losses.append(FormatLoss(entry.item_id, "categories with a comma in them"))
    if len(named) < len(entry.extensions):
        losses.append(FormatLoss(entry.item_id, "elements without a namespace"))
    return Outline(title, {name: value for name, value in attributes.items() if value}, extensions=named)


def read_lines(document: OutlineDocument, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head, and an item for each line; a line without a text, an address and an id is skipped."""
    head = FeedDraft(f"OPML {document.version}", title=document.title, oldest_on_top=True)
    head.channel = replace(NO_CHANNEL, cloud_url=source_cloud(map(parse_stored, document.head_extensions)))
    head.warnings += document.warnings
    if any(outline.children for outline in document.outlines):
        head.warnings.append("the outline has several levels; its lines were read as a flat list")
    return head, _lines(document, base)


def _lines(document: OutlineDocument, base: str) -> Iterator[ItemDraft | SkippedItem]:
    uses: Counter[str] = Counter()
    above: list[str] = []  # of each level the key of the last line
    for index, (level, outline) in enumerate(flattened(document.outlines)):
        key = atom.digest_id(*above[level - 1 : level], outline.text)
        if PLACEHOLDER in outline.attributes:
            continue
        del above[level:]
        above.append(key)
        line = _OutlineBuilder(outline, index, base)
        if not (outline.text.strip() or line.addresses or line.own_id):
            yield SkippedItem(index, "the outline has no text, address or id")
            continue
        yield line.read(_unused(line.own_id or next(iter(line.addresses), key), uses, own=bool(line.own_id)))


def _unused(item_id: str, uses: Counter[str], *, own: bool) -> str:
    """An id that was made of a line's address or text, and that no line above has: equal lines are counted."""
    uses[item_id] += 1
    turn = uses[item_id]
    # An id that a line came with stays, also a second time: the reader of feeds then keeps the newest of the two.
    return item_id if own or turn == 1 else atom.digest_id(item_id, str(turn))


class _OutlineBuilder(EntryBuilder):
    """One outline on its way to an atom:entry. `own_id` is the id it came with, `addresses` those it links to."""

    def __init__(self, outline: Outline, index: int, base: str) -> None:
        super().__init__(index, base)
        self.outline = outline
        self.named = opml.named(outline)
        self.feed = opml.feed_url(self.named)
        self.extensions = [parse_stored(extension) for extension in outline.extensions]
        sync_ids = (node.get("id", "").strip() for node in self.extensions if node.tag in atom.SYNCS)
        self.own_id = self.text(ITEM_ID) or next(sync_ids, "")
        self.addresses = [
            resolve(base, address) for name in ("xmlurl", "url", "htmlurl") if (address := self.text(name).strip())
        ]

    def text(self, name: str) -> str:
        return self.named.get(name, "")

    def read(self, item_id: str) -> ItemDraft:
        """The whole item."""
        self.draft.item_id = item_id
        self.add_id(item_id, given=False)
        title = self.outline.text.strip()
        # What was written here is plain text; others write HTML too (OPML 2.0, "text attribute").
        is_html = ITEM_ID not in self.named and LOOKS_LIKE_HTML.search(title) is not None
        self.add(atom.TITLE, title, type="html" if is_html else "")
        self.add_times(self.date(self.text("created")), self.date(self.text(CHANGED)))
        self._links()
        for term in self.text("category").split(","):
            self.add_category(term)
        for tag, text in (
            (atom.SUMMARY, self.text("description")),
            (atom.CONTENT, self.text(NOTE) or self.text("_note")),
        ):
            if text.strip():
                self.add(tag, text)
        self._rest()
        return self.draft

    def _links(self) -> None:
        url = self.text("url").strip()
        self.add_link("alternate", self.text("htmlurl").strip() or (url if url != self.feed else ""))
        self.add_link("related", self.feed, FEED_TYPE)
        if is_uri(self.text(opml.ADDRESS)):
            self.add_link("related", self.text(opml.ADDRESS))
        if self.text("type").strip().lower() == "include":
            self.warn("what the outline includes was not opened")

    def _rest(self) -> None:
        """Elements of others, which are kept, and attributes of others, which have no place in an item."""
        left_out = sorted(name.rpartition("}")[2] for name in self.named if name not in _READ)
        if left_out:
            self.warn(f"attributes that an item has no place for were left out: {', '.join(left_out)[:80]}")
        if self.outline.extensions:
            children = b"".join(self.outline.extensions)
            self.draft.entry = parse_stored(atom.with_child(canonical(self.entry), children))
        self.draft.deleted = atom.is_deletion(self.draft.entry, atom.SYNCS)


def _read(root: Element, base: str) -> Drafts:
    return read_lines(outline_of(root), base)


def _pieces(job: FeedExport) -> Iterator[bytes]:
    return write_items(job.head, job.items, job.losses)


def _losses(head: FeedHead) -> str:
    return "the description of the feed" if head.subtitle else ""


OPML = DocumentFormat(
    "opml", "OPML 2.0", _pieces, losses=_losses, xml=Reader(is_outline, _read), representation=representation.OPML
)

"""The lines of an outline as items (SF-008): what `opml_items` has written, and any other OPML document.

An outline goes from top to bottom, so its first line is the oldest item; lines at all levels make one flat list. A list
of feeds is an outline too: each feed in it is an item that links to the feed and to its page. What an outline includes
is never opened.
"""

from collections import Counter
from collections.abc import Iterator

from smartfeeds.formats import atom
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.items import FeedDraft, ItemDraft, SkippedItem
from smartfeeds.formats.links import is_uri, resolve
from smartfeeds.formats.opml import ADDRESS, CHANGED, ITEM_ID, NOTE, PLACEHOLDER, Outline, OutlineDocument, flattened
from smartfeeds.formats.rss import LOOKS_LIKE_HTML
from smartfeeds.formats.xml import Element, canonical, parse_stored

# `type` says nothing that the other attributes do not say.
_READ = frozenset(
    {"type", "title", "url", "htmlurl", "xmlurl", "created", "category", "description", "_note"}
    | {ITEM_ID, CHANGED, NOTE, ADDRESS}
)


def read_lines(document: OutlineDocument, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head, and an item for each line; a line without a text, an address and an id is skipped."""
    head = FeedDraft(f"OPML {document.version}", title=document.title, oldest_on_top=True)
    head.warnings += document.warnings
    if any(outline.children for outline in document.outlines):
        head.warnings.append("the outline has several levels; its lines were read as a flat list")
    return head, _lines(document, base)


def _lines(document: OutlineDocument, base: str) -> Iterator[ItemDraft | SkippedItem]:
    used: Counter[str] = Counter()
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
        yield line.read(_unused(line.own_id or next(iter(line.addresses), key), used, own=bool(line.own_id)))


def _unused(item_id: str, used: Counter[str], *, own: bool) -> str:
    """An id that was made of a line's address or text, and that no line above has: equal lines are counted."""
    used[item_id] += 1
    turn = used[item_id]
    return item_id if own or turn == 1 else atom.digest_id(item_id, str(turn))


class _OutlineBuilder(EntryBuilder):
    """One outline on its way to an atom:entry. `own_id` is the id it came with, `addresses` those it links to."""

    def __init__(self, outline: Outline, index: int, base: str) -> None:
        super().__init__(index, base)
        self.outline = outline
        # Real lists spell the attributes in every case.
        self.named = {
            name if name.startswith("{") else name.lower(): value for name, value in outline.attributes.items()
        }
        self.extensions = [parse_stored(extension) for extension in outline.extensions]
        self.sync = next((node for node in self.extensions if node.tag in atom.SYNCS), None)
        self.own_id = self.text(ITEM_ID) or _sync_id(self.sync)
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
        page = self.text("htmlurl").strip() or self.text("url").strip()
        self.add_link("alternate", page)
        self.add_link("related", self.text("xmlurl").strip())
        if is_uri(self.text(ADDRESS)):
            self.add_link("related", self.text(ADDRESS))
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


def _sync_id(sync: Element | None) -> str:
    return "" if sync is None else sync.get("id", "").strip()

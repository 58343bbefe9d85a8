"""Reads Atom and RSS 2.0 feeds with sync data one item at a time (FeedSync 1.4, SSE 1.1).

The reader takes bytes as they arrive and yields items as they become complete; it does not keep items in memory. A
fault in an item is reported with that item, a fault in the document ends the reading. The reader opens no external
resource and rejects documents with a DTD.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from operator import itemgetter

from lxml import etree

from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.formats import atom
from smartfeeds.formats.atom_reader import FeedScope, adopt
from smartfeeds.formats.crowds import CrowdCheck
from smartfeeds.formats.dates import format_rfc822, parse_date
from smartfeeds.formats.growth import MAX_INHERITED_BYTES, ItemGrowth, check_scope, check_size
from smartfeeds.formats.links import rebase
from smartfeeds.formats.rss_channel import RSS_NAMESPACES, rss_name
from smartfeeds.formats.xml import (
    MAX_PAYLOAD_BYTES,
    STRICT_OPTIONS,
    XML_BASE,
    XML_LANG,
    Element,
    document_error,
    fault,
    language_of,
    new_element,
    size_bytes,
)
from smartfeeds.sync.markup import SyncItem, items_within, read_item
from smartfeeds.sync.record import MAX_CONFLICTS
from smartfeeds.sync.sharing import NO_SHARING, Sharing
from smartfeeds.sync.sharing_markup import SHARINGS, read_sharing
from smartfeeds.xml_names import PullParser

# Bytes that may arrive without completing an item. A larger item would fill the memory before it is rejected.
MAX_ITEM_BYTES = 4 * MAX_PAYLOAD_BYTES
HEAD_BYTES = 256 * 1024  # of a document: they have the start tag of the root
MAX_ITEMS = 1_000_000  # a merge has an index of all items in memory, 180 bytes for each

_ITEM_TAGS = (atom.ENTRY, *(f"{{{namespace}}}item" if namespace else "item" for namespace in sorted(RSS_NAMESPACES)))
_START_TAG = re.compile(rb"""<[^\s>/]+(?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*""")
_DEFAULT_NAMESPACE = re.compile(rb"""\sxmlns\s*=""")


class FeedFormat(Enum):
    """The document formats that can have sync data. The values are names for users."""

    ATOM = "Atom 1.0"
    RSS = "RSS 2.0"
    OPML = "OPML"


class PieceKind(Enum):
    """The treatment of an item of a document by the merge."""

    SYNCED = "synced"
    PLAIN = "plain"
    REFUSED = "refused"


@dataclass(slots=True)  # not frozen, because a frozen one takes twice the time to make
class DocumentPiece:
    """An item as read: its index in the document, counted from 0, and its bytes with all namespaces declared.

    `sync_item` is the sync data of a SYNCED item, without its content. `reason` says why an item was REFUSED.
    """

    index: int
    raw: bytes
    sync_item: SyncItem | None = None
    reason: str = ""

    @property
    def kind(self) -> PieceKind:
        """The treatment of the item by the merge."""
        if self.reason:
            return PieceKind.REFUSED
        return PieceKind.PLAIN if self.sync_item is None else PieceKind.SYNCED


def form_of(data: bytes) -> FeedFormat:
    """Returns the format of a document from its first bytes, which must include the start tag of the root.

    Raises FormatError for a document in another format, FeedError(INVALID_PAYLOAD) for XML that cannot be read.
    """
    CrowdCheck().feed(data)
    parser = PullParser(events=("start",), **STRICT_OPTIONS)
    failure = FeedError(Condition.INVALID_PAYLOAD, "the document has no root element at its start")
    try:
        parser.feed(data)
    except etree.XMLSyntaxError as error:
        failure = document_error(error)
    root = next(_events(parser), None)
    if root is None:
        raise failure
    return _form(root)


def _form(root: Element) -> FeedFormat:
    name = rss_name(root) or root.tag.rpartition("}")[2].lower()
    if root.tag == atom.FEED:
        return FeedFormat.ATOM
    if rss_name(root) == "rss":
        return FeedFormat.RSS
    if name in ("opml", "outlinedocument"):
        return FeedFormat.OPML
    raise FormatError(f"the root of the document is {name[:40]}; only Atom 1.0, RSS 2.0 and OPML can be merged")


def _events(parser: PullParser) -> Iterator[Element]:
    return map(itemgetter(1), parser.read_events())


class FeedReader:
    """Reads one feed. Call `feed` with its bytes, then `close`; both yield items in document order.

    `lenient` accepts dates of SSE in zones other than GMT (A-85). After `close` these attributes describe the head:
    `form`, `sharing`, `notes`, and `updated_us` (atom:updated or lastBuildDate, or None). `head` and `tail` return the
    bytes between which items can be written. Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) if the
    document cannot be read to its end.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.form = FeedFormat.ATOM
        self.sharing: Sharing = NO_SHARING
        self.notes: list[str] = []
        self.updated_us: int | None = None
        self.count = 0
        self._lenient = lenient
        self._declared: tuple[tuple[bytes, ...], bool] = ((), False)
        self._parser = PullParser(events=("end",), tag=_ITEM_TAGS, **STRICT_OPTIONS)
        self._crowds = CrowdCheck()
        self._since_item_bytes = 0
        self._root: Element | None = None
        self._holder: Element | None = None  # the root of Atom, the channel of RSS
        self._parent: Element | None = None
        self._done: Element | None = None
        self._updated: Element | None = None
        self._scope = FeedScope()
        self._inherited_bytes = 0
        self._growth = ItemGrowth()

    def read(self, chunks: Iterable[bytes]) -> Iterator[DocumentPiece]:
        """Yields the items of a whole document that arrives in chunks."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.close()

    def feed(self, data: bytes) -> Iterator[DocumentPiece]:
        """Yields the items that these bytes complete."""
        self._since_item_bytes += len(data)
        self._growth.source_bytes += len(data)
        self._crowds.feed(data)
        try:
            self._parser.feed(data)
        except etree.XMLSyntaxError as error:
            yield from self._pieces()  # items that were complete before the fault
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document {fault(error)}") from None
        yield from self._pieces()
        if self._since_item_bytes > MAX_ITEM_BYTES:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"item {self.count + 1} is larger than {MAX_ITEM_BYTES} bytes or has no end tag",
            )

    def close(self) -> Iterator[DocumentPiece]:
        """Yields the remaining items, then reads the head."""
        try:
            root = self._parser.close()
        except etree.XMLSyntaxError as error:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document {fault(error)}") from None
        self._begin(root)
        yield from self._pieces()
        self._drop_done()
        self._read_head(root)

    def _begin(self, root: Element) -> None:
        if self._root is not None:
            return
        if root.getroottree().docinfo.internalDTD is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document has a DTD; remove it")
        self._root = root
        self.form = _form(root)
        if self.form is FeedFormat.OPML:
            raise FeedError(
                Condition.INVALID_PAYLOAD, "the document is an OPML outline; a feed in Atom or RSS is required"
            )
        check_scope(root)
        authors = tuple(root.iterchildren(atom.AUTHOR))
        self._scope = FeedScope(rebase("", root.get(XML_BASE)), language_of(root), authors)
        # 0 if the feed has nothing that its items inherit
        self._inherited_bytes = len(self._scope.base) + len(self._scope.language) + sum(map(size_bytes, authors))
        if self._inherited_bytes > MAX_INHERITED_BYTES:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"the authors and the base address of the feed take more than {MAX_INHERITED_BYTES} bytes: too many to "
                "be repeated in each item",
            )

    def _pieces(self) -> Iterator[DocumentPiece]:
        for node in _events(self._parser):
            parent = node.getparent()
            if parent is None:
                continue
            if parent is not self._parent:
                if not self._holds_items(parent):
                    continue
                self._begin(node.getroottree().getroot())
            self._since_item_bytes = 0
            self._drop_done()
            self._parent = parent
            if self.count >= MAX_ITEMS:
                raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document has more than {MAX_ITEMS} items")
            # An item that left a view carries no content of its own. Merging it would delete or empty the item.
            if not atom.is_left(node):
                piece = self._piece(node)
                self._growth.add(len(piece.raw))
                yield piece
            self.count += 1
            self._done = node

    @staticmethod
    def _holds_items(parent: Element) -> bool:
        above = parent.getparent()
        if above is None:
            return parent.tag == atom.FEED
        return above.getparent() is None and rss_name(parent) == "channel"

    def _drop_done(self) -> None:
        """Removes the last item from the tree. This is possible only after the parser has passed it."""
        if self._done is not None and self._parent is not None:
            self._parent.remove(self._done)
            self._done = None

    def _piece(self, node: Element) -> DocumentPiece:
        sync_item, reason = None, ""
        try:
            if self._inherited_bytes:
                self._complete(node)
        except FeedError as error:
            reason = error.text
        raw = etree.tostring(node, encoding="utf-8", with_tail=False)
        try:
            if not reason:
                check_size(len(raw))
                sync_item = read_item(node, lenient=self._lenient, payload=False)
        except FeedError as error:
            reason = error.text
        return DocumentPiece(self.count, raw, sync_item, reason)

    def _complete(self, node: Element) -> None:
        """Adds to an item what it inherits from its feed: language, base address, authors.

        Items in conflicts are versions that could be in the feed themselves. They inherit from the feed only, not from
        the item around them, so that a version has the same bytes as winner and as loser. Raises FeedError for an item
        that grows too large by that.
        """
        # An item with more conflicts than this is rejected later, so counting further is pointless.
        items = [node, *islice(items_within(node), MAX_CONFLICTS)]
        if (len(items) - 1) * self._inherited_bytes > MAX_PAYLOAD_BYTES:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"the item is larger than {MAX_PAYLOAD_BYTES} bytes, counting the feed's authors in each conflict",
            )
        for item in items:
            if item.tag == atom.ENTRY:
                adopt(item, self._scope)
                continue
            for name, value in ((XML_LANG, self._scope.language), (XML_BASE, self._scope.base)):
                if value and item.get(name) is None:
                    item.set(name, value)

    def _read_head(self, root: Element) -> None:
        is_atom = self.form is FeedFormat.ATOM
        if is_atom and self.count and len(root.findall(atom.AUTHOR)) > len(self._scope.authors):
            self.notes.append("the feed's authors come after its entries, so the entries do not inherit them")
        children = list(root.iterchildren(etree.Element))
        self._holder = root if is_atom else next((node for node in children if rss_name(node) == "channel"), None)
        children = [] if self._holder is None else list(self._holder.iterchildren(etree.Element))
        sharing = next((node for node in children if node.tag in SHARINGS), None)
        self.sharing, notes = read_sharing(sharing, lenient=self._lenient)
        self.notes += notes
        for node in children:
            if node.tag == atom.UPDATED if is_atom else rss_name(node) == "lastbuilddate":
                text = (node.text or "").strip()
                self._updated, self.updated_us = node, parse_datetime(text) if is_atom else parse_date(text)

    def bring_forward(self, time_us: int | None) -> None:
        """Sets the date in the head to `time_us` if that is later."""
        if self._updated is None or time_us is None or (self.updated_us is not None and self.updated_us >= time_us):
            return
        self.updated_us = time_us
        self._updated.text = format_datetime(time_us) if self.form is FeedFormat.ATOM else format_rfc822(time_us)

    def head(self) -> bytes:
        """Returns the document up to its first item, without sx:sharing, which must not be published again (FS-014)."""
        root, holder = self._root, self._holder
        if root is None or holder is None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document has no channel")
        self._declared = _declarations(holder)
        lines = [b'<?xml version="1.0" encoding="UTF-8"?>', _start_tag(root)]
        if holder is not root:
            lines.append(_relative(_start_tag(holder), _declarations(root)))
        nodes = [node for node in holder.iterchildren(etree.Element) if node.tag not in SHARINGS]
        items = [self.line(etree.tostring(node, encoding="utf-8", with_tail=False)) for node in nodes]
        return b"".join([*(line + b"\n" for line in lines), *items])

    def line(self, item: bytes) -> bytes:
        """Returns an item as bytes for this document, without the declarations that the root already has. `head` must
        be called first.
        """
        return _relative(item, self._declared) + b"\n"

    def tail(self) -> bytes:
        """Returns the end of the document."""
        nodes = dict.fromkeys(node for node in (self._holder, self._root) if node is not None)
        return b"".join(f"</{_name(node)}>\n".encode() for node in nodes)


def _name(node: Element) -> str:
    local = node.tag.rpartition("}")[2]
    return f"{node.prefix}:{local}" if node.prefix else local


def _start_tag(node: Element) -> bytes:
    copy = new_element(node.tag, node.nsmap)
    for name, value in node.attrib.items():
        copy.set(name, value)
    return etree.tostring(copy, encoding="utf-8").removesuffix(b"/>") + b">"


def _declarations(node: Element) -> tuple[tuple[bytes, ...], bool]:
    """Returns the namespace declarations in force at a node, as bytes, and whether there is a default namespace."""
    tag: bytes = etree.tostring(new_element("{urn:x}x", node.nsmap), encoding="utf-8")
    declared = [text for text in re.findall(rb' xmlns(?::[^=]+)?="[^"]*"', tag) if not text.endswith(b'="urn:x"')]
    return tuple(declared), None in node.nsmap


def _relative(raw: bytes, declared: tuple[tuple[bytes, ...], bool]) -> bytes:
    """Returns an element's bytes for a place where the namespaces in `declared` are declared."""
    texts, has_default = declared
    match = _START_TAG.match(raw)
    if match is None:
        return raw
    tag = match[0]
    own_default = _DEFAULT_NAMESPACE.search(tag) is not None
    for text in texts:
        tag = tag.replace(text, b"")
    if has_default and not own_default:
        name = re.match(rb"<[^\s>/]+", tag)
        assert name is not None  # `_START_TAG` has matched the same name
        tag = name[0] + b' xmlns=""' + tag[name.end() :]
    elif not has_default:
        tag = tag.replace(b' xmlns=""', b"")
    return tag + raw[match.end() :]

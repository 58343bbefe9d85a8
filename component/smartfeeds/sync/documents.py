"""Atom and RSS 2.0 feeds with sync data, read one item at a time (FeedSync 1.4, SSE 1.1).

Bytes come in as they are read, items go out as they are complete, and of what has gone out nothing stays. A fault in
one item is told with that item; a fault in the document ends the reading. Nothing outside is opened, and a document
that defines entities is refused.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, cast

from lxml import etree

from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom_reader import FeedScope, adopt
from smartfeeds.formats.crowds import CrowdCheck
from smartfeeds.formats.dates import format_rfc822, parse_date
from smartfeeds.formats.growth import MAX_INHERITED_BYTES, Growth, check_scope
from smartfeeds.formats.links import rebase
from smartfeeds.formats.rss_channel import RSS_NAMESPACES, rss_name
from smartfeeds.formats.xml import (
    MAX_PAYLOAD_BYTES,
    XML_BASE,
    XML_LANG,
    Element,
    fault,
    language_of,
    new_element,
    size_bytes,
)
from smartfeeds.sync.markup import SyncItem, items_within, read_item
from smartfeeds.sync.record import MAX_CONFLICTS
from smartfeeds.sync.sharing import NOT_SAID, Sharing
from smartfeeds.sync.sharing_markup import SHARINGS, read_sharing

# What may come without completing an item: an item beyond it would have to be held in memory to be refused.
MAX_ITEM_BYTES = 4 * MAX_PAYLOAD_BYTES
MAX_ITEMS = 1_000_000

_ITEM_TAGS = (atom.ENTRY, *(f"{{{namespace}}}item" if namespace else "item" for namespace in sorted(RSS_NAMESPACES)))
_START_TAG = re.compile(rb"""<[^\s>/]+(?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*""")
_DEFAULT_NAMESPACE = re.compile(rb"""\sxmlns\s*=""")


class Form(Enum):
    """The formats that have sync data; the value is its name for people."""

    ATOM = "Atom 1.0"
    RSS = "RSS 2.0"
    OPML = "OPML"

    __hash__ = object.__hash__


class Kind(Enum):
    """What an item of a document is to the merge."""

    SYNCED = "synced"
    PLAIN = "plain"
    REFUSED = "refused"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Piece:
    """An item as it was found: its place, counted from 0, and its bytes, which stand for themselves.

    `found` is what a SYNCED item says, without its content; `reason` says why one was REFUSED.
    """

    index: int
    kind: Kind
    raw: bytes
    found: SyncItem | None = None
    reason: str = ""


def form_of(data: bytes) -> Form:
    """The format of a document by its beginning, which has to hold the start tag of its root.

    Raises FeedError(INVALID_PAYLOAD) for what is none.
    """
    CrowdCheck().feed(data)
    parser = etree.XMLPullParser(events=("start",), **_OPTIONS)
    try:
        parser.feed(data)
    except etree.XMLSyntaxError as error:
        first = next(iter(_events(parser)), None)
        if first is None:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document {fault(error)}") from None
        return _form(first)
    first = next(iter(_events(parser)), None)
    if first is None:
        raise FeedError(Condition.INVALID_PAYLOAD, "the document has no root element, or one that begins too late")
    return _form(first)


def _form(root: Element) -> Form:
    name = rss_name(root) or root.tag.rpartition("}")[2].lower()
    if root.tag == atom.FEED:
        return Form.ATOM
    if rss_name(root) == "rss":
        return Form.RSS
    if name in ("opml", "outlinedocument"):
        return Form.OPML
    raise FeedError(
        Condition.INVALID_PAYLOAD,
        f"the document is no feed that can be merged: that is Atom 1.0, RSS 2.0 or OPML, and its root is {name[:40]}",
    )


# What `strict_parser` has, for a parser that takes bytes as they come.
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


def _events(parser: etree.XMLPullParser) -> Iterator[Element]:
    for _, node in parser.read_events():
        yield cast("Element", node)


class FeedReader:
    """Reads one feed: `feed` its bytes, then `close`; what they yield are its items in document order.

    `lenient` reads dates of SSE in other zones (A-85). After `close` the head is known: `form`, `sharing`, `notes`,
    `updated_us` (atom:updated or lastBuildDate, None where it is not said), and `head` and `tail`, between which items
    may be written. Raises FeedError(INVALID_PAYLOAD) or
    FeedError(PAYLOAD_TOO_BIG) for a document that cannot be read whole.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.form = Form.ATOM
        self.sharing: Sharing = NOT_SAID
        self.notes: list[str] = []
        self.updated_us: int | None = None
        self.count = 0
        self._lenient = lenient
        self._declared: tuple[tuple[bytes, ...], bool] | None = None
        self._parser = etree.XMLPullParser(events=("end",), tag=_ITEM_TAGS, **_OPTIONS)
        self._crowds = CrowdCheck()
        self._since_item_bytes = 0
        self._root: Element | None = None
        self._parent: Element | None = None
        self._done: Element | None = None
        self._updated: Element | None = None
        self._scope = FeedScope()
        self._inherited_bytes = 0
        self._growth = Growth()

    def read(self, chunks: Iterable[bytes]) -> Iterator[Piece]:
        """The items of a whole document, whose bytes come in these pieces."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.close()

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The items that these bytes complete."""
        self._since_item_bytes += len(data)
        self._growth.source_bytes += len(data)
        self._crowds.feed(data)
        try:
            self._parser.feed(data)
        except etree.XMLSyntaxError as error:
            yield from self._pieces()  # what was complete before the fault
            raise self._fault(error) from None
        yield from self._pieces()
        if self._since_item_bytes > MAX_ITEM_BYTES:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG, f"item {self.count + 1} is larger than {MAX_ITEM_BYTES} bytes, or never ends"
            )

    def close(self) -> Iterator[Piece]:
        """The rest of the items; the head after them."""
        try:
            root = self._parser.close()
        except etree.XMLSyntaxError as error:
            raise self._fault(error) from None
        self._begin(root)
        yield from self._pieces()
        self._drop_done()
        self._read_head(root)

    @staticmethod
    def _fault(error: etree.XMLSyntaxError) -> FeedError:
        return FeedError(Condition.INVALID_PAYLOAD, f"the document {fault(error)}")

    def _begin(self, root: Element) -> None:
        if self._root is not None:
            return
        if root.getroottree().docinfo.internalDTD is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document has a DTD, which is not read here: leave it out")
        self._root = root
        self.form = _form(root)
        if self.form is Form.OPML:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document is an OPML outline, not a feed")
        check_scope(root)
        authors = tuple(root.iterchildren(atom.AUTHOR))
        self._scope = FeedScope(rebase("", root.get(XML_BASE)), language_of(root), authors)
        self._inherited_bytes = len(self._scope.base) + len(self._scope.language) + sum(map(size_bytes, authors))
        if self._inherited_bytes > MAX_INHERITED_BYTES:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"the authors and the base address of the feed take more than {MAX_INHERITED_BYTES} bytes: too many to "
                "be repeated in each item",
            )

    def _pieces(self) -> Iterator[Piece]:
        for node in _events(self._parser):
            parent = node.getparent()
            if parent is None:
                continue
            if parent is not self._parent:
                if not self._holds_items(parent):
                    continue
                self._begin(node.getroottree().getroot())
                self._parent = parent
            self._since_item_bytes = 0
            self._drop_done()
            if self.count >= MAX_ITEMS:
                raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document has more than {MAX_ITEMS} items")
            # An item that has left a view says nothing of itself: merged it would be a deletion, or an empty entry.
            if not atom.is_left(node):
                piece = self._piece(node)
                self._growth.add(len(piece.raw))
                yield piece
            self.count += 1
            cast("Any", node).clear(keep_tail=True)
            self._done = node

    @staticmethod
    def _holds_items(parent: Element) -> bool:
        above = parent.getparent()
        if above is None:
            return parent.tag == atom.FEED
        return above.getparent() is None and rss_name(parent) == "channel"

    def _drop_done(self) -> None:
        """An item can leave the tree once the parser has passed it."""
        if self._done is not None:
            parent = self._done.getparent()
            assert parent is not None
            parent.remove(self._done)
            self._done = None

    def _piece(self, node: Element) -> Piece:
        index = self.count
        too_large = f"the item is larger than {MAX_PAYLOAD_BYTES} bytes"
        # More of them are refused in any case.
        within = list(islice(items_within(node), MAX_CONFLICTS)) if self._inherited_bytes else []
        if len(within) * self._inherited_bytes > MAX_PAYLOAD_BYTES:
            raw = etree.tostring(node, encoding="utf-8", with_tail=False)
            return Piece(index, Kind.REFUSED, raw, reason=f"{too_large} with what its conflicts have of the feed")
        try:
            for item in (node, *within):
                self._complete(item)
        except FeedError as error:
            raw = etree.tostring(node, encoding="utf-8", with_tail=False)
            return Piece(index, Kind.REFUSED, raw, reason=error.text)
        raw = etree.tostring(node, encoding="utf-8", with_tail=False)
        if len(raw) > MAX_PAYLOAD_BYTES:
            return Piece(index, Kind.REFUSED, raw, reason=too_large)
        try:
            found = read_item(node, lenient=self._lenient, payload=False)
        except FeedError as error:
            return Piece(index, Kind.REFUSED, raw, reason=error.text)
        if found is None:
            return Piece(index, Kind.PLAIN, raw)
        return Piece(index, Kind.SYNCED, raw, found)

    def _complete(self, item: Element) -> None:
        """What an item has of its feed goes with it: language, base address, authors.

        The items in its conflicts are versions that could stand in the feed themselves: they get the same, and nothing
        of the item around them, so that a version has the same bytes as winner and as loser.
        """
        if item.tag == atom.ENTRY:
            adopt(item, self._scope)
            return
        if self._scope.language and item.get(XML_LANG) is None:
            item.set(XML_LANG, self._scope.language)
        if self._scope.base and item.get(XML_BASE) is None:
            item.set(XML_BASE, self._scope.base)

    def _read_head(self, root: Element) -> None:
        holder = self._holder(root)
        if (
            self.form is Form.ATOM
            and len(list(root.iterchildren(atom.AUTHOR))) > len(self._scope.authors)
            and self.count
        ):
            self.notes.append("the authors of the feed stand behind its entries, which are not given them")
        sharings = [] if holder is None else list(holder.iterchildren(*SHARINGS))
        self.sharing, notes = read_sharing(sharings[0] if sharings else None, lenient=self._lenient)
        self.notes += notes
        children = () if holder is None else holder.iterchildren(etree.Element)
        is_atom = self.form is Form.ATOM
        for node in children:
            if node.tag == atom.UPDATED if is_atom else rss_name(node) == "lastbuilddate":
                text = (node.text or "").strip()
                self._updated, self.updated_us = node, parse_datetime(text) if is_atom else parse_date(text)

    def bring_forward(self, time_us: int | None) -> None:
        """Says in the head that the feed was updated then, if that is later than what it says itself."""
        if self._updated is None or time_us is None or (self.updated_us is not None and self.updated_us >= time_us):
            return
        self.updated_us = time_us
        self._updated.text = format_datetime(time_us) if self.form is Form.ATOM else format_rfc822(time_us)

    def _holder(self, root: Element) -> Element | None:
        if self.form is Form.ATOM:
            return root
        return next((one for one in root.iterchildren(etree.Element) if rss_name(one) == "channel"), None)

    def head(self) -> bytes:
        """The document up to its first item, without sx:sharing, which is never published again (FS-014)."""
        assert self._root is not None
        root, holder = self._root, self._holder(self._root)
        lines = [b'<?xml version="1.0" encoding="UTF-8"?>', _start_tag(root)]
        if holder is None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the document has no channel")
        if holder is not root:
            lines.append(_relative(_start_tag(holder), _declarations(root)))
        declared = _declarations(holder)
        lines += [
            _relative(etree.tostring(node, encoding="utf-8", with_tail=False), declared)
            for node in holder.iterchildren(etree.Element)
            if node.tag not in SHARINGS
        ]
        return b"\n".join(lines) + b"\n"

    def line(self, item: bytes) -> bytes:
        """An item as it stands in this document: what the root declares already is left out."""
        assert self._root is not None
        if self._declared is None:
            holder = self._holder(self._root)
            self._declared = _declarations(self._root if holder is None else holder)
        return _relative(item, self._declared) + b"\n"

    def tail(self) -> bytes:
        """The end of the document."""
        assert self._root is not None
        root, holder = self._root, self._holder(self._root)
        nodes = [root] if holder is root or holder is None else [holder, root]
        return b"".join(b"</" + _name(node).encode() + b">\n" for node in nodes)


def _name(node: Element) -> str:
    local = node.tag.rpartition("}")[2]
    return f"{node.prefix}:{local}" if node.prefix else local


def _start_tag(node: Element) -> bytes:
    copy = new_element(node.tag, node.nsmap)
    for name, value in node.attrib.items():
        copy.set(name, value)
    return etree.tostring(copy, encoding="utf-8").removesuffix(b"/>") + b">"


def _declarations(node: Element) -> tuple[tuple[bytes, ...], bool]:
    """The namespace declarations in force at a node as they are written, and whether there is a default one."""
    tag: bytes = etree.tostring(new_element("{urn:x}x", node.nsmap), encoding="utf-8")
    declared = [text for text in re.findall(rb' xmlns(?::[^=]+)?="[^"]*"', tag) if not text.endswith(b'="urn:x"')]
    return tuple(declared), None in node.nsmap


def _relative(raw: bytes, declared: tuple[tuple[bytes, ...], bool]) -> bytes:
    """Bytes of an element for a place where namespaces are declared already."""
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
        assert name is not None
        tag = name[0] + b' xmlns=""' + tag[name.end() :]
    elif not has_default:
        tag = tag.replace(b' xmlns=""', b"")
    return tag + raw[match.end() :]

"""A payload as a value: canonical bytes, what their root is, and, on demand, their tree.

A payload is parsed once, when it enters the service, and made canonical once. The value parses its own bytes when its
tree or shape is first used, and at most once. Implements "items are always Atom entries" (SF-091, SF-092, D20, D22):
what an entry lacks is added to the bytes.
"""

import re
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import NamedTuple

from lxml import etree

from smartfeeds.core.times import PLAIN_SECOND, PLAIN_ZONE, format_datetime, parse_datetime
from smartfeeds.core.web_address import uri_of
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.xml import Element, canonical, canonical_text, check_limits, names_and_texts, parse_stored

_REQUIRED = frozenset({atom.ID, atom.TITLE, atom.UPDATED})
_ORIGINAL_CHARACTERS = 200
_DATES = (atom.UPDATED, atom.PUBLISHED)
_PLAIN_DATE = re.compile(rf"{PLAIN_SECOND}(\.[0-9]{{1,9}})?{PLAIN_ZONE}").fullmatch
# What no URI has in an attribute for an address or in the address of a person, and a percent sign that escapes nothing.
# A search for each kind of address begins with a text, which takes a tenth of the time of a search for all kinds.
_ODD_CHARACTER = rb"""(?:[\x00-\x20\x7f-\xff\\|^`{}\[\]]|%(?![0-9A-Fa-f]{2})|&(?:lt|gt|quot|\#))"""
_ODD_LINK, _ODD_SOURCE, _ODD_PERSON = (
    re.compile(start + _ODD_CHARACTER).search
    for start in (rb' href="[^"]*?', rb' src="[^"]*?', rb"uri(?: [^>]*)?>[^<]*?")
)
# C14N writes the white space that some servers do not pass on unchanged as character references.
_REFERENCE = b"&#x"
_LINE_END = re.compile(r"\r\n?")
_ATTRIBUTE_SPACE = re.compile(r"\r\n|[\t\n\r]")


class Shape(NamedTuple):
    """The properties of a payload's root that matter to nodes.

    `entry` is true for an atom:entry, `feed` for an atom:feed. `missing` are the tags of id, title and updated that one
    of these lacks; `valid_dates` is false if one of its dates is no RFC 3339 date. `synced` is true for an entry with
    sync data, `deletion` for one that is marked as deleted, `enclosure` for one with an enclosure link, `left` for one
    that stands for an item that has left a view. `removed` is true for every payload that followers of a view read as
    the removal of an item.
    """

    entry: bool = False
    feed: bool = False
    missing: frozenset[str] = frozenset()
    valid_dates: bool = True
    synced: bool = False
    deletion: bool = False
    enclosure: bool = False
    left: bool = False
    removed: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing has to be added to an entry or feed, or be corrected in it."""
        return self.valid_dates and not self.missing


_FOREIGN = Shape()
_ENTRY = Shape(entry=True)
_REMOVAL_MARKS = frozenset({atom.SYNC, atom.LEFT})
_REMARKABLE = frozenset({atom.LINK, atom.LEFT, *atom.SYNCS})  # the elements that decide the rest of a shape
_tag_of = attrgetter("tag")


def shape_of(root: Element) -> Shape:
    """The shape of a payload."""
    entry = root.tag == atom.ENTRY
    if not entry and root.tag != atom.FEED:
        return _FOREIGN._replace(removed=True) if atom.is_removal(root) else _FOREIGN
    # The names first, without a call for each child. Only tags that are there get a closer look.
    tags = set(map(_tag_of, root))
    valid_dates = True
    for date in root.iterchildren(*_DATES):
        if (len(date) or not _PLAIN_DATE(date.text or "")) and _is_invalid(date):
            valid_dates = False
    if entry and valid_dates and tags >= _REQUIRED and tags.isdisjoint(_REMARKABLE):
        return _ENTRY
    return Shape(
        entry,
        not entry,
        _REQUIRED - tags,
        valid_dates,
        entry and not tags.isdisjoint(atom.SYNCS),
        entry and atom.SYNC in tags and atom.is_deletion(root),
        entry and atom.LINK in tags and any(map(_is_enclosure, root.iterchildren(atom.LINK))),
        entry and atom.LEFT in tags,
        not tags.isdisjoint(_REMOVAL_MARKS) and atom.is_removal(root),
    )


class Payload(bytes):
    """The canonical bytes of one element, as `xml.canonical` writes them.

    `root` and `shape` are read when they are first used. Others share the tree, so a function that changes elements
    parses a tree of its own. Raises FeedError(INTERNAL) for bytes that are no element.
    """

    @classmethod
    def of(cls, root: Element) -> "Payload":
        """The payload of an element, which must not change from now on. Raises what `xml.canonical` raises."""
        payload = cls(canonical(root))
        payload.root = root
        return payload

    @cached_property
    def root(self) -> Element:
        """The tree."""
        return parse_stored(self)

    @cached_property
    def shape(self) -> Shape:
        """The properties of the root."""
        return shape_of(self.root)

    def check_limits(self) -> None:
        """Raises FeedError(PAYLOAD_TOO_BIG) or FeedError(INVALID_PAYLOAD) beyond the limits of `xml`."""
        check_limits(self, lambda: self.root)


def payload_of(data: bytes) -> Payload:
    """The payload in stored bytes; a payload itself is returned as it is."""
    return data if isinstance(data, Payload) else Payload(data)


def accept_payload(element: Element) -> Payload:
    """The payload of an element that came from outside: any root, nothing added (xep-map 144).

    Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) beyond the limits of `xml`.
    """
    payload = Payload(canonical(element))
    check_limits(payload, lambda: element)
    # The shape is all that most payloads are asked for. The element would keep its whole stanza or document in memory,
    # and a publish would take 10 us more where another thread frees that.
    payload.shape = shape_of(element)
    return payload


def complete_entry(data: bytes, item_id: str, now_us: int) -> Payload:
    """An entry or feed with atom:id, title and updated, whose atom:id is derived from its item id (D20)."""
    return _with(
        payload_of(data), {atom.ID: atom.derived_id(item_id), atom.TITLE: "", atom.UPDATED: format_datetime(now_us)}
    )


def repaired_entry(data: bytes, atom_id: str, published_us: int, updated_us: int) -> Payload:
    """An entry that a node can serve: atom:id, title and updated are there and dates are valid (RFC 4287 3.3).

    A date that `parse_date` can read is rewritten as RFC 3339. An unreadable atom:published becomes `published_us`, an
    unreadable or missing atom:updated `updated_us`. The text of the publisher stays in an attribute, for readers that
    show it. Nothing else changes.
    """
    payload = payload_of(data)
    if not payload.shape.valid_dates:
        root = parse_stored(payload)
        for node in filter(_is_invalid, root.iterchildren(*_DATES)):
            original = atom.string_of(node)
            time_us = parse_date(original)
            if time_us is None:
                time_us = published_us if node.tag == atom.PUBLISHED else updated_us
            del node[:]
            node.text = format_datetime(time_us)
            # Servers on the way would change white space in an attribute (XML 1.0 3.3.3).
            if date := " ".join(original.split())[:_ORIGINAL_CHARACTERS]:
                node.set(atom.ORIGINAL_DATE, date)
        payload = Payload.of(root)
    return _with(payload, {atom.ID: atom_id, atom.TITLE: "", atom.UPDATED: format_datetime(updated_us)})


def with_uris(payload: bytes) -> bytes:
    """An entry whose links are URIs, because programs that read Atom do not escape them (`uri_of`)."""
    # Each look for a text takes half of the time of the search that begins with it.
    if not (
        (b' href="' in payload and _ODD_LINK(payload))
        or (b' src="' in payload and _ODD_SOURCE(payload))
        or (b"uri" in payload and _ODD_PERSON(payload))
    ):
        return payload
    root = parse_stored(payload)
    for node in root.iter(atom.LINK, atom.CONTENT, atom.IN_REPLY_TO, atom.URI):
        for name in ("href", "src"):
            if name in node.attrib:
                node.set(name, uri_of(node.get(name, "")))
        if node.tag == atom.URI and not len(node):
            node.text = uri_of(node.text or "")
    return Payload.of(root)


def with_author(payload: Payload, jid: str) -> Payload:
    """An entry that names nobody with a bare JID as its author, behind the other elements."""
    _start, prefix = _start_of(payload)
    person = _elements(prefix, {atom.NAME: jid.partition("@")[0], atom.URI: f"xmpp:{jid}"})
    end = payload.rindex(b"</")
    longer = Payload(payload[:end] + f"<{prefix}author>{person}</{prefix}author>".encode() + payload[end:])
    longer.shape = payload.shape
    return longer


def with_id_and_title(payload: Payload, atom_id: str) -> Payload:
    """An entry with atom:id, unless `atom_id` is empty, and title. The caller does not know the time, nor an id that
    differs from node to node."""
    return _with(payload, {**({atom.ID: atom_id} if atom_id else {}), atom.TITLE: ""})


def _with(payload: Payload, values: dict[str, str]) -> Payload:
    """A payload with the Atom elements (tag -> text) that it lacks, in front of the others, under the root's prefix."""
    added = {tag: text for tag, text in values.items() if tag in payload.shape.missing}
    if not added:
        return payload
    start, prefix = _start_of(payload)
    longer = Payload(payload[:start] + _elements(prefix, added).encode() + payload[start:])
    longer.shape = payload.shape._replace(missing=payload.shape.missing - added.keys())
    return longer


def _start_of(payload: Payload) -> tuple[int, str]:
    """The place behind the start tag of a root, and the prefix of its name with a colon, "" without one."""
    start = atom.START_TAG.match(payload)
    if start is None:
        raise FeedError(Condition.INTERNAL, "a payload is not in canonical form")
    prefix, colon, _name = start[1].rpartition(b":")
    return start.end(), (prefix + colon).decode()


def _elements(prefix: str, values: dict[str, str]) -> str:
    """Atom elements (tag -> text) with the prefix of their root."""
    names = {tag: f"{prefix}{tag.rpartition('}')[2]}" for tag in values}
    return "".join(f"<{names[tag]}>{canonical_text(text)}</{names[tag]}>" for tag, text in values.items())


def _is_enclosure(link: Element) -> bool:
    return link.get("rel") == "enclosure" and bool(link.get("href"))


def _is_invalid(date: Element) -> bool:
    return len(date) > 0 or parse_datetime((date.text or "").strip()) is None


def carried(data: bytes) -> Payload:
    """A payload as it is once every server on the way has written it anew: line ends are line feeds then, and white
    space in attributes is blanks (XML 1.0 2.11, 3.3.3)."""
    if _REFERENCE not in data:
        return payload_of(data)
    root = parse_stored(data)
    for node in root.iter(etree.Element):
        for name, value in node.attrib.items():
            node.set(name, _ATTRIBUTE_SPACE.sub(" ", str(value)))
        if node.text and "\r" in node.text:
            node.text = _LINE_END.sub("\n", node.text)
        if node.tail and "\r" in node.tail:
            node.tail = _LINE_END.sub("\n", node.tail)
    return Payload.of(root)


def means_the_same(one: bytes, other: bytes) -> bool:
    """Whether payloads differ in nothing but namespace prefixes and where those are declared."""
    if one == other:
        return True
    parts = zip_longest(names_and_texts(payload_of(one).root), names_and_texts(payload_of(other).root))
    return all(ours == theirs for ours, theirs in parts)

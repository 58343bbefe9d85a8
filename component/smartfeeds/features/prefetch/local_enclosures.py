"""Entries whose enclosures have a copy at this service: readers get the copy, and the original as the alternative
(RSS-036; PRE-034).

| document | the copy | the original |
|---|---|---|
| Atom, page | `link rel="enclosure"` | the link behind it, also an enclosure (RFC 4287 4.2.7.2 allows several) |
| JSON Feed | an attachment | the attachment behind it, with the same title (JSON Feed 1.1, "attachments") |
| RSS 2.0 | `enclosure`, because most readers use only one | `podcast:alternateEnclosure` (Podcasting 2.0) |
| RSS 0.92 | `enclosure` | left out: 0.92 has no elements of other namespaces |
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final
from urllib.parse import unquote, urlsplit

from smartfeeds.core.text import is_xml_text
from smartfeeds.formats import atom, xml
from smartfeeds.formats.entry import EntryLink, link_of
from smartfeeds.formats.xml import Element

PODCAST_NS: Final = "https://podcastindex.org/namespace/1.0"
_ALTERNATE: Final = f"{{{PODCAST_NS}}}alternateEnclosure"
_SOURCE: Final = f"{{{PODCAST_NS}}}source"
_UNKNOWN_TYPE: Final = "application/octet-stream"  # the attribute `type` is required


class Alternative(Enum):
    """The form of the original address in a document."""

    LINK = auto()
    ELEMENT = auto()


def with_local(payload: bytes, copies: Mapping[str, EntryLink], alternative: Alternative) -> bytes:
    """Returns a stored entry with these copies. The keys are the addresses of the originals. An address that the entry
    names twice gets one copy."""
    root = xml.parse_stored(payload)
    left = dict(copies)
    for node in list(root.iterchildren(atom.LINK)):
        original = link_of(root, node)
        if original is None or original.rel != "enclosure" or (copy := left.pop(original.href, None)) is None:
            continue
        if alternative is Alternative.LINK:
            # Links and attachments without a title have none in common.
            title = original.title or unquote(urlsplit(original.href).path.rpartition("/")[2])
            if title and is_xml_text(title):
                node.set("title", title)
        node.addprevious(_link(copy, node.get("title", "")))
        if alternative is Alternative.ELEMENT:
            node.addprevious(_alternate(original))
            xml.replace_by_text(node, "")
    return xml.canonical(root)


def _link(copy: EntryLink, title: str) -> Element:
    node = xml.new_element(atom.LINK, {None: atom.ATOM_NS})
    node.set("rel", "enclosure")
    node.set("href", copy.href)
    node.set("type", copy.type)
    node.set("length", str(copy.length or 0))
    if title:
        node.set("title", title)
    return node


def _alternate(original: EntryLink) -> Element:
    node = xml.new_element(_ALTERNATE, {"podcast": PODCAST_NS})
    node.set("type", original.type or _UNKNOWN_TYPE)
    if original.length:
        node.set("length", str(original.length))
    if original.title:
        node.set("title", original.title)
    source = xml.new_element(_SOURCE, {"podcast": PODCAST_NS})
    source.set("uri", original.href)
    node.append(source)
    return node

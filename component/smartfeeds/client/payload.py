"""XML elements as bytes in one normal form, and the Atom fields that bots use.

Servers do not preserve payloads byte for byte: they rename prefixes and change quotes. The normal form uses the
element's namespace as the default namespace and sorts the attributes. So one version of an item has the same bytes in a
push and in a page.
"""

import html
import re
from xml.etree.ElementTree import Element

from lxml import etree

from smartfeeds.client.change import NO_ATOM, Atom, ReceivedItem
from smartfeeds.core.text import attribute, escape

ATOM = "http://www.w3.org/2005/Atom"
FEEDSYNC = "http://feedsync.org/2007/feedsync"
TOMBSTONE = "{http://purl.org/atompub/tombstones/1.0}deleted-entry"  # RFC 6721
LEFT = "{urn:smartfeeds:0}left"
_XML = "http://www.w3.org/XML/1998/namespace"
_MARKUP = re.compile(r"<[^<>]*>")
_SPACE = re.compile(r"\s+")


def serialise(element: Element | etree._Element) -> bytes:
    """Returns the element as UTF-8 XML, without its tail.

    An element of lxml is written as exclusive canonical XML, which is 20 times as fast and preserves prefixes. A
    link gives elements of one kind only, so the two forms never meet in the memory of a follower.
    """
    if isinstance(element, etree._Element):
        return etree.tostring(element, method="c14n", exclusive=True, with_comments=False)
    out: list[str] = []
    # A stack in place of recursion: a payload may be nested deeper than Python's recursion limit.
    stack: list[tuple[Element, str, bool] | str] = [(element, "", True)]
    while stack:
        step = stack.pop()
        if isinstance(step, str):
            out.append(step)
            continue
        node, outer, outermost = step
        namespace, name = _split(node.tag)
        out.append(f"<{name}{_attributes(node, namespace, outer)}")
        tail = "" if outermost else escape(node.tail or "")
        if not len(node) and not node.text:
            out.append(f"/>{tail}")
            continue
        out.append(f">{escape(node.text or '')}")
        stack.append(f"</{name}>{tail}")
        stack.extend((child, namespace, False) for child in reversed(node))
    return "".join(out).encode()


def _split(tag: str) -> tuple[str, str]:
    namespace, brace, name = tag.removeprefix("{").rpartition("}")
    return (namespace, name) if brace else ("", tag)


def _attributes(node: Element, namespace: str, outer: str) -> str:
    parts = [] if namespace == outer else [f' xmlns="{attribute(namespace)}"']
    prefixes = {_XML: "xml"}
    for key, value in sorted(node.attrib.items()):
        space, name = _split(key)
        if space and space not in prefixes:
            prefixes[space] = f"n{len(prefixes)}"
            parts.append(f' xmlns:{prefixes[space]}="{attribute(space)}"')
        parts.append(f' {prefixes[space] + ":" if space else ""}{name}="{attribute(value)}"')
    return "".join(parts)


def read_item(item: Element) -> ReceivedItem:
    """Reads an `item` element of a page or a push (XEP-0060). A mark in it makes it a tombstone (xep-map 2.3)."""
    entry = next(iter(item), None)
    item_id, publisher = item.get("id", ""), item.get("publisher", "")
    if entry is None:
        return ReceivedItem(item_id, publisher=publisher)
    has_left = entry.find(LEFT) is not None
    return ReceivedItem(
        item_id, serialise(entry), not has_left and is_tombstone(entry), publisher, read_atom(entry), has_left
    )


def is_tombstone(entry: Element) -> bool:
    """Returns whether the entry marks a deletion (FeedSync 2.4, RFC 6721)."""
    sync = entry.find(f"{{{FEEDSYNC}}}sync")
    return entry.tag == TOMBSTONE or (sync is not None and sync.get("deleted") in ("true", "1"))


def read_atom(entry: Element) -> Atom:
    """Returns the fields of an Atom entry as plain text, all empty if the element is no Atom entry."""
    if entry.tag != f"{{{ATOM}}}entry":
        return NO_ATOM
    links = [link for link in entry.findall(f"{{{ATOM}}}link") if link.get("rel", "alternate") == "alternate"]
    return Atom(
        _text(entry, "title"),
        links[0].get("href", "") if links else "",
        _text(entry, f"author/{{{ATOM}}}name"),
        _text(entry, "updated"),
        _text(entry, "published"),
    )


def _text(entry: Element, path: str) -> str:
    element = entry.find(f"{{{ATOM}}}{path}")
    if element is None:
        return ""
    text = "".join(element.itertext())
    if element.get("type") == "html":
        text = html.unescape(_MARKUP.sub("", text))
    return _SPACE.sub(" ", text).strip()

"""The Atom entry that a bot publishes from a few texts (RFC 4287). The service adds `id` and `updated`."""

from collections.abc import Iterable
from typing import TypedDict, Unpack
from xml.etree.ElementTree import Element, ParseError, SubElement, XMLParser

from smartfeeds.client.payload import ATOM
from smartfeeds.core.text import is_xml_text


class EntryTexts(TypedDict, total=False):
    """The plain texts of an entry: `link` is the address of its page, `author` a name, and `tags` are categories."""

    title: str
    content: str
    link: str
    author: str
    tags: Iterable[str]


def atom_entry(**texts: Unpack[EntryTexts]) -> Element:
    """Returns an entry. Empty texts are left out, except the title, which every entry has.

    Raises ValueError for a character that XML forbids.
    """
    entry = Element(f"{{{ATOM}}}entry")
    _add(entry, "title", texts.get("title", ""))
    if author := texts.get("author"):
        _add(_add(entry, "author"), "name", author)
    if link := texts.get("link"):
        _add(entry, "link", rel="alternate", href=link)
    for tag in texts.get("tags", ()):
        _add(entry, "category", term=tag)
    if content := texts.get("content"):
        _add(entry, "content", content)
    return entry


def read_payload(payload: str | bytes) -> Element:
    """Returns the root element of an XML text. Raises ValueError if it is not well-formed."""
    parser = XMLParser()
    try:
        parser.feed(payload)
        return parser.close()
    except ParseError as error:
        raise ValueError(f"the payload is not well-formed XML: {error}") from None


def _add(parent: Element, name: str, text: str = "", **attributes: str) -> Element:
    for value in (text, *attributes.values()):
        if not is_xml_text(value):
            raise ValueError(f"the {name} {value[:40]!r} has characters that XML forbids; remove them")
    element = SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    element.text = text or None
    return element

"""The Atom entry that a bot publishes from a few texts (RFC 4287). The service adds `id` and `updated`."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, ParseError, SubElement, XMLParser

from smartfeeds.client.payload import ATOM
from smartfeeds.core.text import is_xml_text


def atom_entry(
    *, title: str = "", content: str = "", link: str = "", author: str = "", tags: Iterable[str] = ()
) -> Element:
    """Returns an entry with plain texts. Empty texts are left out, except the title, which every entry has.

    Raises ValueError for a character that XML forbids.
    """
    entry = Element(f"{{{ATOM}}}entry")
    _add(entry, "title", title)
    if author:
        _add(_add(entry, "author"), "name", author)
    if link:
        _add(entry, "link", rel="alternate", href=link)
    for tag in tags:
        _add(entry, "category", term=tag)
    if content:
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

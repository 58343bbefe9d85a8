"""Converts lxml elements to those of the standard library, which slixmpp reads."""

import xml.etree.ElementTree as ET

from lxml import etree

from smartfeeds.xmpp.calls import own_spelling
from smartfeeds.xmpp.parsing import COMPONENT_NS

_IQ = f"{{{COMPONENT_NS}}}iq"
_ADDRESSING = ("id", "type", "from", "to")


def to_slixmpp(element: etree._Element, domain: str) -> ET.Element:
    """Returns an element of the stream of this domain in the form that slixmpp reads.

    A request has its addressing and the name of its payload only. slixmpp looks into nothing else, and what peers write
    there cannot make it fail. Everything else was written by the server.
    """
    if element.tag != _IQ:
        return ET.fromstring(etree.tostring(element, encoding="utf-8", with_tail=False))
    request = ET.Element(element.tag, {name: element.get(name, "") for name in _ADDRESSING if name in element.attrib})
    request.set("to", own_spelling(element.get("to") or domain, domain))
    for payload in element.iterchildren("*"):
        ET.SubElement(request, payload.tag)
    return request

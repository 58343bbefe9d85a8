"""Stanza bytes to lxml trees, one document for several stanzas, safe settings (xep-map 246; design section 3).

A stanza that is beyond the parser's limits (256 levels, names of 50,000 bytes), or that only the parser refuses (names
of namespaces that are no URIs), is cut down to what an answer needs; only what XML itself forbids is the server's
fault and ends the stream.
"""

from collections.abc import Iterator, Sequence

from lxml import etree

from smartfeeds.xml_names import parse_xml
from smartfeeds.xmpp.framer import cut_down, is_well_formed

COMPONENT_NS = "jabber:component:accept"
CLIENT_NS = "jabber:client"
STREAM_NS = "http://etherx.jabber.org/streams"
UNREADABLE = "the stanza is nested too deeply, or has names or namespaces that cannot be read"
_CLIENT_PREFIX = f"{{{CLIENT_NS}}}"
_COMPONENT_PREFIX = f"{{{COMPONENT_NS}}}"


class StreamSyntaxError(Exception):
    """The server sent what is not XML, or not a component stream; the text is a stream error condition."""


def new_parser() -> etree.XMLParser:
    """The one configuration for what comes from the wire: nothing is fetched, expanded or unbounded."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


class StanzaParser:
    """Parses the stanzas of one connection in the namespaces that its stream header declares."""

    def __init__(self, header: bytes) -> None:
        """Raises StreamSyntaxError when the header is not that of a component stream."""
        self._parser = new_parser()
        name = header[1:].split(None, 1)[0].rstrip(b">/")
        try:
            root = parse_xml(header + b"</" + name + b">", self._parser)
        except etree.XMLSyntaxError as error:
            raise StreamSyntaxError("not-well-formed") from error
        if root.tag != f"{{{STREAM_NS}}}stream":
            raise StreamSyntaxError("invalid-namespace")
        if root.nsmap.get(None) not in (COMPONENT_NS, CLIENT_NS):
            raise StreamSyntaxError("invalid-namespace")
        self.attributes = {str(key): str(value) for key, value in root.attrib.items()}
        prefixes = {prefix: uri for prefix, uri in root.nsmap.items() if prefix}
        wrapper = etree.Element("stream", nsmap=prefixes)
        self._open = etree.tostring(wrapper, encoding="utf-8")[:-2] + f" xmlns='{COMPONENT_NS}'>".encode()
        self._close = b"</stream>"

    def parse(self, frames: Sequence[bytes]) -> Iterator[etree._Element | None]:
        """An element for each stanza, in order; None for one that is left out.

        Raises StreamSyntaxError at the first one that is not well-formed.
        """
        root = self._read(b"".join(frames))
        if root is not None:
            yield from root
            return
        for frame in frames:
            yield self._parse_alone(frame)

    def _parse_alone(self, frame: bytes) -> etree._Element | None:
        root = self._read(frame)
        if root is None:
            if not is_well_formed(frame):
                raise StreamSyntaxError("not-well-formed")
            root = self._read(cut_down(frame, UNREADABLE))
        # What is still no XML for the parser was no stanza: its own name, or the namespace it is in, is at fault.
        return None if root is None else root[0]

    def _read(self, data: bytes) -> etree._Element | None:
        try:
            return parse_xml(self._open + data + self._close, self._parser)
        except etree.XMLSyntaxError:
            return None


def as_component_stanza(element: etree._Element) -> etree._Element:
    """Moves a stanza in `jabber:client`, and its children there, into the component namespace (XEP-0114 section 3)."""
    for part in (element, *element):
        if isinstance(part.tag, str) and part.tag.startswith(_CLIENT_PREFIX):
            part.tag = _COMPONENT_PREFIX + part.tag.removeprefix(_CLIENT_PREFIX)
    return element

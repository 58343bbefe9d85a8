"""Parses the bytes of stanzas to lxml trees, several stanzas in one document (xep-map 246; design section 3).

Before it is parsed, a stanza is checked in bytes: its sender, its size and its number of tags. A stanza above these
limits is rejected without building a tree, because that would stall the event loop. Each check is linear in the number
of bytes.

libxml2 refuses some stanzas that are well-formed XML: more than 256 levels, names above 50,000 bytes, and namespaces
that are no URIs. Such a stanza is truncated to what an error response needs. A stanza that is not well-formed is a
fault of the server, because the server has passed it on, and ends the stream.
"""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from smartfeeds.formats.crowds import TAG_ATTRIBUTES, crowd_fault
from smartfeeds.xml_names import parse_xml
from smartfeeds.xmpp.framer import StanzaFrame, cut_down, is_well_formed, start_of

# The largest stanza that Prosody accepts from a client. If the service allows larger items, the limit is larger.
REQUEST_BYTES = 262_144
# An XHTML entry of 64 KiB has about 2,500 elements, each with a start tag and an end tag. Counting new names and
# canonical form cost about 3 us for each element.
REQUEST_TAGS = 8_192
# Results and messages carry whole pages of mirrored services, so they may have more tags than a request.
STANZA_TAGS = 65_536

REQUEST_TOO_LARGE = "the request is too large; send less at once"
ITEM_TOO_LARGE = "the item is too large"  # becomes payload-too-big (XEP-0060 section 7.1.3.5)
TOO_MANY_TAGS = "more than {} tags"

_VALUE = rb"(?:\"[^\"<]*\"|'[^'<]*')"
# A start tag up to the value of `from`. Stanzas wait in the queue of their sender before they are parsed (`turns`).
_HEAD = re.compile(
    rb"<(?:iq|message|presence)(?=[\s/>])(?:\s+(?!from[\s=])[^\s=<>\"'/]+\s*=\s*" + _VALUE + rb")*"
    rb"(?:\s+from\s*=\s*(?:'([^'<]*)'|\"([^\"<]*)\"))?"
)
_PUBLISH = re.compile(rb"<iq\s[^>]*>\s*<pubsub\s[^>]*>\s*<publish[\s/>]")

COMPONENT_NS = "jabber:component:accept"
CLIENT_NS = "jabber:client"
STREAM_NS = "http://etherx.jabber.org/streams"
UNREADABLE = "the stanza is nested too deeply, or has names or namespaces that cannot be read"
_CLIENT_PREFIX = f"{{{CLIENT_NS}}}"
_COMPONENT_PREFIX = f"{{{COMPONENT_NS}}}"


def sender_of(frame: bytes) -> bytes | None:
    """Returns the sender's bare JID as the server wrote it, empty if there is none. None if the frame is no stanza."""
    match = _HEAD.match(frame)
    if match is None:
        return None
    return (match[1] or match[2] or b"").partition(b"/")[0]


def is_request(frame: bytes) -> bool:
    """Returns whether the frame is an IQ of type get or set."""
    name, attributes = start_of(frame)
    return name == "iq" and attributes.get("type") in ("get", "set")


def shape_fault(data: bytes, most_tags: int = REQUEST_TAGS) -> str:
    """Returns the reason why XML is too complex to parse, "" if it is not: its number of tags, or of attributes of one
    element (`formats.crowds`)."""
    return TOO_MANY_TAGS.format(most_tags) if data.count(b"<") > most_tags else crowd_fault(data)


def fault_of(frame: StanzaFrame, request_bytes: int = REQUEST_BYTES) -> str:
    """Returns the reason why a stanza must not be parsed, "" if it may be.

    A stanza above the limit of the framer has no reason here: the framer has cut it, and it contains its reason.
    """
    data = frame.data
    size = len(data)
    # Most stanzas are short, and a stanza has fewer tags than bytes. Without `is_request` they take 7 us less, and the
    # count of "=" saves each of them a call (tests/budgets).
    if size <= REQUEST_TAGS and size <= request_bytes:
        return crowd_fault(data) if data.count(b"=") > TAG_ATTRIBUTES else ""
    request = is_request(data)
    fault = shape_fault(data, REQUEST_TAGS if request else STANZA_TAGS)
    if not fault and request and size > request_bytes:
        return ITEM_TOO_LARGE if _PUBLISH.match(data) else REQUEST_TOO_LARGE
    return fault


def domain_of(stanza: etree._Element) -> str:
    """Returns the domain of the sender, whose address may be malformed. Logs have it in place of the address."""
    return (stanza.get("from") or "").partition("/")[0].rpartition("@")[2]


class StreamSyntaxError(Exception):
    """The server has sent bytes that are not XML, or not a component stream. The text is the condition of the stream
    error."""


def new_parser() -> etree.XMLParser:
    """Returns a parser for stanzas. It fetches nothing, expands no entity, and keeps the limits of libxml2."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


class StanzaParser:
    """Parses the stanzas of one connection in the namespaces that its stream header declares."""

    def __init__(self, header: bytes) -> None:
        """Raises StreamSyntaxError if the header is not that of a component stream."""
        self._parser = new_parser()
        name = header[1:].split(None, 1)[0].rstrip(b">/")
        try:
            root = parse_xml(header + b"</" + name + b">", self._parser)
        except etree.XMLSyntaxError as error:
            raise StreamSyntaxError("not-well-formed") from error
        if root.tag != f"{{{STREAM_NS}}}stream" or root.nsmap.get(None) not in (COMPONENT_NS, CLIENT_NS):
            raise StreamSyntaxError("invalid-namespace")
        self.attributes = {str(key): str(value) for key, value in root.attrib.items()}
        # Stanzas may use the prefixes that the header declares (RFC 6120 section 4.8.5).
        prefixes = {prefix: uri for prefix, uri in root.nsmap.items() if prefix}
        wrapper = etree.Element("stream", nsmap=prefixes)
        # The start tag without the "/>" of the empty element, and the namespace of all stanzas.
        self._open = etree.tostring(wrapper, encoding="utf-8")[:-2] + f" xmlns='{COMPONENT_NS}'>".encode()
        self._close = b"</stream>"

    def parse(self, frames: Sequence[bytes]) -> Iterator[etree._Element | None]:
        """Yields an element for each stanza, in order, and None for a stanza that cannot even be truncated.

        The stanzas are parsed as one document. If that fails, they are parsed one by one, so that a bad stanza affects
        no other. Raises StreamSyntaxError at the first stanza that is not well-formed.
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
        # If the parser refuses the truncated stanza too, its own name or its namespace is at fault.
        return None if root is None else root[0]

    def _read(self, data: bytes) -> etree._Element | None:
        try:
            return parse_xml(self._open + data + self._close, self._parser)
        except etree.XMLSyntaxError:
            return None


def as_component_stanza(element: etree._Element) -> etree._Element:
    """Moves a stanza in `jabber:client`, and its children there, into the component namespace (XEP-0114 section 3).

    Some servers send `jabber:client` to components.
    """
    for part in (element, *element):
        if isinstance(part.tag, str) and part.tag.startswith(_CLIENT_PREFIX):
            part.tag = _COMPONENT_PREFIX + part.tag.removeprefix(_CLIENT_PREFIX)
    return element

"""Stanza bytes to lxml trees, one document per batch of stanzas, safe settings (xep-map 246; design section 3).

A stanza above the parser's limits (256 levels, names of 50,000 bytes) is cut down to its start tag, so that it can
still be answered; only what XML itself forbids is the server's fault and ends the stream.
"""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from smartfeeds.xmpp.framer import is_well_formed, start_tag_alone

COMPONENT_NS = "jabber:component:accept"
CLIENT_NS = "jabber:client"
STREAM_NS = "http://etherx.jabber.org/streams"
BATCH_BYTES = 16_384
NAME_BUDGET_BYTES = 4_194_304
NAME_OVERHEAD_BYTES = 16
SAMPLE_EVERY = 64
SAMPLE_ALL_ABOVE_BYTES = 8_192
_TAG = re.compile(rb"<[^/!?](?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+")
_NAMES = re.compile(rb"<[^\s/>]+|\sxmlns[^\s=]*\s*=\s*(?:\"[^\"]*|'[^']*)|\s[^\s=\"'<>/]+(?=\s*=\s*[\"'])")
_CLIENT_PREFIX = f"{{{CLIENT_NS}}}"
_COMPONENT_PREFIX = f"{{{COMPONENT_NS}}}"


class StreamSyntaxError(Exception):
    """The server sent what is not XML, or not a component stream; the text is a stream error condition."""


def new_parser() -> etree.XMLParser:
    """The one configuration for what comes from the wire: nothing is fetched, expanded or unbounded."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


class NameGuard:
    """Bounds the element and attribute names that the process learns.

    libxml2 keeps every name it ever saw for the life of the process, and fails for all documents once its table is
    full. So names are sampled (every 64th stanza, and all long ones), and when the sample holds more than the
    budget, stanzas with further names are cut down. `exhausted` is for the log and the health page.
    """

    __slots__ = ("_budget_bytes", "_known", "_turn")

    def __init__(self, budget_bytes: int = NAME_BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._known: set[bytes] = set()
        self._turn = 0

    @property
    def exhausted(self) -> bool:
        """Whether new names are refused."""
        return self._budget_bytes <= 0

    def admits(self, frame: bytes) -> bool:
        """Whether the stanza may be parsed."""
        self._turn = (self._turn + 1) % SAMPLE_EVERY
        if self._turn and len(frame) <= SAMPLE_ALL_ABOVE_BYTES and not self.exhausted:
            return True
        fresh = set(_NAMES.findall(b" ".join(_TAG.findall(frame)))) - self._known
        if fresh and self.exhausted:
            return False
        self._known |= fresh
        self._budget_bytes -= sum(map(len, fresh)) + NAME_OVERHEAD_BYTES * len(fresh)
        return True


class StanzaParser:
    """Parses the stanzas of one connection in the namespaces that its stream header declares."""

    __slots__ = ("_close", "_names", "_open", "_parser", "attributes")

    def __init__(self, header: bytes, names: NameGuard) -> None:
        """Raises StreamSyntaxError when the header is not that of a component stream."""
        self._parser = new_parser()
        self._names = names
        name = header[1:].split(None, 1)[0].rstrip(b">/")
        try:
            root = etree.fromstring(header + b"</" + name + b">", self._parser)
        except etree.XMLSyntaxError as error:
            raise StreamSyntaxError("not-well-formed") from error
        if root.tag != f"{{{STREAM_NS}}}stream":
            raise StreamSyntaxError("invalid-namespace")
        if root.nsmap.get(None) not in (COMPONENT_NS, CLIENT_NS):
            raise StreamSyntaxError("invalid-namespace")
        self.attributes = {str(key): str(value) for key, value in root.attrib.items()}
        prefixes = {prefix: uri for prefix, uri in root.nsmap.items() if prefix}
        wrapper = etree.Element("stream", nsmap=prefixes)
        self._open = etree.tostring(wrapper)[:-2] + f" xmlns='{COMPONENT_NS}'>".encode()
        self._close = b"</stream>"

    def parse(self, frames: Sequence[bytes]) -> Iterator[etree._Element]:
        """The stanzas as elements, in order. Raises StreamSyntaxError at the first one that is not well-formed."""
        batch: list[bytes] = []
        size_bytes = 0
        for frame in frames:
            batch.append(frame if self._names.admits(frame) else start_tag_alone(frame))
            size_bytes += len(frame)
            if size_bytes >= BATCH_BYTES:
                yield from self._parse_batch(batch)
                batch = []
                size_bytes = 0
        if batch:
            yield from self._parse_batch(batch)

    def _parse_batch(self, batch: Sequence[bytes]) -> Iterator[etree._Element]:
        try:
            root = etree.fromstring(self._open + b"".join(batch) + self._close, self._parser)
        except etree.XMLSyntaxError:
            root = None
        if root is not None:
            yield from root
            return
        for frame in batch:
            yield self._parse_alone(frame)

    def _parse_alone(self, frame: bytes) -> etree._Element:
        if not is_well_formed(frame):
            raise StreamSyntaxError("not-well-formed")
        for candidate in (frame, start_tag_alone(frame)):
            try:
                return etree.fromstring(self._open + candidate + self._close, self._parser)[0]
            except etree.XMLSyntaxError:
                continue
        raise StreamSyntaxError("not-well-formed")


def as_component_stanza(element: etree._Element) -> etree._Element:
    """Moves a stanza in `jabber:client`, and its children there, into the component namespace (XEP-0114 section 3)."""
    for part in (element, *element):
        if isinstance(part.tag, str) and part.tag.startswith(_CLIENT_PREFIX):
            part.tag = _COMPONENT_PREFIX + part.tag.removeprefix(_CLIENT_PREFIX)
    return element

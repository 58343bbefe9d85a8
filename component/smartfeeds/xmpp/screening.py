"""Checks on the bytes of a stanza before it is parsed: its sender, size and number of tags (xep-map 246).

A stanza above these limits is rejected without building a tree, because building it would stall the event loop. Each
check is linear in the number of bytes.
"""

import re

from lxml import etree

from smartfeeds.formats.crowds import TAG_ATTRIBUTES, crowd_fault
from smartfeeds.xmpp.framer import StanzaFrame, start_of

# The largest stanza that Prosody accepts from a client. If the service allows larger items, the limit is larger.
REQUEST_BYTES = 262_144
# An XHTML entry of 64 KiB has about 2,500 elements, each with a start tag and an end tag. Counting new names and
# canonical form cost about 3 us for each element.
REQUEST_TAGS = 8_192
# Results and messages carry pages of mirrored services, so the size alone limits the number of their elements.
STANZA_TAGS = 65_536

LARGE = "the request is too large; send less at once"
LARGE_ITEM = "the item is too large"  # becomes payload-too-big (XEP-0060 section 7.1.3.5)
ELABORATE = "more than {} tags"

_VALUE = rb"(?:\"[^\"<]*\"|'[^'<]*')"
_HEAD = re.compile(
    rb"<(?:iq|message|presence)(?=[\s/>])(?:\s+(?!from[\s=])[^\s=<>\"'/]+\s*=\s*" + _VALUE + rb")*"
    rb"(?:\s+from\s*=\s*(?:'([^'<]*)'|\"([^\"<]*)\"))?"
)
_PUBLISH = re.compile(rb"<iq\s[^>]*>\s*<pubsub\s[^>]*>\s*<publish[\s/>]")


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
    """Returns why XML is too complex to parse, or an empty text: more than `most_tags` tags, or crowded attributes."""
    if data.count(b"<") > most_tags:
        return ELABORATE.format(most_tags)
    return crowd_fault(data) if data.count(b"=") > TAG_ATTRIBUTES else ""


def fault_of(frame: StanzaFrame, request_bytes: int = REQUEST_BYTES) -> str:
    """Returns why a stanza must not be parsed, or an empty text. A stanza that the framer cut names its reason."""
    data = frame.data
    if len(data) <= min(REQUEST_TAGS, request_bytes) and data.count(b"=") <= TAG_ATTRIBUTES:
        return ""  # a stanza has fewer tags than bytes
    # A stanza with fewer bytes than the tag limit is within all limits. Skipping `is_request` for it saves 7 us.
    request = len(data) > min(REQUEST_TAGS, request_bytes) and is_request(data)
    fault = shape_fault(data, REQUEST_TAGS if request else STANZA_TAGS)
    if not fault and request and len(data) > request_bytes:
        return LARGE_ITEM if _PUBLISH.match(data) else LARGE
    return fault


def domain_of(stanza: etree._Element) -> str:
    """Returns the domain of the sender, whose address may be malformed. Logs have it in place of the address."""
    return (stanza.get("from") or "").partition("/")[0].rpartition("@")[2]

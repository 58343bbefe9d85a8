"""What a stanza shows before it is parsed: its sender, and whether it is too large or too elaborate (xep-map 246).

A stanza beyond these limits is refused without a tree. Each check is a search over the bytes, linear in their number.
"""

import re

from smartfeeds.formats.crowds import crowd_fault
from smartfeeds.xmpp.framer import StanzaFrame, start_of

# The largest stanza that Prosody accepts from a client. A service with larger items has a larger limit.
REQUEST_BYTES = 262_144
# An entry of 64 KiB in XHTML has about 2,500 elements, each with a start tag and an end tag. Counting new names and
# canonical form cost about 3 us for each element.
REQUEST_TAGS = 8_192
# Results and messages carry pages of services that we mirror, so they may have as many elements as bytes allow.
STANZA_TAGS = 65_536

LARGE = "the request is too large"
LARGE_ITEM = "the item is too large"  # payload-too-big, as XEP-0060 7.1.3.5 has it
ELABORATE = "there are more than {} tags"

_VALUE = rb"(?:\"[^\"<]*\"|'[^'<]*')"
_HEAD = re.compile(
    rb"<(?:iq|message|presence)(?=[\s/>])(?:\s+(?!from[\s=])[^\s=<>\"'/]+\s*=\s*" + _VALUE + rb")*"
    rb"(?:\s+from\s*=\s*(?:'([^'<]*)'|\"([^\"<]*)\"))?"
)
_PUBLISH = re.compile(rb"<iq\s[^>]*>\s*<pubsub\s[^>]*>\s*<publish[\s/>]")


def sender_of(frame: bytes) -> bytes | None:
    """The bare JID that a stanza is from, as the server wrote it; empty where none is given, None for no stanza."""
    match = _HEAD.match(frame)
    if match is None:
        return None
    return (match[1] or match[2] or b"").partition(b"/")[0]


def is_request(frame: bytes) -> bool:
    """Whether it is an IQ of type get or set."""
    name, attributes = start_of(frame)
    return name == "iq" and attributes.get("type") in ("get", "set")


def shape_fault(data: bytes, most_tags: int = REQUEST_TAGS) -> str:
    """Why XML is too elaborate to be parsed: more than `most_tags` tags, or an element with too many attributes. Empty
    if it is not."""
    return ELABORATE.format(most_tags) if data.count(b"<") > most_tags else crowd_fault(data)


def fault_of(frame: StanzaFrame, request_bytes: int = REQUEST_BYTES) -> str:
    """Why a stanza is not parsed; empty for one that is. A stanza that the framer has cut down says so itself."""
    data = frame.data
    # A stanza with fewer bytes than a request may have tags is within all limits, so its kind is not parsed: 7 us.
    request = len(data) > min(REQUEST_TAGS, request_bytes) and is_request(data)
    fault = shape_fault(data, REQUEST_TAGS if request else STANZA_TAGS)
    if not fault and request and len(data) > request_bytes:
        return LARGE_ITEM if _PUBLISH.match(data) else LARGE
    return fault

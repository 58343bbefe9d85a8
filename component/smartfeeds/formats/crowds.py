"""Elements with very many attributes, found in bytes before they are parsed (xep-map 246).

libxml2 compares the attributes and the namespaces of an element with each other, a quadratic cost, and nothing can end
it. The search is linear in the number of bytes: an attempt ends at the next "<", and nothing is looked at twice.
"""

import codecs
import re

from smartfeeds.errors import Condition, FeedError

# `formats.xml` accepts fewer in a payload.
TAG_ATTRIBUTES = 256
CROWDED = f"an element has more than {TAG_ATTRIBUTES} attributes"
# How much of a start tag may come without its end: an item has no more bytes either.
MAX_TAG_BYTES = 4 * 1024 * 1024

# Repeats of characters are possessive, so that an attempt never goes back. Repeats of groups are not, because Python
# before 3.11.5 matches such groups wrongly.
_ATTRIBUTE = rb"\s++[^\s=<>\"'/]++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+')"
_CROWD = re.compile(rb"<[^\s<>\"'/!?=]++(?:%b){%d}" % (_ATTRIBUTE, TAG_ATTRIBUTES + 1))
# A start tag with that many attributes: its name, then a blank, a name, "=" and two quotes for each.
_CROWD_BYTES = len("<a") + (TAG_ATTRIBUTES + 1) * len(' a=""')
_UNFINISHED = re.compile(rb"<(?:[^\s<>\"'/!?=]++(?:%b)*[^<>\"']*+(?:\"[^\"<]*+|'[^'<]*+)?)?\Z" % _ATTRIBUTE)
DECLARED_ENCODING = re.compile(rb"""\A<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:\-]+)["']""")
_HEAD_BYTES = 1024
_ASCII = bytes(range(0x20, 0x7F))
# How documents begin whose "<" is another byte or more than one (XML 1.0, appendix F); those of 4 bytes first.
_BEGINNINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
    (b"\x4c\x6f\xa7\x94", "cp037"),
)


def crowd_fault(data: bytes) -> str:
    """Returns the reason not to parse XML that is based on ASCII, "" if no element has more than TAG_ATTRIBUTES
    attributes."""
    at = data.find(b"<") if data.count(b"=") > TAG_ATTRIBUTES else -1
    while at >= 0:
        # A tag has no "<" in it, so the tags from here to the last "<" in reach are too short. To match each of them
        # against the pattern takes eight times as long.
        following = data.rfind(b"<", at + 1, at + _CROWD_BYTES)
        if following < 0:
            if _CROWD.match(data, at):
                return CROWDED
            following = data.find(b"<", at + 1)
        at = following
    return ""


class CrowdCheck:
    """Looks at a document whose bytes come in pieces, before they go to the parser.

    `encoding` is the name that the parser is given; without it, the document says its encoding in its first piece.
    """

    def __init__(self, encoding: str | None = None) -> None:
        self._begun = encoding is not None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._unfinished = b""

    def feed(self, data: bytes) -> None:
        """Looks at the next piece. Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG)."""
        if not self._begun:
            self._begun = True
            codec = _codec_of(data[:_HEAD_BYTES])
            self._decoder = codecs.getincrementaldecoder(codec)("replace") if codec else None
        if self._decoder is not None:
            data = self._decoder.decode(data).encode("utf-8", "replace")
        data = self._unfinished + data
        if crowd_fault(data):
            raise FeedError(Condition.INVALID_PAYLOAD, f"in the document {CROWDED}")
        match = _UNFINISHED.match(data, data.rfind(b"<")) if b"<" in data else None
        self._unfinished = match[0] if match else b""
        if len(self._unfinished) > MAX_TAG_BYTES:
            raise FeedError(Condition.PAYLOAD_TOO_BIG, f"a start tag is larger than {MAX_TAG_BYTES} bytes")


def _codec_of(head: bytes) -> str:
    """The codec of a document in which markup is not written as in ASCII; else empty."""
    for beginning, codec in _BEGINNINGS:
        if head.startswith(beginning):
            return codec
    declaration = DECLARED_ENCODING.match(head.removeprefix(codecs.BOM_UTF8))
    if declaration is None:
        return ""
    try:
        codec = codecs.lookup(declaration[1].decode()).name
        if codec.startswith(("utf-16", "utf-32")):  # declared in ASCII, which shows that it is wrong
            return ""
        is_plain = not codec.startswith(("iso2022", "hz")) and _ASCII.decode(codec) == _ASCII.decode("ascii")
        codecs.getincrementaldecoder(codec)
    except LookupError:  # one that Python does not know, or that is no encoding of text
        return ""
    except UnicodeError:
        return codec
    return "" if is_plain else codec

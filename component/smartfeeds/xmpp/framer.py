"""Splits the bytes of a stream into its header, complete stanzas, and its end (RFC 6120 sections 4 and 11.1).

A parser that runs over the whole stream has limits (depth, length of a name). If one remote user exceeds a limit, the
link closes for everybody. So the framer splits the stream first, and each stanza becomes a document of its own that can
be rejected alone. Splitting needs no tree. Nearly every stanza ends at the first closing tag with its name. A stanza
that has CDATA or further elements with its name passes through expat, which has none of these limits.
"""

import contextlib
import re
import secrets
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

HEADER_LIMIT_BYTES = 65_536  # longer start tags are read in pieces
# The namespace is random, so that a client cannot send this element and make its request look truncated.
CUT_NS = f"urn:smartfeeds:0#cut-{secrets.token_hex(16)}"
TOO_LONG = "the stanza is too long"
_REPLY_ATTRIBUTES = ("from", "to", "id", "type", "xmlns")  # attributes that a response needs
_REPLY_CHARACTERS = 65_536
_REPLY_BYTES = 2 * HEADER_LIMIT_BYTES  # longest attribute that is stored of a start tag above the stanza limit
_NAME_CHARACTER = rb"[^\s<>/!?\"'=]"
# The rest of a tag after its name. Not possessive, because possessive groups are wrong before Python 3.11.5.
TAG_REST = rb"[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*"
# A name is matched as a whole. Backtracking into it would make an incomplete tag cost the square of its length.
_START = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?!" + _NAME_CHARACTER + rb")" + TAG_REST + rb">")
_NAME = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?=[\s/>])")
_REST = re.compile(TAG_REST)
_ATTRIBUTE = re.compile(rb"\s(?:" + "|".join(_REPLY_ATTRIBUTES).encode() + rb")\s*=\s*(?:\"[^\"<]*\"|'[^'<]*')")
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^<>?]*\?>)?\s*")
_GAP = re.compile(rb"\s*")
_NAME_ENDS = b" \t\r\n>"
_SLASH = 0x2F
_JUNK = expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
_INVALID = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]


class StanzaFrame(NamedTuple):
    """One stanza: its bytes, and its size on the wire before it was truncated."""

    data: bytes
    size_bytes: int


class Framer:
    """The state of an incoming stream. `feed` returns complete stanzas.

    `header` is the start tag of the root, once it is complete. `ended`: the root was closed. `error` is the stream
    error condition of RFC 6120 section 4.9.3 that applies; nothing is read after an error. A stanza above `limit_bytes`
    is returned truncated (see `cut_down`), and its content is discarded as it arrives.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()
        self._start = 0  # where the open stanza, or the rest of it, begins
        self._scan = 0  # where the search for its end continues
        self.header = b""
        self.ended = False
        self.error = ""
        self._close()

    def feed(self, data: bytes) -> list[StanzaFrame]:
        """Adds received bytes and returns the stanzas that they complete, in order. Never raises."""
        if self.error or self.ended:
            return []
        source: bytes | bytearray = data
        if self._rest:
            self._rest += data
            source = self._rest
        frames: list[StanzaFrame] = []
        self._read(source, frames)
        consumed_bytes = self._start
        if source is self._rest:
            del self._rest[:consumed_bytes]
        else:
            self._rest += memoryview(data)[consumed_bytes:]
        self._start = 0
        self._scan -= consumed_bytes
        self._head_end -= consumed_bytes
        self._uncollected -= consumed_bytes
        self._parser_offset -= consumed_bytes
        return frames

    def _read(self, source: bytes | bytearray, frames: list[StanzaFrame]) -> None:
        if not self.header and not self._read_header(source):
            return
        while self._name or self._open(source):
            end = self._end_of_stanza(source)
            if end < 0:
                if not self.error and len(source) - self._start > self._limit_bytes:
                    self._drop(source)
                return
            frames.append(self._frame(source, end))
            self._start = end
            self._close()

    def _read_header(self, source: bytes | bytearray) -> bool:
        prolog = _PROLOG.match(source)
        begin = prolog.end() if prolog is not None else 0
        match = _START.match(source, begin)
        if match is not None:
            self.header = bytes(match[0])
            self.ended = self.header.endswith(b"/>")
            self._start = match.end()
        elif source.startswith(b"<!", begin):
            self.error = "restricted-xml"
        elif len(source) > HEADER_LIMIT_BYTES or source[begin : begin + 1] not in (b"", b"<"):
            self.error = "not-well-formed"
        return match is not None and not self.ended

    def _open(self, source: bytes | bytearray) -> bool:
        """Finds the start tag of the next stanza. Returns False if it is incomplete or the stream has ended."""
        gap = _GAP.match(source, self._start)
        self._start = begin = gap.end() if gap is not None else self._start
        match = _START.match(source, begin)
        if match is not None:
            self._name = bytes(match[1])
            self._scan = self._head_end = match.end()
            self._is_empty = source[match.end() - 2] == _SLASH
            return True
        first, second = source[begin : begin + 1], source[begin + 1 : begin + 2]
        if first not in (b"", b"<"):
            self.error = "not-well-formed"
        elif second == b"/":
            self.ended = source.find(b">", begin) >= 0
        elif second in (b"!", b"?"):
            self.error = "restricted-xml"
        elif len(source) - begin > HEADER_LIMIT_BYTES:
            return self._open_long(source, begin)
        return False

    def _open_long(self, source: bytes | bytearray, begin: int) -> bool:
        """Reads a long incomplete start tag in pieces: repeated matching would cost the square of its length."""
        match = _NAME.match(source, begin)
        if match is None:
            self.error = "not-well-formed"
            return False
        self._name = bytes(match[1])
        self._scan = self._uncollected = match.end()
        self._in_tag = True
        return True

    def _close(self) -> None:
        """Resets the state of the open stanza."""
        self._name = b""
        self._is_empty = False  # the stanza is an empty-element tag
        self._in_tag = False  # inside its own start tag, which is longer than HEADER_LIMIT_BYTES
        self._quote = b""  # the quote of an incomplete attribute value
        self._head_end = 0  # end of the stanza's own start tag, once it is complete
        self._cut = False
        self._head = b""  # the attributes to keep of a truncated stanza
        self._uncollected = 0  # start of the attributes that are not yet in `_head`
        self._dropped_bytes = 0
        self._parser: expat.XMLParserType | None = None
        self._parser_offset = 0  # where the first byte that the parser has read would be

    def _end_of_stanza(self, source: bytes | bytearray) -> int:
        """Returns the position after the end of the open stanza, or -1 if the end has not arrived."""
        if self._in_tag and not self._leave_tag(source):
            return -1
        if self._is_empty:
            return self._scan
        if self._parser is not None:
            return self._parse(source, self._parser)
        closing = b"</" + self._name
        at = source.find(closing, self._scan)
        until = at if at >= 0 else len(source)
        if self._has_more_than_content(source, until):
            return self._switch_to_parser(source)
        end = source.find(b">", at) if at >= 0 else -1
        if end < 0:
            # The received bytes may end with the beginning of a closing tag.
            self._scan = at if at >= 0 else max(self._scan, until - len(closing))
            return -1
        return end + 1 if source[at + len(closing)] in _NAME_ENDS else self._switch_to_parser(source)

    def _has_more_than_content(self, source: bytes | bytearray, until: int) -> bool:
        """Returns whether CDATA or an element with the stanza's own name begins before this position.

        Few stanzas have either. Without them two searches find the end.
        """
        scan = self._scan
        return (
            source.find(b"<" + self._name, scan, until) >= 0
            # Searching the single byte first is much faster, and it is usually absent.
            or (source.find(b"!", scan, until) >= 0 and source.find(b"<!", scan, until) >= 0)
            or (source.find(b"?", scan, until) >= 0 and source.find(b"<?", scan, until) >= 0)
        )

    def _switch_to_parser(self, source: bytes | bytearray) -> int:
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._restricted
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)  # expat 2.6 would report the end of a tag in two chunks too late
        # The attributes have no influence on the end of the stanza, and may be discarded already.
        start_tag = b"<%b>" % self._name
        self._scan = self._head_end
        self._parser_offset = self._head_end - len(start_tag)
        return self._parse(source, parser, start_tag)

    def _parse(self, source: bytes | bytearray, parser: expat.XMLParserType, start_tag: bytes = b"") -> int:
        """Continues with expat. Returns the position after the end of the stanza, or -1 if it has not arrived.

        The parser has no element handlers, because calling them would take twenty times as long. Without handlers,
        expat reports the end of the stanza only by rejecting what follows. If nothing has followed yet, white space
        shows whether the stanza is complete.
        """
        # An incomplete tag may be that of the next stanza, so the bytes before it are parsed first.
        at = source.rfind(b"<", self._scan)
        until = at if at >= 0 and source.find(b">", at) < 0 else len(source)
        begin, self._scan, end = self._scan, len(source), -1
        try:
            parser.Parse(start_tag + bytes(memoryview(source)[begin:until]), False)
            if (until < len(source) or source.endswith(b">")) and self._is_complete(parser):
                end = until
            else:
                parser.Parse(bytes(memoryview(source)[until:]), False)
        except expat.ExpatError as error:
            end = self._parser_offset + parser.ErrorByteIndex
            # Within the stanza, a wrong closing tag has another error code.
            if error.code != _JUNK and not (error.code == _INVALID and source[end - 1 : end + 1] == b"</"):
                self.error = self.error or "not-well-formed"
        if self.error or end < 0:
            return -1
        return max(source.rfind(b">", self._start, end) + 1, self._start)

    def _is_complete(self, parser: expat.XMLParserType) -> bool:
        """Returns whether the stanza has ended: only then is a white space outside of it, and no character data.

        The caller must have parsed up to a tag, or up to a `>`. There, a white space changes nothing.
        """
        outside: list[str] = []
        parser.DefaultHandlerExpand, parser.CharacterDataHandler = outside.append, lambda _text: None
        parser.Parse(b" ", False)
        parser.DefaultHandlerExpand = parser.CharacterDataHandler = None
        self._parser_offset -= 1
        return bool(outside)

    def _restricted(self, *_: str) -> None:
        self.error = "restricted-xml"

    def _leave_tag(self, source: bytes | bytearray) -> bool:
        """Continues in the stanza's own start tag. Returns False if its end has not arrived."""
        if self._quote:
            at = source.find(self._quote, self._scan) + 1
            self._scan = at or len(source)
            if not at:
                return False
            self._quote = b""
            if self._uncollected < 0:
                self._uncollected = at
        match = _REST.match(source, self._scan)
        at = match.end() if match is not None else self._scan
        self._collect(source, self._uncollected, at)
        self._scan = at
        following = source[at : at + 1]
        if following == b">":
            self._in_tag = False
            self._is_empty = source[at - 1] == _SLASH
            self._scan = self._head_end = at + 1
            return True
        if following in (b'"', b"'") and source.find(following, at + 1) < 0:
            self._quote = bytes(following)
            self._scan = len(source)
        elif following:
            self.error = "not-well-formed"
        return False

    def _collect(self, source: bytes | bytearray, begin: int, end: int) -> None:
        """Keeps the attributes that a response needs, from a part of the stanza's own start tag."""
        self._head += b"".join(_ATTRIBUTE.findall(source, begin, end))
        self._uncollected = max(source.rfind(b'"', begin, end) + 1, source.rfind(b"'", begin, end) + 1, begin)

    def _drop(self, source: bytes | bytearray) -> None:
        """Discards the bytes read so far of a stanza above the limit."""
        if not (self._cut or self._in_tag or self._head):
            self._collect(source, self._start, self._head_end)
        self._cut = True
        if not self._in_tag and self._parser is None:
            self._switch_to_parser(source)  # expat must see the content before it is discarded
        # Keep the byte before the end of a tag: a slash there means that the element is empty.
        keep = self._scan - 1 if self._in_tag and not self._quote else self._scan
        if self._in_tag:
            if self._scan - self._uncollected <= _REPLY_BYTES:
                keep = self._uncollected
            else:
                self._uncollected = -1 if self._quote else keep
        self._dropped_bytes += keep - self._start
        self._start = keep

    def _frame(self, source: bytes | bytearray, end: int) -> StanzaFrame:
        size_bytes = self._dropped_bytes + end - self._start
        if not self._cut:
            return StanzaFrame(bytes(source[self._start : end]), size_bytes)
        return StanzaFrame(cut_down(b"<%b%b>" % (self._name, self._head), TOO_LONG), size_bytes)


def start_of(frame: bytes) -> tuple[str, dict[str, str]]:
    """Returns the name and the attributes of a stanza, or empty values if there is no start tag."""
    start_tags: list[tuple[str, dict[str, str]]] = []
    match = _START.match(frame)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, attributes: start_tags.append((name, attributes))
    with contextlib.suppress(expat.ExpatError):
        parser.Parse(match[0] if match is not None else b"", False)
    return start_tags[0] if start_tags else ("", {})


def cut_down(frame: bytes, reason: str) -> bytes:
    """Returns a truncated stanza: addresses, id and type, and one child with the reason.

    The child is `<cut/>` in `CUT_NS` with the reason as its text. A start tag that is not XML is returned unchanged.
    """
    name, attributes = start_of(frame)
    if not name:
        return frame
    attribute_text = "".join(
        f" {key}={quoteattr(attributes[key])}"
        for key in _REPLY_ATTRIBUTES
        if key in attributes and len(attributes[key]) <= _REPLY_CHARACTERS
    )
    return f"<{name}{attribute_text}><cut xmlns='{CUT_NS}'>{reason}</cut></{name}>".encode()


def is_well_formed(frame: bytes) -> bool:
    """Returns whether the stanza is well-formed XML. If it is not, the server broke the stream, not a remote user."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(frame, True)
    except expat.ExpatError:
        return False
    return True

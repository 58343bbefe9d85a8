"""Splits the bytes of a stream into its header, complete stanzas, and its end (RFC 6120 sections 4 and 11.1).

A parser that runs over the whole stream has limits (depth, length of a name). If one remote user exceeds a limit, the
link closes for everybody. So the framer splits the stream first, and each stanza becomes a document of its own that can
be rejected alone. Splitting needs no tree: outside CDATA every `<` starts a tag, and a stanza ends with the closing tag
that balances its name. Each byte is read a bounded number of times, whatever the sizes of the chunks are.

Three ways find this tag, each for what the one before cannot read: two searches (`_read_whole`), a pattern for tags
of the stanza's own name (`_walk_tags`), and expat (`_skip`). tests/unit/xmpp/test_framer.py compares the end that they
find with that of random stanzas.
"""

import contextlib
import re
import secrets
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

# Longer start tags are read in pieces. Up to here an incomplete tag is matched again with each chunk that arrives.
HEADER_LIMIT_BYTES = 65_536
# The namespace is random, so that a client cannot send this element and make its request look truncated.
CUT_NS = f"urn:smartfeeds:0#cut-{secrets.token_hex(16)}"
TOO_LONG = "the stanza is too long"
_KEPT = ("from", "to", "id", "type", "xmlns")  # attributes that a response needs
_KEPT_CHARACTERS = 65_536  # a longer value is left out
_KEPT_BYTES = 2 * HEADER_LIMIT_BYTES  # longest attribute that is kept of a start tag above the stanza limit
_NAME_CHARACTER = rb"[^\s<>/!?\"'=]"
# The rest of a tag after its name. Not possessive, because possessive groups are wrong before Python 3.11.5.
TAG_REST = rb"[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*"
# A name is matched as a whole. Backtracking into it would make an incomplete tag cost the square of its length.
_START = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?!" + _NAME_CHARACTER + rb")" + TAG_REST + rb">")
_STANZA_START = re.compile(rb"\s*" + _START.pattern)
_NAME = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?=[\s/>])")
_REST = re.compile(TAG_REST)
_ATTRIBUTE = re.compile(rb"\s(?:" + "|".join(_KEPT).encode() + rb")\s*=\s*(?:\"[^\"<]*\"|'[^'<]*')")
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^<>?]*\?>)?\s*")
_GAP = re.compile(rb"\s*")
_NAME_ENDS = b" \t\r\n>"
_SLASH = 0x2F
_CDATA = b"<![CDATA["
_CDATA_END = b"]]>"
# Short CDATA is matched at once. Longer CDATA is read in pieces, because matching it again and again costs more.
_WHOLE_CDATA = rb"!\[CDATA\[[^\]]{0,1024}(?:\](?!\]>)[^\]]{0,1024}){0,64}\]\]>"
_END, _BEGIN, _INCOMPLETE, _MARKUP = 1, 3, 4, 5  # groups of `_tags_of`
# Tags with the stanza's own name after which expat reads the rest: it needs no step in Python for each tag. Few stanzas
# have any.
_MANY_TAGS = 256
# The errors of expat for what follows a complete document: the next stanza, or the end of the stream (`_skip`).
_JUNK = expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
_INVALID = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_IN_PIECES = (_INCOMPLETE, _MARKUP)


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
        # The positions are those in `source`, of which the consumed bytes are removed.
        consumed_bytes = self._start
        if source is self._rest:
            del self._rest[:consumed_bytes]
        else:
            self._rest += memoryview(data)[consumed_bytes:]
        self._start = 0
        self._scan -= consumed_bytes
        self._head_end -= consumed_bytes
        self._uncollected -= consumed_bytes
        return frames

    def _read(self, source: bytes | bytearray, frames: list[StanzaFrame]) -> None:
        if not self.header and not self._read_header(source):
            return
        if not self._name:
            self._read_whole(source, frames)
        while self._name or self._open(source):
            end = self._end_of_stanza(source)
            if end < 0:
                if not self.error and len(source) - self._start > self._limit_bytes:
                    self._drop(source)
                return
            frames.append(self._frame(source, end))
            self._start = end
            self._close()
            self._read_whole(source, frames)

    def _read_whole(self, source: bytes | bytearray, frames: list[StanzaFrame]) -> None:
        """Reads complete stanzas until one is incomplete, or has CDATA or an element with its own name in it.

        Nearly all stanzas are of this kind. What stops here is read by `_end_of_stanza`, in any number of pieces.
        """
        while (match := _STANZA_START.match(source, self._start)) is not None:
            name, head_end = match[1], match.end()
            if source[head_end - 2] == _SLASH:
                end = head_end
            else:
                at = source.find(b"</" + name, head_end)
                end = source.find(b">", at) + 1 if at >= 0 else 0
                if (
                    not end
                    or source[at + len(name) + 2] not in _NAME_ENDS
                    or source.find(b"<" + name, head_end, at) >= 0
                    # Searching the single byte first is much faster, and it is usually absent.
                    or (source.find(b"!", head_end, at) >= 0 and source.find(b"<!", head_end, at) >= 0)
                    or (source.find(b"?", head_end, at) >= 0 and source.find(b"<?", head_end, at) >= 0)
                ):
                    return
            begin = match.start(1) - 1
            frames.append(StanzaFrame(bytes(source[begin:end]), end - begin))
            self._start = end

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
            self._depth = 0 if source[match.end() - 2] == _SLASH else 1
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
        self._depth = 0  # open elements with the stanza's own name, including the stanza
        self._in_cdata = False
        self._in_tag = False  # inside an incomplete start tag with its name
        self._quote = b""  # the quote of an incomplete attribute value
        self._head_end = 0  # end of the stanza's own start tag; 0 or less while the tag is incomplete or discarded
        self._cut = False
        self._head = b""  # the attributes to keep of a truncated stanza
        self._uncollected = 0  # start of the attributes that are not yet in `_head`
        self._dropped_bytes = 0
        self._parser: expat.XMLParserType | None = None

    def _end_of_stanza(self, source: bytes | bytearray) -> int:
        """Returns the position after the end of the open stanza, or -1 if the end has not arrived."""
        if self._parser is not None:
            return self._scan if self._skip(source, self._parser) else -1
        while True:
            if self._in_tag and not self._leave_tag(source):
                return -1
            if self._in_cdata and not self._leave_cdata(source):
                return -1
            if self._depth == 0:
                return self._scan
            if not self._walk(source):
                return -1

    def _walk(self, source: bytes | bytearray) -> bool:
        """Searches for the end of the stanza. Stops at an incomplete tag or CDATA section. Returns False if more bytes
        are needed."""
        closing = b"</" + self._name
        while self._depth:
            at = source.find(closing, self._scan)
            until = at if at >= 0 else len(source)
            if self._has_more_than_content(source, until):
                return self._walk_tags(source)
            end = source.find(b">", at) if at >= 0 else -1
            if end < 0:
                # The received bytes may end with the beginning of a closing tag.
                self._scan = at if at >= 0 else max(self._scan, until - len(closing))
                return False
            self._scan = end + 1
            self._depth -= source[at + len(closing)] in _NAME_ENDS
        return True

    def _has_more_than_content(self, source: bytes | bytearray, until: int) -> bool:
        """Returns whether CDATA or an element with the stanza's own name begins before the next closing tag of that
        name.

        Few stanzas have either. Without them two searches find the end.
        """
        scan = self._scan
        return (
            source.find(b"<" + self._name, scan, until) >= 0
            # Searching the single byte first is much faster, and it is usually absent.
            or (source.find(b"!", scan, until) >= 0 and source.find(b"<!", scan, until) >= 0)
            or (source.find(b"?", scan, until) >= 0 and source.find(b"<?", scan, until) >= 0)
        )

    def _walk_tags(self, source: bytes | bytearray) -> bool:
        """Does the work of `_walk` for every tag with the stanza's own name."""
        depth, scan = self._depth, self._scan
        tags = _tags_of(self._name)
        for count, match in enumerate(tags.finditer(source, scan)):
            if count == _MANY_TAGS and not self._cut:
                return self._skip_to_end(source)
            kind = match.lastindex
            if kind == _END:
                depth -= 1
            elif kind == _BEGIN:
                depth += 1
            elif kind in _IN_PIECES:
                self._depth, self._scan = depth, match.start()
                return self._enter(source, match)
            scan = match.end()
            if depth == 0:
                self._depth, self._scan = 0, scan
                return True
        self._depth = depth
        self._scan = self._incomplete_tag(source, scan)
        return False

    def _skip_to_end(self, source: bytes | bytearray) -> bool:
        """Switches to expat for a stanza with many tags of its own name or many CDATA sections."""
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._restricted
        self._scan = self._start
        return self._skip(source, parser)

    def _skip(self, source: bytes | bytearray, parser: expat.XMLParserType) -> bool:
        """Continues with expat. It has no element handlers: calling them would take twenty times as long.

        Without handlers, expat reports the end of the stanza only by rejecting what follows. If nothing has followed
        yet, a stanza that may be complete is checked as a whole.
        """
        begin = self._start - self._dropped_bytes
        data = bytes(memoryview(source)[self._scan :])
        self._scan = end = len(source)
        try:
            parser.Parse(data, False)
        except expat.ExpatError as error:
            at = begin + parser.ErrorByteIndex
            # What follows is the start of the next stanza or text (junk), or the closing tag of the stream (an invalid
            # token). Within the stanza, a wrong closing tag has another error code.
            if error.code != _JUNK and not (error.code == _INVALID and source[at - 1 : at + 1] == b"</"):
                self.error = self.error or "not-well-formed"
                return False
            # White space after the stanza comes before the error, and is no part of the stanza.
            self._scan = source.rfind(b">", self._start, at) + 1
        else:
            # A closing tag is short, so the last bytes are searched only: this happens for each chunk that arrives. A
            # stanza that was cut cannot be checked as a whole, and ends when something follows.
            tail = source.find(b">", source.rfind(b"</" + self._name, max(self._start, end - HEADER_LIMIT_BYTES)))
            if self.error or self._cut or tail != end - 1 or not is_well_formed(bytes(source[self._start :])):
                return False
        self._depth = 0
        return True

    def _restricted(self, *_: str) -> None:
        self.error = "restricted-xml"

    def _incomplete_tag(self, source: bytes | bytearray, scan: int) -> int:
        """Returns the start of the last tag if it may be one with the stanza's own name, else the end of the bytes."""
        end = len(source)
        begin = source.rfind(b"<", scan)
        if begin >= 0 and source.find(b">", begin) < 0:
            short = end - begin <= len(self._name) + len(_CDATA)
            if short or source.startswith(b"</" + self._name, begin):
                return begin
        return max(scan, end)

    def _enter(self, source: bytes | bytearray, match: re.Match[bytes]) -> bool:
        """Starts reading in pieces: an incomplete start tag or CDATA. Returns False for any other markup."""
        at = match.start()
        if match.lastindex == _INCOMPLETE:
            self._in_tag = True
            self._scan = match.end()
            return True
        if source.startswith(_CDATA, at):
            self._in_cdata = True
            self._scan = at + len(_CDATA)
            return True
        self._scan = at
        if not _CDATA.startswith(source[at : at + len(_CDATA)]):
            self.error = "restricted-xml"
        return False

    def _leave_cdata(self, source: bytes | bytearray) -> bool:
        at = source.find(_CDATA_END, self._scan)
        self._in_cdata = at < 0
        # The received bytes may end with the first bytes of the end mark.
        self._scan = at + len(_CDATA_END) if at >= 0 else max(self._scan, len(source) - len(_CDATA_END) + 1)
        return at >= 0

    def _leave_tag(self, source: bytes | bytearray) -> bool:
        """Continues in an incomplete start tag with the stanza's own name. Returns False if its end has not arrived."""
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
        if self._depth == 0:
            self._collect(source, self._uncollected, at)
        self._scan = at
        following = source[at : at + 1]
        if following == b">":
            self._in_tag = False
            self._depth += source[at - 1] != _SLASH
            self._scan = at + 1
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
        if not self._cut and self._head_end > self._start:
            self._collect(source, self._start, self._head_end)
        self._cut = True
        # Keep the byte before the end of a tag: a slash there means that the element is empty.
        keep = self._scan - 1 if self._in_tag and not self._quote else self._scan
        if self._in_tag and self._depth == 0:
            # The start of an attribute that is still incomplete stays, so that `_collect` finds all of it. A longer
            # attribute is discarded: what is collected begins behind the quote that ends it (-1: not known yet).
            if self._scan - self._uncollected <= _KEPT_BYTES:
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


@lru_cache(64)  # a server sends three names of stanzas and few others
def _tags_of(name: bytes) -> re.Pattern[bytes]:
    """Returns the pattern for tags of one name and for other markup. `lastindex` of a match is its kind."""
    own = re.escape(name)
    start = own + rb"(?=[\s/>])" + rb"(?:%b(?:(?<=/)(>)|(>))|())" % TAG_REST
    return re.compile(rb"<(?:(/)%b\s*>|%b|%b|([!?]))" % (own, start, _WHOLE_CDATA))


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
        for key in _KEPT
        if key in attributes and len(attributes[key]) <= _KEPT_CHARACTERS
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

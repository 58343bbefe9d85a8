"""Cuts the bytes of a stream into its header, its complete stanzas, and its end (RFC 6120 sections 4 and 11.1).

A parser that runs over the whole stream has limits (depth, length of a name) that close the link for everybody when one
remote user exceeds them. The framer therefore cuts the stream first. Each stanza is a document of its own, and refusing
it concerns nobody else. The cut needs no tree: outside of CDATA every `<` begins a tag, and a stanza ends with the
closing tag that balances its name. Each byte is read a fixed number of times, in however many pieces it arrives.
"""

import contextlib
import re
import secrets
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

HEADER_LIMIT_BYTES = 65_536
# A client that knew the namespace could send the mark itself, and its request would be taken for one that was cut down.
CUT_NS = f"urn:smartfeeds:0#cut-{secrets.token_hex(16)}"
TOO_LONG = "the stanza is too long"
_KEPT = ("from", "to", "id", "type", "xmlns")  # what an answer needs
_KEPT_CHARACTERS = 65_536
_KEPT_BYTES = 2 * HEADER_LIMIT_BYTES  # of an attribute of a start tag that is longer than the stanza may be
_NAME_CHARACTER = rb"[^\s<>/!?\"'=]"
# What follows a name in a tag. Not possessive: before Python 3.11.5 such groups matched what they must not.
TAG_REST = rb"[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*"
# A name is tried as a whole, or an incomplete tag would cost the square of its length.
_START = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?!" + _NAME_CHARACTER + rb")" + TAG_REST + rb">")
_NAME = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?=[\s/>])")
_REST = re.compile(TAG_REST)
_ATTRIBUTE = re.compile(rb"\s(?:" + "|".join(_KEPT).encode() + rb")\s*=\s*(?:\"[^\"<]*\"|'[^'<]*')")
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^<>?]*\?>)?\s*")
_GAP = re.compile(rb"\s*")
_NAME_ENDS = b" \t\r\n>"
_SLASH = 0x2F
_CDATA = b"<![CDATA["
_CDATA_END = b"]]>"
# Short CDATA is read at once; longer is read in pieces, because trying it again costs more than that.
_WHOLE_CDATA = rb"!\[CDATA\[[^\]]{0,1024}(?:\](?!\]>)[^\]]{0,1024}){0,64}\]\]>"
_END, _BEGIN, _INCOMPLETE, _MARKUP = 1, 3, 4, 5  # groups of `_tags_of`
_MANY_TAGS = 256
_JUNK = expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
_INVALID = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_IN_PIECES = (_INCOMPLETE, _MARKUP)


class StanzaFrame(NamedTuple):
    """One stanza: its bytes, and how many bytes it had on the wire before it was cut down."""

    data: bytes
    size_bytes: int


class Framer:
    """The state of one incoming stream. `feed` returns complete stanzas; the attributes say how the stream stands.

    `header`: the start tag of the root as it came, once it is complete. `ended`: the root was closed. `error`: the
    condition of RFC 6120 that the stream broke; nothing is read after it. A stanza above `limit_bytes` is returned
    cut down (see `cut_down`), and its content is discarded as it comes.
    """

    __slots__ = (
        "_cut",
        "_depth",
        "_dropped_bytes",
        "_head",
        "_head_end",
        "_in_cdata",
        "_in_tag",
        "_limit_bytes",
        "_name",
        "_parser",
        "_quote",
        "_rest",
        "_scan",
        "_start",
        "_uncollected",
        "ended",
        "error",
        "header",
    )

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()
        self._start = 0  # where the open stanza, or what is left of it, begins
        self._scan = 0  # where the search for its end continues
        self.header = b""
        self.ended = False
        self.error = ""
        self._close()

    def feed(self, data: bytes) -> list[StanzaFrame]:
        """Takes what came and returns the stanzas that it completes, in order. Never raises."""
        if self.error or self.ended:
            return []
        source: bytes | bytearray = data
        if self._rest:
            self._rest += data
            source = self._rest
        frames: list[StanzaFrame] = []
        self._read(source, frames)
        used = self._start
        if source is self._rest:
            del self._rest[:used]
        else:
            self._rest += memoryview(data)[used:]
        self._start = 0
        self._scan -= used
        self._head_end -= used
        self._uncollected -= used
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
        """Finds the start tag of the next stanza; False when it is not there yet or the stream is over."""
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
        """A start tag that is long and still incomplete is read in pieces: trying it whole each time would cost the
        square of its length."""
        match = _NAME.match(source, begin)
        if match is None:
            self.error = "not-well-formed"
            return False
        self._name = bytes(match[1])
        self._scan = self._uncollected = match.end()
        self._in_tag = True
        return True

    def _close(self) -> None:
        """Forgets the open stanza."""
        self._name = b""
        self._depth = 0  # elements of the stanza's own name that are open, itself included
        self._in_cdata = False
        self._in_tag = False  # inside of a start tag of its name that is incomplete
        self._quote = b""  # the quote of an attribute value that is incomplete
        self._head_end = 0  # where the stanza's own start tag ends, 0 or less while it is incomplete or dropped
        self._cut = False
        self._head = b""  # of a stanza that is cut: the attributes to keep
        self._uncollected = 0  # where the attributes begin that are not yet in `_head`
        self._dropped_bytes = 0
        self._parser: expat.XMLParserType | None = None

    def _end_of_stanza(self, source: bytes | bytearray) -> int:
        """The position after the end of the open stanza; -1 when it has not come yet."""
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
        """Searches for the end of the stanza. Stops at a tag or CDATA section that is incomplete. Returns False if more
        bytes are needed."""
        closing = b"</" + self._name
        while self._depth:
            at = source.find(closing, self._scan)
            until = at if at >= 0 else len(source)
            if self._has_more_than_content(source, until):
                return self._walk_tags(source)
            end = source.find(b">", at) if at >= 0 else -1
            if end < 0:
                # The beginning of a tag may be at the end of what came.
                self._scan = at if at >= 0 else max(self._scan, until - len(closing))
                return False
            self._scan = end + 1
            self._depth -= source[at + len(closing)] in _NAME_ENDS
        return True

    def _has_more_than_content(self, source: bytes | bytearray, until: int) -> bool:
        """Whether CDATA or an element of the stanza's own name begins before the next closing tag of that name: few
        stanzas have either, and without them two searches find the end."""
        scan = self._scan
        return (
            source.find(b"<" + self._name, scan, until) >= 0
            # The mark alone is found far more quickly.
            or (source.find(b"!", scan, until) >= 0 and source.find(b"<!", scan, until) >= 0)
            or (source.find(b"?", scan, until) >= 0 and source.find(b"<?", scan, until) >= 0)
        )

    def _walk_tags(self, source: bytes | bytearray) -> bool:
        """The same, tag by tag of the stanza's own name."""
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
        """Begins to read a stanza with many tags of its own name, or many CDATA sections, with expat."""
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._restricted
        self._scan = self._start
        return self._skip(source, parser)

    def _skip(self, source: bytes | bytearray, parser: expat.XMLParserType) -> bool:
        """Reads on with expat, which has no handlers of elements: calling them would take twenty times as long.

        It reports the end of the stanza only by refusing what follows. When nothing has followed yet, a stanza that may
        be complete is checked whole.
        """
        begin = self._start - self._dropped_bytes
        data = bytes(memoryview(source)[self._scan :])
        self._scan = end = len(source)
        try:
            parser.Parse(data, False)
        except expat.ExpatError as error:
            at = begin + parser.ErrorByteIndex
            # In the stanza itself a closing tag that does not belong there is another error.
            if error.code != _JUNK and not (error.code == _INVALID and source[at - 1 : at + 1] == b"</"):
                self.error = self.error or "not-well-formed"
                return False
            self._scan = source.rfind(b">", self._start, at) + 1
        else:
            tail = source.find(b">", source.rfind(b"</" + self._name, max(self._start, end - HEADER_LIMIT_BYTES)))
            if self.error or self._cut or tail != end - 1 or not is_well_formed(bytes(source[self._start :])):
                return False
        self._depth = 0
        return True

    def _restricted(self, *_: str) -> None:
        self.error = "restricted-xml"

    def _incomplete_tag(self, source: bytes | bytearray, scan: int) -> int:
        """Where the tag begins that may turn out to be one of the stanza's own name; the end if there is none."""
        end = len(source)
        begin = source.rfind(b"<", scan)
        if begin >= 0 and source.find(b">", begin) < 0:
            short = end - begin <= len(self._name) + len(_CDATA)
            if short or source.startswith(b"</" + self._name, begin):
                return begin
        return max(scan, end)

    def _enter(self, source: bytes | bytearray, match: re.Match[bytes]) -> bool:
        """Begins what is read in pieces: a start tag that is incomplete, or CDATA. False when it is neither."""
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
        # The first bytes of the end may be there.
        self._scan = at + len(_CDATA_END) if at >= 0 else max(self._scan, len(source) - len(_CDATA_END) + 1)
        return at >= 0

    def _leave_tag(self, source: bytes | bytearray) -> bool:
        """Reads on in an incomplete start tag of the stanza's own name; False when its end has not come yet."""
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
        """Keeps the attributes in a part of the stanza's own start tag that its answer needs."""
        self._head += b"".join(_ATTRIBUTE.findall(source, begin, end))
        self._uncollected = max(source.rfind(b'"', begin, end) + 1, source.rfind(b"'", begin, end) + 1, begin)

    def _drop(self, source: bytes | bytearray) -> None:
        """Discards what was read of a stanza above the limit."""
        if not self._cut and self._head_end > self._start:
            self._collect(source, self._start, self._head_end)
        self._cut = True
        # The byte before the end of a tag says whether the element is empty.
        keep = self._scan - 1 if self._in_tag and not self._quote else self._scan
        if self._in_tag and self._depth == 0:
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


@lru_cache(64)  # the server writes three names of stanzas, and few others
def _tags_of(name: bytes) -> re.Pattern[bytes]:
    """Finds the tags of one name, and markup that is no tag; `lastindex` of the match says which it is."""
    own = re.escape(name)
    start = own + rb"(?=[\s/>])" + rb"(?:%b(?:(?<=/)(>)|(>))|())" % TAG_REST
    return re.compile(rb"<(?:(/)%b\s*>|%b|%b|([!?]))" % (own, start, _WHOLE_CDATA))


def start_of(frame: bytes) -> tuple[str, dict[str, str]]:
    """The name and the attributes of a stanza; empty where there is no start tag."""
    found: list[tuple[str, dict[str, str]]] = []
    match = _START.match(frame)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, attributes: found.append((name, attributes))
    with contextlib.suppress(expat.ExpatError):
        parser.Parse(match[0] if match is not None else b"", False)
    return found[0] if found else ("", {})


def cut_down(frame: bytes, reason: str) -> bytes:
    """What is left of a stanza that is not read: addresses, id and type, and one child that says why.

    The child is `<cut/>` in `CUT_NS` with the reason as its text. A start tag that is not XML is returned as it is.
    """
    name, attributes = start_of(frame)
    if not name:
        return frame
    kept = "".join(
        f" {key}={quoteattr(attributes[key])}"
        for key in _KEPT
        if key in attributes and len(attributes[key]) <= _KEPT_CHARACTERS
    )
    return f"<{name}{kept}><cut xmlns='{CUT_NS}'>{reason}</cut></{name}>".encode()


def is_well_formed(frame: bytes) -> bool:
    """Whether XML itself, without anybody's limits, allows the stanza: only the server is to blame if not."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(frame, True)
    except expat.ExpatError:
        return False
    return True

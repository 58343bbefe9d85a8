"""Cuts the bytes of a stream into its header, its complete stanzas, and its end (RFC 6120 sections 4 and 11.1).

A parser that runs over the whole stream has limits (depth, length of a name) that close the link for everybody
when one remote user goes over them. So the stream is cut first, and each stanza is a document of its own, whose
refusal concerns nobody else. The cut needs no tree: outside of CDATA every `<` begins a tag, and a stanza ends
with the closing tag that balances its name. Stanzas with CDATA, with a start tag above 64 KiB, or above the size
limit are followed by expat.
"""

import contextlib
import re
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

HEADER_LIMIT_BYTES = 65_536
CUT_NS = "urn:smartfeeds:0#cut"
TOO_LONG = "the stanza is too long"
_KEPT = ("from", "to", "id", "type", "xmlns")  # what an answer needs
_KEPT_CHARACTERS = 65_536
_NAME_CHARACTER = rb"[^\s<>/!?\"'=]"
# What follows a name in a tag. Not possessive: before Python 3.11.5 such groups matched what they must not.
TAG_REST = rb"[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*"
# A name is tried as a whole, or an incomplete tag would cost the square of its length.
_START = re.compile(rb"<(" + _NAME_CHARACTER + rb"+)(?!" + _NAME_CHARACTER + rb")" + TAG_REST + rb">")
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^<>?]*\?>)?\s*")
_GAP = re.compile(rb"\s*")
_NAME_ENDS = b" \t\r\n/>"
_WRAPPER = b"<s>"


class Framer:
    """The state of one incoming stream. `feed` returns complete stanzas; the attributes say how the stream stands.

    `header`: the start tag of the root as it came, once it is complete. `ended`: the root was closed. `error`: the
    condition of RFC 6120 that the stream broke; nothing is read after it. A stanza above `limit_bytes` is returned
    cut down (see `cut_down`), and its content is thrown away as it comes.
    """

    __slots__ = (
        "_body",
        "_depth",
        "_limit_bytes",
        "_name",
        "_rest",
        "_scan",
        "_slow",
        "_start",
        "ended",
        "error",
        "header",
    )

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()
        self._name = b""  # of the stanza that is open, empty between stanzas
        self._start = 0  # where it begins
        self._body = 0  # where the nested starts of its name are counted from
        self._scan = 0  # where the search for its end goes on
        self._depth = 0
        self._slow: _Follower | None = None
        self.header = b""
        self.ended = False
        self.error = ""

    def feed(self, data: bytes) -> list[bytes]:
        """Takes what came and returns the stanzas that it completes, in order. Never raises."""
        if self.error or self.ended:
            return []
        source: bytes | bytearray = data
        if self._rest:
            self._rest += data
            source = self._rest
        frames: list[bytes] = []
        self._read(source, frames)
        used = self._start
        if source is self._rest:
            del self._rest[:used]
        else:
            self._rest += memoryview(data)[used:]
        self._start = 0
        self._body -= used
        self._scan -= used
        return frames

    def _read(self, source: bytes | bytearray, frames: list[bytes]) -> None:
        if not self.header and not self._read_header(source):
            return
        while self._name or self._open(source):
            if self._slow is None:
                end = self._close(source)
                if end < 0 and self._slow is None and len(source) - self._start > self._limit_bytes:
                    self._slow = _Follower()
            if self._slow is not None:
                end = self._follow(source, self._slow, frames)
            elif end >= 0:
                frames.append(bytes(source[self._start : end]))
            if end < 0:
                return
            self._name, self._slow = b"", None
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
        """Finds the start tag of the next stanza; False when it is not there yet or the stream is over."""
        gap = _GAP.match(source, self._start)
        self._start = begin = gap.end() if gap is not None else self._start
        match = _START.match(source, begin)
        if match is not None:
            self._name = bytes(match[1])
            self._body = self._scan = match.end()
            self._depth = 1
            return True
        first, second = source[begin : begin + 1], source[begin + 1 : begin + 2]
        if first not in (b"", b"<"):
            self.error = "not-well-formed"
        elif second == b"/":
            self.ended = source.find(b">", begin) >= 0
        elif second in (b"!", b"?"):
            self.error = "restricted-xml"
        elif len(source) - begin > HEADER_LIMIT_BYTES:
            self._name, self._body, self._scan, self._slow = b"?", begin, begin, _Follower()
            return True
        return False

    def _close(self, source: bytes | bytearray) -> int:
        """The position after the end of the open stanza; -1 when it is not there yet, or expat has to find it."""
        if (
            source[self._body - 2] == 0x2F
            and source[self._body - 1] == 0x3E
            and self._depth == 1
            and self._scan == self._body
        ):
            return self._body
        closing = b"</" + self._name
        while (at := source.find(closing, self._scan)) >= 0:
            end = source.find(b">", at)
            if end < 0:
                self._scan = at
                return -1
            self._scan = end + 1
            if source[at + len(closing)] not in _NAME_ENDS:
                continue
            if _has_markup(source, b"!", self._body, at) or _has_markup(source, b"?", self._body, at):
                self._slow = _Follower()
                return -1
            self._depth += self._nested(source, at) - 1
            self._body = end + 1
            if self._depth == 0:
                return end + 1
        self._scan = max(self._scan, len(source) - len(closing))
        return -1

    def _nested(self, source: bytes | bytearray, until: int) -> int:
        """How many elements of the stanza's own name open after the last end and before `until`."""
        opening = b"<" + self._name
        count, at = 0, self._body
        while (at := source.find(opening, at, until)) >= 0:
            match = _START.match(source, at)
            at += len(opening)
            if match is not None and match[1] == self._name and source[match.end() - 2] != 0x2F:
                count += 1
        return count

    def _follow(self, source: bytes | bytearray, slow: "_Follower", frames: list[bytes]) -> int:
        """Goes on with expat: returns the end of the stanza, or -1 and throws away what is above the limit."""
        end = slow.feed(source, self._start)
        self.error = slow.error
        if slow.error:
            return -1
        if end >= 0:
            frames.append(_cut(slow.name, slow.attributes, TOO_LONG) if slow.cut else bytes(source[self._start : end]))
        elif slow.cut or len(source) - self._start > self._limit_bytes:
            slow.cut = True
            slow.dropped += len(source) - self._start
            self._start = len(source)
        return end


class _Follower:
    """Expat over one stanza, only to find where it ends, and how it began. `cut`: its content is thrown away."""

    __slots__ = ("_depth", "_end", "_fed", "_parser", "attributes", "cut", "dropped", "error", "name")

    def __init__(self) -> None:
        self._parser = expat.ParserCreate("utf-8")
        self._parser.Parse(_WRAPPER, False)
        self._parser.StartElementHandler = self._begin_element
        self._parser.EndElementHandler = self._end_element
        self._parser.CommentHandler = self._restricted
        self._parser.ProcessingInstructionHandler = self._restricted
        self._depth = 0
        self._fed = 0  # bytes of the stanza that expat has seen
        # Where its closing tag begins, or where it ends if its start tag closes it; counted from the stanza's begin.
        self._end = -1
        self.dropped = 0  # bytes of the stanza that are no longer in the source
        self.cut = False
        self.name = ""
        self.attributes: dict[str, str] = {}
        self.error = ""

    def feed(self, source: bytes | bytearray, start: int) -> int:
        """The position in `source` after the stanza, which began `dropped` bytes before `start`; -1 if it goes on."""
        try:
            self._parser.Parse(bytes(source[start + self._fed - self.dropped :]), False)
        except expat.ExpatError:
            if self._end < 0:
                self.error = self.error or "not-well-formed"
                return -1
        self._fed = self.dropped + len(source) - start
        if self._end < 0:
            return -1
        end = start + self._end - self.dropped
        if end < start or source.startswith(b"</" + self.name.encode(), end):
            return source.find(b">", max(start, end)) + 1
        return end

    def _begin_element(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth == 0 and self._end < 0:
            self.name, self.attributes = name, attributes
        self._depth += 1

    def _end_element(self, _name: str) -> None:
        self._depth -= 1
        if self._depth == 0 and self._end < 0:
            self._end = self._parser.CurrentByteIndex - len(_WRAPPER)

    def _restricted(self, *_: str) -> None:
        if self._end < 0:
            self.error = "restricted-xml"


def _has_markup(source: bytes | bytearray, mark: bytes, start: int, end: int) -> bool:
    """Whether `<` and the mark stand together; looks for the mark alone first, which is far quicker."""
    return source.find(mark, start, end) >= 0 and source.find(b"<" + mark, start, end) >= 0


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
    """What is left of a well-formed stanza that is not read: addresses, id and type, and one child that says why.

    The child is `<cut/>` in `CUT_NS` with the reason as its text.
    """
    return _cut(*start_of(frame), reason)


def _cut(name: str, attributes: dict[str, str], reason: str) -> bytes:
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

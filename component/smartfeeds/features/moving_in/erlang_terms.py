"""Erlang terms as text: what `io:format("~p.~n")` writes, such as a text dump of mnesia (IMP-021, IMP-022).

Terms are data and are never evaluated. The parser reads bytes: a binary gives its bytes, whatever encoding they have.
Nesting and size are bounded, and nothing recurses over the input.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

from smartfeeds.errors import Condition, FeedError

# An element of XML nests two levels of terms, and payloads have at most `xml.MAX_DEPTH` levels.
MAX_TERM_DEPTH: Final = 512
# A row of mnesia's pubsub_state lists the ids of all items of a publisher: 30 bytes for each of two million items.
MAX_TERM_BYTES: Final = 64 * 1024 * 1024


class ErlangAtom(str):
    """An atom, such as `open`. A binary is `bytes` and a list of characters is `str`, so both differ from it."""

    __slots__ = ()


Term: TypeAlias = "ErlangAtom | str | bytes | int | float | tuple[Term, ...] | list[Term]"

# Before Python 3.11.5 a possessive group whose last attempt fails in the middle leaves the position there (gh-106052).
# Only groups that fail at their first byte, or at the end of the data, are possessive.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# What is between the brackets of a binary: strings and numbers.
BINARY = rb"(?:" + _STRING + rb"|/utf8|[\d,\s])*+"
_TOKEN = re.compile(
    rb"\s*+(?:"
    rb"([{\[])"
    rb"|(?:"
    rb"([}\]])"
    rb'|<<"([^"\\]*+)">>'  # most binaries
    rb"|([a-z\xdf-\xf6\xf8-\xff][\w@\xc0-\xff]*+)"
    rb"|(-?\d++(?![.#]\w))"
    rb"|<<(" + BINARY + rb")>>"
    rb"|(" + _STRING + rb"(?:\s++" + _STRING + rb")*)"
    rb"|('[^'\\]*+(?:\\.[^'\\]*+)*+')"
    rb"|(-?\d++\.\d++(?:e[-+]?\d++)?)"
    rb")(?:\s*+,)?"  # half of all tokens, if it were one of its own
    rb"|(\S)"
    rb")",
    re.DOTALL,
)
_OPEN, _CLOSE, _SIMPLE, _ATOM, _INTEGER, _BINARY, _CHARACTERS, _QUOTED, _FLOAT, _OTHER = range(1, 11)
_COMMA = ord(",")
_OPENING = {b"}": b"{", b"]": b"["}
_END = re.compile(rb"\.[ \t\r]*\n")
_NAME = re.compile(rb"\s*+\{\s*+([a-z][\w@]*+)\s*+,")
_SEGMENT = re.compile(rb"\s*+(?:(" + _STRING + rb")(/utf8)?|(\d++))\s*+")
_ESCAPE = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3})|\^(.)|(.))", re.DOTALL)
_CONTROLS = {"b": 8, "d": 127, "e": 27, "f": 12, "n": 10, "r": 13, "s": 32, "t": 9, "v": 11}


def read_terms(chunks: Iterable[bytes], max_bytes: int = MAX_TERM_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yields the text of each term of a file, without its full stop, and the position at which it begins.

    A term ends with a full stop at the end of a line: Erlang writes a line feed in a text as `\\n`. A last term that
    lacks its full stop is yielded, too; `parse_term` rejects it if it is torn. Memory is bounded by the largest term.
    Raises FeedError(PAYLOAD_TOO_BIG) for a term of more than `max_bytes`.
    """
    start, rest = 0, b""
    for chunk in chain(chunks, [b""]):
        # The end of a term may lie across two chunks, and has few bytes.
        searched = max(len(rest) - 16, 0)
        rest += chunk
        begin = 0
        for end in _END.finditer(rest, searched):
            yield start + begin, rest[begin : end.start()]
            begin = end.end()
        start, rest = start + begin, rest[begin:]
        if len(rest) > max_bytes:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"the term at byte {start} has more than {max_bytes} bytes; is the file a text dump of mnesia?",
            )
    if rest.strip():
        yield start, rest.strip().removesuffix(b".")


def parse_term(data: bytes) -> Term:
    """Returns the term of a text. Raises FeedError(INVALID_PAYLOAD) where it is none, or is nested too deeply.

    References, processes, functions, maps and lists with a tail are not read, because no table of mod_pubsub has them.
    """
    values, _ = _parse(data.rstrip(), None)
    return values[0]


def parse_head(data: bytes, count: int) -> tuple[Sequence[Term], int]:
    """Returns the first `count` elements of a tuple with more of them, and the offset behind the comma that follows.

    Raises FeedError(INVALID_PAYLOAD) as `parse_term` does, and for a tuple with fewer elements.
    """
    values, position = _parse(data, count)
    if position < 0:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the tuple has no more than {count} elements")
    return values, position


def _parse(data: bytes, count: int | None) -> tuple[list[Term], int]:
    """Returns the term of a text in a list. With a `count`, returns so many elements of the outermost tuple and the
    offset behind them as soon as it has them. The offset is -1 otherwise."""
    outer: list[tuple[bytes, list[Term]]] = []
    values: list[Term] = []
    bracket = b""
    # A value follows a comma and an opening bracket; after a value comes a comma or a closing bracket.
    value_before = comma_before = False
    # Every token ends at a character that is no blank. The pattern would try each blank at the end as a start.
    for match in _TOKEN.finditer(data):
        kind = match.lastindex or _OTHER
        token = match[kind]
        if kind == _CLOSE:
            if bracket != _OPENING[token] or comma_before:
                raise _invalid(match.start(kind))
            value: Term = values if bracket == b"[" else tuple(values)
            bracket, values = outer.pop()
        elif value_before:
            raise _invalid(match.start(kind))
        elif kind == _OPEN:
            if len(outer) == MAX_TERM_DEPTH:
                raise FeedError(Condition.INVALID_PAYLOAD, f"the term is nested deeper than {MAX_TERM_DEPTH} levels")
            outer.append((bracket, values))
            bracket, values, comma_before = token, [], False
            continue
        elif kind == _SIMPLE:
            value = token
        else:
            value = _value(kind, token, match.start(kind))
        values.append(value)
        end = match.end()
        comma_before = data[end - 1] == _COMMA
        value_before = not comma_before
        if comma_before:
            if not outer:
                raise _invalid(end - 1)
            if len(values) == count and len(outer) == 1 and bracket == b"{":
                return values, end
    if outer or len(values) != 1:
        raise FeedError(Condition.INVALID_PAYLOAD, "the term ends in the middle")
    return values, -1


def term_name(data: bytes) -> bytes:
    """Returns the name of a record without parsing it: the atom that begins a tuple. Empty if there is none."""
    match = _NAME.match(data)
    return match[1] if match else b""


def _value(kind: int, token: bytes, position: int) -> Term:
    read = _READERS.get(kind)
    if read is None:
        raise _invalid(position)
    try:
        return read(token)
    except (ValueError, OverflowError):
        raise _invalid(position) from None


def binary_of(token: bytes) -> bytes:
    """Returns the bytes of segments: numbers, and strings, between which a comma may be missing where a line ends.

    `token` is what is between the brackets. Raises ValueError or OverflowError for another text.
    """
    value = bytearray()
    position = 0
    comma = True
    while position < len(token):
        match = _SEGMENT.match(token, position)
        if match is None or (match[3] is not None and not comma):
            raise ValueError
        if match[1] is None:
            value.append(int(match[3]))
        elif match[2]:
            value += _read_characters(match[1]).encode()
        else:
            value += _read_characters(match[1]).encode("latin-1")
        position = match.end()
        comma = token[position : position + 1] == b","
        position += comma
        if comma and position == len(token):
            raise ValueError
    return bytes(value)


def _read_characters(token: bytes) -> str:
    """The characters of strings in quotes."""
    return "".join(_unescape(part[1:-1].decode("latin-1")) for part in re.findall(_STRING, token, re.DOTALL))


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    wide, two, octal, control, other = match.groups()
    if wide or two:
        return chr(int(wide or two, 16))
    if octal:
        return chr(int(octal, 8))
    if control:
        return chr(ord(control) & 31)
    return chr(_CONTROLS.get(other, ord(other)))


_READERS: dict[int, Callable[[bytes], Term]] = {
    _ATOM: lambda token: ErlangAtom(token.decode("latin-1")),
    _INTEGER: int,
    _BINARY: binary_of,
    _CHARACTERS: _read_characters,
    _QUOTED: lambda token: ErlangAtom(_unescape(token[1:-1].decode("latin-1"))),
    _FLOAT: float,
}


def _invalid(position: int) -> FeedError:
    return FeedError(Condition.INVALID_PAYLOAD, f"the text is no Erlang term (at byte {position})")

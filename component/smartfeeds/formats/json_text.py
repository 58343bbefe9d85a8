"""Bytes to JSON values under limits, and JSON values to bytes (RFC 8259).

Whatever JSON lets pass and XML or Python does not is settled here: depth, the number of values, endless and infinite
numbers, members of the same name. Texts may still hold what XML cannot carry; `json_items` settles that.
"""

import json
import math
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES

# JSON as parsed: None, bool, int, float, str, list, dict with str keys.
Json = Any
JsonObject = dict[str, Json]

MAX_JSON_DEPTH = 64  # the parser of Python is recursive
# A value of one byte takes some hundred bytes of memory.
MAX_JSON_VALUES = 1_000_000
MAX_INTEGER_DIGITS = 32  # a longer number is read as a float, because int() takes quadratic time

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
# A string, which has no structure in it, or a sign of structure. A string without end reaches to the end, and nothing
# is looked at twice: possessive repeats keep no way back.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
# What a strict parser refuses, and the note about it. Strings are matched first, so that what they hold stays.
_STRING = r'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))'
_ESCAPE_SEQUENCE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9A-Fa-f]{4}|\Z)|x([0-9A-Fa-f]{2})|(.))', re.DOTALL)


def _outside_strings(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{_STRING}|{pattern}", re.DOTALL)


def _escape_sequence(match: re.Match[str]) -> str:
    """An escape of JavaScript in JSON. A backslash before any other character means that character."""
    valid, code, character = match.groups()
    return match[0] if valid is not None else f"\\u00{code}" if code else character


def _finite(match: re.Match[str]) -> str:
    number = match["number"]
    return match[1] or (number if number and math.isfinite(float(number)) else "null")


_REPAIRS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str], str], ...] = (
    (
        _outside_strings(r"/\*.*?(?:\*/|\Z)|//[^\r\n]*+"),
        lambda match: match[1] or " ",
        "comments in JSON were left out",
    ),
    (_ESCAPE_SEQUENCE, _escape_sequence, "escapes that JSON does not have were read as in JavaScript"),
    (re.compile("[\x00-\x1f]"), " ", "control characters in JSON were read as blanks"),
    (
        _outside_strings(r"(?P<start>[\[{])[\s,]*,|,(?=\s*+[,\]}])"),
        lambda match: match[1] or match["start"] or "",
        "commas without a value were left out",
    ),
    (
        _outside_strings(r"\}\s*+(?=\{)"),
        lambda match: match[1] or "},",
        "commas between objects were added",
    ),
    (
        _outside_strings("[\ufeff\u00a0]"),
        lambda match: match[1] or " ",
        "spaces that JSON does not have were read as blanks",
    ),
    (
        _outside_strings(r"-?(?:NaN|Infinity|undefined)\b|(?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"),
        _finite,
        "numbers that JSON does not have were read as null",
    ),
)
_CUT = "the document ends in the middle; items that are whole were read"
# Before a JSON Feed servers write messages, as text or in these elements, and scripts the name of a function.
_LEAD_BYTES = 4096
_FEED_START = re.compile(rb'\{\s*+"[^"\\]{1,40}"\s*+:')
_FEED_MARK = b"jsonfeed.org/version"
_LEAD_TAGS = re.compile(rb"<(?!/?(?:br|b|i|p|div|pre|font|hr|strong|em|span|a|code|small)\b)", re.IGNORECASE)
_OPENING = frozenset({b"[", b"{"})
_CLOSING = frozenset({b"]", b"}"})
# Line ends in JavaScript but not in JSON, and what UTF-8 has no bytes for; in JSON text they occur in strings only.
_ESCAPED = re.compile("[\u2028\u2029\ud800-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class LoadedJson(NamedTuple):
    """The value, and what had to be remedied. `partial`: the end of the document is missing."""

    value: Json
    warnings: list[str]
    partial: bool = False


def looks_like_json(data: bytes) -> bool:
    """Whether the document can only be JSON: it begins as an object or an array."""
    return data[:1024].removeprefix(_BOM).lstrip(_SPACE).startswith((b"{", b"["))


def json_feed_start(data: bytes) -> int:
    """Returns the offset at which a JSON Feed begins, behind a message of its server or a call of a function, or -1."""
    match = _FEED_START.search(data, 0, _LEAD_BYTES)
    if match is None or _LEAD_TAGS.search(data, 0, match.start()) or data.find(_FEED_MARK, match.start()) < 0:
        return -1
    return match.start()


def load_json(
    data: bytes, *, max_depth: int = MAX_JSON_DEPTH, max_values: int = MAX_JSON_VALUES, repair: bool = False
) -> LoadedJson:
    """Parses a whole document. Of members of one name the last counts, as in JavaScript.

    With `repair`, for documents of the web, faults that have one remedy are repaired, what comes after the end is left
    out, and a document that is cut has the objects that are whole in its array. Raises FeedError(INVALID_PAYLOAD) or
    FeedError(PAYLOAD_TOO_BIG).
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document is larger than {MAX_DOCUMENT_BYTES} bytes")
    data = data.removeprefix(_BOM)
    _check_structure(data, max_depth, max_values)
    repeats: list[str] = []

    def members(pairs: list[tuple[str, Json]]) -> JsonObject:
        value = dict(pairs)
        if len(value) < len(pairs):
            repeats.append("")
        return value

    decoder = json.JSONDecoder(
        object_pairs_hook=members, parse_int=_integer, parse_float=_number, parse_constant=_constant
    )
    notes: list[str] = []
    partial = False
    try:
        text = data.decode()
        try:
            value = decoder.decode(text)
        except (json.JSONDecodeError, FeedError):  # FeedError is that of a number, which a repair makes null
            if not repair:
                raise
            repeats.clear()
            text = _repaired(text, notes)
            # A comment may have held a quotation mark.
            _check_structure(text.encode(), max_depth, max_values)
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                text = _whole(text)
                value, end = decoder.raw_decode(text)
                partial = True
            if text[end:].strip():
                notes.append("what comes after the end of the JSON was left out")
    except UnicodeDecodeError:
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is no JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        raise FeedError(
            Condition.INVALID_PAYLOAD, f"the document is not well-formed JSON (line {error.lineno})"
        ) from None
    doubles = ["a member stands twice in an object; the last one was read"] if repeats else []
    return LoadedJson(value, [*notes, *doubles, *([_CUT] if partial else [])], partial)


def _repaired(text: str, notes: list[str]) -> str:
    """The text without faults that have one remedy."""
    text = text.lstrip(" \t\r\n")
    for pattern, replacement, note in _REPAIRS:
        changed = pattern.sub(replacement, text)
        if changed != text:
            text = changed
            notes.append(note)
    return text


def _whole(text: str) -> str:
    """The text up to its last whole object in an array of the outermost object, if its end is missing."""
    data = text.encode()
    stack: list[bytes] = []
    end = 0
    for match in _TOKEN.finditer(data):
        if match[0] in _OPENING:
            stack.append(match[0])
        elif match[0] in _CLOSING and stack:
            stack.pop()
            end = match.end() if stack == [b"{", b"["] else end
    return data[:end].decode() + "]}" if stack and end else text


def _check_structure(data: bytes, max_depth: int, max_values: int) -> None:
    """Bounds depth and number of values before anything is built, and without recursion."""
    depth = values = 0
    for match in _TOKEN.finditer(data):
        sign = match[0]
        if sign in _OPENING:
            depth += 1
            if depth > max_depth:
                raise FeedError(Condition.INVALID_PAYLOAD, f"the document is nested deeper than {max_depth} levels")
        elif sign != b",":
            depth -= sign in _CLOSING
            continue
        values += 1
        if values > max_values:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the document has more than {max_values} values")


def _integer(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= MAX_INTEGER_DIGITS else _number(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FeedError(Condition.INVALID_PAYLOAD, "the document holds a number that is too large")
    return number


def _constant(name: str) -> float:
    raise FeedError(Condition.INVALID_PAYLOAD, f"the document holds {name}, which JSON does not have")


def filled(**members: Json) -> JsonObject:
    """An object of those members that say something."""
    return {name: value for name, value in members.items() if value}


def dump_json(value: Json) -> bytes:
    """Compact JSON in UTF-8, which is a JavaScript expression too. Members keep their order."""
    text = _encode(value)
    return text.encode() if text.isascii() else _ESCAPED.sub(_escape, text).encode()


def dump_text(text: str) -> str:
    """A text as `dump_json` writes it, in half of the time, and not in UTF-8 yet."""
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else _ESCAPED.sub(_escape, quoted)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"

"""Lua data as Prosody writes it: tables of strings, numbers and booleans (Lua 5.4 manual, sections 3.1 and 3.4.9).

Nothing is run. The parser does not recurse, and both the depth and the size of a value are bounded. It reads a slice of
a buffer, such as a memory-mapped file, so that a file of any size is read in little memory.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from smartfeeds.errors import DocumentFormatError

MAX_DEPTH: Final = 512  # tables in tables: an element of a payload takes two of them
# An item arrived in a stanza, for which the default limits of Prosody are 512 KiB and less.
MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
Buffer = bytes | memoryview


class LuaTable(NamedTuple):
    """A table: its fields by key, and its positional entries in their order."""

    fields: "dict[LuaKey, LuaValue]"
    entries: "list[LuaValue]"


LuaKey = str | int | float
LuaValue = str | int | float | bool | None | LuaTable


class LuaError(DocumentFormatError):
    """The data is not a Lua value, or it is beyond the bounds. `position` is the offset of the error in bytes."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position


# Three forms are one token, because most elements of a payload consist of them: a field with a text, such as
# `["key"] = "text";`, a field with a table of such fields, and a table of one text and of fields of both kinds.
_BLANKS: Final = rb"\s*+(?:--[^\n]*+\n\s*+)*+"
_CHARACTERS: Final = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_TEXT: Final = rb'"(' + _CHARACTERS + rb')"'
_SCALAR: Final = rb"(true|false|nil|[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))\b"
_KEY: Final = rb"\[\s*+" + _TEXT + rb"\s*+\]\s*+=\s*+"
_END: Final = rb"\s*+[;,]"
# The same without groups. Tables with more fields than this are read field by field. Possessive groups would need no
# bound, but before 3.11.5 Python does not return to the end of the last repetition if the next one fails in the middle
# (gh-106052).
_MOST_FIELDS: Final = 64
_ANY_TEXT: Final = rb'"' + _CHARACTERS + rb'"'
_ANY_KEY: Final = rb"\s*+\[\s*+" + _ANY_TEXT + rb"\s*+\]\s*+=\s*+"
_TEXT_FIELDS: Final = rb"(?:" + _ANY_KEY + _ANY_TEXT + _END + rb"){1,%d}" % _MOST_FIELDS
_FIELDS: Final = (
    rb"(?:" + _ANY_KEY + rb"(?:" + _ANY_TEXT + rb"|\{" + _TEXT_FIELDS + rb"\s*+\})" + _END + rb"){1,%d}" % _MOST_FIELDS
)
_FIELD: Final = re.compile(rb"\s*+" + _KEY + rb"(?:" + _TEXT + rb"|\{(" + _TEXT_FIELDS + rb")\s*+\})" + _END, re.DOTALL)
_OPENING: Final = re.compile(_BLANKS + rb"\{")
_TOKEN: Final = re.compile(
    _BLANKS
    + rb"(?:"
    + _KEY  # 1
    + rb"(?:"
    + _TEXT  # 2
    + rb"|\{("
    + _TEXT_FIELDS  # 3
    + rb")\s*+\}|(\{)|"  # 4
    + _SCALAR  # 5
    + rb")|"
    + _TEXT  # 6
    + rb"|\{(?:\s*+"
    + _TEXT  # 7
    + _END
    + rb")?("
    + _FIELDS  # 8
    + rb")\s*+\}|(\{)|(\})|"  # 9, 10
    + _SCALAR  # 11
    + rb"|([A-Za-z_]\w*)\s*="  # 12: the name of a field
    + rb"|\[\s*"
    + _SCALAR  # 13: the number of a field
    + rb"\s*\]\s*="
    + rb")\s*+[;,]?+",
    re.DOTALL,
)
_FIELD_TEXT, _FIELD_TEXTS, _FIELD_TABLE, _FIELD_SCALAR, _ENTRY_TEXT = range(2, 7)
_LEAF_TEXT, _LEAF, _OPEN, _CLOSE, _ENTRY_SCALAR, _NAME, _NUMBER = range(7, 14)
_OPENINGS: Final = frozenset({_FIELD_TABLE, _OPEN})
# What can be the value of a field whose key came before.
_ENTRIES: Final = frozenset({_ENTRY_TEXT, _LEAF, _OPEN, _ENTRY_SCALAR})
# Most elements of a feed have names and attributes that other items have too. They are remembered up to this length.
_REMEMBERED_BYTES: Final = 500
_ESCAPE: Final = re.compile(rb"\\(?:(\d{1,3})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|z\s*|(\r\n|\n\r|.))", re.DOTALL)
_CONTROLS: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_LINE_ENDS: Final = {b"\r\n", b"\n\r", b"\n", b"\r"}
_CONSTANTS: Final[dict[bytes, bool | None]] = {b"true": True, b"false": False, b"nil": None}


def parse_table(data: Buffer, start: int = 0) -> tuple[LuaTable, int]:
    """Returns the table that begins at an offset, and the offset behind it and its separator. Raises LuaError.

    Tables of a result may be shared with other results, so nobody may change them.
    """
    limit = min(len(data), start + MAX_VALUE_BYTES)
    opening = _OPENING.match(data, start, limit)
    if opening is None:
        raise LuaError(start, "there is no table here")
    root = table = LuaTable({}, [])
    stack: list[LuaTable] = []  # the tables around `table`
    key: LuaKey | None = None  # the key of a field whose value follows; other keys come with their values
    position = opening.end()
    while True:
        match = _TOKEN.match(data, position, limit)
        if match is None:
            raise LuaError(position, _reason(len(data), position, limit, start))
        token = match.lastindex
        try:
            if key is not None and token not in _ENTRIES:
                raise ValueError(f"the field {key!r} has no value")
            if token == _FIELD_TEXT:
                table.fields[_text(match[1])] = _text(match[_FIELD_TEXT])
            elif token == _FIELD_TEXTS:
                table.fields[_text(match[1])] = LuaTable(_fields(match[_FIELD_TEXTS]), [])
            elif token == _CLOSE:
                _join_numbered(table)
                if not stack:
                    return root, match.end()
                table = stack.pop()
            elif token in _OPENINGS:
                if len(stack) + 1 == MAX_DEPTH:
                    raise ValueError(f"tables are nested more than {MAX_DEPTH} times")
                stack.append(table)
                table, key = _opened(table, key, match), None
            else:
                key = _add(table, key, match)
        except ValueError as error:
            raise LuaError(position, str(error)) from None
        position = match.end()


def _opened(table: LuaTable, key: LuaKey | None, match: "re.Match[bytes]") -> LuaTable:
    """Adds a new table to a table, and returns it."""
    value = LuaTable({}, [])
    if match.lastindex == _FIELD_TABLE:
        table.fields[_text(match[1])] = value
    else:
        _put(table, key, value)
    return value


def _add(table: LuaTable, key: LuaKey | None, match: "re.Match[bytes]") -> LuaKey | None:
    """Adds a text, a scalar or a table of one token to a table, or returns the key of a field whose value follows."""
    token = match.lastindex
    if token == _LEAF:
        text = match[_LEAF_TEXT]
        _put(table, key, LuaTable(_fields(match[_LEAF]), [] if text is None else [_text(text)]))
    elif token == _ENTRY_TEXT:
        _put(table, key, _text(match[_ENTRY_TEXT]))
    elif token == _ENTRY_SCALAR:
        _put(table, key, _scalar(match[_ENTRY_SCALAR]))
    elif token == _FIELD_SCALAR:
        table.fields[_text(match[1])] = _scalar(match[_FIELD_SCALAR])
    else:
        return match[_NAME].decode() if token == _NAME else _key_number(match[_NUMBER])
    return None


def _put(table: LuaTable, key: LuaKey | None, value: "LuaValue") -> None:
    """Adds a value as a field with a key that came before, or as an entry."""
    if key is None:
        table.entries.append(value)
    else:
        table.fields[key] = value


def _reason(size: int, position: int, limit: int, start: int) -> str:
    if limit < size and limit == start + MAX_VALUE_BYTES:
        return f"this is no Lua data, or the value is longer than {MAX_VALUE_BYTES} bytes"
    return "the data ends within a value" if position >= size else "this is no Lua data"


def _fields(data: bytes) -> "dict[LuaKey, LuaValue]":
    """Returns fields with texts, or with tables of such fields. Raises ValueError as `_text` does."""
    return _remembered_fields(data) if len(data) <= _REMEMBERED_BYTES else _read_fields(data)


def _read_fields(data: bytes) -> "dict[LuaKey, LuaValue]":
    return {
        _text(key): _text(text) if fields is None else LuaTable(_fields(fields), [])
        for key, text, fields in (match.groups() for match in _FIELD.finditer(data))
    }


# At most about 1 MB, because longer data is not remembered.
_remembered_fields = lru_cache(maxsize=1_000)(_read_fields)


def _text(text: bytes) -> str:
    """Returns a string without its escapes. Bytes that are no UTF-8 become lone surrogates, which no check accepts.

    Raises ValueError for an escape that is no byte or character.
    """
    if b"\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return text.decode("utf-8", "surrogateescape")


def _unescaped(match: "re.Match[bytes]") -> bytes:
    decimal, hexadecimal, character, plain = match.groups()
    if decimal is not None:
        return bytes((int(decimal),))
    if hexadecimal is not None:
        return bytes((int(hexadecimal, 16),))
    if character is not None:
        return chr(int(character, 16)).encode("utf-8", "surrogatepass")
    if plain is None:
        return b""
    return b"\n" if plain in _LINE_ENDS else _CONTROLS.get(plain, plain)


def _scalar(text: bytes) -> int | float | bool | None:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.lstrip(b"+-")[:2].lower() == b"0x":
        return int(text, 16)
    # Python converts at most 4300 digits; as in Lua, an integer that long is a float.
    return int(text) if text.lstrip(b"+-").isdigit() and len(text) < 20 else float(text)


def _key_number(text: bytes) -> int | float:
    number = _scalar(text)
    if number is None or isinstance(number, bool):
        raise ValueError("the key of a field is neither a string nor a number")
    return number


def _join_numbered(table: LuaTable) -> None:
    """Moves fields with the numbers of entries (`[1] = "text"`) behind the positional entries."""
    fields = table.fields
    if not fields:
        return
    number = len(table.entries) + 1
    while number in fields:
        table.entries.append(fields.pop(number))
        number += 1

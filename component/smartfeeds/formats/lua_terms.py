"""Lua data as Prosody writes it: tables of strings, numbers and booleans (Lua 5.4 manual, sections 3.1 and 3.4.9).

Nothing is run. The parser does not recurse, and both the depth and the size of a value are bounded. It reads a slice of
a buffer, such as a memory-mapped file, so that a file of any size is read in little memory.
"""

import re
from typing import Final, NamedTuple

from smartfeeds.errors import DocumentFormatError

MAX_DEPTH: Final = 512  # tables in tables: an element of a payload takes two of them
MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
Buffer = bytes | memoryview


class LuaTable(NamedTuple):
    """A table: its fields by key, and its positional entries in their order."""

    fields: "dict[str | int | float, LuaValue]"
    entries: "list[LuaValue]"


LuaValue = str | int | float | bool | None | LuaTable


class LuaError(DocumentFormatError):
    """The data is not a Lua value, or it is beyond the bounds. `position` is the offset of the error in bytes."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position


# The two most frequent tokens of Prosody come first: `["key"] = "text";` and `["key"] = {`.
_TEXT: Final = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
_SCALAR: Final = rb"(true|false|nil|[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))\b"
_KEY: Final = rb"\[\s*" + _TEXT + rb"\s*\]\s*=\s*"
_TOKEN: Final = re.compile(
    rb"(?:\s|--[^\n]*\n)*(?:"
    + rb"|".join(
        (
            _KEY + _TEXT,  # 1, 2
            _KEY + rb"(\{)",  # 3, 4
            _TEXT,  # 5
            rb"(\{)",  # 6
            rb"(\})",  # 7
            _KEY + _SCALAR,  # 8, 9
            _SCALAR,  # 10
            rb"([A-Za-z_]\w*)\s*=",  # 11: the name of a field
            rb"\[\s*" + _SCALAR + rb"\s*\]\s*=",  # 12: the number of a field
        )
    )
    + rb")\s*[;,]?",
    re.DOTALL,
)
_FIELD_TEXT, _FIELD_TABLE, _ENTRY_TEXT, _OPEN, _CLOSE, _FIELD_SCALAR, _ENTRY_SCALAR, _NAME, _NUMBER = (
    2,
    4,
    5,
    6,
    7,
    9,
    10,
    11,
    12,
)
_ESCAPE: Final = re.compile(rb"\\(?:(\d{1,3})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|z\s*|(\r\n|\n\r|.))", re.DOTALL)
_CONTROLS: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_LINE_ENDS: Final = {b"\r\n", b"\n\r", b"\n", b"\r"}
_CONSTANTS: Final[dict[bytes, bool | None]] = {b"true": True, b"false": False, b"nil": None}


def parse_table(data: Buffer, start: int = 0) -> tuple[LuaTable, int]:
    """Returns the table that begins at an offset, and the offset behind it and its separator. Raises LuaError."""
    limit = min(len(data), start + MAX_VALUE_BYTES)
    opening = _TOKEN.match(data, start, limit)
    if opening is None or opening.lastindex != _OPEN:
        raise LuaError(start, "there is no table here")
    root = LuaTable({}, [])
    builder = _Builder([root])
    position = opening.end()
    while builder.stack:
        match = _TOKEN.match(data, position, limit)
        if match is None:
            raise LuaError(position, _reason(len(data), position, limit, start))
        try:
            builder.add(match)
        except ValueError as error:
            raise LuaError(position, str(error)) from None
        position = match.end()
    return root, position


class _Builder:
    """Builds tables from tokens. `stack` has the open tables. `key` is the name or number of a field whose value
    follows; other keys come with their values."""

    __slots__ = ("key", "stack")

    def __init__(self, stack: list[LuaTable]) -> None:
        self.stack = stack
        self.key: str | int | float | None = None

    def add(self, match: "re.Match[bytes]") -> None:
        """Adds a token. Raises ValueError with the reason."""
        token = match.lastindex
        if token == _FIELD_TEXT:
            self._field(_text(match[1]), _text(match[2]))
        elif token == _ENTRY_TEXT:
            self._entry(_text(match[_ENTRY_TEXT]))
        elif token == _CLOSE:
            self._check_no_key()
            _join_numbered(self.stack.pop())
        elif token == _FIELD_TABLE:
            table = LuaTable({}, [])
            self._field(_text(match[_FIELD_TABLE - 1]), table)
            self._open(table)
        elif token == _OPEN:
            table = LuaTable({}, [])
            self._entry(table)
            self._open(table)
        elif token == _FIELD_SCALAR:
            self._field(_text(match[_FIELD_SCALAR - 1]), _scalar(match[_FIELD_SCALAR]))
        elif token == _ENTRY_SCALAR:
            self._entry(_scalar(match[_ENTRY_SCALAR]))
        else:
            self._check_no_key()
            self.key = match[_NAME].decode() if token == _NAME else _key_number(match[_NUMBER])

    def _open(self, table: LuaTable) -> None:
        if len(self.stack) == MAX_DEPTH:
            raise ValueError(f"tables are nested more than {MAX_DEPTH} times")
        self.stack.append(table)

    def _field(self, key: str | int | float, value: LuaValue) -> None:
        self._check_no_key()
        self.stack[-1].fields[key] = value

    def _entry(self, value: LuaValue) -> None:
        if self.key is None:
            self.stack[-1].entries.append(value)
        else:
            self.stack[-1].fields[self.key], self.key = value, None

    def _check_no_key(self) -> None:
        if self.key is not None:
            raise ValueError(f"the field {self.key!r} has no value")


def _reason(size: int, position: int, limit: int, start: int) -> str:
    if limit < size and limit == start + MAX_VALUE_BYTES:
        return f"this is no Lua data, or the value is longer than {MAX_VALUE_BYTES} bytes"
    return "the data ends within a value" if position >= size else "this is no Lua data"


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

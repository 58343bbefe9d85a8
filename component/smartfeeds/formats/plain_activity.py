"""Activities of plain entries, written from their bytes (A-35).

Most entries have a few elements of Atom, and nothing below them. One scan of the stored bytes, which are canonical,
reads such an entry in a tenth of the time that a tree takes. `activity.write_activity` writes all others. Both write
the same bytes for a plain entry (tests/property/test_activities.py).
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.formats.activity import write_activity
from smartfeeds.formats.atom import DERIVED, ENTRY_START
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.json_text import dump_text
from smartfeeds.formats.links import resolve_uri
from smartfeeds.formats.plain import squeeze

_START = ENTRY_START + b">"
_END = b"</entry>"
_IGNORED = frozenset(
    {b"self", b"edit", b"via", b"related", b"replies", b"next", b"hub"}
)  # links that JSON does not have
# Canonical attributes are in alphabetical order. An element with other attributes or children is not plain.
_CHILD = re.compile(
    rb'(<(?:(id|title|updated|published|summary|content)(?: type="(text|html)")?>([^<]*)</\2>'
    rb"|author><name>([^<]*)</name></author>"
    rb'|category(?: label="([^"]*)")?(?: scheme="([^"]*)")? term="([^"]*)"></category>'
    rb'|link href="([^"]*)"(?: hreflang="[^"]*")?(?: rel="([^"]*)")?(?: title="[^"]*")?(?: type="[^"]*")?></link>))'
)
# As `format_datetime` writes it, and valid in every month.
_SECOND = re.compile(
    rb"(?:19[7-9]|20[0-9])[0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
).fullmatch
_REFERENCES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&amp;", b"&"))  # the ampersand comes last
_ESCAPES = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\t", b"\\t"))  # the backslash comes first
# Most entries share their authors and categories with others. Longer ones are not remembered, because clients choose
# them.
_KNOWN_NAMES = 512
_KNOWN_BYTES = 128
# How two characters begin that JavaScript reads as ends of a line.
_LINE_ENDS = b"\xe2\x80"


class _PlainEntry(NamedTuple):
    """What an activity has of an entry: texts by the names of elements as they are stored, the rest as JSON."""

    texts: Mapping[bytes, bytes]
    is_html: bool
    author: bytes
    url: bytes
    tags: Sequence[bytes]


def write_item(item: Item, *, comments: bool = False) -> bytes:
    """One item as an activity. With `comments`, an item without a type of its own is a comment."""
    entry = None if item.deleted else _read(item.payload)
    if entry is None:
        return write_activity(read_entry(item), comments=comments)
    return _activity(item, entry, comments=comments)


def _read(payload: bytes) -> _PlainEntry | None:
    """A plain entry, None for anything else."""
    # A character reference stands for white space, which few texts have and some members do not.
    if not payload.startswith(_START) or b"&#" in payload:
        return None
    children = _CHILD.findall(payload, len(_START))
    if sum([len(child[0]) for child in children]) != len(payload) - len(_START) - len(_END):
        return None  # something is between them
    texts: dict[bytes, bytes] = {}
    tags: list[bytes] = []
    author = url = b""
    is_html = False
    for element, name, kind, text, person, label, scheme, term, href, rel in children:
        if name:
            if name in texts or (kind == b"html" and name != b"content"):
                return None
            texts[name] = text
            is_html = is_html or kind == b"html"
        elif element.startswith(b"<a"):
            author = author or (_name(person) if len(person) <= _KNOWN_BYTES else _line(person))
        elif element.startswith(b"<c"):
            tag = (_known_tag if len(element) <= _KNOWN_BYTES else _tag)(term, scheme, label)
            if tag:
                tags.append(tag)
        elif rel == b"alternate" or b" rel=" not in element:
            url = url or _address(href)
        elif rel not in _IGNORED:
            return None
    return _PlainEntry(texts, is_html, author, url, tags)


def _activity(item: Item, entry: _PlainEntry, *, comments: bool) -> bytes:
    find = entry.texts.get
    title, content = _line(find(b"title", b"")), _string(find(b"content", b""))
    atom_id = _text(find(b"id", b"")).strip()
    published, updated = find(b"published", b""), find(b"updated", b"")
    parts = (
        b'{"id":%b,"published":"%b"' % (dump_text(item.id), _time(published, item.created_us)),
        b',"updated":"%b"' % _time(updated, item.modified_us),
        _member(b"title", title),
        b',"verb":"post"',
        b',"actor":{"objectType":"person","displayName":%b}' % entry.author if entry.author else b"",
        b',"object":{"objectType":"%b"' % (b"comment" if comments else b"article" if title else b"note"),
        _member(b"id", b"" if atom_id.startswith(DERIVED) else _json(atom_id)),
        _member(b"url", entry.url),
        _member(b"displayName", title),
        _member(b"summary", _line(find(b"summary", b""))),
        _member(b"content", content),
        b',"contentType":"text/html"' if entry.is_html and content else b"",
        b',"tags":[%b]' % b",".join(entry.tags) if entry.tags else b"",
        b"}}",
    )
    return b"".join(parts)


def _tag(term: bytes, scheme: bytes, label: bytes) -> bytes:
    """A category as JSON; nothing for one without a term."""
    name, *others = (_json(_text(raw).strip()) for raw in (term, scheme, label))
    rest = _member(b"scheme", others[0]) + _member(b"label", others[1])
    return b'{"objectType":"category","displayName":%b%b}' % (name, rest) if name else b""


@lru_cache(_KNOWN_NAMES)
def _known_tag(term: bytes, scheme: bytes, label: bytes) -> bytes:
    return _tag(term, scheme, label)


def _member(name: bytes, value: bytes) -> bytes:
    """A member of an object, behind others; nothing without a value."""
    return b',"%b":%b' % (name, value) if value else b""


def _text(raw: bytes) -> str:
    """The text of canonical bytes."""
    return _unescaped(raw).decode()


def _unescaped(raw: bytes) -> bytes:
    if b"&" in raw:
        for reference, character in _REFERENCES:
            raw = raw.replace(reference, character)
    return raw


def _json(text: str) -> bytes:
    """A text as JSON; nothing for an empty one."""
    return dump_text(text) if text else b""


def _line(raw: bytes) -> bytes:
    """A text on one line as JSON; nothing for a text without words."""
    return _json(squeeze(_text(raw)))


@lru_cache(_KNOWN_NAMES)
def _name(raw: bytes) -> bytes:
    return _line(raw)


def _string(raw: bytes) -> bytes:
    """A text as JSON; nothing for an empty one. A kilobyte takes half of the time of `_json`."""
    raw = _unescaped(raw)
    if _LINE_ENDS in raw:
        return dump_text(raw.decode())
    for character, escape in _ESCAPES:
        if character in raw:
            raw = raw.replace(character, escape)
    return b'"%b"' % raw if raw else b""


def _address(raw: bytes) -> bytes:
    """The address of a link as JSON; nothing if a browser may run it."""
    address = resolve_uri("", _text(raw))
    return dump_text(address) if address and harmless(address) else b""


def _time(raw: bytes, default_us: int) -> bytes:
    """A date of an entry in UTC, or another time if it is not valid."""
    if _SECOND(raw):
        return raw
    time_us = parse_datetime(_text(raw).strip())
    return format_datetime(default_us if time_us is None else time_us).encode()

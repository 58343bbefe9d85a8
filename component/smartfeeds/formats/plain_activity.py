"""Activities of plain entries, written from their bytes (A-35).

This takes a tenth of the time that a tree takes. `activity.write_activity` writes all other entries, and those that
have more than a few members. Both write the same bytes for a plain entry (tests/property/test_activities.py).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.formats.activity import write_activity
from smartfeeds.formats.atom import DERIVED
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.json_text import dump_text
from smartfeeds.formats.links import resolve_uri
from smartfeeds.formats.plain_entry import find_attributes, find_parts, plain_children, unescape

# The elements with a text, and the attributes that they may have.
_TEXT = frozenset({"", ' type="text"'})
_HTML = ' type="html"'
_TYPES = {**dict.fromkeys(("id", "title", "updated", "published", "summary"), _TEXT), "content": _TEXT | {_HTML}}
_IGNORED = frozenset({"self", "edit", "via", "related", "replies", "next", "hub"})  # links that JSON does not have
# As `format_datetime` writes it, and valid in every month.
_SECOND = re.compile(
    r"(?:19[7-9]|20[0-9])[0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
).fullmatch
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"))  # the backslash comes first
# Most entries share their authors and categories with others. Longer ones are not remembered, because clients choose
# them.
_KNOWN_NAMES = 512
_KNOWN_CHARACTERS = 128


class _PlainEntry(NamedTuple):
    """What an activity has of an entry: texts by the names of elements, the rest as JSON."""

    texts: Mapping[str, str]
    is_html: bool
    author: str
    url: str
    tags: str


def write_item(item: Item, *, comments: bool = False) -> bytes:
    """One item as an activity. With `comments`, an item without a type of its own is a comment."""
    entry = None if item.deleted else _read(item.payload)
    if entry is None:
        return write_activity(read_entry(item), comments=comments)
    return _activity(item, entry, comments=comments).encode()


def _read(payload: bytes) -> _PlainEntry | None:
    """A plain entry that has nothing but members of an activity, None for anything else."""
    children = plain_children(payload)
    if children is None:
        return None
    texts: dict[str, str] = {}
    tags: list[str] = []
    author = url = ""
    is_html = False
    for name, attributes, text in children:
        if name in _TYPES:
            if name in texts or attributes not in _TYPES[name]:
                return None
            texts[name] = unescape(text) if "&" in text else text
            is_html = is_html or attributes == _HTML
        elif name == "category":
            tags.append((_known_tag if len(attributes) <= _KNOWN_CHARACTERS else _tag)(attributes))
        elif name == "author":
            person = (_known_author if len(text) <= _KNOWN_CHARACTERS else _author)(text)
            if person is None:
                return None
            author = author or person
        else:
            address = _page(attributes) if name == "link" else None
            if address is None:
                return None
            url = url or address
    return _PlainEntry(texts, is_html, author, url, ",".join(filter(None, tags)))


def _activity(item: Item, entry: _PlainEntry, *, comments: bool) -> str:
    find = entry.texts.get
    title, content = _line(find("title", "")), _string(find("content", ""))
    atom_id = find("id", "").strip()
    kind = "comment" if comments else "article" if title else "note"
    parts = (
        f'{{"id":{dump_text(item.id)},"published":"{_time(find("published", ""), item.created_us)}"',
        f',"updated":"{_time(find("updated", ""), item.modified_us)}"',
        _member("title", title),
        ',"verb":"post"',
        f',"actor":{{"objectType":"person","displayName":{entry.author}}}' if entry.author else "",
        f',"object":{{"objectType":"{kind}"',
        _member("id", "" if atom_id.startswith(DERIVED) else _json(atom_id)),
        _member("url", entry.url),
        _member("displayName", title),
        _member("summary", _line(find("summary", ""))),
        _member("content", content),
        ',"contentType":"text/html"' if entry.is_html and content else "",
        f',"tags":[{entry.tags}]' if entry.tags else "",
        "}}",
    )
    return "".join(parts)


def _tag(stored: str) -> str:
    """A category as JSON; nothing for one without a term."""
    values = dict(find_attributes(stored))
    name, scheme, label = [_json(unescape(values.get(key, "")).strip()) for key in ("term", "scheme", "label")]
    rest = _member("scheme", scheme) + _member("label", label)
    return f'{{"objectType":"category","displayName":{name}{rest}}}' if name else ""


_known_tag = lru_cache(_KNOWN_NAMES)(_tag)


def _author(stored: str) -> str | None:
    """The name of a person as JSON, nothing for one without a name, None for one with an address."""
    parts = find_parts(stored)
    if len(parts) > 1 or (parts and parts[0][0] != "name"):
        return None
    return _line(unescape(parts[0][1])) if parts else ""


_known_author = lru_cache(_KNOWN_NAMES)(_author)


def _member(name: str, value: str) -> str:
    """A member of an object, behind others; nothing without a value."""
    return f',"{name}":{value}' if value else ""


def _json(text: str) -> str:
    """A text as JSON; nothing for an empty one."""
    return dump_text(text) if text else ""


def _line(text: str) -> str:
    """A text on one line as JSON; nothing for a text without words."""
    return _json(" ".join(text.split()))


def _string(text: str) -> str:
    """A text as JSON; nothing for an empty one. A kilobyte takes a fifth of the time of `_json`."""
    if "\u2028" in text or "\u2029" in text:  # JavaScript reads these as ends of a line
        return dump_text(text)
    for character, escape in _ESCAPES:
        if character in text:
            text = text.replace(character, escape)
    return f'"{text}"' if text else ""


def _page(stored: str) -> str | None:
    """The address of the page as JSON; nothing if the link is not to a page or a browser may run it. None if the link
    needs a tree."""
    values = dict(find_attributes(stored))
    rel = values.get("rel", "alternate")
    if rel != "alternate" or "xml:base" in values:
        return "" if rel in _IGNORED else None
    address = resolve_uri("", unescape(values.get("href", "")))
    return dump_text(address) if address and harmless(address) else ""


def _time(text: str, default_us: int) -> str:
    """A date of an entry in UTC, or another time if it is not valid."""
    if _SECOND(text):
        return text
    time_us = parse_datetime(text.strip())
    return format_datetime(default_us if time_us is None else time_us)

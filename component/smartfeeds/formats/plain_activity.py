"""Activities of plain entries, written from their bytes (A-35).

This takes a tenth of the time that a tree takes. `activity.write_activity` writes all other entries, and those that
have more than a few members. Both write the same bytes for a plain entry (tests/property/test_activities.py).
"""

import re
from functools import lru_cache

from smartfeeds.core.model import Item
from smartfeeds.core.times import PLAIN_SECOND, format_datetime, parse_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.formats.activity import write_activity
from smartfeeds.formats.atom import DERIVED
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.json_text import dump_text
from smartfeeds.formats.links import resolve_uri
from smartfeeds.formats.plain_entry import ATTRIBUTES, ENTRY_START, find_attributes, find_parts, unescape

_TEXT = '{0}(?: type="text")?>([^<]*)</{0}>'
_RUN = "({0}(?:[^<]*<{0})*)"
# The children by their groups. Each may occur once: authors, categories and links that stand together are one group. An
# entry with two titles, or with links in two places, is read from its tree.
_CHILDREN = {
    1: _TEXT.format("id"),
    2: _TEXT.format("title"),
    3: _TEXT.format("published"),
    4: _TEXT.format("updated"),
    5: _TEXT.format("summary"),
    7: 'content(?: type="(?:text|(html))")?>([^<]*)</content>',
    8: _RUN.format("author>[^<]*(?:<name>[^<]*</name>[^<]*)?</author>"),
    9: _RUN.format(f"category{ATTRIBUTES}>[^<]*</category>"),
    10: _RUN.format(f"link{ATTRIBUTES}>[^<]*</link>"),
}
# An entry with nothing but these, in any order: `(?(1)(?!)|...)` fails if group 1 has matched before. One match takes
# half of the time of a walk over the children. The repeats are not possessive: `re` of Python 3.11 returns wrong groups
# then.
_ENTRY = re.compile(
    f"{ENTRY_START.decode()}>(?:[^<]*<(?:"
    + "|".join([f"(?({group})(?!)|{child})" for group, child in _CHILDREN.items()])
    + "))*[^<]*</entry>"
).fullmatch
_IGNORED = frozenset({"self", "edit", "via", "related", "replies", "next", "hub"})  # links that JSON does not have
_SECOND = re.compile(f"{PLAIN_SECOND}Z").fullmatch  # as `format_datetime` writes it
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"))  # the backslash comes first
# Most entries share their authors and categories with others. Longer ones are not remembered, because clients choose
# them.
_KNOWN_NAMES = 512
_KNOWN_CHARACTERS = 256


def write_item(item: Item, *, comments: bool = False) -> bytes:
    """One item as an activity. With `comments`, an item without a type of its own is a comment."""
    text = None if item.deleted else _plain_activity(item, comments=comments)
    return write_activity(read_entry(item), comments=comments) if text is None else text.encode()


def _plain_activity(item: Item, *, comments: bool) -> str | None:
    """The activity of a plain entry that has nothing but members of an activity, None for anything else."""
    try:
        match = _ENTRY(item.payload.decode())
    except UnicodeDecodeError:  # of a damaged database
        return None
    if match is None:
        return None
    atom_id, title, published, updated, summary, html, content, authors, categories, links = match.groups("")
    url = _page(links) if links else ""
    if url is None:
        return None
    title, content = _line(title), _string(content)
    atom_id = (unescape(atom_id) if "&" in atom_id else atom_id).strip()
    kind = "comment" if comments else "article" if title else "note"
    parts = (
        f'{{"id":{dump_text(item.id)},"published":"{_time(published, item.created_us)}"',
        f',"updated":"{_time(updated, item.modified_us)}"',
        f',"title":{title}' if title else "",
        ',"verb":"post"',
        (_known_actor if len(authors) <= _KNOWN_CHARACTERS else _actor)(authors),
        f',"object":{{"objectType":"{kind}"',
        f',"id":{dump_text(atom_id)}' if atom_id and not atom_id.startswith(DERIVED) else "",
        f',"url":{url}' if url else "",
        f',"displayName":{title}' if title else "",
        _member("summary", _line(summary)) if summary else "",
        f',"content":{content}' if content else "",
        ',"contentType":"text/html"' if html and content else "",
        (_known_tags if len(categories) <= _KNOWN_CHARACTERS else _tags)(categories),
        "}}",
    )
    return "".join(parts)


def _attributes(stored: str) -> list[dict[str, str]]:
    """The attributes of elements without children, as they are stored. A text has no ">"."""
    return [dict(find_attributes(part.rpartition(">")[0])) for part in stored.split("</")[:-1]]


def _tags(stored: str) -> str:
    """The member with the categories that have a term."""
    tags: list[str] = []
    for values in _attributes(stored):
        name, scheme, label = [_json(unescape(values.get(key, "")).strip()) for key in ("term", "scheme", "label")]
        rest = _member("scheme", scheme) + _member("label", label)
        if name:
            tags.append(f'{{"objectType":"category","displayName":{name}{rest}}}')
    return f',"tags":[{",".join(tags)}]' if tags else ""


_known_tags = lru_cache(_KNOWN_NAMES)(_tags)


def _actor(stored: str) -> str:
    """The member with the first author that has a name."""
    name = next(filter(None, [_line(part) for kind, part in find_parts(stored) if kind == "name"]), "")
    return f',"actor":{{"objectType":"person","displayName":{name}}}' if name else ""


_known_actor = lru_cache(_KNOWN_NAMES)(_actor)


def _member(name: str, value: str) -> str:
    """A member of an object, behind others; nothing without a value."""
    return f',"{name}":{value}' if value else ""


def _json(text: str) -> str:
    """A text as JSON; nothing for an empty one."""
    return dump_text(text) if text else ""


def _line(stored: str) -> str:
    """A stored text on one line as JSON; nothing for a text without words."""
    text = unescape(stored) if "&" in stored else stored
    return _json(" ".join(text.split()))


def _string(stored: str) -> str:
    """A stored text as JSON; nothing for an empty one. A kilobyte takes a fifth of the time of `_json`."""
    text = unescape(stored) if "&" in stored else stored
    if "\u2028" in text or "\u2029" in text:  # JavaScript reads these as ends of a line
        return dump_text(text)
    for character, escape in _ESCAPES:
        if character in text:
            text = text.replace(character, escape)
    return f'"{text}"' if text else ""


def _page(stored: str) -> str | None:
    """The address of the page as JSON; nothing if no link is to a page or a browser may run it. None if a link needs a
    tree."""
    url = ""
    for values in _attributes(stored):
        rel = values.get("rel", "alternate")
        if rel == "alternate" and "xml:base" not in values:
            address = resolve_uri("", unescape(values.get("href", "")))
            url = url or (dump_text(address) if address and harmless(address) else "")
        elif rel not in _IGNORED:
            return None
    return url


def _time(stored: str, default_us: int) -> str:
    """A date of an entry in UTC, or another time if it is not valid."""
    if _SECOND(stored):
        return stored
    time_us = parse_datetime(unescape(stored).strip()) if stored else None
    return format_datetime(default_us if time_us is None else time_us)
